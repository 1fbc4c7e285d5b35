"""Rules that bind several settings: each says what is wrong and what to do, in one line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assay.trainer.methods.asynchrony.settings import check as asynchrony_problem
from assay.trainer.methods.cotraining.settings import check_cotraining
from assay.trainer.methods.pairwise.settings import pairwise_problem
from assay.trainer.methods.segments.settings import segments_problem
from assay.trainer.methods.truncation.settings import check as truncation_problem
from assay.trainer.methods.turns.settings import check_turns
from assay.trainer.needs import Need, first_unmet

if TYPE_CHECKING:
    from assay.trainer.settings import Config


VLLM_MAX_LOGPROBS = 20


def problem(config: Config) -> str:
    """The first rule that the settings break; empty where they break none."""
    for check in (
        _check_sizes,
        _check_method,
        _check_difficulty,
        _check_critic,
        pairwise_problem,
        _check_data,
        _check_entry,
        _check_fire,
        _check_selection,
        _check_responses,
        _check_recomposition,
        segments_problem,
        truncation_problem,
        check_turns,
        check_cotraining,
        asynchrony_problem,
    ):
        found = check(config)
        if found:
            return found
    return ""


def _check_sizes(config: Config) -> str:
    rollout, optim = config.rollout, config.optim
    samples = (
        f"the {config.samples_per_step} samples of a step (rollout.prompts_per_step * "
        "rollout.group_size)"
    )
    if config.samples_per_step % optim.mini_batches:
        return f"optim.mini_batches = {optim.mini_batches} does not divide {samples}"
    mini_batch = config.samples_per_step // optim.mini_batches
    if optim.micro_batch and mini_batch % optim.micro_batch:
        return (
            f"optim.micro_batch = {optim.micro_batch} does not divide the {mini_batch} samples of "
            f"a mini-batch: {samples}, over optim.mini_batches = {optim.mini_batches}"
        )
    if config.eval.samples == 1 and config.eval.prompts == 0 and config.eval.every:
        return "eval.every needs eval.prompts above 0"
    if config.algorithm.shaping.overlong == "soft" and not (
        0 < config.algorithm.shaping.overlong_cache <= rollout.max_new_tokens
    ):
        return (
            'algorithm.shaping.overlong = "soft" needs algorithm.shaping.overlong_cache between 1 '
            f"and rollout.max_new_tokens = {rollout.max_new_tokens}"
        )
    return ""


def _check_method(config: Config) -> str:
    algorithm, loss = config.algorithm, config.algorithm.loss
    estimator = algorithm.advantage.estimator
    if config.rollout.group_size < 2 and estimator not in ("gae", "segments"):
        return (
            "rollout.group_size = 1 leaves nothing to compare within a group, and "
            f'algorithm.advantage.estimator = "{estimator}" does; raise rollout.group_size, or use '
            '"gae"'
        )
    if config.rollout.group_size < 2 and algorithm.dynamic_sampling.enabled:
        return (
            "algorithm.dynamic_sampling needs rollout.group_size of 2 or more: one response is "
            "always all right or all wrong"
        )
    if loss.kl_place == "reward" and loss.kl_coef and estimator != "gae":
        return 'algorithm.loss.kl_place = "reward" needs algorithm.advantage.estimator = "gae"'
    if 0 < loss.dual_clip <= 1 or 0 < loss.pre_clip <= 1:
        return "algorithm.loss.dual_clip and algorithm.loss.pre_clip are above 1, or 0 for none"
    if loss.importance_correction == "decoupled" and (
        loss.ratio == "sequence" or loss.objective == "cispo" or loss.pre_clip
    ):
        return (
            'algorithm.loss.importance_correction = "decoupled" is an objective of its own: it '
            'goes with ratio = "token", objective = "ppo" and pre_clip = 0'
        )
    return ""


def _check_difficulty(config: Config) -> str:
    algorithm = config.algorithm
    form, estimator = algorithm.advantage.difficulty, algorithm.advantage.estimator
    if form != "none" and estimator not in ("group", "rloo"):
        return (
            f'algorithm.advantage.difficulty = "{form}" weighs prompts by their groups; it needs '
            'algorithm.advantage.estimator = "group" or "rloo"'
        )
    if form == "linear" and algorithm.pairwise.against != "none":
        return (
            'algorithm.advantage.difficulty = "linear" goes by right and wrong, which '
            'algorithm.pairwise does not know; use "exp"'
        )
    return ""


def _check_critic(config: Config) -> str:
    critic = config.algorithm.critic
    if critic.value_min >= critic.value_max:
        return (
            f"algorithm.critic.value_min = {critic.value_min:g} is not below value_max = "
            f"{critic.value_max:g}"
        )
    if critic.sharing == "trunk" and critic.pretrain_steps:
        return (
            'algorithm.critic.pretrain_steps needs critic.sharing = "separate": a trunk that is '
            "shared cannot learn while the policy is frozen"
        )
    return ""


def _check_fire(config: Config) -> str:
    rollout = config.rollout
    if not rollout.fire.enabled:
        return ""
    if rollout.backend == "vllm" and (
        rollout.vllm.mode != "colocate" or rollout.vllm.tensor_parallel_size > 1
    ):
        return (
            'rollout.fire with rollout.backend = "vllm" needs rollout.vllm.mode = "colocate" and '
            "tensor_parallel_size = 1: what goes on after the first token differs between processes"
        )
    if rollout.backend == "vllm" and rollout.fire.top_k > VLLM_MAX_LOGPROBS:
        return (
            f'rollout.fire.top_k is at most {VLLM_MAX_LOGPROBS} with rollout.backend = "vllm", '
            "which tells no more log-probabilities of a token"
        )
    if rollout.fire.mode == "mask" and rollout.max_new_tokens == 1:
        return (
            'rollout.fire.mode = "mask" leaves nothing to learn from where rollout.max_new_tokens '
            "= 1; raise it"
        )
    if rollout.fire.mode == "exact" and config.algorithm.loss.ratio == "sequence":
        return (
            'rollout.fire.mode = "exact" weighs a token, and algorithm.loss.ratio = "sequence" has '
            'none; use mode = "mask"'
        )
    return ""


def _check_selection(config: Config) -> str:
    chosen = config.data.selection
    if chosen.name == "limr" and not chosen.limr.records:
        return (
            'data.selection.name = "limr" needs data.selection.limr.records: samples.jsonl of an '
            "earlier run with run.samples_every = 1"
        )
    if chosen.hints.enabled and not config.data.columns.solution:
        return (
            "data.selection.hints needs data.columns.solution: the column with worked solutions to "
            "show the beginning of"
        )
    if chosen.hints.enabled and config.algorithm.pairwise.against != "none":
        return "data.selection.hints does not go with algorithm.pairwise: an anchor saw no hint"
    if config.data.columns.solution and config.data.source == "reasoning_gym":
        return 'data.columns.solution: data.source = "reasoning_gym" has no solutions'
    if chosen.mopps.low > chosen.mopps.high:
        return "data.selection.mopps.low is above data.selection.mopps.high"
    return ""


def _check_responses(config: Config) -> str:
    """Which responses train, and which come again."""
    algorithm, rollout = config.algorithm, config.rollout
    if algorithm.filter.prof != "none" and not (
        2 <= (algorithm.filter.prof_keep or rollout.group_size // 2) <= rollout.group_size
    ):
        return (
            "algorithm.filter.prof_keep must leave at least 2 of the rollout.group_size = "
            f"{rollout.group_size} responses"
        )
    for key in ("void_answer", "void_code"):
        pattern = getattr(algorithm.filter, key)
        try:
            re.compile(pattern)
        except re.error as error:
            return f"algorithm.filter.{key} = {pattern!r} is no regular expression: {error}"
    if algorithm.filter.void != "none" and algorithm.truncation.window:
        return (
            "algorithm.filter.void needs algorithm.truncation.window = 0: whether a turn is void "
            "is known when it has ended, and its beginning has trained by then"
        )
    compared = {
        "algorithm.filter.min_group_std": algorithm.filter.min_group_std,
        "algorithm.replay": algorithm.replay.groups,
        "algorithm.recomposition": algorithm.recomposition.groups,
        "data.selection.hints": config.data.selection.hints.enabled,
    }
    alone = [name for name, value in compared.items() if value]
    if alone and rollout.group_size < 2:
        return f"{alone[0]} needs rollout.group_size of 2 or more: it goes by the group"
    if (
        algorithm.replay.groups
        and rollout.backend == "vllm"
        and (rollout.top_k or rollout.top_p < 1)
    ):
        return (
            "algorithm.replay needs the sampler's log-probabilities, and vLLM does not tell those "
            "of the policy with rollout.top_k or rollout.top_p; take these out"
        )
    return ""


def _check_recomposition(config: Config) -> str:
    algorithm, rollout = config.algorithm, config.rollout
    if not algorithm.recomposition.groups:
        return ""
    needs: tuple[Need, ...] = (
        (
            algorithm.advantage.estimator in ("group", "rloo"),
            'algorithm.advantage.estimator = "group" or "rloo"',
            "advantages are those of the whole group",
        ),
        (
            not algorithm.replay.groups and not algorithm.dynamic_sampling.keep_surplus,
            "no algorithm.replay and no kept surplus",
            "each would bring groups of its own",
        ),
        (
            algorithm.pairwise.against == "none" and algorithm.filter.prof == "none",
            'algorithm.pairwise.against = "none" and algorithm.filter.prof = "none"',
            "it goes by right and wrong, of all responses of a group",
        ),
        (
            not algorithm.truncation.window and not algorithm.turns.on,
            'algorithm.truncation.window = 0 and algorithm.turns.mode = "off"',
            "it keeps whole groups of responses of one turn",
        ),
        (
            not rollout.fire.enabled,
            "rollout.fire.enabled = false",
            "what a later step trains on has no first token that was set apart",
        ),
        (
            rollout.backend != "vllm" or (not rollout.top_k and rollout.top_p == 1),
            "no rollout.top_k and top_p with vLLM",
            "it does not tell the policy's log-probabilities with them",
        ),
    )
    return first_unmet("algorithm.recomposition", needs)


def _check_entry(config: Config) -> str:
    reward = config.reward
    if not reward.target:
        for name in ("token_file", "tls_ca", "tls_cert", "tls_key"):
            if getattr(reward, name):
                return f"reward.{name} is for reward.target; the run's own services need none"
    if reward.tls_cert and not reward.tls_ca:
        return "reward.tls_cert needs reward.tls_ca: without it the service is spoken to in clear"
    if bool(reward.tls_cert) != bool(reward.tls_key):
        return "reward.tls_cert and reward.tls_key go together"
    return ""


def _check_data(config: Config) -> str:
    needed = {"jsonl": ("path", config.data.path), "hub": ("name", config.data.name)}
    key, value = needed.get(config.data.source, ("task", config.data.task))
    if not value:
        return (
            f'data.{key} is missing, which data.source = "{config.data.source}" needs; '
            f"add it, or pass data.{key}=..."
        )
    return ""
