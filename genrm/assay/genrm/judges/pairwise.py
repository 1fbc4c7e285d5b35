"""Pairs, each judged in both orders (Pairwise-RL, arXiv 2504.04950).

w(a, b) = 1 - w(b, a) to the last bit, whatever the model: the pair is sorted first, so both ways of
asking send the same requests, and win probabilities are multiples of 2^-53. Equal texts are 0.5 and
are not asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from assay.clients.judging.types import JudgeRef, PairJudgement, ScoringMode
from assay.genrm.domain import (
    RATIONALE_CHARS,
    CandidatePair,
    ChatMessage,
    ResolvedJudgeSettings,
    Run,
    Said,
    TrajectoryTurn,
)
from assay.genrm.engines.base import ModelInfo
from assay.genrm.judges.modes import invalid, one_text, require_said, resolve_mode
from assay.genrm.judges.numbers import debias, greatest, least, on_grid, sigmoid
from assay.genrm.judges.readings import (
    read_verdict,
    readings,
    require_bound,
    require_unmoved,
    seeds_taken,
)
from assay.genrm.judges.scalar import rate, refuse_reference
from assay.genrm.judges.together import together
from assay.genrm.judges.verdict import How, VerdictResult
from assay.genrm.templates import Template, Templates
from assay.genrm.templates.template import Slot
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

DEFAULT_TEMPLATE = "preference"
PAIR_MODES: tuple[ScoringMode, ...] = ("token-probability", "scalar-head", "votes")


class PairComparison(Protocol):
    """Compares two responses to one prompt."""

    def __call__(self, a: Said, b: Said, /) -> Run[PairJudgement]:
        """The chance that `a` is better."""


def judge_pair(
    item: CandidatePair,
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
    templates: Templates,
    max_order_gap: float | None = None,
) -> Run[PairJudgement]:
    """Judges which of two responses is better, in both orders.

    `max_order_gap` in [0, 1] is the greatest that counts; None for any.

    Raises:
        Unjudgeable: MISSING_RESPONSE, INVALID_PARAMETER, UNKNOWN_TEMPLATE, JUDGE_UNPARSED,
            SCORE_NOT_FINITE, ORDER_GAP, LETTER_GAP.
    """
    require_said(item.a, "response a")
    require_said(item.b, "response b")
    compare = comparison(item.prompt, item.ground_truth, settings, model, templates)
    judgement = yield from compare(item.a, item.b)
    require_gap(judgement, max_order_gap)
    require_unmoved(judgement.letter_gap, settings)
    return judgement


def require_gap(judgement: PairJudgement, max_order_gap: float | None) -> None:
    """Refuses a judgement that depends on the order too much.

    Raises:
        Unjudgeable: ORDER_GAP, with both orders' probabilities as metadata.
    """
    if within(judgement, max_order_gap):
        return
    raise Unjudgeable(
        Reason.ORDER_GAP,
        f"the two orders differ by {judgement.order_gap:.3f}, more than the {max_order_gap:g} "
        "allowed: the judge goes by the place",
        {
            "order_gap": repr(judgement.order_gap),
            "forward_probability": repr(judgement.forward),
            "reverse_probability": repr(judgement.reverse),
        },
    )


def within(judgement: PairJudgement, max_order_gap: float | None) -> bool:
    """Whether the order gap still counts."""
    return max_order_gap is None or judgement.order_gap <= max_order_gap


def comparison(
    prompt: Sequence[ChatMessage],
    ground_truth: str,
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
    templates: Templates,
) -> PairComparison:
    """How two responses to this prompt are compared; checks everything but the responses.

    Raises:
        Unjudgeable: INVALID_PARAMETER, UNKNOWN_TEMPLATE, MISSING_REFERENCE.
    """
    mode = resolve_mode(settings, model, PAIR_MODES)
    if mode == "scalar-head":
        require_bound(settings)
        refuse_reference(model, ground_truth=ground_truth)
        return partial(_rated_pair, prompt=prompt, settings=settings, model=model)
    default = templates.default(model.template, "pairwise", DEFAULT_TEMPLATE)
    template = templates.get(settings.template, "pairwise", default)
    if template.places.get("ground_truth") and not ground_truth.strip():
        raise Unjudgeable(
            Reason.MISSING_REFERENCE,
            f"template {template.ref} needs a ground truth; give one, or choose another template",
        )
    how: How = "probability" if mode == "token-probability" else "votes"
    require_bound(settings, template, how)
    return partial(
        _compare,
        prompt=tuple(prompt),
        ground_truth=ground_truth,
        settings=replace(settings, forms=model.forms),
        template=template,
        how=how,
    )


def _compare(
    a: Said,
    b: Said,
    /,
    *,
    prompt: tuple[ChatMessage, ...],
    ground_truth: str,
    settings: ResolvedJudgeSettings,
    template: Template,
    how: How,
) -> Run[PairJudgement]:
    if a == b:
        gap = 0.0 if template.letters else None
        return PairJudgement(
            0.5, 0.5, 0.5, 0.0, judge=JudgeRef(template=template.ref), letter_gap=gap
        )
    low, high = sorted((a, b), key=_order)
    asked: tuple[dict[str, Slot], ...] = tuple(
        {
            "question": prompt,
            "ground_truth": ground_truth,
            "response_a": first,
            "response_b": second,
        }
        for first, second in ((low, high), (high, low))
    )
    read_as = readings(template, settings.seed, asked[0])
    count = seeds_taken(read_as, settings)
    orders = [
        read_verdict(read_as, slots, how, settings, settings.seed + order * count)
        for order, slots in enumerate(asked)
    ]
    low_first, high_first = yield from together(orders)
    judgement = _both_orders(low_first, high_first, template.ref)
    return judgement if a == low else turned(judgement)


def _order(said: Said) -> tuple[str, tuple[TrajectoryTurn, ...]]:
    """An order of all that can be judged, texts by themselves."""
    return (said, ()) if isinstance(said, str) else ("", said)


def _both_orders(low_first: VerdictResult, high_first: VerdictResult, ref: str) -> PairJudgement:
    """The judgement on (low, high); a verdict's value is the chance of the first response."""
    forward, reverse = on_grid(low_first.value), 1.0 - on_grid(high_first.value)
    win, gap = debias(forward, reverse)
    errors = (low_first.standard_error, high_first.standard_error)
    error = None
    if errors[0] is not None and errors[1] is not None:
        error = math.hypot(errors[0], errors[1]) / 2
    reasons = [order.rationale for order in (low_first, high_first) if order.rationale]
    return PairJudgement(
        win,
        forward,
        reverse,
        gap,
        error,
        low_first.unparsed + high_first.unparsed,
        "\n\n".join(text[: RATIONALE_CHARS // 2 - 1] for text in reasons),
        low_first.truncated or high_first.truncated,
        JudgeRef(template=ref),
        low_first.usage + high_first.usage,
        verdict_mass=least((low_first.mass, high_first.mass)),
        letter_gap=greatest((low_first.letter_gap, high_first.letter_gap)),
    )


def turned(judgement: PairJudgement) -> PairJudgement:
    """The judgement on (b, a), exactly."""
    return replace(
        judgement,
        win_probability=1.0 - judgement.win_probability,
        forward=1.0 - judgement.reverse,
        reverse=1.0 - judgement.forward,
    )


def _rated_pair(
    a: Said,
    b: Said,
    /,
    *,
    prompt: Sequence[ChatMessage],
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
) -> Run[PairJudgement]:
    """By a scalar head: sigmoid(r_a - r_b), as Bradley and Terry have it."""
    if a == b:
        return PairJudgement(0.5, 0.5, 0.5, 0.0)
    low, high = sorted(one_text(said, "a scalar head") for said in (a, b))
    rated_low, rated_high = yield from rate(prompt, (low, high), settings, model)
    win = win_by_logits(rated_low.score, rated_high.score)
    judgement = PairJudgement(
        win,
        win,
        win,
        0.0,
        truncated=rated_low.truncated or rated_high.truncated,
        usage=rated_low.usage + rated_high.usage,
    )
    return judgement if a == low else turned(judgement)


def win_by_logits(first: float, second: float) -> float:
    """sigmoid(first - second), on the grid.

    Raises:
        Unjudgeable: INVALID_PARAMETER, the difference is not a number.
    """
    difference = first - second
    if math.isnan(difference):
        raise invalid("the logits of the two responses have no difference")
    return on_grid(sigmoid(difference))
