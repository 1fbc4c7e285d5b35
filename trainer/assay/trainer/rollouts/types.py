"""What the parts of a rollout hand to one another: plain values, without tensors or network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from assay.clients import Result
from assay.clients.judging.verdicts import Verdict
from assay.trainer.engines.types import Request, Response

Place = tuple[int, int]
"""Number of the draw, and index within its group: what names a rollout of a step."""


@dataclass(frozen=True, slots=True)
class PolicyTurn:
    """One turn of the policy within a response that is a dialogue.

    Attributes:
        start: its first token in the response's ids.
        end: one past its last.
        text: decoded without special tokens.
        truncated: cut at max_new_tokens.
        verdict: of a verification, what it says, as far as it is; None for an attempt.
        result: of an attempt, a judgement or a fault; None for a verification, and where it is not
            finished.
        correct_probability: of a verification, how sure the policy is that the attempt is right, in
            [0, 1]; None where it was not asked, and for an attempt.
        finished: false where it goes on in the next step.
    """

    start: int
    end: int
    text: str
    truncated: bool
    verdict: Verdict | None = None
    result: Result | None = None
    correct_probability: float | None = None
    finished: bool = True


@dataclass(frozen=True, slots=True)
class Rollout:
    """One response with what came of it.

    Attributes:
        request: what was asked for.
        response: what was answered; a dialogue with all that was said after the prompt.
        result: a judgement or a fault; of a dialogue the first attempt's fault, else the last
            attempt's result.
        policy_step: optimizer steps that the policy had made when it answered, or when it drew the
            last tokens.
        turns: of a dialogue; empty for a response of one turn. What lies between them is not the
            policy's.
    """

    request: Request
    response: Response
    result: Result
    policy_step: int
    turns: tuple[PolicyTurn, ...] = ()

    @property
    def results(self) -> list[Result]:
        """All that was judged of it: of a dialogue its attempts."""
        own = [turn.result for turn in self.turns if turn.result is not None]
        return own or [self.result]

    @property
    def length(self) -> int:
        """Tokens that the policy wrote."""
        return _length(self)

    @property
    def truncated(self) -> bool:
        """Cut at max_new_tokens."""
        return self.response.truncated


@dataclass(frozen=True, slots=True)
class Remote:
    """What a process knows of a rollout whose tokens and texts are with another one.

    Attributes:
        request: what was asked for.
        result: of a judgement the reward, the verdict, and by how much two orders differ; of a
            fault the reason.
        policy_step: as the rollout's.
        length: tokens that the policy wrote.
        truncated: cut at max_new_tokens.
        holder: the process that has the rollout.
        facts: what its Talk says of it; see Talk.facts.
    """

    request: Request
    result: Result
    policy_step: int
    length: int
    truncated: bool
    holder: int
    facts: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A response that goes on in the next step: as a whole neither judged nor a fault.

    Attributes:
        request: what was asked for.
        response: as far as it is.
        policy_step: optimizer steps that the policy had made when it drew the last tokens.
        turns: of a dialogue, those that were begun; empty for a response of one turn.
    """

    request: Request
    response: Response
    policy_step: int
    turns: tuple[PolicyTurn, ...] = ()

    @property
    def length(self) -> int:
        """Tokens that the policy wrote."""
        return _length(self)


def _length(row: Rollout | Unfinished) -> int:
    if not row.turns:
        return len(row.response.ids)
    return sum(turn.end - turn.start for turn in row.turns)


Known = Rollout | Remote
"""A rollout of the step as every process sees it: whole in the one that holds it."""


def place(rollout: Known | Unfinished) -> Place:
    """What names the rollout among those of its step."""
    return rollout.request.draw.number, rollout.request.index


@dataclass(frozen=True, slots=True)
class SlotRow:
    """What one slot of a truncated rollout brought to a step (T-PPO, arXiv 2506.15050).

    Attributes:
        row: the whole response with what came of it, or as far as it is.
        drawn: how many of its last tokens are of this step, at least 1; in a dialogue with what
            stands before and between the turns that it drew.
    """

    row: Rollout | Unfinished
    drawn: int


