"""From log-probabilities and votes to scores and their uncertainty. Values in, values out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

GRID = 1 << 53
"""Win probabilities are whole multiples of 1 / GRID, so that 1 - w is exact in both directions."""
_ADDED_VOTES = 4.0


def option_probabilities(logprobs: Sequence[float]) -> tuple[float, ...]:
    """The softmax over some options of their log-probabilities: how the judge divides among them.

    Args:
        logprobs: natural logarithms, [options]; -inf for what cannot come.

    Returns:
        Probabilities that sum to 1.

    Raises:
        Unjudgeable: SCORE_NOT_FINITE, one is NaN or +inf, or all are -inf.
    """
    top = max(logprobs, default=-math.inf)
    if not math.isfinite(top) or any(math.isnan(value) for value in logprobs):
        raise Unjudgeable(
            Reason.SCORE_NOT_FINITE,
            f"the model gives its verdicts the log-probabilities {[*logprobs]}; look at its "
            "weights and its precision",
        )
    weights = [math.exp(value - top) for value in logprobs]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)


def expected_value(logprobs: Sequence[float], values: Sequence[float]) -> float:
    """The mean of the options' values under `option_probabilities`, in [0, 1].

    Raises:
        Unjudgeable: as there.
    """
    probabilities = option_probabilities(logprobs)
    mean = math.fsum(p * value for p, value in zip(probabilities, values, strict=True))
    return min(1.0, max(0.0, mean))


def vote_error(values: Sequence[float]) -> float:
    """Standard error of the mean of k sampled verdicts, each in [0, 1].

    The interval of Agresti and Coull (1998): with two votes for and two against added, so that
    a unanimous vote, or a single one, is not reported as certain. For verdicts between 0 and 1 it
    is an upper bound, for none varies more than votes of 0 and 1 with the same mean.
    """
    count = len(values) + _ADDED_VOTES
    mean = (math.fsum(values) + _ADDED_VOTES / 2) / count
    return math.sqrt(mean * (1 - mean) / count)


def sample_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean of measured numbers; None for fewer than two."""
    if len(values) < 2:
        return None
    return statistics.stdev(values) / math.sqrt(len(values))


def sigmoid(value: float) -> float:
    """1 / (1 + exp(-value)), without overflow."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))


def debias(forward: float, reverse: float) -> tuple[float, float]:
    """The win probability of both orders together, and how far they differ.

    w = (p_forward + p_reverse) / 2 and gap = |p_forward - p_reverse|, where both are the chance of
    the same response (Pairwise-RL, arXiv 2504.04950).

    Args:
        forward: chance that it is better when it stands first, on the grid.
        reverse: chance that it is better when it stands second, on the grid.

    Returns:
        w and gap, in [0, 1]; w on the grid, so that 1 - w is exact.
    """
    return (round(forward * GRID) + round(reverse * GRID)) // 2 / GRID, abs(forward - reverse)


def on_grid(value: float) -> float:
    """The nearest multiple of 2^-53 to a number in [0, 1]."""
    return round(value * GRID) / GRID
