"""What each function name of a golden file stands for: its inputs, by name, to this project's code.

An input that a function does not know is an error, as is a function that is not here. Numbers go in
as float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from assay.clients.self_verification import Verdict, turn_rewards
from assay.genrm.judges import numbers
from assay.genrm.steps import labels
from assay.trainer.algos import (
    advantages as adv,
)
from assay.trainer.algos import (
    aggregation,
    auxiliary,
    dense,
    kl,
    policy_losses,
    ratios,
    sampling,
    selection,
    shaping,
    value_losses,
)
from assay.trainer.algos import (
    gae as gae_kernels,
)

Vector = Sequence[float]
Matrix = Sequence[Vector]
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def golden(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enters a function under its own name."""
    FUNCTIONS[function.__name__] = function
    return function


def tensor(values: Any) -> torch.Tensor:
    """float64, of any depth; None is a fault."""
    if isinstance(values, list | tuple):
        return torch.stack([tensor(value) for value in values]) if values else torch.zeros(0)
    return torch.tensor(float("nan") if values is None else values, dtype=torch.float64)


def row(values: Vector) -> torch.Tensor:
    """A batch of one row."""
    return tensor(values).unsqueeze(0)


@golden
def gae(
    rewards: Vector, values: Vector, lam: float, gamma: float = 1.0, bootstrap_value: float = 0.0
) -> Any:
    ones_BT = torch.ones(1, len(values))
    after_B = tensor([bootstrap_value])
    return gae_kernels.gae(
        row(rewards), row(values), ones_BT, gamma=gamma, lam=lam, bootstrap_B=after_B
    )[0]


@golden
def turn_independent_gae(
    rewards: Vector, values: Vector, mask: Vector, lam: float = 1.0, gamma: float = 1.0
) -> Any:
    return gae_kernels.gae(row(rewards), row(values), row(mask), gamma=gamma, lam=lam)[0]


@golden
def decoupled_gae(
    rewards: Vector, values: Vector, lam_actor: float, lam_critic: float, gamma: float = 1.0
) -> Any:
    ones_BT = torch.ones(1, len(values))
    both = gae_kernels.decoupled_gae(
        row(rewards), row(values), ones_BT, gamma=gamma, lam_actor=lam_actor, lam_critic=lam_critic
    )
    return [part[0] for part in both]


@golden
def egae_truncated(values: Vector, lam: float, gamma: float = 1.0) -> Any:
    ones_BT = torch.ones(1, len(values))
    truncated_B = torch.tensor([True])
    return gae_kernels.egae(
        torch.zeros(1, len(values)), row(values), ones_BT, truncated_B, gamma=gamma, lam=lam
    )[0]


@golden
def length_adaptive_lambda(length: float, alpha: float, floor: float = 0.0) -> Any:
    return gae_kernels.length_adaptive_lambda(tensor(length), alpha, floor=floor)


@golden
def explained_variance(values: Matrix, returns: Matrix, mask: Matrix) -> Any:
    return gae_kernels.explained_variance(tensor(values), tensor(returns), tensor(mask))


@golden
def group_advantage(rewards: Vector, eps: float, ddof: int = 1) -> Any:
    if ddof != 1:
        raise ValueError(f"the std of a group is the unbiased one, ddof = 1, not {ddof}")
    return adv.group_advantages(row(rewards), eps=eps)[0]


@golden
def dr_grpo_advantage(rewards: Vector) -> Any:
    return adv.group_advantages(row(rewards), scale="none")[0]


@golden
def rloo_advantage(rewards: Vector) -> Any:
    return adv.rloo_advantages(row(rewards))[0]


@golden
def role_advantage_normalisation(advantages: Matrix, mask: Matrix) -> Any:
    roles_BT = adv.turn_index(tensor(mask)) % 2
    return adv.standardise(tensor(advantages), tensor(mask), keys_BT=roles_BT)


@golden
def task_advantage_normalisation(advantages: Matrix, mask: Matrix, tasks: Sequence[int]) -> Any:
    tasks_B1 = torch.tensor(tasks).unsqueeze(1)
    return adv.standardise(tensor(advantages), tensor(mask), keys_BT=tasks_B1)


@golden
def sigma_filter(advantages: Matrix, mask: Matrix, sigmas: float) -> Any:
    return adv.within_sigmas(tensor(advantages), tensor(mask), sigmas)


