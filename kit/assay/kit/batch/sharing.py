"""Equal items share an execution in flight, and its judgement afterwards.

The samples of a group hold many duplicates. A fault is never kept. Items in flight share an
execution only with the same time-out, so nobody gets a shorter one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from assay.kit.batch.items import SharedExecution
from assay.kit.faults import ItemFault


class OutcomeCache:
    """The judgements that were used last.

    Args:
        entries: how many; 0 for none.
        keeps: whether a judgement is small enough to be kept.
    """

    def __init__(self, entries: int, keeps: Callable[[Any], bool] = lambda _: True) -> None:
        self._entries = entries
        self._keeps = keeps
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """The judgement of an equal item, or None."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Hashable, outcome: Any) -> None:
        """Keeps a judgement; a fault never."""
        if not self._entries or isinstance(outcome, ItemFault) or not self._keeps(outcome):
            return
        self._kept[key] = outcome
        self._kept.move_to_end(key)
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)


class SingleFlight:
    """The executions under way, by the key of equal items; their judgements go to the cache."""

    def __init__(self, cache: OutcomeCache) -> None:
        self._cache = cache
        self._open: dict[tuple[Hashable, float], SharedExecution] = {}

    def find(self, key: tuple[Hashable, float]) -> SharedExecution | None:
        """The execution of an equal item with the same time-out, if one is under way."""
        return self._open.get(key)

    def begin(self, executions: Sequence[SharedExecution]) -> None:
        """Notes executions whose jobs their pools have taken."""
        for execution in executions:
            if execution.key is not None:
                self._open[execution.key] = execution
                execution.job.done.add_done_callback(partial(self._ended, execution))

    def release(self, execution: SharedExecution) -> None:
        """Lets one item go; the last one ends the execution."""
        execution.waiters -= 1
        if execution.waiters <= 0 and not execution.job.done.done():
            self._forget(execution)
            execution.pool.cancel(execution.job)

    def _ended(self, execution: SharedExecution, _: object) -> None:
        self._forget(execution)
        if execution.key is not None and not execution.job.done.cancelled():
            self._cache.put(execution.key[0], execution.job.done.result().outcome)

    def _forget(self, execution: SharedExecution) -> None:
        if execution.key is not None and self._open.get(execution.key) is execution:
            del self._open[execution.key]
