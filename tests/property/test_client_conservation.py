"""Judgements plus faults equal items, in order, whatever a server answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st

from assay.api.common.v1 import common_pb2
from assay.api.reward.v1 import reward_pb2
from assay.clients import AsyncRewardClient, ClientConfig, Fault, Item, Judgement, LocalTransport
from assay.clients.config import RetryPolicy
from assay.clients.testing import exact_info, result_to_proto
from assay.kit.errors import refuse
from assay.kit.reasons import Reason

FATES = st.sampled_from(["judge", "judge", "fault", "drop", "nan", "empty", "twice"])
CONFIG = ClientConfig(retry=RetryPolicy(max_attempts=3, base_s=0.0, cap_s=0.0))


class Scripted:
    """A scorer that does with each item what its parameter `fate` says, and refuses some calls."""

    def __init__(self, seed: int, refusals: int, max_items: int) -> None:
        self._random = random.Random(seed)
        self._refusals = refusals
        self._max_items = max_items
        self.largest = 0

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def list_verifiers(
        self, request: reward_pb2.ListVerifiersRequest, *, timeout_s: float
    ) -> reward_pb2.ListVerifiersResponse:
        limits = common_pb2.BatchLimits(max_items=self._max_items)
        return reward_pb2.ListVerifiersResponse(verifiers=[exact_info()], limits=limits)

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        self.largest = max(self.largest, len(request.items))
        if self._refusals:
            self._refusals -= 1
            raise refuse(Reason.DRAINING, "told to")
        results = [result for item in request.items for result in self._results(item)]
        self._random.shuffle(results)
        return reward_pb2.BatchScoreResponse(results=results)

    async def stream_score(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], *, timeout_s: float
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        async for request in requests:
            self.largest = max(self.largest, len(request.items))
            if self._refusals:
                self._refusals -= 1
                raise refuse(Reason.DRAINING, "told to")
            results = [result for item in request.items for result in self._results(item)]
            self._random.shuffle(results)
            for result in results:
                yield reward_pb2.StreamScoreResponse(results=[result])

    def _results(self, item: reward_pb2.Item) -> list[reward_pb2.Result]:
        fate = item.parameters["fate"].string_value
        right = result_to_proto(item.id, Judgement(float(item.response), "correct"))
        if fate == "fault":
            return [result_to_proto(item.id, Fault("WORKER_DIED", "died", code="INTERNAL"))]
        if fate == "nan":
            right.judgement.reward = float("nan")
        if fate == "empty":
            return [reward_pb2.Result(id=item.id)]
        stray = result_to_proto(f"stray-{item.id}", Judgement(-1.0, "correct"))
        return {"drop": [stray], "twice": [right, right]}.get(fate, [right])


def make_items(fates: list[str]) -> list[Item]:
    return [
        Item(str(number), "r", verifier="exact", parameters={"fate": fate})
        for number, fate in enumerate(fates)
    ]


def check(fates: list[str], rewards: list[float | None]) -> None:
    judged = ("judge", "twice")
    expected = [float(n) if fate in judged else None for n, fate in enumerate(fates)]
    assert rewards == expected


@given(st.lists(FATES, max_size=30), st.integers(0, 9), st.integers(0, 2), st.integers(1, 9))
def test_score_conserves_items_and_never_shifts_rewards(
    fates: list[str], seed: int, refusals: int, max_items: int
) -> None:
    async def main() -> None:
        scorer = Scripted(seed, refusals, max_items)
        transport = LocalTransport(scorer)
        async with AsyncRewardClient(transport=transport, config=CONFIG) as client:
            results = await client.score(make_items(fates))
        assert [result.id for result in results] == [str(n) for n in range(len(fates))]
        check(fates, [result.reward for result in results])
        assert scorer.largest <= max_items

    asyncio.run(main())


@given(st.lists(FATES, max_size=20), st.integers(0, 9), st.integers(1, 9))
def test_score_one_gives_each_caller_its_own_result(
    fates: list[str], seed: int, max_items: int
) -> None:
    async def main() -> None:
        transport = LocalTransport(Scripted(seed, 0, max_items))
        async with AsyncRewardClient(transport=transport, config=CONFIG) as client:
            results = await asyncio.gather(*(client.score_one(item) for item in make_items(fates)))
        check(fates, [result.reward for result in results])

    asyncio.run(main())


@given(st.lists(FATES, max_size=20), st.integers(0, 9), st.integers(0, 2), st.integers(1, 9))
def test_a_stream_conserves_items(
    fates: list[str], seed: int, refusals: int, max_items: int
) -> None:
    async def main() -> None:
        async def source() -> AsyncIterator[Item]:
            for item in make_items(fates):
                yield item

        scorer = Scripted(seed, refusals, max_items)
        transport = LocalTransport(scorer)
        async with AsyncRewardClient(transport=transport, config=CONFIG) as client:
            results = {result.id: result async for result in client.stream(source())}
        assert sorted(results, key=int) == [str(n) for n in range(len(fates))]
        check(fates, [results[str(n)].reward for n in range(len(fates))])
        assert scorer.largest <= max_items

    asyncio.run(main())


@given(st.lists(FATES, min_size=1, max_size=10))
def test_calls_that_fail_for_good_are_a_fault_of_each_item(fates: list[str]) -> None:
    async def main() -> None:
        transport = LocalTransport(Scripted(0, 1000, 4))
        async with AsyncRewardClient(transport=transport, config=CONFIG) as client:
            results = await client.score(make_items(fates))
        assert [result.fault and result.fault.reason for result in results] == ["DRAINING"] * len(
            fates
        )

    asyncio.run(main())
