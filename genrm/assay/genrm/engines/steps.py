"""From the logits of a step head to the chance that a step is right. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.genrm.engines.base import EngineError
from assay.kit.reasons import Reason

_MOST = 700.0  # math.exp overflows a little above


def chance(logits: Sequence[float], good_label: int, *, scores: bool = False) -> float:
    """The softmax over the labels at the good one, or the sigmoid of a single logit; in [0, 1].

    Args:
        logits: of one step.
        good_label: which of several means that the step is right.
        scores: the head's one output is a score s from -1 to 1, and the chance (s + 1) / 2,
            clipped.

    Raises:
        EngineError: INVALID_PARAMETER, the head has no such label.
    """
    if scores:
        return min(1.0, max(0.0, (logits[0] + 1) / 2))
    if len(logits) == 1:
        return 1.0 / (1.0 + math.exp(-max(-_MOST, min(_MOST, logits[0]))))
    if good_label >= len(logits):
        raise EngineError(
            Reason.INVALID_PARAMETER,
            f"good_label is {good_label}, and the head has {len(logits)} labels, from 0",
        )
    top = max(logits)
    weights = [math.exp(value - top) for value in logits]
    return weights[good_label] / sum(weights)
