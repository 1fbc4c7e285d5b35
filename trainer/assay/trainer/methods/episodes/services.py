"""The reward services, as an environment asks them: under the run's verifier and labels.

While they are away an episode waits as a single response does (rollouts/outages.py), without its
seconds running out; a hold that ends in vain ends the run.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from assay.clients import Item, Result
from assay.clients.faults import make_fault
from assay.kit.errors import ConfigError
from assay.kit.reasons import Reason
from assay.kit.runs.progress import duration
from assay.trainer.core.rewards import Judge
from assay.trainer.engines.types import Request
from assay.trainer.rollouts.outages import AWAY, Patience

_FIRST_PAUSE_S = 0.25
_PAUSE_S = 5.0
_SLICE_S = 0.2
_STILL_S = 1e9


class Outage:
    """One outage, as all episodes see it; for any thread."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self._since: float | None = None
        self._lock = threading.Lock()

    def began(self, why: str) -> float:
        """When it began; the first who asks says so."""
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()
                self.patience.say(
                    f"the reward services are away: {why}; episodes wait for at most "
                    f"{duration(self.patience.max_s)} (reward.max_outage_s)"
                )
            return self._since

    def over(self) -> None:
        """The services answer again."""
        with self._lock:
            if self._since is None:
                return
            took_s, self._since = time.monotonic() - self._since, None
            self.patience.held_s += took_s
            self.patience.say(f"the reward services are back after {took_s:.0f} s")


class RunServices:
    """An `assay.environments.Services` for one episode.

    Args:
        request: of the episode.
        phase: its label.
        extend: called with seconds that an outage took.
    """

    def __init__(
        self,
        judge: Judge,
        outage: Outage,
        request: Request,
        phase: str,
        extend: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._judge = judge
        self._outage = outage
        self._request = request
        self._phase = phase
        self.extend = extend

    async def score(self, item: Item) -> Result:
        """See Services. The episode's seconds stand still; an outage's never count."""
        began, away = time.monotonic(), False
        self.extend(_STILL_S)
        try:
            result = await self._asked(item)
            away = _away(result) and self._outage.patience.holds
            return await self._held(item, result) if away else result
        finally:
            self.extend((time.monotonic() - began if away else 0.0) - _STILL_S)

    async def _asked(self, item: Item) -> Result:
        try:
            future = self._judge.ask(item, self._request, self._phase)
        except ConfigError as error:  # the client was closed
            return Result(item.id, make_fault(Reason.CANCELLED, str(error)))
        return (await asyncio.wrap_future(future))[0]

    async def _held(self, item: Item, result: Result) -> Result:
        patience = self._outage.patience
        cause = "" if result.fault is None else result.fault.message
        since, pause_s = self._outage.began(cause), _FIRST_PAUSE_S
        while _away(result):
            for _ in range(max(1, round(pause_s / _SLICE_S))):
                if not patience.interrupted():
                    await asyncio.sleep(_SLICE_S)
            if patience.interrupted() or time.monotonic() - since >= patience.max_s:
                return patience.ended(result, cause, interrupted=patience.interrupted())
            result = await self._asked(item)
            pause_s = min(2 * pause_s, _PAUSE_S)
        self._outage.over()
        return result


def _away(result: Result) -> bool:
    return result.fault is not None and result.fault.reason in AWAY
