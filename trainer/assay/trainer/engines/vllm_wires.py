"""Connections to a vLLM server: blocking calls, and streams of tokens."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import httpx2

from assay.trainer.engines.engine import OpenRequest
from assay.trainer.errors import TrainingStoppedError

GENERATE = "/inference/v1/generate"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Event:
    """A message of a stream: a piece of an answer, or why it broke."""

    stream: TokenStream
    piece: Mapping[str, Any] | None = None
    broken: str = ""


Events = queue.SimpleQueue[Event | None]


@dataclass(slots=True, eq=False)
class TokenStream:
    """A request in flight.

    Attributes:
        ends: tokens that end its row.
    """

    row: OpenRequest
    ends: frozenset[int]
    task: Future[None] | None = None

    def close(self) -> None:
        """Cancels it; the server notices the lost connection."""
        if self.task is not None:
            self.task.cancel()


class Wires:
    """Connections to a server, on an event loop in a thread of its own.

    Args:
        url: of the server.
        timeout_s: of a call, and of connecting.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url.rstrip("/")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vllm", daemon=True)
        self._thread.start()
        # a stream may wait long for its turn; silence on all of them is noticed elsewhere
        self._patient = httpx2.Timeout(timeout_s, read=None)
        key = os.environ.get("VLLM_API_KEY", "")
        self._client = httpx2.AsyncClient(
            base_url=self._url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(timeout_s),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
            # proxies as the environment says, but never on the way to this machine
            trust_env=httpx2.URL(self._url).host not in _LOOPBACK,
        )

    def get(self, path: str) -> dict[str, Any]:
        """As `post`."""
        return self._wait(self._call("GET", path, None))

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The server's answer; empty where it has no content.

        Raises:
            TrainingStoppedError: it is gone, or refuses.
        """
        return self._wait(self._call("POST", path, body))

    def stream(self, stream: TokenStream, body: Mapping[str, Any], events: Events) -> None:
        """Asks for a response; events go to `events`."""
        stream.task = asyncio.run_coroutine_threadsafe(
            self._listen(stream, body, events), self._loop
        )

    def close(self) -> None:
        """Closes all."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.aclose()

    def _wait(self, call: Any) -> dict[str, Any]:
        found: dict[str, Any] = asyncio.run_coroutine_threadsafe(call, self._loop).result()
        return found

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        try:
            answer = await self._client.request(method, path, json=body)
        except httpx2.HTTPError as error:
            raise TrainingStoppedError(self._lost(path, error)) from error
        if answer.status_code // 100 != 2:
            raise TrainingStoppedError(self._refused(path, answer.status_code, answer.text))
        found = answer.json() if answer.content else {}
        return found if isinstance(found, dict) else {}

    async def _listen(self, stream: TokenStream, body: Mapping[str, Any], events: Events) -> None:
        try:
            asked = self._client.stream("POST", GENERATE, json=body, timeout=self._patient)
            async with asked as answer:
                if answer.status_code // 100 != 2:
                    said = (await answer.aread()).decode(errors="replace")
                    events.put(
                        Event(stream, broken=self._refused(GENERATE, answer.status_code, said))
                    )
                    return
                async for line in answer.aiter_lines():
                    if not line.startswith("data: "):
                        continue
                    if line == "data: [DONE]":
                        return
                    piece = json.loads(line.removeprefix("data: "))
                    if "choices" not in piece:
                        events.put(Event(stream, broken=f"{piece}"[:300]))
                        return
                    for choice in piece["choices"]:
                        events.put(Event(stream, choice))
                        if choice.get("finish_reason") is not None:
                            return
            events.put(Event(stream, broken="it ended a stream before its response"))
        except (httpx2.HTTPError, httpx2.StreamError, ValueError) as error:
            events.put(Event(stream, broken=self._lost(GENERATE, error)))

    def _lost(self, path: str, error: Exception) -> str:
        return (
            f"{self._url} does not answer {path} ({type(error).__name__}): is the vLLM server "
            "running?"
        )

    def _refused(self, path: str, status: int, said: str) -> str:
        line = " ".join(said.split())[:300]
        hint = ""
        if status == 404:
            hint = "; start it with --enable-scale-out and VLLM_SERVER_DEV_MODE=1"
        elif status in (401, 403):
            hint = "; set VLLM_API_KEY"
        return f"{self._url} refused {path} ({status}: {line}){hint}"
