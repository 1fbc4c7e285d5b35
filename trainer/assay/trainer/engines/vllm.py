"""Generation by vLLM: its engine loop in this process, or a server of it (engines.vllm_server).

Read from vLLM 0.32.0 (v1/engine/llm_engine.py, v1/worker/gpu_model_runner.py). In this process we
hold vLLM's LLMEngine ourselves: a step is a forward pass, requests come and go between two of them,
and every step returns its tokens. The model is made without weights; the policy's are loaded over
them, and again whenever they change.

What vLLM would do silently, and is prevented here:

1. A step that failed leaves an engine that answers nothing for ever: it is dead from then on.
2. A prompt that does not fit with its limit is cut; ids outside the vocabulary kill the engine.
   Both are refused in `submit`.
3. A tied head keeps its old weight on CPU, and a prefix cache that of old weights: both are
   refreshed, and the first syncs of a run are compared with the policy's own log-probabilities.
4. A seed gives the same noise again when a response goes on: see engines.vllm_requests.
5. vLLM seeds torch, numpy and Python when it starts; the run's own states are restored.
6. When it is shut down it destroys the process group, the trainer's too.
"""

from __future__ import annotations

import gc
import itertools
import math
import os
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.distributed.fsdp import FSDPModule

from assay.kit.errors import ConfigError
from assay.trainer.engines import probing, vllm_worker
from assay.trainer.engines.engine import Engine, EngineHost, Id, OnEnded, OpenRequest
from assay.trainer.engines.seeded import not_numbers
from assay.trainer.engines.stops import add_up_to_stop
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.engines.vllm_requests import PROCESSOR, check, logprobs_mode, parameters
from assay.trainer.engines.weights import weights
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.sections import VllmConfig

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_QUIET_STEPS = 64
_CPU_BLOCK = 32
_CPU_BATCH_TOKENS = 4096

Ended = deque[tuple[OpenRequest, bool]]


def make_vllm(host: EngineHost, config: Config) -> Engine:
    """The configured engine: in this process, or on a server.

    Raises:
        ConfigError: vLLM is not installed here, or the server cannot be used.
    """
    settings, alarm = config.rollout.vllm, config.rollout.drift_alarm
    if settings.mode == "server":
        from assay.trainer.engines.vllm_server import VllmServerEngine  # noqa: PLC0415  # httpx

        return VllmServerEngine(host, settings, alarm=alarm)
    if find_spec("vllm") is None:
        raise ConfigError(
            'rollout.backend = "vllm" needs vLLM in this environment; pip install vllm, or set '
            'rollout.vllm.mode = "server"'
        )
    return VllmEngine(host, settings, batch=config.rollout.batch, alarm=alarm)


class VllmEngine(Engine):
    """An Engine on vLLM's loop in this process.

    Engines of one policy share the loop: a step of one draws for all, and each delivers its own.
    `batch` limits the responses drawn at a time; 0 leaves that to vLLM. `alarm` is for
    probing.check.

    Raises, out of `poll` and `update_weights`:
        ConfigError: vLLM did not start.
        TrainingStoppedError: it died, made no progress, or does not answer by the policy's weights.
    """

    def __init__(
        self, host: EngineHost, settings: VllmConfig, *, batch: int = 0, alarm: float = 0.1
    ) -> None:
        super().__init__(host)
        made = Loop(host, settings, batch=batch, alarm=alarm)
        self._loop: Loop = host.shared.setdefault("vllm", made)
        self._loop.users += 1
        self._names: dict[Id, str] = {}
        self._ended: Ended = deque()
        self._closed = False

    @property
    def preemptions(self) -> int | None:
        """See Engine; of the loop, reported to one of its engines."""
        return self._loop.preemptions

    @preemptions.setter
    def preemptions(self, count: int | None) -> None:
        self._loop.preemptions = count

    @property
    def busy(self) -> bool:
        """See Engine; weights are whole here, so that no process waits for another."""
        return bool(self._open)

    def submit(self, id_: Id, request: Request, sampling: Sampling) -> None:
        """See Engine.

        Raises:
            ConfigError: it does not fit into vLLM's context.
        """
        super().submit(id_, request, sampling)
        try:
            self._names[id_] = self._loop.add(self._open[id_], self._ended)
        except BaseException:
            del self._open[id_]
            raise

    def update_weights(self) -> None:
        """See Engine."""
        self._loop.update()

    def abort(self, ids: Iterable[Id] | None = None) -> dict[Id, Response]:
        """See Engine: with all that was drawn."""
        asked = list(self._open) if ids is None else [id_ for id_ in ids if id_ in self._open]
        with self._loop.lock:
            self._loop.drop([self._names.pop(id_) for id_ in asked])
            for row, _ in self._take(set(asked)):
                # ended, and nobody heard of it: its last token is drawn again
                row.ids.pop()
                if row.logprobs:
                    row.logprobs.pop()
            return super().abort(asked)

    def close(self) -> None:
        """See Engine; the last user of the loop ends vLLM."""
        if self._closed:
            return
        super().close()
        self._closed = True
        self._loop.users -= 1
        if not self._loop.users:
            self._loop.close()
            self.host.shared.pop("vllm", None)

    def _draw(self, on_ended: OnEnded) -> None:
        while self._open and not self._ended and not self._between:
            self._loop.step()
        with self._loop.lock:
            ended = self._take(set(self._open))
        for row, _ in ended:
            del self._names[row.id]
        self._end(ended, on_ended)
        self._loop.rest()

    def _take(self, ids: set[Id]) -> list[tuple[OpenRequest, bool]]:
        taken = [one for one in self._ended if one[0].id in ids]
        rest = [one for one in self._ended if one[0].id not in ids]
        self._ended.clear()
        self._ended.extend(rest)
        return taken


