"""A run's engine, and the ways it is sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from trl.models.utils import unwrap_model_for_generation

from assay.trainer.core.evaluation import end_token_ids
from assay.trainer.core.hooks import Hooks
from assay.trainer.engines.engine import Engine, EngineHost, Sampler
from assay.trainer.engines.hf import is_sharded
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.engines.types import FirstToken, Sampling
from assay.trainer.settings.config import Config
from assay.trainer.settings.registry import engine_of, resolved
from assay.trainer.settings.sections import RolloutConfig

if TYPE_CHECKING:
    from assay.trainer.core.trainer import PolicyTrainer


@contextmanager
def generating(trainer: PolicyTrainer) -> Iterator[Any]:
    """The present policy, ready to generate, sharded or whole."""
    args: Any = trainer.args
    with (
        unwrap_model_for_generation(
            trainer.model_wrapped,
            trainer.accelerator,
            gather_deepspeed3_params=args.ds3_gather_for_generation,
            gradient_checkpointing_kwargs=args.gradient_checkpointing_kwargs,
        ) as model,
        torch.no_grad(),
        trainer._dist.summon_full_params(trainer.model_wrapped, recurse=False),  # noqa: SLF001  # TRL's own way to FSDP's weights
    ):
        yield model


def host_of(trainer: PolicyTrainer, config: Config, policy: LoadedPolicy) -> EngineHost:
    """The policy in training, for an engine."""
    return EngineHost(
        model_context=lambda: generating(trainer),
        tokenizer=policy.tokenizer,
        seed=config.run.seed,
        end_ids=end_token_ids(policy),
        autocast=policy.autocast,
        version=lambda: trainer.state.global_step,
        dtype=torch.bfloat16 if policy.mixed else None,
        in_step=lambda: is_sharded(trainer.model_wrapped),
    )


def engine_for(host: EngineHost, config: Config) -> Engine:
    """The configured engine."""
    made: Engine = resolved(engine_of(config.rollout).make)(host, config)
    return made


@contextmanager
def standing_engine(config: Config, policy: LoadedPolicy) -> Iterator[Engine]:
    """The configured engine of a policy that is not in training; closed behind the block."""

    @contextmanager
    def opened() -> Iterator[Any]:
        with torch.no_grad():
            yield policy.model

    host = EngineHost(
        model_context=opened,
        tokenizer=policy.tokenizer,
        seed=config.run.seed,
        end_ids=end_token_ids(policy),
        autocast=policy.autocast,
        dtype=torch.bfloat16 if policy.mixed else None,
    )
    engine = engine_for(host, config)
    try:
        yield engine
    finally:
        engine.close()


def engine_of_run(trainer: PolicyTrainer, config: Config, policy: LoadedPolicy) -> Engine:
    """The policy's engine, made on the first call; `trainer.close` ends it."""
    if trainer.engine is None:
        trainer.engine = engine_for(host_of(trainer, config, policy), config)
    return trainer.engine


def rollout_sampling(
    rollout: RolloutConfig, first: FirstToken | None = None, *, rows: int | None = None
) -> Sampling:
    """How training responses are drawn; `rows` at a time in place of rollout.batch."""
    return Sampling(
        rollout.max_new_tokens,
        temperature=rollout.temperature,
        top_k=rollout.top_k,
        top_p=rollout.top_p,
        first=first,
        rows=rollout.batch if rows is None else rows,
    )


def evaluation_sampling(config: Config, samples: int | None = None) -> Sampling:
    """How held-out prompts are answered: the likeliest tokens, or samples."""
    once = (samples or config.eval.samples) == 1
    return Sampling(
        config.eval.max_new_tokens or config.rollout.max_new_tokens,
        temperature=0.0 if once else config.eval.temperature,
        top_p=1.0 if once else config.eval.top_p,
        rows=config.eval.batch_size,
    )


def first_token(hooks: Sequence[Hooks]) -> FirstToken | None:
    """The source of the first tokens of training responses."""
    return next(filter(None, (hook.first_token() for hook in hooks)), None)


def stops_of(hooks: Sequence[Hooks], policy: LoadedPolicy) -> tuple[str, ...]:
    """Texts behind which responses end."""
    return tuple(dict.fromkeys(text for hook in hooks for text in hook.stops(policy)))


def sampler(
    trainer: PolicyTrainer, config: Config, policy: LoadedPolicy, sampling: Sampling | None = None
) -> Sampler:
    """Samples the present policy, by default as training responses are drawn."""
    engine = engine_of_run(trainer, config, policy)
    given = sampling or rollout_sampling(config.rollout, first_token(trainer.hooks))
    return Sampler(engine, replace(given, stops=stops_of(trainer.hooks, policy)))
