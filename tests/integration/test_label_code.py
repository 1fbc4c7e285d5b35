"""Labels of lines, with the real sandbox: by a policy whose feasible prefixes are known, and by a
real model through the command."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from assay.clients.execution import AsyncExecutionClient
from assay.genrm.engines.base import EngineError, TokenCounts, Write, Written
from assay.genrm.labelling.commands import label_code
from assay.genrm.labelling.labeller import CompletionSettings, Labeller, UnknownLabel
from assay.genrm.labelling.tasks import LabelTask, task_of
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.reward_model import config as configs
from assay.trainer.recipes.reward_model.data import load_rows
from genrm_support import make_model
from sandbox_service import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

RIGHT = (
    "def weigh(items):\n",
    "    total = 0\n",
    "    for item in items:\n",
    "        total += 2 * item\n",
    "    # twice, and one more\n",
    "    total = total + 1\n",
    "    return total\n",
)
TESTS = {"asserts": ["assert weigh([1, 2]) == 7", "assert weigh([]) == 1"]}


def program(right: int) -> str:
    """The first lines are right, then it goes wrong for good."""
    return "".join(RIGHT[:right]) + "    raise ValueError\n" + "    return items\n"


def task(code: str, **changes: Any) -> LabelTask:
    return task_of({"prompt": "Write weigh.", "code": code, "tests": TESTS, **changes})


class Policy:
    """Completes what a right program begins with, `chance` of the time; nothing else ever."""

    info: Any = None

    def __init__(self, chance: float = 0.5, *, dies: bool = False) -> None:
        self._chance = chance
        self._dies = dies

    async def ask(self, request: Any) -> Any:
        assert isinstance(request, Write)
        assert request.stop == ("```",)
        if self._dies:
            raise EngineError("ENGINE_DIED", "gone")
        prefix = request.prompt.lead[0].text.removeprefix("```python\n")
        bare = [line for line in prefix.splitlines(keepends=True) if "#" not in line]
        code = [line for line in RIGHT if "#" not in line]
        lucky = random.Random(request.seed).random() < self._chance
        good = bare == code[: len(bare)]
        rest = "".join(code[len(bare) :]) if good and lucky else "    return -1\n"
        return Written(rest, "stop", TokenCounts(1, 0, len(rest)))

    async def start(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to end."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[str]:
    with running("--languages", "python", "--slots", "1") as (address, _):
        yield address


@pytest.mark.parametrize("right", [0, 1, 2, 4, 6])
async def test_labels_are_those_of_the_exact_oracle(sandbox: str, right: int) -> None:
    made = task(program(right))
    async with AsyncExecutionClient(sandbox, timeout_s=60) as client:
        row = await Labeller(Policy(), client, CompletionSettings(samples=12)).label(made)
    labels = [0 if "#" in line else 1 for line in RIGHT[:right]]
    assert row["labels"] == [*labels, -1, -1]
    assert not row["passed"]
    assert row["calls"] <= made.most_calls
    assert row["completions"] == 12 * row["calls"]
    assert row["executions"] <= 1 + 2 * row["calls"], "equal completions are run once"


async def test_a_program_that_passes_is_right_in_every_line_and_nothing_is_sampled(
    sandbox: str,
) -> None:
    async with AsyncExecutionClient(sandbox, timeout_s=60) as client:
        row = await Labeller(Policy(dies=True), client, CompletionSettings()).label(
            task("".join(RIGHT))
        )
    assert row["labels"] == [1, 1, 1, 1, 0, 1, 1]
    assert (row["passed"], row["completions"], row["executions"]) == (True, 0, 1)


async def test_a_fault_is_no_answer_and_not_infeasible(sandbox: str) -> None:
    made = task(program(4))
    async with AsyncExecutionClient(sandbox, timeout_s=60) as client:
        with pytest.raises(UnknownLabel) as dead:
            await Labeller(Policy(dies=True), client, CompletionSettings(samples=2)).label(made)
    assert dead.value.reason == "ENGINE_DIED"
    async with AsyncExecutionClient("127.0.0.1:1", timeout_s=2) as nobody:
        with pytest.raises(UnknownLabel) as gone:
            await Labeller(Policy(), nobody, CompletionSettings(samples=2)).label(made)
    assert gone.value.reason in ("UNREACHABLE", "DEADLINE_EXCEEDED")
    other = task(program(4), language="no-such-language")
    async with AsyncExecutionClient(sandbox, timeout_s=60) as client:
        with pytest.raises(UnknownLabel):
            await Labeller(Policy(), client, CompletionSettings(samples=2)).label(other)


def test_the_command_labels_resumes_and_writes_what_train_rm_reads(
    sandbox: str, tmp_path: Path
) -> None:
    model = make_model(tmp_path / "model")
    codes = ["".join(RIGHT), program(2), program(4)]
    rows = [{"prompt": f"Write weigh {n}.", "code": c, "tests": TESTS} for n, c in enumerate(codes)]
    source, out = tmp_path / "rows.jsonl", tmp_path / "labels.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = [str(source), str(out), "--model", str(model), "--sandbox", sandbox]
    flags += ["--samples", "2", "--max-tokens", "8"]
    result = CliRunner().invoke(label_code, flags, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "3 programs labelled" in result.output
    assert "ceil(log2(lines + 1)) * K" in result.output
    labelled = {row["prompt"]: row for row in read_rows(out)}
    assert labelled["Write weigh 0."]["labels"] == [1, 1, 1, 1, 0, 1, 1]
    for n in (1, 2):
        assert labelled[f"Write weigh {n}."]["labels"][-2:] == [-1, -1]
    kept = out.read_text().splitlines(keepends=True)
    out.write_text("".join(kept[:2]) + kept[2][:30])
    again = CliRunner().invoke(label_code, flags, catch_exceptions=False)
    assert "2 of 3 programs are labelled" in again.output
    assert sorted(out.read_text().splitlines(keepends=True)) == sorted(kept)
    done = CliRunner().invoke(label_code, flags, catch_exceptions=False)
    assert "3 of 3 programs are labelled" in done.output
    repository = Path(__file__).parents[2]
    config = configs.load(
        repository / "configs" / "rm-steps.toml", [f"data.paths=['{out}']", "eval.prompts=1"]
    )
    read = load_rows(config)
    assert len(read.train) + len(read.eval) == 3
