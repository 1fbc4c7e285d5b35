"""The values that go into a reward client and come out of it, as frozen dataclasses.

For a fault `Result.reward` is None. The Python type of a reference decides its kind: a text is one
answer, a list of texts several right answers, every other JSON value data whose shape the verifier
documents. `Data(["a", "b"])` marks a list of texts as data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.api.execution.v1 import execution_pb2
from assay.kit.judgements import Appeal, Component, Hearing, Judgement, Span
from assay.kit.reliability import ErrorRate, Reliability
from assay.kit.tool_calls import ToolCall as ToolCall  # noqa: PLC0414
from assay.kit.tool_calls import read_tool_call

__all__ = [
    "Anchor",
    "Appeal",
    "Component",
    "Data",
    "ErrorRate",
    "Fault",
    "Hearing",
    "Item",
    "Judgement",
    "Message",
    "Parameter",
    "ParameterInfo",
    "Reference",
    "Reliability",
    "Result",
    "ServerInfo",
    "ServerLimits",
    "Span",
    "ToolCall",
    "Turn",
    "VerifierInfo",
    "as_json",
    "is_texts",
    "tool_calls_of",
]

Parameter = bool | int | float | str | Sequence[str]
Message = Mapping[str, str]


JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A response to beat, as the reference of a pairwise judge."""

    response: str


@dataclass(frozen=True, slots=True)
class Data:
    """A structured reference (boxes, a puzzle's state, a JSON schema): any JSON value."""

    value: Any


Reference = (
    str
    | Sequence[Any]
    | Mapping[str, Any]
    | bool
    | int
    | float
    | execution_pb2.TestSuite
    | Anchor
    | Data
)


def is_reference(value: object) -> bool:
    """Whether a value has the type of a reference; its parts are not checked."""
    if isinstance(value, bytes | bytearray):
        return False
    if value is None or isinstance(value, str | bool | int | float | Mapping | Sequence):
        return True
    return isinstance(value, Anchor | Data | execution_pb2.TestSuite)


