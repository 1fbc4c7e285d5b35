"""The embedded engine: transformers, in a worker process that is started anew when it dies.

This side tokenises, queues, and returns answers; the worker has the model, continuous batching and
shared beginnings. Requests of one turn of the event loop travel in one message, so they are read
together.

When the worker dies, its requests get ENGINE_DIED and waiting ones wait for the next worker. One
that dies before its first answer is a failed start: pauses grow, and after three in a row requests
are refused at once until one succeeds.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import math
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
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
_log = logging.getLogger(__name__)

_CAPABILITY: dict[type[object], Capability] = {
    Choose: "choose",
    Write: "write",
    RateDialogue: "rate",
    RateSteps: "rate-steps",
}


def _nothing() -> Encoded:
    return Encoded(())


@dataclass(slots=True, eq=False)
class _PendingRequest:
    id: int
    request: Request
    future: asyncio.Future[Answer]
    encoded: Encoded = field(default_factory=_nothing)
    error: EngineError | None = None
    request_id: str = field(default_factory=request_id_var.get)

    def fail(self, error: EngineError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class TransformersEngine:
    """Runs one model with transformers. See `JudgeEngine`."""

    def __init__(self, name: str, config: EngineConfig) -> None:
        """Loads nothing yet; `name` is how the service calls the model."""
        self.tally = EngineTally()
        self._name = name
        self._config = config
        self._opened: loading.Opened | None = None
        self._info: ModelInfo | None = None
        self._link: ChildLink | None = None
        self._lost = asyncio.Event()  # of the link
        self._answered = False
        self._keeper: asyncio.Task[None] | None = None
        self._encoding: asyncio.Task[None] | None = None
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix=f"encode-{name}")
        self._numbers = itertools.count(1)
        self._fresh: deque[_PendingRequest] = deque()  # not tokenised yet
        self._inside: list[_PendingRequest] = []  # being tokenised
        self._waiting: deque[_PendingRequest] = deque()
        self._working: dict[int, _PendingRequest] = {}
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
        self._opened = await asyncio.to_thread(loading.open_model, self._name, self._config)
        ready = await self._launch()
        opened = self._opened
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
        )
        self._keeper = asyncio.create_task(self._keep())

    async def ask(self, request: Request) -> Answer:
        """Answers one request; see `JudgeEngine`."""
        capability = _CAPABILITY[type(request)]
        able = self.info.capabilities
        if capability not in able:
            raise EngineError(
                Reason.INVALID_PARAMETER,
                f"model {self._name} does not answer {capability}, only {', '.join(sorted(able))}; "
                "choose another model",
            )
        if self._refusal:
            raise EngineError(*self._refusal)
        pending = _PendingRequest(
            next(self._numbers), request, asyncio.get_running_loop().create_future()
        )
        self._fresh.append(pending)
        if self._encoding is None:
            self._encoding = asyncio.create_task(self._encode())
        try:
            return await pending.future
        except asyncio.CancelledError:
            self._withdraw(pending)
            raise

    async def close(self) -> None:
        """Ends the worker; see `JudgeEngine`."""
        self._refuse(Reason.ENGINE_DIED, f"model {self._name} is being shut down")
        for task in (self._keeper, self._encoding):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._keeper = self._encoding = None
        await self._unlink()
        self._encoder.shutdown(wait=False, cancel_futures=True)

    # Requests on their way to the worker, and back.

    async def _encode(self) -> None:
        loop = asyncio.get_running_loop()
        while self._fresh:
            requests = [pending for pending in self._fresh if not pending.future.done()]
            self._fresh.clear()
            self._inside = requests
            await loop.run_in_executor(self._encoder, self._encode_all, requests)
            for pending in requests:
                if pending.error is not None:
                    pending.fail(pending.error)
                elif not pending.future.done():
                    self._waiting.append(pending)
            self._inside = []
            self._send()
        self._encoding = None

    def _encode_all(self, requests: list[_PendingRequest]) -> None:
        if self._opened is None:
            return
        encoder, context = self._opened.encoder, self._opened.context_tokens
        for pending in requests:
            try:
                pending.encoded = encoder.encode_request(pending.request, context)
            except EngineError as error:
                pending.error = error
            except Exception as error:  # noqa: BLE001  # a model's own template and tokenizer
                _log.exception("%s: a prompt cannot be made into tokens", self._what())
                text = (str(error) or type(error).__name__).splitlines()[0][:300]
                pending.error = EngineError(
                    Reason.ENGINE_FAILED,
                    f"the chat template or tokenizer of {self._what()} refuses the prompt: {text}",
                )

    def _send(self) -> None:
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
        requests = [*self._fresh, *self._inside, *self._waiting, *self._working.values()]
        self._fresh.clear()
        self._waiting.clear()
        self._working.clear()
        for pending in requests:
            pending.fail(EngineError(reason, message))

    # The worker's life.

    async def _launch(self) -> Mapping[str, Any]:
        """Starts a worker; returns what it says of the model.

        Raises:
            StartupError: it cannot load the model.
        """
        if self._opened is None:
            raise RuntimeError("the model was not opened")
        told = json.dumps(_settings(self._config, self._opened))
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
        return link.ready

    async def _keep(self) -> None:
        failures = 0
        while True:
            await self._lost.wait()
            answered = self._answered
            await self._unlink()
            lost = list(self._working.values())
            self._working.clear()
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

    async def _unlink(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def _what(self) -> str:
        return f"model {self._name} ({self._config.path})"


def _settings(config: EngineConfig, opened: loading.Opened) -> dict[str, Any]:
    return asdict(
        WorkerSettings(
            location=opened.location,
            arguments=loading.hub_arguments(config, opened.location),
            head=opened.head,
            device=config.device,
            precision=config.precision,
            good_label=config.good_label,
            max_batch_tokens=config.max_batch_tokens,
            max_batch_items=config.max_batch_items,
            prefix_cache_tokens=config.prefix_cache_tokens,
            step_scores=loading.gives_scores(opened.hf_config),
        )
    )


def _job(pending: _PendingRequest) -> dict[str, Any]:
    request, encoded = pending.request, pending.encoded
    body: dict[str, Any] = {"id": pending.id, "kind": _CAPABILITY[type(request)]}
    body["request_id"] = pending.request_id
    body["ids"] = encoded.ids
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
