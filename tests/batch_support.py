"""A scripted domain for the kit's batch service: each item says what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.kit.batch.coroutines import CoroutineJob, CoroutinePool
from assay.kit.batch.items import PendingItem
from assay.kit.batch.service import BatchService, ItemHandler
from assay.kit.batch.sharing import OutcomeCache
from assay.kit.batch.spans import Details
from assay.kit.faults import ItemFault, Unjudgeable
from assay.kit.metrics import ItemMetrics


@dataclass(frozen=True, slots=True)
class Script:
    """What becomes of an item.

    Attributes:
        road: "wrong": it is refused; else who runs it: "here", "pool" or "elsewhere".
        end: "judged", "fault", "defect" or "never".
        turns: of the event loop until then.
        name: what equal items share; empty where they share nothing.
        timeout_s: its time-out.
    """

    road: str
    end: str = "judged"
    turns: int = 0
    name: str = ""
    timeout_s: int = 1

    def message(self, item_id: str) -> reward_pb2.Item:
        """The item as it is sent."""
        text = "|".join([self.road, self.end, str(self.turns), self.name])
        message = reward_pb2.Item(id=item_id, response=text)
        message.timeout.seconds = self.timeout_s
        return message

    @property
    def expected(self) -> str:
        """The verdict, or the reason of the fault."""
        if self.road == "wrong":
            return "INVALID_PARAMETER"
        ends = {"judged": "fine", "fault": "ITEM_TIMEOUT", "never": "DEADLINE_EXCEEDED"}
        return ends.get(self.end, "INTERNAL" if self.road == "pool" else "ITEM_TIMEOUT")


@dataclass(eq=False, slots=True)
class Scripted(PendingItem):
    """A pending item and its script."""

    script: Script = Script("wrong")


class ScriptedHandler(ItemHandler[Scripted]):
    """Runs items as they say.

    Attributes:
        begun: names of those whose execution began, in order.
        running: executions under way.
        counted: judgements that were counted.
    """

    def __init__(self, at_work: int = 4, queue_items: int = 64) -> None:
        self.pool = CoroutinePool(at_work, queue_items, 2**20)
        self.begun: list[str] = []
        self.running = 0
        self.counted = 0

    pending = Scripted

    def admit(self, item: Scripted, message: reward_pb2.Item) -> None:
        """Reads the script.

        Raises:
            Unjudgeable: the item says that it is wrong.
        """
        road, end, turns, name = message.response.split("|")
        item.size_bytes = message.ByteSize()
        item.timeout_s = float(message.timeout.seconds)
        item.script = Script(road, end, int(turns), name, message.timeout.seconds)
        if road == "wrong":
            raise Unjudgeable("INVALID_PARAMETER", "it says so", {"which": message.id})

    def run_here(self, item: Scripted) -> bool:
        """Runs those that say so, if they end at all."""
        if item.script.road != "here" or item.script.end == "never":
            return False
        item.settle(self._end(item))
        return True

    def pool_of(self, item: Scripted) -> CoroutinePool | None:
        """The pool, for those that say so."""
        return self.pool if item.script.road == "pool" else None

    def key(self, item: Scripted) -> str | None:
        """The name."""
        return item.script.name or None

    def job(self, item: Scripted, lane: object) -> CoroutineJob:
        """The script as a coroutine."""
        return CoroutineJob(lane, item.size_bytes, lambda: self._run(item))

    async def run_elsewhere(self, items: Sequence[Scripted], deadline_s: float) -> None:
        """Runs those that say so, all at once."""

        async def run(item: Scripted) -> None:
            outcome = await self._run(item)
            if item.outcome is None:
                item.settle(outcome)

        tasks = [asyncio.ensure_future(run(i)) for i in items if i.script.road == "elsewhere"]
        if tasks:
            left_s = deadline_s - asyncio.get_running_loop().time()
            try:
                await asyncio.wait(tasks, timeout=max(0.0, left_s))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def fill(self, result: Any, item: Scripted) -> None:
        """Writes the verdict."""
        result.judgement.verdict = item.outcome
        result.from_cache = item.from_cache

    def who(self, item: Scripted) -> str:
        """The road."""
        return item.script.road

    def count(self, item: Scripted, who: str, result: Any) -> None:
        """Counts a judgement."""
        assert result.judgement.verdict == item.outcome
        assert who == item.script.road
        self.counted += 1

    def details(self, item: Scripted, result: Any) -> Details:
        """Nothing."""
        return Details()

    async def _run(self, item: Scripted) -> Any:
        self.begun.append(item.item_id)
        self.running += 1
        try:
            for _ in range(item.script.turns):
                await asyncio.sleep(0)
            if item.script.end == "never":
                await asyncio.Event().wait()
            return self._end(item)
        finally:
            self.running -= 1

    @staticmethod
    def _end(item: Scripted) -> Any:
        if item.script.end == "defect" and item.script.road == "pool":
            raise RuntimeError("a defect, with a secret in its text")
        return "fine" if item.script.end == "judged" else ItemFault("ITEM_TIMEOUT", "it said so")


class Scripts:
    """A batch service of scripted items.

    Args:
        at_work: jobs that its pool runs at a time.
        queue_items: jobs that may wait.
        max_items: most items of a request.
        cache_entries: judgements that are kept.

    Attributes:
        journal: the items of every answer.
    """

    def __init__(
        self,
        at_work: int = 4,
        queue_items: int = 64,
        max_items: int = 64,
        cache_entries: int = 0,
    ) -> None:
        self.handler = ScriptedHandler(at_work, queue_items)
        self.metrics = ItemMetrics("scripted", "road")
        self.journal: list[list[Scripted]] = []
        self.service = BatchService(
            self.handler,
            self.metrics,
            max_items,
            cache=OutcomeCache(cache_entries),
            answered=lambda items: self.journal.append(list(items)),
        )

    async def batch(
        self, messages: Sequence[reward_pb2.Item], timeout_s: float = 30.0
    ) -> list[reward_pb2.Result]:
        """The results of a batch."""
        response = reward_pb2.BatchScoreResponse()
        await self.service.answer(messages, response, self.handler.admit, timeout_s)
        return list(response.results)

    async def stream(
        self, chunks: Sequence[Sequence[reward_pb2.Item]], timeout_s: float = 30.0
    ) -> list[reward_pb2.Result]:
        """The results of a stream, as they came."""
        found: list[reward_pb2.Result] = []
        async for response in self.answers(chunks, timeout_s):
            assert response.results, "no answer is empty"
            found += response.results
        return found

    def answers(self, chunks: Sequence[Sequence[reward_pb2.Item]], timeout_s: float = 30.0) -> Any:
        """The answers of a stream."""

        async def requests() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
            for chunk in chunks:
                yield reward_pb2.StreamScoreRequest(items=chunk)

        return self.service.stream(
            requests(),
            lambda request: request.items,
            reward_pb2.StreamScoreResponse,
            self.handler.admit,
            timeout_s,
        )

    def tally(self) -> dict[str, float]:
        """What the metrics say: items, faults, abandoned."""
        return {
            sample.name.removeprefix("assay_scripted_"): sum(
                other.value for other in family.samples if other.name == sample.name
            )
            for one in self.metrics.collectors
            for family in one.collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        }

    def conserved(self) -> bool:
        """Items are judgements, faults and those that were abandoned."""
        told = self.tally()
        ended = told.get("faults_total", 0) + told["abandoned_items_total"]
        return told["items_total"] == self.handler.counted + ended
