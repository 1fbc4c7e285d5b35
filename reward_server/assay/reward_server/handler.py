"""How the reward server admits, judges, writes, counts and traces an item."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.kit import limits
from assay.kit.batch.dispatcher import Dispatcher
from assay.kit.batch.service import ItemHandler
from assay.kit.batch.sharing import OutcomeCache
from assay.kit.batch.spans import Details, stretch
from assay.kit.trails import Fact
from assay.reward_server import border, convert
from assay.reward_server.canaries import Canaries
from assay.reward_server.config import ScorerConfig
from assay.reward_server.counts import RewardMetrics
from assay.reward_server.domain import (
    Fault,
    Unjudgeable,
    Verifier,
    VerifierItem,
)
from assay.reward_server.equality import item_key
from assay.reward_server.judging import Proves, judge_composites, judge_remote
from assay.reward_server.pending import PendingScore, Served
from assay.reward_server.registry import Registry
from assay.reward_server.workers.codec import ScoreJob, ScorePool, Task


class ScoreHandler(ItemHandler[PendingScore]):
    """Has items judged here, by workers, by other services, and by the parts of composites.

    Attributes:
        unhealthy: verifiers that failed their self-test, by name, with what is wrong.
        prover: tests verifiers before their first use; set once, when there is one.
        dispatcher: runs the parts of composites; set once, when there is one.
        canaries: rides along with the items of profiles that have some; set once.
    """

    def __init__(
        self,
        registry: Registry,
        config: ScorerConfig,
        pool: ScorePool,
        counts: RewardMetrics,
        cache: OutcomeCache,
    ) -> None:
        self.unhealthy: dict[str, str] = {}
        self.prover: Proves | None = None
        self.dispatcher: Dispatcher[PendingScore] | None = None
        self.canaries: Canaries | None = None
        self._registry = registry
        self._config = config
        self._pool = pool
        self._counts = counts
        self._cache = cache
        self._served: dict[str, Served] = {}

    pending = PendingScore

    def admit(self, item: PendingScore, message: reward_pb2.Item) -> None:
        """Checks an item and finds its verifier.

        Raises:
            Unjudgeable: the item is wrong.
        """
        try:
            if message.labels:
                item.labels = convert.labels_of(message)
            item.size_bytes = size_bytes = message.ByteSize()
            if size_bytes > limits.MAX_ITEM_BYTES:
                raise Unjudgeable(
                    "ITEM_TOO_LARGE",
                    f"the item has {size_bytes} bytes, the limit is {limits.MAX_ITEM_BYTES}",
                )
            verifier = self._registry.resolve(message.verifier, message.task)
            item.served = served = self._serve(verifier)
            item.origin = "caller"
            config = self._config
            item.timeout_s = convert.timeout_s(
                message, config.item_timeout_s, config.max_item_timeout_s
            )
            item.item = convert.item_from_proto(message, served.spec)
            if "run" in item.labels and served.road in ("remote", "composite"):
                item.item = dataclasses.replace(item.item, run=item.labels["run"])
        except Unjudgeable:
            item.refused = message
            raise
        if self.unhealthy:
            self.check_health(item)

    def part(self, name: str, item: VerifierItem, timeout_s: float) -> PendingScore:
        """An item of our own making: an example, or a part of a composite."""
        verifier = self._registry.get(name)
        served = None if verifier is None else self._serve(verifier)
        part = self.part_of(served, item, timeout_s)
        if served is None:
            part.settle(Fault("UNKNOWN_VERIFIER", f"verifier {name!r} is not served here"))
        else:
            self.check_health(part)
        return part

    @staticmethod
    def part_of(served: Served | None, item: VerifierItem, timeout_s: float) -> PendingScore:
        """The same of a verifier that need not be served, nor healthy."""
        part = PendingScore("", time.monotonic(), timeout_s=timeout_s)
        part.item = item
        part.size_bytes = len(item.candidate.text or "")
        part.served = served
        return part

    def check_health(self, item: PendingScore) -> None:
        """Settles an item whose verifier failed its self-test."""
        name = self.who(item)
        if item.outcome is None and name in self.unhealthy:
            text = f"verifier {name!r}: {self.unhealthy[name]}"
            item.settle(Fault("VERIFIER_UNHEALTHY", text))

    async def prepare(self, items: Sequence[PendingScore], deadline_s: float) -> None:
        """Tests the lazy verifiers that are asked for the first time."""
        if self.prover is not None:
            await self.prover.prove_first(items, deadline_s)

    def run_here(self, item: PendingScore) -> bool:
        """Judges an item in this process, if its verifier does."""
        served, given = item.served, item.item
        if served is None or given is None or item.alone:
            return False
        if served.road == "process":
            started_s = time.monotonic()
            glanced = border.glance(served.verifier, given)
            if glanced is not None:
                item.settle(glanced, started_s=started_s)
            return glanced is not None
        if served.road != "inline":
            return False
        if self.cached(item):
            return True
        started_s = time.monotonic()
        item.settle(border.judge(served.verifier, given), started_s=started_s)
        if item.key is not None:
            self._cache.put(item.key, item.outcome)
        return True

    def cached(self, item: PendingScore) -> bool:
        """Settles an item by the judgement of an equal one, if one is kept."""
        item.key = self.key(item) if item.key is None else item.key
        found = None if item.key is None else self._cache.get(item.key)
        if found is not None:
            item.settle(found, from_cache=True)
        return found is not None

    def pool_of(self, item: PendingScore) -> ScorePool | None:
        """The workers, for verifiers that run there and for items of a lost parcel."""
        served = item.served
        if served is None or not (served.road == "process" or item.alone):
            return None
        return self._pool

    def key(self, item: PendingScore) -> bytes | None:
        """The key that equal items share, if their verifier lets them."""
        served, given = item.served, item.item
        if served is None or given is None or not served.shares or item.origin == "canary":
            return None
        return item_key(served.spec, given)

    def job(self, item: PendingScore, lane: object) -> ScoreJob:
        """A worker's job."""
        if item.served is None or item.item is None:
            raise ValueError("the item is not known yet")
        task = Task(item.served.spec, item.item)
        return self._pool.job(lane, task, size_bytes=item.size_bytes, timeout_s=item.timeout_s)

    async def run_elsewhere(self, items: Sequence[PendingScore], deadline_s: float) -> None:
        """Asks other services, and the parts of composites."""
        if self.dispatcher is None:
            raise RuntimeError("the handler has no dispatcher")
        if self.canaries is not None:
            self.canaries.ride(items, deadline_s)
        await asyncio.gather(
            judge_composites(self.part, self.dispatcher, items, deadline_s),
            judge_remote(items, deadline_s),
        )

    def fill(self, result: reward_pb2.Result, item: PendingScore) -> None:
        """Writes the judgement."""
        if item.from_cache:
            result.from_cache = True
        convert.fill_judgement(result.judgement, item.outcome, item.spec)

    def echo(self, result: reward_pb2.Result, item: PendingScore) -> None:
        """Writes the item's labels."""
        if item.labels:
            result.labels.update(item.labels)

    def who(self, item: PendingScore) -> str:
        """The verifier's name."""
        return "" if item.served is None else item.served.spec.name

    def count(self, item: PendingScore, who: str, result: Any) -> None:
        """Counts the verdict, and signs of gaming."""
        del result
        self._counts.judged(who, item.outcome, from_cache=item.from_cache)

    def details(self, item: PendingScore, result: Any) -> Details:
        """The verdict, and the parts of a composite."""
        del result
        facts: dict[str, Fact] = {}
        if item.spec is not None:
            facts["assay.isolation"] = item.spec.isolation
        if item.item is not None and item.item.response_token_count is not None:
            facts["assay.response.tokens"] = item.item.response_token_count
        if not item.faulted:
            facts["assay.verdict"] = item.outcome.verdict
            facts["assay.from_cache"] = item.from_cache
            facts["assay.suspicions"] = len(item.outcome.suspicions)
        if not item.parts:
            return Details(facts)
        began_s = item.arrived_s + item.queue_s
        ends_s = [part.arrived_s + part.queue_s + part.execution_s for part in item.parts]
        parts = tuple(
            stretch(part, place, self._counts.items.by, self.who(part), self.details(part, None))
            for place, part in enumerate(item.parts)
        )
        return Details(facts, parts, max(ends_s) - began_s)

    def _serve(self, verifier: Verifier) -> Served:
        name = verifier.spec.name
        served = self._served.get(name)
        if served is None or served.verifier is not verifier:
            self._served[name] = served = Served.of(verifier)
        return served
