"""The embedded engine: transformers, in a worker process that is started anew when it dies.

This side tokenises, queues, and returns answers; the worker has the model, its adapters, continuous
batching and shared beginnings. Requests of one turn of the event loop travel in one message, so
they are read together.

When the worker dies, its requests get ENGINE_DIED and waiting ones wait for the next worker, or go
to another engine of the same model. One that dies before its first answer is a failed start: pauses
grow, and after three in a row requests are refused at once until one succeeds. A worker that has
loaded other weights than those that `info` names does not serve: so answers never mix two of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import math
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assay.genrm.engines import loading
from assay.genrm.engines.base import (
    Answer,
    Capability,
    Choose,
    Chosen,
    EngineError,
    EngineTally,
    ModelInfo,
    NotBegunError,
    Rated,
    RateDialogue,
    RateSteps,
    Request,
    StepsRated,
    TokenCounts,
    Write,
    Written,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.encoding import Encoding
from assay.genrm.engines.prompts import Encoded
from assay.genrm.engines.worker.settings import WorkerSettings
from assay.kit.calls import request_id_var
from assay.kit.errors import ConfigError, StartupError
from assay.kit.pool.frames import Frame, read_object
from assay.kit.pool.link import (
    ChildLink,
    Command,
    LinkError,
    LinkLimits,
    environment_of_a_worker,
)
from assay.kit.reasons import Reason

_STOP_S = 5.0
_REQUESTS = b"X"
_JOBS_A_FRAME = 32
_FAILED_STARTS = 3
_BACKOFF_S = (0.0, 1.0, 4.0, 15.0)
_SHUT_DOWN = (Reason.ENGINE_DIED, "the model is being shut down")
_log = logging.getLogger(__name__)

_CAPABILITY: dict[type[object], Capability] = {
    Choose: "choose",
    Write: "write",
    RateDialogue: "rate",
    RateSteps: "rate-steps",
}


@dataclass(slots=True, eq=False)
class _PendingRequest:
    id: int
    request: Request
    adapter: str
    encoded: Encoded
    future: asyncio.Future[Answer]
    request_id: str = field(default_factory=request_id_var.get)

    def fail(self, error: EngineError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class TransformersEngine:
    """Runs one model with transformers. See `Replica`."""

    def __init__(
        self, name: str, config: EngineConfig, *, device: str = "", replicas: int = 1
    ) -> None:
        """Loads nothing yet.

        Args:
            name: how the service calls the model.
            config: its settings.
            device: where this one runs; empty for where the settings say.
            replicas: engines of this model on this machine, to which what this one has not begun
                is left when it dies.
        """
        self.tally = EngineTally(ready=0)
        self._name = name
        self._config = config
        self._device = device or config.places[0]
        self._replicas = replicas
        self._opened: loading.Opened | None = None
        self._info: ModelInfo | None = None
        self._link: ChildLink | None = None
        self._lost = asyncio.Event()  # of the link
        self._answered = False
        self._keeper: asyncio.Task[None] | None = None
        self._encoding: Encoding | None = None
        self._numbers = itertools.count(1)
        self._waiting: deque[_PendingRequest] = deque()
        self._sending = False  # in this turn of the event loop
        self._working: dict[int, _PendingRequest] = {}
        self._commands: dict[int, asyncio.Future[None]] = {}
        self._adapters: dict[str, tuple[str, str]] = {}  # folder and fingerprint
        self._refusal: tuple[str, str] | None = None

    @property
    def info(self) -> ModelInfo:
        """The model; known after `start`."""
        if self._info is None:
            raise RuntimeError(f"model {self._name} was not started")
        return self._info

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker, None while there is none; for logs and tests."""
        return self._link.pid if self._link else None

    async def start(self) -> None:
        """Loads the model; see `JudgeEngine`."""
        opened = await asyncio.to_thread(loading.open_model, self._name, self._config)
        self._opened = opened
        self._encoding = Encoding(self._what(), opened.encoder, opened.context_tokens)
        try:
            ready = await self._launch()
        except StartupError:
            await self.close()
            raise
        if opened.head == "step" and self._config.good_label >= max(ready["labels"], 2):
            await self.close()
            raise ConfigError(
                f"model {self._name}: good_label is {self._config.good_label}, but the model has "
                f"{ready['labels']} labels, counted from 0"
            )
        capabilities = loading.CAPABILITIES[opened.head]
        self._info = ModelInfo(
            name=self._name,
            engine="transformers",
            revision=opened.revision,
            capabilities=capabilities if ready["write"] else capabilities - {"write"},
            context_tokens=opened.context_tokens,
            deterministic=True,
            error_threshold=self._config.error_threshold,
            splitting=self._config.splitting,
            forms=self._config.structured if ready["forms"] else "never",
            template=loading.trained_on(opened.hf_config),
        )
        self._keeper = asyncio.create_task(self._keep())

    async def ask(self, request: Request) -> Answer:
        """Answers one request; see `JudgeEngine`."""
        return await self.ask_with("", request)

    async def ask_with(self, adapter: str, request: Request) -> Answer:
        """Answers one request by an adapter; see `Replica`."""
        capability = _CAPABILITY[type(request)]
        able = self.info.capabilities
        if capability not in able:
            raise EngineError(
                Reason.INVALID_PARAMETER,
                f"model {self._name} does not answer {capability}, only {', '.join(sorted(able))}; "
                "choose another model",
            )
        if self._encoding is None or self._refusal:
            raise EngineError(*(self._refusal or _SHUT_DOWN))
        was_up = self._link is not None
        encoded = await self._encoding.encode(request)
        if self._refusal:
            raise EngineError(*self._refusal)
        if was_up and self._link is None and self._replicas > 1:
            raise self._not_begun()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        pending = _PendingRequest(next(self._numbers), request, adapter, encoded, future)
        self._waiting.append(pending)
        if not self._sending:
            self._sending = True
            asyncio.get_running_loop().call_soon(self._send)
        try:
            return await pending.future
        except asyncio.CancelledError:
            self._withdraw(pending)
            raise

    async def load_adapter(self, key: str, folder: str) -> None:
        """Loads an adapter; see `Replica`."""
        digest = await asyncio.to_thread(loading.fingerprint, Path(folder))
        await self._load_adapter(key, folder, digest)
        self._adapters[key] = (folder, digest)

    async def unload_adapter(self, key: str) -> None:
        """Forgets an adapter; see `Replica`."""
        self._adapters.pop(key, None)
        with contextlib.suppress(EngineError):
            await self._command({"unload": key})

    async def close(self) -> None:
        """Ends the worker; see `JudgeEngine`."""
        self._refuse(Reason.ENGINE_DIED, f"model {self._name} is being shut down")
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None
        if self._encoding is not None and self._refusal is not None:
            await self._encoding.close(EngineError(*self._refusal))
        await self._unlink()

    # Requests on their way to the worker, and back.

    def _send(self) -> None:
        self._sending = False
        if self._link is None:
            return
        jobs = []
        while self._waiting and len(self._working) < self._config.max_concurrent:
            pending = self._waiting.popleft()
            if pending.future.done():
                continue
            self._working[pending.id] = pending
            jobs.append(_job(pending))
        for first in range(0, len(jobs), _JOBS_A_FRAME):
            self._say({"ask": jobs[first : first + _JOBS_A_FRAME]})

    def _withdraw(self, pending: _PendingRequest) -> None:
        if self._working.pop(pending.id, None) is not None and self._link is not None:
            self._say({"cancel": [pending.id]})
            self._send()

    def _say(self, body: dict[str, Any]) -> None:
        if self._link is not None:
            data = json.dumps(body, separators=(",", ":")).encode("ascii")
            self._link.send(_REQUESTS, 0, data)

    def _take(self, frame: Frame, _age_s: float) -> None:
        said = read_object(frame.payload)
        self._answered = True
        self.tally.batches += said["batches"]
        self.tally.rows += said["rows"]
        for body in said["answers"]:
            if command := self._commands.pop(body["id"], None):
                _settle(command, body)
                continue
            pending = self._working.pop(body["id"], None)
            if pending is None:
                continue  # withdrawn
            if "error" in body:
                pending.fail(EngineError(*body["error"]))
            elif not pending.future.done():
                pending.future.set_result(_answer(pending, body))
        self._send()

    def _refuse(self, reason: Reason, message: str) -> None:
        self._refusal = (reason, message)
        requests = [*self._waiting, *self._working.values()]
        self._waiting.clear()
        self._working.clear()
        for pending in requests:
            pending.fail(EngineError(reason, message))

    async def _command(self, body: dict[str, Any]) -> None:
        """Has the worker load or forget an adapter.

        Raises:
            EngineError: it cannot, or is not there.
        """
        if self._link is None:
            raise EngineError(Reason.ENGINE_DIED, f"{self._what()} is being started anew")
        number = next(self._numbers)
        done = self._commands[number] = asyncio.get_running_loop().create_future()
        self._say({**body, "id": number})
        await done

    async def _load_adapter(self, key: str, folder: str, digest: str) -> None:
        try:
            async with asyncio.timeout(self._config.start_timeout_s):
                await self._command({"load": key, "folder": folder})
        except EngineError as error:
            raise StartupError(f"the adapter {folder} cannot be loaded: {error.message}") from error
        except TimeoutError as error:
            raise StartupError(f"the adapter {folder} was not loaded in time") from error
        if await asyncio.to_thread(loading.fingerprint, Path(folder)) != digest:
            raise StartupError(f"the adapter {folder} changed while it was read")

    # The worker's life.

    async def _launch(self) -> Mapping[str, Any]:
        """Starts a worker; returns what it says of the model.

        Raises:
            StartupError: it cannot load the model.
        """
        if self._opened is None:
            raise RuntimeError("the model was not opened")
        told = json.dumps(self._settings(self._opened))
        command = Command(
            *("its process", "assay.genrm.engines.worker", ("--settings", told)),
            environment=environment_of_a_worker(),
        )
        limits = LinkLimits(self._config.start_timeout_s, _STOP_S, take_s=math.inf)
        self._lost, self._answered = asyncio.Event(), False
        link = ChildLink(command, limits, self._take, self._lost.set)
        try:
            await link.start()
        except LinkError as error:
            raise StartupError(f"{self._what()} cannot be loaded: {error}") from error
        self._link = link
        try:
            await self._check_weights(self._opened)
        except StartupError:
            await self._unlink()
            raise
        self.tally.ready = 1
        return link.ready

    async def _check_weights(self, opened: loading.Opened) -> None:
        """Holds what the worker has read to what `info` says, and gives it its adapters."""
        if opened.digest != await asyncio.to_thread(loading.digest_of, opened.location):
            raise StartupError(
                f"{self._what()}: its folder holds other weights than those that it was opened "
                f"with ({opened.digest}); start again when they are whole, or set reload"
            )
        for key, (folder, digest) in self._adapters.items():
            try:
                await self._load_adapter(key, folder, digest)
            except StartupError as error:
                _log.error("%s: %s; what asks it is a fault", self._what(), error)
                await self._command({"unload": key})

    async def _keep(self) -> None:
        failures = 0
        while True:
            await self._lost.wait()
            answered = self._answered
            await self._unlink()
            lost = list(self._working.values())
            self._working.clear()
            self._leave_to_others()
            _log.warning("%s: the worker died with %d requests at work", self._what(), len(lost))
            for pending in lost:
                pending.fail(
                    EngineError(
                        Reason.ENGINE_DIED,
                        f"the process that runs {self._what()} died while it worked on this; the "
                        "log says more, and another one is being started",
                    )
                )
            failures = 0 if answered else failures + 1
            failures = await self._relaunch(failures)
            self._send()

    async def _relaunch(self, failures: int) -> int:
        """Starts workers until one stands; returns the failures in a row."""
        while True:
            await asyncio.sleep(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])
            try:
                await self._launch()
            except StartupError as error:
                failures += 1
                _log.error("%s", error)
                if failures >= _FAILED_STARTS:
                    self._refuse(
                        Reason.ENGINE_DIED,
                        f"the engine died, and {failures} starts failed since: {error}",
                    )
                continue
            self._refusal = None
            self.tally.restarts += 1
            return failures

    def _leave_to_others(self) -> None:
        """What has not been begun goes to another engine, if there is one."""
        if self._replicas > 1:
            left = list(self._waiting)
            self._waiting.clear()
            for pending in left:
                pending.fail(self._not_begun())

    def _not_begun(self) -> NotBegunError:
        return NotBegunError(Reason.ENGINE_DIED, f"{self._what()} died before it began with this")

    async def _unlink(self) -> None:
        self.tally.ready = 0
        link, self._link = self._link, None
        for command in self._commands.values():
            if not command.done():
                command.set_exception(EngineError(Reason.ENGINE_DIED, f"{self._what()} died"))
        self._commands.clear()
        if link is not None:
            await link.close()

    def _settings(self, opened: loading.Opened) -> dict[str, Any]:
        config = self._config
        return asdict(
            WorkerSettings(
                location=opened.location,
                arguments=loading.hub_arguments(config, opened.location),
                head=opened.head,
                device=self._device,
                precision=config.precision,
                good_label=config.good_label,
                max_batch_tokens=config.max_batch_tokens,
                max_batch_items=config.max_batch_items,
                prefix_cache_tokens=config.prefix_cache_tokens,
                step_scores=loading.gives_scores(opened.hf_config),
                quantization=config.quantization,
                threads=(os.cpu_count() or 1) // self._replicas if self._replicas > 1 else 0,
            )
        )

    def _what(self) -> str:
        return f"model {self._name} ({self._config.path})"


