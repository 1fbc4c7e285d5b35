"""Jupyter's messages (protocol 5.3) on a WebSocket: JSON, the default subprotocol. Pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from assay.api.session.v1 import session_pb2
from assay.compat.cells import CellFailure, Decoders, Json, bundle_of, raised_by
from assay.compat.fields import BadField, Fields
from assay.kit.http.codec import parse_json

PROTOCOL = "5.3"

_LANGUAGES: dict[str, Json] = {
    "python3": {
        "name": "python", "version": "3", "mimetype": "text/x-python", "file_extension": ".py",
    },
    "bash": {
        "name": "bash", "version": "5", "mimetype": "text/x-sh", "file_extension": ".sh",
    },
}  # fmt: skip
KERNELS = {"python3": "python", "bash": "bash"}
"""The languages of sessions by the names of kernels."""


@dataclass(frozen=True, slots=True)
class KernelMessage:
    """A message of a client.

    Attributes:
        channel: "shell" or "control", which its reply goes to.
        header: names the message in what answers it.
        code: what is to run; empty for other kinds than "execute_request".
    """

    channel: str
    kind: str
    header: Json
    content: Json
    code: str


def read_message(text: str) -> KernelMessage:
    """Reads a message.

    Raises:
        BadField: it is none.
        CallError: it is not JSON.
    """
    fields = Fields(parse_json(text.encode("utf-8", "replace")))
    header = fields.raw("header")
    kind = Fields(header).text("msg_type")
    content = fields.raw("content", {})
    if not isinstance(header, dict) or not isinstance(content, dict):
        raise BadField(("content",), "must be an object")
    code = fields.inner("content").text("code") if kind == "execute_request" else ""
    return KernelMessage(fields.text("channel", "shell"), kind, header, content, code)


def message(channel: str, kind: str, content: Json, parent: Json, session: str) -> str:
    """A message of a kernel, which answers another."""
    name = uuid.uuid4().hex
    header = {
        "msg_id": name,
        "msg_type": kind,
        "username": "assay",
        "session": session,
        "date": datetime.now(UTC).isoformat(),
        "version": PROTOCOL,
    }
    return json.dumps(
        {
            "channel": channel,
            "header": header,
            "msg_id": name,
            "msg_type": kind,
            "parent_header": parent,
            "metadata": {},
            "content": content,
            "buffers": [],
        }
    )


def published(
    event: session_pb2.ExecuteResponse, decoders: Decoders, count: int
) -> Iterator[tuple[str, Json]]:
    """What a kernel publishes of a cell's event: the messages' kinds and contents."""
    match event.WhichOneof("event"):
        case "output":
            name, text = decoders.read(event.output)
            if text:
                yield "stream", {"name": name, "text": text}
        case "display":
            data = bundle_of(event.display)
            yield "display_data", {"data": data, "metadata": {}, "transient": {}}
        case "result":
            if event.result.HasField("value"):
                data = bundle_of(event.result.value)
                yield "execute_result", {"data": data, "metadata": {}, "execution_count": count}
            if (raised := raised_by(event.result)) is not None:
                yield "error", error_of(raised)


def error_of(raised: CellFailure) -> Json:
    """The content of an `error`; its lines have no ends here."""
    return {**raised.fields, "traceback": "".join(raised.traceback).splitlines()}


def reply(raised: CellFailure | None, count: int) -> Json:
    """The content of an `execute_reply`."""
    if raised is not None:
        return {"status": "error", "execution_count": count, **error_of(raised)}
    return {"status": "ok", "execution_count": count, "user_expressions": {}, "payload": []}


def kernel_info(name: str) -> Json:
    """The content of a `kernel_info_reply`."""
    return {
        "status": "ok",
        "protocol_version": PROTOCOL,
        "implementation": "assay",
        "implementation_version": "1",
        "language_info": _LANGUAGES[name],
        "banner": "Assay's session",
        "help_links": [],
    }


def empty_reply(asked: KernelMessage) -> Json | None:
    """The content of a reply to what is served without being known; None for nothing of that."""
    cursor = asked.content.get("cursor_pos", 0)
    replies: dict[str, Json] = {
        "complete_request": {
            "matches": [], "cursor_start": cursor, "cursor_end": cursor, "metadata": {},
        },
        "inspect_request": {"found": False, "data": {}, "metadata": {}},
        "history_request": {"history": []},
        "is_complete_request": {"status": "unknown"},
        "comm_info_request": {"comms": {}},
    }  # fmt: skip
    content = replies.get(asked.kind)
    return None if content is None else {"status": "ok", **content}


def specs() -> Json:
    """The answer of /api/kernelspecs."""
    return {
        "default": "python3",
        "kernelspecs": {
            name: {
                "name": name,
                "spec": {
                    "argv": [],
                    "env": {},
                    "display_name": f"{language} in a session",
                    "language": language,
                    "interrupt_mode": "message",
                    "metadata": {},
                },
                "resources": {},
            }
            for name, language in KERNELS.items()
        },
    }