Group = tuple[Rollout, ...]
"""All samples of one draw, in the order of their index."""
KnownGroup = tuple[Known, ...]
"""The same where some may be with another process: what every process decides on."""
Rows = np.ndarray[Any, np.dtype[np.float64]]


class Ranks(Protocol):
    """The processes of a run. Every process makes each call, in the same order."""

    @property
    def index(self) -> int:
        """Of this process, from 0."""
        ...

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def gather(self, rows: Rows) -> Rows:
        """The rows (N, K) of all processes, in their order; the same on each. N may differ."""
        ...

    def exchange(self, parcels: Sequence[bytes]) -> list[bytes]:
        """What each process has for this one, in their order.

        Args:
            parcels: for each process, this one included.
        """
        ...


@dataclass(frozen=True, slots=True)
class OneRank:
    """A run of one process."""

    index: int = 0
    count: int = 1

    def gather(self, rows: Rows) -> Rows:
        """The rows."""
        return rows

    def exchange(self, parcels: Sequence[bytes]) -> list[bytes]:
        """The parcel."""
        return list(parcels)


class ScoringRound(Protocol):
    """Judges responses in the background while others are still being generated."""

    def submit(self, request: Request, response: Response) -> None:
        """Sends one response to the services; returns at once."""
        ...

    def results(self) -> list[Result]:
        """Waits for all; results in the order of submission. Called once, after the last submit."""
        ...


@dataclass(slots=True)
class Collected:
    """The groups that one step trains on.

    Attributes:
        groups: this process's share, whole groups; empty where there are slot_rows.
        judged: every rollout that was judged for this step over all processes, also of groups that
            were dropped; for metrics and samples. Whole where this process drew it.
        metrics: keep_rate, rounds, surplus, ...; numbers by name.
        generate_s: seconds spent generating.
        wait_s: seconds that the step waited for judgements after the last response was there.
        slot_rows: this process's share of a truncated rollout; None where responses are whole.
        left_out: rollouts of the groups none of whose tokens train in this step, while their
            rewards count for their group.
        notes: what a method's source found out about this process's rollouts, by the method's name.
        continued: what became of the responses that were continued from others to value them, over
            all processes; they are no rollouts of the step.
        surveyed: what became of the responses that told the choice of problems before the step,
            over all processes; they are no rollouts of it either.
        blocked_s: seconds that the step waited for responses, where they are drawn beside it; None
            where the step generates.
    """

    groups: list[Group]
    judged: Sequence[Known]
    metrics: dict[str, float] = field(default_factory=dict)
    generate_s: float = 0.0
    wait_s: float = 0.0
    slot_rows: list[SlotRow] | None = None
    left_out: frozenset[Place] = frozenset()
    notes: dict[str, Any] = field(default_factory=dict)
    continued: Sequence[Result] = ()
    surveyed: Sequence[Result] = ()
    blocked_s: float | None = None

    @property
    def held(self) -> list[Rollout]:
        """The judged rollouts that this process drew."""
        return [rollout for rollout in self.judged if isinstance(rollout, Rollout)]

    @property
    def results(self) -> list[Result]:
        """All that the services were asked for this step, over all processes."""
        return [*(rollout.result for rollout in self.judged), *self.continued, *self.surveyed]

    @property
    def rows(self) -> list[Rollout | Unfinished]:
        """This process's responses, in the order of the batch."""
        if self.slot_rows is not None:
            return [slot_row.row for slot_row in self.slot_rows]
        return [rollout for group in self.groups for rollout in group]


Then = Callable[[Collected], None]


def nothing_more(_collected: Collected) -> None:
    """They are as they are to be."""


class Source(Protocol):
    """Where a step's groups come from: a Collector, or one of its kind."""

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """Groups, or slot_rows, for one step.

        If it raises, the source is as it was before the call.

        Args:
            policy_step: optimizer steps that the policy has made.
            then: what else is to be done with them; may raise too.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs; every process calls it, and the first writes."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes up where `state_dict` was asked."""
        ...
