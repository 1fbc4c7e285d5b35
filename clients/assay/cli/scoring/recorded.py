"""A run's recorded rollouts as rows to score; docs/reference/rollouts.md has what is recorded."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import is_rollouts, read_rollouts

_KEPT = ("step", "phase", "draw", "sample", "problem", "policy_step", "truncated", "tokens")


def are_recorded(given: str) -> bool:
    """Whether a command's input is a run, its folder of rollouts, or one of their files."""
    path = Path(given)
    if not path.exists() or not is_rollouts(path):
        return False
    first = next(iter(read_rollouts(path)), {})
    return "phase" in first and "prompt_ids" in first


@contextmanager
def spooled_rollouts(
    given: str, *, judged_by_name: bool, note: Callable[[str], None]
) -> Iterator[tuple[Path, str]]:
    """The rows of recorded rollouts in a file; with `judged_by_name` each names its old verifier.

    Raises:
        ConfigError: there are none.
    """
    with tempfile.NamedTemporaryFile("w", prefix="assay-rollouts-", suffix=".jsonl") as file:
        for row in score_rows(Path(given), judged_by_name=judged_by_name, note=note):
            file.write(json.dumps(row) + "\n")
        file.flush()
        yield Path(file.name), given


def score_rows(
    path: Path, *, judged_by_name: bool, note: Callable[[str], None] = lambda _text: None
) -> Iterator[dict[str, Any]]:
    """Rows that `assay score` reads, of what was recorded; what is unfinished has none."""
    usual = ""
    waiting: list[dict[str, Any]] = []  # faults before the first judgement
    for rollout in read_rollouts(path, note=note):
        if not rollout["finished"]:
            continue
        row = score_row(rollout)
        judged = rollout["judgement"]
        if not judged_by_name:
            yield row
            continue
        usual = usual or (judged["verifier"] if judged else "")
        if not usual:
            waiting.append(row)
            continue
        for one in (*waiting, row):
            named = judged["verifier"] if judged and one is row else ""
            yield {**one, "verifier": named or usual}
        waiting = []
    yield from waiting


def score_row(rollout: Mapping[str, Any]) -> dict[str, Any]:
    """One row: the response, or an episode's last answer, with what was recorded beside it."""
    judged, fault = rollout["judgement"], rollout["fault"]
    place = (rollout["phase"], rollout["step"], rollout["draw"], rollout["sample"])
    row: dict[str, Any] = {
        "id": "-".join(map(str, place)),
        "group_id": "-".join(map(str, place[:3])),
        **{key: rollout[key] for key in _KEPT},
        "prompt": rollout["prompt"],
        "response": rollout["response"],
        "recorded_reward": judged["reward"] if judged else None,
        "recorded_verdict": judged["verdict"] if judged else None,
        "recorded_fault": fault["reason"] if fault else None,
    }
    if rollout.get("task"):
        row["task"] = rollout["task"]
    if rollout.get("tests"):
        row["tests"] = rollout["tests"]
    elif rollout.get("anchor"):
        row["anchor"] = rollout["anchor"]
    else:
        row["reference"] = rollout["reference"]
    if rollout.get("episode"):
        row["response"] = final_answer(rollout["episode"])
        row["environment"], row["ending"] = rollout["environment"], rollout["ending"]
    return row


def final_answer(record: Mapping[str, Any]) -> str:
    """What an environment's services judge by default: the first speaker's last answer.

    Raises:
        ConfigError: the record cannot be read.
    """
    from assay.environments.record import read  # noqa: PLC0415  # pydantic takes a tenth of a second

    steps = read(record).steps
    if not steps:
        return ""
    turn = [one.turn for one in steps if one.turn.agent == steps[0].turn.agent][-1]
    return turn.answer or ("" if turn.calls else turn.text)


def episodes_in(path: Path, note: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Rows of recorded rollouts that are episodes.

    Raises:
        ConfigError: there are none.
    """
    found = False
    for rollout in read_rollouts(path, note=note):
        if rollout.get("episode"):
            found = True
            yield rollout
    if not found:
        raise ConfigError(f"{path} holds no episodes to replay; leave --replay out")
