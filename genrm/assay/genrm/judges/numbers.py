"""From log-probabilities and votes to scores and their uncertainty. Values in, values out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

GRID = 1 << 53
"""Win probabilities are multiples of 1 / GRID, so that 1 - w is exact both ways."""
_ADDED_VOTES = 4.0


def option_probabilities(logprobs: Sequence[float]) -> tuple[float, ...]:
    """The softmax of some options' log-probabilities (natural, -inf for the impossible).

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
    """The mean of the options' values under `option_probabilities`, in [0, 1]; errors as there."""
    probabilities = option_probabilities(logprobs)
    mean = math.fsum(p * value for p, value in zip(probabilities, values, strict=True))
    return min(1.0, max(0.0, mean))


def least(numbers: Iterable[float | None]) -> float | None:
    """The least that there is."""
    return min((number for number in numbers if number is not None), default=None)


def greatest(numbers: Iterable[float | None]) -> float | None:
    """The greatest that there is."""
    return max((number for number in numbers if number is not None), default=None)


def joined(logprobs: Sequence[float]) -> float:
    """The log-probability of any of several texts; -inf for none."""
    top = max(logprobs, default=-math.inf)
    if not math.isfinite(top):
        return top
    return top + math.log(math.fsum(math.exp(value - top) for value in logprobs))


def vote_error(values: Sequence[float]) -> float:
    """Standard error of the mean of k sampled verdicts, each in [0, 1].

    The interval of Agresti and Coull (1998): two votes for and two against are added, so that a
    unanimous vote is not reported as certain. For verdicts between 0 and 1 it is an upper bound.
    """
    count = len(values) + _ADDED_VOTES
    mean = (math.fsum(values) + _ADDED_VOTES / 2) / count
    return math.sqrt(mean * (1 - mean) / count)


def sample_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean; None for fewer than two numbers."""
    if len(values) < 2:
        return None
    return statistics.stdev(values) / math.sqrt(len(values))


def sigmoid(value: float) -> float:
    """1 / (1 + exp(-value)), without overflow."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))


def debias(forward: float, reverse: float) -> tuple[float, float]:
    """The win probability of both orders together, and how far they differ (arXiv 2504.04950).

    w = (forward + reverse) / 2 and gap = |forward - reverse|, where both are the chance of the same
    response, standing first and second, on the grid. w is on the grid too.
    """
    return (round(forward * GRID) + round(reverse * GRID)) // 2 / GRID, abs(forward - reverse)


def on_grid(value: float) -> float:
    """The nearest multiple of 2^-53."""
    return round(value * GRID) / GRID
