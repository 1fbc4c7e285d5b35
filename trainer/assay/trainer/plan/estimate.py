"""The memory of each process of a run on its device, by the settings and the model's shape.

Two times of a step are counted, each at its peak: while the policy generates, and while it learns.
A device needs the larger. Bytes are of tensors at the longest that the settings allow: every prompt
as long as planned, every response max_new_tokens. MARGIN of the memory is left for libraries,
kernels and an allocator's gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch

from assay.trainer.critic.objective import output_count
from assay.trainer.engines.models import base_dtype, computes_mixed
from assay.trainer.plan.passes import Drawn, Kept, drawn, kept
from assay.trainer.settings.config import Config
from assay.trainer.settings.sections import LoraConfig

MARGIN = 0.1
GIB = 2**30

Sharding = Literal["none", "ddp", "fsdp2", "zero3"]


C = TypeVar("C", Kept, Drawn)
_COUNTED: dict[tuple[object, ...], Any] = {}


def _once(count: Callable[..., C], shape: Any, **given: Any) -> C:
    """Caches what is counted, for the plans that `remedies` tries."""
    key = (count, shape.to_json_string(), *sorted(given.items()))
    if key not in _COUNTED:
        _COUNTED[key] = count(shape, **given)
    found: C = _COUNTED[key]
    return found


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is to run on; one process a device.

    Attributes:
        memory: bytes of a device; 0 where unknown.
        prompt: tokens of a prompt.
    """

    device: Literal["cuda", "cpu"] = "cuda"
    processes: int = 1
    machines: int = 1
    sharding: Sharding = "none"
    memory: int = 0
    prompt: int = 512

    @property
    def shards(self) -> int:
        """Parts of sharded weights."""
        return self.processes if self.sharding in ("fsdp2", "zero3") else 1


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one thing on one device, at the peak of learning and of generating."""

    name: str
    learning: int
    generating: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A run's needs.

    Attributes:
        rows: of each process and device.
        host: bytes of each machine's memory, while models are read or offloaded.
        tokens: most that a step draws, without prompts.
        rows_at_once: responses that one process draws at a time; 0 where an engine decides.
        micro_batch: rows of a micro-batch.
        length: tokens of its longest row.
    """

    setup: Setup
    rows: tuple[MemoryUse, ...]
    host: int
    tokens: int
    rows_at_once: int
    micro_batch: int
    length: int

    @property
    def learning(self) -> int:
        """Bytes of a device while the policy learns."""
        return sum(row.learning for row in self.rows)

    @property
    def generating(self) -> int:
        """Bytes of a device while it generates."""
        return sum(row.generating for row in self.rows)

    @property
    def peak(self) -> int:
        """The larger."""
        return max(self.learning, self.generating)

    @property
    def fits(self) -> bool:
        """Whether a device holds it, with the margin; true where its memory is unknown."""
        return not self.setup.memory or self.peak <= self.setup.memory * (1 - MARGIN)

    def row(self, name: str) -> MemoryUse:
        """One of the rows."""
        return next(row for row in self.rows if row.name == name)


def estimate(config: Config, shape: Any, setup: Setup, critic: Any = None) -> MemoryPlan:
    """Counts what a run needs.

    `shape` is the policy's configuration of transformers, `critic` that of a critic of another
    kind.
    """
    return _Counting(config, shape, setup, critic).plan()


