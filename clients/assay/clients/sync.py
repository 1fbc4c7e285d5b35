"""The synchronous client: an `AsyncRewardClient` on an event loop of its own, in a thread.

It may be shared by threads, survives a fork (the child gets a loop and a connection of its own at
its first call, and never touches the parent's), and can be pickled (the copy connects anew). It
closes at the end of its `with`, or of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from assay.clients.client import AsyncRewardClient, OnError, check_client
from assay.clients.config import ClientConfig
from assay.clients.portal import SyncClient
from assay.clients.threads import BlockingGrpcTransport
from assay.clients.transport import Transport
from assay.clients.types import Item, Result, ServerInfo
from assay.rpc.tls import ClientTls

T = TypeVar("T")


class RewardClient(SyncClient[AsyncRewardClient]):
    """Scores items on a reward server, synchronously. The methods are those of `AsyncRewardClient`.

    Args:
        target: the server's address, "host:port".
        tls: encrypts, and says whom to trust. None: plain text, for loopback.
        token: the bearer token that the operator gave you.
        timeout_s: the whole time that a call may take, retries included, in seconds.
        config: batching and retries.
        transport: makes what carries messages instead of gRPC; called once in each process. Must be
            picklable if the client is to be.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        config: ClientConfig | None = None,
        transport: Callable[[], Transport] | None = None,
    ) -> None:
        check_client(target, transport, timeout_s)
        self.target = target
        self.timeout_s = timeout_s
        self._tls = tls
        self._token = token
        self._config = config or ClientConfig()
        self._make_transport = transport
        self._start()

    def score(
        self, items: Iterable[Item], *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> list[Result]:
        """Scores a list of items; see `AsyncRewardClient.score`."""
        portal = self._open()
        return portal.run(portal.client.score(items, timeout_s=timeout_s, on_error=on_error))

    def score_one(
        self, item: Item, *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Result:
        """Scores one item, together with those of other threads; see `AsyncRewardClient`."""
        portal = self._open()
        return portal.run(portal.client.score_one(item, timeout_s=timeout_s, on_error=on_error))

    def submit(
        self, items: Iterable[Item], *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Future[list[Result]]:
        """Starts what `score` does and does not wait for it.

        `await asyncio.wrap_future(client.submit(items))` waits on any event loop, without a thread.
        """
        portal = self._open()
        return portal.submit(portal.client.score(items, timeout_s=timeout_s, on_error=on_error))

    def submit_one(
        self, item: Item, *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Future[Result]:
        """Starts what `score_one` does and does not wait for it; see `submit`."""
        portal = self._open()
        return portal.submit(portal.client.score_one(item, timeout_s=timeout_s, on_error=on_error))

    def stream(
        self,
        items: Iterable[Item | Sequence[Item]],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> Iterator[Result]:
        """Scores items as they come, yields results as they are ready; see `AsyncRewardClient`.

        The items are taken in a thread of their own, so that results come while the next item is
        still awaited.
        """
        portal = self._open()
        results = portal.client.stream(
            _taken_in_thread(items), timeout_s=timeout_s, on_error=on_error
        )
        try:
            while (result := portal.run(_next(results))) is not None:
                yield result
        finally:
            portal.run(_close(results))

    def list_verifiers(self, *, timeout_s: float | None = None) -> ServerInfo:
        """Asks what the server judges, and its limits; see `AsyncRewardClient.list_verifiers`."""
        portal = self._open()
        return portal.run(portal.client.list_verifiers(timeout_s=timeout_s))

    def wait_ready(self, timeout_s: float = 60.0) -> ServerInfo:
        """Waits until the server answers; see `AsyncRewardClient.wait_ready`."""
        portal = self._open()
        return portal.run(portal.client.wait_ready(timeout_s))

    def _make_client(self) -> AsyncRewardClient:
        make = self._make_transport
        wire = (
            make() if make else BlockingGrpcTransport(self.target, tls=self._tls, token=self._token)
        )
        return AsyncRewardClient(
            self.target, timeout_s=self.timeout_s, config=self._config, transport=wire
        )


async def _next(results: AsyncIterator[T]) -> T | None:
    return await anext(results, None)


async def _close(results: Any) -> None:
    await results.aclose()


async def _taken_in_thread(items: Iterable[T]) -> AsyncIterator[T]:
    """The items of a blocking iterable, each taken when it is asked for, without blocking the loop.

    In a thread that the end of the process does not wait for, unlike those of `asyncio.to_thread`:
    a source may wait for an item that never comes.
    """
    end = object()
    iterator = iter(items)
    places: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()

    def take() -> None:
        while (place := places.get()) is not None:
            if place.set_running_or_notify_cancel():
                try:
                    place.set_result(next(iterator, end))
                except BaseException as error:  # noqa: BLE001  # the caller's own; it gets it back
                    place.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(take,), name="assay-source", daemon=True).start()
    try:
        while True:
            place: Future[Any] = Future()
            places.put(place)
            item = await asyncio.wrap_future(place)
            if item is end:
                return
            yield item
    finally:
        places.put(None)
