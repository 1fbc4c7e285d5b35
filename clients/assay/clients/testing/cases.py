"""The common parts of the conformance checks: cases, a client, a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.clients.reward import RewardClient
from assay.clients.testing.report import Report
from assay.clients.types import Item, Message, Parameter, Reference, Result, Turn, VerifierInfo
from assay.kit.reasons import Reason

# Faults that are the verifier's or the server's own, whatever the item was.
OURS = frozenset(
    str(reason)
    for reason in (
        Reason.VERIFIER_FAILED,
        Reason.VERIFIER_UNHEALTHY,
        Reason.WORKER_DIED,
        Reason.INTERNAL,
        Reason.ITEM_TIMEOUT,
        Reason.DEADLINE_EXCEEDED,
        Reason.MISSING_RESULT,
        Reason.UNREACHABLE,
    )
)
_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class Case:
    """An item, and its expected outcome.

    Attributes:
        verdict: expected; empty for any.
        reward: expected; None for any.
        fault: the reason of the expected fault.
        response_token_count: None: unknown.
        truncated: the response was cut at the generation limit.
        turns: the dialogue, instead of a response, which then stays empty.
        name: for the report; empty: the response's start.
    """

    response: str
    reference: Reference | None = None
    verdict: str = ""
    reward: float | None = None
    fault: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    prompt: str | Sequence[Message] = ()
    response_token_count: int | None = None
    truncated: bool = False
    name: str = ""
    turns: Sequence[Turn] = ()

    @property
    def wanted(self) -> str:
        """The expected outcome, in words."""
        return f"the fault {self.fault}" if self.fault else self.verdict or "judged"

    def item(self, verifier: str) -> Item:
        """The item for a verifier."""
        return Item(
            None if self.turns else self.response,
            reference=self.reference,
            verifier=verifier,
            prompt=self.prompt,
            parameters=self.parameters,
            response_token_count=self.response_token_count,
            truncated=self.truncated,
            turns=self.turns,
        )


@dataclass(frozen=True, slots=True)
class Kit:
    """The context of every check. `additive`: its rewards are sums of weight times score.

    `item_timeout_s` limits one judgement.
    """

    client: RewardClient
    info: VerifierInfo
    cases: tuple[Case, ...]
    report: Report
    additive: bool
    item_timeout_s: float

    def score(self, items: Sequence[Item]) -> list[Result]:
        """Scores items in one call; a failed call is a fault of each."""
        return self.client.score(items)


def outcome_text(result: Result) -> str:
    """An outcome in words."""
    if result.fault is not None:
        return f"the fault {result.fault.reason}: {clip(result.fault.message, 200)}"
    judgement = result.judgement
    verdict = judgement.verdict if judgement else "nothing"
    why = judgement.explanation if judgement else ""
    return f"the verdict {verdict!r}, reward {result.reward} ({clip(why, 120)})"


def clip(text: str, limit: int = _SHOWN_CHARS) -> str:
    """The text on one line, cut to a length."""
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 3] + "..."
