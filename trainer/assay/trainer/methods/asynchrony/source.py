"""The parts of rollouts that a thread draws beside the training, put together."""

from __future__ import annotations

import copy
from contextlib import nullcontext

from accelerate.utils import DistributedType

from assay.rpc.errors import ConfigError
from assay.trainer.core.evaluation import end_token_ids
from assay.trainer.core.rewards import Judge
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.engines.hf import HfGenerator
from assay.trainer.engines.models import Policy
from assay.trainer.methods.asynchrony.background import BackgroundCollector, Schedule
from assay.trainer.methods.asynchrony.settings import portion_prompts
from assay.trainer.methods.asynchrony.shadow import Shadow
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.settings import Config


def make_background_source(
    trainer: PolicyTrainer,
    config: Config,
    policy: Policy,
    shadow: Shadow,
    *,
    stream: PromptStream,
    judge: Judge,
) -> BackgroundCollector:
    """Rollouts that a thread draws beside the training.

    Raises:
        ConfigError: the weights are sharded over processes.
    """
    asynchrony, periodic = config.algorithm.asynchrony, shadow.shares
    if trainer.accelerator.distributed_type in (DistributedType.FSDP, DistributedType.DEEPSPEED):
        raise ConfigError(
            f'algorithm.asynchrony.mode = "{asynchrony.mode}" needs all weights on each process, '
            "and they are sharded; launch with configs/accelerate/ddp.yaml"
        )
    generator = HfGenerator(
        lambda: nullcontext(shadow.model),
        copy.deepcopy(policy.tokenizer),  # one is not for two threads
        config.rollout,
        seed=config.run.seed,
        end_ids=end_token_ids(policy),
        autocast=policy.autocast,
    )
    prompts = config.rollout.prompts_per_step
    return BackgroundCollector(
        stream,
        generator,
        lambda: judge.open_training_round(config.rollout.group_size),
        weights=shadow,
        schedule=Schedule(
            steps=config.run.steps,
            updates=config.updates_per_rollout,
            max_staleness=0 if periodic else asynchrony.max_staleness,
            portion=portion_prompts(config) if periodic else prompts,
        ),
        config=config.rollout,
        ranks=AccelerateRanks(trainer.accelerator),
    )
