"""The values that the parts of a rollout exchange: no tensors, no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from assay.clients import Result
from assay.clients.judging.verdicts import Verdict
from assay.trainer.engines.types import Request, Response

Place = tuple[int, int]
"""(number of the draw, index within its group): names a rollout within a step."""


@dataclass(frozen=True, slots=True)
class PolicyTurn:
    """One turn of the policy within a dialogue.

    Attributes:
        start: its first token in the response's ids.
        end: one past its last.
        text: decoded without special tokens.
        verdict: of a verification, so far; None for an attempt.
        result: of a finished attempt; None otherwise.
        correct_probability: P(attempt is right) in [0, 1] by a verification; None where not asked.
        finished: false where the turn continues in the next step.
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
class ActedTurn:
    """One turn of the policy within an episode.

    Attributes:
        start: its first token in the response's ids.
        end: one past its last.
        context: number of its conversation, from 0.
        agent: who spoke; see assay.environments.types.role_of.
        text: decoded without special tokens.
        void: neither a call of a tool nor an answer.
        calls: of tools.
        refused: of these, those that a tool refused.
        cached: of these, those that another sample's call answered.
        reward: of the turn, on itself; None for none.
        seconds: of tools and of the environment after it.
    """

    start: int
    end: int
    context: int
    agent: str
    text: str
    truncated: bool = False
    void: bool = False
    calls: int = 0
    refused: int = 0
    cached: int = 0
    reward: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Acted:
    """What a rollout that is an episode did (assay.environments).

    The response holds all its conversations one after the other; a conversation that follows
    another one in the row begins with the tokens of its own prompt.

    Attributes:
        environment: its name.
        ending: an assay.environments.Ending.
        turns: in the order of time.
        contexts: the first token of each conversation in the response's ids; the first is 0.
        rewards: by agent, where each earns its own; None for a fault. Empty: all earn the
            rollout's.
        record: the whole episode, as it is kept; JSON's values. See assay.environments.record.
    """

    environment: str
    ending: str
    turns: tuple[ActedTurn, ...]
    contexts: tuple[int, ...] = (0,)
    rewards: Mapping[str, float | None] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One response and its result.

    Attributes:
        response: of a dialogue, everything after the prompt.
        result: of a dialogue the first attempt's fault, else the last attempt's result.
        policy_step: optimizer steps that the policy had made when it drew the last tokens.
        turns: of a dialogue; empty for a response of one turn.
        acted: of an episode, whose first prompt is the request's; None for a response without one.
    """

    request: Request
    response: Response
    result: Result
    policy_step: int
    turns: tuple[PolicyTurn, ...] = ()
    acted: Acted | None = None

    @property
    def results(self) -> list[Result]:
        """Every judged attempt's result."""
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
    """A rollout whose tokens and texts another process holds.

    Attributes:
        result: a reward, verdict and order gap, or a fault's reason.
        length: tokens that the policy wrote.
        holder: the process that has the whole rollout.
        facts: see Talk.facts.
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
    """A response that continues in the next step and has no result yet; see Rollout."""

    request: Request
    response: Response
    policy_step: int
    turns: tuple[PolicyTurn, ...] = ()

    @property
    def length(self) -> int:
        """Tokens that the policy wrote."""
        return _length(self)


def _length(row: Rollout | Unfinished) -> int:
    if isinstance(row, Rollout) and row.acted is not None:
        return sum(turn.end - turn.start for turn in row.acted.turns)
    if not row.turns:
        return len(row.response.ids)
    return sum(turn.end - turn.start for turn in row.turns)


Known = Rollout | Remote
"""A rollout as each process sees it: whole in its holder."""


def place(rollout: Known | Unfinished) -> Place:
    """The rollout's name within its step."""
    return rollout.request.draw.number, rollout.request.index


@dataclass(frozen=True, slots=True)
class SlotRow:
    """What one slot of a truncated rollout adds to a step (T-PPO, arXiv 2506.15050).

    Attributes:
        drawn: how many of the row's last tokens this step added, at least 1; in a dialogue the text
            before and between the drawn turns counts.
    """

    row: Rollout | Unfinished
    drawn: int


Group = tuple[Rollout, ...]
"""All samples of one draw, by index."""
KnownGroup = tuple[Known, ...]
"""A group of which other processes may hold some samples."""
Rows = np.ndarray[Any, np.dtype[np.float64]]


class Ranks(Protocol):
    """The processes of a run. Every process makes each call, in the same order."""

    @property
    def index(self) -> int:
        """This process, from 0."""
        ...

    @property
    def count(self) -> int:
        """All processes."""
        ...

    def gather(self, rows: Rows) -> Rows:
        """The rows (N, K) of all processes, in their order, on each of them; N may differ."""
        ...

    def exchange(self, parcels: Sequence[bytes]) -> list[bytes]:
        """Sends a parcel to each process; returns those for this one, in the processes' order."""
        ...


@dataclass(frozen=True, slots=True)
class OneRank:
    """A run of one process."""

    index: int = 0
    count: int = 1

    def gather(self, rows: Rows) -> Rows:
        """See Ranks."""
        return rows

    def exchange(self, parcels: Sequence[bytes]) -> list[bytes]:
        """See Ranks."""
        return list(parcels)


class ScoringRound(Protocol):
    """Judges responses in the background during generation."""

    def submit(self, request: Request, response: Response) -> None:
        """Sends one response to the services; returns at once."""
        ...

    def results(self) -> list[Result]:
        """Waits for all results, in the order of submission. Called once, after the last submit."""
        ...


@dataclass(slots=True)
class Collected:
    """The groups that one step trains on.

    Attributes:
        groups: this process's share; empty where there are slot_rows.
        judged: every rollout judged for this step on all processes, those of dropped groups
            included; whole in the process that drew it.
        metrics: by name, such as keep_rate.
        generate_s: seconds spent generating.
        wait_s: seconds spent waiting for judgements after the last response.
        slot_rows: this process's share of a truncated rollout; None where responses are whole.
        left_out: rollouts outside of the loss whose rewards count for their group.
        notes: a source's findings about this process's rollouts, by the method's name.
        continued: results of continuations that value rollouts, of all processes.
        surveyed: results of a survey of problems before the step, of all processes.
        blocked_s: seconds spent waiting for background generation; None without it.
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
        """All results of this step, of all processes."""
        return [*(rollout.result for rollout in self.judged), *self.continued, *self.surveyed]

    @property
    def rows(self) -> list[Rollout | Unfinished]:
        """This process's responses, in the order of the batch."""
        if self.slot_rows is not None:
            return [slot_row.row for slot_row in self.slot_rows]
        return [rollout for group in self.groups for rollout in group]


Then = Callable[[Collected], None]


def nothing_more(_collected: Collected) -> None:
    """Leaves them as they are."""


class Source(Protocol):
    """Where a step's groups come from."""

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """Groups, or slot rows, for one step.

        If it raises, the source is as it was before the call.

        Args:
            policy_step: optimizer steps that the policy has made.
            then: called with the result; may raise.

        Raises:
            OutageError: the reward services were away for too long.
            ConfigError: a prompt does not fit the policy's context.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, in plain containers.

        Every process calls it; the first gets what all hold, and writes.
        """
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from a `state_dict`.

        Raises:
            ConfigError: it was of other data, or of settings that do not fit.
        """
        ...
