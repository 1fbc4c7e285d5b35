"""Generation by a vLLM server on devices of its own, by token ids.

Read from vLLM 0.32.0 (entrypoints/scale_out/token_in_token_out, entrypoints/rl/online). Each
request is a stream of its own on `/inference/v1/generate`; tokens arrive as they are drawn, so
that an aborted request, whose stream is closed, leaves what it had. Weights go through a shared
folder, or over NCCL; while they change, the server holds its requests and then reads them anew.

The server must be started with the routes and modes that this needs (docs/train/scaling.md), which
is checked. The first weights of a run are compared by the policy's own log-probabilities. Tokens
under weights of another run end the run.
"""

from __future__ import annotations

import itertools
import math
import queue
import shutil
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from assay.kit.errors import ConfigError
from assay.trainer.engines import probing
from assay.trainer.engines.engine import Engine, EngineHost, Id, OnEnded, OpenRequest
from assay.trainer.engines.seeded import not_numbers
from assay.trainer.engines.stops import add_up_to_stop
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.engines.vllm_requests import PROCESSOR, check, logprobs_mode, parameters
from assay.trainer.engines.vllm_wires import Event, Events, TokenStream, Wires
from assay.trainer.engines.weights import described, weights
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.sections import VllmConfig

EXTENSION = "assay.trainer.engines.vllm_worker.PolicyWeights"
_LOOK_S = 5.0
_FILE_BYTES = 4 * 1024**3
_FLOOR = -9000.0  # JSON has no NaN: vLLM says -9999


class VllmServerEngine(Engine):
    """An Engine on a vLLM server; engines of one policy share it. `alarm` is for probing.check.

    Raises:
        ConfigError: out of `update_weights`: the server was not started as it must be.
        TrainingStoppedError: out of `poll` and `update_weights`: it is gone, refused, or answers by
            other weights.
    """

    def __init__(self, host: EngineHost, settings: VllmConfig, *, alarm: float = 0.1) -> None:
        super().__init__(host)
        self._server: Server = host.shared.setdefault(
            "vllm-server", Server(host, settings, alarm=alarm)
        )
        self._server.users += 1
        self._settings = settings
        self._streams: dict[Id, TokenStream] = {}
        self._events: Events = queue.SimpleQueue()
        self._closed = False

    @property
    def busy(self) -> bool:
        """See Engine; weights are whole there, so that no process waits for another."""
        return bool(self._open)

    def submit(self, id_: Id, request: Request, sampling: Sampling) -> None:
        """See Engine.

        Raises:
            ConfigError: it does not fit into the server's context.
        """
        super().submit(id_, request, sampling)
        try:
            self._streams[id_] = self._server.ask(self._open[id_], self.host.end_ids, self._events)
        except BaseException:
            del self._open[id_]
            raise

    def between(self, act: Callable[[], None]) -> None:
        """See Engine."""
        super().between(act)
        self._events.put(None)

    def update_weights(self) -> None:
        """See Engine."""
        self._server.update()

    def abort(self, ids: Iterable[Id] | None = None) -> dict[Id, Response]:
        """See Engine: with all that arrived."""
        asked = list(self._open) if ids is None else [id_ for id_ in ids if id_ in self._open]
        for id_ in asked:
            self._streams.pop(id_).close()
        return super().abort(asked)

    def close(self) -> None:
        """See Engine; the last user closes the connections. The server stays."""
        if self._closed:
            return
        super().close()
        self._closed = True
        self._server.users -= 1
        if not self._server.users:
            self._server.close()
            self.host.shared.pop("vllm-server", None)

    def _draw(self, on_ended: OnEnded) -> None:
        ended: list[tuple[OpenRequest, bool]] = []
        silent_s = 0.0
        while self._open and not ended and not self._between:
            try:
                event = self._events.get(timeout=_LOOK_S)
            except queue.Empty:
                silent_s += _LOOK_S
                self._server.check_alive()
                if silent_s >= self._settings.timeout_s:
                    raise TrainingStoppedError(
                        f"{self._server.name} was silent for {silent_s:g} s; see its log, or "
                        "raise rollout.vllm.timeout_s"
                    ) from None
                continue
            while event is not None:
                silent_s = 0.0
                self._hear(event, ended)
                try:
                    event = self._events.get_nowait()
                except queue.Empty:
                    break
        for row, _ in ended:
            del self._streams[row.id]
        self._end(ended, on_ended)

    def _hear(self, event: Event, ended: list[tuple[OpenRequest, bool]]) -> None:
        row = self._open.get(event.stream.row.id)
        if row is not event.stream.row:  # aborted
            return
        if any(one is row for one, _ in ended):  # a stop text ended it
            return
        over = self._server.hear(event)
        if over is not None:
            ended.append((row, over))


