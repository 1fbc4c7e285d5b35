"""What goes into a client and what comes out: small frozen values, nothing of the wire.

An `Item` is one thing to score. A `Result` is what came of it: a `Judgement` (an opinion about the
response) or a `Fault` (a confession that there is none). A fault is a value, never a number:
`Result.reward` is None for it, and None never trains.

A reference's kind follows from its Python type. One text is one answer, a list of texts is several
right answers, and everything else that JSON can write is data, whose shape the verifier documents.
A list of texts that is meant as data is wrapped: `Data(["a", "b"])`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.api.execution.v1 import execution_pb2
from assay.kit.judgements import Component, Judgement, Span

__all__ = [
    "Anchor",
    "Component",
    "Data",
    "Fault",
    "Item",
    "Judgement",
    "Limits",
    "Message",
    "Parameter",
    "ParameterInfo",
    "Reference",
    "Result",
    "ServerInfo",
    "Span",
    "Turn",
    "VerifierInfo",
    "as_json",
    "is_texts",
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
    """A structured reference: boxes, a puzzle's state, a JSON schema, a list of instructions.

    Attributes:
        value: what JSON can write: None, bool, finite number, text, sequences of these, mappings
            of texts to these.
    """

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
    """Whether a value has a type that a reference can have. Its parts are not looked at."""
    if isinstance(value, bytes | bytearray):
        return False
    if value is None or isinstance(value, str | bool | int | float | Mapping | Sequence):
        return True
    return isinstance(value, Anchor | Data | execution_pb2.TestSuite)


def is_texts(value: object) -> bool:
    """Whether a reference is a sequence of right answers, and not data."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(text, str) for text in value)
    )


def as_json(value: object, where: str = "the reference") -> JsonValue:
    """A value in JSON's own shapes: tuples become lists, mappings dicts.

    Args:
        value: the value.
        where: what errors call it.

    Raises:
        ValueError: it holds something that JSON cannot write; the text says where.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value  # type: ignore[return-value]  # told by its exact type
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


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue.

    Attributes:
        role: "system", "user", "assistant" or "tool".
        content: what is said.
        from_policy: the policy produced this turn.
    """

    role: str
    content: str
    from_policy: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to score: a response to a prompt, and what to hold it against.

    Attributes:
        response: the policy's text without the prompt; empty text is a response too. None when
            `turns` are given.
        reference: what a right response is known by. A text is one answer, a list of texts several
            right answers. A mapping, a number, or any other list is data, whose shape the verifier
            documents; `Data` makes data of a list of texts too. Or tests, or an `Anchor`.
        verifier: who judges, by name. Empty: chosen by `task`.
        task: the kind of task, for routing when no verifier is named.
        prompt: what the policy was asked, as one text or as chat messages with "role" and
            "content".
        id: the caller's name for the item, at most 256 bytes. Empty: the client numbers it.
        group_id: samples of one prompt share it, and travel in one message.
        parameters: the verifier's own parameters, by name.
        turns: the dialogue, for a candidate of several turns.
        response_token_count: tokens that the policy spent on the response. None: unknown.
        truncated: the response was cut at the generation limit.
        timeout_s: time-out of this item's execution, without the queue. None: the server's default.

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

    def __post_init__(self) -> None:
        if self.response is not None and not isinstance(self.response, str):
            raise TypeError(
                f"Item.response is {type(self.response).__name__}; pass the policy's text"
            )
        names: tuple[object, ...] = (self.verifier, self.task, self.id, self.group_id)
        for value in names:
            if not isinstance(value, str):
                self._refuse_names()
        if not is_reference(self.reference):
            kind = type(self.reference).__name__
            raise TypeError(
                f"Item.reference is {kind}; pass a text, texts, data, a TestSuite or an Anchor"
            )

    def _refuse_names(self) -> None:
        """Raises TypeError for the first name that is no text."""
        for name in ("verifier", "task", "id", "group_id"):
            kind = type(getattr(self, name))
            if not issubclass(kind, str):
                raise TypeError(f"Item.{name} is {kind.__name__}; pass a text")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why there is no judgement. It says nothing about the response: never train on it.

    Attributes:
        reason: why, from the lexicon in docs/errors.md or a verifier's own; what a program switches
            on.
        message: what happened, for people.
        code: the name of the gRPC code: "UNAVAILABLE", "DEADLINE_EXCEEDED", ...
        metadata: further facts.
    """

    reason: str
    message: str
    code: str = "UNKNOWN"
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one item.

    Attributes:
        id: the item's id, or the number that the client gave it.
        outcome: a judgement or a fault.
        queue_s: seconds that the item waited at the server.
        execution_s: seconds that judging took; 0 from the cache.
        from_cache: the judgement was computed before, or for an equal item in flight.
    """

    id: str
    outcome: Judgement | Fault
    queue_s: float = 0.0
    execution_s: float = 0.0
    from_cache: bool = False

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
class Limits:
    """What one call to a server may hold.

    Attributes:
        max_items: most items in one message.
        max_message_bytes: most bytes of one message.
        max_item_bytes: most bytes of one item.
        default_item_timeout_s: time-out of an item that states none.
        max_item_timeout_s: the longest time-out that an item may ask for.
    """

    max_items: int
    max_message_bytes: int
    max_item_bytes: int
    default_item_timeout_s: float
    max_item_timeout_s: float


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One parameter of a verifier.

    Attributes:
        name: the name under which it is passed.
        type: "bool", "int", "float", "string" or "string_list".
        default: the value in force when it is not passed; None if it is required.
        description: what it does, its unit and its range.
        allowed_values: for a text, the values it takes; empty for any.
        minimum: for a number, the least value; None for none.
        maximum: for a number, the greatest value; None for none.
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
    """One verifier of a server, as ListVerifiers in reward.proto describes it."""

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


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server judges, and its limits."""

    verifiers: tuple[VerifierInfo, ...]
    limits: Limits
    version: str

    def find(self, verifier: str, task: str = "") -> VerifierInfo | None:
        """The verifier that judges an item with this verifier and task; None when there is none."""
        for info in self.verifiers:
            if info.name == verifier or (not verifier and task and task in info.tasks):
                return info
        return None
