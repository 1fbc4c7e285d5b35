"""Rows about one response: whether it is right, and critiques of its steps. Pure.

    prompt, response, label, ground_truth?         1 right, 0 wrong
    prompt, chosen, rejected                       a pair: the better one right, the other wrong
    prompt, response | steps[], critique           what a judge writes, with its verdicts

`prompt` may be named problem, question or query; `ground_truth` reference, gold or answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.clients.rows.items import RowError, kind_of
from assay.clients.rows.preferences import Said, group_of, is_pair, pairs_of, prompt_of

_GOLD_KEYS = ("ground_truth", "reference", "gold", "answer")
_LABELS: dict[object, bool] = {True: True, False: False, "correct": True, "incorrect": False}


@dataclass(frozen=True, slots=True)
class PointRow:
    """A response, whether it is right, and the right answer, if any; else see `PairRow`."""

    prompt: tuple[Said, ...]
    response: str
    right: bool
    ground_truth: str | None = None
    subset: str = ""

    @property
    def group(self) -> str:
        """See `group_of`."""
        return group_of(self.prompt)


@dataclass(frozen=True, slots=True)
class CritiqueRow:
    """A written critique of a response.

    Joined, `steps` are the response; without them the judge cuts it.
    """

    prompt: tuple[Said, ...]
    response: str
    steps: tuple[str, ...]
    critique: str
    ground_truth: str | None = None
    subset: str = ""

    @property
    def group(self) -> str:
        """See `group_of`."""
        return group_of(self.prompt)


def gold_of(row: Mapping[str, Any]) -> str | None:
    """The right answer of a row; None where it has none."""
    found = next((row[key] for key in _GOLD_KEYS if row.get(key) is not None), None)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return str(found)
    return found if isinstance(found, str) and found.strip() else None


def points_of(row: Mapping[str, Any]) -> list[PointRow]:
    """The labelled responses of a row: one, or both of a pair.

    Raises:
        RowError: it holds none.
    """
    if is_pair(row):
        gold = gold_of(row)
        return [
            PointRow(pair.prompt, text, right, gold, pair.subset)
            for pair in pairs_of(row)
            for text, right in ((pair.chosen, True), (pair.rejected, False))
        ]
    found = point_of(row)
    if not found.response.strip():
        raise RowError("'response' is blank; a judge learns from a text")
    return [found]


def point_of(row: Mapping[str, Any]) -> PointRow:
    """The labelled response of a row, which may be blank.

    Raises:
        RowError: it has none.
    """
    prompt = prompt_of(row, "prompt", "problem", "question", "query")
    response = row.get("response")
    if not isinstance(response, str):
        raise RowError("'response' is missing, or no text; write the policy's text")
    label = row.get("label", row.get("correct"))
    known = _LABELS.get(label) if isinstance(label, str | bool | int) else None
    if known is None:
        raise RowError(f"'label' is {label!r}; write 1 for a right response, 0 for a wrong one")
    return PointRow(prompt, response, known, gold_of(row), str(row.get("subset") or ""))


def critique_of(row: Mapping[str, Any]) -> CritiqueRow:
    """The critique of a row.

    Raises:
        RowError: it has none.
    """
    prompt = prompt_of(row, "prompt", "problem", "question", "query")
    critique = _text(row, "critique", "write what the judge is to say, with its verdicts")
    steps = row.get("steps")
    if steps is None:
        return CritiqueRow(
            prompt,
            _text(row, "response", "write the policy's text, or its 'steps'"),
            (),
            critique,
            gold_of(row),
            str(row.get("subset") or ""),
        )
    if not isinstance(steps, list) or not steps or not all(isinstance(one, str) for one in steps):
        raise RowError("'steps' must be a list of texts")
    ended = [step if step.endswith("\n") else f"{step}\n" for step in steps[:-1]] + steps[-1:]
    if not all(step.strip() for step in ended):
        raise RowError("a step is blank, and a critique has a verdict on each; join it to another")
    subset = str(row.get("subset") or "")
    return CritiqueRow(prompt, "".join(ended), tuple(ended), critique, gold_of(row), subset)


def _text(row: Mapping[str, Any], key: str, remedy: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise RowError(f"{key!r} is missing, or no text; {remedy}")
    if not value.strip():
        raise RowError(f"{key!r} is {kind_of(value)}; {remedy}")
    return value
