"""JSON in and out: what a body may hold, and how an answer is written.

Read strictly: UTF-8, no NaN or infinity, no lone surrogates, no number that no float can hold, and
a bounded number of parts.
"""

from __future__ import annotations

import json
import math
from itertools import islice
from typing import Any, NoReturn

from google.protobuf import json_format
from google.protobuf.message import Message
from starlette.requests import Request

from assay.kit.errors import CallError, refuse
from assay.kit.limits import MAX_BATCH_ITEMS
from assay.kit.reasons import Reason

JSON = "application/json"
_SHOWN_CHARS = 200
MAX_CONTAINERS = 500_000
"""Objects and lists of one body."""


async def read_json(request: Request) -> Any:
    """The JSON of a request's body.

    Raises:
        BadRequestError: MALFORMED_REQUEST: the body is not JSON in UTF-8, or holds NaN or lone
            surrogates. BATCH_TOO_LARGE: it has too many parts.
    """
    return parse_json(await request.body())


async def read_object(request: Request) -> dict[str, Any]:
    """The JSON object of a request's body.

    Raises:
        BadRequestError: MALFORMED_REQUEST: as `read_json`, or the body is no object.
    """
    found = await read_json(request)
    if not isinstance(found, dict):
        raise malformed("the body must be a JSON object")
    return found


def parse_json(body: bytes) -> Any:
    """As `read_json`, of bytes."""
    try:
        text = body.decode()
        found = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise malformed("the body is nested too deeply") from None
    except ValueError as error:
        raise malformed(f"the body is not JSON: {error}") from None
    # There are no more of them than braces and brackets, in texts or not.
    if body.count(b"{") + body.count(b"[") > MAX_CONTAINERS and _is_crumbled(found):
        raise refuse(
            Reason.BATCH_TOO_LARGE,
            f"the body has more than {MAX_CONTAINERS} objects and lists: send less at a time",
        )
    return found


def check_count(items: int) -> None:
    """Refuses a batch that is too large before items are made of it.

    Raises:
        BadRequestError: BATCH_TOO_LARGE.
    """
    if items > MAX_BATCH_ITEMS:
        raise refuse(
            Reason.BATCH_TOO_LARGE,
            f"the request has {items} items, and at most {MAX_BATCH_ITEMS} are taken: split it",
        )


def malformed(text: str) -> CallError:
    """The exception for a body of another format; one line, cut to be shown."""
    return refuse(Reason.MALFORMED_REQUEST, " ".join(text.split())[:_SHOWN_CHARS])


def _is_crumbled(found: Any) -> bool:
    """Whether it has so many objects and lists that making messages of them would take minutes."""
    waiting, seen = [found], 0
    while waiting and seen + len(waiting) <= MAX_CONTAINERS:
        one = waiting.pop()
        seen += 1
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        containers = (value for value in inner if isinstance(value, dict | list))
        waiting.extend(islice(containers, MAX_CONTAINERS))
    return bool(waiting)


def _finite(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ValueError(f"{text[:40]} is too large a number")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def as_dict(message: Message) -> dict[str, Any]:
    """A message as JSON has it, zeros and empty lists included."""
    found: dict[str, Any] = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def write(found: object) -> bytes:
    """One line of JSON in UTF-8; half a surrogate pair becomes a question mark."""
    return json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
