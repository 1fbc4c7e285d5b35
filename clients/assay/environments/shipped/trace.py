"""`trace`: the policy goes along a logged trace, and is put back on it where it leaves it.

Semi-online RL (UI-S1, arXiv 2509.11543). A turn that does what was logged is followed by what was
logged behind it, in the policy's own conversation; one that does something else by the same in a
new conversation, in which the logged calls stand in its place, `patches` times; then it is over:

    r_t = form f + kind f k + exact f k e                                          (8)

with f, k and e 1 where the turn can be read, calls the same tools, and with the same arguments.
`method.turn_credit` has the rest: reach = "context" for t_end and discount for gamma (9),
turn_weight for omega and episode_weight = 1 (12). docs/use/environments-shipped.md has the rows.

1. A patch has no thought: the paper's choice. It is in no loss, as all that others wrote.
2. In a patched conversation the policy's earlier turns stand without their thoughts. [ours]
3. Calls are compared as structures; a text is right where a text was logged. [ours]
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.clients.types import Judgement
from assay.environments.environment import Environment, Proof, Row
from assay.environments.types import EpisodeMessage, Observation, Reply, ToolCall
from assay.kit.judgements import Component
from assay.kit.tool_calls import read_tool_call

ANY = -1


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """Settings of `trace`; the paper's, but for `finish`.

    Attributes:
        patches: how often the policy is put back on the trace; -1 for always.
        form: of a turn that can be read.
        kind: beside it, of one that calls the same tools.
        exact: beside both, of one with the same arguments.
        finish: what a trace earns at the end that needed no patch; ours.
    """

    patches: int = 1
    form: float = 0.1
    kind: float = 0.4
    exact: float = 0.5
    finish: float = 0.0

    def __post_init__(self) -> None:
        if self.patches < ANY:
            raise ValueError("patches is at least 0, or -1 for any number")
        if min(self.form, self.kind, self.exact, self.finish) < 0:
            raise ValueError("form, kind, exact and finish are at least 0")


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A logged turn of the assistant.

    Attributes:
        calls: that it made; none for a text.
        text: that it wrote beside them.
        following: what was read next, up to the next step.
    """

    calls: tuple[ToolCall, ...]
    text: str
    following: tuple[EpisodeMessage, ...]


def trace_of(row: Row) -> tuple[tuple[EpisodeMessage, ...], tuple[TraceStep, ...]]:
    """What the first turn reads, and the logged turns.

    Raises:
        ValueError: `messages` are no conversation of OpenAI's form with a turn of the assistant.
    """
    given = row.get("messages")
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ValueError("the row's messages are no list")
    head: list[EpisodeMessage] = []
    steps: list[TraceStep] = []
    for one in given:
        message = _message(one)
        if message.role == "assistant":
            steps.append(TraceStep(message.calls, message.content, ()))
        elif not steps:
            head.append(message)
        else:
            last = steps[-1]
            steps[-1] = TraceStep(last.calls, last.text, (*last.following, message))
    if not head or not steps:
        raise ValueError("the row's messages are no request and a turn of the assistant")
    if not all(step.following for step in steps[:-1]):
        raise ValueError("two turns of the assistant follow one another in the row's messages")
    return tuple(head), tuple(steps)


def marks_of(turn: Reply, logged: Sequence[ToolCall]) -> tuple[bool, bool, bool]:
    """f, k and e of a turn: it can be read, calls the logged tools, with the logged arguments."""
    reads = not turn.void and not turn.truncated and all(call.name for call in turn.calls)
    kind = reads and [call.name for call in turn.calls] == [call.name for call in logged]
    pairs = zip(turn.calls, logged, strict=True) if kind else ()
    exact = kind and all(_written(a.arguments) == _written(b.arguments) for a, b in pairs)
    return reads, kind, exact


class TraceEnvironment(Environment):
    """A logged trace, gone along by the policy."""

    name = "trace"
    needs = ("messages",)
    Settings = TraceSettings
    settings: TraceSettings

    @classmethod
    def proofs(cls, settings: TraceSettings) -> Sequence[Proof]:
        """The logged turns earn what they must; another turn is patched as often as it may be."""
        calls = [ToolCall("press", {"at": n}) for n in (1, 2)]
        messages: list[Mapping[str, Any]] = [{"role": "user", "content": "Press 1, then 2."}]
        for call in calls:
            function = {"name": call.name, "arguments": call.arguments}
            messages.append({"role": "assistant", "tool_calls": [{"function": function}]})
            messages.append({"role": "tool", "content": "pressed"})
        messages.append({"role": "assistant", "content": "Done."})
        row = {"messages": messages}
        taken = 3 if settings.patches == ANY else min(3, settings.patches + 1)
        wrong = [ToolCall("press", {"at": 9})] * taken
        return [Proof(row, [*calls, "Done."], settings.finish), Proof(row, wrong, 0.0)]

    def reset(self, row: Row) -> Observation:
        """What stands before the first logged turn; ValueError for a row without one."""
        self._said, self._steps = trace_of(row)
        self._at = self._patched = self._kept = 0
        return Observation(self._said)

    def row_tools(self) -> Sequence[Mapping[str, Any]]:
        """The row's `tools`."""
        return list(self.row.get("tools") or ())

    def call(self, call: ToolCall) -> str:
        """Nothing is run: what was logged follows."""
        del call
        return ""

    def turn(self, turn: Reply) -> Observation:
        """What was logged behind the turn."""
        return self._follow(turn)

    def answered(self, turn: Reply, answers: tuple[EpisodeMessage, ...]) -> Observation:
        """What was logged behind the turn."""
        del answers
        return self._follow(turn)

    def reward(self) -> Judgement:
        """Whether the trace was gone to its end without a patch, and how much of it."""
        kept = self._kept / len(self._steps)
        parts = (
            Component("trace", float(kept == 1.0), self.settings.finish),
            Component("progress", kept, 0.0),
        )
        return Judgement.composed("correct" if kept == 1.0 else "incorrect", parts)

    def _follow(self, turn: Reply) -> Observation:
        step, weights = self._steps[self._at], self.settings
        reads, kind, exact = marks_of(turn, step.calls)
        reward = weights.form * reads + weights.kind * kind + weights.exact * exact
        self._at += 1
        if exact and not self._patched:
            self._kept += 1
        may_go_on = exact or weights.patches == ANY or self._patched < weights.patches
        if self._at == len(self._steps) or not may_go_on:
            return Observation((), reward=reward)
        text, calls = (turn.answer, turn.calls) if exact else ("", step.calls)
        if not exact and not calls:
            text = step.text
        self._said += (EpisodeMessage("assistant", text, calls), *step.following)
        if exact:
            return Observation(step.following, context=self._context, reward=reward)
        self._patched += 1
        return Observation(self._said, context=self._context, reward=reward)

    @property
    def _context(self) -> str:
        return f"patch-{self._patched}" if self._patched else ""


def _message(given: Any) -> EpisodeMessage:
    if not isinstance(given, Mapping) or not isinstance(given.get("role"), str):
        raise ValueError("a message of the row has no role")
    content = given.get("content") or ""
    if not isinstance(content, str):
        raise ValueError("a message's content in the row is no text")
    calls = tuple(ToolCall(*read_tool_call(one)) for one in given.get("tool_calls") or ())
    name, call_id = given.get("name") or "", given.get("tool_call_id") or ""
    return EpisodeMessage(given["role"], content, calls, str(name), str(call_id))


def _written(arguments: Any) -> str:
    """Arguments as text: the same for equal structures, numbers by value."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return str(arguments)
    return json.dumps(_plain(arguments or {}), sort_keys=True, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
