"""Rewards of a verifier that errs, corrected by its rates or by second opinions.

    backward  R^ = (R~ - rho0) / (1 - rho0 - rho1)           arXiv 2510.00915, theorem 1
    forward   w = rho1 where R~ = 1, rho1 - 1 where R~ = 0   arXiv 2510.00915, theorem 2
    appealed  R^ + (R2 - R^) / q where it was appealed       [derivation]
    rate      shares of appeals, each weighed by 1 / q       [derivation]

R* is the truth and R~ the verdict, 0 or 1; rho0 = P(R~ = 1 | R* = 0) is the rate of false
positives, rho1 = P(R~ = 0 | R* = 1) that of false negatives; R2 is the second opinion, q the chance
that it is asked for.

Laws, held by tests/property/test_noise_laws.py:

1. E[R^ | R*] = R*. E[w | R* = 1] = 0 and E[w | R* = 0] = -(1 - rho0 - rho1), so that the mean of w
   times the score function is 1 - rho0 - rho1 times the true gradient.
2. w = (1 - rho0 - rho1) (R^ - 1), and both are affine in R~ with a positive slope. Where a group
   has one pair of rates, its mean takes w back to R~, and its mean and deviation R^ back to R~:
   GRPO's advantages stay as they were. A correction changes them where rates differ within the
   group, or where nothing divides by a deviation and something else has a scale: a KL, or another
   prompt's rates.
3. A mean of 0 is no mean of 0 once a group's deviation has divided: of a rare class that is mostly
   accepted, what it loses now and then shrinks most. Rates that differ within a group want
   `method.advantage.scale = "none"`.
4. The appealed reward has the mean R2, whatever R^ is, where both verdicts have a q above 0.

Differences: the paper's text was not at hand. Its abstract and a reproduction's code have the two
formulas; the proofs above are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.kit.reliability import ErrorRate
from assay.kit.runs.stats import wilson


def backward_reward(verdict: float, false_positive: float, false_negative: float) -> float:
    """R^ = (R~ - rho0) / (1 - rho0 - rho1) (arXiv 2510.00915, theorem 1).

    `verdict` is 0 or 1. The rates are in [0, 1].

    Raises:
        ValueError: they sum to 1 or more: the verdict says nothing of the truth, or the opposite.
    """
    told = 1 - false_positive - false_negative
    if not told > 0:
        raise ValueError(
            f"rates of false positives {false_positive:g} and false negatives {false_negative:g} "
            "sum to 1 or more: such a verdict says nothing of the truth, or the opposite"
        )
    return (verdict - false_positive) / told


def forward_weight(verdict: float, false_negative: float) -> float:
    """The weight of a score function, w = R~ - (1 - rho1) (arXiv 2510.00915, theorem 2).

    It takes the place of an advantage. `verdict` is 0 or 1, `false_negative` in [0, 1].
    """
    return verdict - (1 - false_negative)


def appealed_reward(reward: float, second: float, probability: float) -> float:
    """R^ + (R2 - R^) / q: a derivation, the estimate of Horvitz and Thompson of what R^ lacks.

    Where no appeal was made the reward is R^.

    Raises:
        ValueError: the probability is not above 0 and at most 1.
    """
    if not 0 < probability <= 1:
        raise ValueError(f"an appeal has a chance above 0, at most 1, not {probability:g}")
    return reward + (second - reward) / probability


def weighted_rate(wrong: Sequence[bool], weights: Sequence[float]) -> ErrorRate | None:
    """The weighted share of `wrong`, with a 95 % interval; None where there is nothing.

    Weights are one over the chance of having been looked at. The interval is Wilson's with as many
    observations as give the ratio's linearised variance, sum of w^2 (x - share)^2 / (sum of w)^2.
    """
    total = math.fsum(weights)
    if not total:
        return None
    share = math.fsum(w for x, w in zip(wrong, weights, strict=True) if x) / total
    squares = [w * w for w in weights]
    spread = math.fsum(s * (x - share) ** 2 for x, s in zip(wrong, squares, strict=True))
    counted = total * total / math.fsum(squares)
    if spread:
        counted = share * (1 - share) * total * total / spread
    low, high = wilson(share * counted, counted)
    return ErrorRate(share, low, high, 0.95, len(weights))
