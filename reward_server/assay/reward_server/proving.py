"""Self-tests: every verifier judges its own examples before it judges anything else.

Lazy verifiers are tested at their first request, the others when the server starts.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.kit.batch.dispatcher import Dispatcher
from assay.kit.errors import ConfigError, StartupError
from assay.reward_server import border
from assay.reward_server.domain import (
    CompositeVerifier,
    Fault,
    Outcome,
    RemoteVerifier,
    Verifier,
    VerifierExample,
)
from assay.reward_server.files import FileVerifier
from assay.reward_server.functions import ExampleError
from assay.reward_server.handler import ScoreHandler
from assay.reward_server.pending import PendingScore, Served

_TIMEOUT_S = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why a verifier fails its self-test: no judgement, or a wrong one."""

    text: str
    is_fault: bool = False


class Prover:
    """Tests verifiers, each once.

    Args:
        dispatcher: has the examples judged as requests are.
        handler: makes items of them.
        ours: names of our own verifiers; one that fails when the server starts stops it.
    """

    def __init__(
        self, dispatcher: Dispatcher[PendingScore], handler: ScoreHandler, ours: frozenset[str]
    ) -> None:
        self._dispatcher = dispatcher
        self._handler = handler
        self._ours = ours
        self._proofs: dict[str, asyncio.Task[None]] = {}

    async def prove_all(self, verifiers: Iterable[Verifier]) -> None:
        """Tests verifiers, lazy ones too.

        Raises:
            StartupError: a built-in verifier gives another verdict than the one expected.
        """
        for verifier in verifiers:
            await self._prove(verifier, strict=True)

    async def prove_first(self, items: Sequence[PendingScore], deadline_s: float) -> None:
        """Tests the lazy verifiers that are asked for the first time.

        Args:
            items: whose verifiers these are; those of one that fails are settled.
            deadline_s: when to stop waiting, by the monotonic clock.
        """
        lazy: dict[str, list[PendingScore]] = {}
        for item in items:
            if item.served is not None and item.served.spec.lazy and item.outcome is None:
                lazy.setdefault(item.served.spec.name, []).append(item)
        for name, waiting in lazy.items():
            served = waiting[0].served
            if name not in self._proofs and served is not None:
                proof = self._prove(served.verifier, strict=False)
                self._proofs[name] = asyncio.create_task(proof)
        proofs = [self._proofs[name] for name in lazy if not self._proofs[name].done()]
        if proofs:
            await asyncio.wait(proofs, timeout=max(0.0, deadline_s - time.monotonic()))
        for item in (item for waiting in lazy.values() for item in waiting):
            self._handler.check_health(item)

    async def check(self, verifier: Verifier) -> None:
        """Tests a verifier that is not served yet.

        Raises:
            ConfigError: it gives another verdict than the one expected, or a fault.
        """
        trouble = await self._trouble(verifier)
        if trouble is not None:
            raise ConfigError(f"{verifier.spec.name!r} fails its self-test: {trouble.text}")

    def forget(self, name: str) -> None:
        """Drops what is known of a verifier, because another has its name now."""
        self._handler.unhealthy.pop(name, None)
        proof = self._proofs.pop(name, None)
        if proof is not None:
            proof.cancel()

    async def close(self) -> None:
        """Cancels the running tests."""
        for proof in self._proofs.values():
            proof.cancel()
        await asyncio.gather(*self._proofs.values(), return_exceptions=True)

    async def _prove(self, verifier: Verifier, *, strict: bool) -> None:
        name = verifier.spec.name
        trouble = await self._trouble(verifier)
        if trouble is None:
            self._handler.unhealthy.pop(name, None)
        elif isinstance(verifier, RemoteVerifier) and trouble.is_fault:
            # The other service may start later; until then its faults speak for it.
            _log.warning("verifier %s cannot be tested yet: %s", name, trouble.text)
        elif strict and name in self._ours:
            raise StartupError(f"the verifier {name!r} fails its self-test: {trouble.text}")
        else:
            _log.error("verifier %s fails its self-test: %s", name, trouble.text)
            self._handler.unhealthy[name] = f"it failed its self-test: {trouble.text}"

    async def _trouble(self, verifier: Verifier) -> _Trouble | None:
        try:
            examples = verifier.examples
        except ExampleError as error:
            return _Trouble(str(error))
        except Exception as error:  # noqa: BLE001 - the isolation border: a third party's code
            _log.exception("the examples of verifier %s cannot be read", verifier.spec.name)
            return _Trouble(f"its examples cannot be read ({type(error).__name__})")
        if not examples and not isinstance(verifier, CompositeVerifier | FileVerifier):
            return _Trouble("it brings no examples")
        for example in examples:
            for outcome in await self._outcomes(verifier, example):
                if isinstance(outcome, Fault):
                    return _Trouble(f"{outcome.reason}: {outcome.message}", is_fault=True)
                if outcome.verdict != example.verdict:
                    text = f"verdict {outcome.verdict!r} where {example.verdict!r} is right"
                    return _Trouble(text)
        return None

    async def _outcomes(self, verifier: Verifier, example: VerifierExample) -> list[Outcome]:
        """The outcomes of an example in each place where its verifier judges."""
        if not isinstance(verifier, CompositeVerifier) and verifier.spec.isolation == "inline":
            return [border.judge(verifier, example.item)]
        item = self._handler.part_of(Served.of(verifier), example.item, _TIMEOUT_S)
        deadline_s = time.monotonic() + _TIMEOUT_S
        await self._dispatcher.launch([item], object(), deadline_s, waits=True)
        await self._dispatcher.finish([item], deadline_s)
        self._dispatcher.close(item, self._handler.late)
        found: list[Outcome] = [item.outcome]
        if not isinstance(verifier, CompositeVerifier) and verifier.spec.isolation == "process":
            glanced = border.glance(verifier, example.item)
            found += [] if glanced is None else [glanced]
        return found
