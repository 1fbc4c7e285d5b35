"""Dynamic sampling's decisions, pure: which groups train, how many to draw, when to give up.

DAPO (arXiv 2503.14476, "Dynamic Sampling": the constraint of its objective) trains only on groups
with right and wrong responses, and samples until the batch is full: a uniform group has zero
advantages and dilutes the gradient.

Differences:

1. A group is judged by the verdict "correct", whatever its rewards: two right responses of
   different length differ in a shaped reward. A verifier that never gives this verdict makes every
   group "all wrong"; the run stops and lists the verdicts.
2. Only judged rollouts count. A group with fewer than two is dropped as faulted and leaves the keep
   rate alone.
3. A round draws ceil(missing / keep rate) (the idea of CodeV-R1's adaptive DAPO; formula and
   estimator are derivations); DAPO's script draws a fixed multiple of the batch. With pass rate p
   and G samples a group is kept with probability P = 1 - p^G - (1 - p)^G (derivation), so a batch
   costs 1 / P times its size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from assay.trainer.rollouts.types import KnownGroup

CORRECT = "correct"
Kind = Literal["mixed", "all_correct", "all_wrong", "faulted"]


def kind_of(group: KnownGroup) -> Kind:
    """What a group says about its prompt; "faulted" if fewer than two rollouts were judged."""
    verdicts = [r.result.judgement.verdict for r in group if r.result.judgement is not None]
    if len(verdicts) < 2:
        return "faulted"
    correct = verdicts.count(CORRECT)
    if correct in (0, len(verdicts)):
        return "all_correct" if correct else "all_wrong"
    return "mixed"


class SamplingLimits(Protocol):
    """Limits of a step; see the settings of methods/dynamic_sampling."""

    @property
    def min_accuracy(self) -> float:
        """Least share of right responses."""
        ...

    @property
    def max_accuracy(self) -> float:
        """Largest share of right responses."""
        ...

    @property
    def oversample(self) -> float:
        """Most prompts of a round for each missing one."""
        ...

    @property
    def max_rounds(self) -> int:
        """Most rounds of a step."""
        ...

    @property
    def keep_surplus(self) -> bool:
        """Whether surplus groups open the next step."""
        ...


def keeps(group: KnownGroup, limits: SamplingLimits | None = None) -> bool:
    """Whether dynamic sampling trains on the group.

    It has right and wrong responses, and of those judged a share is right that lies within the
    bounds, which are included (SimpleTIR's code, arXiv 2509.02479).
    """
    if kind_of(group) != "mixed":
        return False
    if limits is None:
        return True
    verdicts = [r.result.judgement.verdict for r in group if r.result.judgement is not None]
    return limits.min_accuracy <= verdicts.count(CORRECT) / len(verdicts) <= limits.max_accuracy


@dataclass(frozen=True, slots=True)
class KeepRate:
    """The share of judged groups that are kept, as a discounted mean; never 0.

    It starts at 1 with the weight of one group, so that a run's first round draws what is missing.

    Attributes:
        half_life: after so many further groups a group counts half.
        kept: discounted count of kept groups.
        judged: discounted count of groups with verdicts.
    """

    half_life: int
    kept: float = 0.0
    judged: float = 0.0

    @property
    def value(self) -> float:
        """In (0, 1]."""
        return (self.kept + 1) / (self.judged + 1)

    def after(self, kept: int, judged: int) -> KeepRate:
        """The rate after `judged` further groups, `kept` of them kept."""
        decay = 0.5 ** (judged / self.half_life)
        return KeepRate(self.half_life, decay * self.kept + kept, decay * self.judged + judged)


@dataclass(slots=True)
class Tally:
    """Counts of the groups drawn.

    Attributes:
        limits: which mixed groups are kept; None for all.
        kept: groups that train.
        kinds: groups by kind.
        verdicts: judged rollouts by verdict.
        reasons: faulted rollouts by reason.
    """

    limits: SamplingLimits | None = None
    kept: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, groups: Iterable[KnownGroup]) -> None:
        """Counts further groups."""
        for group in groups:
            self.kinds[kind_of(group)] += 1
            self.kept += keeps(group, self.limits)
            for rollout in group:
                if rollout.result.judgement is not None:
                    self.verdicts[rollout.result.judgement.verdict] += 1
                elif rollout.result.fault is not None:
                    self.reasons[rollout.result.fault.reason] += 1

    @property
    def drawn(self) -> int:
        """All groups."""
        return self.kinds.total()

    @property
    def judged(self) -> int:
        """Groups that were not faulted."""
        return self.drawn - self.kinds["faulted"]

    @property
    def keep_rate(self) -> float:
        """Kept of judged; 0 when none was judged."""
        return self.kept / self.judged if self.judged else 0.0

    def metrics(self, group_size: int) -> dict[str, float]:
        """The counts by name; of groups of one response only those that need no comparison."""
        if group_size < 2:
            return {
                "draws": float(self.drawn),
                "groups_faulted": float(self.reasons.total()),
            }
        return {
            "keep_rate": self.keep_rate,
            "draws": float(self.drawn),
            "groups_all_correct": float(self.kinds["all_correct"]),
            "groups_all_wrong": float(self.kinds["all_wrong"]),
            "groups_faulted": float(self.kinds["faulted"]),
        }


def draws_needed(missing: float, keep_rate: float, *, most: int) -> int:
    """How many prompts a round draws: ceil(missing / keep_rate), within [1, most].

    `missing` groups, expected or certain, is above 0; `keep_rate` in (0, 1].
    """
    # The factor keeps a quotient that is whole but for rounding from costing a further group.
    return max(1, min(most, math.ceil(missing / keep_rate * (1 - 1e-12))))


def round_limit(prompts_per_step: int, oversample: float) -> int:
    """Most prompts of a round: `oversample` batches.

    It is the same for a nearly full batch, so that a low keep rate costs few rounds.
    """
    return math.ceil(prompts_per_step * oversample)


def give_up_message(tally: Tally, *, wanted: int, rounds: int) -> str:
    """One line: why a step lacks groups after `rounds` rounds, and what to do."""
    kinds = tally.kinds
    found = (
        f"dynamic sampling found {tally.kept} of {wanted} groups in {rounds} rounds: of "
        f"{tally.drawn} groups drawn, {kinds['mixed']} held both right and wrong responses "
        f"{_within(tally)}(keep rate {tally.keep_rate:.1%}), {kinds['all_correct']} were all "
        f"right, {kinds['all_wrong']} all wrong, and {kinds['faulted']} had fewer than two "
        "judgements"
    )
    return f"{found}; {_remedy(tally)}"


def _within(tally: Tally) -> str:
    if tally.kept == tally.kinds["mixed"]:
        return ""
    return f"and {tally.kept} of these an accuracy within the bounds "


def _remedy(tally: Tally) -> str:
    kinds = tally.kinds
    if 2 * kinds["faulted"] >= tally.drawn:
        return (
            f"the reward services fail, not the prompts ({_frequent(tally.reasons)}): "
            "see that they run and keep up, then resume"
        )
    if not tally.verdicts[CORRECT]:
        cause = (
            f'no response was judged "{CORRECT}" ({_frequent(tally.verdicts)}): the problems are '
            "too hard for the policy, or the verifier does not give that verdict"
        )
    elif tally.kept < kinds["mixed"] / 2:
        cause = (
            "most such groups are beyond method.dynamic_sampling.min_accuracy or max_accuracy: "
            "widen these"
        )
    elif kinds["all_correct"] > kinds["all_wrong"]:
        cause = "most problems are too easy for the policy: take harder ones"
    else:
        cause = "most problems are too hard for the policy: take easier ones"
    return (
        f"{cause}; or raise rollout.group_size, method.dynamic_sampling.max_rounds or "
        "oversample, or set method.dynamic_sampling.enabled=false"
    )


def _frequent(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} x{count}" for name, count in Counter(counts).most_common(3))


def rate_to_plain(rate: KeepRate) -> list[float]:
    """For a checkpoint."""
    return [rate.kept, rate.judged]


def rate_from_plain(saved: Any, half_life: int) -> KeepRate:
    """From a checkpoint, with this run's half-life."""
    kept, judged = saved
    return KeepRate(half_life, float(kept), float(judged))
