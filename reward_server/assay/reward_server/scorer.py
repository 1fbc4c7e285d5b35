"""The scorer: the methods of reward.proto, on the kit's batch service.

A client in the same process may call it directly.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from functools import partial
from importlib.metadata import version
from operator import attrgetter

from assay.api.common.v1 import common_pb2
from assay.api.reward.v1 import reward_pb2
from assay.kit import limits
from assay.kit.batch.dispatcher import Dispatcher
from assay.kit.batch.service import BatchService
from assay.kit.batch.sharing import OutcomeCache
from assay.kit.batch.spreading import Spreading
from assay.kit.durations import duration
from assay.kit.errors import ConfigError, StartupError
from assay.kit.pool.link import LinkError, Workers
from assay.kit.pool.pool import PoolConfig, WorkerPool
from assay.kit.watching import FileWatch, Reloadable
from assay.reward_server import convert
from assay.reward_server.canaries import Canaries
from assay.reward_server.config import ScorerConfig
from assay.reward_server.counts import RewardMetrics
from assay.reward_server.domain import RemoteVerifier
from assay.reward_server.equality import is_small
from assay.reward_server.files import FileVerifier
from assay.reward_server.handler import ScoreHandler
from assay.reward_server.journal.writer import Journal
from assay.reward_server.pending import PendingScore
from assay.reward_server.profiles import Profile, load_profiles
from assay.reward_server.proving import Prover
from assay.reward_server.registry import Registry, RegistryError, load_registry
from assay.reward_server.reliability import Measured, load_reliability
from assay.reward_server.workers.codec import ScoreCodec, ScorePool
from assay.reward_server.workers.parcels import ScoreParcels
from assay.reward_server.workers.place import place

_log = logging.getLogger(__name__)


class RewardScorer:
    """Scores items. Belongs to the event loop that starts it.

    Args:
        config: how items are scored.
        registry: the verifiers; by default ours, the installed plug-ins and the shipped profiles.
            Workers find theirs by name, so those must be built in, installed or of a file.
        journal: keeps the answers, if it is started; None for none. Whoever made it closes it.
        profiles: the files of the registry's profiles, which are read again when they change; a
            watch that was made before the registry. None: nothing is read again.
        reliability: the same, of files of measured rates.

    Attributes:
        counts: the answers so far.
        workers: where the worker processes are.
        reloadables: the profiles and measured rates, for the server.
        canaries: those of profiles; None until the start.
    """

    def __init__(
        self,
        config: ScorerConfig | None = None,
        *,
        registry: Registry | None = None,
        journal: Journal | None = None,
        profiles: FileWatch | None = None,
        reliability: FileWatch | None = None,
    ) -> None:
        self._config = config or ScorerConfig()
        self._registry = registry or load_registry(profiles=())
        self._pool: ScorePool | None = None
        self._handler: ScoreHandler | None = None
        self._service: BatchService[PendingScore] | None = None
        self._prover: Prover | None = None
        self._journal = journal
        self.canaries: Canaries | None = None
        files = () if reliability is None else reliability.files
        self._reliability = load_reliability(files)
        self.counts = RewardMetrics(self._config.metric_labels)
        self.workers: Workers = place(
            self._config, [one.source for one in self._registry if isinstance(one, FileVerifier)]
        )
        if journal is not None:
            self.counts.watch_journal(journal)
        self.reloadables: tuple[Reloadable, ...] = ()
        if profiles is not None and profiles.files:
            lookup = self._registry.verifier
            known = [one.spec.name for one in self._registry if not isinstance(one, Profile)]
            key = self._registry.appeal_key
            load = partial(load_profiles, profiles.files, lookup, known, key)
            self.reloadables = (Reloadable("profiles", profiles, load, self._take_profiles),)
        if reliability is not None and files:
            rates = Reloadable(
                "reliability", reliability, partial(load_reliability, files), self._take_reliability
            )
            self.reloadables += (rates,)

    async def start(self) -> None:
        """Starts the workers and tests every verifier that is not lazy on its own examples.

        Raises:
            StartupError: the workers do not come up, or a built-in verifier fails its test. A third
                party's that fails is served as VERIFIER_UNHEALTHY.
        """
        config = self._config
        self._pool = WorkerPool(
            PoolConfig(config.worker_count, config.queue_items, config.queue_mb * 2**20),
            self.workers,
            ScoreCodec(),
        )
        try:
            await self._pool.start()
        except LinkError as error:
            raise StartupError(f"the worker processes do not start: {error}") from error
        self.counts.watch(self._pool)
        cache = OutcomeCache(config.cache_entries, is_small)
        handler = ScoreHandler(self._registry, config, self._pool, self.counts, cache)
        service = BatchService(
            handler,
            self.counts.items,
            config.max_batch_items,
            cache=cache,
            answered=self._answered,
        )
        handler.dispatcher = service.dispatcher
        handler.canaries = self.canaries = Canaries(
            service.dispatcher, self._pool, self.counts, config.queue_items
        )
        parcels = ScoreParcels(self._pool, cache, handler.cached, handler.run_here)
        service.dispatcher.spreading = Spreading(parcels, config.parcels)
        handler.prover = Prover(service.dispatcher, handler, self._registry.ours)
        self._handler, self._service, self._prover = handler, service, handler.prover
        await self.self_test()

    async def close(self) -> None:
        """Ends every worker process. May be called at any time, and more than once."""
        pool, prover, canaries = self._pool, self._prover, self.canaries
        self.canaries = self._pool = self._handler = self._service = self._prover = None
        if canaries is not None:
            await canaries.close()
        if prover is not None:
            await prover.close()
            for line in self.counts.lines():
                _log.info("judged since the start: %s", line)
        for verifier in self._registry:
            if isinstance(verifier, RemoteVerifier):
                await verifier.close()
        if pool is not None:
            await pool.close()

    async def _take_profiles(self, found: Sequence[Profile]) -> str:
        """Serves these profiles to the items that come from now on; those at work keep theirs.

        What a file says as before stays the same profile. The verdicts of parts stay in the cache:
        a part is asked with its own version and parameters.

        Raises:
            ConfigError: a new one fails its examples, or a name or task is taken.
        """
        if self._prover is None:
            raise ConfigError("the profiles cannot be tested before the server has started")
        before = {one.spec.name: one for one in self._registry if isinstance(one, Profile)}
        after = {
            one.spec.name: kept if kept is not None and kept.equals(one) else one
            for one in found
            for kept in [before.get(one.spec.name)]
        }
        changed = [one for name, one in after.items() if one is not before.get(name)]
        for one in changed:
            await self._prover.check(one)
        try:
            self._registry.take_profiles(after.values())
        except RegistryError as error:
            raise ConfigError(str(error)) from error
        gone = before.keys() - after.keys()
        for name in (*gone, *(one.spec.name for one in changed)):
            self._prover.forget(name)
            if self.canaries is not None:
                self.canaries.forget(name)
        said = [f"{one.spec.name} is version {one.spec.version}" for one in changed]
        said += [f"{name} is gone" for name in sorted(gone)]
        return f"profiles: {', '.join(said) or 'as they were'}"

    async def _take_reliability(self, found: Measured) -> str:
        """Shows these rates from now on."""
        self._reliability = found
        return f"measured rates of {', '.join(sorted(found)) or 'nothing'}"

    @property
    def pool(self) -> ScorePool:
        """The running worker pool."""
        if self._pool is None:
            raise RuntimeError("the scorer is not started")
        return self._pool

    @property
    def dispatcher(self) -> Dispatcher[PendingScore]:
        """Runs the items of all calls."""
        return self._open()[1].dispatcher

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
        if self._prover is None:
            raise RuntimeError("the scorer is not started")
        await self._prover.prove_all(chosen)

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Scores a batch: one result for each item, in order.

        Args:
            request: the items.
            timeout_s: seconds until the caller's deadline; the answer comes slightly before it.

        Raises:
            CallError: the request as a whole is refused; no item was judged.
        """
        handler, service = self._open()
        response = reward_pb2.BatchScoreResponse()
        await service.answer(request.items, response, handler.admit, timeout_s)
        return response

    async def list_verifiers(
        self,
        request: reward_pb2.ListVerifiersRequest,
        *,
        timeout_s: float,
    ) -> reward_pb2.ListVerifiersResponse:
        """The verifiers and the limits. Answers at once."""
        del request, timeout_s
        config = self._config
        return reward_pb2.ListVerifiersResponse(
            verifiers=[
                convert.info_to_proto(verifier.spec, self._reliability.get(verifier.spec.name, ()))
                for verifier in self._registry
            ],
            limits=common_pb2.BatchLimits(
                max_items=config.max_batch_items,
                max_message_bytes=limits.MAX_MESSAGE_BYTES,
                max_item_bytes=limits.MAX_ITEM_BYTES,
                max_item_timeout=duration(config.max_item_timeout_s),
                default_item_timeout=duration(config.item_timeout_s),
            ),
            server_version=version("assay-rl-reward-server"),
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
        handler, service = self._open()
        return service.stream(
            requests,
            attrgetter("items"),
            reward_pb2.StreamScoreResponse,
            handler.admit,
            timeout_s,
        )

    def _answered(self, items: Sequence[PendingScore]) -> None:
        if self._config.metric_labels:
            self.counts.labelled(items)
        self.counts.appeals.add(items)
        if self._journal is not None:
            self._journal.offer(items)

    def _open(self) -> tuple[ScoreHandler, BatchService[PendingScore]]:
        if self._handler is None or self._service is None:
            raise RuntimeError("the scorer is not started")
        return self._handler, self._service
