"""A reward server for tests: real gRPC, answers by a function, and knobs that make it fail.

    async with FakeRewardServer(knobs=Knobs(unavailable=2)) as server:
        async with AsyncRewardClient(server.address) as client:
            assert (await client.score_one(Item("4", reference="4"))).reward == 1.0

`async with` serves on the running loop, `with` in a thread of its own. Leaving the context fails
when a knob was set and never met: such a test proves nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import grpc

from assay.api.common.v1 import common_pb2
from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients.testing.served import FakeServer, nothing_to_test
from assay.clients.types import Fault, Judgement
from assay.kit import limits
from assay.kit.errors import make_status, refuse
from assay.kit.reasons import Reason
from assay.kit.serving import Service
from assay.kit.tls import ServerTls

Judge = Callable[[reward_pb2.Item], Judgement | Fault]
_NAME = reward_pb2.DESCRIPTOR.services_by_name["RewardService"].full_name


def exact_judge(item: reward_pb2.Item) -> Judgement | Fault:
    """Reward 1 for a response equal to the reference's text, else 0; a fault without one."""
    if not item.HasField("reference"):
        return Fault("MISSING_REFERENCE", "the item has no reference", code="INVALID_ARGUMENT")
    right = item.response == item.reference.text
    return Judgement(
        reward=float(right),
        verdict="correct" if right else "incorrect",
        extracted_answer=item.response,
        explanation="equal" if right else "not equal",
        verifier="exact",
        version="1",
    )


@dataclass(frozen=True, slots=True)
class Knobs:
    """The failures of the server, all off by default. Each one set must be met before it closes.

    Attributes:
        unavailable: refuses this many scoring calls with UNAVAILABLE, before all others,
        queue_full: this many with QUEUE_FULL after those,
        retry_after_s: with this wait in seconds; None sends no RetryInfo. It need not be met.
        internal: fails this many with INTERNAL after those.
        hang: this many never answer, until they are cancelled.
        die: this many end the server at once.
        delay_s: every answer takes this long.
        fault_ids: items that get a fault.
        nan_ids: items whose reward is NaN.
        drop_ids: items that the answer leaves out.
        duplicate_ids: items that the answer holds twice, with different rewards.
        unknown_results: results of unknown ids, in every answer.
        shuffle: results come in a random order.
    """

    unavailable: int = 0
    queue_full: int = 0
    retry_after_s: float | None = 0.01
    internal: int = 0
    hang: int = 0
    die: int = 0
    delay_s: float = 0.0
    fault_ids: frozenset[str] = frozenset()
    nan_ids: frozenset[str] = frozenset()
    drop_ids: frozenset[str] = frozenset()
    duplicate_ids: frozenset[str] = frozenset()
    unknown_results: int = 0
    shuffle: bool = False

    def to_meet(self) -> set[str]:
        """Names of the knobs that are set."""
        return {f.name for f in fields(self) if f.name != "retry_after_s" and getattr(self, f.name)}


