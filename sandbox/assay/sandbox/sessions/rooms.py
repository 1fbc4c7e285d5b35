"""Room for sessions, and for cells that compute: who waits is served by tenant in turn.

One event loop only.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from assay.kit.errors import refuse
from assay.kit.queue import FairQueue, Lane, QueueFull
from assay.kit.reasons import Reason

RETRY_S = 1.0
LONGEST_WAIT_S = 30.0
_MAX_WAITING = 4096


@dataclass(slots=True, eq=False)
class _Waiting:
    count: int
    granted: asyncio.Future[None]
    lane: Lane = field(default_factory=Lane)
    size_bytes: int = 0


class FairRoom:
    """So many places; a call takes its own, all or none.

    Attributes:
        places: how many there are.
        taken: how many of them are taken.
    """

    def __init__(self, places: int, max_waiting: int) -> None:
        self.places = places
        self.taken = 0
        self._queue: FairQueue[_Waiting] = FairQueue(max_waiting, 0)

    @property
    def waiting(self) -> int:
        """Calls that wait."""
        return len(self._queue)

    async def take(self, count: int, timeout_s: float) -> None:
        """Takes places, waits for them in the turn of the current call's tenant.

        Raises:
            QueueFull: too many wait.
            TimeoutError: none came free in time.
        """
        if not self._queue and self.taken + count <= self.places:
            self.taken += count
            return
        one = _Waiting(count, asyncio.get_running_loop().create_future())
        self._queue.put([one])
        try:
            async with asyncio.timeout(timeout_s):
                await one.granted
        except BaseException:
            if not self._queue.discard(one):  # granted while it gave up
                self.taken -= count
            self._serve()
            raise

    def give_back(self, count: int = 1) -> None:
        """Gives places back."""
        self.taken -= count
        self._serve()

    def _serve(self) -> None:
        while (one := self._queue.take_now()) is not None:
            if self.taken + one.count > self.places:
                self._queue.put_back(one)
                return
            self.taken += one.count
            if not one.granted.done():
                one.granted.set_result(None)


class SessionRoom:
    """The places of open sessions.

    Args:
        places: sessions that fit.
        per_tenant: the most of one tenant; 0 for no limit.
    """

    def __init__(self, places: int, per_tenant: int) -> None:
        self._room = FairRoom(places, _MAX_WAITING)
        self._per_tenant = per_tenant
        self._of: Counter[str] = Counter()  # taken or waited for, by tenant

    @property
    def places(self) -> int:
        """Sessions that fit."""
        return self._room.places

    @property
    def taken(self) -> int:
        """Sessions that are open, or being opened or ended."""
        return self._room.taken

    @property
    def most(self) -> int:
        """The most that one call can ever have."""
        return min(self.places, self._per_tenant or self.places)

    async def take(self, tenant: str, count: int, timeout_s: float) -> None:
        """Takes places for the current call, whose tenant this is.

        Raises:
            CallError: SESSIONS_FULL or QUOTA_EXCEEDED, with the time to come back.
        """
        held = self._of[tenant]
        if self._per_tenant and held + count > self._per_tenant:
            raise refuse(
                Reason.QUOTA_EXCEEDED,
                f"the tenant has or waits for {held} sessions, and may have {self._per_tenant}",
                retry_after_s=RETRY_S,
            )
        self._of[tenant] += count
        try:
            await self._room.take(count, min(timeout_s, LONGEST_WAIT_S))
        except (QueueFull, TimeoutError) as error:
            self._count_out(tenant, count)
            raise refuse(
                Reason.SESSIONS_FULL,
                f"{self.taken} of the {self.places} sessions that fit are open, "
                f"and {self._room.waiting} calls wait for one",
                retry_after_s=RETRY_S,
            ) from error
        except BaseException:
            self._count_out(tenant, count)
            raise

    def give_back(self, tenant: str, count: int = 1) -> None:
        """Gives places back."""
        self._count_out(tenant, count)
        self._room.give_back(count)

    def _count_out(self, tenant: str, count: int) -> None:
        self._of[tenant] -= count
        if not self._of[tenant]:
            del self._of[tenant]
