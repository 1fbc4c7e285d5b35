"""Pieces of an OpenAPI document for faces. Data alone.

Foreign formats are described as far as they are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


def ref(name: str) -> Json:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def body(schema: Json, media_type: str = "application/json") -> Json:
    """What is sent."""
    return {"required": True, "content": {media_type: {"schema": schema}}}


def answers(schema: Json, text: str, media_type: str = "application/json") -> Json:
    """A response, or a problem."""
    problem = {"application/problem+json": {"schema": ref("Problem")}}
    return {
        "200": {"description": text, "content": {media_type: {"schema": schema}}},
        "4XX": {"description": "The request is refused.", "content": problem},
        "5XX": {"description": "No answer is to be had now.", "content": problem},
    }


def foreign(schema: Json, text: str) -> Json:
    """Responses of a format that has failures of its own, beside problems."""
    other = {"application/json": {"schema": ANY_OBJECT}}
    found = answers(schema, text)
    for status in ("4XX", "5XX"):
        found[status]["content"] |= other
    return found


def query(name: str, text: str, **schema: Any) -> Json:
    """A parameter of the URL."""
    return {
        "name": name,
        "in": "query",
        "description": text,
        "schema": {"type": "string", **schema},
    }


def post(tag: str, summary: str, sent: Json, answered: Json, *parameters: Json) -> Json:
    """A path that takes a body."""
    told = {"tags": [tag], "summary": summary, "requestBody": sent, "responses": answered}
    return {"post": {**told, "parameters": [*parameters, _TIMEOUT, _REQUEST_ID]}}


def get(tag: str, summary: str, answered: Json) -> Json:
    """A path without a body."""
    return {"get": {"tags": [tag], "summary": summary, "responses": answered}}


def foreign_paths(tag: str, served: Iterable[tuple[str, str, str]]) -> Json:
    """Path items of a foreign format, by paths, methods in lower case, and summaries."""
    found: Json = {}
    for path, method, summary in served:
        answered = foreign(ANY, f"As {tag} has it.")
        told: Json = {"tags": [tag], "summary": summary, "responses": answered}
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        told["parameters"] = [
            {
                "name": name,
                "in": "path",
                "description": f"Which {name}.",
                "required": True,
                "schema": TEXT,
            }
            for name in names
        ]
        if method == "post":
            told["requestBody"] = body(ANY_OBJECT)
        found.setdefault(path, {})[method] = told
    return found


def object_of(required: list[str], **properties: Json) -> Json:
    """An object with these properties."""
    return {"type": "object", "required": required, "properties": properties}


TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
ANY: Json = {}
ANY_OBJECT: Json = {"type": "object"}
TEXTS: Json = {"type": "array", "items": TEXT}
NUMBERS: Json = {"type": "array", "items": NUMBER}
_TIMEOUT: Json = {
    "name": "x-timeout-s",
    "in": "header",
    "description": "Seconds until the call's deadline; --http-timeout-s where it is not sent.",
    "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
}
_REQUEST_ID: Json = {
    "name": "x-request-id",
    "in": "header",
    "description": "Your name for the call; it comes back and is in the server's log.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"},
}

PROBLEM: Json = {
    "type": "object",
    "description": "Why there is no answer (RFC 9457).",
    "required": ["title", "status", "detail", "reason", "retryable", "request_id"],
    "properties": {
        "type": TEXT,
        "title": {"type": "string", "description": "What the reason means."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, and the remedy."},
        "reason": {"type": "string", "description": "Of the lexicon in docs/reference/errors.md."},
        "retryable": {"type": "boolean", "description": "The same request may be sent again."},
        "retry_after_s": {"type": "number", "description": "Not before so many seconds."},
        "request_id": TEXT,
        "metadata": {"type": "object", "additionalProperties": TEXT},
    },
}
"""The schema of every refusal."""
