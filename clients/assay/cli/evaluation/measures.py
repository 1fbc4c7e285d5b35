"""What is measured of any judge, with intervals: shares, calibration, biases. Pure.

A measure is a dictionary of plain data; None is where there was nothing to measure. Intervals hold
95 %.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from assay.kit.runs.bootstrap import bootstrap
from assay.kit.runs.stats import (
    CalibrationBin,
    auc,
    auc_interval,
    calibration,
    calibration_error,
    mean_over_problems,
    paired_change,
    wilson,
)

_ROUNDS = 200
Scored = Sequence[tuple[float, bool]]


def half_right(probability: float) -> float:
    """1 above one half, 0 below it, 0.5 on it."""
    return 0.5 if probability == 0.5 else float(probability > 0.5)


def mean(total: float, count: int) -> float | None:
    """None of nothing."""
    return total / count if count else None


def accuracy(right: float, count: int) -> dict[str, Any]:
    """The share of right ones, with Wilson's interval."""
    return {
        "accuracy": mean(right, count),
        "interval": list(wilson(right, count)) if count else None,
    }


def share(name: str, hits: float, count: int) -> dict[str, Any]:
    """A share by its name, and its interval as `NAME_interval`."""
    return {
        name: mean(hits, count),
        f"{name}_interval": list(wilson(hits, count)) if count else None,
    }


def ranked(scored: Scored) -> dict[str, Any]:
    """The area under the ROC curve."""
    interval = auc_interval([[one] for one in scored])
    return {"auc": auc(scored), "auc_interval": interval and list(interval)}


def calibrated(scored: Scored, clusters: Sequence[Scored] | None = None) -> dict[str, Any]:
    """Calibration of chances in [0, 1]; nothing for logits.

    `ece` (arXiv 1706.04599) has ten bins and an interval by bootstrap over `clusters`, or rows;
    `ece_if_true` is its mean if each chance were true, for few rows alone make an error.
    `overconfidence` is the mean chance less the share of right ones.
    """
    if not scored or not all(0.0 <= score <= 1.0 for score, _ in scored):
        return {}
    drawn = clusters if clusters is not None else [[one] for one in scored]
    found = bootstrap(drawn, calibration_error, rounds=_ROUNDS)
    count = len(scored)
    return {
        "ece": calibration_error(scored),
        "ece_interval": found and [found.low, found.high],
        "ece_if_true": _if_true(scored),
        "brier": sum((score - right) ** 2 for score, right in scored) / count,
        "overconfidence": sum(score - right for score, right in scored) / count,
        "calibration": [_bin(one) for one in calibration(scored)],
    }


def _if_true(scored: Scored) -> float:
    dice = random.Random(0)  # noqa: S311  # no secret
    errors = (
        calibration_error([(score, dice.random() < score) for score, _ in scored]) or 0.0
        for _ in range(_ROUNDS // 4)
    )
    return sum(errors) / (_ROUNDS // 4)


def _bin(one: CalibrationBin) -> dict[str, Any]:
    low, high = wilson(one.right * one.count, one.count)
    return {"count": one.count, "mean": one.mean, "right": one.right, "interval": [low, high]}


class PlaceBias:
    """How often a judge of pairs picks what stands first, over both orders; one half is no bias."""

    def __init__(self) -> None:
        self._picks: list[float] = []

    def add(self, forward: float, reverse: float) -> None:
        """Counts a pair: the chances of the same response in the first and in the second place."""
        self._picks.append((half_right(forward) + 1.0 - half_right(reverse)) / 2)

    def measures(self) -> dict[str, Any]:
        """The share `first_picked`; its interval counts pairs, whose two orders depend."""
        found = mean_over_problems(self._picks, 2 * len(self._picks))
        return {
            "first_picked": found.value,
            "first_picked_interval": [found.low, found.high] if self._picks else None,
        }


class LengthBias:
    """Whether a judge prefers the longer response more often than it is the better one."""

    def __init__(self) -> None:
        self._pairs = 0
        self._better = 0
        self._misled = 0  # the longer one was picked and the shorter one is better
        self._averse = 0  # the shorter one was picked and the longer one is better

    def add(self, longer_better: bool | None, right: bool) -> None:
        """Counts a decided pair; None where both responses are as long."""
        if longer_better is None:
            return
        self._pairs += 1
        self._better += longer_better
        self._misled += not right and not longer_better
        self._averse += not right and longer_better

    def measures(self) -> dict[str, Any]:
        """`longer_preferred` less `longer_better` is `length_bias`; a paired interval."""
        bias, low, high = paired_change(self._misled, self._averse, self._pairs)
        count, longer = self._pairs, self._better
        right = count - self._misled - self._averse
        return {
            **share("longer_preferred", longer + self._misled - self._averse, count),
            "longer_better": mean(longer, count),
            "length_bias": bias if count else None,
            "length_bias_interval": [low, high] if count else None,
            "accuracy_longer_better": mean(longer - self._averse, longer),
            "accuracy_shorter_better": mean(right - longer + self._averse, count - longer),
        }


def harmonic(one: float | None, other: float | None) -> float | None:
    """The harmonic mean; 0 where either is."""
    if one is None or other is None:
        return None
    return 2 * one * other / (one + other) if one and other else 0.0
