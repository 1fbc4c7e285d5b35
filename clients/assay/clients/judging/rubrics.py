"""Rubrics and ensembles: the values of judge.proto's JudgeRubrics, and rubrics as rows write them.

The score of a rubric is sum(weight * score) / sum(weights above 0), clipped to [0, 1].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.clients.judging.types import JudgeRef, Opinion, Timings, Unread, Usage
from assay.clients.types import Fault, Message

CriterionKind = Literal["binary", "graded"]
MissingCriterion = Literal["fault", "leave-out"]
CompoundCriterion = Literal["refuse", "split", "allow"]
CriterionOrder = Literal["auto", "response-first", "criterion-first"]
Combination = Literal["mean", "median", "majority", "min"]

CRITERION_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_ID_CHARS = 64
_OWN_KEYS = frozenset({"id", "text", "weight", "kind", "evidence"})
_FOREIGN_TEXTS = ("criterion", "description")
_FOREIGN_WEIGHTS = ("points", "weight")


@dataclass(frozen=True, slots=True)
class Criterion:
    """One point of a rubric.

    Attributes:
        id: kebab-case, at most 64 characters, unique in the rubric.
        text: what is true of a response that meets it, in one sentence.
        weight: what meeting it adds; below 0 for what a response must not do.
        kind: met or not, or in five grades.
        evidence: a judge that calls it met must quote where.
    """

    id: str
    text: str
    weight: float = 1.0
    kind: CriterionKind = "binary"
    evidence: bool = False


@dataclass(frozen=True, slots=True)
class Rubric:
    """Criteria, at least one of a weight above 0."""

    criteria: Sequence[Criterion]


@dataclass(frozen=True, slots=True)
class RubricItem:
    """One response to judge by a rubric."""

    prompt: str | Sequence[Message]
    response: str
    rubric: Rubric
    id: str = ""


@dataclass(frozen=True, slots=True)
class RubricSettings:
    """How criteria become one score; judge.proto says more.

    Attributes:
        missing: what a criterion that could not be read means for the whole.
        least_read: with "leave-out": the least share of all weights that must have been read.
        gate: the least score that passes; the score is then 1 or 0.
        order: what of a prompt comes first.
        compound: for a criterion that asks several things at once.
        second_model: asked where the first one's score is closer to 0.5 than `margin`.
        margin: in [0, 0.5].
    """

    missing: MissingCriterion = "fault"
    least_read: float = 0.5
    gate: float | None = None
    order: CriterionOrder = "auto"
    compound: CompoundCriterion = "refuse"
    second_model: str = ""
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Several models that judge the same thing.

    Attributes:
        models: 2 to 16, none twice; the settings then name no model.
        combination: how their scores become one.
        quorum: models that must have judged; 0: more than half.
    """

    models: Sequence[str]
    combination: Combination = "mean"
    quorum: int = 0


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """What came of one criterion.

    Attributes:
        score: in [0, 1]; None with a fault, or where it was not asked.
        evidence: the code points `start <= i < end` of the response that the judge quoted.
        judge: whose word counts.
        opinions: of an ensemble; or of the first model and the second.
    """

    id: str
    weight: float
    score: float | None = None
    fault: Unread | None = None
    evidence: tuple[int, int] | None = None
    judge: JudgeRef = JudgeRef()  # noqa: RUF009  # frozen
    verdict_mass: float | None = None
    opinions: tuple[Opinion, ...] = ()
    disagreement: float | None = None


@dataclass(frozen=True, slots=True)
class RubricJudgement:
    """What a response is worth by its rubric.

    Attributes:
        score: in [0, 1]; with a gate 1 or 0, passed or not.
        least: the least score that the rubric could have come to; `greatest` where all was read.
        criteria: in the rubric's order.
        order: what came first in the prompts.
        verdict_mass: the least over the criteria.
        disagreement: the mean over the criteria.
    """

    score: float
    least: float
    greatest: float
    criteria: tuple[CriterionResult, ...]
    order: CriterionOrder = "response-first"
    truncated: bool = False
    judge: JudgeRef = JudgeRef()  # noqa: RUF009  # frozen
    usage: Usage = Usage()  # noqa: RUF009  # frozen
    timings: Timings = Timings()  # noqa: RUF009  # frozen
    verdict_mass: float | None = None
    disagreement: float | None = None


RubricResult = RubricJudgement | Fault


def read_rubric(value: Any) -> Rubric:
    """The rubric of a row: a list of criteria, or an object that has them as "criteria".

    A criterion is an object with "text" and maybe "id", "weight", "kind" and "evidence"; or one of
    HealthBench's ("criterion", "points") or of Rubrics as Rewards ("title", "description",
    "weight"), whose other keys are passed over; or a text, of weight 1. One without an id gets one
    from its title, or its number.

    Raises:
        ValueError: it is none of these; the text says which criterion and what to write.
    """
    if isinstance(value, Mapping):
        if set(value) != {"criteria"}:
            raise ValueError('a rubric is a list of criteria, or an object with "criteria" alone')
        value = value["criteria"]
    if not isinstance(value, list) or not value:
        raise ValueError("a rubric is a list of at least one criterion")
    criteria: list[Criterion] = []
    for number, one in enumerate(value, start=1):
        try:
            criterion = _criterion(one)
        except ValueError as error:
            raise ValueError(f"criterion {number}: {error}") from None
        named = isinstance(one, Mapping) and "id" in one
        if not criterion.id or (not named and criterion.id in {known.id for known in criteria}):
            criterion = replace(criterion, id=f"c{number}")
        criteria.append(criterion)
    return Rubric(tuple(criteria))


def _criterion(one: Any) -> Criterion:
    """A criterion, without an id where the row gives none."""
    if isinstance(one, str):
        return Criterion("", _text_of("text", one))
    if not isinstance(one, Mapping):
        raise ValueError("write an object, or a text")
    if "text" in one:
        if unknown := sorted(set(one) - _OWN_KEYS):
            raise ValueError(f"there is no {unknown[0]!r}; keys are {', '.join(sorted(_OWN_KEYS))}")
        evidence = one.get("evidence", False)
        if not isinstance(evidence, bool):
            raise ValueError("'evidence' is true or false")
        return Criterion(
            _text_of("id", one.get("id", "")),
            _text_of("text", one["text"]),
            _weight_of("weight", one.get("weight", 1.0)),
            _kind_of(one.get("kind", "binary")),
            evidence,
        )
    text = next((key for key in _FOREIGN_TEXTS if key in one), None)
    weight = next((key for key in _FOREIGN_WEIGHTS if key in one), None)
    if text is None or weight is None:
        raise ValueError('it has no "text"; nor "criterion" and "points", as HealthBench has')
    title = one.get("id", one.get("title", ""))
    name = "-".join(re.findall(r"[a-z0-9]+", str(title).lower()))[:MAX_ID_CHARS].strip("-")
    return Criterion(name, _text_of(text, one[text]), _weight_of(weight, one[weight]))


def _text_of(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is no text")
    return value


def _weight_of(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key!r} is no number")
    return float(value)


def _kind_of(value: Any) -> CriterionKind:
    if value not in ("binary", "graded"):
        raise ValueError("'kind' is 'binary' or 'graded'")
    kind: CriterionKind = value
    return kind
