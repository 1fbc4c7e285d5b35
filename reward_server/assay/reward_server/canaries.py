"""Canaries: rows with known verdicts that a profile judges among live items. Nobody gets them back.

Each live item of a profile brings one along with the chance `share`, from the same call's context:
with its time-out, deadline, label `run` and trace, by the same dispatcher, and never from a cache.
The caller waits for none. One is dropped, and counted, where many are open or workers are behind.

A profile's canaries are watched for two changes: more verdicts that are wrong, and more that differ
from the row's first. The second sees another judge of equal quality. What is usual is learned: one
look at each row, then `REFERENCE` looks at rows drawn at random. Looks at reference may come with
the rows instead.

Not covered: a change before the reference is complete becomes a part of it, and a restart forgets
what was learned.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import logging
import random
import time
from collections import deque
from collections.abc import Sequence

from assay.kit.batch.dispatcher import Dispatcher
from assay.kit.judgements import SPENT
from assay.kit.queue import Lane
from assay.kit.reasons import Reason
from assay.kit.runs.drift import RiseWatch
from assay.kit.spans import trail_var
from assay.reward_server.counts import RewardMetrics
from assay.reward_server.domain import Fault, Judgement
from assay.reward_server.pending import PendingScore
from assay.reward_server.profiles import Profile
from assay.reward_server.profiles.model import CanaryRow
from assay.reward_server.verifiers import judges
from assay.reward_server.workers.codec import ScorePool

REFERENCE = 500
"""Looks that say what is usual, besides the first at each row."""
RECENT = 500
"""Looks that agreement and kappa are of."""
CHANCE = 0.01
"""Of an alarm, ever, while the judge stays the same."""
MAX_OPEN = 8
"""Canaries that are judged at a time."""

_SECONDS = SPENT[1]
_BUSY = frozenset({Reason.QUEUE_FULL, Reason.QUOTA_EXCEEDED, Reason.DRAINING})
_log = logging.getLogger(__name__)


class CanaryWatch:
    """The canaries of one profile: which comes next, and what their verdicts say. Pure.

    Args:
        rows: with known verdicts.
        rng: draws rows; whoever could foresee it could be good for canaries only.

    Attributes:
        recent: the last known and given verdicts.
        watches: by what they watch, "wrong" and "changed"; empty while the reference is incomplete.
    """

    def __init__(self, rows: Sequence[CanaryRow], rng: random.Random) -> None:
        self.rows = tuple(rows)
        self.recent: deque[tuple[str, str]] = deque(maxlen=RECENT)
        self.watches: dict[str, RiseWatch] = {}
        self._rng = rng
        self._first: dict[int, str] = {}
        self._usual = {"wrong": 0, "changed": 0}
        self._looks = 0
        for place, row in enumerate(self.rows):
            for verdict in row.before:
                self._look(place, verdict)
        self._unseen = [place for place in range(len(self.rows)) if place not in self._first]
        rng.shuffle(self._unseen)

    @property
    def alarm(self) -> bool:
        """Whether something has changed."""
        return any(watch.alarm for watch in self.watches.values())

    def draw(self) -> int:
        """The place of the next row: each once, then any."""
        return self._unseen.pop() if self._unseen else self._rng.randrange(len(self.rows))

    def take(self, place: int, verdict: str) -> bool:
        """Notes a verdict; whether it is the known one."""
        known = self.rows[place].example.verdict
        self.recent.append((known, verdict))
        self._look(place, verdict)
        return verdict == known

    def _look(self, place: int, verdict: str) -> None:
        first = self._first.setdefault(place, "")
        if not first:
            self._first[place] = verdict
            return
        errors = {
            "wrong": verdict != self.rows[place].example.verdict,
            "changed": verdict != first,
        }
        for what, watch in self.watches.items():
            watch.add(error=errors[what])
        if self.watches:
            return
        self._looks += 1
        for what, error in errors.items():
            self._usual[what] += error
        if self._looks >= REFERENCE:
            self.watches = {
                what: RiseWatch(errors, self._looks, CHANCE / 2)
                for what, errors in self._usual.items()
            }


class Canaries:
    """Has canaries judged beside live items. Belongs to one event loop.

    Args:
        dispatcher: runs them, as it runs all items.
        pool: the workers; while half of their queue is taken, canaries are dropped.
        most_queued: what the queue holds.
        seed: None for one that nobody knows.
    """

    def __init__(
        self,
        dispatcher: Dispatcher[PendingScore],
        pool: ScorePool,
        counts: RewardMetrics,
        most_queued: int,
        seed: int | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._pool = pool
        self._counts = counts
        self._most_queued = most_queued
        self._rng = random.Random(seed)  # noqa: S311  # seeded by the system; see CanaryWatch
        self._watched: dict[str, tuple[Profile, CanaryWatch]] = {}
        self._open: set[asyncio.Task[None]] = set()

    def ride(self, items: Sequence[PendingScore], deadline_s: float) -> None:
        """Begins canaries of some of these items' profiles; returns at once."""
        for item in items:
            served = item.served
            if item.origin != "caller" or served is None or item.outcome is not None:
                continue
            profile = served.verifier
            if not isinstance(profile, Profile) or profile.canary is None:
                continue
            if self._rng.random() >= profile.canary.share:
                continue
            if len(self._open) >= MAX_OPEN or 2 * self._pool.queued >= self._most_queued:
                self._counts.canary(served.spec.name, "dropped")
                continue
            context = contextvars.copy_context()
            context.run(trail_var.set, None)
            task = asyncio.create_task(self._judge(item, profile, deadline_s), context=context)
            self._open.add(task)
            task.add_done_callback(self._open.discard)

    def watch_of(self, profile: Profile) -> CanaryWatch | None:
        """The watch of a profile; a fresh one where the profile is another than before."""
        name = profile.spec.name
        kept = self._watched.get(name)
        if kept is not None and kept[0] is profile:
            return kept[1]
        if profile.canary is None:
            return None
        watch = CanaryWatch(profile.canary.rows, self._rng)
        self._watched[name] = profile, watch
        self._counts.canaries_seen(name, watch)
        return watch

    def forget(self, name: str) -> None:
        """Drops what is known of a profile that is gone."""
        self._watched.pop(name, None)
        self._counts.canaries_gone(name)

    async def close(self) -> None:
        """Gives up the open ones."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _judge(self, beside: PendingScore, profile: Profile, deadline_s: float) -> None:
        watch = self.watch_of(profile)
        if watch is None or beside.item is None:
            return
        place = watch.draw()
        run = beside.item.run
        item = PendingScore("", time.monotonic(), timeout_s=beside.timeout_s, origin="canary")
        item.item = dataclasses.replace(watch.rows[place].example.item, run=run)
        item.size_bytes = len(item.item.candidate.text or "")
        item.served = beside.served
        await self._dispatcher.settle([item], Lane(), deadline_s)
        name = profile.spec.name
        before = watch.alarm
        self._counts.canary(name, self._fate(watch, place, item))
        if self._watched.get(name) == (profile, watch):
            self._counts.canaries_seen(name, watch)
        if watch.alarm and not before:
            what = " and ".join(name for name, one in watch.watches.items() if one.alarm)
            _log.warning(
                "the canaries of %s: more verdicts are %s than at reference; what judges has "
                "changed, or what it judges by",
                name,
                what,
            )

    @staticmethod
    def _fate(watch: CanaryWatch, place: int, item: PendingScore) -> str:
        outcome = item.outcome
        if not isinstance(outcome, Judgement):
            busy = isinstance(outcome, Fault) and outcome.reason in _BUSY
            return "dropped" if busy else "fault"
        if _unasked(item.parts):
            return "unasked"
        return "agreed" if watch.take(place, outcome.verdict) else "disagreed"


def _unasked(parts: Sequence[PendingScore]) -> bool:
    """Whether judges are models, and none took a moment: genrm had kept the answers."""
    found = [
        part.outcome
        for part in parts
        if part.served is not None and type(part.served.verifier) in judges.VERIFIERS
    ]
    return bool(found) and not any(
        component.name == _SECONDS
        for outcome in found
        if isinstance(outcome, Judgement)
        for component in outcome.components
    )
