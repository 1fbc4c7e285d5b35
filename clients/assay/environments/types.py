"""The values that an environment and a policy exchange. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.clients.types import Result
from assay.environments.endings import Ending
from assay.kit.tool_calls import ToolCall as ToolCall  # noqa: PLC0414

POLICY = "policy"
"""The agent of an environment that has only one."""


def role_of(agent: str) -> str:
    """An agent's role: its name up to "#". "solver#2" and "solver#3" are samples of one role."""
    return agent.partition("#")[0]


@dataclass(frozen=True, slots=True)
class EpisodeMessage:
    """One message of a conversation.

    Attributes:
        role: "system", "user", "assistant" or "tool".
        calls: of an assistant's message.
        name: of the tool whose result this is.
        call_id: of the call that it answers.
    """

    role: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    name: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the policy wrote in one turn.

    Attributes:
        text: all of it, without special tokens.
        calls: that were read from it, in order.
        answer: its text without calls and thoughts.
        void: neither a call nor an answer (SimpleTIR, arXiv 2509.02479).
        truncated: cut at a limit of tokens.
        agent: who wrote it; filled in by the episode.
        tokens: how many the policy wrote; 0 where unknown.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    answer: str = ""
    void: bool = False
    truncated: bool = False
    agent: str = POLICY
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent reads next, and then writes a turn to.

    Attributes:
        messages: new ones, at least one; of a context's first observation, all that it begins with.
        agent: who writes the next turn; see `role_of`.
        context: names a conversation of that agent. A new name begins an empty conversation: a
            summary or a memory takes the place of what was said (SUPO, MemSearcher).
        reward: of the turn just written, on itself; None for none.
        tools: names of the tools offered in a conversation that begins; None for all.
    """

    messages: tuple[EpisodeMessage, ...]
    agent: str = POLICY
    context: str = ""
    reward: float | None = None
    tools: tuple[str, ...] | None = None

    @classmethod
    def user(cls, text: str, **rest: Any) -> Observation:
        """An observation of one message of the user."""
        return cls((EpisodeMessage("user", text),), **rest)


@dataclass(frozen=True, slots=True)
class EpisodeOutcome:
    """How an episode ended.

    Attributes:
        result: a judgement, or a fault: then nothing of the episode may train.
        rewards: by agent, where each earns its own; None for a fault. Empty: all earn the result's.
        turn_rewards: of each turn in order, on itself; None for none.
        turns: how many were written.
        seconds: from the beginning to the end.
    """

    ending: Ending
    result: Result
    rewards: Mapping[str, float | None] = field(default_factory=dict)
    turn_rewards: Sequence[float | None] = ()
    turns: int = 0
    seconds: float = 0.0

    @property
    def trains(self) -> bool:
        """Whether the episode goes into the batch."""
        return self.ending.trains and self.result.fault is None

    def reward_of(self, agent: str) -> float | None:
        """What an agent's turns earn at the end; None for a fault."""
        if self.result.fault is not None:
            return None
        return self.rewards.get(agent, self.result.reward)
