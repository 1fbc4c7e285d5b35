"""Between `assay.clients.types` and the messages of assay.api.reward.v1. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.api.common.v1 import common_pb2
from assay.api.execution.v1 import execution_pb2
from assay.api.reward.v1 import reward_pb2
from assay.clients.faults import fault_from_proto, make_fault
from assay.clients.types import (
    Anchor,
    Appeal,
    Component,
    Data,
    ErrorRate,
    Fault,
    Hearing,
    Item,
    Judgement,
    Parameter,
    ParameterInfo,
    Reliability,
    Result,
    ServerInfo,
    ServerLimits,
    Span,
    ToolCall,
    VerifierInfo,
    as_json,
    is_texts,
)
from assay.kit import limits
from assay.kit.durations import seconds_of
from assay.kit.plain import to_plain
from assay.kit.reasons import Reason

_TYPE_NAMES = {
    common_pb2.PARAMETER_TYPE_BOOL: "bool",
    common_pb2.PARAMETER_TYPE_INT: "int",
    common_pb2.PARAMETER_TYPE_FLOAT: "float",
    common_pb2.PARAMETER_TYPE_STRING: "string",
    common_pb2.PARAMETER_TYPE_STRING_LIST: "string_list",
}


def item_to_proto(
    item: Item, wire_id: str, labels: Mapping[str, str] | None = None
) -> reward_pb2.Item:
    """Writes an item under its id in the request, with `labels` in place of its own.

    Raises:
        ValueError: A value does not fit the wire: a text with half a surrogate pair, a whole number
            beyond 64 bits, data that JSON cannot write or that is nested too deeply.
        TypeError: A prompt, turn, parameter, count or time-out has a type that no item can have.
    """
    message = reward_pb2.Item(
        id=wire_id,
        verifier=item.verifier,
        task=item.task,
        group_id=item.group_id,
        truncated=item.truncated,
    )
    if isinstance(item.prompt, str):
        if item.prompt:
            message.prompt.add(role="user", content=item.prompt)
    else:
        for part in item.prompt:
            message.prompt.add(role=part["role"], content=part["content"])
    _write_candidate(item, message)
    _write_reference(item, message)
    for name, value in item.parameters.items():
        message.parameters[name].CopyFrom(parameter_to_proto(value))
    if item.response_token_count is not None:
        message.response_token_count = item.response_token_count
    if labels is None:
        labels = item.labels
    if labels:
        message.labels.update(labels)
    if item.timeout_s is not None:
        message.timeout.FromNanoseconds(int(item.timeout_s * 1e9))
    return message


def _write_candidate(item: Item, message: reward_pb2.Item) -> None:
    if item.response is not None:
        message.response = item.response
    elif item.turns:
        for turn in item.turns:
            said = common_pb2.ChatMessage(role=turn.role, content=turn.content)
            added = message.turns.turns.add(message=said, from_policy=turn.from_policy)
            _write_calls(turn.tool_calls, added)
    if item.tool_calls:
        _write_calls(item.tool_calls, message)


def _write_calls(calls: Sequence[ToolCall], message: reward_pb2.Item | reward_pb2.Turn) -> None:
    for call in calls:
        added = message.tool_calls.add(name=call.name)
        if isinstance(call.arguments, str):
            added.text = call.arguments
        elif call.arguments is not None:
            added.data.CopyFrom(to_plain(as_json(call.arguments, "the arguments of a tool call")))


def _write_reference(item: Item, message: reward_pb2.Item) -> None:
    match item.reference:
        case None:
            return
        case str() as text:
            message.reference.text = text
        case Anchor(response=response):
            message.reference.anchor_response = response
        case execution_pb2.TestSuite() as suite:
            message.reference.tests.CopyFrom(suite)
        case Data(value=value):
            message.reference.data.CopyFrom(to_plain(as_json(value)))
        case value if is_texts(value):
            message.reference.texts.values.extend(value)  # type: ignore[arg-type]  # of texts
            message.reference.texts.SetInParent()
        case value:
            message.reference.data.CopyFrom(to_plain(as_json(value)))


def parameter_to_proto(value: Parameter) -> common_pb2.ParameterValue:
    """Writes a parameter's value.

    Raises:
        ValueError: A whole number beyond 64 bits.
        TypeError: Not a bool, int, float, str or list of str.
    """
    if isinstance(value, bool):
        return common_pb2.ParameterValue(bool_value=value)
    if isinstance(value, int):
        return common_pb2.ParameterValue(int_value=value)
    if isinstance(value, float):
        return common_pb2.ParameterValue(float_value=value)
    if isinstance(value, str):
        return common_pb2.ParameterValue(string_value=value)
    return common_pb2.ParameterValue(string_list_value=common_pb2.TextList(values=value))


def parameter_from_proto(message: common_pb2.ParameterValue) -> Parameter | None:
    """Reads a parameter's value; None when none is set."""
    kind = message.WhichOneof("kind")
    if kind is None:
        return None
    if kind == "string_list_value":
        return tuple(message.string_list_value.values)
    value: bool | int | float | str = getattr(message, kind)
    return value


