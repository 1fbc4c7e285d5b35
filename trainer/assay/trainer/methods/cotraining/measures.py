"""How well the verifier verifies, and what keeps its classes in balance. Pure.

    s_c proportional to 1 / sqrt(n_c)    RL Tango (arXiv 2505.15034), against a verifier that always
                                         names the majority class

n_c is the exponential moving average of the right (or wrong) solutions of a verifier's step.

1. The weight multiplies the advantage. The authors' code multiplies the policy loss of a
   verification, which is the same. On the reward it would be nothing else: a group verifies one
   solution, so of one class, whose weight leaves the baseline as a factor, and a division by the
   group's deviation takes it out altogether.
2. The mean weight over the solutions counted is 1; in the authors' code over those of the step.
3. A count is at least 1, which bounds the weight of a rare class [derivation].
4. The first step's counts start the average, as in the authors' code.

`balanced` is the third place where a weight may stand, how often a class is seen [derivation].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.trainer.methods.cotraining.protocol import Verification

RIGHT, WRONG = "correct", "wrong"


def inverse_root_weights(right: float, wrong: float) -> dict[str, float]:
    """Of the classes RIGHT and WRONG, from their counts, at least 0."""
    counts = {RIGHT: max(right, 1.0), WRONG: max(wrong, 1.0)}
    roots = {name: math.sqrt(count) for name, count in counts.items()}
    scale = sum(counts.values()) / sum(roots.values())
    return {name: scale / root for name, root in roots.items()}


class ClassWeights:
    """The moving counts of both classes.

    Args:
        decay: what a step keeps of them.
        enabled: false makes all weights 1.
    """

    def __init__(self, decay: float, *, enabled: bool = True) -> None:
        self._decay = decay
        self._enabled = enabled
        self._counts: dict[str, float] = {}

    def see(self, truths: Iterable[bool]) -> None:
        """Counts a step's judged solutions."""
        known = list(truths)
        if not known:
            return
        now = {RIGHT: float(sum(known)), WRONG: float(len(known) - sum(known))}
        kept, before = self._decay, self._counts
        self._counts = {
            name: kept * before[name] + (1 - kept) * count if before else count
            for name, count in now.items()
        }

    @property
    def weights(self) -> Mapping[str, float]:
        """Of each class; 1 before the first step."""
        if not self._enabled or not self._counts:
            return {RIGHT: 1.0, WRONG: 1.0}
        return inverse_root_weights(self._counts[RIGHT], self._counts[WRONG])

    def state_dict(self) -> dict[str, Any]:
        """As plain values."""
        return dict(self._counts)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a `state_dict`."""
        self._counts = dict(state)


def balanced(truths: Sequence[bool | None], wanted: int) -> list[int]:
    """Which of the drawn solutions are verified: as many right as wrong ones, as far as they go.

    Of a class the first drawn are taken. Solutions without a truth keep their share, so that
    `fault_ratio` stays what it is.

    Args:
        truths: of each solution, in the order of the draws; None for a fault.
        wanted: solutions of a verifier's step, at most as many as `truths`.

    Returns:
        `wanted` places in `truths`, ascending.
    """
    right, wrong, unknown = (
        [place for place, truth in enumerate(truths) if truth is kind]
        for kind in (True, False, None)
    )
    faults = round(wanted * len(unknown) / len(truths)) if truths else 0
    known = wanted - faults
    rights = min(len(right), known - min(len(wrong), known // 2))
    return sorted((*right[:rights], *wrong[: known - rights], *unknown[:faults]))


@dataclass(frozen=True, slots=True)
class Verified:
    """A verification of a judged solution.

    Attributes:
        right: whether the solution is.
    """

    right: bool
    verification: Verification

    @property
    def true(self) -> bool:
        """Whether the final verdict is true; an unreadable one is not."""
        return self.verification.final == (RIGHT if self.right else WRONG)


def reward_of(verified: Verified, format_weight: float) -> float:
    """[final verdict = truth] + gamma * form: RL Tango (arXiv 2505.15034)."""
    return float(verified.true) + format_weight * verified.verification.form


def verifier_metrics(verified: Sequence[Verified]) -> dict[str, float]:
    """Metrics by the names of `metric_table`, where they apply.

    F1 is the harmonic mean of the two recalls: 0 for a constant verifier.
    """
    if not verified:
        return {}
    named = {
        "verifier_accuracy": _mean(one.true for one in verified),
        "verifier_form": _mean(one.verification.form for one in verified),
        "verifier_unparsed": _mean(one.verification.final == "unparsed" for one in verified),
        "verifier_says_correct": _mean(one.verification.final == RIGHT for one in verified),
        "verifier_steps_read": _mean(one.verification.steps is not None for one in verified),
    }
    recalls = []
    for name, right in (("verifier_correct_recall", True), ("verifier_wrong_recall", False)):
        hits = [one.true for one in verified if one.right is right]
        if hits:
            named[name] = _mean(hits)
            recalls.append(named[name])
    if len(recalls) == 2:
        named["verifier_f1"] = 2 * recalls[0] * recalls[1] / sum(recalls) if any(recalls) else 0.0
    return named


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
