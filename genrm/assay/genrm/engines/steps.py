"""From the logits of a step head to the chance that a step is right. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.genrm.engines.base import EngineError
from assay.kit.reasons import Reason

_MOST = 700.0  # math.exp overflows a little above


def chance(logits: Sequence[float], good_label: int, *, scores: bool = False) -> float:
    """The softmax over the labels at the good one, or the sigmoid of a single logit; in [0, 1].

    Of a head that gives scores the chance is (s + 1) / 2, clipped.

    Args:
        logits: of one step.
        good_label: which of several means that the step is right.
        scores: s is the head's one output, or the mean of its classes, which are scores evenly
            from -1 to 1.

    Raises:
        EngineError: INVALID_PARAMETER, the head has no such label.
    """
    if scores:
        return min(1.0, max(0.0, (_score(logits) + 1) / 2))
    if len(logits) == 1:
        return 1.0 / (1.0 + math.exp(-max(-_MOST, min(_MOST, logits[0]))))
    if good_label >= len(logits):
        raise EngineError(
            Reason.INVALID_PARAMETER,
            f"good_label is {good_label}, and the head has {len(logits)} labels, from 0",
        )
    return _softmax(logits)[good_label]


def _score(logits: Sequence[float]) -> float:
    """The one output, or the mean of classes with centres from -1 to 1."""
    if len(logits) == 1:
        return logits[0]
    step = 2.0 / (len(logits) - 1)
    return math.fsum(p * (step * n - 1.0) for n, p in enumerate(_softmax(logits)))


def _softmax(logits: Sequence[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(value - top) for value in logits]
    total = sum(weights)
    return [weight / total for weight in weights]
