"""From our settings to TRL's, and the assembly of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, ProgressCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig

from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.trainer.core.answering import rollout_sampling, sampler
from assay.trainer.core.batch import Scored
from assay.trainer.core.hooks import Hooks, hooks_of
from assay.trainer.core.rewards import SURVEY, Judge
from assay.trainer.core.survey import Survey
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.model import load_critic
from assay.trainer.critic.stepping import OPTIMIZERS
from assay.trainer.critic.trunk import TrunkCritic
from assay.trainer.data.mixture import Mixture
from assay.trainer.data.problems import Problem, render
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.head import head_in_float32
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.exchange import SINGLE, Talk
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import Group, Ranks, Rollout, Source
from assay.trainer.selection.choose import make_selector
from assay.trainer.settings.config import Config
from assay.trainer.settings.trl_options import OWNED


def grpo_config(
    config: Config, output: Path, *, on_cuda: bool, mixed: bool, processes: int = 1
) -> GRPOConfig:
    """TRL's settings for a run, whose checkpoints go to `output`.

    `mixed` tells whether the policy's float32 weights compute in bfloat16.
    """
    optim, rollout = config.optim, config.rollout
    return GRPOConfig(
        output_dir=str(output),
        # the batch: one rollout of P * G samples feeds mini_batches * epochs optimizer steps. TRL's
        # data loader brings one placeholder, as often as there are samples: our own source draws,
        # and the trainer packs a mini-batch into micro-batches by itself
        per_device_train_batch_size=config.samples_per_step // (optim.mini_batches * processes),
        gradient_accumulation_steps=1,
        steps_per_generation=optim.mini_batches,
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
        # the loss is ours, and so is the reference of its KL: see reference.py
        beta=0.0,
        # the optimizer
        optim=OPTIMIZERS[optim.optimizer],
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
        cast_lm_head_to_fp32=config.model.head_precision == "float32",
        gradient_checkpointing=config.model.gradient_checkpointing,
        torch_compile=config.model.compile,
        use_liger_kernel=config.model.liger,
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=on_cuda,
        seed=config.run.seed,
        # what is written: see callbacks.py
        save_strategy="no",
        logging_steps=config.updates_per_rollout,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to="none",
        **config.trl,
    )


def check_trl(config: Config) -> None:
    """Checks that TRL has the options of the table [trl].

    Raises:
        ConfigError: it has not; the message has the nearest name.
    """
    known = {item.name for item in fields(GRPOConfig)}
    for name in config.trl:
        if name not in known:
            raise ConfigError(
                f"trl.{name} is no option of the installed TRL's GRPOConfig"
                f"{did_you_mean(name, sorted(known - OWNED.keys()))}; take it out of [trl]"
            )


def check_processes(config: Config, processes: int, hooks: Sequence[Hooks] = ()) -> None:
    """Checks that a step divides among so many processes.

    Raises:
        ConfigError: it does not; the message says what divides what.
    """
    for hook in hooks:
        hook.check_processes(processes)
    prompts = config.rollout.prompts_per_step
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


def _check_tasks(config: Config, problems: Sequence[Problem]) -> None:
    there = {problem.task for problem in problems}
    for task in config.method.loss.kl_coef_by_task:
        if task not in there:
            raise ConfigError(
                f"method.loss.kl_coef_by_task: no row has the task {task!r}; rows have "
                f"{', '.join(map(repr, sorted(there)[:8]))}"
            )


def check_judge(config: Config, judge: Judge, hooks: Sequence[Hooks]) -> None:
    """Checks that the verifier can judge a step's responses.

    Raises:
        ConfigError: it judges whole groups, and a response is judged by itself here.
    """
    if not judge.judges_groups:
        return
    for why in filter(None, (hook.needs_single_judgements() for hook in hooks)):
        raise ConfigError(
            f"reward.verifier = {config.reward.verifier!r} judges the samples of a prompt "
            f"against one another, and {why}, or use another verifier"
        )


def prompt_stream(
    config: Config,
    problems: Sequence[Problem],
    policy: LoadedPolicy,
    hooks: Sequence[Hooks] | None = None,
    mixture: Sequence[tuple[int, float]] = (),
) -> PromptStream:
    """The run's prompts, each checked against the model's context; see Problems.mixture.

    Raises:
        ConfigError: a prompt leaves no room for max_new_tokens, or no row has a configured task.
    """
    _check_tasks(config, problems)
    hooks = hooks_of(config) if hooks is None else hooks
    context = getattr(policy.model.config, "max_position_embeddings", None) or 0
    longest = most = config.rollout.max_new_tokens
    for hook in hooks:
        longest = hook.room(policy, longest)
    room = context - longest
    if context and room < 1:
        turns = f", {longest} tokens in all turns," if longest > most else ""
        raise ConfigError(
            f"rollout.max_new_tokens = {most}{turns} leaves no room for a prompt "
            f"in the context of {context} tokens that {config.model.name!r} has"
        )
    return PromptStream(
        problems,
        encoder(policy),
        seed=config.data.seed,
        max_prompt_tokens=room if context else 0,
        selector=make_selector(config.data.selection, problems, config.data.seed),
        forms=next(filter(None, (hook.variants() for hook in hooks)), None),
        mixture=Mixture(mixture, config.data.seed) if mixture else None,
    )


def encoder(policy: LoadedPolicy) -> Callable[[Problem], Sequence[int]]:
    """The policy's tokens of a problem; one of padding where its row asks nothing."""
    tokenizer = policy.tokenizer

    def encode(problem: Problem) -> Sequence[int]:
        ids: Sequence[int] = tokenizer(render(problem, tokenizer))["input_ids"]
        return ids if ids or problem.question else [int(tokenizer.pad_token_id)]

    return encode


