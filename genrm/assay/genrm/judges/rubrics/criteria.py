"""One criterion of one response: its verdict words' probabilities, and the quotation that backs it.

Where evidence is required, a judge that calls the criterion met (0.5 or above) is asked to quote
where. A quotation that the response holds is its evidence. "None" takes the verdict back: the
criterion is not met. A quotation that is not in the response is no reading: EVIDENCE_NOT_FOUND.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.clients.judging.rubrics import Criterion, CriterionKind, CriterionOrder
from assay.clients.judging.types import Usage
from assay.genrm.domain import RAW_TEXT_CHARS, CandidateRubric, ResolvedJudgeSettings, Run
from assay.genrm.engines.base import ModelInfo, Write, Written
from assay.genrm.judges.modes import invalid, resolve_mode
from assay.genrm.judges.readings import read_verdict, readings, require_bound, require_unmoved
from assay.genrm.judges.rubrics.quoting import find_quotation, read_quotation
from assay.genrm.judges.verdict import How, expect, keep_ends, usage_of
from assay.genrm.templates import Template, Templates
from assay.genrm.templates.template import Slot
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

TEMPLATES: dict[tuple[CriterionKind, CriterionOrder], str] = {
    ("binary", "response-first"): "criterion",
    ("graded", "response-first"): "criterion-graded",
    ("binary", "criterion-first"): "criterion-shared",
    ("graded", "criterion-first"): "criterion-graded-shared",
}
EVIDENCE_TEMPLATE = "criterion-evidence"
MET = 0.5

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CriterionReading:
    """What one model made of one criterion.

    Attributes:
        score: how far the response meets it, in [0, 1].
        template: "name@version".
        verdict_mass: see `ModelJudgement`.
        evidence: the code points of the response that it quoted.
        truncated: the response was cut to fit.
    """

    score: float
    template: str
    verdict_mass: float | None
    usage: Usage
    evidence: Span | None = None
    truncated: bool = False


def judge_criterion(
    item: CandidateRubric,
    criterion: Criterion,
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
    templates: Templates,
    *,
    order: CriterionOrder = "response-first",
) -> Run[CriterionReading]:
    """Asks one model whether, or how far, the response meets the criterion.

    Raises:
        Unjudgeable: INVALID_PARAMETER, UNKNOWN_TEMPLATE, JUDGE_UNPARSED, LOW_VERDICT_MASS,
            SCORE_NOT_FINITE, LETTER_GAP, EVIDENCE_NOT_FOUND.
    """
    settings = replace(settings, forms=model.forms)
    mode = resolve_mode(settings, model, ("token-probability", "votes"))
    if mode == "scalar-head":
        raise invalid(
            f"model {model.name} has a scalar head, which reads no rubric; choose another"
        )
    template = _template(criterion, order, settings, templates)
    how: How = "probability" if mode == "token-probability" else "votes"
    require_bound(settings, template, how)
    settings = replace(settings, forms=model.forms)
    slots = _slots(item, criterion)
    read_as = readings(template, settings.seed, slots)
    made = yield from read_verdict(read_as, slots, how, settings, settings.seed)
    require_unmoved(made.letter_gap, settings)
    score, usage, span = made.value, made.usage, None
    if criterion.evidence and score >= MET:
        span, more = yield from _quoted(item, criterion, settings, model, templates)
        score, usage = score if span else 0.0, usage + more
    return CriterionReading(score, template.ref, made.mass, usage, span, made.truncated)


def _template(
    criterion: Criterion,
    order: CriterionOrder,
    settings: ResolvedJudgeSettings,
    templates: Templates,
) -> Template:
    """The one that the settings name, where its verdicts are of the criterion's kind."""
    if settings.template:
        named = templates.get(settings.template, "criterion", "")
        if (len(named.verdicts) > 2) == (criterion.kind == "graded"):
            return named
    return templates.get("", "criterion", TEMPLATES[criterion.kind, order])


def _slots(item: CandidateRubric, criterion: Criterion) -> dict[str, Slot]:
    return {"question": item.prompt, "response": item.response, "criterion": criterion.text}


def _quoted(
    item: CandidateRubric,
    criterion: Criterion,
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
    templates: Templates,
) -> Run[tuple[Span | None, Usage]]:
    """The words that the judge quotes, in the response; None where it says that there are none."""
    if "write" not in model.capabilities:
        raise invalid(
            f"model {model.name} does not write, and criterion {criterion.id!r} requires evidence; "
            "choose another model, or require none"
        )
    template = templates.get("", "evidence", EVIDENCE_TEMPLATE)
    request = Write(
        template.render(**_slots(item, criterion)),
        template.max_tokens,
        stop=("\n",),
        keep_ends=keep_ends(settings),
    )
    written = expect(Written, (yield (request,)))
    said = written[0].text
    quoted, usage = read_quotation(said), usage_of(written)
    if quoted is None:
        return None, usage
    span = find_quotation(item.response, quoted)
    if span is None:
        raise Unjudgeable(
            Reason.EVIDENCE_NOT_FOUND,
            f"the judge calls criterion {criterion.id!r} met by words that the response does not "
            "hold",
            {"raw_text": said[:RAW_TEXT_CHARS]},
        )
    return span, usage
