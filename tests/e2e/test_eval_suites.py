"""`assay eval`, and suites within a training run: a tiny model, real services, planned faults."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run as command
from assay.kit.console import make_console
from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import files_in
from assay.kit.runs.stats import best_of_k, majority, pass_at_k
from assay.trainer.core.evaluation import Evaluation
from assay.trainer.recipes import evaluating, train
from assay.trainer.records.folder import RunFolder
from trainer_support import SUMS, ExactTransport

SUITES = """
[sums]
says = "One-digit sums"
items = 12
verifier = "exact"
[sums.file]
path = "sums.jsonl"
prompt = "q"
reference = "a"
id = "q"

[tens]
verifier = "VERIFIER"
[tens.file]
path = "tens.jsonl"
prompt = "q"
reference = "a"
"""


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    """A TOML file with the suites `sums`, 12 items, and `tens`, 6."""

    def write(name: str, pairs: list[tuple[int, int]]) -> None:
        rows = [{"q": f"{a}+{b}=", "a": str(a + b)} for a, b in pairs]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    write("sums.jsonl", SUMS[3::8][:12])
    write("tens.jsonl", SUMS[50:56])
    path = tmp_path / "suites.toml"
    path.write_text(SUITES.replace("VERIFIER", "exact"))
    return path


@pytest.fixture
def evaluated(tiny_config: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Evaluates the tiny model in this process, with a transport in place of the network."""

    def run(
        name: str, transport: ExactTransport, *suites: str, engine: str = "hf", **settings: Any
    ) -> Any:
        folder = tmp_path / name
        folder.mkdir()
        config = tiny_config(
            eval={"suites": list(suites), "prompts": 0, "temperature": 1.0, **settings},
            rollout={"backend": engine},
        )
        told = evaluating.run(
            config, RunFolder(folder), make_console(file=io.StringIO()), transport=lambda: transport
        )
        return told, Evaluation.from_json(json.loads((folder / "eval_after.json").read_text()))

    return run


