"""Items of the contract from the JSON of other formats, and what failed of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.api.common.v1 import common_pb2
from assay.api.execution.v1 import execution_pb2
from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import CallError, call_error
from assay.kit.http.codec import malformed
from assay.kit.plain import to_plain

Parameters = Mapping[str, bool | int | float | str | Sequence[str]]


def make_item(
    item_id: str,
    response: str,
    chosen: tuple[str, str],
    *,
    prompt: object = None,
    label: object = None,
    data: object = None,
    tests: execution_pb2.TestSuite | None = None,
    parameters: Parameters | None = None,
) -> reward_pb2.Item:
    """An item, unnamed parts left out.

    `chosen` is verifier and task, one of which may be empty. `prompt` is a text or chat messages.
    The reference is `label` (for `write_label`), structured `data`, or `tests`.

    Raises:
        BadRequestError: MALFORMED_REQUEST: prompt or label have no known shape.
    """
    item = reward_pb2.Item(id=item_id, verifier=chosen[0], task=chosen[1], response=response)
    item.prompt.extend(messages_of(prompt))
    if tests is not None:
        item.reference.tests.CopyFrom(tests)
    elif data is not None:
        _write_data(item.reference, data)
    elif label is not None:
        write_label(item.reference, label)
    for name, value in (parameters or {}).items():
        _write_parameter(item.parameters[name], value)
    return item


def write_label(reference: reward_pb2.Reference, label: object) -> None:
    """Writes a right answer: a text or number is one, a list of texts is several, else data.

    Raises:
        BadRequestError: MALFORMED_REQUEST: it is nested too deeply.
    """
    if isinstance(label, str):
        reference.text = label
    elif isinstance(label, int | float) and not isinstance(label, bool):
        reference.text = repr(label)
    elif isinstance(label, list) and label and all(isinstance(one, str) for one in label):
        reference.texts.values.extend(label)
    else:
        _write_data(reference, label)


def messages_of(prompt: object) -> list[common_pb2.ChatMessage]:
    """Chat messages of a prompt: a text is the user's; parts of a content are joined.

    Raises:
        BadRequestError: MALFORMED_REQUEST: it is neither text nor messages.
    """
    if prompt is None or prompt == "":
        return []
    if isinstance(prompt, str):
        return [common_pb2.ChatMessage(role="user", content=prompt)]
    if not isinstance(prompt, list):
        raise malformed("the prompt must be a text or a list of messages")
    return [_message(one) for one in prompt if isinstance(one, dict) and "role" in one]


def text_of(content: object) -> str:
    """A message's content: a text, or parts, of which those of type text are joined."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _message(message: dict[str, Any]) -> common_pb2.ChatMessage:
    role = message.get("role")
    if not isinstance(role, str):
        raise malformed("the role of a message must be a text")
    return common_pb2.ChatMessage(role=role, content=text_of(message.get("content")))


def _write_data(reference: reward_pb2.Reference, data: object) -> None:
    try:
        reference.data.CopyFrom(to_plain(data))
    except (TypeError, ValueError) as error:
        raise malformed(f"the reference: {error}") from None


def _write_parameter(
    message: common_pb2.ParameterValue, value: bool | int | float | str | Sequence[str]
) -> None:
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int_value = value
    elif isinstance(value, float):
        message.float_value = value
    elif isinstance(value, str):
        message.string_value = value
    else:
        message.string_list_value.values.extend(value)


def fault_of(results: Iterable[reward_pb2.Result]) -> CallError | None:
    """The first fault as a failure of the whole call, for formats without faults; None: none."""
    faults = [result for result in results if result.WhichOneof("outcome") != "judgement"]
    if not faults:
        return None
    error = call_error(faults[0].fault)
    if len(faults) > 1:
        error.metadata["faults"] = str(len(faults))
    error.metadata["item_id"] = faults[0].id
    return error
