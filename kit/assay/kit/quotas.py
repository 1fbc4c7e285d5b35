"""Limits of each tenant: items a second, and items in flight. One event loop only.

A batch over the limit is refused with QUOTA_EXCEEDED and a time to come back; a stream is read no
further until it is within the limit. Items are those of `items` or `jobs` of a message.

The rate is a token bucket that holds one second's worth and may run into debt: a batch is let in
when the bucket is not in debt. So a batch of any size passes in the end, and over a long time no
tenant gets more than its rate. A batch with more items than may be in flight passes when its tenant
has nothing else in flight.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from assay.kit.errors import refuse
from assay.kit.reasons import Reason

_BUSY_RETRY_S = 0.5


@dataclass(slots=True)
class _Account:
    """One tenant's use. The balance is in items, as of `as_of_s`."""

    balance: float
    as_of_s: float
    in_flight: int = 0
    freed: asyncio.Event = field(default_factory=asyncio.Event)


class Quotas:
    """The accounts of all tenants, under the same limits; 0 for no limit."""

    def __init__(
        self,
        items_per_s: float = 0.0,
        items_in_flight: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = items_per_s
        self._most = items_in_flight
        self._clock = clock
        self._accounts: dict[str, _Account] = {}

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self._rate or self._most)

    def in_flight(self, tenant: str) -> int:
        """Items of a tenant that are in flight."""
        return self._account(tenant).in_flight

    def wait_s(self, tenant: str, items: int) -> float:
        """Seconds until so many items may be let in, by estimate; 0 for now."""
        account = self._account(tenant)
        debt_s = max(0.0, -account.balance) / self._rate if self._rate else 0.0
        held = account.in_flight
        full = bool(self._most) and held > 0 and held + items > self._most
        return max(debt_s, _BUSY_RETRY_S) if full else debt_s

    def take(self, tenant: str, items: int) -> None:
        """Lets items in. They count until they are given back."""
        account = self._account(tenant)
        account.in_flight += items
        if self._rate:
            account.balance -= items

    def give_back(self, tenant: str, items: int) -> None:
        """Counts out items that are answered, or given up."""
        account = self._account(tenant)
        account.in_flight -= items
        account.freed.set()

    async def wait(self, tenant: str, items: int) -> None:
        """Waits until so many items may be let in, and lets them in."""
        account = self._account(tenant)
        while (seconds := self.wait_s(tenant, items)) > 0:
            account.freed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(account.freed.wait(), seconds)
        self.take(tenant, items)

    def _account(self, tenant: str) -> _Account:
        now_s = self._clock()
        account = self._accounts.get(tenant)
        if account is None:
            account = self._accounts[tenant] = _Account(self._rate, now_s)
        earned = max(0.0, now_s - account.as_of_s) * self._rate
        account.balance = min(self._rate, account.balance + earned)
        account.as_of_s = now_s
        return account


class Meter:
    """One call's use of its tenant's quota."""

    def __init__(self, quotas: Quotas, tenant: str) -> None:
        self._quotas = quotas
        self._tenant = tenant
        self._held = 0
        self._closed = False

    def admit(self, request: object) -> None:
        """Lets the items of a request in.

        Raises:
            OverloadedError: QUOTA_EXCEEDED; none was let in.
        """
        items = items_of(request)
        if not items or not self._quotas.limited:
            return
        seconds = self._quotas.wait_s(self._tenant, items)
        if seconds > 0:
            raise refuse(
                Reason.QUOTA_EXCEEDED,
                f"the tenant's quota has no room for {items} more items; "
                "none of this request was taken",
                retry_after_s=seconds,
            )
        self._quotas.take(self._tenant, items)
        self._held += items

    async def admit_each(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yields the requests of a stream, each as soon as there is room for its items."""
        async for request in requests:
            items = items_of(request)
            if items and self._quotas.limited:
                await self._quotas.wait(self._tenant, items)
                self._held += items
                if self._closed:  # the handler has ended and left a reader behind
                    self._give_back(self._held)
                    return
            yield request

    def answered(self, response: object) -> None:
        """Counts out the results of a response that was sent."""
        self._give_back(min(self._held, len(getattr(response, "results", ()))))

    def close(self) -> None:
        """Counts out what the ended call still had in flight."""
        self._closed = True
        self._give_back(self._held)

    def _give_back(self, items: int) -> None:
        if items:
            self._held -= items
            self._quotas.give_back(self._tenant, items)


def items_of(message: object) -> int:
    """The number of items in a request; 0 for another kind of message."""
    for name in ("items", "jobs"):
        found = getattr(message, name, None)
        if found is not None:
            return len(found)
    return 0
