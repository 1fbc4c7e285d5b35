"""Methods of a formula or two, through the code that trains (see functions.py)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from assay.clients import Fault, Result
from assay.trainer.algos.dense import contributions as contributions_kernel
from assay.trainer.algos.mixtures import MixtureScore, fit_mixture
from assay.trainer.algos.value_losses import greedy_gaps
from assay.trainer.core.batch import Scored, critic_advantages, group_advantages
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.critic.conservative import GAPS, Conservative
from assay.trainer.methods.offline.mixing import MixedSource
from assay.trainer.methods.offline.settings import OfflineConfig
from assay.trainer.methods.progress.method import ProgressEstimate
from assay.trainer.methods.shaping.settings import ShapingConfig
from assay.trainer.methods.shaping.shape import progress_of, shape
from assay.trainer.methods.token_budget.budget import TokenBudget
from assay.trainer.recipes.reward_model.objectives import step_class_loss as step_class_loss_kernel
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.selection.declared import RecapConfig
from assay.trainer.selection.domains import Recap
from assay.trainer.selection.types import Seen
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.objective import AdvantageConfig, CriticConfig
from golden.batches import Vector, batch_of, judged, plain_rows, response, row, tensor
from golden.registry import golden


@golden(group_advantages)
def medium_difficulty(correct: Sequence[int | None]) -> Any:
    """The advantages of a prompt with the weight, over those without; its rewards just differ."""
    rewards_B = tensor([math.nan if one is None else n for n, one in enumerate(correct)])
    columns = {"rewards": rewards_B, "correct": torch.tensor([one == 1 for one in correct])}
    batch = batch_of(plain_rows(len(correct), 1), **columns)
    plain = group_advantages(batch, AdvantageConfig(scale="none"), len(correct))
    weighed = AdvantageConfig(scale="none", difficulty="medium")
    found = group_advantages(batch, weighed, len(correct)).sum(dim=1)
    place = int(plain.sum(dim=1).abs().argmax())
    return found[place] / plain[place, 0]


@golden(shape)
def concise_bonus(length: int, correct: bool, below: int, bonus: float) -> Any:
    config = ShapingConfig(concise_bonus=bonus, concise_below=below)
    return shape(response((0,) * length, judged(correct)), 0.0, config, length).reward


@golden(shape)
def calibrated_length_penalty(
    length: int, pass_rate: float, least: int, most: int, factor: float
) -> Any:
    config = ShapingConfig(budget_penalty=factor, budget_least=least, budget_most=most)
    return shape(response((0,) * length), 0.0, config, length, pass_rate=pass_rate).reward


@golden(progress_of)
def self_reference(
    responses: Sequence[Sequence[int]],
    rewards: Vector,
    correct: Sequence[bool],
    share: float,
    cuts: int,
) -> Any:
    group = [
        Scored(response(ids, judged(yes)), reward)
        for ids, reward, yes in zip(responses, rewards, correct, strict=True)
    ]
    return progress_of(group, ShapingConfig(progress=share, progress_cuts=cuts))


@golden(TokenBudget.left_out, TokenBudget.keep)
def token_budget(
    lengths: Sequence[int | None], group_size: int, prompts: int, tokens: int
) -> list[float]:
    keeper, steps = TokenBudget(tokens), []
    fresh = [
        tuple(_drawn(number, place, length) for place, length in enumerate(group))
        for number, group in enumerate(_pieces(lengths, group_size))
    ]
    while fresh or keeper.due():
        due = keeper.due()
        groups = [*due, *fresh[: prompts - len(due)]]
        fresh = fresh[prompts - len(due) :]
        keeper.left_out(groups)
        steps.append(keeper.metrics(0)["budget_fill"] * tokens)
        keeper.keep(groups)
    return steps


def _drawn(number: int, place: int, length: int | None) -> Rollout:
    """A response of its length; a fault without one."""
    request = Request(Draw(number, Problem(f"train-{number}", "", (), ""), (1,)), place)
    result = judged(False) if length else Result("", Fault("WORKER_DIED", "it died"))
    ids = (0,) * (length or 1)
    return Rollout(request, Response(ids, "", None, truncated=False), result, 0)


@golden(contributions_kernel)
def progress_contributions(estimates: Vector, step_ends: Sequence[int], reward: float) -> Any:
    return contributions_kernel(row(estimates), torch.tensor([step_ends]), tensor([reward]))[0]


@golden(ProgressEstimate.learn, ProgressEstimate.of)
def progress_estimates(
    states: Sequence[Sequence[Vector]], rewards: Vector, asked: Sequence[Vector], strength: float
) -> Any:
    estimator, every = (
        ProgressEstimate(len(rewards), strength),
        tensor([h for row in states for h in row]),
    )
    rows_N = torch.tensor([n for n, row in enumerate(states) for _ in row])
    estimator.learn(every, rows_N, tensor(rewards), torch.ones(len(rewards), dtype=torch.bool))
    return estimator.of(tensor(asked))


@golden(step_class_loss_kernel)
def step_class_loss(logits: Sequence[Vector], labels: Vector, weights: Vector) -> Any:
    return step_class_loss_kernel(tensor(logits), tensor(labels), tensor(weights), "two-hot")


@golden(greedy_gaps, Conservative.earned, critic_advantages)
def conservative_targets(
    steps: Sequence[tuple[Vector, int, float]],
    reward: float,
    alpha: float,
    gamma: float,
    lam: float,
) -> Any:
    logits, tokens, values = zip(*steps, strict=True)
    method = MethodSettings(
        advantage=AdvantageConfig(estimator="gae", gamma=gamma),
        critic=CriticConfig(conservative=alpha, lam=lam),
    )
    gaps_BT = greedy_gaps(tensor([logits]), torch.tensor([tokens]), temperature=alpha)
    own = {"rewards": tensor([reward]), "values": row(values), GAPS: gaps_BT}
    batch = batch_of(plain_rows(1, len(tokens)), **own)
    return critic_advantages(batch, method, [Conservative(Config(method=method))])[1][0]


class _Drawn:
    """A source whose steps are the policy's own, and nothing else."""

    def collect(self, policy_step: int, then: Any) -> Collected:
        del policy_step
        collected = Collected([], [])
        then(collected)
        return collected


