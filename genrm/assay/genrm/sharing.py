"""Answers of one model that calls share: in flight, and afterwards from a cache.

A key is a hash of the model's name, its weights' revision and the whole request. Kept is what an
equal request would get again; never a fault, nothing long, and nothing of a model whose weights
have no known revision or whose engine is not deterministic.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from assay.genrm.engines.base import Answer, ModelInfo, Request, Written
from assay.kit.batch.sharing import OutcomeCache

MAX_TEXT_CHARS = 4_000
_UNKNOWN = ("unknown", "unversioned:")


@dataclass(eq=False, slots=True)
class AskedRequest:
    """A request at the engine, and how many wait for its answer."""

    task: asyncio.Future[Answer]
    waiters: int = 0

    @property
    def open(self) -> bool:
        """Whether its answer can still be waited for, or is there."""
        cancelling = getattr(self.task, "cancelling", int)
        return not (self.task.cancelled() or cancelling())

    def leave(self) -> None:
        """Lets one waiter go; the last one withdraws the request."""
        self.waiters -= 1
        if not self.waiters and not self.task.done():
            self.task.cancel()


class SharedAnswers:
    """The answers of one model. Belongs to one event loop.

    Args:
        info: the model now: its revision may change when its weights do.
        entries: how many answers are kept; 0 for none, then nothing is shared between calls.
        count: called with "hit", "joined" or "miss" for each request that could be shared.
    """

    def __init__(
        self,
        info: Callable[[], ModelInfo],
        entries: int,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._info = info
        self._entries = entries
        self._count = count
        self._kept = OutcomeCache(entries, is_small)
        self._open: dict[bytes, AskedRequest] = {}

    def key(self, request: Request) -> bytes | None:
        """The key of a request whose answer is fixed; None where nothing may be shared."""
        info = self._info()
        if not self._entries or not info.deterministic or info.revision.startswith(_UNKNOWN):
            return None
        text = repr((info.name, info.revision, request))
        return hashlib.sha256(text.encode()).digest()

    def find(self, key: bytes) -> AskedRequest | None:
        """An equal request that is answered or in flight, for one more to wait for."""
        kept = self._kept.get(key)
        if kept is not None:
            self._count("hit")
            answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            answered.set_result(kept)
            return AskedRequest(answered)
        asked = self._open.get(key)
        if asked is not None and asked.open:
            self._count("joined")
            return asked
        self._count("miss")
        return None

    def note(self, key: bytes, request: Request, asked: AskedRequest) -> None:
        """Notes a request that was just asked."""
        self._open[key] = asked

        def ended(task: asyncio.Future[Answer]) -> None:
            if self._open.get(key) is asked:
                del self._open[key]
            answered = not task.cancelled() and task.exception() is None
            if answered and self.key(request) == key:  # else the weights changed meanwhile
                self._kept.put(key, task.result())

        asked.task.add_done_callback(ended)


def is_small(answer: Answer) -> bool:
    """Whether an answer is small enough to be kept."""
    return not isinstance(answer, Written) or len(answer.text) <= MAX_TEXT_CHARS
