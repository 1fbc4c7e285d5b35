"""One response: against a ground truth, an anchor or a rubric, or by the prompt alone."""

from __future__ import annotations

from dataclasses import replace

from assay.clients.judging.types import JudgeRef, ModelJudgement, ScoringMode
from assay.genrm.domain import RATIONALE_CHARS, CandidateResponse, ResolvedJudgeSettings, Run
from assay.genrm.engines.base import ModelInfo
from assay.genrm.judges.consensus import judge_by_consensus
from assay.genrm.judges.modes import (
    invalid,
    one_text,
    require_reference,
    require_said,
    resolve_mode,
)
from assay.genrm.judges.pairwise import comparison
from assay.genrm.judges.readings import read_verdict, readings, require_bound, require_unmoved
from assay.genrm.judges.scalar import rate, refuse_reference
from assay.genrm.judges.verdict import How
from assay.genrm.templates import Templates
from assay.genrm.templates.template import Slot

MODES: tuple[ScoringMode, ...] = ("token-probability", "scalar-head", "votes", "consensus")


def judge_response(
    item: CandidateResponse, settings: ResolvedJudgeSettings, model: ModelInfo, templates: Templates
) -> Run[ModelJudgement]:
    """Judges one response.

    With an anchor it is the pairwise judge in both orders, and 0.5 is parity. Otherwise the score
    is the chance that the template asks for, or a scalar head's logit.

    Raises:
        Unjudgeable: MISSING_RESPONSE, MISSING_REFERENCE, INVALID_PARAMETER, UNKNOWN_TEMPLATE,
            JUDGE_UNPARSED, SCORE_NOT_FINITE, LETTER_GAP.
    """
    require_said(item.response, "the response")
    require_reference(item.ground_truth, "ground truth")
    require_reference(item.anchor, "anchor")
    require_reference(item.rubric, "rubric")
    mode = resolve_mode(settings, model, MODES)
    settings = replace(settings, forms=model.forms)
    if mode == "consensus":
        require_bound(settings)
        return (yield from judge_by_consensus(item, settings, templates))
    if item.anchor is not None:
        return (yield from _against_anchor(item, item.anchor, settings, model, templates))
    if mode == "scalar-head":
        require_bound(settings)
        refuse_reference(model, ground_truth=item.ground_truth, rubric=item.rubric)
        text = one_text(item.response, "a scalar head")
        return (yield from rate(item.prompt, (text,), settings, model))[0]
    how: How = "probability" if mode == "token-probability" else "votes"
    return (yield from _alone(item, how, settings, templates))


def _alone(
    item: CandidateResponse, how: How, settings: ResolvedJudgeSettings, templates: Templates
) -> Run[ModelJudgement]:
    default = "quality"
    if item.ground_truth is not None:
        default = "correctness"
    elif item.rubric is not None:
        default = "rubric"
    template = templates.get(settings.template, "pointwise", default, "self-verification")
    require_bound(settings, template, how)
    slots: dict[str, Slot] = {
        "question": item.prompt,
        "response": item.response,
        "ground_truth": item.ground_truth,
        "rubric": item.rubric,
    }
    read_as = readings(template, settings.seed, slots)
    made = yield from read_verdict(read_as, slots, how, settings, settings.seed)
    require_unmoved(made.letter_gap, settings)
    return ModelJudgement(
        made.value,
        made.standard_error,
        made.votes,
        made.unparsed,
        made.rationale[:RATIONALE_CHARS],
        made.truncated,
        JudgeRef(template=template.ref),
        made.usage,
        verdict_mass=made.mass,
        letter_gap=made.letter_gap,
    )


def _against_anchor(
    item: CandidateResponse,
    anchor: str,
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
    templates: Templates,
) -> Run[ModelJudgement]:
    if item.ground_truth is not None or item.rubric is not None:
        raise invalid("a response is held against one thing: leave out all but the anchor")
    compare = comparison(item.prompt, "", settings, model, templates)
    pair = yield from compare(item.response, anchor)
    require_unmoved(pair.letter_gap, settings)
    return ModelJudgement(
        pair.win_probability,
        pair.standard_error,
        (),
        pair.unparsed_votes,
        pair.rationale,
        pair.truncated,
        pair.judge,
        pair.usage,
        verdict_mass=pair.verdict_mass,
        letter_gap=pair.letter_gap,
    )
