"""The quick work of large batches in the workers: what inline verifiers judge, and glances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.kit.batch.items import PoolJob
from assay.kit.batch.sharing import OutcomeCache
from assay.kit.pool.jobs import Done
from assay.reward_server.domain import Fault
from assay.reward_server.pending import PendingScore
from assay.reward_server.workers.codec import DRAINING, Parcel, ScorePool, Task

_PARCEL_S = 2.0
"""A parcel is made for a hundredth of this; then its worker is killed, and items go one by one."""


class ScoreParcels:
    """Sends items to idle workers in parcels; see `assay.kit.batch.spreading`.

    Args:
        cached: settles an item by the judgement of an equal one, if one is kept.
        run_here: judges an item in this process.
    """

    def __init__(
        self,
        pool: ScorePool,
        cache: OutcomeCache,
        cached: Callable[[PendingScore], bool],
        run_here: Callable[[PendingScore], bool],
    ) -> None:
        self._pool = pool
        self._cache = cache
        self._cached = cached
        self._run_here = run_here
        self._absent: set[str] = set()  # inline verifiers that the workers do not have

    @property
    def idle(self) -> int:
        """Workers that would begin a parcel at once."""
        return self._pool.idle

    def sendable(self, item: PendingScore) -> bool:
        """Whether workers have the item's verifier, and frames all of the item."""
        served, given = item.served, item.item
        if served is None or given is None or item.alone:
            return False
        if given.tests is not None or item.timeout_s < _PARCEL_S:
            return False
        if served.road == "inline" and served.spec.name not in self._absent:
            self._cached(item)
            return True
        return served.road == "process"

    def send(self, items: Sequence[PendingScore]) -> PoolJob:
        """Hands a parcel to an idle worker."""
        tasks = [
            Task(item.served.spec, item.item)
            for item in items
            if item.served is not None and item.item is not None
        ]
        size_bytes = sum(item.size_bytes for item in items)
        job = self._pool.job(None, Parcel(tasks), size_bytes=size_bytes, timeout_s=_PARCEL_S)
        self._pool.submit([job])
        return job

    def land(self, items: Sequence[PendingScore], done: Done[Any]) -> None:
        """Settles the open items; those of a lost parcel are judged one by one."""
        if isinstance(done.outcome, Fault):
            for item in items:
                item.alone = True
                if item.outcome is None and done.outcome.reason == DRAINING:
                    item.settle(done.outcome)
            return
        started_s = done.started_s
        for item, (outcome, execution_s) in zip(items, done.outcome, strict=True):
            if outcome is not None and item.key is not None:
                self._cache.put(item.key, outcome)
            if item.outcome is None and outcome is not None:
                item.settle(outcome, started_s=started_s, execution_s=execution_s)
            elif item.outcome is None and item.served is not None and item.served.road == "inline":
                self._absent.add(item.served.spec.name)
                self._run_here(item)
            started_s = None if started_s is None else started_s + execution_s

    def drop(self, job: Any) -> None:
        """Gives up a parcel that nobody waits for; its worker is killed."""
        self._pool.cancel(job)