class _Counting:
    def __init__(self, config: Config, shape: Any, setup: Setup, critic: Any) -> None:
        self.config, self.shape, self.setup = config, shape, setup
        self.critic_shape = critic or shape
        if config.model.attention:
            for one in (self.shape, self.critic_shape):
                one._attn_implementation = _counted(config.model.attention)  # noqa: SLF001  # theirs
        self.mixed = computes_mixed(config.model, torch.device(setup.device))
        # FSDP2 casts each layer as it gathers it; otherwise autocast holds casts of all weights
        self.sharded = setup.shards > 1
        self.response = config.rollout.max_new_tokens * _turns(config)
        self.length = setup.prompt + self.response
        optim = config.optim
        rows = config.samples_per_step // (optim.mini_batches * setup.processes)
        rows = min(rows, optim.micro_batch) if optim.micro_batch else rows
        packed = optim.micro_batch_tokens  # a longer response goes alone
        self.micro_batch = max(1, min(rows, packed // self.length)) if packed else rows

    def plan(self) -> MemoryPlan:
        config, setup = self.config, self.setup
        policy = self._kept(self.shape, config.model.lora)
        rows = [*self._policy(policy), *self._reference(policy)]
        rows += self._critic(policy)
        engine, at_once = self._generation(policy)
        return MemoryPlan(
            setup,
            (*rows, *engine),
            self._host(policy),
            config.samples_per_step * self.response,
            at_once,
            self.micro_batch,
            self.length,
        )

    def _kept(self, shape: Any, lora: LoraConfig, outputs: int = 0) -> Kept:
        config = self.config
        dtype = base_dtype(config.model)
        if outputs and lora.rank == 0 and config.model.precision != "bfloat16":
            dtype = torch.float32
        return _once(
            kept,
            shape,
            rows=self.micro_batch,
            prompt=self.setup.prompt,
            response=self.response,
            dtype=torch.bfloat16 if self.sharded and self.mixed else dtype,
            mixed=self.mixed and not self.sharded,
            lora=lora,
            checkpointing=config.model.gradient_checkpointing,
            outputs=outputs,
        )

    def _stored(self, counted: int, *, learns: bool) -> int:
        """Bytes on one device of weights counted in the dtype of computing."""
        small = self.config.model.precision == "bfloat16" or (
            not learns and base_dtype(self.config.model) == torch.bfloat16
        )
        widened = self.sharded and self.mixed and not small
        return math.ceil(counted * (2 if widened else 1) / self.setup.shards)

    def _policy(self, policy: Kept) -> list[MemoryUse]:
        setup = self.setup
        learns = not self.config.model.lora.rank
        weights = self._stored(policy.weights, learns=learns)
        gradients = self._stored(policy.trained, learns=True)
        if setup.sharding == "ddp" and setup.processes > 1:
            gradients *= 2  # DDP's buckets
        gathered = 3 * policy.largest if self.sharded else 0
        moments, kind = self._moments(policy.parameters), self.config.optim.optimizer
        doing = "inputs of layers, and one layer" if self._checkpoints else "of all layers"
        return [
            MemoryUse("weights", weights, weights, _share(setup)),
            MemoryUse("gradients", gradients, 0, _share(setup)),
            MemoryUse("optimizer", moments, moments, kind),
            MemoryUse(
                "activations",
                policy.update + gathered,
                0,
                f"{self.micro_batch} rows of {self.length} tokens, {doing}"
                + (", gathered layers" if gathered else ""),
            ),
        ]

    @property
    def _checkpoints(self) -> bool:
        return self.config.model.gradient_checkpointing

    def _moments(self, parameters: int) -> int:
        """Bytes of the optimizer on one device; paged ones count on the host."""
        kind = self.config.optim.optimizer
        if kind.startswith("paged"):
            return 0
        width = 2 if kind.endswith("8bit") or self.config.model.precision == "bfloat16" else 4
        each = width * (1 if kind.endswith("8bit") else 2)
        return math.ceil(parameters * each / self.setup.shards)

    def _reference(self, policy: Kept) -> list[MemoryUse]:
        model = self.config.model
        if not self.config.method.loss.kl_most or model.lora.rank:
            return []
        size = self._stored(policy.weights, learns=True)
        away = "reference" in model.offload
        note = "in the host's memory, but for its pass" if away else _share(self.setup)
        return [MemoryUse("reference", 0 if away else size, 0 if away else size, note)]

    def _critic(self, policy: Kept) -> list[MemoryUse]:
        method = self.config.method
        if not method.has_critic:
            return []
        outputs = output_count(method.critic)
        if method.critic.sharing == "trunk":
            return [MemoryUse("critic", 0, 0, "a head on the policy")]
        own = self._kept(self.critic_shape, LoraConfig(), outputs)
        weights = self._stored(own.weights, learns=True)
        gradients = self._stored(own.trained, learns=True)
        if self.setup.sharding == "ddp" and self.setup.processes > 1:
            gradients *= 2
        moments = self._moments(own.parameters)
        away = "critic" in self.config.model.offload
        rest = 0 if away else weights + moments
        # its passes follow the policy's, whose activations are gone by then
        beyond = max(0, own.update - policy.update)
        step = max(beyond, moments - policy.update) if away else beyond + moments
        note = "waits in the host's memory" if away else "weights, gradients, optimizer"
        return [MemoryUse("critic", weights + gradients + step, rest, note)]

    def _generation(self, policy: Kept) -> tuple[list[MemoryUse], int]:
        config, setup = self.config, self.setup
        rollout = config.rollout
        dtype = base_dtype(config.model)
        length = setup.prompt + self.response
        if rollout.backend == "vllm":
            return self._vllm(), 0
        at_once = rollout.batch or self._round()
        # FSDP2 computes in bfloat16; elsewhere autocast does
        small = self.sharded and self.mixed
        one = _once(
            drawn,
            self.shape,
            rows=at_once,
            prompt=setup.prompt,
            dtype=torch.bfloat16 if small else dtype,
            mixed=self.mixed and not small,
        )
        cache = one.cache_token * length * at_once
        gathered = 3 * policy.largest if self.sharded else 0
        passing = max(one.prefill, self._sampling(at_once)) + gathered
        if rollout.backend == "paged" and setup.device == "cuda":
            return [
                MemoryUse("KV cache", 0, self._least_cache(one, length), "the engine takes more")
            ], 0
        return [
            MemoryUse("KV cache", 0, cache, f"{at_once} rows of {length} tokens"),
            MemoryUse("sampling", 0, passing, "prompts read, probabilities of the vocabulary"),
        ], at_once

    def _least_cache(self, one: Drawn, length: int) -> int:
        return one.cache_token * length

    def _sampling(self, rows: int) -> int:
        """Logits as computed, in float32, and their sums in float64."""
        vocabulary: int = self.shape.get_text_config().vocab_size
        return rows * vocabulary * (4 + 4 + 8 + 8)

    def _round(self) -> int:
        dynamic = self.config.method.dynamic_sampling
        factor = dynamic.oversample if dynamic.enabled else 1.0
        prompts = math.ceil(self.config.rollout.prompts_per_step * factor)
        return math.ceil(prompts * self.config.rollout.group_size / self.setup.processes)

    def _vllm(self) -> list[MemoryUse]:
        vllm = self.config.rollout.vllm
        if vllm.mode == "server":
            return [MemoryUse("vLLM", 0, 0, "on devices of its own")]
        taken = int(vllm.gpu_memory_utilization * self.setup.memory)
        note = f"gpu_memory_utilization {vllm.gpu_memory_utilization:g}"
        if vllm.sleep:
            return [MemoryUse("vLLM", 0, taken, f"{note}, asleep while the policy learns")]
        return [MemoryUse("vLLM", taken, taken, f"{note}, weights and cache, kept while it learns")]

    def _host(self, policy: Kept) -> int:
        """Bytes on one machine: models as they are read, and offloaded ones."""
        setup, model = self.setup, self.config.model
        local = max(1, setup.processes // setup.machines)
        whole = self._stored(policy.weights, learns=not model.lora.rank) * setup.shards
        models = 1 + int(bool(self.config.method.loss.kl_most and not model.lora.rank))
        critic = self.config.method.has_critic and self.config.method.critic.sharing == "separate"
        read = whole * (models + int(critic))
        if setup.sharding != "fsdp2":
            read *= local
        waits = 0
        if "reference" in model.offload:
            waits += whole // setup.shards * local
        if "critic" in model.offload:
            moments = self._moments(policy.parameters)
            waits += (2 * whole // setup.shards + moments) * local
        return max(read, waits)


def _turns(config: Config) -> int:
    return {"off": 1, "verify": 3, "reconsider": 2}.get(config.method.turns.mode, 1)


def _share(setup: Setup) -> str:
    return f"1 of {setup.shards} shards" if setup.shards > 1 else "whole"


def _counted(attention: str) -> str:
    return "eager" if attention == "eager" else "sdpa"
