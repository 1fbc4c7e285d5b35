"""An entry of the journal: one item's outcome and its texts, cut. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from google.protobuf import json_format

from assay.reward_server.domain import (
    Fault,
    Judgement,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.pending import PendingScore

MAX_RESPONSE_CHARS = 32_768
MAX_PROMPT_CHARS = 16_384
MAX_REFERENCE_CHARS = 8_192
MAX_ANSWER_CHARS = 4_096
MAX_PARAMETERS_CHARS = 4_096
MAX_PARTS = 256
"""Most components, spans or suspicions of an entry; the first ones are kept."""

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


@dataclass(frozen=True, slots=True)
class Entry:
    """One item's outcome. The fields are the columns of the store, in their order.

    Attributes:
        time_s: when the result was ready to be sent, in seconds since 1970.
        request_id: id of the call.
        item_id: the caller's id of the item.
        group_id: samples of one prompt share it; empty for none.
        task: the task that the caller named; empty for none.
        verifier: who judged, or should have; empty where none was found.
        verdict: None for a fault.
        reward: None for a fault.
        fault: the fault's reason; None for a judgement.
        explanation: the verifier's, or the fault's message.
        answer: the beginning of the extracted answer; None where there is none.
        components: JSON, a list of [name, score, weight].
        spans: JSON, a list of [start, end, reward, label, turn], in code points of the text.
        suspicions: JSON, a list of names.
        queue_s: seconds from the request's arrival to the beginning of the execution.
        execution_s: seconds of execution.
        from_cache: the judgement was computed for another item.
        prompt: JSON, a list of [role, content]; the contents cut to MAX_PROMPT_CHARS in all.
        response: its first MAX_RESPONSE_CHARS; of a dialogue its turns, as JSON, a list of [role,
            content, from_policy], and behind these the turn's tool calls, a list of [name,
            arguments], where it has some. A response with tool calls is one turn whose role is
            null. None where the item had none.
        is_dialogue: the response is such a list.
        response_chars: length of the whole response, in code points.
        reference: its first MAX_REFERENCE_CHARS: one answer as it is; several, data and tests as
            JSON, or the number of tests where that would be too long. None where there is none.
        item_key: 16 bytes, equal for equal prompt, response and reference, whoever judged. None for
            an item that could not be read.
        labels: JSON, the caller's labels by name.
        parameters: JSON, the verifier's parameters that are not its defaults, by name. None for an
            unsound item, and in entries of format 1.
        reference_kind: "text", "texts", "data", "tests" or "anchor"; None where there is none, and
            in entries of format 1.
        cut: JSON, a list of the parts that are not here as a whole: "prompt", "response",
            "reference", "parameters". None in entries of format 1.
        appeal: JSON, the two hearings of an appeal as `Appeal` has them. None where no second one
            was asked for, and in entries of formats 1 and 2.
    """

    time_s: float
    request_id: str
    item_id: str
    group_id: str
    task: str
    verifier: str
    version: str
    verdict: str | None
    reward: float | None
    fault: str | None
    explanation: str
    answer: str | None
    components: str
    spans: str
    suspicions: str
    queue_s: float
    execution_s: float
    from_cache: bool
    prompt: str
    response: str | None
    is_dialogue: bool
    response_chars: int
    reference: str | None
    item_key: bytes | None
    labels: str
    parameters: str | None
    reference_kind: str | None
    cut: str | None
    appeal: str | None = None


M = TypeVar("M", bound=tuple[Any, ...])
Row = tuple[object, ...]
"""An entry as the store takes it: the values of its fields, in their order."""


def row_of(pending: PendingScore, request_id: str, time_s: float) -> Row:
    """The entry of a settled item.

    Args:
        pending: settled.
        request_id: of the call that it came with.
        time_s: now, in seconds since 1970.

    Raises:
        ValueError: the item is not settled.
    """
    outcome = pending.outcome
    if outcome is None:
        raise ValueError("the item is not settled")
    spec = pending.spec
    item = pending.item
    texts, cut = _texts(item)
    parameters = _parameters(item, spec)
    if parameters is not None and len(parameters) > MAX_PARAMETERS_CHARS:
        parameters, cut = None, [*cut, "parameters"]
    return (
        time_s,
        request_id,
        pending.item_id,
        item.group_id if item is not None else "",
        item.task if item is not None else "",
        spec.name if spec is not None else "",
        spec.version if spec is not None else "",
        *_said(outcome),
        pending.queue_s,
        pending.execution_s,
        pending.from_cache,
        *texts,
        None if item is None else item.content(),
        _ENCODE(pending.labels) if pending.labels else "{}",
        parameters,
        _kind(item),
        _ENCODE(cut) if cut else "[]",
        _appeal(outcome),
    )


def weight_of(row: Row) -> int:
    """About the bytes that a row takes in the store; at least those of its texts."""
    total = 200
    for value in row:
        if isinstance(value, str):
            total += len(value) if value.isascii() else 4 * len(value)
    return total


def _said(outcome: Judgement | Fault) -> Row:
    if isinstance(outcome, Fault):
        return (
            None,
            None,
            outcome.reason,
            outcome.message[:MAX_ANSWER_CHARS],
            None,
            "[]",
            "[]",
            "[]",
        )
    answer = outcome.extracted_answer
    components = [(p.name, p.score, p.weight) for p in outcome.components[:MAX_PARTS]]
    spans = [(s.start, s.end, s.reward, s.label, s.turn_index) for s in outcome.spans[:MAX_PARTS]]
    return (
        outcome.verdict,
        outcome.reward,
        None,
        outcome.explanation,
        None if answer is None else answer[:MAX_ANSWER_CHARS],
        _ENCODE(components),
        _ENCODE(spans) if spans else "[]",
        _ENCODE(outcome.suspicions[:MAX_PARTS]) if outcome.suspicions else "[]",
    )


def _appeal(outcome: Judgement | Fault) -> str | None:
    appeal = None if isinstance(outcome, Fault) else outcome.appeal
    return None if appeal is None or appeal.second is None else _ENCODE(asdict(appeal))


def _texts(item: VerifierItem | None) -> tuple[Row, list[str]]:
    """Prompt, response, whether it is a dialogue, its length, and the reference; what was cut."""
    if item is None:
        return ("[]", None, False, 0, None), ["response"]
    candidate = item.candidate
    prompt = [(message.role, message.content) for message in item.prompt]
    turns = candidate.lines()
    kept, kept_turns = _cut(prompt, MAX_PROMPT_CHARS), _cut(turns, MAX_RESPONSE_CHARS)
    response, length = candidate.text, 0
    if response is not None and not turns:
        length = len(response)
        response = response[:MAX_RESPONSE_CHARS]
    elif turns:
        length = sum(len(turn[1]) for turn in turns)
        response = _ENCODE(kept_turns)
    reference, whole_reference = _reference(item)
    cut = [] if kept == prompt else ["prompt"]
    if response is None or kept_turns != turns or (not turns and length > len(response)):
        cut.append("response")
    if not whole_reference:
        cut.append("reference")
    return (_ENCODE(kept) if kept else "[]", response, bool(turns), length, reference), cut


def _cut(messages: Sequence[M], room: int) -> list[M]:
    """The first messages, of [role, content, ...]: MAX_PARTS of them, of so many characters."""
    kept: list[M] = []
    for message in messages[:MAX_PARTS]:
        role, content, *rest = message
        room_of_calls = len(_ENCODE(rest[1:])) if len(rest) > 1 else 0
        rest = rest if room_of_calls <= room else rest[:1]
        cut: Any = (role and role[:64], content[:room], *rest)
        kept.append(cut)
        room -= len(content) + room_of_calls
        if room <= 0:
            break
    return kept


def _reference(item: VerifierItem) -> tuple[str | None, bool]:
    """The text of the reference, and whether it is all of it."""
    if item.tests is not None:
        size = item.tests.ByteSize()
        if size <= MAX_REFERENCE_CHARS:
            text = json_format.MessageToJson(item.tests, indent=None)
            if len(text) <= MAX_REFERENCE_CHARS:
                return text, True
        return f"{len(item.tests.tests)} tests, {size} bytes", False
    if item.references:
        text = item.references[0] if len(item.references) == 1 else _ENCODE(item.references)
    elif item.anchor is not None:
        text = item.anchor
    elif item.data is not None:
        text = _ENCODE(item.data)
    else:
        return None, True
    return text[:MAX_REFERENCE_CHARS], len(text) <= MAX_REFERENCE_CHARS


def _kind(item: VerifierItem | None) -> str | None:
    if item is None:
        return None
    if item.references:
        return "text" if len(item.references) == 1 else "texts"
    kinds = (("anchor", item.anchor), ("data", item.data), ("tests", item.tests))
    return next((kind for kind, value in kinds if value is not None), None)


def _parameters(item: VerifierItem | None, spec: VerifierSpec | None) -> str | None:
    """The parameters that are not defaults; None for an unsound item, which has none yet."""
    if item is None or spec is None or (spec.parameters and not item.parameters):
        return None
    if item.parameters is spec.defaults or not item.parameters:
        return "{}"
    defaults = {parameter.name: parameter.default for parameter in spec.parameters}
    own = {name: value for name, value in item.parameters.items() if value != defaults.get(name)}
    return _ENCODE(own)