@pytest.mark.slow
def test_the_command_with_real_services(
    tiny_model: Path, suites: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    suites.write_text(SUITES.replace("VERIFIER", "math"))
    folder = tmp_path / "run"
    asked = [
        "eval", str(tiny_model), "--suite", f"{suites}:sums@8", "--suite", f"{suites}:tens",
        "--max-new-tokens", "4", "--run-dir", str(folder), "--json",
        "model.device=cpu", "eval.temperature=0.8", "eval.best_by=length", "run.report_to=[]",
    ]  # fmt: skip
    assert command(asked) == 0
    out, err = capfd.readouterr()
    assert err == ""
    told = json.loads(out)
    assert told == json.loads((folder / "report.json").read_text())
    sums, tens = told["suites"]["sums"], told["suites"]["tens"]
    assert (sums["prompts"], sums["samples"], sums["judged"], sums["faults"]) == (12, 8, 96, 0)
    assert (tens["prompts"], tens["samples"]) == (6, 1)
    assert tens["origin"]["verifier"] == "math"
    kept = Evaluation.from_json(json.loads((folder / "eval_after.json").read_text()))
    by_item = kept.suites["sums"].judged_by_problem()
    for k in (1, 2, 4, 8):  # recomputed from the answers, item by item
        right = [[a.response.strip() == a.reference for a in some] for some in by_item.values()]
        values = [pass_at_k(8, sum(some), k) for some in right]
        assert sums["pass_at"][str(k)]["value"] == pytest.approx(sum(values) / 12)
    scored = [([a.score for a in some], [a.correct for a in some]) for some in by_item.values()]
    best = [best_of_k(scores, right, 4) for scores, right in scored]  # type: ignore[arg-type]
    assert sums["best_at"]["4"]["value"] == pytest.approx(sum(best) / 12)
    votes = [majority([a.answer for a in s], [a.correct for a in s]) for s in by_item.values()]
    assert sums["maj"]["value"] == pytest.approx(sum(votes) / 12)
    assert 0.05 < sums["accuracy"] < 0.95
    (file,) = files_in(folder / "rollouts")
    assert (file.step, file.phase) == (0, "eval")
    assert "suites.toml" not in (folder / "report.md").read_text()
    assert "judged by math" in (folder / "report.md").read_text()
    assert command(["compare", str(folder), str(folder)]) == 0


def test_a_suite_is_answered_alike_whatever_else_is_asked(evaluated: Any, suites: Path) -> None:
    _, one = evaluated("one", ExactTransport(), f"{suites}:sums@4")
    _, both = evaluated("both", ExactTransport(), f"{suites}:tens@4", f"{suites}:sums@4")
    _, few = evaluated("few", ExactTransport(), f"{suites}:sums@4", engine="paged", suite_items=5)
    assert both.suites["sums"] == one.suites["sums"]
    first = [answer.response for answer in one.suites["sums"].answers[: 5 * 4]]
    assert [answer.response for answer in few.suites["sums"].answers] == first
    others = [answer.response for answer in both.suites["tens"].answers]
    assert others != [answer.response for answer in both.suites["sums"].answers][: len(others)]


def test_a_fault_that_passes_is_asked_again_and_one_that_stays_is_no_zero(
    evaluated: Any, suites: Path
) -> None:
    told, clean = evaluated("clean", ExactTransport(), f"{suites}:sums@4")
    passing = ExactTransport(lambda call, item: call == 0 and item.response.strip() != "1")
    again, _ = evaluated("again", passing, f"{suites}:sums@4")
    assert passing.faults > 0
    assert again["suites"]["sums"]["faults"] == 0
    assert again["suites"] == told["suites"]
    lost = clean.suites["sums"].answers[0].question
    staying = ExactTransport(lambda _call, item: item.prompt[0].content == lost)
    less, left = evaluated("less", staying, f"{suites}:sums@4")
    sums = less["suites"]["sums"]
    assert (sums["faults"], sums["judged"]) == (4, 44)
    assert sums["unjudged"] == [f"sums/{lost}"]
    assert staying.faults == 8  # asked twice each
    without = {n: v for n, v in clean.suites["sums"].pass_values(1).items() if n != f"sums/{lost}"}
    assert left.suites["sums"].pass_values(1) == without
    assert evaluating.said_of(less) == [
        f"sums: 4 of 48 samples are faults; without any judgement: sums/{lost}"
    ]
    assert evaluating.too_many_faults(less, 0.2) == []
    assert evaluating.too_many_faults(less, 0.05) == ["sums"]
    once = ExactTransport(lambda _call, item: item.prompt[0].content == lost)
    evaluated("once", once, f"{suites}:sums@4", retries=0)
    assert once.faults == 4


def test_what_cannot_be_judged_or_asked_is_said_before_anything_is_generated(
    evaluated: Any, suites: Path
) -> None:
    suites.write_text(SUITES.replace("VERIFIER", "maths"))
    with pytest.raises(ConfigError, match="suite tens, verifier = 'maths' is not served"):
        evaluated("a", ExactTransport(), str(suites))
    with pytest.raises(ConfigError, match=r"eval.best_by = 'nobody' is not served"):
        evaluated("b", ExactTransport(), f"{suites}:sums@4", best_by="nobody")
    with pytest.raises(ConfigError, match="no room for 510 more"):
        evaluated("c", ExactTransport(), f"{suites}:sums", max_new_tokens=510)


@pytest.mark.parametrize("prompts", [0, 10])
def test_a_training_run_evaluates_suites_beside_its_held_out_prompts(
    tiny_config: Callable[..., Any], suites: Path, tmp_path: Path, prompts: int
) -> None:
    config = tiny_config(
        eval={"prompts": prompts, "suites": [f"{suites}:sums@2", f"{suites}:tens"], "every": 1},
        run={"steps": 2},
    )
    folder = RunFolder(tmp_path)
    told = train.run(config, folder, make_console(file=io.StringIO()), transport=ExactTransport)
    assert told is not None
    assert set(told["suites"]) == {"sums", "tens"}
    assert told["suites"]["sums"]["change"]["pairs"] == 12
    assert told["suites"]["sums"]["change"]["test"] == "sign flips"
    assert told["suites"]["tens"]["change"]["test"] == "McNemar"
    assert told["after"]["prompts"] == prompts
    row = json.loads(folder.evals.read_text().splitlines()[0])
    assert row["sums/prompts"] == 12
    assert row["sums/pass@2"] >= row["sums/accuracy"]
    assert "tens/accuracy" in row
    before = Evaluation.from_json(json.loads((tmp_path / "eval_before.json").read_text()))
    assert before.summary()["prompts"] == prompts
    assert len(before.suites["sums"].answers) == 24
    report = (tmp_path / "report.md").read_text()
    assert "12 items of sums, 2 samples each" in report
    assert ("10 held-out prompts" in report) == bool(prompts)
    kept = [file for file in files_in(folder.rollouts) if file.phase == "eval"]
    assert [file.step for file in kept][:2] == [0, 1]
    assert command(["compare", str(tmp_path / "eval_before.json"), str(tmp_path)]) in (0, 3)


@pytest.mark.slow
def test_two_processes_evaluate_as_one(tiny_model: Path, suites: Path, tmp_path: Path) -> None:
    asked = [
        "-m", "assay.cli", "eval", str(tiny_model), "--suite", f"{suites}:sums@4", "--suite",
        f"{suites}:tens", "--max-new-tokens", "4", "model.device=cpu", "eval.best_by=length",
    ]  # fmt: skip
    launch = [str(Path(sys.executable).with_name("torchrun")), "--nproc-per-node", "2"]
    rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    found = []
    for name, command_line in (
        ("one", [sys.executable, *asked]),
        ("two", [*launch, *rendezvous, *asked]),
    ):
        done = subprocess.run(
            [*command_line, "--run-dir", str(tmp_path / name)],
            capture_output=True, text=True, check=False, timeout=200,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(json.loads((tmp_path / name / "eval_after.json").read_text()))
    assert found[0]["suites"]["sums"]["answers"] == found[1]["suites"]["sums"]["answers"]
    assert found[0]["suites"]["tens"]["answers"] == found[1]["suites"]["tens"]["answers"]
    parts = [files_in(tmp_path / name / "rollouts") for name in ("one", "two")]
    assert [len(some) for some in parts] == [1, 2]
