"""The nouns of reward scoring, as frozen values: items, judgements, faults, verifiers.

Nothing here knows of gRPC, clocks, processes or files. `convert` turns these values into messages
and back, `scorer` moves them around, `verifiers` think about them. The words are those of the
contract (reward.proto): a *judgement* is an opinion about a candidate, a *fault* says that we have
none.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from assay.api.execution.v1 import execution_pb2

# A noun of all services; whoever writes a verifier finds it here.
from assay.kit.faults import ItemFault
from assay.kit.faults import Unjudgeable as Unjudgeable  # noqa: PLC0414

Fault: TypeAlias = ItemFault
ParameterValue = bool | int | float | str | tuple[str, ...]
JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
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


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: who speaks.
        content: what is said.
        from_policy: the policy produced it; always False in a prompt.
    """

    role: str
    content: str
    from_policy: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the policy produced: one text or a dialogue of several turns, never both."""

    text: str | None = None
    turns: tuple[Message, ...] = ()


def _is_numbers(data: JsonValue) -> bool:
    listed = data if isinstance(data, list) else [data]
    return bool(listed) and all(type(value) in (int, float) for value in listed)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to judge.

    Attributes:
        candidate: what the policy produced.
        references: right answers, any of which will do; empty when there is none.
        tests: tests that a program passes, for verifiers that take them; as the contract has them.
        data: a structured reference, for verifiers that document its shape; None when there is
            none. Frozen by agreement: nobody changes it.
        task: the kind of task that the caller named, if any; profiles route by it.
        anchor: a response to beat, for judges that compare.
        prompt: what the policy was asked.
        parameters: the verifier's parameters, complete: defaults are filled in before a verifier
            sees them.
        group_id: samples of one prompt share it; empty when there is no group.
        response_token_count: tokens the policy spent, if known.
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

    def document(self) -> JsonValue:
        """The structured reference: the data, or else the one reference text read as JSON.

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


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a reward: name (kebab-case), raw score, and its weight in the reward."""

    name: str
    score: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Span:
    """A reward for the code points `start <= i < end` of the response, or of one turn."""

    start: int
    end: int
    reward: float
    label: str
    turn_index: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """An opinion about a candidate.

    Attributes:
        reward: the number that trains; finite, inside the verifier's stated range.
        verdict: the category, one of the verifier's verdicts.
        components: what the reward is made of; at least one.
        extracted_answer: the answer found in the response, if one was.
        explanation: why, in one line of at most 1,000 characters, for people. It may hold the
            reference; a policy is never shown it.
        spans: dense rewards, sorted, not overlapping.
        suspicions: signs of gaming, kebab-case.
    """

    reward: float
    verdict: str
    components: tuple[Component, ...]
    extracted_answer: str | None = None
    explanation: str = ""
    spans: tuple[Span, ...] = ()
    suspicions: tuple[str, ...] = ()

    @classmethod
    def composed(
        cls,
        verdict: str,
        components: tuple[Component, ...],
        *,
        extracted_answer: str | None = None,
        explanation: str = "",
        suspicions: tuple[str, ...] = (),
    ) -> Judgement:
        """A judgement whose reward is the sum of weight times score, in the components' order."""
        reward = 0.0
        for component in components:
            reward += component.weight * component.score
        return cls(
            reward, verdict, components, extracted_answer, explanation, suspicions=suspicions
        )


