"""Files that a running server reads again when they change, and at SIGHUP.

What is wrong with them changes nothing but the log and the metrics: what is in force stays.
"""

from __future__ import annotations

import asyncio
import collections
import logging
import math
import time
from collections.abc import Sequence

from prometheus_client import Gauge
from prometheus_client.registry import Collector

from assay.kit.errors import AssayError
from assay.kit.metrics import TableCounter
from assay.kit.watching import LOOK_S, Reloadable

_RETRY_S = 60.0
_log = logging.getLogger(__name__)


class Reloader:
    """Keeps a server's reloadables up to date. Belongs to one event loop."""

    def __init__(self, reloadables: Sequence[Reloadable] = ()) -> None:
        self._reloadables = tuple(reloadables)
        self._again_s: dict[str, float] = {}
        self._locks = {one.what: asyncio.Lock() for one in reloadables}
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self._stale = Gauge(
            "assay_reload_stale",
            "1 while the files could not be taken, and those from before are in force",
            ("what",),
            registry=None,
        )
        for one in reloadables:
            self._stale.labels(one.what).set(0)

    def __bool__(self) -> bool:
        return bool(self._reloadables)

    @property
    def collectors(self) -> list[Collector]:
        """To be registered."""
        text = "Files read again, by what they hold and whether they are in force: ok, failed"
        return [TableCounter("assay_reloads", text, ("what", "result"), self._counts), self._stale]

    async def run(self) -> None:
        """Looks at the files until it is cancelled."""
        await asyncio.gather(*map(self._watch, self._reloadables))

    async def reload(self) -> None:
        """Reads all files now, whether they have changed or not."""
        for one in self._reloadables:
            await asyncio.to_thread(one.watch.note)
        await asyncio.gather(*map(self._reload, self._reloadables))

    async def _watch(self, one: Reloadable) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            changed = await asyncio.to_thread(one.watch.changed)
            if changed or time.monotonic() >= self._again_s.get(one.what, math.inf):
                await self._reload(one)

    async def _reload(self, one: Reloadable) -> None:
        async with self._locks[one.what]:
            (told,) = await asyncio.gather(self._take(one), return_exceptions=True)
        failed = isinstance(told, BaseException)
        if isinstance(told, BaseException):
            defect = None if isinstance(told, AssayError) else told
            _log.error("%s; the %s from before stay in force", told, one.what, exc_info=defect)
            self._again_s[one.what] = time.monotonic() + _RETRY_S
        else:
            _log.info("read again: %s", told)
            self._again_s.pop(one.what, None)
        self._counts[one.what, "failed" if failed else "ok"] += 1
        self._stale.labels(one.what).set(failed)

    @staticmethod
    async def _take(one: Reloadable) -> str:
        return await one.take(await asyncio.to_thread(one.load))