def _settle(command: asyncio.Future[None], body: dict[str, Any]) -> None:
    if command.done():
        return
    if "error" in body:
        command.set_exception(EngineError(*body["error"]))
    else:
        command.set_result(None)


def _job(pending: _PendingRequest) -> dict[str, Any]:
    request, encoded = pending.request, pending.encoded
    body: dict[str, Any] = {"id": pending.id, "kind": _CAPABILITY[type(request)]}
    body["request_id"] = pending.request_id
    body["ids"] = encoded.ids
    if pending.adapter:
        body["adapter"] = pending.adapter
    if isinstance(request, Choose):
        body["options"] = encoded.options
    elif isinstance(request, RateSteps):
        body["positions"] = encoded.positions
    elif isinstance(request, Write):
        body |= {
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
            "stop": request.stop,
            "form": request.form and request.form.parts,
        }
    return body


def _answer(pending: _PendingRequest, body: dict[str, Any]) -> Answer:
    request, cut = pending.request, pending.encoded.cut
    tokens = TokenCounts(len(pending.encoded.ids), body["cached"], body.get("completion", 0))
    if isinstance(request, Choose):
        return Chosen(tuple(body["logprobs"]), tokens, cut)
    if isinstance(request, Write):
        return Written(body["text"], body["finish"], tokens, cut, body.get("mass"))
    if isinstance(request, RateDialogue):
        return Rated(tuple(body["logits"]), tokens, cut)
    return StepsRated(tuple(body["probabilities"]), tokens)