def is_texts(value: object) -> bool:
    """Whether a reference is a sequence of right answers; other sequences are data."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(text, str) for text in value)
    )


def as_json(value: object, where: str = "the reference") -> JsonValue:
    """A value as plain JSON types: tuples become lists, mappings dicts.

    Raises:
        ValueError: JSON cannot write a part; the text names the place, beginning with `where`.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value  # type: ignore[return-value]  # known by its exact type
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}; JSON has finite numbers only")
        return float(value)
    if isinstance(value, bool | int | str):
        # Of an enum or another subclass: the plain value is what JSON would write.
        return int(value) if isinstance(value, int) else str.__str__(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{where} has the key {key!r:.40}; keys of data are texts")
        return {key: as_json(part, f"{where}[{key!r:.40}]") for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [as_json(part, f"{where}[{index}]") for index, part in enumerate(value)]
    raise ValueError(
        f"{where} is {kind.__name__}; data holds None, bool, numbers, texts, lists and mappings"
    )


def tool_calls_of(values: Iterable[object] | None) -> tuple[ToolCall, ...]:
    """The calls of a message's `tool_calls`, in any shape of `assay.kit.tool_calls`.

    What is no call is one without a name, which is never right: it was meant as one.
    """
    found = []
    for value in values or ():
        try:
            found.append(value if isinstance(value, ToolCall) else ToolCall(*read_tool_call(value)))
        except ValueError:
            found.append(ToolCall(""))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue; `from_policy` marks a turn that the policy produced.

    The role is "system", "user", "assistant" or "tool". `tool_calls` came apart from the content.
    """

    role: str
    content: str
    from_policy: bool = False
    tool_calls: Sequence[ToolCall] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to score: a response to a prompt, and its reference.

    Attributes:
        response: the policy's text without the prompt, which may be empty. None when `turns` are
            given.
        reference: one answer (a text), several (a list of texts), data (see `Data`), tests of a
            program, or an `Anchor`.
        task: routes an item that names no verifier.
        prompt: one text, or chat messages with "role" and "content".
        id: at most 256 bytes. Empty: the client numbers it.
        group_id: shared by the samples of one prompt, which travel in one message.
        truncated: the response was cut at the generation limit.
        timeout_s: limit of execution, without the queue. None: the server's default.
        tool_calls: calls that came apart from the response; they are what was called, and no text
            is searched for others. `tool_calls_of` reads those of a message.
        labels: texts by name, to find the item by afterwards: run, step, model. At most 16; they
            change no judgement.

    Raises:
        TypeError: A field has a type that no item can have.
    """

    response: str | None = None
    reference: Reference | None = None
    verifier: str = ""
    task: str = ""
    prompt: str | Sequence[Message] = ()
    id: str = ""
    group_id: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    turns: Sequence[Turn] = ()
    response_token_count: int | None = None
    truncated: bool = False
    timeout_s: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    tool_calls: Sequence[ToolCall] = ()

    def __post_init__(self) -> None:
        if self.response is not None and not isinstance(self.response, str):
            raise TypeError(
                f"Item.response is {type(self.response).__name__}; pass the policy's text"
            )
        names: tuple[object, ...] = (self.verifier, self.task, self.id, self.group_id)
        for value in names:
            if not isinstance(value, str):
                self._refuse_names()
        if self.labels:
            self._check_labels()
        if not is_reference(self.reference):
            kind = type(self.reference).__name__
            raise TypeError(
                f"Item.reference is {kind}; pass a text, texts, data, a TestSuite or an Anchor"
            )

    def _check_labels(self) -> None:
        if not isinstance(self.labels, Mapping):
            raise TypeError(f"Item.labels is {type(self.labels).__name__}; pass texts by name")
        given: Mapping[Any, Any] = self.labels  # whatever its annotation promises
        for name, value in given.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TypeError(f"Item.labels has {name!r:.40}: {value!r:.40}; pass texts by name")

    def _refuse_names(self) -> None:
        for name in ("verifier", "task", "id", "group_id"):
            kind = type(getattr(self, name))
            if not issubclass(kind, str):
                raise TypeError(f"Item.{name} is {kind.__name__}; pass a text")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why there is no judgement. It is no evidence about the response: never train on it.

    Attributes:
        reason: for programs; from the lexicon in docs/reference/errors.md, or a verifier's own.
        message: for people.
        code: of gRPC: "UNAVAILABLE", "DEADLINE_EXCEEDED", ...
    """

    reason: str
    message: str
    code: str = "UNKNOWN"
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one item.

    Attributes:
        id: the item's id, or the number that the client gave it.
        queue_s: seconds in the server's queue.
        execution_s: seconds of judging; 0 from the cache.
        from_cache: computed before, or for an equal item in flight.
        labels: the item's, over those of the client; with a fault too.
    """

    id: str
    outcome: Judgement | Fault
    queue_s: float = 0.0
    execution_s: float = 0.0
    from_cache: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def judgement(self) -> Judgement | None:
        """The judgement; None for a fault."""
        return self.outcome if isinstance(self.outcome, Judgement) else None

    @property
    def fault(self) -> Fault | None:
        """The fault; None for a judgement."""
        return self.outcome if isinstance(self.outcome, Fault) else None

    @property
    def reward(self) -> float | None:
        """The number that trains; None for a fault."""
        return self.outcome.reward if isinstance(self.outcome, Judgement) else None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits of one call to a server; items without a time-out get the default one."""

    max_items: int
    max_message_bytes: int
    max_item_bytes: int
    default_item_timeout_s: float
    max_item_timeout_s: float


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One parameter of a verifier.

    Attributes:
        type: "bool", "int", "float", "string" or "string_list".
        default: None if the parameter is required.
        allowed_values: for a text; empty for any.
    """

    name: str
    type: str
    default: Parameter | None
    description: str
    allowed_values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class VerifierInfo:
    """One verifier of a server; ListVerifiers in reward.proto documents the fields."""

    name: str
    version: str
    description: str
    tasks: tuple[str, ...]
    min_reward: float
    max_reward: float
    deterministic: bool
    cacheable: bool
    needs_reference: bool
    needs_group: bool
    parameters: tuple[ParameterInfo, ...]
    verdicts: tuple[str, ...]
    is_profile: bool
    reliability: tuple[Reliability, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A server's verifiers, and its limits."""

    verifiers: tuple[VerifierInfo, ...]
    limits: ServerLimits
    version: str

    def find(self, verifier: str, task: str = "") -> VerifierInfo | None:
        """The verifier that judges an item with this verifier and task; None for none."""
        for info in self.verifiers:
            if info.name == verifier or (not verifier and task and task in info.tasks):
                return info
        return None
