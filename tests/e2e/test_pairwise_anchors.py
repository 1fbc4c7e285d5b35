"""Anchors, made and kept: what a run that was stopped there, or later, goes on with."""

from __future__ import annotations

import io
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from assay.kit.errors import ConfigError, make_status
from assay.kit.runs.records import read_rows
from assay.trainer.data.problems import load_problems
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.pairwise import anchors as anchoring
from assay.trainer.recipes.train import run
from assay.trainer.records import folder as folders
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from trainer_support import ExactTransport

pytestmark = pytest.mark.slow
Make = Callable[..., Config]


def points(text: str) -> int:
    """What this judge likes: digits, the higher the better."""
    return sum(int(sign) for sign in text if sign in "0123456789")


class WinTransport(ExactTransport):
    """Judges in this process: against an anchor the chance of beating it by Bradley and Terry, else
    the points themselves."""

    def _judge(self, item: Any, result: Any) -> None:
        if self._faulty(self._call, item):
            self.faults += 1
            result.fault.CopyFrom(make_status("WORKER_DIED", "told to"))
            return
        judgement = result.judgement
        if item.reference.WhichOneof("kind") == "anchor_response":
            gap = points(item.response) - points(item.reference.anchor_response)
            judgement.reward = 1 / (1 + math.exp(-gap))
            judgement.verdict = "better" if gap >= 0 else "worse"
        else:
            judgement.reward = float(points(item.response))
            judgement.verdict = "correct"
        judgement.verifier.name = "exact"


@pytest.fixture
def small(repository: Path, tiny_model: Path, sums_file: Path) -> Make:
    """pairwise_ppo with the tiny model, and the judge above."""

    def make(*overrides: str) -> Config:
        return configs.load(
            repository / "configs" / "pairwise_ppo.toml",
            [
                f"data={sums_file}",
                f"model={tiny_model}",
                "model.device=cpu",
                "model.precision=float32",
                "data.max_rows=16",
                "reward=exact",
                "method.pairwise.anchors=best-of-n",
                "method.pairwise.n=3",
                "method.pairwise.selector=exact",
                "rollout.prompts_per_step=8",
                "rollout.max_new_tokens=4",
                "optim.mini_batches=2",
                "optim.micro_batch=0",
                "optim.learning_rate=4e-4",
                "optim.warmup_steps=0",
                "method.critic.pretrain_steps=0",
                "eval.prompts=4",
                "eval.batch_size=4",
                "run.steps=2",
                "run.checkpoint_every=1",
                "run.report_to=[]",
                *overrides,
            ],
            saved=True,  # overrides choose for those before them
        )

    return make


def test_the_best_of_n_is_chosen_and_half_a_file_is_gone_on_with(
    small: Make, train: Any, curve: Any, tmp_path: Path
) -> None:
    config = small()
    rows = train(config, "whole", WinTransport)
    assert all(0 < row["reward"] < 1 and row["fault_ratio"] == 0 for row in rows)
    path = tmp_path / "whole" / "anchors.jsonl"
    anchors = read_rows(path)
    problems = load_problems(config.data, eval_prompts=4)
    everything = (*problems.train, *problems.eval)
    assert len(everything) == len(anchors) == 20
    assert {row["key"] for row in anchors} == {anchoring.key_of(p) for p in everything}
    for row in anchors:
        assert row["score"] == points(row["anchor"])
        assert row["of"] == 3
    single = train(small("method.pairwise.anchors=reference"), "single", WinTransport)
    drawn = read_rows(tmp_path / "single" / "anchors.jsonl")
    assert sum(points(row["anchor"]) for row in drawn) < sum(row["score"] for row in anchors)
    assert single != rows

    # the same again: some of it is there already, the last row cut short by a kill
    folders.create(config, "again", tmp_path / "again")
    lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "again" / "anchors.jsonl").write_text("".join(lines[:9]) + lines[9][:20])
    assert curve(train(config, "again", WinTransport)) == curve(rows)
    assert (tmp_path / "again" / "anchors.jsonl").read_bytes() == path.read_bytes()


def test_a_signal_while_anchors_are_made_keeps_what_is_there(
    small: Make, train: Any, curve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchoring, "_BATCHES_AT_ONCE", 3)  # 4 problems at a time
    config = small()
    whole = curve(train(config, "whole", WinTransport))
    made = folders.create(config, "cut", tmp_path / "cut")
    told: list[int] = []

    class Signals(WinTransport):
        async def batch_score(self, request: Any, *, timeout_s: float) -> Any:
            told.append(len(request.items))
            signal.raise_signal(signal.SIGTERM)
            return await super().batch_score(request, timeout_s=timeout_s)

    assert run(config, made, Console(file=io.StringIO()), transport=Signals) is None
    assert told == [12]
    assert len(read_rows(made.anchors)) == 4
    assert curve(train(config, "cut", WinTransport)) == whole
    assert made.anchors.read_bytes() == (tmp_path / "whole" / "anchors.jsonl").read_bytes()


def test_a_resumed_run_is_the_uninterrupted_one(
    small: Make, train: Any, curve: Any, tmp_path: Path
) -> None:
    own = ("method.pairwise.anchors=reference", "eval.prompts=0", "data.max_rows=60")
    whole = train(small(*own, "run.steps=3"), "whole", WinTransport)
    train(small(*own, "run.steps=1"), "part", WinTransport)
    assert len(read_rows(tmp_path / "part" / "anchors.jsonl")) == 8
    # more steps reach more problems: their anchors are the initial policy's all the same
    assert curve(train(small(*own, "run.steps=3"), "part", WinTransport)) == curve(whole)
    ends = [read_rows(tmp_path / name / "anchors.jsonl") for name in ("whole", "part")]
    assert len(ends[0]) == 24
    assert {row["key"]: row for row in ends[0]} == {row["key"]: row for row in ends[1]}


def test_a_problem_without_an_anchor_is_a_fault_and_not_a_zero(
    small: Make, train: Any, tmp_path: Path
) -> None:
    def faulty(_call: int, item: Any) -> bool:
        question = item.prompt[0].content if item.prompt else ""
        return item.reference.WhichOneof("kind") != "anchor_response" and question == "3+4="

    config = small("data.max_rows=100", "run.steps=13", "eval.prompts=0", "optim.mini_batches=1")
    rows = train(config, "run", lambda: WinTransport(faulty))
    anchors = read_rows(tmp_path / "run" / "anchors.jsonl")
    [lacking] = [row for row in anchors if row["anchor"] is None]
    assert lacking["fault"] == "WORKER_DIED"
    faults = [row["faults"] for row in rows if row["faults"]]
    assert len(faults) >= 1


def test_a_selector_that_nobody_serves_stops_the_run_before_it_begins(
    small: Make, train: Any
) -> None:
    with pytest.raises(ConfigError, match=r"'taste' is not served"):
        train(small("method.pairwise.selector=taste"), "run", WinTransport)


def test_a_selector_that_cannot_judge_stops_the_run_and_a_later_try_goes_on(
    small: Make, train: Any, curve: Any, tmp_path: Path
) -> None:
    config = small()
    with pytest.raises(TrainingStoppedError, match=r"20 of 20 problems have no anchor"):
        train(config, "run", lambda: WinTransport(lambda _call, _item: True))
    assert all(row["anchor"] is None for row in read_rows(tmp_path / "run" / "anchors.jsonl"))
    assert curve(train(config, "run", WinTransport)) == curve(train(config, "new", WinTransport))
