"""What an adapter does with a fault, by one set of policies for all adapters.

The client tries again first, and no fault becomes a number that trains. docs/trainers/ describes
what each trainer makes of each policy, from that trainer's source.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from assay.clients.types import Fault, Judgement, Result
from assay.kit.errors import AssayError, ConfigError
from assay.kit.reasons import Reason

_log = logging.getLogger(__name__)
_counted: Counter[str] = Counter()


class FaultPolicy(StrEnum):
    """What becomes of a sample without a judgement.

    Attributes:
        DROP: the sample leaves its batch, or its group does and another is drawn.
        RAISE: a `FaultError`; the trainer stops, or tries again.
        MASK: the sample keeps its place, counts in no group's baseline and has no gradient.
    """

    DROP = "drop"
    RAISE = "raise"
    MASK = "mask"


class FaultError(AssayError):
    """A sample has no judgement, and the policy is to raise."""

    def __init__(self, item_id: str, fault: Fault) -> None:
        super().__init__(f"no judgement of item {item_id!r}: {fault.reason}: {fault.message}")
        self.item_id = item_id
        self.fault = fault

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles, for Ray and multiprocessing."""
        return type(self), (self.item_id, self.fault)


def read_policy(value: str, allowed: Iterable[FaultPolicy], peer: str) -> FaultPolicy:
    """The policy of a setting, for the trainer `peer`.

    Raises:
        ConfigError: the value is none of "drop", "raise", "mask", or not among `allowed`.
    """
    choices = list(allowed)
    try:
        policy = FaultPolicy(value)
    except ValueError:
        policy = None
    if policy is None or policy not in choices:
        known = ", ".join(choices)
        raise ConfigError(f"on_fault is {value!r}; with {peer} choose one of: {known}")
    return policy


def judgement_of(result: Result) -> Judgement:
    """The judgement of a result.

    Raises:
        FaultError: it is a fault.
    """
    if isinstance(result.outcome, Fault):
        raise FaultError(result.id, result.outcome)
    return result.outcome


def raise_for_faults(results: Iterable[Result]) -> None:
    """Raises FaultError for the first fault among results."""
    for result in results:
        judgement_of(result)


def kind_of(result: Result) -> tuple[str, str]:
    """The counter of a result: ("fault", its reason) or ("verdict", the verdict)."""
    match result.outcome:
        case Fault(reason=reason):
            return "fault", reason
        case judgement:
            return "verdict", judgement.verdict


def explanation_of(result: Result) -> str:
    """A fault's message, or a judgement's explanation, in one line."""
    match result.outcome:
        case Fault(message=message):
            return message
        case judgement:
            return judgement.explanation


def tell_faults(results: Iterable[Result], missing: str = "") -> None:
    """Logs why samples get no reward, for trainers that take NaN or None silently.

    A reason is logged at its first sample and then each time its count has doubled. `missing` is
    the remedy for missing references, if any.
    """
    faults = [result.fault for result in results if result.fault]
    for reason, count in Counter(fault.reason for fault in faults).items():
        before, _counted[reason] = _counted[reason], _counted[reason] + count
        if before.bit_length() == _counted[reason].bit_length():
            continue
        message = next(fault.message for fault in faults if fault.reason == reason)
        if missing and reason == Reason.MISSING_REFERENCE:
            message = f"{message}; {missing}"
        text = "%d samples without a judgement (%d so far): %s: %s"
        _log.warning(text, count, _counted[reason], reason, message)