@dataclass
class FakeRewardServer(FakeServer):
    """A reward server that answers by `judge`, and fails by `knobs`.

    Attributes:
        port: 0 takes a free one.
        requests: the batches and chunks received, refused ones included.
        metadata: of each scoring call.
        cancelled: scoring calls that were cancelled while they hung.
    """

    judge: Judge = exact_judge
    knobs: Knobs = field(default_factory=Knobs)
    batch_limits: common_pb2.BatchLimits = field(
        default_factory=lambda: common_pb2.BatchLimits(
            max_items=limits.MAX_BATCH_ITEMS,
            max_message_bytes=limits.MAX_MESSAGE_BYTES,
            max_item_bytes=limits.MAX_ITEM_BYTES,
        )
    )
    verifiers: Sequence[reward_pb2.VerifierInfo] = field(default_factory=lambda: [exact_info()])
    tls: ServerTls | None = None
    token: str | None = None
    port: int = 0
    requests: list[Sequence[reward_pb2.Item]] = field(default_factory=list)
    metadata: list[Mapping[str, str | bytes]] = field(default_factory=list)
    cancelled: int = 0

    def _service(self) -> Service:
        return Service(
            _NAME,
            lambda server: reward_pb2_grpc.add_RewardServiceServicer_to_server(
                _Servicer(self), server
            ),
            nothing_to_test,
        )

    async def _answer(self, items: Sequence[reward_pb2.Item]) -> list[reward_pb2.Result]:
        """Results by the knobs, or the call's refusal."""
        if self.meets("unavailable"):
            raise refuse(Reason.DRAINING, "the fake is set to be unavailable")
        if self.meets("queue_full"):
            raise refuse(
                Reason.QUEUE_FULL,
                "the fake is set to be full",
                retry_after_s=self.knobs.retry_after_s,
            )
        if self.meets("internal"):
            raise refuse(Reason.INTERNAL, "the fake is set to fail")
        if self.meets("die"):
            await self.die()
        if self.meets("hang"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.knobs.delay_s:
            self._met.add("delay_s")
            await asyncio.sleep(self.knobs.delay_s)
        return self._results(items)

    def _results(self, items: Sequence[reward_pb2.Item]) -> list[reward_pb2.Result]:
        results = []
        for item in items:
            if self._strikes("drop_ids", item):
                continue
            result = self._result(item)
            result.labels.update(item.labels)
            results.append(result)
            if self._strikes("duplicate_ids", item):
                again = reward_pb2.Result()
                again.CopyFrom(result)
                again.judgement.reward += 1.0
                results.append(again)
        for number in range(self.knobs.unknown_results):
            self._met.add("unknown_results")
            stray = reward_pb2.Result(id=f"nobody-asked-{number}")
            stray.judgement.reward = 123.0
            results.insert(0, stray)
        if self.knobs.shuffle and len(results) > 1:
            self._met.add("shuffle")
            random.shuffle(results)
        return results

    def _result(self, item: reward_pb2.Item) -> reward_pb2.Result:
        if self._strikes("fault_ids", item):
            return result_to_proto(
                item.id, Fault("VERIFIER_FAILED", "the fake is set to", code="INTERNAL")
            )
        result = result_to_proto(item.id, self.judge(item))
        if self._strikes("nan_ids", item):
            result.judgement.reward = float("nan")
        return result

    def _strikes(self, knob: str, item: reward_pb2.Item) -> bool:
        if item.id in getattr(self.knobs, knob):
            self._met.add(knob)
            return True
        return False


class _Servicer(reward_pb2_grpc.RewardServiceServicer):
    def __init__(self, fake: FakeRewardServer) -> None:
        self._fake = fake

    async def BatchScore(  # noqa: N802  # the name is the contract's
        self, request: reward_pb2.BatchScoreRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> reward_pb2.BatchScoreResponse:
        fake = self._fake
        fake.requests.append(request.items)
        fake.metadata.append(dict(context.invocation_metadata() or ()))
        return reward_pb2.BatchScoreResponse(results=await fake._answer(request.items))  # noqa: SLF001  # one thing

    async def StreamScore(  # noqa: N802  # the name is the contract's
        self,
        request_iterator: AsyncIterator[reward_pb2.StreamScoreRequest],
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        fake = self._fake
        fake.metadata.append(dict(context.invocation_metadata() or ()))
        async for request in request_iterator:
            fake.requests.append(request.items)
            results = await fake._answer(request.items)  # noqa: SLF001  # one thing
            if results:
                yield reward_pb2.StreamScoreResponse(results=results)

    async def ListVerifiers(  # noqa: N802  # the name is the contract's
        self, request: reward_pb2.ListVerifiersRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> reward_pb2.ListVerifiersResponse:
        return reward_pb2.ListVerifiersResponse(
            verifiers=self._fake.verifiers, limits=self._fake.batch_limits, server_version="fake"
        )


def exact_info() -> reward_pb2.VerifierInfo:
    """The default description of the fake's verifier."""
    return reward_pb2.VerifierInfo(
        name="exact",
        version="1",
        description="Equal text.",
        tasks=["exact"],
        min_reward=0.0,
        max_reward=1.0,
        deterministic=True,
        cacheable=True,
        needs_reference=True,
        verdicts=["correct", "incorrect"],
    )


def result_to_proto(item_id: str, outcome: Judgement | Fault) -> reward_pb2.Result:
    """Writes an outcome as a server would."""
    result = reward_pb2.Result(id=item_id)
    if isinstance(outcome, Fault):
        code = grpc.StatusCode[outcome.code]
        status = make_status(outcome.reason, outcome.message, code=code, metadata=outcome.metadata)
        result.fault.CopyFrom(status)
        return result
    judgement = result.judgement
    judgement.reward = outcome.reward
    judgement.verdict = outcome.verdict
    judgement.explanation = outcome.explanation
    judgement.verifier.name, judgement.verifier.version = outcome.verifier, outcome.version
    judgement.suspicions.extend(outcome.suspicions)
    if outcome.extracted_answer is not None:
        judgement.extracted_answer = outcome.extracted_answer
    for part in outcome.components:
        judgement.components.add(name=part.name, score=part.score, weight=part.weight)
    if outcome.appeal is not None and outcome.appeal.second is not None:
        appeal, told = outcome.appeal, judgement.appeal
        told.component, told.drawn, told.probability = (
            *(appeal.component, appeal.drawn, appeal.probability),
        )
        for one, said in ((told.first, appeal.first), (told.second, outcome.appeal.second)):
            one.verifier.name, one.verifier.version = said.verifier, said.version
            one.verdict, one.reward = said.verdict, said.reward
    for span in outcome.spans:
        place = common_pb2.TextRange(start=span.start, end=span.end)
        judgement.spans.add(
            range=place, turn_index=span.turn_index, reward=span.reward, label=span.label
        )
    return result
