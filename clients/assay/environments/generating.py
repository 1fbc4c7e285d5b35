"""Rows for an environment, written by a model for what a policy cannot do yet, and checked.

After EnvGen (arXiv 2403.12014): a row is taken only if the `solution` that it brings earns the full
reward in the environment itself, and saying nothing does not. The form of all this is ours.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.environments.environment import Environment, Row, Services
from assay.environments.episode import Episode, EpisodeLimits
from assay.environments.experience import Write
from assay.environments.types import Reply, ToolCall

Accept = Callable[[Row], Awaitable[str]]
"""Why a row is refused; empty for no reason. See `solvable`."""
SKILL, SOLUTION = "skill", "solution"
_FULL = 1.0
_NEAR = 1e-6
_LIMITS = EpisodeLimits(turns=64, seconds=60.0)
_ASK = (
    "You write tasks for an environment that a policy learns in. Here are rows of it, in JSON:\n\n"
    "{examples}\n\nBy skill, how much the policy still lacks, from 0 to 1:\n{deficits}\n\nWrite "
    "{count} new rows of the same fields for the skills that lack most. Each has `skill`, one of "
    'these, and `solution`, the turns that solve it: a text is a message, {{"name": ..., '
    '"arguments": {{...}}}} a call of a tool. Write one JSON list of rows and nothing behind it.'
)


@dataclass(frozen=True, slots=True)
class GeneratedRows:
    """What a model wrote.

    Attributes:
        rows: that were accepted, without their solutions.
        refused: why others were not, in order; one entry where no list was written.
    """

    rows: tuple[Row, ...] = ()
    refused: tuple[str, ...] = ()


def skill_deficits(results: Iterable[tuple[Row, float | None]]) -> dict[str, float]:
    """By the rows' `skill`, 1 less the mean reward, within [0, 1]; faults (None) do not count."""
    rewards: dict[str, list[float]] = defaultdict(list)
    for row, reward in results:
        if reward is not None:
            rewards[str(row.get(SKILL, ""))].append(reward)
    return {
        skill: min(1.0, max(0.0, 1.0 - sum(earned) / len(earned)))
        for skill, earned in sorted(rewards.items())
    }


def solvable(
    kind: type[Environment], settings: Any, shared: Any = None, services: Services | None = None
) -> Accept:
    """Accepts rows whose solution earns 1 or more, and that earn less by saying nothing."""

    async def accept(row: Row) -> str:
        try:
            turns = [_turn(one) for one in row[SOLUTION]]
        except (KeyError, TypeError, ValueError):
            return "it has no solution of texts and calls"
        for script, is_right in ((turns, True), ([Reply("", void=True)], False)):
            asked = {name: value for name, value in row.items() if name != SOLUTION}
            episode = Episode(kind(settings, shared, services), _LIMITS)
            observation = await episode.begin(asked)
            for turn in script:
                if observation is not None:
                    observation = await episode.take(turn)
            outcome = await episode.end()
            if outcome.result.fault is not None:
                return f"it is no row: {outcome.result.fault.message[:200]}"
            if ((outcome.result.reward or 0.0) >= _FULL - _NEAR) != is_right:
                return "its solution does not solve it" if is_right else "saying nothing solves it"
        return ""

    return accept


async def generate_rows(
    write: Write,
    examples: Sequence[Row],
    deficits: Mapping[str, float],
    accept: Accept,
    *,
    count: int = 4,
) -> GeneratedRows:
    """Asks for rows once, and takes those of the named skills that are new and accepted.

    What `write` and `accept` raise is raised.
    """
    listed = "\n".join(
        f"- {skill}: {lack:.2f}"
        for skill, lack in sorted(deficits.items(), key=lambda one: (-one[1], one[0]))
    )
    shown = "\n".join(json.dumps(dict(row), ensure_ascii=False) for row in examples)
    task = _ASK.format(examples=shown, deficits=listed, count=count)
    wrote = await write([{"role": "user", "content": task}])
    try:
        given = json.loads(wrote[wrote.find("[") : wrote.rfind("]") + 1])
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, list):
        return GeneratedRows(refused=("no JSON list of rows was written",))
    known = {_key(row) for row in examples}
    rows: list[Row] = []
    refused: list[str] = []
    for row in given[:count]:
        why = await _trouble(row, deficits, known, accept)
        if why:
            refused.append(why)
            continue
        known.add(_key(row))
        rows.append({name: value for name, value in row.items() if name != SOLUTION})
    return GeneratedRows(tuple(rows), tuple(refused))


async def _trouble(row: Any, deficits: Mapping[str, float], known: set[str], accept: Accept) -> str:
    if not isinstance(row, dict):
        return "it is no object"
    if row.get(SKILL) not in deficits:
        return "its skill is none of those named"
    if _key(row) in known:
        return "there is such a row already"
    return await accept(row)


def _key(row: Row) -> str:
    kept = {name: value for name, value in row.items() if name not in (SKILL, SOLUTION)}
    return json.dumps(kept, sort_keys=True, default=str)


def _turn(value: Any) -> Reply:
    if isinstance(value, str):
        return Reply(value, answer=value)
    name, arguments = value["name"], value.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ValueError("no call")
    return Reply("", (ToolCall(name, arguments),))
