"""The scorer: items in, one judgement or fault for each out. No gRPC here but its messages.

The server's servicer is a thin rim over it, and a client in the same process may call it directly.
What it promises is the contract of reward.proto: judgements and faults together equal the items, in
their order; a call that is refused has judged nothing; what is not finished shortly before the
deadline is a fault, and what is finished is returned; nothing goes on for a call that is gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from importlib.metadata import version

from assay.api.common.v1 import common_pb2
from assay.api.reward.v1 import reward_pb2
from assay.reward_server import convert, spans
from assay.reward_server.config import ScorerConfig
from assay.reward_server.counts import Counts
from assay.reward_server.desk import Desk
from assay.reward_server.domain import RemoteVerifier
from assay.reward_server.journal.writer import Journal
from assay.reward_server.judging import judge_elsewhere, judge_here
from assay.reward_server.proving import Prover
from assay.reward_server.registry import Registry, load_registry
from assay.reward_server.stream import StreamScoring
from assay.reward_server.tickets import LATE, Ticket, add_results
from assay.reward_server.workers.link import LinkError
from assay.reward_server.workers.on_ray import RaySeats
from assay.reward_server.workers.pool import Pool, PoolConfig
from assay.reward_server.workers.queue import QueueFull
from assay.reward_server.workers.seat import LocalSeats, Seats
from assay.reward_server.workers.worker import WorkerLimits
from assay.rpc import limits
from assay.rpc.batches import answer_by_s, check_chunk
from assay.rpc.errors import StartupError, refuse
from assay.rpc.queue import Lane
from assay.rpc.reasons import Reason

_log = logging.getLogger(__name__)


class RewardScorer:
    """Scores items. Belongs to the event loop that starts it.

    Args:
        config: how items are scored.
        registry: the verifiers; by default ours, the installed plug-ins and the shipped profiles.
            Verifiers that run in workers are found there by name, so those must be built in or
            installed.
        journal: keeps what is said, if it is started; None for none. Whoever made it closes it.

    Attributes:
        counts: what was said so far.
    """

    def __init__(
        self,
        config: ScorerConfig | None = None,
        *,
        registry: Registry | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._config = config or ScorerConfig()
        self._registry = registry or load_registry(profiles=())
        self._pool: Pool | None = None
        self._desk: Desk | None = None
        self._prover: Prover | None = None
        self._journal = journal
        self.counts = Counts()
        if journal is not None:
            self.counts.watch_journal(journal)

    async def start(self) -> None:
        """Starts the workers and tests every verifier that is not lazy on its own examples.

        Raises:
            StartupError: the workers do not come up, or a built-in verifier fails its test. A third
                party's that fails is served as VERIFIER_UNHEALTHY.
        """
        config = self._config
        self._pool = Pool(
            PoolConfig(config.worker_count, config.queue_items, config.queue_mb * 2**20),
            _seats(config),
        )
        try:
            await self._pool.start()
        except LinkError as error:
            raise StartupError(f"the worker processes do not start: {error}") from error
        self.counts.watch(self._pool)
        self._desk = Desk(self._registry, config, self._pool)
        self._prover = Prover(self._desk, self._registry.ours)
        await self.self_test()

    async def close(self) -> None:
        """Ends every worker process. May be called at any time, and more than once."""
        pool, prover = self._pool, self._prover
        self._pool = self._desk = self._prover = None
        if prover is not None:
            await prover.close()
            for line in self.counts.lines():
                _log.info("judged since the start: %s", line)
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
        """Has every verifier that is not lazy judge its own examples.

        Raises:
            StartupError: a built-in verifier gives another verdict than the one expected.
        """
        preload = self._config.preload
        chosen = [
            verifier
            for verifier in self._registry
            if not verifier.spec.lazy or verifier.spec.name in preload or "all" in preload
        ]
        await self._open_prover().prove_all(chosen)

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
        waited_for = 0
        try:
            await self._open_prover().prove_first(tickets, deadline_s)
            await judge_here(desk, tickets, deadline_s)
            self._launch(tickets)
            waited_for = len(tickets)
            self.counts.items.accepted(waited_for)
            await judge_elsewhere(desk, self._open_prover(), tickets, deadline_s)
            waited_for = 0
        finally:
            self.counts.items.abandoned(waited_for)
            for ticket in tickets:
                desk.close(ticket, LATE)
        self.counts.add(tickets)
        spans.note(tickets)
        response = reward_pb2.BatchScoreResponse()
        add_results(response.results, tickets)
        if self._journal is not None:
            self._journal.offer(tickets)
        return response

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
    ) -> AsyncGenerator[reward_pb2.StreamScoreResponse, None]:
        """Scores a stream of chunks; results come as they are ready.

        A full queue does not end a stream: the next chunk is read when there is room for it.

        Args:
            requests: the chunks.
            timeout_s: seconds until the caller's deadline.

        Raises:
            CallError: a chunk is refused; the stream ends.
        """
        stream = StreamScoring(
            self._open_desk(),
            self._open_prover(),
            self._config.max_batch_items,
            timeout_s,
            self.counts,
            journal=self._journal,
        )
        return stream.run(requests)

    def _open_desk(self) -> Desk:
        if self._desk is None:
            raise RuntimeError("the scorer is not started")
        return self._desk

    def _open_prover(self) -> Prover:
        if self._prover is None:
            raise RuntimeError("the scorer is not started")
        return self._prover

    def _launch(self, tickets: list[Ticket]) -> None:
        try:
            self._open_desk().launch(tickets, Lane())
        except QueueFull:
            raise refuse(
                Reason.QUEUE_FULL,
                f"{self.pool.queued} items wait already; none of this request was taken",
                retry_after_s=self.pool.retry_after_s(),
            ) from None


def _seats(config: ScorerConfig) -> Seats:
    """Where the workers are: on this machine, or on a cluster."""
    bounds = WorkerLimits(
        config.worker_memory_mb * 2**20, config.worker_items, config.worker_growth_mb * 2**20
    )
    if config.pool == "ray":
        return RaySeats(config.ray_address, bounds, config.preload)
    return LocalSeats(bounds, config.preload)
