"""How often a first verifier errs, from the appeals of its verdicts. Pure.

The truth is what the second verifier says, or would have said. The rates are those of the items
served so far, and only the draws are random: responses may drift, and may be written by a policy
that knows everything but the draws to come.

Of items that are drawn with chance p, let Y be those whose first verdict errs, and k those of them
that were drawn. Each is drawn with chance p whatever was before, so for every q

    (q / p)^k ((1 - q) / (1 - p))^(Y - k)

is a martingale that begins at 1, and so is its mean over q from Beta(a, b),

    B(k + a, Y - k + b) / B(a, b) / (p^k (1 - p)^(Y - k)).

By Ville's inequality (1939) it ever reaches 1/alpha with chance at most alpha: the Y at which it
is below are a confidence sequence (Robbins 1970, Ann. Math. Statist. 41:1397; Howard, Ramdas,
McAuliffe and Sekhon 2021, arXiv 1810.08240, have the beta-binomial mixture). The same holds of the
items whose first verdict is right; the mean of both martingales is used, which is nearly as sharp
as the sharper one. Items that are always asked about are known. Where some verdicts that accept and
some that reject are drawn, each of the two sequences has half of alpha.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

CONFIDENCE = 0.95
"""With this chance the intervals of both rates hold, at every time at once."""
_WEIGHT = 8.0
"""a + b of the mixture, in draws; a = p (a + b). The sequence is tightest near 70 errors."""
_REMEMBERED = 65_536


class Stratum(NamedTuple):
    """Items of one kind of first verdict and one chance of being asked about.

    Attributes:
        served: all of them.
        errors: asked about, and the second verifier says otherwise.
        agreed: asked about, and it says the same.
        unknown: asked about without an answer.
    """

    served: int = 0
    errors: int = 0
    agreed: int = 0
    unknown: int = 0

    @property
    def estimate(self) -> float | None:
        """Its errors, as far as they are known by ratio; None where nobody answered."""
        answered = self.errors + self.agreed
        return self.served * self.errors / answered if answered else None if self.served else 0.0


class ErrorBounds(NamedTuple):
    """A share with its interval; the value is None where nothing is known."""

    low: float
    value: float | None
    high: float


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """How often the first verifier errs.

    Attributes:
        false_positive: of responses that the second rejects, the share that the first accepts.
        false_negative: of responses that the second accepts, the share that the first rejects.
        served: items.
        asked: those of them that the second verifier was asked about.
    """

    false_positive: ErrorBounds
    false_negative: ErrorBounds
    served: int
    asked: int


def log_martingale(errors: int, drawn: int, probability: float) -> float:
    """The logarithm of the martingale: of so many errors so many were drawn.

    Args:
        errors: Y, those that there were.
        drawn: k, those of them that were drawn.
        probability: p, of being drawn; above 0 and below 1.
    """
    a, b = _WEIGHT * probability, _WEIGHT * (1 - probability)
    missed = errors - drawn
    mixed = _log_beta(drawn + a, missed + b) - _log_beta(a, b)
    return mixed - drawn * math.log(probability) - missed * math.log1p(-probability)


def log_evidence(errors: int, stratum: Stratum, probability: float) -> float:
    """The logarithm of the evidence that there were not so many errors.

    Args:
        errors: at least those known, at most the served ones without those known to be right.
        stratum: what was seen; nothing in it is unknown.
        probability: of being drawn; above 0 and below 1.
    """
    both = (
        log_martingale(errors, stratum.errors, probability),
        log_martingale(stratum.served - errors, stratum.agreed, probability),
    )
    most = max(both)
    return most + math.log(sum(math.exp(one - most) for one in both) / 2)


def errors_between(stratum: Stratum, probability: float, alpha: float) -> tuple[int, int]:
    """Least and most errors of a stratum: the confidence sequence at level 1 - alpha.

    An item whose second verifier did not answer may be either.
    """
    served, errors, agreed, unknown = stratum
    if not 0 < probability < 1:
        return errors, served - agreed
    least = stratum._replace(agreed=agreed + unknown, unknown=0)
    most = stratum._replace(errors=errors + unknown, unknown=0)
    low = _ends(least, probability, alpha)[0]
    high = _ends(most, probability, alpha)[1]
    return low, high


def _ends(stratum: Stratum, probability: float, alpha: float) -> tuple[int, int]:
    """The ends of the errors whose evidence, which is convex in them, is below 1 / alpha."""
    bound = -math.log(alpha)
    least, most = stratum.errors, stratum.served - stratum.agreed

    def evidence(errors: int) -> float:
        return log_evidence(errors, stratum, probability)

    bottom = _first(least, most, lambda one: evidence(one + 1) >= evidence(one))
    if evidence(bottom) >= bound:
        return bottom, bottom
    low = _first(least, bottom, lambda one: evidence(one) < bound)
    high = _first(bottom, most, lambda one: evidence(one + 1) >= bound)
    return low, high


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number from `low` for which it holds, as from there on; `high` where for none."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


class AppealTally:
    """Counts the appeals of one component, each content once, and gives the rates."""

    def __init__(self) -> None:
        self._strata: dict[tuple[bool, float], Stratum] = {}
        self._seen: OrderedDict[bytes, tuple[bool, float] | None] = OrderedDict()

    def add(
        self,
        content: bytes,
        *,
        accepted: bool,
        probability: float,
        asked: bool,
        second: bool | None = None,
    ) -> None:
        """Counts an item.

        An equal item gets the same draw, and so says nothing new: of those remembered (the last
        65,536) it is counted once, and again only where it had no answer and now has.

        Args:
            content: equal for equal items.
            accepted: the first verifier accepts it.
            probability: the chance of being asked about.
            asked: the second verifier was asked.
            second: it accepts; None where there was no answer.
        """
        key = (accepted, probability)
        known = not asked or second is not None
        old = self._strata.get(key, Stratum())
        if content in self._seen:
            if not known or self._seen[content] != key:
                return
            old = old._replace(served=old.served - 1, unknown=old.unknown - 1)
        self._seen[content] = None if known else key
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        self._strata[key] = old._replace(
            served=old.served + 1,
            errors=old.errors + (asked and second is not None and second != accepted),
            agreed=old.agreed + (asked and second is not None and second == accepted),
            unknown=old.unknown + (not known),
        )

    @property
    def strata(self) -> Mapping[tuple[bool, float], Stratum]:
        """What was seen, by whether the first accepts and by the chance of being asked about."""
        return dict(self._strata)

    def rates(self, confidence: float = CONFIDENCE) -> ErrorRates:
        """The rates so far."""
        return error_rates(self.strata, confidence)


def error_rates(
    strata: Mapping[tuple[bool, float], Stratum], confidence: float = CONFIDENCE
) -> ErrorRates:
    """The rates of what was seen.

    Args:
        strata: by whether the first verifier accepts, and by the chance of being asked about; for
            each of the two at most one chance that is neither 0 nor 1.
        confidence: with this chance both intervals hold at every time; above 0 and below 1.
    """
    alpha = (1 - confidence) / 2
    totals = {True: 0, False: 0}
    least, most = dict(totals), dict(totals)
    guessed: dict[bool, float | None] = {True: 0.0, False: 0.0}
    for (accepted, probability), one in strata.items():
        low, high = errors_between(one, probability, alpha)
        totals[accepted] += one.served
        least[accepted] += low
        most[accepted] += high
        sum_, estimate = guessed[accepted], one.estimate
        guessed[accepted] = None if sum_ is None or estimate is None else sum_ + estimate
    values: dict[bool, float | None] = {}
    for kind in (True, False):
        own, other = guessed[kind], guessed[not kind]
        values[kind] = None
        if own is not None and other is not None and own + totals[not kind] - other > 0:
            values[kind] = own / (own + totals[not kind] - other)
    return ErrorRates(
        _rate(True, least, most, totals, values[True]),
        _rate(False, least, most, totals, values[False]),
        sum(one.served for one in strata.values()),
        sum(one.errors + one.agreed + one.unknown for one in strata.values()),
    )


def _rate(
    kind: bool,
    least: Mapping[bool, int],
    most: Mapping[bool, int],
    totals: Mapping[bool, int],
    value: float | None,
) -> ErrorBounds:
    """Of the errors of one kind of verdict, their share of those that the second says alike.

    It grows with its own errors and with the other kind's.
    """
    low_of = least[kind] + totals[not kind] - least[not kind]
    high_of = most[kind] + totals[not kind] - most[not kind]
    low = least[kind] / low_of if low_of else 0.0
    high = most[kind] / high_of if high_of else 1.0
    return ErrorBounds(low, value, high)
