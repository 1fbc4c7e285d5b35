"""From items to results: each item of a call gets a ticket, each ticket becomes exactly one result.

A ticket is settled at once (an item that is wrong) or by the line of its model. A line holds what
waits for one model, bounded and fair between calls, and puts a bounded number of items to work;
the engine batches their requests.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from assay.genrm.domain import Fault, Run, Unjudgeable
from assay.genrm.driving import Asks, drive
from assay.genrm.engines.base import EngineTrouble
from assay.genrm.models import ServedModel
from assay.genrm.results import Room, fill_fault, fill_timings
from assay.rpc.queue import FairQueue
from assay.rpc.reasons import Reason
from assay.rpc.trails import Stretch

_log = logging.getLogger(__name__)

LATE = Fault(Reason.DEADLINE_EXCEEDED, "the call's deadline came before the item was judged")
_MEMORY = 0.2  # weight of the newest in the running mean of how long items take


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for one item.

    Attributes:
        model: who is asked; None where nobody is.
        run: the judge, not begun.
        fill: writes what it came to into the item's result.
    """

    model: ServedModel | None
    run: Run[Any]
    fill: Callable[[Any, Any], None]


@dataclass(eq=False, slots=True)
class Ticket:
    """One item on its way to its result.

    Attributes:
        item_id: the caller's id.
        arrived_s: when the request arrived, by the monotonic clock.
        size_bytes: what the item takes in memory, roughly.
        lane: the call that it came with.
        asks: the call's requests.
        plan: what is to be done; None for an item that is wrong.
        outcome: set once: what the judge returned, or a fault.
        started_s: when its run began; without one, when it was settled.
        execution_s: how long it took.
        task: the run, while it is at work.
        done: set with the outcome.
        asked: what its run asked the engine when, where there is a trace to show it.
        context: of its call: request id and trace.
    """

    item_id: str
    arrived_s: float
    size_bytes: int
    lane: object
    asks: Asks | None = None
    plan: Plan | None = None
    outcome: Any = None
    started_s: float | None = None
    execution_s: float = 0.0
    task: asyncio.Task[None] | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[Stretch] | None = None
    context: Context = field(default_factory=copy_context)

    def settle(self, outcome: Any) -> None:
        """Sets the outcome, unless there is one."""
        if self.outcome is not None:
            return
        self.outcome = outcome
        now_s = time.monotonic()
        if self.started_s is None:
            self.started_s = now_s
        self.execution_s = now_s - self.started_s
        self.done.set()

    def write(self, result: Any, room: Room) -> None:
        """Writes the result of a settled ticket."""
        if isinstance(self.outcome, Fault):
            fill_fault(result, self.outcome)
        elif self.plan is not None:
            self.plan.fill(result, self.outcome)
        result.id = self.item_id
        queue_s = (self.started_s or self.arrived_s) - self.arrived_s
        fill_timings(result.timings, queue_s, self.execution_s)
        room.fit(result)


class Line:
    """The items that wait for one model, and those at work. Belongs to one event loop.

    Args:
        at_work: items at work at the same time.
        queue_items: items that may wait.
        queue_bytes: bytes that they may hold.
    """

    def __init__(self, at_work: int, queue_items: int, queue_bytes: int) -> None:
        self._free = self._at_work = at_work
        self._queue: FairQueue[Ticket] = FairQueue(queue_items, queue_bytes)
        self._mean_s = 0.1

    @property
    def waiting(self) -> int:
        """Items that wait."""
        return len(self._queue)

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Takes items in, all or none, and puts to work those that there is room for.

        Raises:
            QueueFull: they do not fit.
        """
        self._queue.put(tickets)
        self._feed()

    def give_up(self, ticket: Ticket) -> None:
        """Ends what is done for an item."""
        self._queue.discard(ticket)
        if ticket.task is not None:
            ticket.task.cancel()

    def retry_after_s(self) -> float:
        """When there will be room again, roughly."""
        return min(30.0, max(0.1, self.waiting * self._mean_s / self._at_work))

    def _feed(self) -> None:
        while self._free and (ticket := self._queue.take_now()) is not None:
            self._free -= 1
            # Not in the context of here, which may be that of a call whose item made room.
            work = _work(ticket)
            ticket.task = asyncio.get_running_loop().create_task(work, context=ticket.context)
            ticket.task.add_done_callback(partial(self._freed, ticket))

    def _freed(self, ticket: Ticket, _task: asyncio.Task[None]) -> None:
        ticket.task = None
        self._free += 1
        self._mean_s += _MEMORY * (ticket.execution_s - self._mean_s)
        self._feed()


async def _work(ticket: Ticket) -> None:
    """Drives one item's run. The border around a judge: what it raises is the item's fault."""
    ticket.started_s = time.monotonic()
    plan, asks = ticket.plan, ticket.asks
    if plan is None or asks is None:
        raise ValueError("the ticket has no plan")
    try:
        ticket.settle(await drive(plan.run, asks, ticket.asked))
    except (Unjudgeable, EngineTrouble) as trouble:
        ticket.settle(Fault(trouble.reason, trouble.message, trouble.metadata))
    except Exception as error:  # noqa: BLE001 - the border around a judge
        _log.exception("the judge of an item failed")
        text = f"a defect of the server: {type(error).__name__}; its log says more"
        ticket.settle(Fault(Reason.INTERNAL, text))
