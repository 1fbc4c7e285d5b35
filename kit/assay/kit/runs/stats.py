"""Statistics of verdicts: shares, pass@k, majorities, a before/after comparison. Pure."""

from __future__ import annotations

import bisect
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Z95 = 1.959963984540054


def wilson(successes: float, trials: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a proportion (Wilson 1927); 95 % by default.

    Args:
        successes: 0 <= successes <= trials; ties may count half.
        trials: how many were judged, or their equivalent; 0 gives the whole range (0, 1).
        z: normal quantile.

    Raises:
        ValueError: the counts are impossible.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} is no proportion")
    if trials == 0:
        return 0.0, 1.0
    p = successes / trials
    centre = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion (Clopper and Pearson 1934, Biometrika 26:404).

    Each end misses with at most half of `1 - confidence`, also for independent trials whose
    chances differ (Hoeffding 1956, Ann. Math. Statist. 27:713).

    Raises:
        ValueError: the counts are impossible.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} is no proportion")
    tail = (1 - confidence) / 2
    high = 1.0 if successes == trials else _solved(successes, trials, tail)
    low = 0.0 if not successes else 1 - _solved(trials - successes, trials, tail)
    return low, high


def _solved(successes: int, trials: int, tail: float) -> float:
    """The chance under which at most so many successes have the probability `tail`."""
    low, high = successes / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = _at_most(successes, trials, middle) < tail
        low, high = (low, middle) if below else (middle, high)
    return high


def _at_most(successes: int, trials: int, chance: float) -> float:
    if chance >= 1:
        return 0.0
    odds = math.log(chance) - math.log1p(-chance)
    term = trials * math.log1p(-chance)
    terms = [term]
    for k in range(successes):
        term += math.log((trials - k) / (k + 1)) + odds
        terms.append(term)
    top = max(terms)
    return math.exp(top) * math.fsum(math.exp(one - top) for one in terms)


def mcnemar_exact(gained: int, lost: int) -> float:
    """Two-sided exact p of McNemar's test: were as many gained as lost, among pairs that changed?

    Args:
        gained: pairs wrong before and right after.
        lost: pairs right before and wrong after.

    Returns:
        p in (0, 1]; 1 when nothing changed.
    """
    changed = gained + lost
    if changed == 0:
        return 1.0
    tail = sum(math.comb(changed, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << changed))