@golden(MixedSource.collect)
def supervision_chance(
    norm: float, warmup_norm: float, gamma: float, kl: float, brake: float
) -> float:
    """After a supervised step of the warm-up, one of `norm`, and one of the policy's own."""
    config = Config(
        method=MethodSettings(
            offline=OfflineConfig(
                rows="x", mix="sasr", mix_warmup=1, mix_gamma=gamma, mix_brake=brake
            )
        )
    )
    state = SimpleNamespace(global_step=3, log_history=[{"grad_norm": 0.0, "kl": kl, "step": 3}])
    either: Any = _Drawn()
    source = MixedSource(either, either, config, SimpleNamespace(state=state))
    mixed = {"steps": 3, "supervised": False, "seen": 2, "warm": [warmup_norm], "norm": norm}
    source.restore({**mixed, "kl": 0.0})
    return source.collect(3).metrics["sft_chance"]


@golden(Recap.weights)
def recap_weights(mean_rewards: Sequence[Vector], decay: float, tau: float) -> Any:
    labels_D = [str(number) for number in range(len(mean_rewards[0]))]
    selector = Recap(RecapConfig(decay=decay, tau=tau, floor=0.0), labels_D, seed=0)
    for rewards in mean_rewards:
        selector.learn([Seen(place, (reward,)) for place, reward in enumerate(rewards)])
    return selector.weights().tolist()


@golden(fit_mixture, MixtureScore.of)
def mixture_scores(
    weights: Sequence[Vector],
    scores: Vector,
    asked: Sequence[Vector],
    quadratic: bool,
    strength: float,
) -> Any:
    form: Any = "quadratic" if quadratic else "linear"
    fitted = fit_mixture(np.array(weights), np.array(scores), form=form, strength=strength)
    return fitted.of(np.array(asked)).tolist()


def _pieces(values: Sequence[int | None], size: int) -> Iterator[tuple[int | None, ...]]:
    left = iter(values)
    while piece := tuple(islice(left, size)):
        yield piece
