"""What a run recorded is judged again: responses, episodes' last answers, whole episodes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run
from assay.cli.scoring.recorded import are_recorded, score_rows
from assay.environments import Episode, Reply, ToolCall
from assay.environments.record import record_of
from assay.environments.registry import environment_of
from assay.kit.runs.rollouts import path_for, write_rollouts

SUMS = '''
from assay.environments import Environment, tool

class Sums(Environment):
    """Sums of numbers."""
    repeatable = True
    shift = 0

    def reset(self, row):
        self.total = 0
        return row["prompt"]

    @tool
    def add(self, a: int, b: int) -> str:
        """Adds."""
        self.total = a + b + SHIFT
        return str(self.total)

    def reward(self):
        return float(self.total == self.row["total"])

SHIFT = 0
'''


def rollout(sample: int, text: str, **more: Any) -> dict[str, Any]:
    row = {
        "version": 1, "step": 1, "phase": "train", "process": 0, "policy_step": 0, "draw": 0,
        "sample": sample, "problem": "train-0", "task": "", "question": "1 + 2?",
        "reference": "3", "prompt": [{"role": "user", "content": "1 + 2?"}], "prompt_ids": [1],
        "response": text, "tokens": 2, "truncated": False, "finished": True, "trained": None,
        "judgement": {"reward": 0.5, "verdict": "odd", "verifier": "exact"}, "fault": None,
    }  # fmt: skip
    return {**row, **more}


def played(place: str, calls: list[dict[str, int]], answer: str) -> dict[str, Any]:
    async def main() -> dict[str, Any]:
        episode = Episode(environment_of(place)())
        await episode.begin({"prompt": "1 + 2?", "total": 3})
        if calls:
            await episode.take(Reply("", tuple(ToolCall("add", one) for one in calls)))
        await episode.take(Reply(f"so {answer}", answer=answer))
        await episode.end()
        return record_of(episode)

    return asyncio.run(main())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "sums.py"
    place.write_text(SUMS)
    name = f"{place}:Sums"
    fault = {"reason": "UNAVAILABLE", "message": "away", "code": "UNAVAILABLE"}
    rows = [
        rollout(0, "", judgement=None, fault=fault),
        rollout(1, "3"),
        rollout(2, "4"),
        rollout(3, "torn", finished=False, judgement=None),
    ]
    acted = [
        rollout(
            sample, "all of it", episode=played(name, calls, answer), environment=name,
            ending="answered",
        )
        for sample, (calls, answer) in enumerate([([{"a": 1, "b": 2}], "3"), ([], "3")])
    ]  # fmt: skip
    write_rollouts(path_for(tmp_path / "run" / "rollouts", 1), rows)
    write_rollouts(
        path_for(tmp_path / "run" / "rollouts", 2), [{**row, "step": 2} for row in acted]
    )
    return tmp_path / "run"


def scored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_of_what_was_recorded(folder: Path) -> None:
    for given in (folder, folder / "rollouts", path_for(folder / "rollouts", 1)):
        assert are_recorded(str(given))
    assert not are_recorded(str(folder.parent))
    rows = list(score_rows(folder, judged_by_name=True))
    assert [row["id"] for row in rows] == [
        "train-1-0-0", "train-1-0-1", "train-1-0-2", "train-2-0-0", "train-2-0-1",
    ]  # fmt: skip
    assert {row["verifier"] for row in rows} == {"exact"}
    assert [row["response"] for row in rows] == ["", "3", "4", "3", "3"]
    assert rows[0]["recorded_fault"] == "UNAVAILABLE"
    assert all("verifier" not in row for row in score_rows(folder, judged_by_name=False))


@pytest.mark.slow
def test_recorded_responses_are_judged_again(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert run(["score", str(folder), "-o", str(out)]) == 0
    rows = scored(out)
    assert [row["reward"] for row in rows] == [0.0, 1.0, 0.0, 1.0, 1.0]
    assert [row["recorded_reward"] for row in rows] == [None, 0.5, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("replay", ["tools", "answers"])
def test_episodes_are_judged_in_their_environment(
    folder: Path, tmp_path: Path, replay: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "sums.py"
    out = tmp_path / "out.jsonl"
    asked = ["score", str(folder), "-o", str(out), "--replay", replay]
    assert run(asked) == 0
    rows = scored(out)
    assert [row["reward"] for row in rows] == ([1.0, 0.0] if replay == "tools" else [0.0, 0.0])
    assert [row["differences"] for row in rows] == [[], []]
    place.write_text(SUMS.replace("SHIFT = 0", "SHIFT = 1 + 0"))
    assert run(asked) == 0
    first = scored(out)[0]
    if replay == "tools":
        assert "answer of add: was '3', is '4'" in first["differences"][0]
        assert "1 that went otherwise" in capsys.readouterr().err
    else:
        assert first["differences"] == []


def test_what_holds_no_episodes_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    only = str(path_for(folder / "rollouts", 1))
    out = str(tmp_path / "out.jsonl")
    assert run(["score", only, "-o", out, "--replay", "tools"]) == 1
    assert "no episodes" in capsys.readouterr().err
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{}\n")
    assert run(["score", str(rows), "-o", out, "--replay", "tools"]) == 1
    assert "needs a run" in capsys.readouterr().err