Outcome = Judgement | Fault


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One parameter of a verifier.

    Attributes:
        name: snake_case.
        kind: the kind of value it takes; a whole number is taken for a float too.
        default: the value in force when it is not passed; None if it must be passed.
        description: what it does, its unit and range.
        allowed_values: for a text, the values it takes; empty when any will do.
        minimum: for a number, the least value taken.
        maximum: for a number, the greatest value taken.
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
    """The kind of a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return "string" if isinstance(value, str) else "string-list"


@dataclass(frozen=True, slots=True)
class VerifierSpec:
    """What a verifier says of itself; ListVerifiers passes it on.

    Attributes:
        name: kebab-case, unique on the server.
        version: changes whenever some item would be judged otherwise.
        description: what it judges, in one sentence.
        tasks: tasks that are routed to it when an item names no verifier.
        min_reward: the least reward it gives, whatever its parameters.
        max_reward: the greatest reward it gives, whatever its parameters.
        verdicts: the verdicts it gives, kebab-case.
        parameters: what it can be told.
        deterministic: equal items get equal judgements.
        cacheable: its judgements may come from the cache.
        needs_reference: an item without references is a fault, MISSING_REFERENCE.
        needs_group: items need a group_id.
        isolation: "inline" judges in the server's own process and must be quick and safe on any
            text of the size limit; "process" judges in a worker that is killed at the item's
            time-out; "remote" asks another service.
        takes_tests: its reference is a suite of tests.
        takes_any: its reference may be of any kind, since it hands it on to others.
        lazy: of a verifier in workers: its library is slow to load, so it is tested when it is
            first asked for and not when the server starts.
        is_profile: it is a composition of other verifiers.
        defaults: the parameters in force when none is given; None when one must be.
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
        """The parameters in force: those given, checked, and the defaults of the rest.

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
class Example:
    """An item with the verdict that it must get; tested each time the server starts."""

    item: Item
    verdict: str


class Verifier(Protocol):
    """Judges items. Inherit from it to take the defaults; any object of this shape will do.

    A verifier is made once in the server and once in each worker, from its class without arguments;
    it holds no state beyond caches. Making one must be quick: what is slow to load belongs in
    `prepare`.
    """

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""

    @property
    def examples(self) -> tuple[Example, ...]:
        """Items with known verdicts, at least one."""

    def prepare(self) -> None:
        """Loads what is slow to load; called once before the workers are forked."""
        return

    def glance(self, item: Item) -> Judgement | None:
        """Judges in the server's own process what takes bounded time and memory there.

        Only asked of verifiers that run in workers. It must agree with `judge` and is held to what
        inline verifiers are.

        Returns:
            The judgement; None when the item has to go to a worker.

        Raises:
            Unjudgeable: as `judge` does.
        """
        del item
        return None

    def judge(self, item: Item) -> Judgement:
        """Judges an item whose parameters are complete.

        Raises:
            Unjudgeable: the item itself prevents a judgement. Any other exception is a defect of
                the verifier and becomes the fault VERIFIER_FAILED.
        """


@dataclass(frozen=True, slots=True)
class RemoteOutcome:
    """What another service made of an item.

    Attributes:
        outcome: a judgement or a fault.
        queue_s: how long it waited there.
        execution_s: how long it took there.
    """

    outcome: Outcome
    queue_s: float = 0.0
    execution_s: float = 0.0


class RemoteVerifier(Verifier):
    """Judges the items of a call together, by asking another service. Belongs to one event loop."""

    def judge(self, item: Item) -> Judgement:
        """Not by itself: see `judge_all`."""
        raise Unjudgeable(VERIFIER_FAILED, f"verifier {self.spec.name!r} asks another service")

    async def judge_all(self, items: Sequence[Item], timeout_s: float) -> list[RemoteOutcome]:
        """What became of each item, in order; a failure of the other service is their fault.

        Args:
            items: parameters complete.
            timeout_s: seconds until there must be an answer.
        """
        return [RemoteOutcome(Fault(VERIFIER_FAILED, f"{self.spec.name!r} judges nothing"))] * len(
            items
        )

    async def close(self) -> None:
        """Lets go of the other service."""


Lookup = Callable[[str], Verifier | None]
"""The verifier of a name that items can be handed on to; None where there is none."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a composite asks another verifier.

    Attributes:
        component: the part of the composite that asks.
        verifier: the verifier that judges.
        item: its parameters are complete.
    """

    component: str
    verifier: str
    item: Item


Stages = Generator[tuple[Task, ...], tuple[Outcome, ...], Outcome]


class CompositeVerifier(Verifier):
    """Judges by asking other verifiers of this server. Pure: the server drives `run`."""

    def judge(self, item: Item) -> Judgement:
        """Not by itself: see `run`."""
        raise Unjudgeable(VERIFIER_FAILED, f"verifier {self.spec.name!r} asks other verifiers")

    def run(self, item: Item) -> Stages:
        """Judges an item.

        Args:
            item: its parameters are complete.

        Yields:
            The tasks of one stage, which may be judged in any order or at once; is sent their
            outcomes, in the tasks' order.

        Returns:
            The judgement, or a fault where a part that was needed has one.

        Raises:
            Unjudgeable: the item itself prevents a judgement.
        """
        yield ()
        return Fault(VERIFIER_FAILED, f"{self.spec.name!r} judges nothing")


def handed_on(item: Item, spec: VerifierSpec, parameters: Mapping[str, ParameterValue]) -> Item:
    """The item as another verifier gets it.

    Args:
        item: the composite's.
        spec: the other verifier's.
        parameters: those of the other verifier, complete.

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
