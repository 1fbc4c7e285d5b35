"""Answers that come in parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Stream(Response):
    """Sends parts as they come; their source is closed when the caller goes away.

    Args:
        parts: empty ones are left out.
    """

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(headers=headers, media_type=media_type)
        del self.headers["content-length"]
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends them."""
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._parts) as parts:
            async for part in parts:
                if part:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