def result_from_proto(message: reward_pb2.Result, item_id: str) -> Result:
    """Reads a result under the caller's id.

    A result without an outcome, or with a number that is not finite, is a fault.
    """
    outcome: Judgement | Fault
    kind = message.WhichOneof("outcome")
    if kind == "judgement":
        outcome = _judgement_from_proto(message.judgement)
    elif kind == "fault":
        outcome = fault_from_proto(message.fault)
    else:
        outcome = make_fault(
            Reason.MISSING_RESULT, "the server answered with neither judgement nor fault"
        )
    timings, labels = message.timings, message.labels
    return Result(
        id=item_id,
        outcome=outcome,
        queue_s=seconds_of(timings.queue),
        execution_s=seconds_of(timings.execution),
        from_cache=message.from_cache,
        labels=dict(labels) if labels else {},
    )


def _judgement_from_proto(message: reward_pb2.Judgement) -> Judgement | Fault:
    answer = message.extracted_answer if message.HasField("extracted_answer") else None
    parts = [Component(part.name, part.score, part.weight) for part in message.components]
    spans = [
        Span(span.range.start, span.range.end, span.reward, span.label, span.turn_index)
        for span in message.spans
    ]
    try:
        return Judgement(
            reward=message.reward,
            verdict=message.verdict,
            components=tuple(parts),
            spans=tuple(spans),
            extracted_answer=answer,
            explanation=message.explanation,
            verifier=message.verifier.name,
            version=message.verifier.version,
            suspicions=tuple(message.suspicions),
            appeal=_appeal_from_proto(message.appeal) if message.HasField("appeal") else None,
        )
    except ValueError as error:
        return make_fault(Reason.INTERNAL, f"{error}; report it to whoever runs the server")


def _appeal_from_proto(message: reward_pb2.Appeal) -> Appeal:
    chance = message.probability
    if not 0 < chance <= 1:
        raise ValueError(f"an appeal's probability is {chance:g}, which must be above 0, at most 1")
    first, second = _hearing(message.first), _hearing(message.second)
    return Appeal(message.component, first, second, message.drawn, chance)


def _hearing(message: reward_pb2.Hearing) -> Hearing:
    who = message.verifier
    return Hearing(who.name, who.version, message.verdict, message.reward)


def limits_from_proto(message: common_pb2.BatchLimits) -> ServerLimits:
    """Reads limits; those of assay.kit.limits replace what a server does not state."""
    return ServerLimits(
        max_items=message.max_items or limits.MAX_BATCH_ITEMS,
        max_message_bytes=min(
            message.max_message_bytes or limits.MAX_MESSAGE_BYTES, limits.MAX_MESSAGE_BYTES
        ),
        max_item_bytes=message.max_item_bytes or limits.MAX_ITEM_BYTES,
        default_item_timeout_s=message.default_item_timeout.ToNanoseconds() / 1e9
        or limits.DEFAULT_ITEM_TIMEOUT_S,
        max_item_timeout_s=message.max_item_timeout.ToNanoseconds() / 1e9
        or limits.MAX_ITEM_TIMEOUT_S,
    )


def server_info_from_proto(message: reward_pb2.ListVerifiersResponse) -> ServerInfo:
    """Reads a server's verifiers and limits."""
    return ServerInfo(
        verifiers=tuple(_verifier_from_proto(verifier) for verifier in message.verifiers),
        limits=limits_from_proto(message.limits),
        version=message.server_version,
    )


def _verifier_from_proto(message: reward_pb2.VerifierInfo) -> VerifierInfo:
    return VerifierInfo(
        name=message.name,
        version=message.version,
        description=message.description,
        tasks=tuple(message.tasks),
        min_reward=message.min_reward,
        max_reward=message.max_reward,
        deterministic=message.deterministic,
        cacheable=message.cacheable,
        needs_reference=message.needs_reference,
        needs_group=message.needs_group,
        parameters=tuple(_parameter_info(spec) for spec in message.parameters),
        verdicts=tuple(message.verdicts),
        is_profile=message.is_profile,
        reliability=tuple(_reliability_from_proto(one) for one in message.reliability),
    )


def _reliability_from_proto(message: reward_pb2.Reliability) -> Reliability:
    positive, negative = message.false_positive, message.false_negative
    return Reliability(
        domain=message.domain,
        false_positive=_rate(positive) if message.HasField("false_positive") else None,
        false_negative=_rate(negative) if message.HasField("false_negative") else None,
        verifier_version=message.verifier_version,
        data_digest=message.data_digest,
        truth=message.truth,
    )


def _rate(message: reward_pb2.ErrorRate) -> ErrorRate:
    return ErrorRate(
        message.value, message.low, message.high, message.confidence, message.responses
    )


def _parameter_info(spec: common_pb2.ParameterSpec) -> ParameterInfo:
    return ParameterInfo(
        name=spec.name,
        type=_TYPE_NAMES.get(spec.type, "unspecified"),
        default=parameter_from_proto(spec.default_value),
        description=spec.description,
        allowed_values=tuple(spec.allowed_values),
        minimum=spec.minimum if spec.HasField("minimum") else None,
        maximum=spec.maximum if spec.HasField("maximum") else None,
    )
