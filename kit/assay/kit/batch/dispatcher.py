"""The dispatcher: runs pending items, and drops what nobody waits for.

`begin` runs what this process can and hands the rest to pools, `finish` waits. Only `begin` may
find a pool full; then it has begun nothing in any pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Generic

from assay.kit.batch.items import JobPool, P, PoolJob, SharedExecution
from assay.kit.batch.sharing import OutcomeCache, SingleFlight
from assay.kit.batch.spreading import SpreadBatch, Spreading
from assay.kit.faults import ItemFault
from assay.kit.pool.jobs import Done
from assay.kit.queue import QueueFull

_SLICE_S = 0.002
_TURNS = 3  # of the loop, in which a frame is read, its job ends, and its parcel lands


class Runs(ABC, Generic[P]):
    """How a service's items run: here, in a pool, or elsewhere. By default nowhere."""

    async def prepare(self, items: Sequence[P], deadline_s: float) -> None:
        """Prepares the items of a call, before any is run; may settle some by a fault."""

    def run_here(self, item: P) -> bool:
        """Runs an open item in this process, at once, and settles it; else returns False."""
        del item
        return False

    def pool_of(self, item: P) -> JobPool | None:
        """The pool that runs an open item; None where no pool does."""
        del item
        return None

    def job(self, item: P, lane: object) -> PoolJob:
        """The job of an open item for its pool, not submitted."""
        raise NotImplementedError

    def key(self, item: P) -> Hashable | None:
        """A key that equal items share; None where nothing may be shared."""
        del item
        return None

    def outcome(self, item: P, done: Done[Any]) -> Any:
        """The item's outcome from its job's result."""
        del item
        return done.outcome

    async def run_elsewhere(self, items: Sequence[P], deadline_s: float) -> None:
        """Settles open items that no pool runs, as far as the deadline allows."""


