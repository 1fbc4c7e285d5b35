"""A run over episodes keeps them whole: tokens, turns, records; and they are judged again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.environments.record import read
from assay.kit.runs.rollouts import read_rollouts

Train = Callable[..., list[dict[str, Any]]]
WORLD = '''
from assay.environments import Environment, Observation

class Twice(Environment):
    """Two sums; the second begins a conversation of its own."""

    repeatable = True

    def reset(self, row):
        self.rounds = 0
        return row["prompt"]

    def turn(self, turn):
        self.rounds += 1
        if self.rounds == 2:
            return None
        right = turn.text.strip() == str(self.row["reference"])
        return Observation.user("3+4=", context="second", reward=0.25 * right)

    def reward(self):
        return float(self.last.text.strip() == "7")
'''


def test_episodes_are_kept_whole_and_judged_again(
    tiny_config: Callable[..., Any], train: Train, tmp_path: Path
) -> None:
    from assay.cli.main import run

    place = tmp_path / "twice.py"
    place.write_text(WORLD)
    config = tiny_config(
        method={"episodes": {"environment": f"{place}:Twice", "turns": 4, "format": "tagged"}},
        rollout={"prompts_per_step": 4, "group_size": 4, "max_new_tokens": 4},
        eval={"prompts": 5},
        run={"steps": 2},
    )
    train(config)
    folder = tmp_path / "run"
    rows = list(read_rollouts(folder, phase="train"))
    assert len(rows) == 32
    for row in rows:
        record = read(row["episode"])
        assert row["environment"] == record.environment == f"{place}:Twice"
        assert record.outcome is not None
        assert row["ending"] == str(record.outcome.ending) == "answered"
        assert row["reward"] == record.outcome.result.reward
        assert [one[3] for one in row["own"]] == [0, 1]  # a conversation each
        assert len(row["contexts"]) == 2
        assert row["own"][1][0] > row["contexts"][1]  # behind its own prompt
        trained = {at for start, end in row["trained"] for at in range(start, end)}
        own = {at for start, end, *_ in row["own"] for at in range(start, end)}
        assert trained <= own
        for (start, end, *_), step in zip(row["own"], record.steps, strict=True):
            assert step.turn.tokens == end - start
            assert all(value is not None for value in row["logprobs"][start:end])
        between = set(range(len(row["ids"]))) - own
        assert between
        assert all(row["logprobs"][at] is None for at in between)
    held_out = list(read_rollouts(folder, phase="eval"))
    assert [row["step"] for row in held_out] == [0] * 5 + [2] * 5
    assert all(len(row["episode"]["steps"]) == 2 for row in held_out)
    out = tmp_path / "out.jsonl"
    assert run(["score", str(folder), "-o", str(out), "--replay", "tools"]) == 0
    again = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(again) == 42
    assert all(row["reward"] == row["recorded_reward"] for row in again)
    assert all(row["differences"] == [] for row in again)
