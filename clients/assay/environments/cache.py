"""Tool results that samples of one row share (TVCache, arXiv 2602.10986).

    cache = ToolCache()
    episode = Episode(environment, runner=cache.runner(environment))

In an environment that is `repeatable` a tool's answer follows from the row and the calls before it:
an answer is kept under the environment, its settings, the row and all calls so far. While calls
are found there, the episode's own environment stays behind; the first one that is not found, or
whoever else reads what tools change (`Environment.state_read_by`), has it run the skipped calls
first. An answer that is then another one is counted, and ends the sharing for that row; what the
policy has read stays. Equal calls at one time are one execution. Nothing that broke is kept.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from assay.environments.environment import Environment, ToolError, ToolResult
from assay.environments.record import settings_table
from assay.environments.running import DirectRunner, ToolRunner
from assay.environments.types import ToolCall

_ENTRY_BYTES = 400  # of an entry itself, beside its texts
_MOST_ROWS_APART = 100_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer; of a refusal the text of its error."""

    result: ToolResult
    refused: bool
    bytes: int = 0

    def given(self) -> ToolResult:
        if self.refused:
            raise ToolError(self.result.text)
        return self.result

    def same(self, other: _Kept) -> bool:
        """Whether a policy could tell the two apart; facts are for the record."""
        mine, its = self.result, other.result
        return (self.refused, mine.text, mine.reward, mine.done) == (
            other.refused, its.text, its.reward, its.done,
        )  # fmt: skip


@dataclass(slots=True)
class CacheCounts:
    """What a cache did.

    Attributes:
        calls: of repeatable environments.
        hits: of these, answered by another sample's.
        waited: of the hits, those that waited for an execution under way.
        caught_up: skipped calls that an environment ran later.
        different: of these, those with another answer.
        evicted: answers that were dropped for want of room.
    """

    calls: int = 0
    hits: int = 0
    waited: int = 0
    caught_up: int = 0
    different: int = 0
    evicted: int = 0


class ToolCache:
    """Answers of tools, for all episodes of a run; for any number of threads and event loops.

    Args:
        megabytes: of answers kept; what was used longest ago goes first.
    """

    def __init__(self, megabytes: float = 256.0) -> None:
        self._room = int(megabytes * 2**20)
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0
        self._running: dict[str, list[Future[None]]] = {}
        self._apart: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self._counts = CacheCounts()

    def runner(self, environment: Environment) -> ToolRunner:
        """What an episode's calls go through."""
        if not environment.repeatable:
            return DirectRunner(environment)
        return CachedRunner(environment, self)

    def taken(self) -> CacheCounts:
        """What it did since this was asked last."""
        with self._lock:
            counts, self._counts = self._counts, CacheCounts()
        return counts

    def metrics(self) -> dict[str, float]:
        """`taken` as numbers of a step; empty where no call could have been shared."""
        counts = self.taken()
        if not counts.calls:
            return {}
        return {
            "tool_cache_hit_rate": counts.hits / counts.calls,
            "tool_cache_caught_up": counts.caught_up,
            "tool_cache_different": counts.different,
            "tool_cache_mb": self._bytes / 2**20,
        }

    def find(self, row: str, key: str) -> _Kept | Future[None] | None:
        """The answer; a future of "look again" while another runs the call; None: run it.

        Whoever gets None must call `ran`.
        """
        with self._lock:
            self._counts.calls += 1
            if row in self._apart:
                return None
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                self._counts.hits += 1
                return found
            if key in self._running:
                self._counts.calls -= 1  # it comes again
                waiting: Future[None] = Future()
                self._running[key].append(waiting)
                return waiting
            self._running[key] = []
            return None

    def ran(self, row: str, key: str, answer: _Kept | None) -> None:
        """Ends an execution; without an answer the next who waits runs the call."""
        with self._lock:
            if answer is not None and row not in self._apart:
                self._keep(key, answer)
            waiting = self._running.pop(key, [])
        for one in waiting:
            if one.set_running_or_notify_cancel():
                one.set_result(None)

    def count(self, *, waited: int = 0, caught_up: int = 0) -> None:
        """Adds to the counts."""
        with self._lock:
            self._counts.waited += waited
            self._counts.caught_up += caught_up

    def differs(self, row: str) -> None:
        """An environment answered otherwise than another: the row is shared no more."""
        with self._lock:
            self._counts.different += 1
            self._apart[row] = None
            if len(self._apart) > _MOST_ROWS_APART:
                self._apart.popitem(last=False)

    def _keep(self, key: str, answer: _Kept) -> None:
        if answer.bytes > self._room:
            return
        before = self._kept.pop(key, None)
        self._bytes += answer.bytes - (before.bytes if before else 0)
        self._kept[key] = answer
        while self._bytes > self._room:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.bytes
            self._counts.evicted += 1


