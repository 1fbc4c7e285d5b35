"""What an adapter does with a fault: one word for it in every adapter, and what it may not be.

Whatever the policy: the client tries again first (see `assay.clients.core.retry`), and no fault
ever becomes a number that trains. What a trainer makes of each policy stands on its page under
docs/trainers/, and was read in that trainer's source.
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
_told: Counter[str] = Counter()


class FaultPolicy(StrEnum):
    """What becomes of a sample without a judgement.

    Attributes:
        DROP: the sample leaves its batch, or its group does and another is drawn.
        RAISE: a `FaultError`, after the client's retries; the trainer stops, or tries again.
        MASK: the sample keeps its place, counts in no group's baseline and has no gradient.
    """

    DROP = "drop"
    RAISE = "raise"
    MASK = "mask"


class FaultError(AssayError):
    """A sample has no judgement, and the policy is to raise.

    Attributes:
        item_id: which item.
        fault: why.
    """

    def __init__(self, item_id: str, fault: Fault) -> None:
        super().__init__(f"no judgement of item {item_id!r}: {fault.reason}: {fault.message}")
        self.item_id = item_id
        self.fault = fault

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles: Ray and multiprocessing carry it to whoever waits."""
        return type(self), (self.item_id, self.fault)


def read_policy(value: str, allowed: Iterable[FaultPolicy], peer: str) -> FaultPolicy:
    """The policy that a setting names, where the trainer has a way to follow it.

    Args:
        value: "drop", "raise" or "mask".
        allowed: the policies that the trainer can follow.
        peer: the trainer's name, for the text of the error.

    Raises:
        ConfigError: it names none, or one that this trainer cannot follow.
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
    """("fault", its reason) or ("verdict", the verdict): under what a result is counted."""
    match result.outcome:
        case Fault(reason=reason):
            return "fault", reason
        case judgement:
            return "verdict", judgement.verdict


def explanation_of(result: Result) -> str:
    """Why, in one line: a fault's message, or a judgement's explanation."""
    match result.outcome:
        case Fault(message=message):
            return message
        case judgement:
            return judgement.explanation


def tell_faults(results: Iterable[Result], missing: str = "") -> None:
    """Says on the log why samples get no reward: trainers that take NaN or None for it are mute.

    The first sample of a reason is told, and then whenever as many more have come as there were
    before: a run whose server is gone does not fill its log.

    Args:
        results: of one call.
        missing: what to do where a reference is missing, if the adapter knows.
    """
    faults = [result.fault for result in results if result.fault]
    for reason, count in Counter(fault.reason for fault in faults).items():
        before, _told[reason] = _told[reason], _told[reason] + count
        if before.bit_length() == _told[reason].bit_length():
            continue
        said = next(fault.message for fault in faults if fault.reason == reason)
        if missing and reason == Reason.MISSING_REFERENCE:
            said = f"{said}; {missing}"
        text = "%d samples without a judgement (%d so far): %s: %s"
        _log.warning(text, count, _told[reason], reason, said)
