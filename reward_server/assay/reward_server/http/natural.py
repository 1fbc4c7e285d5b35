"""Short forms of a request, as people write them, in the contract's own shapes. Pure.

| short | contract |
|---|---|
| no item has an `id` | "0", "1", ... |
| `"completion": "42"` | `"response": "42"` |
| `"prompt": "What is 6 * 7?"` | one message of the user |
| `"reference": "42"`, `42` | `{"text": "42"}` |
| `"reference": ["42", "forty-two"]` | `{"texts": {"values": [...]}}` |
| `"reference": [[1, 2]]`, `{"data": {"x": 1}}` | `{"data": PlainValue}` |
| `"parameters": {"places": 2}` | `{"places": {"int_value": 2}}` |
| `"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]` | `{"name": "f", "text": "{}"}` |
| `"tool_calls": [{"name": "f", "arguments": {"x": 1}}]` | `{"name": "f", "data": PlainValue}` |
| `"timeout": 1.5` | `"1.5s"` |
| `"labels": {"step": 120}` | `{"step": "120"}` |
"""

from __future__ import annotations

import difflib
import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor

from assay.api.execution.v1 import execution_pb2
from assay.api.reward.v1 import reward_pb2
from assay.kit.http.codec import malformed
from assay.kit.plain import to_plain
from assay.kit.tool_calls import read_tool_call

_Json = dict[str, Any]


def _fields(descriptor: Descriptor) -> dict[str, str]:
    """The proto's name of each field, by every name that JSON may have for it."""
    return {
        name: field.name for field in descriptor.fields for name in (field.name, field.json_name)
    }


_ITEM = _fields(reward_pb2.Item.DESCRIPTOR) | {"completion": "response"}
_REFERENCE = _fields(reward_pb2.Reference.DESCRIPTOR)
_PLAIN = _fields(execution_pb2.PlainValue.DESCRIPTOR)


def in_contract(found: Any) -> Any:
    """A body of JSON with its short forms written out; other shapes stay for protobuf to refuse.

    Raises:
        BadRequestError: MALFORMED_REQUEST, with the field and what may stand there.
    """
    if not isinstance(found, dict) or not isinstance(found.get("items"), list):
        return found
    items = found["items"]
    unnamed = not any(isinstance(item, dict) and "id" in item for item in items)
    return found | {
        "items": [
            _item(item, f"items[{n}]", str(n) if unnamed else None)
            if isinstance(item, dict)
            else item
            for n, item in enumerate(items)
        ]
    }


def _item(item: _Json, where: str, name: str | None) -> _Json:
    known: _Json = {} if name is None else {"id": name}
    for key, value in item.items():
        field = _known(key, _ITEM, where)
        if value is None:  # as if it were not there
            continue
        if field in known:
            raise malformed(f"{where}.{key}: the item has this field twice")
        write = {"tool_calls": _calls, "turns": _turns}.get(field)
        place = f"{where}.{key}"
        known[field] = write(value, place) if write else _value(field, value, place)
    return known


def _value(field: str, value: Any, where: str) -> Any:
    match field, value:
        case "response", _ if not isinstance(value, str):
            raise malformed(f"{where}: must be a text; turns of a dialogue are `turns`")
        case "id", int() if not isinstance(value, bool):
            return str(value)
        case "prompt", str():
            return [{"role": "user", "content": value}]
        case "reference", _:
            return _reference(value, where)
        case "parameters" | "labels", dict():
            write = _parameter if field == "parameters" else _label
            return {name: write(one, f"{where}.{name}") for name, one in value.items()}
        case "timeout", int() | float() if not isinstance(value, bool):
            return f"{value}s"
    return value


def _calls(value: Any, where: str) -> Any:
    return (
        [_call(one, f"{where}[{n}]") for n, one in enumerate(value)]
        if isinstance(value, list)
        else value
    )


def _turns(value: Any, where: str) -> Any:
    listed = value.get("turns") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return value
    return {**value, "turns": [_turn(one, f"{where}.turns[{n}]") for n, one in enumerate(listed)]}


def _turn(value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: _calls(one, f"{where}.{key}") if key in ("tool_calls", "toolCalls") else one
        for key, one in value.items()
    }


def _call(value: Any, where: str) -> Any:
    if isinstance(value, dict) and not {"function", "arguments"} & value.keys():
        return value  # the contract's own
    try:
        name, arguments = read_tool_call(value)
    except ValueError as error:
        raise malformed(f"{where}: {error}") from None
    if isinstance(arguments, str):
        return {"name": name, "text": arguments}
    return {"name": name} if arguments is None else {"name": name, "data": _plain(arguments, where)}


def _reference(value: Any, where: str) -> Any:
    if isinstance(value, bool):
        raise malformed(
            f"{where}: must be a text, a number, a list of texts that are all right, or an object "
            'such as {"data": ...}'
        )
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, int | float):
        return {"text": json.dumps(value)}
    if isinstance(value, list):
        texts = bool(value) and all(isinstance(one, str) for one in value)
        return {"texts": {"values": value}} if texts else {"data": _plain(value, where)}
    return _reference_fields(value, where) if isinstance(value, dict) else value


def _reference_fields(value: _Json, where: str) -> _Json:
    fields = {_known(key, _REFERENCE, where, _WRAP): one for key, one in value.items()}
    if isinstance(texts := fields.get("texts"), list):
        fields["texts"] = {"values": texts}
    if "data" in fields and not _is_plain(fields["data"]):
        fields["data"] = _plain(fields["data"], f"{where}.data")
    return fields


_WRAP = '; data stands in {"data": ...}'


def _is_plain(value: Any) -> bool:
    """Whether it is written as the contract's PlainValue already."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _PLAIN


def _plain(value: Any, where: str) -> _Json:
    try:
        message = to_plain(value)
    except (TypeError, ValueError) as error:
        raise malformed(f"{where}: {error}") from None
    plain: _Json = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return plain


def _label(value: Any, where: str) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, str):
        return value
    raise malformed(f"{where}: must be a text or a number")


def _parameter(value: Any, where: str) -> Any:
    match value:
        case bool():
            return {"bool_value": value}
        case int():
            return {"int_value": value}
        case float():
            return {"float_value": value}
        case str():
            return {"string_value": value}
        case list() if all(isinstance(one, str) for one in value):
            return {"string_list_value": {"values": value}}
        case dict():
            return value
    raise malformed(f"{where}: must be a text, a number, true, false, or a list of texts")


def _known(key: str, names: dict[str, str], where: str, more: str = "") -> str:
    if key in names:
        return names[key]
    close = difflib.get_close_matches(key, names, 1)
    guess = f"; is it {close[0]}?" if close else ""
    fields = ", ".join(sorted(set(names.values())))
    raise malformed(f"{where}.{key[:80]}: there is no such field{guess or more} (known: {fields})")
