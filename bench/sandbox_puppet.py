"""Runs inside of a jailed program: the candidate's side of the channel, in the program's hands.

The text of this file is put before a hostile program (`sandbox_fuzz`, `forgery_tricks`), which
then reads and writes the frames itself. It knows the protocol and nothing of the expected values.
`frame` is the one writer of frames, `receive` the one reader: length (4 bytes, big-endian), kind
(1), tag (8), content as JSON.

Standard library only.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

CHANNEL = 3
NAMES = ("f", "Stack", "Solution")
NO_ARGUMENTS: dict[str, Any] = {"d": []}


def frame(kind: bytes, tag: Any, content: Any) -> bytes:
    """A frame's bytes; content is a tree for JSON, or bytes that are taken as they are."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    body = kind + _eight(tag) + text
    return struct.pack("!I", len(body)) + body


def _eight(tag: Any) -> bytes:
    return tag if isinstance(tag, bytes) else str(tag).encode()[:8].ljust(8, b"0")


def write(data: bytes) -> None:
    """All of the bytes, to the channel."""
    left = memoryview(data)
    while left:
        left = left[os.write(CHANNEL, left) :]


def receive() -> tuple[bytes, Any, Any]:
    """The next frame's kind, tag and content."""
    (size,) = struct.unpack("!I", _exactly(4))
    body = _exactly(size)
    kind = body[:1]
    return kind, body[1:9], json.loads(body[9:] or b"null")


def _exactly(size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        chunk = os.read(CHANNEL, min(size - len(parts), 1 << 20))
        if not chunk:
            os._exit(0)
        parts += chunk
    return parts


def tags() -> list[Any]:
    """What looks like a tag in the frames above; that of the request in progress comes first."""
    named: list[Any] = []
    others: list[Any] = []
    above: Any = sys._getframe()  # noqa: SLF001 - that is what it is for
    while above is not None:
        for name, value in list(above.f_locals.items()):
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if _is_tag(item):
                    (named if "tag" in name else others).append(item)
        above = above.f_back
    return [*named, *others]


def _is_tag(value: Any) -> bool:
    return isinstance(value, bytes) and len(value) == 8


def answer(tag: Any, *content: Any) -> None:
    """Sends an answer."""
    write(frame(b"A", tag, list(content)))


def mine(number: int = 0, kind: str = "function", *traits: str) -> Any:
    """A reference to an object of the program's."""
    return {"h": ["c", number, kind, kind, list(traits or ("__call__",))]}


def theirs(number: Any, kind: str = "", name: str = "", traits: Any = ()) -> Any:
    """A reference to an object of the tests'."""
    return {"h": ["t", number, kind, name, list(traits)]}


def rows(names: list[str]) -> list[Any]:
    """The answer to a look-up: each name is a function of the program's."""
    return [[name, mine()] for name in names]


def call_back(tag: Any, *content: Any) -> Any:
    """Asks the tester for something; the value that came back, or None where it refused.

    Requests that arrive meanwhile are answered with None.
    """
    write(frame(b"K", tag, [_bare(part) for part in content]))
    while True:
        kind, inner, tree = receive()
        if kind == b"R":
            return tree[1] if tree[0] == "value" else None
        answer(inner, "value", None, [], -1)


def _bare(part: Any) -> Any:
    """A reference to an object of the tests' as a call-back's subject: its number."""
    is_theirs = isinstance(part, dict) and list(part) == ["h"] and part["h"][:1] == ["t"]
    return part["h"][1] if is_theirs else part


def returned(tag: Any, request: list[Any], value: Any) -> None:
    """Answers a request with a value, in the form that its operation has."""
    extra = ([], -1) if request[0] == "call" else ()
    answer(tag, "value", value, *extra)


def take_over(
    serve: Callable[[Any, list[Any]], object],
    look_up: Callable[[list[str]], list[Any]] = rows,
    public: Any = NAMES,
) -> None:
    """Answers the request in progress, which loads the program, then serves in its stead.

    Args:
        serve: takes the tag and the content of each request but look-ups, and sends what it likes.
        look_up: makes the rows of a look-up.
        public: the names that the program says it defines.
    """
    for tag in tags()[:1]:
        answer(tag, "value", list(public))
    while True:
        kind, tag, request = receive()
        if kind != b"Q":
            continue
        if request[0] == "bye":
            os._exit(0)
        if request[0] == "lookup":
            answer(tag, "value", look_up(request[1]))
        else:
            serve(tag, request)