class Dispatcher(Generic[P]):
    """Settles pending items. Belongs to one event loop.

    Args:
        late: the fault of those that are not settled in time.

    Attributes:
        spreading: how large batches are spread over workers; None: all of `run_here` is done here.
    """

    def __init__(self, runs: Runs[P], late: ItemFault, cache: OutcomeCache) -> None:
        self.late = late
        self.spreading: Spreading[P] | None = None
        self._runs = runs
        self._cache = cache
        self._flights = SingleFlight(cache)

    async def begin(
        self, items: Sequence[P], lane: object, deadline_s: float, *, waits: bool
    ) -> JobPool | None:
        """Runs what it can here, and begins in pools what needs them.

        Args:
            items: any; settled ones stay as they are.
            lane: the call that they came with.
            deadline_s: when to answer, by the monotonic clock.
            waits: wait for room in a full pool, until the deadline.

        Returns:
            The full pool, with nothing begun in any; None if all went well.
        """
        await self._runs.prepare(items, deadline_s)
        await self._run_here(items, deadline_s)
        return await self.launch(items, lane, deadline_s, waits=waits)

    async def launch(
        self, items: Sequence[P], lane: object, deadline_s: float, *, waits: bool
    ) -> JobPool | None:
        """The second half of `begin`: hands items to pools."""
        while True:
            fresh = self._launch(items, lane)
            if fresh is None:
                return None
            if not waits:
                return fresh[0].pool
            try:
                async with asyncio.timeout(max(0.0, deadline_s - time.monotonic())):
                    size_bytes = sum(execution.job.size_bytes for execution in fresh)
                    await fresh[0].pool.wait_to_fit(len(fresh), size_bytes)
            except TimeoutError:
                return None

    async def finish(self, items: Sequence[P], deadline_s: float) -> None:
        """Waits for pools and other services until all is settled or the deadline comes."""
        elsewhere = self.elsewhere(items)
        begun = [item for item in items if item.execution is not None]
        if elsewhere and begun:
            await asyncio.gather(
                self._runs.run_elsewhere(elsewhere, deadline_s), self._wait(begun, deadline_s)
            )
        elif elsewhere:
            await self._runs.run_elsewhere(elsewhere, deadline_s)
        elif begun:
            await self._wait(begun, deadline_s)

    async def settle(self, items: Sequence[P], lane: object, deadline_s: float) -> None:
        """Runs begun items to their end or the deadline, and gives up the rest."""
        try:
            await self.begin(items, lane, deadline_s, waits=True)
            await self.finish(items, deadline_s)
        finally:
            for item in items:
                self.close(item)

    @staticmethod
    def elsewhere(items: Sequence[P]) -> list[P]:
        """Begun items that are open and wait for no pool."""
        return [item for item in items if item.outcome is None and item.execution is None]

    async def run_elsewhere(self, items: Sequence[P], deadline_s: float) -> None:
        """Settles open items that no pool runs, as far as the deadline allows."""
        await self._runs.run_elsewhere(items, deadline_s)

    def watch(self, item: P, ended: Callable[[P], None]) -> None:
        """Settles an item when its execution is done, then calls back.

        Keeps nothing of an execution but the outcomes.
        """
        if item.execution is not None:
            item.execution.job.done.add_done_callback(partial(self._land, item, ended))

    def close(self, item: P, fault: ItemFault | None = None) -> None:
        """Drops an item's execution, which ends if nobody needs it; `fault` settles the item."""
        execution, item.execution = item.execution, None
        if execution is not None:
            self._flights.release(execution)
        if item.outcome is None and fault is not None:
            item.settle(fault)

    async def _run_here(self, items: Sequence[P], deadline_s: float) -> None:
        """Runs what this process can, and lets other calls have their turn in between."""
        todo = [item for item in items if item.outcome is None]
        spread = None if self.spreading is None else SpreadBatch(self.spreading, todo)
        try:
            in_time = await self._run_slices(todo, deadline_s, spread)
            if spread is not None and in_time:
                twins = await spread.landed(deadline_s)
                await self._run_slices(twins, deadline_s, None)
        finally:
            if spread is not None:
                spread.close()

    async def _run_slices(
        self, todo: list[P], deadline_s: float, spread: SpreadBatch[P] | None
    ) -> bool:
        """Runs items in turn, those that come to their turn; False when the deadline came first."""
        run_here = self._runs.run_here
        place, spent_s = 0, 0.0
        began_s = time.monotonic()
        while place < len(todo):
            item = todo[place]
            place += 1
            if (spread is not None and spread.holds(item)) or not run_here(item):
                continue
            now_s = time.monotonic()
            if now_s > began_s + _SLICE_S:
                spent_s += now_s - began_s
                for _ in range(_TURNS if spread is not None and spread.out else 1):
                    await asyncio.sleep(0)
                if spread is not None:
                    spread.hand_over(place, spent_s / place)
                began_s = time.monotonic()
                if began_s > deadline_s:
                    return False
        return True

    def _launch(self, items: Sequence[P], lane: object) -> list[SharedExecution] | None:
        """Begins what items need pools for, all or nothing; returns None, or pools without room."""
        found: list[tuple[P, SharedExecution, bool]] = []
        own: dict[tuple[Hashable, float], SharedExecution] = {}
        fresh: dict[int, list[SharedExecution]] = {}
        for item in items:
            if item.outcome is not None or item.execution is not None:
                continue
            pool = self._runs.pool_of(item)
            if pool is None:
                continue
            if item.key is None:
                item.key = self._runs.key(item)
            cached = None if item.key is None else self._cache.get(item.key)
            if cached is not None:
                item.settle(cached, execution_s=0.0, from_cache=True)
                continue
            key = None if item.key is None else (item.key, item.timeout_s)
            execution = None if key is None else own.get(key) or self._flights.find(key)
            shared = execution is not None
            if execution is None:
                execution = SharedExecution(self._runs.job(item, lane), pool, key)
                fresh.setdefault(id(pool), []).append(execution)
                if key is not None:
                    own[key] = execution
            found.append((item, execution, shared))
        begun: list[SharedExecution] = []
        for executions in fresh.values():
            try:
                executions[0].pool.submit([execution.job for execution in executions])
            except QueueFull:
                for execution in begun:
                    execution.pool.cancel(execution.job)
                return executions
            begun += executions
        self._flights.begin(begun)
        for item, execution, shared in found:
            item.execution, item.shared = execution, shared
            execution.waiters += 1
        return None

    async def _wait(self, items: Sequence[P], deadline_s: float) -> None:
        left, done = len(items), asyncio.Event()

        def ended(_: P) -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set()

        for item in items:
            self.watch(item, ended)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, deadline_s - time.monotonic())):
                await done.wait()

    def _land(self, item: P, ended: Callable[[P], None], job: asyncio.Future[Done[Any]]) -> None:
        if item.execution is not None and not job.cancelled():
            item.execution = None
            self._settle(item, job.result())
        ended(item)

    def _settle(self, item: P, done: Done[Any]) -> None:
        if item.outcome is not None:
            return
        outcome = self._runs.outcome(item, done)
        if item.shared and not isinstance(outcome, ItemFault):
            item.settle(outcome, execution_s=0.0, from_cache=True)
        else:
            item.settle(outcome, started_s=done.started_s, execution_s=done.execution_s)
