"""What each name of a golden file stands for: its inputs, by name, to the code that trains.

`@golden(road, ...)` enters an adapter under its own name, with what a run calls for the same: the
adapter sets the inputs as a small batch with settings before it. A test holds that the rows of
own.json come through every road that is named here.

A kernel of algos/ is a road of its own where the whole one cannot express a row:

gae                      a bootstrap value: a run has none but that of an unfinished response
cosine_length_reward     a length within the margin: a run's margin is 0
prof_filter              groups that are all right or all wrong, which a run leaves whole
pre_ppo_select           the order of the places: a run draws the selected in the order of the data
dump_domain_weights      means of advantages: a run measures them on the rewards of its groups
histogram_cross_entropy  any histogram: a run makes its own of a return

An input that a function does not know is an error, as is a function that is not here, and a number
that is fixed in a run and another in the row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch

from assay.clients import Judgement
from assay.clients.judging.verdicts import Verdict
from assay.genrm.judges import numbers
from assay.genrm.steps import labels
from assay.kit.judgements import Appeal, Hearing
from assay.trainer.algos.advantages import TRL_EPS
from assay.trainer.algos.dense import PAPER_EPS
from assay.trainer.algos.gae import decoupled_gae as gae_kernel
from assay.trainer.algos.selection import dump_domain_weights as dump_kernel
from assay.trainer.algos.selection import pre_ppo_select as pre_ppo_kernel
from assay.trainer.algos.selection import prof_filter as prof_kernel
from assay.trainer.algos.shaping import cosine_length_reward as cosine_kernel
from assay.trainer.algos.value_losses import SIGMA_RATIO, ValueBins
from assay.trainer.core.batch import (
    critic_advantages,
    group_advantages,
    refined,
    token_rewards,
)
from assay.trainer.critic.pretraining import measure
from assay.trainer.engines.seeded import draw_first
from assay.trainer.methods.dense.settings import DenseConfig
from assay.trainer.methods.filter.filters import filtered
from assay.trainer.methods.filter.settings import FilterConfig
from assay.trainer.methods.noise.method import Rates
from assay.trainer.methods.noise.settings import NoiseConfig
from assay.trainer.methods.shaping.settings import ShapingConfig
from assay.trainer.methods.shaping.shape import shape
from assay.trainer.methods.turns.credit import rewards_of
from assay.trainer.methods.turns.settings import TurnsConfig
from assay.trainer.selection.declared import DadsConfig
from assay.trainer.selection.domains import Dads
from assay.trainer.selection.subsets import limr_scores
from assay.trainer.selection.types import Seen
from assay.trainer.settings.config import MethodSettings
from assay.trainer.settings.objective import AdvantageConfig, CriticConfig, LossConfig
from golden import contamination as contamination  # noqa: PLC0414  # enters its own
from golden import sampled as sampled  # noqa: PLC0414  # enters its own
from golden import small as small  # noqa: PLC0414  # enters its own
from golden import stored as stored  # noqa: PLC0414  # the same
from golden.batches import (
    DIALOGUES,
    Matrix,
    Vector,
    batch_of,
    dialogue,
    hooks,
    judged,
    one_step,
    plain_rows,
    response,
    row,
    tensor,
    turn,
    unfinished_row,
    with_judged_spans,
)
from golden.losses import (
    PolicyTrainer,
    entropies_of,
    histograms,
    loss,
    policy_loss,
    token_losses,
    value_loss,
    value_token_loss,
)
from golden.registry import FUNCTIONS as FUNCTIONS  # noqa: PLC0414
from golden.registry import ROADS as ROADS  # noqa: PLC0414
from golden.registry import fixed, golden

WIDE_CLIP = 1e9
"""A range of ratios that clips none."""


# Advantages.


@golden(critic_advantages, gae_kernel)
def gae(
    rewards: Vector, values: Vector, lam: float, gamma: float = 1.0, bootstrap_value: float = 0.0
) -> Any:
    if bootstrap_value:
        ones_BT, after_B = torch.ones(1, len(values)), tensor([bootstrap_value])
        return gae_kernel(
            row(rewards), row(values), ones_BT, gamma=gamma, lam_actor=lam, bootstrap_B=after_B
        )[0][0]
    return decoupled_gae(rewards, values, lam, 1.0, gamma)[0]


@golden(critic_advantages)
def decoupled_gae(
    rewards: Vector, values: Vector, lam_actor: float, lam_critic: float, gamma: float = 1.0
) -> Any:
    batch = batch_of(plain_rows(1, len(values)), token_rewards=row(rewards), values=row(values))
    config = MethodSettings(
        advantage=AdvantageConfig(estimator="gae", lam=lam_actor, gamma=gamma),
        critic=CriticConfig(lam=lam_critic),
    )
    steps_earn = hooks(dense=DenseConfig(weight=1.0))
    advantages_BT, returns_BT, _ = critic_advantages(batch, config, steps_earn)
    return [advantages_BT[0], returns_BT[0]]


@golden(critic_advantages)
def egae_truncated(values: Vector, lam: float, gamma: float = 1.0) -> Any:
    batch = batch_of([unfinished_row(len(values))], values=row(values))
    config = MethodSettings(advantage=AdvantageConfig(estimator="gae", lam=lam, gamma=gamma))
    return critic_advantages(batch, config)[0][0]


@golden(critic_advantages)
def turn_independent_gae(
    rewards: Vector, values: Vector, mask: Vector, lam: float = 1.0, gamma: float = 1.0
) -> Any:
    on = hooks(turns=DIALOGUES)
    batch = batch_of([dialogue(mask)], on, turn_rewards=row(rewards), values=row(values))
    config = MethodSettings(advantage=AdvantageConfig(estimator="gae", lam=lam, gamma=gamma))
    return critic_advantages(batch, config, on)[0][0]


@golden(critic_advantages)
def length_adaptive_lambda(length: int, alpha: float, floor: float = 0.0) -> Any:
    batch = batch_of(plain_rows(1, length), values=torch.zeros(1, length).double())
    chosen = AdvantageConfig(estimator="gae", length_adaptive_alpha=alpha, min_lam=floor)
    return critic_advantages(batch, MethodSettings(advantage=chosen))[2][0]


@golden(measure)
def explained_variance(values: Matrix, returns: Matrix, mask: Matrix) -> Any:
    alone = SimpleNamespace(gather=lambda x: x, pad_across_processes=lambda x, dim: x)
    return measure(tensor(values), tensor(returns), tensor(mask), alone).explained_variance


@golden(group_advantages)
def group_advantage(rewards: Sequence[float | None], eps: float, ddof: int = 1) -> Any:
    """In units in which the run's eps is the row's: (c A) / (c std + eps) = A / (std + eps / c)."""
    fixed("ddof, of the unbiased deviation,", ddof, 1)
    return of_group(tensor(rewards) * (TRL_EPS / eps), AdvantageConfig())


@golden(group_advantages)
def dr_grpo_advantage(rewards: Sequence[float | None]) -> Any:
    return of_group(tensor(rewards), AdvantageConfig(scale="none"))


@golden(group_advantages)
def rloo_advantage(rewards: Sequence[float | None]) -> Any:
    return of_group(tensor(rewards), AdvantageConfig(estimator="rloo", scale="none"))


def of_group(rewards_B: torch.Tensor, chosen: AdvantageConfig) -> torch.Tensor:
    """Advantages of responses to one prompt."""
    size = len(rewards_B)
    batch = batch_of(plain_rows(size, 1), rewards=rewards_B)
    return group_advantages(batch, chosen, size)[:, 0]


@golden(refined)
def role_advantage_normalisation(advantages: Matrix, mask: Matrix) -> Any:
    batch = batch_of([dialogue(own) for own in mask], hooks(turns=DIALOGUES))
    return refined(tensor(advantages), batch, AdvantageConfig(normalise="role"))


@golden(refined)
def task_advantage_normalisation(advantages: Matrix, mask: Matrix, tasks: Sequence[int]) -> Any:
    batch = masked_batch(mask, task=torch.tensor(tasks))
    return refined(tensor(advantages), batch, AdvantageConfig(normalise="task"))


@golden(refined)
def sigma_filter(advantages: Matrix, mask: Matrix, sigmas: float) -> Any:
    return refined(tensor(advantages), masked_batch(mask), AdvantageConfig(max_sigma=sigmas))


def masked_batch(mask: Matrix, **columns: torch.Tensor) -> dict[str, torch.Tensor]:
    """Responses of which some tokens are in the loss."""
    rows = plain_rows(len(mask), len(mask[0]))
    return batch_of(rows, loss_mask=tensor(mask).bool(), **columns)


# Rewards within a response.


@golden(group_advantages)
def process_advantages(
    step_rewards: Matrix, steps: Matrix, groups: Sequence[int], eps: float
) -> Any:
    """The outcomes are all alike, so that steps alone count; faults make the groups equally large.

    In units in which the run's eps is the row's, as for `group_advantage`.
    """
    size = max(map(groups.count, groups))
    places: list[int | None] = []
    for group in sorted(set(groups)):
        own = [place for place, number in enumerate(groups) if number == group]
        places += [*own, *[None] * (size - len(own))]
    none = [0.0] * len(steps[0])
    batch = batch_of(
        plain_rows(len(places), len(none)),
        rewards=tensor([None if place is None else 0.0 for place in places]),
        token_rewards=tensor([none if n is None else step_rewards[n] for n in places])
        * (PAPER_EPS / eps),
        spans=tensor([none if n is None else steps[n] for n in places]).bool(),
    )
    on = hooks(size, dense=DenseConfig(weight=1.0))
    found = group_advantages(batch, AdvantageConfig(), size, hooks=on)
    return [found[places.index(place)] for place in range(len(groups))]


@golden(group_advantages)
def tango_step_advantages(
    outcome_rewards: Vector, steps: Sequence[Sequence[tuple[int, int]]], alpha: float
) -> Any:
    """Each step is the place of its last token and its verdict; the answer has a number a step.

    Outcomes are in hundredths, in which the run's eps of 1e-4 is the 1e-6 of the formula.
    """
    dense = DenseConfig(weight=alpha, mix="interpolate")
    length = 1 + max(place for one in steps for place, _ in one)
    rows = [
        with_judged_spans(
            length,
            [place + 1 for place, _ in one],
            [float(verdict) for _, verdict in one],
            dense,
            correct=outcome > 0,
        )
        for outcome, one in zip(outcome_rewards, steps, strict=True)
    ]
    batch = batch_of(rows, rewards=tensor(outcome_rewards) * (TRL_EPS / PAPER_EPS))
    on = hooks(len(rows), dense=dense)
    found = group_advantages(batch, AdvantageConfig(), len(rows), hooks=on)
    return [found[number, [place for place, _ in one]] for number, one in enumerate(steps)]


@golden(token_rewards)
def prm_dense_line_rewards(
    line_scores: Vector, passed: bool, lam_fail: float, lam_pass: float
) -> Any:
    """Lines of one character: every token is the end of one."""
    dense = DenseConfig(weight=lam_fail, correct_share=lam_pass / lam_fail)
    length = len(line_scores)
    rows = [with_judged_spans(length, range(1, length + 1), line_scores, dense, correct=passed)]
    return token_rewards(batch_of(rows), LossConfig(), hooks(dense=dense))[0]


@golden(rewards_of)
def pag_turn_rewards(
    accuracies: Sequence[int], judgements: Sequence[Verdict | None], alpha: float
) -> Any:
    turns = [
        turn(
            number,
            number,
            number + 1,
            correct=bool(accuracies[number // 2]),
            verdict=(judgements[number // 2] or "unparsed") if number % 2 else "unparsed",
        )
        for number in range(len(accuracies) + len(judgements))
    ]
    earned = rewards_of(turns, TurnsConfig(mode="verify", shaping=alpha))
    return [[("policy", "verifier")[number % 2], one] for number, one in enumerate(earned)]


# The policy's loss.


@golden(policy_loss)
def ppo_token_losses_dual_clip(
    *,
    logprobs: Matrix,
    old_logprobs: Matrix,
    advantages: Matrix,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
) -> Any:
    config = LossConfig(clip_low=eps_low, clip_high=eps_high, dual_clip=dual_clip or 0.0)
    return token_losses(logprobs, tensor(advantages), config, old_logps=tensor(old_logprobs))


@golden(policy_loss)
def gspo_token_losses(
    *,
    logprobs: Matrix,
    old_logprobs: Matrix,
    mask: Matrix,
    advantages: Vector,
    eps_low: float,
    eps_high: float,
) -> Any:
    config = LossConfig(ratio="sequence", clip_low=eps_low, clip_high=eps_high)
    advantages_BT = tensor(advantages).unsqueeze(1).expand(tensor(mask).shape)
    return token_losses(logprobs, advantages_BT, config, mask, old_logps=tensor(old_logprobs))


@golden(policy_loss)
def cispo_token_losses(
    logprobs: Matrix, old_logprobs: Matrix, advantages: Matrix, eps_low: float, eps_high: float
) -> Any:
    config = LossConfig(objective="cispo", clip_low=eps_low, clip_high=eps_high)
    return token_losses(logprobs, tensor(advantages), config, old_logps=tensor(old_logprobs))


@golden(policy_loss)
def decoupled_ppo_token_losses(
    *,
    logprobs: Matrix,
    proximal_logprobs: Matrix,
    behaviour_logprobs: Matrix,
    advantages: Matrix,
    eps: float,
    cap: float | None = None,
) -> Any:
    config = LossConfig(
        importance_correction="decoupled",
        clip_low=eps,
        clip_high=eps,
        importance_cap=math.inf if cap is None else cap,
    )
    return token_losses(
        logprobs,
        tensor(advantages),
        config,
        old_logps=tensor(proximal_logprobs),
        sampler_logps=tensor(behaviour_logprobs),
    )


@golden(policy_loss)
def pre_clip_ratio(logprobs: Matrix, old_logprobs: Matrix, low: float, high: float) -> Any:
    """With an advantage of -1 and no other clip, the loss is the ratio."""
    fixed("low * high", low * high, 1.0)
    config = LossConfig(pre_clip=high, clip_low=WIDE_CLIP, clip_high=WIDE_CLIP)
    against_BT = -torch.ones_like(tensor(logprobs))
    return token_losses(logprobs, against_BT, config, old_logps=tensor(old_logprobs))


@golden(policy_loss)
def importance_weights(
    trainer: Matrix,
    sampler: Matrix,
    cap: float,
    low: float = 0.0,
    way: Any = "token-truncate",
) -> Any:
    """With an advantage of -1 and a ratio of 1, the loss is the weight."""
    config = LossConfig(importance_correction=way, importance_floor=low, importance_cap=cap)
    against_BT = -torch.ones_like(tensor(trainer))
    return token_losses(trainer, against_BT, config, sampler_logps=tensor(sampler))


@golden(policy_loss)
def aggregate_loss(losses: Matrix, mask: Matrix, mode: Any, max_length: int = 1) -> Any:
    """With a ratio of 1, the loss of a token is its advantage with the other sign."""
    advantages_BT = -tensor(losses)
    config = LossConfig(aggregation=mode)
    zeros = torch.zeros_like(advantages_BT).tolist()
    return loss(zeros, config, advantages=advantages_BT, mask=mask, max_length=max_length)


@golden(policy_loss)
def positive_example_lm_loss(logprobs: Matrix, mask: Matrix, correct: Vector) -> Any:
    config = LossConfig(positive_lm_coef=1.0)
    return loss(logprobs, config, mask=mask, correct=tensor(correct).bool())


@golden(policy_loss)
def kl_estimate(logprobs: Vector, ref_logprobs: Vector, estimator: Any) -> Any:
    config = LossConfig(kl_coef=1.0, kl_estimator=estimator)
    return [
        loss([[new]], config, ref_logps=tensor([[ref]]))
        for new, ref in zip(logprobs, ref_logprobs, strict=True)
    ]


@golden(PolicyTrainer._get_per_token_logps_and_entropies, policy_loss)
def mean_entropy(logits: Sequence[Matrix], mask: Matrix) -> Any:
    """The entropy bonus of a coefficient of 1, with the other sign."""
    zeros = torch.zeros_like(tensor(mask)).tolist()
    entropies_BT = entropies_of(tensor(logits))
    return -loss(zeros, LossConfig(entropy_coef=1.0), mask=mask, entropies=entropies_BT)


# The critic's loss.


@golden(value_loss)
def clipped_value_loss(values: Vector, old_values: Vector, returns: Vector, clip: float) -> Any:
    config = CriticConfig(loss="clipped", clip=clip)
    return [
        value_token_loss(tensor(value), old, target, config)
        for value, old, target in zip(values, old_values, returns, strict=True)
    ]


@golden(value_loss)
def mse_value_loss(values: Vector, returns: Vector) -> Any:
    config = CriticConfig(loss="mse")
    return [
        value_token_loss(tensor(value), 0.0, target, config)
        for value, target in zip(values, returns, strict=True)
    ]


@golden(value_loss)
def hl_gauss(targets: Vector, low: float, high: float, bins: int, sigma_ratio: float) -> Any:
    fixed("sigma_ratio", sigma_ratio, SIGMA_RATIO)
    return histograms(
        targets, CriticConfig(loss="hl-gauss", bins=bins, value_min=low, value_max=high)
    )


@golden(value_loss)
def two_hot(targets: Vector, low: float, high: float, bins: int) -> Any:
    return histograms(
        targets, CriticConfig(loss="two-hot", bins=bins, value_min=low, value_max=high)
    )


@golden(ValueBins.cross_entropy)
def histogram_cross_entropy(logits: Matrix, probabilities: Matrix) -> Any:
    bins = ValueBins(0.0, 1.0, len(logits[0]))
    return bins.cross_entropy(tensor(logits), tensor(probabilities))


# Shaping.


@golden(shape)
def soft_overlong(length: int, max_length: int, cache_length: int, factor: float = 1.0) -> Any:
    config = ShapingConfig(overlong="soft", overlong_cache=cache_length, overlong_factor=factor)
    return shape(response((0,) * length), 0.0, config, max_length).reward


@golden(Rates.corrected)
def backward_reward(verdict: int, false_positive: float, false_negative: float) -> float:
    rates = {"false_positive": false_positive, "false_negative": false_negative}
    return Rates(NoiseConfig(correction="backward", **rates)).corrected(_verdict(verdict), "")


@golden(Rates.corrected)
def forward_weight(verdict: int, false_negative: float) -> float:
    chosen = NoiseConfig(correction="forward", false_negative=false_negative)
    return Rates(chosen).corrected(_verdict(verdict), "")


@golden(Rates.corrected)
def appealed_reward(first: int, second: int, probability: float) -> float:
    told = [Hearing("", "", _verdict(one).verdict, one) for one in (first, second)]
    asked = replace(_verdict(second), appeal=Appeal("", told[0], told[1], False, probability))
    return Rates(NoiseConfig(appeals=True)).corrected(asked, "")


def _verdict(right: int) -> Judgement:
    found = judged(bool(right)).judgement
    assert found is not None
    return found


@golden(shape, cosine_kernel)
def cosine_length_reward(
    *,
    correct: bool,
    length: int,
    max_length: int,
    correct_range: tuple[float, float],
    wrong_range: tuple[float, float],
    exceed: float,
    margin: int,
) -> Any:
    if length < max_length <= length + margin:
        return cosine_kernel(
            length,
            correct,
            max_length=max_length,
            correct_range=correct_range,
            wrong_range=wrong_range,
            exceed=exceed,
            margin=margin,
        )
    config = ShapingConfig(
        cosine=True, cosine_correct=correct_range, cosine_wrong=wrong_range, cosine_exceed=exceed
    )
    return shape(response((0,) * length, judged(correct)), 0.0, config, max_length).reward


@golden(shape)
def ngram_repetition_penalty(tokens: Sequence[int], n: int, max_penalty: float) -> Any:
    config = ShapingConfig(repetition_ngram=n, repetition_penalty=max_penalty)
    return shape(response(tokens), 0.0, config, len(tokens)).reward


# Selection and sampling.


@golden(filtered, prof_kernel)
def prof_filter(correct: Sequence[int], prm_mean: Vector, keep: int) -> Any:
    if len(set(map(bool, correct))) < 2 or not keep:
        return prof_kernel(list(map(bool, correct)), prm_mean, keep)
    group = [one_step(bool(yes), mean) for yes, mean in zip(correct, prm_mean, strict=True)]
    left = filtered([group], FilterConfig(prof="both", prof_keep=keep))
    return [
        [place for place, item in enumerate(left) if item.in_loss is stays]
        for stays in (True, False)
    ]


@golden(pre_ppo_kernel)
def pre_ppo_select(scores: Vector, domains: Sequence[str], fraction: float) -> Any:
    return pre_ppo_kernel(scores, domains, fraction)


@golden(limr_scores)
def lim_score(trajectory: Vector, average: Vector) -> Any:
    """Beside a second problem, with which the mean of both is the average."""
    other = [2 * mean - own for own, mean in zip(trajectory, average, strict=True)]
    return limr_scores({"own": trajectory, "other": other})["own"]


@golden(dump_kernel)
def dump_domain_weights(mean_abs_advantage: Vector, counts: Vector, tau: float) -> Any:
    return dump_kernel(tensor(mean_abs_advantage), tensor(counts), tau=tau)


@golden(Dads.weights)
def dads_domain_weights(mean_rewards: Vector, target: float, tau: float) -> Any:
    labels_D = [str(number) for number in range(len(mean_rewards))]
    selector = Dads(DadsConfig(target=target, tau=tau), labels_D, seed=0)
    selector.learn([Seen(place, (reward,)) for place, reward in enumerate(mean_rewards)])
    return selector.weights().tolist()


@golden(draw_first)
def fire_first_token_probs(logits: Vector, temperature: float, top_k: int) -> Any:
    """Of each token that is drawn at all by numbers close together; others have none."""
    uniforms_B = torch.arange(1000).double() / 1000
    logits_BV = row(logits).expand(len(uniforms_B), -1)
    tokens_B, logps_B = draw_first(logits_BV, uniforms_B, temperature=temperature, top_k=top_k)
    return torch.zeros(len(logits)).scatter(0, tokens_B, logps_B.exp())


# Beside the trainer.


@golden(labels.search_prefix)
def prm_prefix_search(line_count: int, largest_feasible_prefix: int) -> Any:
    return labels.search_prefix(line_count, lambda lines: lines <= largest_feasible_prefix)


@golden(numbers.debias)
def debiased_win_probability(
    logit_a_forward: float, logit_b_forward: float, logit_a_reverse: float, logit_b_reverse: float
) -> Any:
    forward = numbers.sigmoid(logit_a_forward - logit_b_forward)
    reverse = numbers.sigmoid(logit_b_reverse - logit_a_reverse)
    return numbers.debias(numbers.on_grid(forward), numbers.on_grid(reverse))
