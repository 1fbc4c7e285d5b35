"""Answers that come in parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from assay.kit.errors import refuse
from assay.kit.reasons import Reason


class Stream(Response):
    """Sends parts as they come; their source is closed when the caller goes away.

    Args:
        parts: empty ones are left out.
        stall_s: seconds that a part waits for its reader. 0: for ever.
    """

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str] | None = None,
        *,
        stall_s: float = 0.0,
    ) -> None:
        super().__init__(headers=headers, media_type=media_type)
        del self.headers["content-length"]
        self._parts = parts
        self._stall_s = stall_s or None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends them.

        Raises:
            CallError: CANCELLED, where nobody reads; the answer stays unfinished.
        """
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._parts) as parts:
            async for part in parts:
                if part:
                    message = {"type": "http.response.body", "body": part, "more_body": True}
                    try:
                        async with asyncio.timeout(self._stall_s):
                            await send(message)
                    except TimeoutError:
                        raise refuse(Reason.CANCELLED, "the caller stopped reading") from None
        await send({"type": "http.response.body", "body": b""})
