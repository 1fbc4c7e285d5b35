"""Converts between the messages of the contract and the values of the domain. Pure."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Sequence

from assay.api.common.v1 import common_pb2
from assay.api.execution.v1 import execution_pb2
from assay.api.reward.v1 import reward_pb2
from assay.kit.durations import seconds_of
from assay.kit.labels import trouble_of
from assay.kit.plain import plain_json
from assay.kit.reliability import ErrorRate, Reliability
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    MISSING_REFERENCE,
    UNSUPPORTED_INPUT,
    UNUSABLE_REFERENCE,
    Appeal,
    Candidate,
    JsonValue,
    Judgement,
    Message,
    ParameterSpec,
    ParameterValue,
    ToolCall,
    Unjudgeable,
    VerifierItem,
    VerifierSpec,
)

MAX_TOOL_CALLS = 1_024
_TYPES = {
    "bool": common_pb2.PARAMETER_TYPE_BOOL,
    "int": common_pb2.PARAMETER_TYPE_INT,
    "float": common_pb2.PARAMETER_TYPE_FLOAT,
    "string": common_pb2.PARAMETER_TYPE_STRING,
    "string-list": common_pb2.PARAMETER_TYPE_STRING_LIST,
}
_KINDS: dict[str, Callable[[common_pb2.ParameterValue], ParameterValue]] = {
    "bool_value": lambda value: value.bool_value,
    "int_value": lambda value: value.int_value,
    "float_value": lambda value: value.float_value,
    "string_value": lambda value: value.string_value,
    "string_list_value": lambda value: tuple(value.string_list_value.values),
}


def item_from_proto(message: reward_pb2.Item, spec: VerifierSpec) -> VerifierItem:
    """An item as its verifier gets it: parameters checked and completed.

    Raises:
        Unjudgeable: MISSING_RESPONSE, MISSING_REFERENCE, UNSUPPORTED_INPUT or INVALID_PARAMETER.
    """
    takes_texts = spec.takes_any or not spec.takes_tests
    reference = message.reference
    if takes_texts and reference.WhichOneof("kind") == "text":
        references: tuple[str, ...] = (reference.text,)
        anchor = tests = data = None
    else:
        references, anchor, tests, data = _fitting_reference(reference, spec)
    if spec.needs_group and not message.group_id:
        raise Unjudgeable(UNSUPPORTED_INPUT, f"verifier {spec.name!r} needs items with a group_id")
    counted = message.HasField("response_token_count")
    return VerifierItem(
        _candidate(message),
        references=references,
        anchor=anchor,
        prompt=_prompt(message) if message.prompt else (),
        parameters=spec.complete(_parameters(message)),
        group_id=message.group_id,
        response_token_count=message.response_token_count if counted else None,
        truncated=message.truncated,
        tests=tests,
        data=data,
        task=message.task,
    )


def sketch(message: reward_pb2.Item) -> VerifierItem:
    """What can be read of an unsound item: for the journal, never for a judge."""
    references: tuple[str, ...] = ()
    anchor = tests = data = None
    with contextlib.suppress(Unjudgeable):
        references, anchor, tests, data = _reference(message.reference)
    candidate = Candidate()
    with contextlib.suppress(Unjudgeable):
        candidate = _candidate(message)
    return VerifierItem(
        candidate,
        references=references,
        anchor=anchor,
        prompt=_prompt(message),
        group_id=message.group_id,
        tests=tests,
        data=data,
        task=message.task,
    )


def labels_of(message: reward_pb2.Item) -> dict[str, str]:
    """The item's labels.

    Raises:
        Unjudgeable: INVALID_LABEL where they are out of bounds.
    """
    if trouble := trouble_of(message.labels):
        raise Unjudgeable("INVALID_LABEL", trouble)
    return dict(sorted(message.labels.items()))  # a map of protobuf has no order


def timeout_s(message: reward_pb2.Item, default_s: float, limit_s: float) -> float:
    """The item's time-out in seconds.

    Raises:
        Unjudgeable: INVALID_TIMEOUT when it is not positive or above the limit.
    """
    if not message.HasField("timeout"):
        return default_s
    value_s = seconds_of(message.timeout)
    if not 0 < value_s <= limit_s:
        raise Unjudgeable(
            "INVALID_TIMEOUT",
            f"the item's time-out is {value_s:g} s; it must be above 0 and at most {limit_s:g} s",
        )
    return value_s


def fill_judgement(
    message: reward_pb2.Judgement, judgement: Judgement, spec: VerifierSpec | None
) -> None:
    """Writes a judgement and the verifier that gave it."""
    message.reward = judgement.reward
    message.verdict = judgement.verdict
    for part in judgement.components:
        message.components.add(name=part.name, score=part.score, weight=part.weight)
    for span in judgement.spans:
        added = message.spans.add(turn_index=span.turn_index, reward=span.reward, label=span.label)
        added.range.start = span.start
        added.range.end = span.end
    if judgement.extracted_answer is not None:
        message.extracted_answer = judgement.extracted_answer
    if judgement.explanation:
        message.explanation = judgement.explanation
    if judgement.suspicions:
        message.suspicions.extend(judgement.suspicions)
    if judgement.appeal is not None:
        _fill_appeal(message, judgement.appeal)
    if spec is not None:
        verifier = message.verifier
        verifier.name = spec.name
        verifier.version = spec.version


def _fill_appeal(message: reward_pb2.Judgement, appeal: Appeal) -> None:
    """Writes an appeal; of one that was not asked for there is nothing to say."""
    if appeal.second is None:
        return
    told = message.appeal
    told.component, told.drawn, told.probability = (
        *(appeal.component, appeal.drawn, appeal.probability),
    )
    for one, said in ((told.first, appeal.first), (told.second, appeal.second)):
        one.verifier.name, one.verifier.version = said.verifier, said.version
        one.verdict, one.reward = said.verdict, said.reward


def info_to_proto(
    spec: VerifierSpec, reliability: Iterable[Reliability] = ()
) -> reward_pb2.VerifierInfo:
    """The entry of ListVerifiers."""
    return reward_pb2.VerifierInfo(
        name=spec.name,
        version=spec.version,
        description=spec.description,
        tasks=spec.tasks,
        min_reward=spec.min_reward,
        max_reward=spec.max_reward,
        deterministic=spec.deterministic,
        cacheable=spec.cacheable,
        needs_reference=spec.needs_reference,
        needs_group=spec.needs_group,
        parameters=[_parameter_to_proto(parameter) for parameter in spec.parameters],
        verdicts=spec.verdicts,
        is_profile=spec.is_profile,
        reliability=[_reliability_to_proto(one) for one in reliability],
    )


def _reliability_to_proto(one: Reliability) -> reward_pb2.Reliability:
    return reward_pb2.Reliability(
        domain=one.domain,
        false_positive=_rate_to_proto(one.false_positive),
        false_negative=_rate_to_proto(one.false_negative),
        verifier_version=one.verifier_version,
        data_digest=one.data_digest,
        truth=one.truth,
    )


def _rate_to_proto(rate: ErrorRate | None) -> reward_pb2.ErrorRate | None:
    return None if rate is None else reward_pb2.ErrorRate(**dataclasses.asdict(rate))


def _candidate(message: reward_pb2.Item) -> Candidate:
    kind = message.WhichOneof("candidate")
    calls = _calls(message.tool_calls) if message.tool_calls else ()
    if kind == "response" or (kind is None and calls):
        return Candidate(message.response, calls=calls)
    if kind == "turns" and calls:
        raise Unjudgeable(UNSUPPORTED_INPUT, "the tool calls of a dialogue stand in its turns")
    if kind == "turns" and message.turns.turns:
        turns = message.turns.turns
        return Candidate(
            turns=tuple(
                Message(t.message.role, t.message.content, t.from_policy, _calls(t.tool_calls))
                for t in turns
            )
        )
    raise Unjudgeable("MISSING_RESPONSE", "the item has neither a response nor turns")


def _calls(messages: Sequence[reward_pb2.ToolCall]) -> tuple[ToolCall, ...]:
    if len(messages) > MAX_TOOL_CALLS:
        raise Unjudgeable(UNSUPPORTED_INPUT, f"more than {MAX_TOOL_CALLS:,} tool calls")
    return tuple([ToolCall(message.name, _arguments(message)) for message in messages])


def _arguments(message: reward_pb2.ToolCall) -> JsonValue:
    kind = message.WhichOneof("arguments")
    if kind == "text":
        return message.text
    try:
        return plain_json(message.data) if kind == "data" else {}
    except ValueError as error:
        raise Unjudgeable(UNSUPPORTED_INPUT, f"the arguments of a tool call: {error}") from None


def _prompt(message: reward_pb2.Item) -> tuple[Message, ...]:
    return tuple([Message(turn.role, turn.content) for turn in message.prompt])


def _fitting_reference(
    message: reward_pb2.Reference, spec: VerifierSpec
) -> tuple[tuple[str, ...], str | None, execution_pb2.TestSuite | None, JsonValue]:
    """The reference's parts, if the verifier takes their kind.

    Raises:
        Unjudgeable: MISSING_REFERENCE or UNSUPPORTED_INPUT.
    """
    references, anchor, tests, data = _reference(message)
    if tests is not None and not spec.takes_tests and not spec.takes_any:
        raise Unjudgeable(UNSUPPORTED_INPUT, f"verifier {spec.name!r} takes no tests as reference")
    has_other = bool(references) or anchor is not None or data is not None
    if spec.takes_tests and not spec.takes_any and has_other:
        raise Unjudgeable(UNSUPPORTED_INPUT, f"verifier {spec.name!r} takes tests as reference")
    if spec.needs_reference and not has_other and tests is None:
        raise Unjudgeable(MISSING_REFERENCE, f"verifier {spec.name!r} needs a reference")
    return references, anchor, tests, data


def _reference(
    message: reward_pb2.Reference,
) -> tuple[tuple[str, ...], str | None, execution_pb2.TestSuite | None, JsonValue]:
    """The right answers, the anchor, the tests and the data of a reference."""
    kind = message.WhichOneof("kind")
    if kind == "text":
        return (message.text,), None, None, None
    if kind == "texts":
        return tuple(message.texts.values), None, None, None
    if kind == "anchor_response":
        return (), message.anchor_response, None, None
    if kind == "data":
        return (), None, None, _json_of(message.data)
    return (), None, message.tests if kind == "tests" else None, None


def _json_of(message: execution_pb2.PlainValue) -> JsonValue:
    try:
        value: JsonValue = plain_json(message)
    except ValueError as error:
        raise Unjudgeable(UNUSABLE_REFERENCE, f"the reference's data: {error}") from None
    return value


def _parameters(message: reward_pb2.Item) -> dict[str, ParameterValue]:
    values: dict[str, ParameterValue] = {}
    if not message.parameters:
        return values
    for name, value in message.parameters.items():
        kind = value.WhichOneof("kind")
        if kind is None:
            raise Unjudgeable(INVALID_PARAMETER, f"parameter {name[:80]!r} has no value")
        values[name] = _KINDS[kind](value)
    return values


def _parameter_to_proto(parameter: ParameterSpec) -> common_pb2.ParameterSpec:
    message = common_pb2.ParameterSpec(
        name=parameter.name,
        type=_TYPES[parameter.kind],
        description=parameter.description,
        allowed_values=parameter.allowed_values,
        minimum=parameter.minimum,
        maximum=parameter.maximum,
    )
    if parameter.default is not None:
        message.default_value.CopyFrom(_value_to_proto(parameter))
    return message


def _value_to_proto(parameter: ParameterSpec) -> common_pb2.ParameterValue:
    default = parameter.default
    if parameter.kind == "bool":
        return common_pb2.ParameterValue(bool_value=bool(default))
    if isinstance(default, str):
        return common_pb2.ParameterValue(string_value=default)
    if isinstance(default, int | float):
        if parameter.kind == "int":
            return common_pb2.ParameterValue(int_value=int(default))
        return common_pb2.ParameterValue(float_value=float(default))
    values: Iterable[str] = default or ()
    return common_pb2.ParameterValue(string_list_value=common_pb2.TextList(values=values))