def scorer(hooks: Sequence[Hooks]) -> Callable[[Sequence[Group]], list[Scored]]:
    """Rewards of responses: as judged, then shaped by the methods."""

    def score(groups: Sequence[Group]) -> list[Scored]:
        scored = [[as_judged(rollout) for rollout in group] for group in groups]
        for hook in hooks:
            scored = hook.scored(scored)
        return [item for group in scored for item in group]

    return score


def as_judged(rollout: Rollout) -> Scored:
    """A rollout with the reward of its judgement; a fault has none and is in no loss."""
    judgement = rollout.result.judgement
    if judgement is None:
        return Scored(rollout, None, in_loss=False)
    return Scored(rollout, judgement.reward)


@dataclass(frozen=True, slots=True)
class Workshop:
    """What sources of rollouts are made of."""

    trainer: PolicyTrainer
    config: Config
    policy: LoadedPolicy
    stream: PromptStream
    judge: Judge
    hooks: Sequence[Hooks]

    @property
    def ranks(self) -> Ranks:
        """The processes."""
        return AccelerateRanks(self.trainer.accelerator)

    @property
    def talk(self) -> Talk:
        """The shape of a sample: one response, a dialogue or an episode."""
        given = (hook.talk(self.policy, self.judge) for hook in self.hooks)
        return next(filter(None, given), SINGLE)

    def generator(self) -> Sampler:
        """Answers training prompts."""
        return sampler(self.trainer, self.config, self.policy)

    def source(self, *, whole: bool = True) -> Source:
        """The source of a step's responses.

        With `whole` false, as in value pre-training, each step draws its prompts once and keeps
        them all.

        Raises:
            ConfigError: two methods bring a source of their own.
        """
        given = {type(h).__name__: h.source(self, whole=whole) for h in self.hooks}
        own = {name: source for name, source in given.items() if source is not None}
        if len(own) > 1:
            raise ConfigError(
                f"{' and '.join(own)} each bring a source of responses of their own; leave all but "
                "one of them out"
            )
        source = next(iter(own.values()), None) or self._collector(self.hooks if whole else ())
        for hook in self.hooks if whole else ():
            source = hook.around(source, self)
        return source

    def _collector(self, hooks: Sequence[Hooks]) -> Collector:
        given = [hook.collecting() for hook in hooks]
        size = self.config.rollout.group_size
        answers = self.generator()
        for hook in hooks:
            answers = hook.sampler(answers)
        return Collector(
            self.stream,
            answers,
            lambda: self.judge.open_training_round(size),
            config=self.config.rollout,
            ranks=self.ranks,
            talk=self.talk,
            dynamic=next((one["dynamic"] for one in given if "dynamic" in one), None),
            keepers=[keeper for one in given for keeper in one.get("keepers", ())],
            again=next((one["again"] for one in given if "again" in one), None),
            survey=self.survey(),
        )

    def survey(self) -> Survey:
        """Answers problems for the selector, by regular sampling."""
        return Survey(
            self.stream,
            lambda: sampler(
                self.trainer,
                self.config,
                self.policy,
                rollout_sampling(self.config.rollout, rows=self.config.eval.batch_size),
            ),
            partial(self.judge.open_round, phase=SURVEY),
            encoder(self.policy),
            ranks=self.ranks,
            talk=talk if (talk := self.talk).only else SINGLE,
        )


