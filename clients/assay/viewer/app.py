"""The viewer over HTTP: its pages, its API, exports, entries as they come, and notes.

`assay view` serves it on its own (`serve.py`), the reward server below /journal/. Who may ask is
checked before: `Guard` of `serve.py`, and the middleware and the operator's token of the server.

Covered: what is asked for is looked up in tables, never joined to a path. Headers forbid any
script, style or request but of this site. A note takes JSON and the header `X-Assay`, which no form
and no page of another site can send. Questions are bounded in length, and in number at a time; who
does not read a stream for a minute loses it.

Not covered: how much work a question is; the queries behind bound that.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from assay.kit.http.streams import Stream

STATIC = Path(__file__).with_name("static")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
MOST_QUERY = 8192
"""Characters of an address's query."""
MOST_NOTE = 16 * 1024
"""Bytes of a note's request."""
_KINDS = {
    "html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml",
}  # fmt: skip
_NAME = re.compile(r"[a-z0-9_-]{1,64}\.(html|css|js|svg)")
_API = re.compile(r"api/[a-z]+")
_THREADS = 4
_WAITING = 64
_STREAMS = 16
_CHUNK = 100
_LOOK_S = 1.0
_STALL_S = 60.0

Query = Sequence[tuple[str, str]]


class Answers(Protocol):
    """What the app asks; `assay.viewer.api.ViewerApi` is one. Its calls block."""

    def answer(self, path: str, query: Query) -> tuple[int, Any]:
        """Status and JSON of a question."""

    def note(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Keeps a note."""

    def export(self, query: Query) -> Iterator[Mapping[str, Any]]:
        """Rows that `assay score` reads."""

    def labelled(self, query: Query) -> Iterator[Mapping[str, Any]]:
        """Rows that `assay eval-judge` reads."""

    def events(self, query: Query, after: int) -> tuple[list[dict[str, Any]], int]:
        """Items as they came after a number, and the last number; -1 for the newest."""


class Pages:
    """Answers every request below the viewer's prefix.

    Args:
        api: what is shown.
        ends: whether streams of entries end now, as the server does.
    """

    def __init__(self, api: Answers, ends: Callable[[], bool] = lambda: False) -> None:
        self._api = api
        self._ends = ends
        self._threads = ThreadPoolExecutor(_THREADS, "viewer")
        self._waiting = self._streams = 0

    def close(self) -> None:
        """Lets running answers go."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def answer(self, request: Request, below: str) -> Response:
        """Answers one request.

        Args:
            request: GET, HEAD, or POST.
            below: its path below the prefix, decoded, without the first slash.
        """
        if len(request.scope["query_string"]) > MOST_QUERY:
            return problem(400, f"the address asks for more than {MOST_QUERY} characters can say")
        if request.method == "POST":
            return await self._post(request, below)
        text = request.scope["query_string"].decode("latin-1")
        query = parse_qsl(text, keep_blank_values=True, errors="replace")
        if _API.fullmatch(below):
            return await self._asked(functools.partial(self._api.answer, below, query))
        if below in ("events", "export", "notes/export"):
            return await self._streamed(request, below, query)
        return _file(below or "index.html")

    async def _post(self, request: Request, below: str) -> Response:
        if below != "api/notes":
            return problem(405, "nothing but a note is sent here")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.headers.get("x-assay") != "1" or kind != "application/json":
            return problem(403, "a note is JSON, with the header X-Assay: 1")
        try:
            body = await _body(request)
        except ClientDisconnect:
            return problem(400, "the note did not arrive whole")
        if body is None:
            return problem(413, f"a note has at most {MOST_NOTE} bytes")
        try:
            note = json.loads(body)
        except (ValueError, RecursionError):
            note = None
        if not isinstance(note, dict):
            return problem(400, "a note is an object of JSON")
        return await self._asked(functools.partial(self._api.note, note))

    async def _asked(self, call: Callable[[], tuple[int, Any]]) -> Response:
        if self._waiting >= _WAITING:
            return problem(503, "too many questions at once: ask again in a moment")

        def told() -> tuple[int, bytes]:
            status, data = call()
            return status, dumped(data)

        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            status, body = await loop.run_in_executor(self._threads, told)
        finally:
            self._waiting -= 1
        kind = "application/json" if status < 400 else "application/problem+json"
        return Response(body, status, HEADERS, media_type=kind)

    async def _streamed(self, request: Request, below: str, query: Query) -> Response:
        if self._streams >= _STREAMS:
            return problem(503, "too many streams at once: close a page, or ask again later")
        if below == "events":
            events = self._counted(self._events(request, query))
            return Stream(events, "text/event-stream", HEADERS, stall_s=_STALL_S)
        rows = self._api.export if below == "export" else self._api.labelled
        return await self._exported(functools.partial(rows, query))

    async def _exported(self, rows: Callable[[], Iterator[Mapping[str, Any]]]) -> Response:
        """Rows, drawn by one thread of their own; an error before the first is a status."""
        own = ThreadPoolExecutor(1, "viewer-export")
        loop = asyncio.get_running_loop()
        try:
            drawn = await loop.run_in_executor(own, rows)
            first = await loop.run_in_executor(own, _lines, drawn)
        except ValueError as error:
            own.shutdown(wait=False)
            return problem(400, str(error))

        async def parts() -> AsyncGenerator[bytes, None]:
            part = first
            try:
                while part:
                    yield part
                    part = await loop.run_in_executor(own, _lines, drawn)
            finally:
                own.submit(getattr(drawn, "close", lambda: None))
                own.shutdown(wait=False)

        return Stream(self._counted(parts()), "application/jsonl", HEADERS, stall_s=_STALL_S)

    async def _events(self, request: Request, query: Query) -> AsyncGenerator[bytes, None]:
        """Items as they come; a browser that lost its connection goes on where it was."""
        loop = asyncio.get_running_loop()
        told = request.headers.get("last-event-id", "")
        after = int(told) if told.isdecimal() and len(told) < 19 else -1
        yield b": items as they come\n\n"
        while not self._ends():
            found, after = await loop.run_in_executor(self._threads, self._api.events, query, after)
            yield b"".join(b"id: %d\ndata: %s\n\n" % (after, dumped(row)) for row in found)
            if not found:
                yield b":\n\n"  # who has gone is noticed by it
                await asyncio.sleep(_LOOK_S)

    async def _counted(self, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        self._streams += 1
        try:
            async with aclosing(parts):
                async for part in parts:
                    yield part
        finally:
            self._streams -= 1


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """What went wrong, and what to do, as JSON."""
    body = dumped({"detail": detail, "status": status})
    kind = "application/problem+json"
    return Response(body, status, {**HEADERS, **(headers or {})}, media_type=kind)


def dumped(data: Any) -> bytes:
    """JSON in ASCII: texts may hold half a surrogate pair. What is no finite number is null."""
    try:
        text = json.dumps(data, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(data), allow_nan=False)
    return text.encode("ascii")


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return data


def _file(name: str) -> Response:
    path = STATIC / name
    if not _NAME.fullmatch(name) or not path.is_file():
        return problem(404, "there is no such page")
    kind = _KINDS[path.suffix[1:]]
    return Response(path.read_bytes(), 200, HEADERS, media_type=kind)


async def _body(request: Request) -> bytes | None:
    """The request's body; None where it is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_NOTE:
            return None
    return body


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(dumped(row) + b"\n" for row in islice(rows, _CHUNK))
