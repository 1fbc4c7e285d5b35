"""JSON to and from the server: retries, deadlines, and what each way of failing means.

    429, 502, 503, 504         again, after Retry-After or a growing pause, while there is time
    connection lost            again, a few times at once: the server may just have closed an idle
                               connection; then ENGINE_DIED
    400, 413, 422              Refused, with the server's message
    any other status, no JSON  ENGINE_FAILED
    no answer in time          ENGINE_FAILED

Requests change nothing, so each may be sent twice. The key travels in a header and is removed from
every message.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from typing import Any

import httpx2

from assay.genrm.engines.base import EngineError
from assay.kit import tracing
from assay.kit.reasons import Reason

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_BUSY = frozenset({429, 502, 503, 504})
_REFUSED = frozenset({400, 413, 422})
_LOST_TRIES = 4
_PAUSE_S = 0.25
_MAX_PAUSE_S = 8.0
_SHOWN_CHARS = 300
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

# One line of log for each request would drown the service's own.
logging.getLogger("httpx2").setLevel(logging.WARNING)

Json = dict[str, Any]


class Refused(Exception):
    """The server refuses this request.

    Attributes:
        status: of HTTP.
        message: the server's, one line, cut.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Absent(EngineError):
    """The server has no such route (404, 405, 501)."""


class HttpTransport:
    """One server; `root` is its address without /v1, `timeout_s` includes retries."""

    def __init__(self, root: str, key: str, timeout_s: float, connections: int) -> None:
        self._key = key
        self._timeout_s = timeout_s
        self._client = httpx2.AsyncClient(
            base_url=root,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(timeout_s),
            limits=httpx2.Limits(max_connections=connections),
            # Proxies as the environment says, but never on the way to this machine.
            trust_env=httpx2.URL(root).host not in _LOOPBACK,
        )

    async def get(self, path: str) -> Json:
        """As `post`."""
        return await self._ask("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any]) -> Json:
        """The server's answer, a JSON object.

        Raises:
            Refused: the request is wrong in the server's eyes.
            Absent: there is no such route.
            EngineError: ENGINE_DIED or ENGINE_FAILED.
        """
        return await self._ask("POST", path, json.dumps(body).encode())

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def _ask(self, method: str, path: str, content: bytes | None) -> Json:
        deadline = time.monotonic() + self._timeout_s
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + self._timeout_s):
                return await self._tries(method, path, content, deadline)
        except TimeoutError:
            raise EngineError(
                Reason.ENGINE_FAILED,
                f"the server did not answer {path} in {self._timeout_s:g} s: allow more time "
                "(request_timeout_s) or send less at once",
            ) from None

    async def _tries(self, method: str, path: str, content: bytes | None, deadline: float) -> Json:
        lost = busy = 0
        while True:
            try:
                status, headers, text = await self._send(method, path, content)
            except httpx2.TimeoutException:
                raise TimeoutError from None
            except (httpx2.TransportError, httpx2.StreamError) as error:
                lost += 1
                if lost >= _LOST_TRIES:
                    raise self._died(path, error) from error
                await asyncio.sleep(_PAUSE_S * lost)
                continue
            if status not in _BUSY:
                return self._read(path, status, text)
            pause = _pause(headers, busy)
            busy += 1
            if time.monotonic() + pause >= deadline:
                raise EngineError(
                    Reason.ENGINE_FAILED,
                    f"the server is busy ({status}) and stayed so for {busy} tries of {path}: "
                    "send less at once (max_concurrent) or allow more time (request_timeout_s)",
                )
            await asyncio.sleep(pause)

    async def _send(
        self, method: str, path: str, content: bytes | None
    ) -> tuple[int, Mapping[str, str], str]:
        headers = dict(tracing.headers())  # vLLM, for one, goes on with the trace
        if content is not None:
            headers["Content-Type"] = "application/json"
        async with self._client.stream(method, path, content=content, headers=headers) as answer:
            parts, size = [], 0
            async for part in answer.aiter_bytes():
                size += len(part)
                if size > MAX_ANSWER_BYTES:
                    raise EngineError(
                        Reason.ENGINE_FAILED,
                        f"the server's answer to {path} is over {MAX_ANSWER_BYTES} bytes",
                    )
                parts.append(part)
            return answer.status_code, answer.headers, b"".join(parts).decode(errors="replace")

    def _read(self, path: str, status: int, text: str) -> Json:
        if status in _REFUSED:
            raise Refused(status, self._said(text))
        if status in (404, 405, 501):
            raise Absent(
                Reason.ENGINE_FAILED, f"the server has no {path} ({status}): {self._said(text)}"
            )
        if status in (401, 403):
            raise EngineError(
                Reason.ENGINE_FAILED,
                f"the server does not accept the key ({status}): set api_key_env to the "
                "variable that holds it",
                {"http_status": str(status)},
            )
        if status // 100 != 2:
            raise EngineError(
                Reason.ENGINE_FAILED,
                f"the server failed at {path} ({status}): {self._said(text)}",
                {"http_status": str(status)},
            )
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise EngineError(
                Reason.ENGINE_FAILED,
                f"the server's answer to {path} is not a JSON object: {self._said(text)}",
            )
        return answer

    def _died(self, path: str, error: Exception) -> EngineError:
        return EngineError(
            Reason.ENGINE_DIED,
            f"the server at {self._client.base_url} cannot be reached ({type(error).__name__} at "
            f"{path}): is it running?",
        )

    def _said(self, text: str) -> str:
        try:
            found = json.loads(text)
        except ValueError:
            found = text
        if isinstance(found, dict):
            error = found.get("error", found)
            found = error.get("message", error) if isinstance(error, dict) else error
        said = " ".join(str(found).split())
        if self._key:
            said = said.replace(self._key, "***")
        return said[:_SHOWN_CHARS] or "no message"


def _pause(headers: Mapping[str, str], tries: int) -> float:
    try:
        said = float(headers.get("retry-after", ""))
    except ValueError:
        said = -1.0
    if 0 <= said < 1e6:
        return max(said, _PAUSE_S / 4)
    return min(_PAUSE_S * 2.0**tries, _MAX_PAUSE_S)
