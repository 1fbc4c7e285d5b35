"""From our settings to TRL's, and the parts of a run put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, ProgressCallback, TrainerCallback
from trl.models.utils import unwrap_model_for_generation
from trl.trainer.grpo_config import GRPOConfig

from assay.clients import Fault
from assay.rpc.errors import ConfigError
from assay.rpc.reasons import Reason
from assay.trainer.algos.shaping import win_reward
from assay.trainer.core.batch import Scored
from assay.trainer.core.evaluation import Greedy, end_token_ids
from assay.trainer.core.rewards import Judge
from assay.trainer.core.trainer import PolicyTrainer, Source
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.model import load_critic
from assay.trainer.critic.trunk import TrunkCritic
from assay.trainer.data.problems import Problem, render
from assay.trainer.engines.hf import HfGenerator
from assay.trainer.engines.models import Policy
from assay.trainer.engines.paged import PagedGenerator
from assay.trainer.engines.types import Generator
from assay.trainer.engines.vllm import VllmGenerator, keep_base_weights
from assay.trainer.methods.asynchrony.shadow import Shadow
from assay.trainer.methods.asynchrony.source import make_background_source
from assay.trainer.methods.dense.spans import span_tokens
from assay.trainer.methods.filters.filters import filtered, without_void
from assay.trainer.methods.recomposition.recomposition import Recomposition
from assay.trainer.methods.replay.replay import Replay
from assay.trainer.methods.segments.collector import SegmentCollector
from assay.trainer.methods.shaping.shape import shape
from assay.trainer.methods.truncation.slots import SlotCollector
from assay.trainer.methods.turns.confidence import Confidence
from assay.trainer.methods.turns.credit import turn_tokens
from assay.trainer.methods.turns.dialogues import DialogueCollector, Dialogues
from assay.trainer.methods.turns.protocol import protocol_of
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import Group, Ranks, Rollout
from assay.trainer.selection.choose import make_selector
from assay.trainer.settings import Config, DenseConfig, DynamicSamplingConfig, FireConfig


def grpo_config(
    config: Config, output: Path, *, on_cuda: bool, mixed: bool, processes: int = 1
) -> GRPOConfig:
    """TRL's settings for a run.

    Args:
        config: ours.
        output: where checkpoints go.
        on_cuda: whether the policy is on a CUDA device.
        mixed: whether its float32 weights compute in bfloat16.
        processes: of the run.
    """
    optim, rollout = config.optim, config.rollout
    micro_batch = config.micro_batch(processes)
    accumulation = config.samples_per_step // (optim.mini_batches * processes * micro_batch)
    return GRPOConfig(
        output_dir=str(output),
        # the batch: one rollout of P * G samples feeds mini_batches * epochs optimizer steps. TRL's
        # data loader brings one placeholder, as often as there are samples: our own source draws
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=accumulation,
        steps_per_generation=accumulation * optim.mini_batches,
        num_generations=config.samples_per_step,
        num_iterations=optim.epochs,
        max_steps=config.run.steps * config.updates_per_rollout,
        shuffle_dataset=False,
        ignore_data_skip=True,
        # the rollout
        max_completion_length=rollout.max_new_tokens,
        temperature=rollout.temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k,
        **_backend_settings(config),
        # the loss is ours; with a weight, TRL keeps the reference model. With adapters that is the
        # model without them, and the copy that TRL would add keeps a checkpoint from being read
        beta=0.0 if config.model.lora.rank else config.algorithm.loss.kl_coef,
        # the optimizer
        optim="adamw_torch_fused",
        learning_rate=optim.learning_rate,
        lr_scheduler_type="constant_with_warmup"
        if optim.schedule == "constant"
        else optim.schedule,
        warmup_steps=optim.warmup_steps,
        weight_decay=optim.weight_decay,
        max_grad_norm=optim.max_grad_norm,
        # the machine
        use_cpu=not on_cuda,
        bf16=mixed,
        gradient_checkpointing=config.model.gradient_checkpointing,
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=on_cuda,
        seed=config.run.seed,
        # what is written: see callbacks.py
        save_strategy="no",
        logging_steps=config.updates_per_rollout,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to="none",
    )


def _backend_settings(config: Config) -> dict[str, Any]:
    if config.rollout.backend == "paged":
        return {"use_transformers_continuous_batching": True}
    if config.rollout.backend == "hf":
        return {}
    vllm = config.rollout.vllm
    settings: dict[str, Any] = {
        "use_vllm": True,
        "vllm_mode": vllm.mode,
        "vllm_gpu_memory_utilization": vllm.gpu_memory_utilization,
        "vllm_tensor_parallel_size": vllm.tensor_parallel_size,
        "vllm_importance_sampling_correction": False,  # a part of our loss
    }
    if vllm.server_url:
        settings["vllm_server_base_url"] = vllm.server_url
    if vllm.max_model_length:
        settings["vllm_max_model_length"] = vllm.max_model_length
    return settings


def check_processes(config: Config, processes: int) -> None:
    """Whether a step can be dealt to so many processes.

    Raises:
        ConfigError: it cannot; the message says what divides what.
    """
    if config.cotraining.enabled and processes > 1:
        raise ConfigError(
            f"cotraining.enabled = true needs a run of one process, and this one has {processes}: "
            "two loops that take turns have not been tried on several; start it without a launcher"
        )
    prompts = config.rollout.prompts_per_step
    if processes > 1 and config.algorithm.asynchrony.mode == "periodic":
        raise ConfigError(
            'algorithm.asynchrony.mode = "periodic" trains in one process: each would wait for '
            'every portion of the others; use "bounded" or "off"'
        )
    if prompts % processes:
        raise ConfigError(
            f"rollout.prompts_per_step = {prompts} cannot be dealt to {processes} processes; make "
            "it a multiple"
        )
    share = config.samples_per_step // processes
    if share % config.optim.mini_batches:
        raise ConfigError(
            f"optim.mini_batches = {config.optim.mini_batches} does not divide the {share} samples "
            f"of each of {processes} processes"
        )
    if config.optim.micro_batch and share // config.optim.mini_batches % config.optim.micro_batch:
        raise ConfigError(
            f"optim.micro_batch = {config.optim.micro_batch} does not divide the "
            f"{share // config.optim.mini_batches} samples of a mini-batch on each of {processes} "
            "processes"
        )


def check_judge(config: Config, judge: Judge) -> None:
    """Whether the verifier can judge what a step has.

    Raises:
        ConfigError: it judges whole groups, and here a response is judged by itself.
    """
    algorithm = config.algorithm
    if not judge.judges_groups:
        return
    for on, why, off in (
        (
            bool(algorithm.truncation.window),
            "with algorithm.truncation they end in different steps",
            "algorithm.truncation.window = 0",
        ),
        (
            algorithm.turns.on,
            "algorithm.turns has each attempt judged by itself",
            'algorithm.turns.mode = "off"',
        ),
        (
            algorithm.advantage.estimator == "segments",
            "algorithm.segments has each continuation judged by itself",
            'algorithm.advantage.estimator = "group"',
        ),
        (
            config.cotraining.enabled,
            "the verifier of cotraining is shown one solution of a prompt, judged by itself",
            "cotraining.enabled = false",
        ),
    ):
        if on:
            raise ConfigError(
                f"reward.verifier = {config.reward.verifier!r} judges the samples of a prompt "
                f"against one another, and {why}; set {off}, or use another verifier"
            )


def prompt_stream(config: Config, problems: Sequence[Problem], policy: Policy) -> PromptStream:
    """The run's prompts, each checked against the model's context.

    Raises:
        ConfigError: a prompt leaves no room for max_new_tokens.
    """
    context = getattr(policy.model.config, "max_position_embeddings", None) or 0
    turns, most = config.algorithm.turns, config.rollout.max_new_tokens
    longest = protocol_of(turns, policy.tokenizer).room(most) if turns.on else most
    room, chosen = context - longest, config.data.selection
    if context and room < 1:
        dialogue = f", {longest} tokens in {turns.most} turns," if turns.on else ""
        raise ConfigError(
            f"rollout.max_new_tokens = {most}{dialogue} leaves no room for a prompt "
            f"in the context of {context} tokens that {config.model.name!r} has"
        )
    return PromptStream(
        problems,
        encoder(policy),
        seed=config.data.seed,
        max_prompt_tokens=room if context else 0,
        selector=make_selector(chosen, problems, config.data.seed),
        hints=chosen.hints.shares if chosen.hints.enabled else (),
    )


def encoder(policy: Policy) -> Callable[[Problem], Sequence[int]]:
    """The tokens that the policy is shown of a problem."""
    tokenizer = policy.tokenizer

    def encode(problem: Problem) -> Sequence[int]:
        ids: Sequence[int] = tokenizer(render(problem, tokenizer))["input_ids"]
        return ids

    return encode


@contextmanager
def generating(trainer: PolicyTrainer) -> Iterator[Any]:
    """The policy as it is now, made ready to generate, wherever its weights are."""
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


def make_generator(trainer: PolicyTrainer, config: Config, policy: Policy) -> Generator:
    """What answers prompts, by the configured back end."""
    ends = end_token_ids(policy)
    if config.rollout.backend == "vllm":
        if config.model.lora.rank:
            keep_base_weights(trainer.vllm_generation)
        return VllmGenerator(
            lambda prompts, repeats: trainer._generate_single_turn(prompts, None, {}, repeats),  # noqa: SLF001  # TRL's
            policy.tokenizer,
            config.rollout,
            end_ids=ends,
            engine=trainer.vllm_generation,
            seed=config.run.seed,
        )
    if config.rollout.backend == "paged":
        return PagedGenerator(
            lambda: generating(trainer),
            policy.tokenizer,
            config.rollout,
            seed=config.run.seed,
            end_ids=ends,
        )
    return HfGenerator(
        lambda: generating(trainer),
        policy.tokenizer,
        config.rollout,
        seed=config.run.seed,
        end_ids=ends,
        autocast=policy.autocast,
    )


def regular_decoding(config: Config) -> Config:
    """Settings whose first tokens are drawn as all others."""
    return replace(config, rollout=replace(config.rollout, fire=FireConfig()))


def evaluation_generator(
    trainer: PolicyTrainer, config: Config, policy: Policy
) -> AbstractContextManager[Generator]:
    """What answers held-out prompts: the most likely tokens, or samples with their own seeds."""
    limit = config.eval.max_new_tokens or config.rollout.max_new_tokens
    if config.eval.samples == 1:
        return _greedy(trainer, policy, limit)
    settings = replace(
        regular_decoding(config).rollout,
        max_new_tokens=limit,
        temperature=config.eval.temperature,
        top_p=config.eval.top_p,
        top_k=0,
        batch=0,
    )
    sampling: Generator = HfGenerator(
        lambda: generating(trainer),
        policy.tokenizer,
        settings,
        seed=config.run.seed,
        end_ids=end_token_ids(policy),
        autocast=policy.autocast,
    )
    return nullcontext(sampling)


def reference_generator(trainer: PolicyTrainer, config: Config, policy: Policy) -> Generator:
    """What samples as the rollout does, with numbers of its own draws, before the policy moves."""
    return HfGenerator(
        lambda: generating(trainer),
        policy.tokenizer,
        replace(config.rollout, batch=config.eval.batch_size),
        seed=config.run.seed,
        end_ids=end_token_ids(policy),
        autocast=policy.autocast,
    )


@contextmanager
def _greedy(trainer: PolicyTrainer, policy: Policy, limit: int) -> Iterator[Generator]:
    with generating(trainer) as model:
        yield Greedy(policy, max_new_tokens=limit, model=model)


def scorer(config: Config, policy: Policy) -> Callable[[Sequence[Group]], list[Scored]]:
    """Shapes rewards of groups, places those of spans on tokens, leaves out what is filtered."""
    shaping, limit = config.algorithm.shaping, config.rollout.max_new_tokens
    chosen = config.algorithm.filter
    if config.algorithm.turns.on:
        return lambda groups: without_void(
            [with_turns(r, config) for group in groups for r in group], chosen
        )
    pairwise = config.algorithm.pairwise
    form: Callable[[float], float] = partial(
        win_reward, form=pairwise.reward, clip=pairwise.log_odds_clip
    )
    forms = {} if pairwise.against == "none" else {"form": form}

    def score(groups: Sequence[Group]) -> list[Scored]:
        scored = filtered([[one(rollout) for rollout in group] for group in groups], chosen)
        return without_void(scored, chosen)

    def one(rollout: Rollout) -> Scored:
        shaped = shape(rollout, shaping, limit, **forms)
        item = Scored(rollout, shaped.reward, shaped.in_loss)
        if config.algorithm.dense.weight:
            item = with_spans(item, rollout, policy, config.algorithm.dense)
        return item

    return score


def with_turns(rollout: Rollout, config: Config) -> Scored:
    """A dialogue with what its turns earn on its tokens."""
    tokens, reward = turn_tokens(rollout, config.algorithm.turns)
    return Scored(rollout, reward, turns=tokens)


def with_spans(item: Scored, rollout: Rollout, policy: Policy, config: DenseConfig) -> Scored:
    """A rollout with the rewards of its judgement's spans on its tokens, without their weight.

    Where they do not fit the response, the judgement is of something else: then it is a fault.
    """
    judgement, response = rollout.result.judgement, rollout.response
    if judgement is None or not judgement.spans:
        return item
    spans = judgement.spans
    try:
        places = span_tokens(spans, len(response.text), response.ids, policy.tokenizer)
    except ValueError as error:
        fault = Fault(Reason.INTERNAL.value, f"{judgement.verifier}: {error}", "INTERNAL")
        return Scored(replace(rollout, result=replace(rollout.result, outcome=fault)), None)
    rewards_T, ends_T = [0.0] * len(response.ids), [False] * len(response.ids)
    share = config.correct_share if judgement.verdict == "correct" else 1.0
    for span, where in zip(spans, places, strict=True):
        rewards_T[where] += share * span.reward / (len(spans) if config.normalise else 1)
        ends_T[where] = True
    return replace(item, token_rewards=rewards_T, ends=ends_T)


def make_source(
    trainer: PolicyTrainer,
    config: Config,
    policy: Policy,
    *,
    stream: PromptStream,
    judge: Judge,
    dynamic: DynamicSamplingConfig,
    replay: Replay | None = None,
    recomposition: Recomposition | None = None,
) -> Source:
    """What rollouts come from."""
    if config.algorithm.turns.on:
        ranks = AccelerateRanks(trainer.accelerator)
        return DialogueCollector(
            stream,
            make_dialogues(make_generator(trainer, config, policy), config, policy, ranks),
            lambda: judge.open_round(0),
            prompts_per_step=config.rollout.prompts_per_step,
            group_size=config.rollout.group_size,
            ranks=ranks,
        )
    return Collector(
        stream,
        make_generator(trainer, config, policy),
        lambda: judge.open_training_round(config.rollout.group_size),
        config=config.rollout,
        dynamic=dynamic,
        ranks=AccelerateRanks(trainer.accelerator),
        replay=replay,
        recomposition=recomposition,
    )


def make_training_source(
    trainer: PolicyTrainer,
    config: Config,
    policy: Policy,
    *,
    stream: PromptStream,
    judge: Judge,
    shadow: Shadow | None = None,
) -> Source:
    """What the policy learns from, as the method says; with a shadow, drawn beside the training."""
    if shadow is not None:
        return make_background_source(trainer, config, policy, shadow, stream=stream, judge=judge)
    window = config.algorithm.truncation.window
    if not window:
        replay, recomposition = config.algorithm.replay, config.algorithm.recomposition
        source = make_source(
            trainer,
            config,
            policy,
            stream=stream,
            judge=judge,
            dynamic=config.algorithm.dynamic_sampling,
            replay=Replay(replay, config.run.seed) if replay.groups else None,
            recomposition=Recomposition(recomposition, config.rollout.prompts_per_step)
            if recomposition.groups
            else None,
        )
        if config.algorithm.advantage.estimator != "segments":
            return source
        return SegmentCollector(
            source,
            make_generator(trainer, config, policy),
            lambda: judge.open_round(1),
            config=config.algorithm.segments,
            ranks=AccelerateRanks(trainer.accelerator),
        )
    return SlotCollector(
        stream,
        make_generator(trainer, config, policy),
        lambda: judge.open_round(1),
        config=config.rollout,
        window=window,
        ranks=AccelerateRanks(trainer.accelerator),
    )


def make_dialogues(
    generator: Generator,
    config: Config,
    policy: Policy,
    ranks: Ranks,
    *,
    validation: bool = False,
    confidence: Confidence | None = None,
) -> Dialogues:
    """The policy in conversation with itself, as the settings say."""
    tokenizer = policy.tokenizer
    return Dialogues(
        generator,
        protocol_of(config.algorithm.turns, tokenizer),
        lambda ids: str(tokenizer.decode(ids, skip_special_tokens=True)),
        ranks,
        validation=validation,
        confidence=confidence,
    )


def make_confidence(trainer: PolicyTrainer, config: Config, policy: Policy) -> Confidence | None:
    """Asks the policy how sure it is of its attempts, where an evaluation can choose among several.

    None where it has not.
    """
    if config.algorithm.turns.mode != "verify" or config.eval.samples == 1:
        return None
    return Confidence(
        lambda: generating(trainer),
        policy.tokenizer,
        end_ids=end_token_ids(policy),
        batch=config.eval.batch_size,
        autocast=policy.autocast,
    )


def build_trainer(
    config: Config,
    output: Path,
    policy: Policy,
    stream: PromptStream,
    judge: Judge,
    *,
    callbacks: list[TrainerCallback],
    on_broken: Callable[[Any, float], str],
    check_critic: Callable[[float], None],
    say: Callable[[str], None],
    processes: int = 1,
    source_of: Callable[[PolicyTrainer], Source] | None = None,
    score: Callable[[Sequence[Group]], list[Scored]] | None = None,
) -> PolicyTrainer:
    """The trainer of a run, ready to train; it prints nothing by itself.

    `source_of` and `score` take the places of what the settings say of rollouts and of rewards.
    """
    settings = config.algorithm.critic
    separate = config.algorithm.has_critic and settings.sharing == "separate"
    mode = config.algorithm.asynchrony.mode
    # of the policy as it was loaded: TRL and accelerate set their own into its forward pass
    shadow = None if mode == "off" else Shadow(policy.model, shares=mode == "periodic")
    model = (
        load_critic(
            settings, policy, say, gradient_checkpointing=config.model.gradient_checkpointing
        )
        if separate
        else None
    )

    def make_critic(trainer: PolicyTrainer) -> Critic | TrunkCritic | None:
        if not config.algorithm.has_critic:
            return None
        if model is None:
            return TrunkCritic(trainer.model, settings, trainer.accelerator)
        return Critic(model, settings, trainer.accelerator, tokenizer=policy.tokenizer)

    trainer = PolicyTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        reward_funcs=_unused,
        args=grpo_config(
            config,
            output,
            on_cuda=policy.model.device.type == "cuda",
            mixed=policy.mixed,
            processes=processes,
        ),
        train_dataset=Dataset.from_dict({"prompt": ["a placeholder: see PolicyTrainer"]}),
        callbacks=callbacks,
        config=config,
        make_source=source_of
        or (
            lambda trainer: make_training_source(
                trainer, config, policy, stream=stream, judge=judge, shadow=shadow
            )
        ),
        score=score or scorer(config, policy),
        make_critic=make_critic,
        on_broken=on_broken,
        check_critic=check_critic,
    )
    for noisy in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(noisy)
    return trainer


def _unused(prompts: Sequence[str], **_columns: Any) -> list[float | None]:
    """TRL wants a reward function; rewards come from the source."""
    return [None] * len(prompts)
