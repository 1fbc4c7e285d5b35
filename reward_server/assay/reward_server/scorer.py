"""The scorer: items in, one judgement or fault for each out. No gRPC here but its messages.

The server's servicer is a thin rim over it, and a client in the same process may call it directly.
What it promises is the contract of reward.proto: judgements and faults together equal the items, in
their order; a call that is refused has judged nothing; what is not finished shortly before the
deadline is a fault, and what is finished is returned; nothing goes on for a call that is gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.metadata import version

from assay.api.common.v1 import common_pb2
from assay.api.reward.v1 import reward_pb2
from assay.reward_server import convert
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import Fault, RemoteVerifier, Verifier
from assay.reward_server.registry import OURS, Registry, load_registry
from assay.reward_server.stream import StreamScoring
from assay.reward_server.tickets import (
    LATE,
    Desk,
    answer_by_s,
    check_chunk,
    judge_inline,
    judge_remote,
    results_of,
    wait_for_flights,
)
from assay.reward_server.workers.link import LinkError
from assay.reward_server.workers.pool import Pool, PoolConfig
from assay.reward_server.workers.worker import WorkerLimits
from assay.rpc import limits
from assay.rpc.errors import StartupError

_SELF_TEST_TIMEOUT_S = 30.0

_log = logging.getLogger(__name__)


class RewardScorer:
    """Scores items. Belongs to the event loop that starts it.

    Args:
        config: how items are scored.
        registry: the verifiers; by default ours and the installed plug-ins. Verifiers that run in
            workers are found there by name, so those must be built in or installed.
    """

    def __init__(
        self, config: ScorerConfig | None = None, *, registry: Registry | None = None
    ) -> None:
        self._config = config or ScorerConfig()
        self._registry = registry or load_registry()
        self._pool: Pool | None = None
        self._desk: Desk | None = None

    async def start(self) -> None:
        """Starts the workers and tests every verifier on its own examples.

        Raises:
            StartupError: the workers do not come up, or a built-in verifier fails its test. A third
                party's that fails is served as VERIFIER_UNHEALTHY.
        """
        config = self._config
        self._pool = Pool(
            PoolConfig(
                config.worker_count,
                config.queue_items,
                config.queue_mb * 2**20,
                WorkerLimits(
                    config.worker_memory_mb * 2**20,
                    config.worker_items,
                    config.worker_growth_mb * 2**20,
                ),
            )
        )
        try:
            await self._pool.start()
        except LinkError as error:
            raise StartupError(f"the worker processes do not start: {error}") from error
        self._desk = Desk(self._registry, config, self._pool)
        await self.self_test()

    async def close(self) -> None:
        """Ends every worker process. May be called at any time, and more than once."""
        pool, self._pool, self._desk = self._pool, None, None
        for verifier in self._registry:
            if isinstance(verifier, RemoteVerifier):
                await verifier.close()
        if pool is not None:
            await pool.close()

    @property
    def pool(self) -> Pool:
        """The running worker pool."""
        if self._pool is None:
            raise RuntimeError("the scorer is not started")
        return self._pool

    async def self_test(self) -> None:
        """Has every verifier judge its own examples, by the road that requests take.

        Raises:
            StartupError: a built-in verifier gives another verdict than the one expected.
        """
        for verifier in self._registry:
            name = verifier.spec.name
            trouble = await self._trouble(verifier)
            if trouble is None:
                self._open_desk().unhealthy.pop(name, None)
                continue
            if isinstance(verifier, RemoteVerifier) and trouble.is_fault:
                # The other service may start later; until then its faults speak for it.
                _log.warning("verifier %s cannot be tested yet: %s", name, trouble.text)
                continue
            if name in OURS:
                raise StartupError(f"the verifier {name!r} fails its self-test: {trouble.text}")
            _log.error("verifier %s fails its self-test: %s", name, trouble.text)
            self._open_desk().unhealthy[name] = f"it failed its self-test: {trouble.text}"

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Scores a batch.

        Args:
            request: the items.
            timeout_s: seconds until the caller's deadline; the answer comes slightly before it.

        Returns:
            One result for each item, in order.

        Raises:
            CallError: the request as a whole is refused; no item was judged.
        """
        arrived_s = time.monotonic()
        check_chunk(request.items, set(), self._config.max_batch_items)
        desk = self._open_desk()
        tickets = desk.issue(request.items, arrived_s)
        deadline_s = answer_by_s(arrived_s, timeout_s)
        try:
            await judge_inline(desk, tickets, deadline_s)
            await asyncio.gather(
                judge_remote(tickets, deadline_s), wait_for_flights(tickets, deadline_s)
            )
        finally:
            for ticket in tickets:
                desk.close(ticket, LATE)
        return reward_pb2.BatchScoreResponse(results=results_of(tickets))

    async def list_verifiers(
        self,
        request: reward_pb2.ListVerifiersRequest,
        *,
        timeout_s: float,
    ) -> reward_pb2.ListVerifiersResponse:
        """Says what is served, and the limits. Answers at once."""
        del request, timeout_s
        config = self._config
        return reward_pb2.ListVerifiersResponse(
            verifiers=[convert.info_to_proto(verifier.spec) for verifier in self._registry],
            limits=common_pb2.BatchLimits(
                max_items=config.max_batch_items,
                max_message_bytes=limits.MAX_MESSAGE_BYTES,
                max_item_bytes=limits.MAX_ITEM_BYTES,
                max_item_timeout=convert.duration(config.max_item_timeout_s),
                default_item_timeout=convert.duration(config.item_timeout_s),
            ),
            server_version=version("assay-reward-server"),
        )

    def stream_score(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], *, timeout_s: float
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        """Scores a stream of chunks; results come as they are ready.

        A full queue does not end a stream: the next chunk is read when there is room for it.

        Args:
            requests: the chunks.
            timeout_s: seconds until the caller's deadline.

        Raises:
            CallError: a chunk is refused; the stream ends.
        """
        stream = StreamScoring(self._open_desk(), self._config.max_batch_items, timeout_s)
        return stream.run(requests)

    def _open_desk(self) -> Desk:
        if self._desk is None:
            raise RuntimeError("the scorer is not started")
        return self._desk

    async def _trouble(self, verifier: Verifier) -> _Trouble | None:
        """What is wrong with a verifier; None if nothing is."""
        try:
            examples = verifier.examples
        except Exception as error:  # noqa: BLE001 - the isolation border: a third party's code
            _log.exception("the examples of verifier %s cannot be read", verifier.spec.name)
            return _Trouble(f"its examples cannot be read ({type(error).__name__})")
        if not examples:
            return _Trouble("it brings no examples")
        for example in examples:
            outcome = await self._open_desk().judge(verifier, example.item, _SELF_TEST_TIMEOUT_S)
            if isinstance(outcome, Fault):
                return _Trouble(f"{outcome.reason}: {outcome.message}", is_fault=True)
            if outcome.verdict != example.verdict:
                text = f"verdict {outcome.verdict!r} where {example.verdict!r} is right"
                return _Trouble(text)
        return None


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why a verifier fails its self-test: no judgement, or a wrong one."""

    text: str
    is_fault: bool = False
