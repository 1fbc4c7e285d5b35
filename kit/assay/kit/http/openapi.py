"""The OpenAPI 3.1 document of a service, from its faces and the contract's schemas. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from assay.kit.http.faces import Face, Json
from assay.kit.http.operations import PROBLEM

_PREFIX = "assay.api."
_SCALARS: dict[int, Json] = {
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number"},
    FieldDescriptor.TYPE_FLOAT: {"type": "number"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_INT64: {
        "description": "Written as a text; a number is read too.",
        "oneOf": [
            {"type": "string", "pattern": "^-?[0-9]{1,18}$"},
            {"type": "integer", "format": "int64"},
        ],
    },
}
_KNOWN: dict[str, Json] = {
    "google.protobuf.Duration": {
        "type": "string",
        "description": 'Seconds, as "1.5s".',
        "pattern": r"^[0-9]{1,9}(\.[0-9]{1,9})?s$",
    },
    "google.rpc.Status": {
        "type": "object",
        "description": "A fault. The reason is in the detail of type google.rpc.ErrorInfo.",
        "properties": {
            "code": {"type": "integer", "description": "Of gRPC."},
            "message": {"type": "string"},
            "details": {
                "type": "array",
                "items": {"type": "object", "properties": {"@type": {"type": "string"}}},
            },
        },
    },
}


def schemas_of(messages: Iterable[Descriptor], comments: Mapping[str, str]) -> Json:
    """Schemas of messages of the contract, and of those inside them, by name.

    `comments` has the .proto files' texts by the full names of messages, fields and enums.
    """
    schemas: Json = {}
    for message in messages:
        _add_message(message, schemas, comments)
    return dict(sorted(schemas.items()))


def document(info: Mapping[str, str], faces: Iterable[Face], served: Container[str]) -> Json:
    """The document of some faces, with the `served` paths alone."""
    paths: Json = {}
    schemas: Json = {"Problem": PROBLEM}
    for face in faces:
        paths |= {path: one for path, one in face.operations.items() if path in served}
        schemas |= face.schemas
    return {
        "openapi": "3.1.0",
        "info": {**info, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"basic": []}, {}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The token as the password, whatever the user.",
                },
            },
        },
    }


def _add_message(message: Descriptor, schemas: Json, comments: Mapping[str, str]) -> None:
    name = _name(message)
    if name in schemas:
        return
    schema: Json = {"type": "object", "additionalProperties": False}
    schemas[name] = schema
    if comments.get(message.full_name):
        schema["description"] = comments[message.full_name]
    schema["properties"] = {
        field.name: _field(field, schemas, comments) for field in message.fields
    }
    groups = [one for one in message.oneofs if not one.name.startswith("_")]
    if groups:
        schema["description"] = " ".join(
            [schema.get("description", ""), *map(_alternatives, groups)]
        )


def _alternatives(group: Any) -> str:
    return f"At most one of {', '.join(field.name for field in group.fields)}."


def _field(field: FieldDescriptor, schemas: Json, comments: Mapping[str, str]) -> Json:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        value = _value(entry.fields_by_name["value"], schemas, comments)
        schema: Json = {"type": "object", "additionalProperties": value}
    elif field.is_repeated:
        schema = {"type": "array", "items": _value(field, schemas, comments)}
    else:
        schema = dict(_value(field, schemas, comments))
    text = comments.get(field.full_name)
    return {**schema, "description": text} if text else schema


def _value(field: FieldDescriptor, schemas: Json, comments: Mapping[str, str]) -> Json:
    message = field.message_type
    if message is not None:
        if message.full_name in _KNOWN:
            name = message.full_name
            schemas[name] = _KNOWN[name]
            return {"$ref": f"#/components/schemas/{name}"}
        _add_message(message, schemas, comments)
        return {"$ref": f"#/components/schemas/{_name(message)}"}
    if field.enum_type is not None:
        return _enum(field.enum_type)
    return dict(_SCALARS[field.type])


def _enum(enum: EnumDescriptor) -> Json:
    return {"type": "string", "enum": [value.name for value in enum.values]}


def _name(message: Descriptor) -> str:
    return str(message.full_name).removeprefix(_PREFIX)
