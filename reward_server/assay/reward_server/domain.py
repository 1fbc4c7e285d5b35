"""The values of reward scoring: items, judgements, faults, verifiers. Frozen.

Nothing here knows of gRPC, clocks, processes or files. The words are those of reward.proto: a
*judgement* is an opinion about a candidate, a *fault* says that there is none.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

from assay.api.execution.v1 import execution_pb2

# A noun of all services; whoever writes a verifier finds it here.
from assay.kit.faults import ItemFault
from assay.kit.faults import Unjudgeable as Unjudgeable  # noqa: PLC0414
from assay.kit.json_text import JsonValue as JsonValue  # noqa: PLC0414
from assay.kit.judgements import Appeal as Appeal  # noqa: PLC0414
from assay.kit.judgements import Component as Component  # noqa: PLC0414
from assay.kit.judgements import Hearing as Hearing  # noqa: PLC0414
from assay.kit.judgements import Judgement as Judgement  # noqa: PLC0414
from assay.kit.judgements import Span as Span  # noqa: PLC0414
from assay.kit.tool_calls import ToolCall as ToolCall  # noqa: PLC0414

Fault: TypeAlias = ItemFault
ParameterValue = bool | int | float | str | tuple[str, ...]
ParameterKind = Literal["bool", "int", "float", "string", "string-list"]
Isolation = Literal["inline", "process", "remote"]

# Reasons that a verifier may give. Those of transport and scheduling live with their users; all are
# in assay.kit.reasons.
MISSING_REFERENCE = "MISSING_REFERENCE"
UNUSABLE_REFERENCE = "UNUSABLE_REFERENCE"
UNSUPPORTED_INPUT = "UNSUPPORTED_INPUT"
INVALID_PARAMETER = "INVALID_PARAMETER"
VERIFIER_FAILED = "VERIFIER_FAILED"

MAX_EXPLANATION_CHARS = 1000
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. In a prompt `from_policy` is always False."""

    role: str
    content: str
    from_policy: bool = False
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the policy produced: one text or a dialogue of several turns, never both.

    Attributes:
        text: the response, without the calls that came apart from it.
        turns: the dialogue, each turn with its own calls.
        calls: the response's calls that came apart from its text.
    """

    text: str | None = None
    turns: tuple[Message, ...] = ()
    calls: tuple[ToolCall, ...] = ()

    @property
    def has_calls(self) -> bool:
        """Whether tool calls came apart from a text."""
        return bool(self.calls) or any(turn.calls for turn in self.turns)

    def lines(self) -> list[tuple[Any, ...]]:
        """[role, content, from_policy, calls] of each turn, as JSON has it; calls where there are.

        A response with tool calls is one turn whose role is None; a plain response has none.
        """
        if self.calls:
            return [(None, self.text or "", True, *_calls(self.calls))]
        return [(t.role, t.content, t.from_policy, *_calls(t.calls)) for t in self.turns]


def _calls(calls: tuple[ToolCall, ...]) -> list[list[Any]]:
    return [[[call.name, call.arguments] for call in calls]] if calls else []


def _is_numbers(data: JsonValue) -> bool:
    listed = data if isinstance(data, list) else [data]
    return bool(listed) and all(type(value) in (int, float) for value in listed)


@dataclass(frozen=True, slots=True)
class VerifierItem:
    """An item as its verifier gets it: checked, its parameters complete.

    Attributes:
        candidate: what the policy produced.
        references: right answers, any of which will do; empty when there is none.
        tests: tests that a program passes, for verifiers that take them.
        data: a structured reference, for verifiers that document its shape; None for none. Nobody
            changes it.
        task: the kind of task that the caller named; profiles route by it.
        run: the caller's label `run`, for the accounts of other services; nobody judges by it.
        anchor: a response to beat, for judges that compare.
        prompt: what the policy was asked.
        parameters: the verifier's, with defaults filled in.
        group_id: samples of one prompt share it; empty for no group.
        response_token_count: tokens that the policy spent, if known.
        truncated: the response was cut at the generation limit.
    """

    candidate: Candidate
    references: tuple[str, ...] = ()
    anchor: str | None = None
    prompt: tuple[Message, ...] = ()
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    group_id: str = ""
    response_token_count: int | None = None
    truncated: bool = False
    tests: execution_pb2.TestSuite | None = None
    data: JsonValue = None
    task: str = ""
    run: str = ""

    def document(self) -> JsonValue:
        """The structured reference: the data, or the one reference text read as JSON.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE when there is neither, or the text is not JSON.
        """
        if self.data is not None:
            return self.data
        if len(self.references) != 1:
            raise Unjudgeable(
                UNUSABLE_REFERENCE,
                f"this verifier needs data as reference, or one JSON text, not "
                f"{len(self.references)} texts",
            )
        try:
            value: JsonValue = json.loads(self.references[0], parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise Unjudgeable(
                UNUSABLE_REFERENCE, f"the reference is not JSON: {str(error)[:200]}"
            ) from None
        return value

    def answers(self) -> tuple[str, ...]:
        """The references as right answers; at least one.

        Raises:
            Unjudgeable: UNSUPPORTED_INPUT when the reference is of another kind.
        """
        if not self.references:
            found = "tests" if self.tests is not None else "data"
            found = "an anchor" if self.anchor is not None else found
            raise Unjudgeable(
                UNSUPPORTED_INPUT,
                f"the reference is {found}; this verifier takes a text or a list of texts"
                + ("; write numbers as texts" if _is_numbers(self.data) else ""),
            )
        return self.references

    def response(self) -> str:
        """The candidate's text.

        Raises:
            Unjudgeable: UNSUPPORTED_INPUT for a dialogue of several turns.
        """
        if self.candidate.text is None:
            raise Unjudgeable(
                UNSUPPORTED_INPUT, "this verifier judges a single response, not several turns"
            )
        return self.candidate.text

    def content(self) -> bytes | None:
        """16 bytes, equal for equal prompt, response and reference; None without a response."""
        candidate, tests = self.candidate, self.tests
        if candidate.text is None and not candidate.turns:
            return None
        text = _ENCODE(
            (
                [(m.role, m.content) for m in self.prompt],
                candidate.text,
                [(t.role, t.content, t.from_policy) for t in candidate.turns],
                *([candidate.lines()] if candidate.has_calls else []),
                self.references,
                self.anchor,
                self.data,
                None if tests is None else tests.SerializeToString(deterministic=True).hex(),
            )
        )
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


Outcome = Judgement | Fault


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One parameter of a verifier.

    Attributes:
        name: snake_case.
        kind: of the value; a float takes whole numbers too.
        default: the value when it is not passed; None if it must be passed.
        description: what it does, its unit and range.
        allowed_values: of a text; empty for any.
        minimum: of a number.
        maximum: of a number.
    """

    name: str
    kind: ParameterKind
    default: ParameterValue | None
    description: str
    allowed_values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    def checked(self, value: ParameterValue) -> ParameterValue:
        """The value, as this parameter takes it.

        Raises:
            Unjudgeable: INVALID_PARAMETER, naming the parameter.
        """
        if self.kind == "float" and type(value) is int:
            try:
                value = float(value)
            except OverflowError:
                raise self._error("is too large") from None
        if _kind_of(value) != self.kind:
            raise self._error(f"takes a {self.kind}, not a {_kind_of(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error("takes a finite number")
        if isinstance(value, int | float) and self.kind in ("int", "float"):
            if self.minimum is not None and value < self.minimum:
                raise self._error(f"must be at least {self.minimum:g}, not {value:g}")
            if self.maximum is not None and value > self.maximum:
                raise self._error(f"must be at most {self.maximum:g}, not {value:g}")
        if self.allowed_values and value not in self.allowed_values:
            raise self._error(f"must be one of {', '.join(self.allowed_values)}")
        return value

    def _error(self, trouble: str) -> Unjudgeable:
        return Unjudgeable(INVALID_PARAMETER, f"parameter {self.name!r} {trouble}")


def _kind_of(value: ParameterValue) -> ParameterKind:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return "string" if isinstance(value, str) else "string-list"


@dataclass(frozen=True, slots=True)
class VerifierSpec:
    """What a verifier is, as ListVerifiers tells clients.

    Attributes:
        name: kebab-case, unique on the server.
        version: changes whenever some item would be judged otherwise.
        description: what it judges, in one sentence.
        tasks: tasks that are routed to it when an item names no verifier.
        min_reward: the least reward it gives, whatever its parameters.
        max_reward: the greatest reward it gives, whatever its parameters.
        verdicts: the verdicts it gives, kebab-case.
        deterministic: equal items get equal judgements.
        cacheable: its judgements may come from the cache.
        needs_reference: an item without references is a fault, MISSING_REFERENCE.
        needs_group: items need a group_id.
        isolation: "inline" judges in the server's own process and must be quick and safe on any
            text of the size limit; "process" judges in a worker that is killed at the item's
            time-out; "remote" asks another service.
        takes_tests: its reference is a suite of tests.
        takes_any: it takes references of any kind, and hands them on to others.
        lazy: its library is slow to load: a worker loads it, and the self-test runs, at the first
            request.
        is_profile: it is a composition of other verifiers.
        defaults: all parameters' defaults; None when one must be passed.
    """

    name: str
    version: str
    description: str
    tasks: tuple[str, ...]
    min_reward: float
    max_reward: float
    verdicts: tuple[str, ...]
    parameters: tuple[ParameterSpec, ...] = ()
    deterministic: bool = True
    cacheable: bool = True
    needs_reference: bool = True
    needs_group: bool = False
    isolation: Isolation = "process"
    takes_tests: bool = False
    takes_any: bool = False
    lazy: bool = False
    is_profile: bool = False
    defaults: Mapping[str, ParameterValue] | None = field(
        init=False, default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if all(parameter.default is not None for parameter in self.parameters):
            values = {p.name: p.default for p in self.parameters if p.default is not None}
            object.__setattr__(self, "defaults", MappingProxyType(values))

    def complete(self, given: Mapping[str, ParameterValue]) -> Mapping[str, ParameterValue]:
        """The given parameters, checked, and the defaults of the rest.

        Raises:
            Unjudgeable: INVALID_PARAMETER for an unknown, missing or wrong one.
        """
        if not given and self.defaults is not None:
            return self.defaults
        by_name = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in by_name:
                known = ", ".join(by_name) or "none"
                raise Unjudgeable(
                    INVALID_PARAMETER,
                    f"verifier {self.name!r} has no parameter {name[:80]!r}; it has: {known}",
                )
        values: dict[str, ParameterValue] = {}
        for name, parameter in by_name.items():
            if name in given:
                values[name] = parameter.checked(given[name])
            elif parameter.default is not None:
                values[name] = parameter.default
            else:
                raise Unjudgeable(INVALID_PARAMETER, f"parameter {name!r} is required")
        return values


@dataclass(frozen=True, slots=True)
class VerifierExample:
    """An item with the verdict that it must get; tested each time the server starts."""

    item: VerifierItem
    verdict: str


class Verifier(Protocol):
    """Judges items. Inherit from it to take the defaults; any object of this shape will do.

    It is made once in the server and once in each worker, from its class without arguments, and
    holds no state beyond caches. Making one must be quick: load slow libraries in `prepare`.
    """

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """Items with known verdicts, at least one."""

    def prepare(self) -> None:
        """Loads what is slow to load; called once before the workers are forked."""
        return

    def glance(self, item: VerifierItem) -> Judgement | None:
        """Judges in the server's own process what takes bounded time and memory there.

        The server asks it of verifiers that run in workers. It must agree with `judge`, and is as
        quick and safe as inline verifiers are.

        Returns:
            The judgement; None when the item has to go to a worker.

        Raises:
            Unjudgeable: as `judge` does.
        """
        del item
        return None

    def judge(self, item: VerifierItem) -> Judgement:
        """Judges an item.

        Raises:
            Unjudgeable: the item itself prevents a judgement. Any other exception is a defect of
                the verifier and becomes the fault VERIFIER_FAILED.
        """


@dataclass(frozen=True, slots=True)
class RemoteOutcome:
    """What another service made of an item, and the seconds it waited and ran there."""

    outcome: Outcome
    queue_s: float = 0.0
    execution_s: float = 0.0


class RemoteVerifier(Verifier):
    """Judges the items of a call together, by asking another service. Belongs to one event loop."""

    def judge(self, item: VerifierItem) -> Judgement:
        """Refuses: see `judge_all`."""
        raise Unjudgeable(VERIFIER_FAILED, f"verifier {self.spec.name!r} asks another service")

    async def judge_all(
        self, items: Sequence[VerifierItem], timeout_s: float
    ) -> list[RemoteOutcome]:
        """What became of each item, in order; a failure of the service is their fault.

        Args:
            items: parameters complete.
            timeout_s: seconds until there must be an answer.
        """
        return [RemoteOutcome(Fault(VERIFIER_FAILED, f"{self.spec.name!r} judges nothing"))] * len(
            items
        )

    async def close(self) -> None:
        """Closes the connection."""


Lookup = Callable[[str], Verifier | None]
"""Finds the verifier of a name; None where there is none."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """What a composite asks another verifier for one of its parts.

    Attributes:
        component: the part that asks.
        verifier: the name of the verifier that judges.
        item: its parameters are complete.
    """

    component: str
    verifier: str
    item: VerifierItem


Stages = Generator[tuple[Subtask, ...], tuple[Outcome, ...], Outcome]


class CompositeVerifier(Verifier):
    """Judges by asking other verifiers of this server. Pure: the server drives `run`."""

    def judge(self, item: VerifierItem) -> Judgement:
        """Refuses: see `run`."""
        raise Unjudgeable(VERIFIER_FAILED, f"verifier {self.spec.name!r} asks other verifiers")

    def run(self, item: VerifierItem) -> Stages:
        """Judges an item.

        Yields:
            The subtasks of one stage, in any order or at once; is sent their outcomes, in the
            subtasks' order.

        Returns:
            The judgement, or a fault where a part that was needed has one.

        Raises:
            Unjudgeable: the item itself prevents a judgement.
        """
        yield ()
        return Fault(VERIFIER_FAILED, f"{self.spec.name!r} judges nothing")


def handed_on(
    item: VerifierItem, spec: VerifierSpec, parameters: Mapping[str, ParameterValue]
) -> VerifierItem:
    """The composite's item as another verifier gets it, with that one's complete parameters.

    Raises:
        Unjudgeable: MISSING_REFERENCE or UNSUPPORTED_INPUT, for what the item lacks.
    """
    if spec.takes_tests and item.tests is None:
        raise Unjudgeable(MISSING_REFERENCE, "it needs tests as reference")
    has_other = bool(item.references) or item.anchor is not None or item.data is not None
    takes_other = not (spec.takes_tests or spec.takes_any)
    if spec.needs_reference and takes_other and not has_other:
        raise Unjudgeable(MISSING_REFERENCE, "it needs a reference")
    if spec.needs_group and not item.group_id:
        raise Unjudgeable(UNSUPPORTED_INPUT, "it needs items with a group_id")
    takes_tests = spec.takes_tests or spec.takes_any
    return dataclasses.replace(
        item, parameters=parameters, tests=item.tests if takes_tests else None
    )