@golden
def ppo_token_losses_dual_clip(
    *,
    logprobs: Matrix,
    old_logprobs: Matrix,
    advantages: Matrix,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
) -> Any:
    ratio_BT = ratios.log_ratio(tensor(logprobs), tensor(old_logprobs))
    return policy_losses.ppo_token_losses(
        ratio_BT, tensor(advantages), clip_low=eps_low, clip_high=eps_high, dual_clip=dual_clip
    ).losses_BT


@golden
def gspo_token_losses(
    *,
    logprobs: Matrix,
    old_logprobs: Matrix,
    mask: Matrix,
    advantages: Vector,
    eps_low: float,
    eps_high: float,
) -> Any:
    mask_BT = tensor(mask)
    ratio_BT = ratios.sequence_log_ratio(
        ratios.log_ratio(tensor(logprobs), tensor(old_logprobs)), mask_BT
    )
    advantages_B1 = tensor(advantages).unsqueeze(1)
    losses = policy_losses.ppo_token_losses(
        ratio_BT, advantages_B1, clip_low=eps_low, clip_high=eps_high
    )
    return losses.losses_BT * mask_BT


@golden
def cispo_token_losses(
    logprobs: Matrix, old_logprobs: Matrix, advantages: Matrix, eps_low: float, eps_high: float
) -> Any:
    logps_BT = tensor(logprobs)
    ratio_BT = ratios.log_ratio(logps_BT, tensor(old_logprobs))
    return policy_losses.cispo_token_losses(
        logps_BT, ratio_BT, tensor(advantages), clip_low=eps_low, clip_high=eps_high
    ).losses_BT


@golden
def decoupled_ppo_token_losses(
    *,
    logprobs: Matrix,
    proximal_logprobs: Matrix,
    behaviour_logprobs: Matrix,
    advantages: Matrix,
    eps: float,
    cap: float | None = None,
) -> Any:
    return policy_losses.decoupled_ppo_token_losses(
        tensor(logprobs),
        tensor(proximal_logprobs),
        tensor(behaviour_logprobs),
        tensor(advantages),
        clip_low=eps,
        clip_high=eps,
        cap=cap,
    ).losses_BT


@golden
def pre_clip_ratio(logprobs: Matrix, old_logprobs: Matrix, low: float, high: float) -> Any:
    difference_BT = tensor(logprobs) - tensor(old_logprobs)
    return ratios.pre_clip_log_ratio(difference_BT, low=low, high=high).exp()


@golden
def importance_weights(trainer: Matrix, sampler: Matrix, cap: float) -> Any:
    return ratios.truncated_importance_weights(tensor(trainer), tensor(sampler), cap=cap)


@golden
def aggregate_loss(losses: Matrix, mask: Matrix, mode: Any, max_length: int | None = None) -> Any:
    return aggregation.aggregate(tensor(losses), tensor(mask), mode, max_length=max_length)


@golden
def positive_example_lm_loss(logprobs: Matrix, mask: Matrix, correct: Vector) -> Any:
    return auxiliary.positive_lm_loss(tensor(logprobs), tensor(mask), tensor(correct))


@golden
def kl_estimate(logprobs: Vector, ref_logprobs: Vector, estimator: Any) -> Any:
    return kl.kl_token_losses(tensor(logprobs), tensor(ref_logprobs), estimator)


@golden
def mean_entropy(logits: Sequence[Matrix], mask: Matrix) -> Any:
    return aggregation.masked_mean(kl.token_entropies(tensor(logits)), tensor(mask))


@golden
def clipped_value_loss(values: Vector, old_values: Vector, returns: Vector, clip: float) -> Any:
    return value_losses.clipped_value_losses(
        tensor(values), tensor(old_values), tensor(returns), clip=clip
    )


@golden
def mse_value_loss(values: Vector, returns: Vector) -> Any:
    return value_losses.mse_value_losses(tensor(values), tensor(returns))


@golden
def hl_gauss(targets: Vector, low: float, high: float, bins: int, sigma_ratio: float) -> Any:
    return value_losses.ValueBins(low, high, bins).hl_gauss(tensor(targets), sigma_ratio)


@golden
def two_hot(targets: Vector, low: float, high: float, bins: int) -> Any:
    return value_losses.ValueBins(low, high, bins).two_hot(tensor(targets))


@golden
def histogram_cross_entropy(logits: Matrix, probabilities: Matrix) -> Any:
    bins = value_losses.ValueBins(0.0, 1.0, len(logits[0]))
    return bins.cross_entropy(tensor(logits), tensor(probabilities))


