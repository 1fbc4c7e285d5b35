"""Whole runs of episodes with what else a run has: shared tool results, replay, hints, parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.kit.runs.rollouts import read_rollouts
from trainer_processes_support import same

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]
CACHE = (
    "tool_cache_hit_rate",
    "tool_cache_caught_up",
    "tool_cache_different",
    "tool_cache_mb",
    "episodes_cached",
)
TOLD = ("step", "phase", "draw", "sample", "ids", "own", "trained", "ending", "reward")


@pytest.mark.slow
def test_shared_tool_results_change_nothing_but_who_answers(
    adding: MakeConfig, train: Train, curve: Curve, tmp_path: Path
) -> None:
    from assay.cli.main import run

    made = {
        shared: curve(train(adding({"cache": shared, "settings": {"own": True}}), f"{shared}"))
        for shared in (True, False)
    }
    same(made[True], made[False], but=CACHE)
    for row in made[True]:
        assert 0 < row["episodes_cached"] < 1
        assert row["episodes_cached"] == pytest.approx(row["tool_cache_hit_rate"])
        assert row["tool_cache_different"] == 0
        assert row["tool_cache_caught_up"] > 0
        assert row["episodes_calls"] > 0.5
    for row in made[False]:
        assert row["episodes_cached"] == 0
        assert row["tool_cache_hit_rate"] is None
    ours, others = (list(read_rollouts(tmp_path / f"{shared}")) for shared in (True, False))
    assert len(ours) == len(others) == 4 * 64 + 2 * 3
    for one, other in zip(ours, others, strict=True):
        assert {key: one[key] for key in TOLD} == {key: other[key] for key in TOLD}
    told = [call for row in ours for step in row["episode"]["steps"] for call in step["calls"]]
    assert len({str(call["answer"]) for call in told}) > 3

    for how in ("tools", "answers"):
        out = tmp_path / f"{how}.jsonl"
        assert run(["score", str(tmp_path / "True"), "-o", str(out), "--replay", how]) == 0
        again = [json.loads(line) for line in out.read_text().splitlines()]
        assert len(again) == len(ours)
        if how == "tools":  # the sum lies in the environment, which only tools change
            assert all(row["reward"] == row["recorded_reward"] for row in again)
            assert all(row["differences"] == [] for row in again)
        else:
            assert any(row["reward"] != row["recorded_reward"] for row in again)


def test_unsolved_rows_are_acted_again_with_a_hint(
    adding: MakeConfig, train: Train, tmp_path: Path
) -> None:
    config = adding(
        {"turns": 1, "cache": True},
        {"hints": {"enabled": True, "shares": [0.5, 1.0]}},
        data={"columns": {"solution": "worked"}},
        rollout={"prompts_per_step": 6, "group_size": 2, "max_new_tokens": 4},
        eval={"prompts": 0},
    )
    rows = train(config)
    acted = list(read_rollouts(tmp_path / "run", phase="train"))
    hinted = [row for row in acted if "Continue from it" in row["prompt"][-1]["content"]]
    first = [row for row in acted if row not in hinted]
    assert sum(row["responses"] for row in rows) == len(acted) > len(first) == 4 * 12
    longest = max(len(row["prompt_ids"]) for row in first)
    for row in hinted:
        mine = (row["step"], row["problem"])
        before = [one for one in first if (one["step"], one["problem"]) == mine]
        assert any(before[n]["reward"] == before[n + 1]["reward"] == 0 for n in (0, -2))
        assert len(row["prompt_ids"]) > longest, "it reads the hint"
        assert row["episode"]["steps"][0]["calls"] or row["own"], "and acts"
    replaced = [row for row in hinted if row["trained"]]
    assert replaced, "the last group of a problem is what trains"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["off", "periodic"])
def test_metrics_of_episodes_are_of_the_whole_step(
    adding: MakeConfig, train: Train, tmp_path: Path, mode: str
) -> None:
    method = {"asynchrony": {"mode": mode}}
    config = adding({"cache": True}, method, eval={"prompts": 0}, optim={"micro_batch": 16})
    rows = train(config)
    acted = list(read_rollouts(tmp_path / "run", phase="train"))
    for row in rows:
        mine = [one for one in acted if one["step"] == row["step"]]
        turns = [len(one["episode"]["steps"]) for one in mine]
        assert row["episodes_turns"] == pytest.approx(sum(turns) / len(turns))
        answered = [one["ending"] == "answered" for one in mine]
        assert row["episodes_answered"] == pytest.approx(sum(answered) / len(mine))
        assert 0 < row["tool_cache_hit_rate"] < 1