@dataclass(slots=True)
class _Drawing:
    """A row in vLLM.

    Attributes:
        ends: tokens that end it.
        ended: called then, with whether one of these did.
    """

    row: OpenRequest
    ends: frozenset[int]
    ended: Ended = field(default_factory=deque)


class Loop:
    """vLLM in this process; it starts with the first weights.

    Attributes:
        lock: held for every step, and for reading what steps change.
        users: engines that have it.
        starts: how it was started, for tests and messages.
        preemptions: see Engine; those for want of room, without those of new weights. None until
            it has started.
    """

    def __init__(
        self, host: EngineHost, settings: VllmConfig, *, batch: int = 0, alarm: float = 0.1
    ) -> None:
        self.lock = threading.RLock()
        self.users = 0
        self.starts: dict[str, Any] = {}
        self.preemptions: int | None = None
        self._host = host
        self._settings = settings
        self._batch = batch
        self._alarm = alarm
        self._own_draws = settings.own_draws
        self._engine: Any = None
        self._dtype: torch.dtype | None = None
        self._version: int | None = None
        self._probed = 0
        self._asleep = 0
        self._drawing: dict[str, _Drawing] = {}
        self._names = itertools.count()
        self._dead = ""
        self._quiet = 0
        self._patience = _QUIET_STEPS

    def add(self, row: OpenRequest, ended: Ended) -> str:
        """Adds a row; returns its name here.

        Raises:
            ConfigError, ValueError: see vllm_requests.check.
            TrainingStoppedError: vLLM is dead.
        """
        with self.lock:
            self._ready()
            model = self._engine.vllm_config.model_config
            check(
                row,
                vocabulary=model.get_vocab_size(),
                context=model.max_model_len,
                own_draws=self._own_draws,
            )
            return self._add(_Drawing(row, self._host.end_ids, ended))

    def drop(self, names: list[str]) -> None:
        """Removes rows."""
        with self.lock:
            running = [name for name in names if self._drawing.pop(name, None) is not None]
            if running and not self._dead:
                self._engine.abort_request(running)

    def step(self) -> None:
        """One forward pass for all rows.

        Raises:
            TrainingStoppedError: vLLM is dead, or the policy's logits are not numbers.
        """
        with self.lock:
            self._ready()
            try:
                outputs = self._engine.step()
            except BaseException as error:
                died = self._died(f"{type(error).__name__}: {error}")
                if not isinstance(error, Exception):  # whoever interrupts a pass breaks it too
                    raise
                raise died from error
            heard = [self._hear(output) for output in outputs]
            self._quiet = 0 if any(heard) or not self._drawing else self._quiet + 1
            if self._quiet > self._patience:
                raise self._died(f"no token in {self._quiet} steps")

    def update(self) -> None:
        """Takes on the policy's present weights; open rows go on under them.

        Raises:
            ConfigError: vLLM did not start.
            TrainingStoppedError: vLLM is dead, or the weights did not arrive.
        """
        with self.lock:
            self._check_alive()
            version, asleep = self._host.version(), self._sleepers()
            if version == self._version and not asleep:
                return
            with self._host.model_context() as model, torch.no_grad():
                if self._engine is None:
                    self._start(model)
                stale = version != self._version or asleep > 1
                self._wake(lambda: self._load(model) if stale else None)
                if stale and self._probed < probing.PROBES:
                    self._probe(model)
            self._version = version

    def rest(self) -> None:
        """Frees its memory while it has nothing to draw, if it may sleep."""
        with self.lock:
            if self._may_sleep and not (self._drawing or self._asleep or self._dead):
                self._asleep = self._settings.sleep
                self._engine.sleep(self._asleep)

    def close(self) -> None:
        """Ends vLLM. May be called twice."""
        with self.lock:
            engine, self._engine = self._engine, None
            self._dead = self._dead or "vLLM was closed"
            self._drawing.clear()
            if engine is not None:
                shut_down(engine)

    def _ready(self) -> None:
        self._check_alive()
        if self._engine is None or self._asleep:
            self.update()

    def _check_alive(self) -> None:
        if self._dead:
            raise TrainingStoppedError(self._dead)

    def _died(self, why: str) -> TrainingStoppedError:
        said = " ".join(why.split())
        self._dead = (
            f"vLLM ended early: {said}; go on from the last checkpoint, with a lower rollout.batch "
            "or rollout.vllm.gpu_memory_utilization where memory ran out"
        )
        return TrainingStoppedError(self._dead)

    def _add(self, drawing: _Drawing) -> str:
        from vllm import SamplingParams  # noqa: PLC0415  # takes seconds
        from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415

        host = replace(self._host, end_ids=drawing.ends)
        asked = parameters(drawing.row, host, own_draws=self._own_draws)
        params = SamplingParams(**asked, output_kind=RequestOutputKind.DELTA, skip_clone=True)
        name = str(next(self._names))
        self._engine.add_request(name, {"prompt_token_ids": list(drawing.row.input_ids)}, params)
        self._drawing[name] = drawing
        return name

    def _hear(self, output: Any) -> bool:
        """Stores what a step drew of a request; returns whether that is anything."""
        drawing = self._drawing.get(output.request_id)
        if drawing is None:  # aborted
            return False
        [drawn] = output.outputs
        row, ids, stopped = drawing.row, list(drawn.token_ids), False
        if ids:
            told = None
            if drawn.logprobs is not None:
                told = [at[id_].logprob for id_, at in zip(ids, drawn.logprobs, strict=True)]
                if not all(map(math.isfinite, told)):
                    self._dead = str(not_numbers())
                    raise not_numbers()
            stopped = add_up_to_stop(self._host, row, ids, told)
            if stopped and not output.finished:
                self._engine.abort_request([output.request_id])
        if output.finished or stopped:
            del self._drawing[output.request_id]
            over = stopped or (bool(row.ids) and row.ids[-1] in drawing.ends)
            if not over and row.room > 0:
                raise self._died(f"a response ended in the middle ({drawn.finish_reason})")
            drawing.ended.append((row, over))
        return bool(ids)

    def _load(self, model: Any) -> None:
        given, preempted = weights(model, self._dtype), self.preemptions
        try:
            self._engine.collective_rpc(lambda worker: vllm_worker.load(worker, given))
            kept = self._engine.reset_prefix_cache(reset_running_requests=bool(self._drawing))
        except Exception as error:
            raise self._died(
                f"the policy's weights could not be loaded: {type(error).__name__}: {error}"
            ) from error
        self.preemptions = preempted
        if not kept:
            raise self._died("it kept what it had computed with old weights")

    def _probe(self, model: Any) -> None:
        vocabulary = self._engine.vllm_config.model_config.get_vocab_size()
        rows = probing.probes(self._host, vocabulary, self._probed)
        ended: Ended = deque()
        for row in rows:
            self._add(_Drawing(row, frozenset(), ended))
        while len(ended) < len(rows):
            self.step()
        try:
            probing.check(rows, self._host, model, alarm=self._alarm, engine="vLLM")
        except TrainingStoppedError as error:
            self._dead = str(error)
            raise
        self._probed += 1

    def _sleepers(self) -> int:
        """The deepest sleep of this or, where weights are gathered together, any process."""
        if not self._may_sleep or not self._host.in_step():
            return self._asleep
        everyone = [0] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(everyone, self._asleep)
        return max(everyone)

    def _wake(self, load: Callable[[], None]) -> None:
        level, self._asleep = self._asleep, 0
        if level:
            self._engine.wake_up(tags=["weights"])
        load()
        if level:
            self._engine.wake_up(tags=["kv_cache"])

    def _count_preemptions(self, scheduler: Any) -> None:
        """Replaces vLLM's own statistics, which need a server's logger and process-wide metrics."""
        preempt = scheduler._preempt_request  # noqa: SLF001

        def counted(*args: Any, **kwargs: Any) -> None:
            preempt(*args, **kwargs)
            self.preemptions = (self.preemptions or 0) + 1

        self.preemptions = 0
        scheduler._preempt_request = counted  # noqa: SLF001

    @property
    def _may_sleep(self) -> bool:
        return bool(self.starts.get("enable_sleep_mode"))

    def _start(self, model: Any) -> None:
        cpu = not torch.cuda.is_available()
        set_environment(cpu=cpu, own_draws=self._own_draws)
        import vllm  # noqa: PLC0415  # takes seconds, and reads the environment

        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._dtype = self._host.dtype or base.dtype
        self.starts = starts(
            base,
            self._settings,
            dtype=self._dtype,
            seed=self._host.seed,
            batch=self._batch,
            cpu=cpu,
        )
        with TemporaryDirectory(prefix="assay-vllm-") as folder, same_random_states():
            describe(base, folder)
            try:
                args = vllm.EngineArgs(model=folder, **self.starts)
                self._engine = vllm.LLMEngine.from_engine_args(args)
            except Exception as error:
                said = " ".join(str(error).split())
                raise ConfigError(
                    f"vLLM did not start: {type(error).__name__}: {said}; see rollout.vllm for its "
                    "memory and its context"
                ) from error
        self._engine.engine_core._finalizer.detach()  # noqa: SLF001  # see shut_down
        self._count_preemptions(self._engine.engine_core.engine_core.scheduler)
        scheduler = self._engine.vllm_config.scheduler_config
        context = self._engine.vllm_config.model_config.max_model_len
        # a prompt that is read in parts draws nothing until it is read
        self._patience = _QUIET_STEPS + context // scheduler.max_num_batched_tokens


