"""A response by its rubric: asks the criteria, several at once, and makes one score of them.

With a gate the heaviest come first, as few as could settle it, and no more once nothing that is
left can change it: the outcome is that of asking them all (tests/property/test_rubric_laws.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from assay.clients.judging.rubrics import (
    CRITERION_ID,
    MAX_ID_CHARS,
    CompoundCriterion,
    Criterion,
    CriterionOrder,
    CriterionResult,
    RubricJudgement,
    RubricSettings,
)
from assay.clients.judging.types import JudgeRef, Opinion, Unread, Usage
from assay.genrm.domain import CandidateRubric, JudgePanel, ResolvedJudgeSettings, Run
from assay.genrm.engines.base import ModelInfo
from assay.genrm.judges.attempts import attempted
from assay.genrm.judges.ensemble import combine, disagreement, opinion
from assay.genrm.judges.modes import invalid, require_text
from assay.genrm.judges.numbers import least
from assay.genrm.judges.rubrics.compound import parts_of
from assay.genrm.judges.rubrics.criteria import CriterionReading, judge_criterion
from assay.genrm.judges.rubrics.scoring import RubricTally
from assay.genrm.judges.together import together
from assay.genrm.templates import Templates
from assay.kit.faults import ItemFault, Unjudgeable
from assay.kit.reasons import Reason

MAX_CRITERIA = 128
MAX_CRITERION_CHARS = 2000
LEAST_WEIGHT, MOST_WEIGHT = 1e-6, 1e6


@dataclass(frozen=True, slots=True)
class RubricJudges:
    """Who is asked, and how.

    Attributes:
        panel: one model, or the ensemble.
        second: asked where the first's score is thin; None for nobody.
        settings: of each question.
        templates: all that the service knows.
        order: what comes first in the prompts.
    """

    panel: JudgePanel
    settings: ResolvedJudgeSettings
    templates: Templates
    order: CriterionOrder = "response-first"
    second: ModelInfo | None = None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A criterion's result, and what it took."""

    result: CriterionResult
    usage: Usage
    truncated: bool


def judge_rubric(
    item: CandidateRubric, rules: RubricSettings, judges: RubricJudges
) -> Run[RubricJudgement]:
    """Judges one response by its rubric.

    Raises:
        Unjudgeable: MISSING_RESPONSE; INVALID_PARAMETER, the rubric is wrong, or a criterion asks
            several things; or the fault of a criterion whose absence the rules do not allow.
    """
    require_text(item.response, "the response")
    if judges.second is not None and len(judges.panel.models) > 1:
        raise invalid("a second model follows one model, not an ensemble; leave one of them out")
    criteria = checked_criteria(item.criteria, rules.compound)
    known = {one.id: one for one in criteria}
    weights = {one.id: one.weight for one in criteria}
    tally = RubricTally(weights, {}, missing=rules.missing, least_read=rules.least_read)
    found: dict[str, _Outcome] = {}
    while asked := tally.next(rules.gate):
        outcomes = yield from together(
            [_judged(item, known[name], rules.margin, judges) for name in asked]
        )
        found.update(zip(asked, outcomes, strict=True))
        tally = _told(tally, found)
    _require(tally, rules, found)
    return _judgement(criteria, tally, rules, found, judges)


def checked_criteria(
    criteria: Sequence[Criterion], compound: CompoundCriterion
) -> tuple[Criterion, ...]:
    """The criteria to ask; compound ones split, where that is asked for.

    Raises:
        Unjudgeable: INVALID_PARAMETER, naming the criterion.
    """
    if not 1 <= len(criteria) <= MAX_CRITERIA:
        raise invalid(f"a rubric has 1 to {MAX_CRITERIA} criteria, not {len(criteria)}")
    asked: list[Criterion] = []
    proposals: dict[str, str] = {}
    for one in criteria:
        _check(one)
        parts = (one.text,) if compound == "allow" else parts_of(one.text)
        if len(parts) == 1:
            asked.append(one)
            continue
        proposals[one.id] = " | ".join(parts)
        asked += [
            replace(one, id=f"{one.id}-{number}", text=text, weight=one.weight / len(parts))
            for number, text in enumerate(parts, start=1)
        ]
    if proposals and compound == "refuse":
        name, parts_text = next(iter(sorted(proposals.items())))
        raise Unjudgeable(
            Reason.INVALID_PARAMETER,
            f"criterion {name!r} asks several things at once; make criteria of them: {parts_text}; "
            "or say compound = 'split' or 'allow'",
            proposals,
        )
    names = [one.id for one in asked]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise invalid(f"two criteria are called {twice!r}; give each its own id")
    if not any(one.weight > 0 for one in asked):
        raise invalid("no criterion has a weight above 0, so no response could score above 0")
    return tuple(asked)


def _check(one: Criterion) -> None:
    name = one.id[:80]
    if not CRITERION_ID.fullmatch(one.id) or len(one.id) > MAX_ID_CHARS:
        raise invalid(
            f"criterion id {name!r} must be lower-case words joined by hyphens, of at most "
            f"{MAX_ID_CHARS} characters"
        )
    if not one.text.strip() or len(one.text) > MAX_CRITERION_CHARS:
        raise invalid(
            f"criterion {name!r} must have a text of at most {MAX_CRITERION_CHARS} characters, not "
            f"{len(one.text)}"
        )
    if not LEAST_WEIGHT <= abs(one.weight) <= MOST_WEIGHT:
        raise invalid(
            f"the weight of criterion {name!r} is {one.weight}; its amount must be from "
            f"{LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
        )


