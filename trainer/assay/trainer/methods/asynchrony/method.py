"""Hooks of background rollouts: who draws, with which weights, what trains when."""

from __future__ import annotations

import copy
import time
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from accelerate.utils import DistributedType

from assay.kit.errors import ConfigError
from assay.trainer.core.answering import (
    engine_for,
    first_token,
    host_of,
    rollout_sampling,
    stops_of,
)
from assay.trainer.core.batch import Batch
from assay.trainer.core.build import Workshop
from assay.trainer.core.hooks import Hooks
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.methods.asynchrony.background import BackgroundCollector, DrawSchedule, Flight
from assay.trainer.methods.asynchrony.periodic import Iteration
from assay.trainer.methods.asynchrony.settings import portion_prompts
from assay.trainer.methods.asynchrony.shadow import Shadow
from assay.trainer.rollouts.sharing import dealt
from assay.trainer.rollouts.types import Collected, KnownGroup, OneRank, Source


class Asynchrony(Hooks):
    """Batches are drawn while the policy learns (AReaL, arXiv 2505.24298; arXiv 2511.18871)."""

    _shadow: Shadow | None = None

    def check_processes(self, processes: int) -> None:
        """See Hooks."""
        if processes > 1 and self._periodic:
            raise ConfigError(
                'method.asynchrony.mode = "periodic" trains in one process: each would wait for '
                'every portion of the others; use "bounded" or "off"'
            )

    def before_training(self, policy: LoadedPolicy) -> None:
        """See Hooks: makes the model that draws."""
        self._shadow = Shadow(policy.model, shares=self._periodic)

    def source(self, shop: Workshop, *, whole: bool) -> Source | None:
        """See Hooks."""
        if not whole or self._shadow is None:
            return None
        return make_background_source(shop, self._shadow)

    def in_parts(self, trainer: PolicyTrainer) -> Parts | None:
        """See Hooks."""
        return Parts(trainer) if self._periodic else None

    @property
    def _periodic(self) -> bool:
        return self.config.method.asynchrony.mode == "periodic"


class Parts:
    """Micro-batches of steps that are still being drawn; a trainer.InParts.

    Raises:
        ConfigError: the model has a loss that is no mean over tokens.
    """

    def __init__(self, trainer: PolicyTrainer) -> None:
        if trainer.aux_loss_enabled:
            raise ConfigError(
                'method.asynchrony.mode = "periodic" does not go with a model whose router has '
                "a loss: that is no mean over tokens; use another mode"
            )
        self._trainer = trainer
        self._iteration: Iteration | None = None
        self._flight: Flight | None = None
        self._judged = 0

    def following(self) -> tuple[Batch, bool]:
        """Waits for the next micro-batch; whether it is the step's last."""
        trainer, step = self._trainer, self._trainer.state.global_step
        source = trainer.source
        assert isinstance(source, BackgroundCollector)  # noqa: S101  # the mode says so
        if self._iteration is None or self._flight is None:
            trainer.collected, trainer.assemble_s, self._judged = Collected([], []), 0.0, 0
            self._flight = source.begin(step)
            self._iteration = Iteration(
                self._flight.parts(),
                self._assembled,
                trainer.config,
                trainer.packing,
                trainer.accelerator.device,
            )
        micro = self._iteration.following()
        if not self._iteration.left:
            whole = source.finished(self._flight, step)
            source.landed()
            whole.groups, whole.judged = trainer.collected.groups, trainer.collected.judged
            trainer.conclude(whole, self._iteration.seen(), judged=self._judged)
        return micro, not self._iteration.left

    def settled(self, loss: torch.Tensor, micro: Batch, *, last: bool) -> torch.Tensor:
        """The loss to report for a micro-batch after backward."""
        if self._iteration is None:
            return loss
        model: Any = self._trainer.model
        loss = self._iteration.settled(loss, model.parameters())
        if last:
            micro["window_tokens"] = self._iteration.tokens
            self._iteration = None
        return loss

    def _assembled(self, known: list[KnownGroup]) -> Batch:
        started, trainer = time.perf_counter(), self._trainer
        groups = dealt(known, OneRank())  # it is a run of one process
        trainer.collected.groups += groups
        trainer.collected.judged = [*trainer.collected.judged, *chain.from_iterable(groups)]
        batch = trainer.assembled(Collected(groups, []))
        self._judged += trainer.judged
        trainer.assemble_s += time.perf_counter() - started
        return batch


def make_background_source(shop: Workshop, shadow: Shadow) -> BackgroundCollector:
    """The source of background rollouts.

    Raises:
        ConfigError: the weights are sharded over processes.
    """
    trainer, config, policy = shop.trainer, shop.config, shop.policy
    asynchrony, periodic = config.method.asynchrony, shadow.shares
    if trainer.accelerator.distributed_type in (DistributedType.FSDP, DistributedType.DEEPSPEED):
        raise ConfigError(
            f'method.asynchrony.mode = "{asynchrony.mode}" needs all weights on each process, '
            "and they are sharded; launch with configs/accelerate/ddp.yaml"
        )
    host = replace(
        host_of(trainer, config, policy),
        model_context=lambda: nullcontext(shadow.model),
        version=lambda: shadow.version,
        tokenizer=copy.deepcopy(policy.tokenizer),  # one is not for two threads
    )
    engine = engine_for(host, config)
    sampling = replace(
        rollout_sampling(config.rollout, first_token(shop.hooks)),
        stops=stops_of(shop.hooks, policy),
    )
    prompts = config.rollout.prompts_per_step
    return BackgroundCollector(
        shop.stream,
        Sampler(engine, sampling),
        lambda: shop.judge.open_training_round(config.rollout.group_size),
        engine=engine,
        talk=shop.talk,
        weights=shadow,
        schedule=DrawSchedule(
            steps=config.run.steps,
            updates=config.updates_per_rollout,
            max_staleness=0 if periodic else asynchrony.max_staleness,
            portion=portion_prompts(config) if periodic else prompts,
            interrupt=asynchrony.interrupt,
        ),
        config=config.rollout,
        ranks=shop.ranks,
    )