def set_environment(*, cpu: bool, own_draws: bool) -> None:
    """Sets what vLLM reads when it is imported; the operator's own values win."""
    values = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
    }
    if cpu:
        values |= {
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "TORCHDYNAMO_DISABLE": "1",
        }
    elif own_draws:  # its other runner has another interface for logits processors
        values["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    for key, value in values.items():
        os.environ.setdefault(key, value)


def starts(
    base: Any,
    settings: VllmConfig,
    *,
    dtype: torch.dtype,
    seed: int,
    batch: int,
    cpu: bool,
) -> dict[str, Any]:
    """Arguments of vLLM's EngineArgs, besides the model's folder."""
    context = settings.max_model_length or base.config.get_text_config().max_position_embeddings
    found: dict[str, Any] = {
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "generation_config": "vllm",
        "dtype": str(dtype).removeprefix("torch."),
        "max_model_len": context,
        "logprobs_mode": logprobs_mode(own_draws=settings.own_draws),
        "enable_prefix_caching": True,
        "disable_log_stats": True,
        "async_scheduling": False,
        "seed": seed % 2**32,
    }
    if settings.own_draws:
        found["logits_processors"] = [PROCESSOR]
    if batch:
        found["max_num_seqs"] = batch
    if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
        found["distributed_executor_backend"] = "external_launcher"
    if not cpu:
        found["gpu_memory_utilization"] = settings.gpu_memory_utilization
        found["enable_sleep_mode"] = bool(settings.sleep)
        return found
    found |= {"enforce_eager": True, "block_size": _CPU_BLOCK}
    if not settings.own_draws:  # on CPU a seeded prompt that is read in two parts is its death
        found["enable_chunked_prefill"] = False
        found["max_num_batched_tokens"] = max(context, _CPU_BATCH_TOKENS)
    return found


def describe(base: Any, folder: str) -> None:
    """Writes the config.json by which vLLM makes the model."""
    config = deepcopy(base.config)
    kinds = (kind for kind in type(base).__mro__ if not issubclass(kind, FSDPModule))
    config.architectures = [next(kinds).__name__]
    config.save_pretrained(folder)


def shut_down(engine: Any) -> None:
    """Ends an LLMEngine of this process, but keeps the process group.

    vLLM's own `shutdown` destroys that, which is the trainer's, and other engines'.
    """
    core = engine.engine_core.engine_core
    core.structured_output_manager.clear_backend()
    core.model_executor.shutdown()
    core.scheduler.shutdown()
    gc.unfreeze()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def same_random_states() -> Iterator[None]:
    """Restores the random states of torch, numpy and Python."""
    python, numbers = random.getstate(), np.random.get_state()  # vLLM seeds it
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numbers)
