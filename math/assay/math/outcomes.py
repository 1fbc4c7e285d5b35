"""What becomes of a response: a judgement or a fault, never both, never a made-up number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn, TypeVar

Verdict = Literal["correct", "incorrect", "unparsed"]
Default = TypeVar("Default")

# Reasons of faults, in the words of the service's lexicon (docs/reference/errors.md).
MISSING_REFERENCE = "MISSING_REFERENCE"
UNUSABLE_REFERENCE = "UNUSABLE_REFERENCE"
UNSUPPORTED_INPUT = "UNSUPPORTED_INPUT"
ITEM_TIMEOUT = "ITEM_TIMEOUT"
WORKER_DIED = "WORKER_DIED"
VERIFIER_FAILED = "VERIFIER_FAILED"


class AskFailedError(Exception):
    """The symbolic tier gave no answer. Inside this package; users get its fault as a value.

    Attributes:
        fault: why.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(reason, message)


class FaultError(ValueError):
    """A number was asked of a fault.

    Attributes:
        fault: why there is none.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(
            f"there is no judgement, and a fault is not a zero: {fault.reason}: {fault.message}"
        )
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Judgement:
    """An opinion about a response.

    Attributes:
        verdict: `correct`, `incorrect`, or `unparsed` where no answer was found.
        answer: the answer as it stands in the response; None where none was found.
        how: the rule that found it, one of `extraction.MODES`; empty where none was found.
        tier: who decided: text, exact, structural, numeric, symbolic, limits or undone-work; empty
            where no answer was found.
        explanation: why, in one line, for people. It may hold the reference.
        signs: what is worth a look, in kebab-case: `undone-work` (the answer is a computation that
            is left to do), `tiers-disagree` (only with a cross-check).
    """

    verdict: Verdict
    answer: str | None
    how: str
    tier: str
    explanation: str
    signs: tuple[str, ...] = ()

    @property
    def correct(self) -> bool:
        """Whether the answer is right."""
        return self.verdict == "correct"

    @property
    def reward(self) -> float:
        """1.0 for a right answer, 0.0 for any other."""
        return 1.0 if self.verdict == "correct" else 0.0

    def reward_or(self, default: Default) -> float | Default:
        """The reward; a fault gives the default."""
        del default
        return self.reward


@dataclass(frozen=True, slots=True)
class Fault:
    """No judgement. It says nothing about the response.

    Attributes:
        reason: MISSING_REFERENCE, UNUSABLE_REFERENCE (nothing can be read from it) or
            UNSUPPORTED_INPUT (a response or reference is no text): correct the data row;
            ITEM_TIMEOUT: the time was over; WORKER_DIED, VERIFIER_FAILED: ours.
        message: what happened, in one line.
    """

    reason: str
    message: str

    @property
    def correct(self) -> NoReturn:
        """There is no answer to this.

        Raises:
            FaultError: always.
        """
        raise FaultError(self)

    @property
    def reward(self) -> NoReturn:
        """There is none.

        Raises:
            FaultError: always.
        """
        raise FaultError(self)

    def reward_or(self, default: Default) -> float | Default:
        """The default, for callers that have a value for "no opinion", such as None or NaN."""
        return default


Outcome = Judgement | Fault
