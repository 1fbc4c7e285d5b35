"""Writes the journal beside the scoring: a bounded queue and one thread.

Scoring appends to the queue and waits for its lock alone, which is held for a few assignments. What
does not fit is dropped and counted. A file that cannot be written turns the journal off, with one
line in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.kit import limits
from assay.kit.calls import request_id_var
from assay.kit.errors import ConfigError
from assay.reward_server import convert
from assay.reward_server.journal.entries import Row, row_of, weight_of
from assay.reward_server.journal.store import BATCH_BYTES, BATCH_ROWS, Lost, Store
from assay.reward_server.pending import PendingScore

QUEUE_ITEMS = 32_768
QUEUE_BYTES = 2 * limits.MAX_MESSAGE_BYTES
_GATHER_S = 0.1
_YIELD_ROWS = 16
_TRIES = 20  # while a reader, or another process, holds the file
_CLOSE_S = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Offer:
    """One response's items, on their way to the file."""

    time_s: float
    request_id: str
    items: Sequence[PendingScore]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class JournalState:
    """What a journal did since it was started. `written + dropped + waiting` is what was offered.

    Attributes:
        written: entries in the file, or that went from it for new ones.
        dropped: entries that did not fit into the queue, or came when the journal was off.
        expired: entries that went for new ones.
        waiting: entries in the queue.
        trouble: why the journal is off; empty while it is on.
    """

    written: int
    dropped: int
    expired: int
    waiting: int
    trouble: str


class Journal:
    """Keeps what the scorer answers. `offer` is for the event loop, the rest happens in a thread.

    Args:
        path: the file.
        limit_bytes: most bytes of the file and its log.
        queue_items: most entries that wait.
        queue_bytes: most bytes of the items that wait.
    """

    def __init__(
        self,
        path: Path,
        limit_bytes: int,
        *,
        queue_items: int = QUEUE_ITEMS,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._queue_items = queue_items
        self._queue_bytes = queue_bytes
        self._queue: deque[_Offer] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._opened = threading.Event()
        self._refused: ConfigError | None = None
        self._thread: threading.Thread | None = None
        self._items = self._bytes = self._written = self._dropped = self._told = self._expired = 0
        self._trouble = ""

    async def start(self) -> None:
        """Opens the file. A broken file or a full disk turns the journal off.

        Raises:
            ConfigError: the path cannot be a journal's: see `Store`.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="assay-journal", daemon=True)
            self._thread.start()
        await asyncio.to_thread(self._opened.wait)
        if self._refused is not None:
            raise self._refused

    async def close(self) -> None:
        """Writes what waits, for up to some seconds. May be called more than once."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._closing.set()
        self._wake.set()
        await asyncio.to_thread(thread.join, _CLOSE_S)
        state = self.state()
        _log.info(
            "the journal ends: %d written, %d dropped, %d expired%s",
            state.written,
            state.dropped + state.waiting,
            state.expired,
            f"; off: {state.trouble}" if state.trouble else "",
        )

    def state(self) -> JournalState:
        """The counts so far. For any thread."""
        with self._lock:
            return JournalState(
                self._written, self._dropped, self._expired, self._items, self._trouble
            )

    def size_bytes(self) -> int:
        """Bytes of the file and its log on the disk now. For any thread."""
        size = 0
        for path in (self._path, self._path.with_name(f"{self._path.name}-wal")):
            with contextlib.suppress(OSError):
                size += path.stat().st_size
        return size

    def offer(self, items: Sequence[PendingScore]) -> None:
        """Takes settled items, all or none; nobody changes them any more. Never waits or raises."""
        if not items:
            return
        size = sum(item.size_bytes for item in items)
        for item in items:
            if item.refused is not None:
                item.item, item.refused = convert.sketch(item.refused), None
        with self._lock:
            fits = (
                not self._trouble
                and self._items + len(items) <= self._queue_items
                and self._bytes + size <= self._queue_bytes
            )
            first = not (fits or self._dropped or self._trouble)
            if fits:
                self._queue.append(_Offer(time.time(), request_id_var.get(), items, size))
                self._items += len(items)
                self._bytes += size
            else:
                self._dropped += len(items)
        if fits:
            self._wake.set()
        elif first:
            _log.warning(
                "the journal drops entries: they come faster than %s takes them", self._path
            )

    def _run(self) -> None:
        store: Store | None = None
        trouble = "a defect; see its traceback"
        try:
            store = Store(self._path, self._limit_bytes)
            self._opened.set()
            while not self._closing.is_set():
                self._wake.wait()
                self._wake.clear()
                self._closing.wait(_GATHER_S)
                self._drain(store)
            self._drain(store)  # what came while the last batch was written
            store.close()
            trouble = "closed"
        except ConfigError as error:
            self._refused, trouble = error, str(error)
        except (sqlite3.Error, OSError, Lost) as error:
            trouble = str(error)
        finally:
            self._turn_off(trouble)
            self._opened.set()
            if store is not None and trouble != "closed":
                _abandon(store)

    def _drain(self, store: Store) -> None:
        """Writes what waits, in batches across offers."""
        rows: list[Row] = []
        weight = done_bytes = 0
        while True:
            with self._lock:
                taken = self._queue.popleft() if self._queue else None
            if taken is None:
                break
            for item in taken.items:
                rows.append(row_of(item, taken.request_id, taken.time_s))
                weight += weight_of(rows[-1])
                if len(rows) % _YIELD_ROWS == 0:
                    time.sleep(0)  # the event loop may want the interpreter
                if len(rows) >= BATCH_ROWS or weight >= BATCH_BYTES:
                    self._keep(store, rows, done_bytes)
                    rows, weight, done_bytes = [], 0, 0
            done_bytes += taken.size_bytes
        self._keep(store, rows, done_bytes)

    def _keep(self, store: Store, rows: list[Row], done_bytes: int) -> None:
        """Writes a batch; it leaves the queue's account when it is kept, or dropped."""
        with self._lock:
            told = self._dropped
        kept = not rows or store.append(rows, told - self._told)
        for _ in range(_TRIES):
            if kept or self._closing.wait(_GATHER_S):
                break
            kept = store.append(rows, told - self._told)
        with self._lock:
            self._items -= len(rows)
            self._bytes -= done_bytes
            self._expired = store.expired
            if not kept:
                self._dropped += len(rows)
            elif rows:
                self._written += len(rows)
                self._told = told

    def _turn_off(self, trouble: str) -> None:
        with self._lock:
            self._queue.clear()
            self._dropped += self._items
            lost, self._items, self._bytes = self._items, 0, 0
            self._trouble = trouble
        if trouble != "closed" and self._refused is None:
            _log.error(
                "the journal is off until the next start: %s: %s; %d entries were not written",
                self._path,
                trouble,
                lost,
            )


def _abandon(store: Store) -> None:
    try:
        store.close()
    except (sqlite3.Error, OSError):
        _log.debug("the journal's file could not be closed", exc_info=True)
