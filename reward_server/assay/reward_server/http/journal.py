"""The viewer below /journal/, where the server keeps a journal (--journal).

It serves what `assay view` does to the operator; a tenant may not read it, since it holds what all
tenants had scored. /journal/entries?after=ID gives entries as they are kept, a page at a time, for
`assay view https://HOST/journal` elsewhere. /journal/logout has a browser forget the token.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from assay.kit.errors import ConfigError
from assay.kit.gate import Phase
from assay.reward_server.http.front import RewardFront
from assay.viewer.app import HEADERS, Pages, dumped, problem
from assay.viewer.mirror import read_page

if TYPE_CHECKING:
    from assay.viewer.api import ViewerApi

INDEX_SHARE = 0.2
"""Of the time that indexing may take beside scoring (python -m bench viewer --parts scoring)."""
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="assay", charset="UTF-8"'}


def routes(front: RewardFront) -> list[Route]:
    """/journal/ and what is below it; nothing without a journal."""
    path = front.journal
    if path is None:
        return []
    shown = _Shown(path, front)
    front.closers.append(shown.close)

    async def bare(_: Request) -> Response:
        return RedirectResponse("journal/")

    async def answer(request: Request) -> Response:
        below = request.path_params["below"]
        if below == "logout":
            return problem(401, "you are out", _CHALLENGE)
        front.need_operator(request)
        try:
            path.stat()
            if below == "entries":
                return await _entries(path, request)
            return await (await shown.pages()).answer(request, below)
        except (ConfigError, OSError, sqlite3.Error) as error:
            return problem(503, f"the journal cannot be read: {error}")

    return [
        Route("/journal", bare),
        Route("/journal/{below:path}", answer, methods=["GET", "POST"]),
    ]


class _Shown:
    """The viewer of the journal, made when it is first asked for."""

    def __init__(self, path: Path, front: RewardFront) -> None:
        self._path = path
        self._admission = front.admission
        self._making = threading.Lock()
        self._api: ViewerApi | None = None
        self._pages: Pages | None = None

    async def pages(self) -> Pages:
        """The viewer's pages.

        Raises:
            ConfigError: the file is gone, or no journal.
        """
        shown = self._pages
        return shown if shown is not None else await asyncio.to_thread(self._made)

    def _made(self) -> Pages:
        from assay.viewer.api import ViewerApi  # noqa: PLC0415 - its index, where it is shown

        with self._making:
            if self._pages is not None:
                return self._pages
            self._api = ViewerApi([self._path], share=INDEX_SHARE).__enter__()
            pages = Pages(self._api, lambda: self._admission.gate.phase is Phase.DRAINING)
            self._pages = pages
            return pages

    def close(self) -> None:
        """Ends the viewer's threads."""
        if self._pages is not None and self._api is not None:
            self._pages.close()
            self._api.__exit__(None, None, None)


async def _entries(path: Path, request: Request) -> Response:
    after = request.query_params.get("after", "0")
    if not (after.isdecimal() and len(after) < 19):
        return problem(400, "after is the id of the last entry that you have, or 0")
    rows = await asyncio.to_thread(lambda: list(map(dumped, read_page(path, int(after)))))
    body = b"".join(row + b"\n" for row in rows)
    return Response(body, 200, HEADERS, media_type="application/jsonl")