def _judged(
    item: CandidateRubric, criterion: Criterion, margin: float, judges: RubricJudges
) -> Run[_Outcome]:
    """A criterion by everyone who is to be asked; a fault is its result."""
    models = judges.panel.models

    def asked(model: ModelInfo) -> Run[CriterionReading | ItemFault]:
        run = judge_criterion(
            item, criterion, judges.settings, model, judges.templates, order=judges.order
        )
        return attempted(run, model.name)

    if len(models) > 1:
        said = yield from together([asked(model) for model in models])
        return _combined(criterion, judges.panel, said)
    first = yield from asked(models[0])
    if judges.second is None or not _thin(first, margin):
        return _outcome(criterion, ((models[0], first),))
    second = yield from asked(judges.second)
    return _outcome(criterion, ((models[0], first), (judges.second, second)))


def _thin(said: CriterionReading | ItemFault, margin: float) -> bool:
    return isinstance(said, ItemFault) or abs(said.score - 0.5) < margin


def _outcome(
    criterion: Criterion, said: Sequence[tuple[ModelInfo, CriterionReading | ItemFault]]
) -> _Outcome:
    """The last one's word counts."""
    model, last = said[-1]
    readings = [one for _, one in said if isinstance(one, CriterionReading)]
    opinions = tuple(_opinion(one, word) for one, word in said) if len(said) > 1 else ()
    if isinstance(last, ItemFault):
        judge = JudgeRef(model.name, model.revision)
        result = CriterionResult(
            criterion.id, criterion.weight, fault=last, judge=judge, opinions=opinions
        )
    else:
        result = CriterionResult(
            criterion.id,
            criterion.weight,
            last.score,
            evidence=last.evidence,
            judge=JudgeRef(model.name, model.revision, last.template),
            verdict_mass=last.verdict_mass,
            opinions=opinions,
        )
    return _Outcome(
        result,
        sum((one.usage for one in readings), Usage()),
        any(one.truncated for one in readings),
    )


def _combined(
    criterion: Criterion, panel: JudgePanel, said: Sequence[CriterionReading | ItemFault]
) -> _Outcome:
    """The panel's word; a combination that is none is the criterion's fault."""
    opinions = tuple(_opinion(model, word) for model, word in zip(panel.models, said, strict=True))
    readings = [one for one in said if isinstance(one, CriterionReading)]
    score: float | None = None
    fault: Unread | None = None
    try:
        score = combine(panel, opinions)
    except Unjudgeable as error:
        fault = error.fault
    template = readings[0].template if readings else ""
    result = CriterionResult(
        criterion.id,
        criterion.weight,
        score,
        fault,
        next((one.evidence for one in readings if one.evidence), None) if score else None,
        JudgeRef(panel.judge.name, panel.judge.revision, template),
        least(one.verdict_mass for one in readings),
        opinions,
        disagreement(opinions),
    )
    return _Outcome(
        result,
        sum((one.usage for one in readings), Usage()),
        any(one.truncated for one in readings),
    )


def _opinion(model: ModelInfo, said: CriterionReading | ItemFault) -> Opinion:
    if isinstance(said, ItemFault):
        return opinion(model, "", said)
    return opinion(model, said.template, said.score)


def _told(tally: RubricTally, found: Mapping[str, _Outcome]) -> RubricTally:
    read = {name: one.result.score for name, one in found.items()}
    return replace(
        tally,
        read={name: score for name, score in read.items() if score is not None},
        unread=frozenset(name for name, score in read.items() if score is None),
    )


def _require(tally: RubricTally, rules: RubricSettings, found: Mapping[str, _Outcome]) -> None:
    """Refuses to judge where what could not be read might matter.

    Raises:
        Unjudgeable: the first criterion's fault, by name.
    """
    if not tally.unread:
        return
    if rules.gate is not None and tally.settled(rules.gate):
        return
    if rules.missing == "leave-out" and tally.enough:
        return
    name = min(tally.unread)
    fault = found[name].result.fault
    if fault is None:
        raise AssertionError("an unread criterion has a fault")
    raise Unjudgeable(
        fault.reason,
        f"criterion {name!r} could not be read: {fault.message}",
        {**fault.metadata, "criterion": name, "unread": ",".join(sorted(tally.unread))},
    )


def _judgement(
    criteria: Sequence[Criterion],
    tally: RubricTally,
    rules: RubricSettings,
    found: Mapping[str, _Outcome],
    judges: RubricJudges,
) -> RubricJudgement:
    lowest, highest = tally.bounds()
    score = float(lowest)
    if rules.gate is not None:
        score = float(lowest >= Fraction(rules.gate))
    gaps = [one.result.disagreement for one in found.values()]
    known = [gap for gap in gaps if gap is not None]
    return RubricJudgement(
        score,
        float(lowest),
        float(highest),
        tuple(
            found[one.id].result if one.id in found else CriterionResult(one.id, one.weight)
            for one in criteria
        ),
        judges.order,
        any(one.truncated for one in found.values()),
        JudgeRef(judges.panel.judge.name, judges.panel.judge.revision),
        sum((one.usage for one in found.values()), Usage()),
        verdict_mass=least(one.result.verdict_mass for one in found.values()),
        disagreement=math.fsum(known) / len(known) if known else None,
    )