class Server:
    """A vLLM server, and the weights that it has of us.

    Attributes:
        name: for messages.
        users: engines that have it.
    """

    def __init__(self, host: EngineHost, settings: VllmConfig, *, alarm: float = 0.1) -> None:
        self.name = f"the vLLM server at {settings.server_url}"
        self.users = 0
        self._host = host
        self._settings = settings
        self._alarm = alarm
        self._wires: Wires | None = None
        self._context = self._vocabulary = 0
        self._dtype: torch.dtype | None = None
        self._version: int | None = None
        self._run = uuid.uuid4().hex[:12]
        self._sent: set[str] = set()
        self._probed = 0
        self._broken = ""
        self._transfer: Any = None
        self._lock = threading.RLock()

    def ask(self, row: OpenRequest, ends: frozenset[int], events: Events) -> TokenStream:
        """Has a row drawn; its tokens go to `events`.

        Raises:
            ConfigError, ValueError: see vllm_requests.check.
        """
        if self._version is None:
            self.update()
        check(
            row,
            vocabulary=self._vocabulary,
            context=self._context,
            own_draws=self._settings.own_draws,
        )
        return self._ask(TokenStream(row, ends), events)

    def hear(self, event: Event) -> bool | None:
        """Stores what arrived; whether its row ended by its last token, None where it goes on.

        Raises:
            TrainingStoppedError: the stream broke, or its tokens are of unknown weights.
        """
        row, stopped = event.stream.row, False
        if event.piece is None:
            raise self._gone(event.broken)
        ids = list(event.piece.get("token_ids") or ())
        if ids:
            content = (event.piece.get("logprobs") or {}).get("content")
            if content is None and (self._settings.own_draws or not row.sampling.filters):
                raise self._gone("it sent tokens without log-probabilities")
            stopped = add_up_to_stop(self._host, row, ids, content and self._logprobs(content, ids))
        for span in event.piece.get("weight_versions") or ():
            if span["version"] not in self._sent:
                raise self._gone(
                    f"it answered by weights {span['version']!r}, which this run did not send: is "
                    "another run using it?"
                )
        if stopped:
            event.stream.close()
            return True
        reason = event.piece.get("finish_reason")
        if reason is None:
            return None
        over = bool(row.ids) and row.ids[-1] in event.stream.ends
        if not over and row.room > 0:
            raise self._gone(f"it ended a response in the middle ({reason})")
        return over

    def check_alive(self) -> None:
        """Raises TrainingStoppedError without an answer."""
        self._wire.get("/health")

    def update(self) -> None:
        """Sends the policy's weights where they changed, and waits until the server has them.

        Where several processes train, the first sends; those of sharded weights gather with it.

        Raises:
            ConfigError: the server was not started as it must be.
            TrainingStoppedError: it is gone, or answers by other weights.
        """
        with self._lock:
            if self._broken:
                raise TrainingStoppedError(self._broken)
            version = self._host.version()
            if version == self._version:
                return
            with self._host.model_context() as model, torch.no_grad():
                if self._dtype is None:
                    self._meet(model)
                label = f"{self._run}-{version}"
                self._send(model, label)
                self._sent.add(label)
                if self._probed < probing.PROBES:
                    self._probe(model)
            self._version = version

    def close(self) -> None:
        """Closes the connections. May be called twice."""
        if self._transfer is not None:
            self._transfer.shutdown()
            self._transfer = None
        if self._wires is not None:
            self._wires.close()
            self._wires = None

    @property
    def _wire(self) -> Wires:
        if self._wires is None:
            self._wires = Wires(self._settings.server_url, self._settings.timeout_s)
        return self._wires

    def _ask(self, stream: TokenStream, events: Events) -> TokenStream:
        host = replace(self._host, end_ids=stream.ends)
        body = {
            "request_id": uuid.uuid4().hex,
            "token_ids": list(stream.row.input_ids),
            "sampling_params": parameters(stream.row, host, own_draws=self._settings.own_draws),
            "stream": True,
        }
        self._wire.stream(stream, body, events)
        return stream

    def _logprobs(self, content: list[Mapping[str, Any]], ids: list[int]) -> list[float]:
        if [one["token_id"] for one in content] != ids:
            raise self._gone("its log-probabilities are not those of its tokens")
        found = [float(one["logprob"]) for one in content]
        if not all(math.isfinite(value) and value > _FLOOR for value in found):
            self._broken = str(not_numbers())
            raise not_numbers()
        return found

    def _gone(self, why: str) -> TrainingStoppedError:
        return TrainingStoppedError(f"{self.name} failed: {why}; go on from the last checkpoint")

    def _meet(self, model: Any) -> None:
        info = self._wire.get("/server_info?config_format=json").get("vllm_config")
        if not isinstance(info, dict):
            raise ConfigError(f"{self.name} does not report its settings; is it vLLM 0.32?")
        served, parallel = info["model_config"], info["parallel_config"]
        own = self._settings.own_draws
        wanted = logprobs_mode(own_draws=own)
        if served["logprobs_mode"] != wanted:
            raise ConfigError(
                f"{self.name} returns {served['logprobs_mode']}, not those of what is sampled; "
                f"start it with --logprobs-mode {wanted}"
            )
        if own and PROCESSOR not in (served.get("logits_processors") or ()):
            raise ConfigError(
                f"{self.name} cannot draw by the run's random numbers; start it with "
                f'--logits-processors {PROCESSOR}, or set rollout.vllm.draws = "engine"'
            )
        if self._settings.transfer == "folder" and parallel["worker_extension_cls"] != EXTENSION:
            raise ConfigError(
                f"{self.name} cannot load weights from a folder; start it with "
                f"--worker-extension-cls {EXTENSION}"
            )
        if self._settings.transfer == "nccl" and not info.get("weight_transfer_config"):
            raise ConfigError(
                f"{self.name} takes no weights over NCCL; start it with "
                """--weight-transfer-config '{"backend": "nccl"}'"""
            )
        names = [self._run]
        if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
            torch.distributed.broadcast_object_list(names, src=0)
        [self._run] = names
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._context = int(served["max_model_len"])
        self._vocabulary = base.config.get_text_config().vocab_size
        self._dtype = self._host.dtype or base.dtype

    def _send(self, model: Any, label: str) -> None:
        """The first process sends; all learn the outcome."""
        outcome = [""]
        given = weights(model, self._dtype)
        if _rank() == 0:
            try:
                self._wire.post("/pause?mode=keep")
                self._push(model, given, label)
                if not self._wire.post("/reset_prefix_cache?reset_running_requests=true")[
                    "success"
                ]:
                    raise self._gone("it kept what it had computed with old weights")
                self._wire.post("/update_weight_version", {"new_version": label})
                self._wire.post("/resume")
            except (TrainingStoppedError, OSError) as error:
                outcome = [str(error) or type(error).__name__]
        elif self._settings.transfer == "nccl":
            self._push(model, given, label)
        for _ in given:  # others gather with us
            pass
        if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
            torch.distributed.broadcast_object_list(outcome, src=0)
        if not outcome[0]:
            has = self._wire.get("/weight_info")["weight_version"]
            if has != label:
                outcome = [str(self._gone(f"it has weights {has!r}, and {label!r} were sent"))]
        if outcome[0]:
            self._broken = outcome[0]
            raise TrainingStoppedError(self._broken)

    def _push(self, model: Any, given: Iterable[tuple[str, torch.Tensor]], label: str) -> None:
        if self._settings.transfer == "nccl":
            if self._transfer is None:
                self._transfer = nccl_transfer(self._settings, self._wire, model, self._dtype)
            self._transfer.source.model = model
            self._transfer.send_weights()
            return
        place = Path(self._settings.folder) / f"weights-{label}"
        try:
            write(given, place)
            asked = {"method": "load_policy_weights", "kwargs": {"path": str(place.absolute())}}
            self._wire.post("/collective_rpc", asked)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _probe(self, model: Any) -> None:
        rows = probing.probes(self._host, self._vocabulary, self._probed)
        events: Events = queue.SimpleQueue()
        streams = [self._ask(TokenStream(row, frozenset()), events) for row in rows]
        left = len(rows)
        try:
            while left:
                try:
                    event = events.get(timeout=self._settings.timeout_s)
                except queue.Empty:
                    raise self._gone("it does not answer") from None
                if event is not None and self.hear(event) is not None:
                    left -= 1
            probing.check(rows, self._host, model, alarm=self._alarm, engine=self.name)
        except TrainingStoppedError as error:
            self._broken = str(error)
            raise
        finally:
            for stream in streams:
                stream.close()
        self._probed += 1


