"""The journal's explorer below /journal/, where the server keeps a journal (--journal).

It serves the pages of `assay journal serve` to the operator; a tenant may not read them, since they
hold what all tenants had scored. /journal/events streams entries as they come (server-sent events).
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator
from itertools import islice
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from assay.kit.errors import ConfigError
from assay.kit.gate import CallGate, Phase
from assay.kit.http.streams import Stream
from assay.reward_server.http.front import RewardFront
from assay.reward_server.journal.explorer import HEADERS, answer, filter_of
from assay.reward_server.journal.page import message
from assay.viewer.journals.reader import Filter, Reader, Record
from assay.viewer.journals.rows import row_of

_PAGE = 500
_LOOK_S = 0.5


def routes(front: RewardFront) -> list[Route]:
    """/journal/ and what is below it; nothing without a journal."""
    path = front.journal
    if path is None:
        return []

    async def bare(_: Request) -> Response:
        return RedirectResponse("journal/")

    async def shown(request: Request) -> Response:
        front.need_operator(request)
        query = dict(request.query_params)
        below = f"/{request.path_params['below']}"
        if below in ("/export", "/events"):
            try:
                after = await asyncio.to_thread(_last_id, path)
            except (ConfigError, sqlite3.Error) as error:
                return _page(*_unreadable(path, error))
            if below == "/events":
                events = _events(path, filter_of(query), after, front.admission.gate)
                return Stream(events, "text/event-stream", HEADERS)
            return Stream(_exported(path, filter_of(query)), "application/jsonl", HEADERS)
        return _page(*await asyncio.to_thread(_answer, path, below, query))

    return [Route("/journal", bare), Route("/journal/{below:path}", shown)]


def _answer(path: Path, below: str, query: dict[str, str]) -> tuple[int, str, str]:
    try:
        with Reader(path) as reader:
            return answer(reader, below, query, path.name)
    except (ConfigError, sqlite3.Error) as error:
        return _unreadable(path, error)


def _unreadable(path: Path, error: Exception) -> tuple[int, str, str]:
    return 503, message(path.name, f"The journal cannot be read: {error}"), "text/html"


def _page(status: int, text: str, kind: str) -> Response:
    return Response(text.encode("utf-8", "replace"), status, dict(HEADERS), media_type=kind)


def _last_id(path: Path) -> int:
    with Reader(path) as reader:
        return reader.last_id()


def _some(path: Path, chosen: Filter, after: int) -> tuple[list[Record], int]:
    """At most so many entries after one, and the id of the last that was looked at.

    The writer goes on meanwhile, so an entry may be newer than that id.
    """
    with Reader(path) as reader:
        last = reader.last_id()
        found = list(islice(reader.each(chosen, after=after), _PAGE))
    seen = found[-1]["id"] if found else after
    return found, seen if len(found) == _PAGE else max(last, seen)


async def _exported(path: Path, chosen: Filter) -> AsyncGenerator[bytes, None]:
    after, full = 0, True
    while full:
        found, after = await asyncio.to_thread(_some, path, chosen, after)
        full = len(found) == _PAGE
        yield b"".join(_line(record) + b"\n" for record in found)


async def _events(
    path: Path, chosen: Filter, after: int, gate: CallGate
) -> AsyncGenerator[bytes, None]:
    """Entries as they come, until the server drains."""
    yield b": entries as they come\n\n"
    while gate.phase is not Phase.DRAINING:
        found, after = await asyncio.to_thread(_some, path, chosen, after)
        for record in found:
            yield b"id: %d\ndata: %s\n\n" % (record["id"], _line(record))
        if not found:
            await asyncio.sleep(_LOOK_S)


def _line(record: Record) -> bytes:
    return json.dumps(row_of(record), ensure_ascii=False).encode("utf-8", "replace")