@golden
def soft_overlong(length: float, max_length: int, cache_length: int, factor: float = 1.0) -> Any:
    return shaping.soft_overlong(
        length, max_length=max_length, cache_length=cache_length, factor=factor
    )


@golden
def cosine_length_reward(
    *,
    correct: bool,
    length: float,
    max_length: int,
    correct_range: tuple[float, float],
    wrong_range: tuple[float, float],
    exceed: float,
    margin: int,
) -> Any:
    return shaping.cosine_length_reward(
        length,
        correct,
        max_length=max_length,
        correct_range=correct_range,
        wrong_range=wrong_range,
        exceed=exceed,
        margin=margin,
    )


@golden
def ngram_repetition_penalty(tokens: Sequence[int], n: int, max_penalty: float) -> Any:
    return shaping.ngram_repetition_penalty(tokens, n, max_penalty)


@golden
def process_advantages(
    step_rewards: Matrix, steps: Matrix, groups: Sequence[int], eps: float
) -> Any:
    return dense.dense_group_advantages(
        tensor(step_rewards), tensor(steps), torch.tensor(groups), eps=eps
    )


@golden
def tango_step_advantages(
    outcome_rewards: Vector, steps: Sequence[Sequence[tuple[int, int]]], alpha: float
) -> Any:
    """Each step is the place of its last token and its verdict; the answer has a number a step."""
    length = 1 + max(place for one in steps for place, _ in one)
    rewards_GT = torch.zeros(len(steps), length, dtype=torch.float64)
    steps_GT = torch.zeros(len(steps), length, dtype=torch.bool)
    for sample, one in enumerate(steps):
        for place, verdict in one:
            rewards_GT[sample, place] = verdict / len(one)
            steps_GT[sample, place] = True
    advantages_GT = dense.tango_step_advantages(
        tensor(outcome_rewards), rewards_GT, steps_GT, alpha=alpha
    )
    return [advantages_GT[sample][steps_GT[sample]] for sample in range(len(steps))]


@golden
def prm_dense_line_rewards(
    line_scores: Vector, passed: bool, lam_fail: float, lam_pass: float
) -> Any:
    return dense.prm_dense_line_rewards(
        tensor(line_scores), passed=passed, lam_fail=lam_fail, lam_pass=lam_pass
    )


@golden
def prm_prefix_search(line_count: int, largest_feasible_prefix: int) -> Any:
    return labels.search_prefix(line_count, lambda count: count <= largest_feasible_prefix)


@golden
def pag_turn_rewards(accuracies: Vector, judgements: Sequence[Verdict | None], alpha: float) -> Any:
    verdicts: list[Verdict] = [verdict or "unparsed" for verdict in judgements]
    rewards = turn_rewards(accuracies, verdicts, alpha)
    return [[("policy", "verifier")[turn % 2], reward] for turn, reward in enumerate(rewards)]


@golden
def debiased_win_probability(
    logit_a_forward: float, logit_b_forward: float, logit_a_reverse: float, logit_b_reverse: float
) -> Any:
    forward = numbers.sigmoid(logit_a_forward - logit_b_forward)
    reverse = numbers.sigmoid(logit_b_reverse - logit_a_reverse)
    return numbers.debias(numbers.on_grid(forward), numbers.on_grid(reverse))


@golden
def prof_filter(correct: Sequence[bool], prm_mean: Vector, keep: int) -> Any:
    return selection.prof_filter(correct, prm_mean, keep)


@golden
def pre_ppo_select(scores: Vector, domains: Sequence[str], fraction: float) -> Any:
    return selection.pre_ppo_select(scores, domains, fraction)


@golden
def lim_score(trajectory: Vector, average: Vector) -> Any:
    return selection.lim_score(tensor(trajectory), tensor(average))


@golden
def dump_domain_weights(mean_abs_advantage: Vector, counts: Vector, tau: float) -> Any:
    return selection.dump_domain_weights(tensor(mean_abs_advantage), tensor(counts), tau=tau)


@golden
def dads_domain_weights(mean_rewards: Vector, target: float, tau: float) -> Any:
    return selection.dads_domain_weights(tensor(mean_rewards), target=target, tau=tau)


@golden
def fire_first_token_probs(logits: Vector, temperature: float, top_k: int) -> Any:
    return sampling.fire_first_token_probs(tensor(logits), temperature=temperature, top_k=top_k)