def build_trainer(
    config: Config,
    output: Path,
    policy: LoadedPolicy,
    stream: PromptStream,
    judge: Judge,
    *,
    callbacks: list[TrainerCallback],
    on_broken: Callable[[Any, float], str],
    check_critic: Callable[[float], None],
    say: Callable[[str], None],
    processes: int = 1,
    hooks: Sequence[Hooks] | None = None,
    source_of: Callable[[PolicyTrainer], Source] | None = None,
    score: Callable[[Sequence[Group]], list[Scored]] | None = None,
) -> PolicyTrainer:
    """The trainer of a run, ready to train; it prints nothing by itself.

    `source_of` and `score` replace the configured rollouts and rewards.
    """
    hooks = hooks_of(config) if hooks is None else hooks
    for hook in hooks:  # TRL and accelerate set their own into the policy's forward pass
        hook.before_training(policy)
    settings = config.method.critic
    separate = config.method.has_critic and settings.sharing == "separate"
    model = (
        load_critic(
            settings, policy, say, gradient_checkpointing=config.model.gradient_checkpointing
        )
        if separate
        else None
    )

    def make_critic(trainer: PolicyTrainer) -> Critic | TrunkCritic | None:
        if not config.method.has_critic:
            return None
        if model is None:
            return TrunkCritic(trainer.model, settings, trainer.accelerator)
        return Critic(
            model,
            settings,
            trainer.accelerator,
            tokenizer=policy.tokenizer,
            optimizer=config.optim.optimizer,
            offload="critic" in config.model.offload,
        )

    trainer = PolicyTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        reward_funcs=_unused,
        args=grpo_config(
            config,
            output,
            on_cuda=policy.device.type == "cuda",
            mixed=policy.mixed,
            processes=processes,
        ),
        train_dataset=Dataset.from_dict({"prompt": ["a placeholder: see PolicyTrainer"]}),
        callbacks=callbacks,
        config=config,
        make_source=source_of
        or (lambda trainer: Workshop(trainer, config, policy, stream, judge, hooks).source()),
        score=score or scorer(hooks),
        hooks=hooks,
        make_critic=make_critic,
        on_broken=on_broken,
        check_critic=check_critic,
    )
    if config.model.head_precision == "float32":
        head_in_float32(policy.model)
    for noisy in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(noisy)
    return trainer


def _unused(prompts: Sequence[str], **_columns: Any) -> list[float | None]:
    """TRL's required reward function; rewards come from the source."""
    return [None] * len(prompts)
