"""Items become calls: split at a server's limits, and gathered from concurrent callers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Plan:
    """A list of items, cut into calls: each index is in exactly one of the three.

    Attributes:
        too_large: items that are too long.
        groups_too_large: items whose group must stay whole and is too large for one call.
    """

    batches: list[list[int]]
    too_large: list[int]
    groups_too_large: list[int]


def framed_bytes(size: int) -> int:
    """Bytes that a message of `size` bytes takes in a repeated field whose number is below 16."""
    return 1 + max(1, -(-size.bit_length() // 7)) + size


def plan_calls(
    sizes: Sequence[int],
    groups: Sequence[str],
    whole: Sequence[bool],
    *,
    max_items: int,
    max_message_bytes: int,
    max_item_bytes: int,
) -> Plan:
    """Cuts a list of items into calls that a server takes.

    Items of a group (empty for none) travel in one call. A group that is too large for a call is
    split, unless one of its items is `whole`: its judgement needs the whole group. `sizes` are
    serialised bytes.
    """
    plan = Plan([], [], [])
    fits = [size <= max_item_bytes and framed_bytes(size) <= max_message_bytes for size in sizes]
    plan.too_large.extend(index for index, fit in enumerate(fits) if not fit)
    room_items, room_bytes = 0, 0
    for unit in _units([index for index, fit in enumerate(fits) if fit], groups):
        unit_bytes = sum(framed_bytes(sizes[index]) for index in unit)
        if len(unit) > max_items or unit_bytes > max_message_bytes:
            if any(whole[index] for index in unit):
                plan.groups_too_large.extend(unit)
                continue
            parts = [[index] for index in unit]
        else:
            parts = [unit]
        for part in parts:
            part_bytes = sum(framed_bytes(sizes[index]) for index in part)
            if len(part) > room_items or part_bytes > room_bytes:
                plan.batches.append([])
                room_items, room_bytes = max_items, max_message_bytes
            plan.batches[-1].extend(part)
            room_items -= len(part)
            room_bytes -= part_bytes
    return plan


def _units(indices: Sequence[int], groups: Sequence[str]) -> list[list[int]]:
    units: list[list[int]] = []
    unit_of_group: dict[str, list[int]] = {}
    for index in indices:
        group = groups[index]
        if group and group in unit_of_group:
            unit_of_group[group].append(index)
            continue
        units.append([index])
        if group:
            unit_of_group[group] = units[-1]
    return units


@dataclass(slots=True, eq=False)
class Waiting(Generic[T, R]):
    """One caller's item in flight; its deadline is by the loop's clock."""

    value: T
    deadline_s: float
    answer: asyncio.Future[R]


@dataclass(slots=True)
class MicroBatcher(Generic[T, R]):
    """Gathers the items of concurrent callers into batches. Belongs to one event loop.

    A batch is sent when it holds `max_items`, or `max_wait_s` after its first. `send` sets the
    answer of each caller. A batch whose callers have all given up is cancelled.
    """

    send: Callable[[list[Waiting[T, R]]], Awaitable[None]]
    max_items: int
    max_wait_s: float
    _open: list[Waiting[T, R]] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None
    _running: dict[asyncio.Future[None], list[Waiting[T, R]]] = field(default_factory=dict)

    async def submit(self, value: T, deadline_s: float) -> R:
        """Puts an item into the next batch and waits for its answer.

        Raises:
            TimeoutError: The deadline passed first.
        """
        loop = asyncio.get_running_loop()
        waiting = Waiting(value, deadline_s, loop.create_future())
        self._open.append(waiting)
        if len(self._open) >= self.max_items:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(self.max_wait_s, self._flush)
        try:
            async with asyncio.timeout_at(deadline_s):
                answer: R = await waiting.answer
                return answer
        except BaseException:
            self._forget(waiting)
            raise

    def _forget(self, waiting: Waiting[T, R]) -> None:
        waiting.answer.cancel()
        if waiting in self._open:
            self._open.remove(waiting)
        for task, batch in self._running.items():
            if waiting in batch and all(caller.answer.done() for caller in batch):
                task.cancel()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._open = self._open, []
        if batch:
            task = asyncio.ensure_future(self.send(batch))
            self._running[task] = batch
            task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Future[None]) -> None:
        """Passes an exception of `send` to the callers that still wait."""
        batch = self._running.pop(task)
        error = None if task.cancelled() else task.exception()
        for waiting in batch:
            if not waiting.answer.done():
                waiting.answer.set_exception(error) if error else waiting.answer.cancel()

    async def close(self, answer: Callable[[T], R]) -> None:
        """Ends every batch; each waiting caller gets `answer` of its item."""
        if self._timer is not None:
            self._timer.cancel()
        everyone = self._open + [caller for batch in self._running.values() for caller in batch]
        self._open = []
        for waiting in everyone:
            if not waiting.answer.done():
                waiting.answer.set_result(answer(waiting.value))
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