def paired_change(gained: int, lost: int, pairs: int, z: float = Z95) -> tuple[float, float, float]:
    """The change of a proportion on the same prompts, with an interval.

    Agresti and Min 2005, Statistics in Medicine 24:729: Wald with half a pair added to each cell.

    Args:
        gained: pairs wrong before and right after.
        lost: pairs right before and wrong after.
        pairs: all pairs judged both times.
        z: normal quantile.

    Returns:
        The observed change, and the low and high end; (0, -1, 1) without pairs.

    Raises:
        ValueError: more changed than there are.
    """
    if gained < 0 or lost < 0 or gained + lost > pairs:
        raise ValueError(f"{gained} gained and {lost} lost do not fit {pairs} pairs")
    if pairs == 0:
        return 0.0, -1.0, 1.0
    n, up, down = pairs + 2, gained + 0.5, lost + 0.5
    centre = (up - down) / n
    half = z * math.sqrt((up + down) - (up - down) ** 2 / n) / n
    return (gained - lost) / pairs, max(-1.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The numbers of one bin: how many, their mean, and the share of right ones."""

    count: int
    mean: float
    right: float


def calibration(scored: Sequence[tuple[float, bool]], bins: int = 10) -> list[CalibrationBin]:
    """Bins of equal width with at least one number, from 0 to 1 (Guo et al., arXiv 1706.04599).

    As there, a bin has its upper end and not its lower one; 0 is in the first.
    """
    ends = [(index + 1) / bins for index in range(bins)]
    found: dict[int, list[tuple[float, bool]]] = {}
    for score, right in scored:
        found.setdefault(bisect.bisect_left(ends, score), []).append((score, right))
    return [
        CalibrationBin(
            len(some),
            math.fsum(score for score, _ in some) / len(some),
            sum(right for _, right in some) / len(some),
        )
        for _, some in sorted(found.items())
    ]


def calibration_error(scored: Sequence[tuple[float, bool]], bins: int = 10) -> float | None:
    """Expected calibration error in [0, 1] (arXiv 1706.04599); None without numbers.

    The mean over the numbers of |share of right ones - mean number| in the number's bin.
    """
    if not scored:
        return None
    found = calibration(scored, bins)
    return math.fsum(one.count * abs(one.right - one.mean) for one in found) / len(scored)


def auc(scored: Sequence[tuple[float, bool]]) -> float | None:
    """Area under the ROC curve, by ranks (Mann and Whitney 1947); pairs of score and right or not.

    The chance that a right one scores above a wrong one, ties half; None without both kinds.
    """
    right = sum(label for _, label in scored)
    wrong = len(scored) - right
    if not right or not wrong:
        return None
    ordered = sorted(scored, key=lambda entry: entry[0])
    wins, below, start = 0.0, 0, 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end][0] == ordered[start][0]:
            end += 1
        tied_right = sum(label for _, label in ordered[start:end])
        tied_wrong = end - start - tied_right
        wins += tied_right * (below + tied_wrong / 2)
        below += tied_wrong
        start = end
    return wins / (right * wrong)


def auc_interval(
    clusters: Sequence[Sequence[tuple[float, bool]]],
) -> tuple[float, float] | None:
    """95 % interval of `auc` over the scores of all clusters; None without both kinds.

    A cluster's scores may depend on each other. The variance is Obuchowski's (1997, Biometrics
    53:567), DeLong's (1988) where each cluster holds one score; the interval Wilson's at as many
    trials as have it [derivation, as in `mean_over_problems`], at least the clusters of the rarer
    kind, so that a perfect judge's has a width.
    """
    area = auc([one for cluster in clusters for one in cluster])
    if area is None:
        return None
    right = sorted(score for cluster in clusters for score, label in cluster if label)
    wrong = sorted(score for cluster in clusters for score, label in cluster if not label)
    ups: list[float] = []  # of each cluster: by how much its right ones are above the wrong, less
    downs: list[float] = []  # what the area has them be; and its wrong ones below the right
    kinds = [0, 0]
    for cluster in clusters:
        own = [_below(wrong, score) - area for score, label in cluster if label]
        other = [1 - _below(right, score) - area for score, label in cluster if not label]
        kinds[0] += bool(own)
        kinds[1] += bool(other)
        ups.append(math.fsum(own) / len(right))
        downs.append(math.fsum(other) / len(wrong))
    variance = (
        math.fsum(up * up for up in ups) * _unbiased(kinds[0])
        + math.fsum(down * down for down in downs) * _unbiased(kinds[1])
        + 2
        * math.fsum(up * down for up, down in zip(ups, downs, strict=True))
        * _unbiased(len(clusters))
    )
    trials = float(min(kinds))
    if variance > 0:
        trials = max(trials, area * (1 - area) / variance)
    return wilson(min(1.0, area) * trials, trials)


def _below(ordered: Sequence[float], score: float) -> float:
    """The share of numbers below a score, ties half."""
    low, high = bisect.bisect_left(ordered, score), bisect.bisect_right(ordered, score)
    return (low + high) / 2 / len(ordered)


def _unbiased(count: int) -> float:
    return count / (count - 1) if count > 1 else 1.0


def pass_at_k(judged: int, correct: int, k: int) -> float:
    """Probability that one of k responses, drawn from n `judged` ones without return, is correct.

    arXiv 2107.03374, equation 1: 1 - C(n - c, k) / C(n, k), with c `correct` ones and n >= k, as
    the product of the chances to draw another wrong one.

    Raises:
        ValueError: the counts do not fit.
    """
    if not (0 <= correct <= judged and 1 <= k <= judged):
        raise ValueError(f"pass@{k} cannot be had from {correct} correct of {judged}")
    wrong = judged - correct
    return 1.0 - math.prod(max(0, wrong - i) / (judged - i) for i in range(k))


def majority(answers: Sequence[Hashable | None], correct: Sequence[bool]) -> float:
    """Chance that the most frequent answer of a problem is correct; ties are drawn from.

    None, no answer found, is no vote.

    Returns:
        In [0, 1]; 0 without answers. Where a verifier judged equal answers differently, the share
        of correct ones among them counts.
    """
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return 0.0
    most = max(votes.values())
    right: dict[Hashable, int] = defaultdict(int)
    for answer, is_right in zip(answers, correct, strict=True):
        if answer is not None and is_right:
            right[answer] += 1
    tied = [answer for answer, count in votes.items() if count == most]
    return sum(right[answer] / most for answer in tied) / len(tied)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over problems, with its 95 % interval; `value` is None without problems."""

    value: float | None
    low: float
    high: float
    problems: int


def mean_over_problems(values: Sequence[float], trials: float) -> Estimate:
    """Mean of numbers in [0, 1], one for each problem, with its interval.

    Wilson's score interval (Wilson 1927) at an effective number of trials: how many coin flips
    would have the variance of the problems, as for clustered surveys [derivation]. With one answer
    a problem it is Wilson's interval. It stays within 0 and 1, and has a width when every problem
    came out the same, unlike a bootstrap over problems (both are simulated in
    tests/property/test_trainer_evaluation_laws.py).

    The effective number of trials is p (1 - p) / Var(mean), at least the number of problems, as if
    all responses to a problem were alike, and at most `trials`, as if all were independent: their
    number, over k for a pass@k.
    """
    problems = len(values)
    if not problems:
        return Estimate(None, 0.0, 1.0, 0)
    value = math.fsum(values) / problems
    effective = float(problems)
    squares = math.fsum((x - value) ** 2 for x in values)
    if problems > 1 and squares > 0:
        variance = squares / (problems - 1) / problems
        effective = max(effective, min(trials, value * (1 - value) / variance))
    low, high = wilson(min(1.0, value) * effective, effective)
    return Estimate(value, low, high, problems)