@dataclass(slots=True)
class _Skipped:
    call: ToolCall
    answer: _Kept


@dataclass(slots=True)
class _Way:
    """Where an episode stands: the digest of its row, and of all its calls."""

    row: str
    calls: str
    skipped: list[_Skipped] = field(default_factory=list)


class CachedRunner:
    """Answers an episode's calls from a cache, or by its environment.

    Attributes:
        hit: the latest call was answered from the cache.
    """

    def __init__(self, environment: Environment, cache: ToolCache) -> None:
        self.hit = False
        self._environment = environment
        self._direct = DirectRunner(environment)
        self._cache = cache
        self._way: _Way | None = None
        self._alone = False  # its calls cannot be named: no JSON

    async def run(self, call: ToolCall) -> ToolResult:
        """See ToolRunner."""
        self.hit = False
        way = self._following(call)
        if way is None:
            await self.settle()
            return await self._direct.run(call)
        while True:
            found = self._cache.find(way.row, way.calls)
            if found is None:
                return (await self._execute(way, call)).given()
            if isinstance(found, _Kept):
                self.hit = True
                if self._environment.state_read_by != "nobody":
                    way.skipped.append(_Skipped(call, found))
                return found.given()
            await asyncio.wrap_future(found)
            self._cache.count(waited=1)

    async def settle(self) -> None:
        """Has the environment run the calls that were skipped."""
        way = self._way
        while way is not None and way.skipped:
            skipped = way.skipped.pop(0)
            own = await self._own(skipped.call)
            self._cache.count(caught_up=1)
            if not own.same(skipped.answer):
                self._cache.differs(way.row)

    def _following(self, call: ToolCall) -> _Way | None:
        """The way with this call on it; None where it cannot be named, from then on."""
        if self._alone:
            return None
        environment, way = self._environment, self._way
        if way is None:
            kind = type(environment)
            row = _digest(
                kind.__module__, kind.__qualname__, kind.name, settings_table(environment.settings),
                dict(environment.row),
            )  # fmt: skip
            way = None if row is None else _Way(row, row)
        before = "" if way is None else way.calls
        if way is not None and environment.state_read_by == "nobody":
            before = way.row
        calls = _digest(before, call.name, call.arguments, "" if call.name else call.text)
        if way is None or calls is None:
            self._alone = True
            return None
        way.calls = calls
        self._way = way
        return way

    async def _execute(self, way: _Way, call: ToolCall) -> _Kept:
        answer: _Kept | None = None
        try:
            await self.settle()
            answer = await self._own(call)
            return answer
        finally:  # also when this episode is cut off: others may wait
            self._cache.ran(way.row, way.calls, _kept_apart(answer))

    async def _own(self, call: ToolCall) -> _Kept:
        try:
            return _Kept(await self._direct.run(call), refused=False)
        except ToolError as error:
            return _Kept(ToolResult(str(error)), refused=True)


def _kept_apart(answer: _Kept | None) -> _Kept | None:
    """A copy that the answer's episode cannot change; None where there is none."""
    if answer is None:
        return None
    result = answer.result
    try:
        facts = copy.deepcopy(dict(result.facts))
        room = _ENTRY_BYTES + len(result.text.encode(errors="replace")) + len(repr(facts))
        own = ToolResult(result.text, result.reward, result.done, facts)
    except Exception:  # noqa: BLE001  # whatever an environment put there: it is not shared
        return None
    return _Kept(own, answer.refused, room)


def _digest(*parts: Any) -> str | None:
    """Differs wherever the parts do, their keys' order included; None: JSON cannot write one."""
    try:
        text = json.dumps(parts)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()
