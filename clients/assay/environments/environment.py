"""The class that an environment is, and what its methods may return.

    class Sums(Environment):
        def reset(self, row):
            self.total = row["total"]
            return row["prompt"]

        @tool
        def add(self, a: int, b: int) -> str:
            \"\"\"Adds two numbers.

Args:
                a: the first.
                b: the second.
            \"\"\"
            return str(a + b)

        def reward(self):
            return float(str(self.total) in self.last.answer)

Each method may be asynchronous; one that is not runs in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from assay.clients.types import Fault, Item, Judgement, Result
from assay.environments.endings import Ending
from assay.environments.types import EpisodeMessage, Reply, ToolCall

Row = Mapping[str, Any]
"""A row of the data: `prompt`, `reference` and whatever the environment needs."""
F = TypeVar("F", bound=Callable[..., Any])
MARK = "__assay_tool__"


class ToolError(Exception):
    """A tool refuses a call: its text is the answer to the policy, and the episode goes on."""


class EpisodeFault(Exception):
    """Something of ours broke: the episode ends, and nothing of it trains."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class BudgetSpent(Exception):
    """The policy's programs used up what they had: the episode ends, and its reward counts."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers, where a text is not all.

    Attributes:
        text: for the policy.
        reward: of the turn that called, on itself; several calls' add up.
        done: the episode ends after this turn.
        facts: for the record; JSON's values.
    """

    text: str
    reward: float | None = None
    done: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proof:
    """A scripted episode with a known end: how an environment proves itself at the start.

    Attributes:
        turns: what the policy says, in order; `ToolCall`s or the text of an answer.
        reward: that it must earn, within 1e-6.
        ending: that it must have.
    """

    row: Row
    turns: Sequence[ToolCall | Sequence[ToolCall] | str]
    reward: float
    ending: Ending = Ending.ANSWERED


class Services(Protocol):
    """What an environment asks: the reward services, under the run's verifier and labels."""

    async def score(self, item: Item) -> Result:
        """Judges one item, by the run's verifier if it names none; a failed call is a fault."""
        ...


def tool(method: F) -> F:
    """Marks a method as a tool: its name, types and docstring are the schema."""
    setattr(method, MARK, True)
    return method


@dataclass(frozen=True, slots=True)
class NoSettings:
    """Of an environment without settings."""


class Environment:
    """A world for one episode; each episode has an instance of its own.

    Attributes:
        name: as in the entry point.
        Settings: a frozen dataclass of its settings, each with a default.
        repeatable: what tools answer follows from the row and the calls before: then samples of one
            row may share tool results (see cache.py), and a record can be branched.
        state_read_by: who reads what tools change: "nobody" (each call is on its own), "tools"
            (later calls), "all" (turn() and reward() too). With less than "all" a call whose answer
            is shared may never be run.
        needs: columns that each row must have, not empty; "a|b" for one of two.
        settings: of this episode.
        shared: what `open` yielded.
        services: the reward services; None where nobody gave any.
        row: of this episode.
        last: the policy's latest turn; of the first speaker where there are several agents.
    """

    name: ClassVar[str] = ""
    Settings: ClassVar[type[Any]] = NoSettings
    repeatable: ClassVar[bool] = False
    state_read_by: ClassVar[Literal["nobody", "tools", "all"]] = "all"
    needs: ClassVar[tuple[str, ...]] = ("prompt", "reference")

    def __init__(
        self, settings: Any = None, shared: Any = None, services: Services | None = None
    ) -> None:
        self.settings = self.Settings() if settings is None else settings
        self.shared = shared
        self.services = services
        self.row: Row = {}
        self.last = Reply("")

    @classmethod
    @contextmanager
    def open(cls, settings: Any) -> Iterator[Any]:
        """What all episodes share, such as a client or an index, for the length of a run.

        Raises:
            ConfigError: it cannot be had; the message says what to do.
        """
        del settings
        yield None

    @classmethod
    def proofs(cls, settings: Any) -> Sequence[Proof]:
        """Scripted episodes that must end as they say; see selftest.py."""
        del settings
        return ()

    def reset(self, row: Row) -> Any:
        """Begins the episode: a text for the policy, or an `Observation`; both may be awaited."""
        return str(row["prompt"])

    def row_tools(self) -> Sequence[Mapping[str, Any]]:
        """Schemas of tools that the row brings, {"type": "function", "function": {...}} each."""
        return ()

    def call(self, call: ToolCall) -> Any:
        """Answers a call of a tool that is no method, as a tool does; by default refuses it."""
        raise ToolError(f"there is no tool {call.name[:80]!r} among these")

    def turn(self, turn: Reply) -> Any:
        """What follows a turn without calls: an `Observation`, a text, or None for the end.

        An observation without messages ends the episode too; it carries the turn's reward.
        """
        del turn
        return None

    def answered(self, turn: Reply, answers: tuple[EpisodeMessage, ...]) -> Any:
        """What follows a turn with calls, once they are answered.

        None: the answers, in the same conversation. Otherwise as `turn`; an observation then holds
        what of the answers is to be read, and may begin another context.
        """
        del turn, answers

    def reward(self) -> Any:
        """What the episode earned, asked once, at its end.

        Returns:
            A number, a `Judgement`, a `Fault`, a `Result`, or any of these by agent; may be
            awaited. By default the services judge the last answer against the row's reference.
        """
        written = self.last.answer or ("" if self.last.calls else self.last.text)
        return self.judged(written)  # a call is no answer

    async def judged(self, response: str, **fields: Any) -> Result:
        """The services' result on a response to this row; `fields` replace those of the item.

        Raises:
            RuntimeError: the environment has no services.
        """
        if self.services is None:
            raise RuntimeError(f"the environment {self.name!r} was given no reward services")
        given = {"reference": self.row.get("reference"), "prompt": str(self.row.get("prompt", ""))}
        return await self.services.score(Item(response=response, **{**given, **fields}))

    def close(self) -> Any:
        """Frees what the episode holds, however it ended. Called once."""


Earned = float | Judgement | Fault | Result


EMPTY: tuple[Any, ...] = (None, "", [], {})
"""What a column holds that a row does not have."""


def lacking(needs: Sequence[str], row: Row) -> str:
    """Of `Environment.needs`, the first that a row lacks or has empty; "" for none."""
    for need in needs:
        if all(row.get(name) in EMPTY for name in need.split("|")):
            return need
    return ""