def write(tensors: Iterable[tuple[str, torch.Tensor]], place: Path) -> None:
    """Writes weights into .safetensors files of some gigabytes, in a new folder."""
    place.mkdir(parents=True)
    part: dict[str, torch.Tensor] = {}
    size = 0
    files = itertools.count()
    for name, tensor in tensors:
        if part and size + tensor.nbytes > _FILE_BYTES:
            save_file(part, place / f"{next(files):05d}.safetensors")
            part, size = {}, 0
        part[name] = tensor.contiguous().cpu()
        size += tensor.nbytes
    if part:
        save_file(part, place / f"{next(files):05d}.safetensors")


def nccl_transfer(settings: VllmConfig, wire: Wires, model: Any, dtype: Any) -> Any:
    """This side of vLLM's own transfer over NCCL. Not run by us: it needs CUDA on both sides.

    Raises:
        ConfigError: vLLM is not installed here.
    """
    try:
        from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource  # noqa: PLC0415
        from vllm.distributed.weight_transfer.nccl_engine import (  # noqa: PLC0415
            NCCLTrainerInitInfo,
            NCCLTrainerWeightTransferEngine,
        )
    except ImportError as error:
        raise ConfigError(
            'rollout.vllm.transfer = "nccl" needs vLLM in this environment too; pip install vllm, '
            'or set rollout.vllm.transfer = "folder"'
        ) from error

    class _Source(WeightSource):
        def __init__(self) -> None:
            self.model = model

        def metadata(self) -> list[Any]:
            return [ParamMeta(*one) for one in described(self.model, dtype)]

        def __iter__(self) -> Any:
            return weights(self.model, dtype)

    class Client:
        """vLLM's calls around a transfer, on our connections."""

        def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
            wire.post("/init_weight_transfer_engine", {"init_info": init_info})

        def shutdown_weight_transfer_engine(self) -> None:
            wire.post("/shutdown_weight_transfer_engine")

        def start_weight_update(self) -> None:
            wire.post("/start_weight_update")

        def update_weights(self, update_info: Any) -> None:
            wire.post("/update_weights", {"update_info": update_info})

        def finish_weight_update(self, weight_version: str | None = None) -> None:
            wire.post("/finish_weight_update", {"weight_version": weight_version})

    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    info = NCCLTrainerInitInfo(
        master_address=settings.transfer_host or socket.gethostname(),
        master_port=port,
        world_size=1 + int(wire.get("/get_world_size")["world_size"]),
        rank=_rank(),
    )
    return NCCLTrainerWeightTransferEngine.trainer_init(info, client=Client(), source=_Source())


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
