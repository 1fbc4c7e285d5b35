"""From judged rollouts to a step's tensors: padding, rewards on tokens, advantages, masks. Pure.

A rollout without a judgement must leave the loss as if it had never been drawn. Its row stays in
the batch, so that every process computes equally much; it has no token in the loss mask, no reward,
and no part in any mean or deviation.

An unfinished response (T-PPO, arXiv 2506.15050) has no reward either, and is no fault: the tokens
that this step drew are in the loss, valued by the critic. Tokens of earlier steps are in the loss
of those steps alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from assay.trainer.algos import advantages as estimators
from assay.trainer.algos import difficulty, episodes, gae, kl
from assay.trainer.rollouts.types import (
    Collected,
    Group,
    Rollout,
    SlotRow,
    Unfinished,
    place,
)
from assay.trainer.settings.objective import AdvantageConfig, LossConfig
from assay.trainer.settings.registry import estimator_of, resolved

if TYPE_CHECKING:
    from assay.trainer.core.hooks import Hooks
    from assay.trainer.settings.config import MethodSettings

Batch = dict[str, torch.Tensor]
_NUMPY = {torch.long: np.int64, torch.float32: np.float32, torch.bool: np.bool_}


@dataclass(frozen=True, slots=True)
class Across:
    """The processes of a run, each with as many rows.

    Attributes:
        gather: the rows of all processes in order, padded with 0 to the longest where there is a
            second dimension.
        index: of this process.
    """

    gather: Callable[[torch.Tensor], torch.Tensor]
    index: int = 0

    def own(self, gathered: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """This process's part of gathered rows, as long as it was."""
        rows = like.shape[0]
        part = gathered[self.index * rows : (self.index + 1) * rows]
        return part[:, : like.shape[1]] if like.dim() > 1 else part


ALONE = Across(gather=lambda rows: rows)


@dataclass(frozen=True, slots=True)
class Scored:
    """A rollout with what trains.

    Attributes:
        reward: shaped; None for a fault or an unfinished response.
        in_loss: false where a part of the method leaves the response out.
        token_rewards: of the judgement's spans, one for each token; None without.
        ends: for each token, whether a span ends on it; None without.
        drawn: how many of the last tokens this step drew; None for all of them.
        weight: of its advantage, where its class has one.
        notes: measurements of methods, by their names, for the hook `mark`.
    """

    rollout: Rollout | Unfinished
    reward: float | None
    in_loss: bool = True
    token_rewards: Sequence[float] | None = None
    ends: Sequence[bool] | None = None
    drawn: int | None = None
    weight: float = 1.0
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unfinished(self) -> bool:
        """Whether the response goes on in the next step."""
        return isinstance(self.rollout, Unfinished)

    @property
    def trains(self) -> bool:
        """Whether the policy learns from the tokens that this step drew."""
        return self.in_loss and (self.unfinished or self.reward is not None)

    @property
    def correct(self) -> bool:
        """Whether the verdict is correct."""
        if isinstance(self.rollout, Unfinished):
            return False
        judgement = self.rollout.result.judgement
        return judgement is not None and judgement.verdict == "correct"


def scored_slots(
    slot_rows: Sequence[SlotRow], score: Callable[[Sequence[Group]], list[Scored]]
) -> list[Scored]:
    """A truncated rollout with what trains, in the order of slots.

    `score` shapes the rewards of finished responses; each is a group of its own.
    """
    finished = iter(score([(s.row,) for s in slot_rows if isinstance(s.row, Rollout)]))
    return [
        replace(
            next(finished) if isinstance(slot_row.row, Rollout) else Scored(slot_row.row, None),
            drawn=slot_row.drawn,
        )
        for slot_row in slot_rows
    ]


def without_left_out(scored: Sequence[Scored], collected: Collected) -> list[Scored]:
    """Takes rollouts that their source leaves out from the loss."""
    if not collected.left_out:
        return list(scored)
    return [
        replace(item, in_loss=item.in_loss and place(item.rollout) not in collected.left_out)
        for item in scored
    ]


def pad(scored: Sequence[Scored], *, pad_id: int, policy_step: int, device: torch.device) -> Batch:
    """The tensors of B rows, group after group, on `device`.

    `policy_step` is that of the weights that learn; responses of an earlier one are stale.

    Returns:
        `prompt_ids`, `prompt_mask` (B, P), padded on the left; `completion_ids`, `completion_mask`
        (B, T), padded on the right; `loss_mask` (B, T) bool; `rewards` (B,), NaN for a fault and
        where the response is not finished; `unfinished` (B,) bool; `drawn` (B, T) bool, tokens that
        this step drew; `token_rewards` (B, T) and `spans` (B, T) bool, where a span's reward lies;
        `sampler_logps` (B, T), NaN where unknown; `task` (B,), a number for each; `stale` and
        `correct` (B,) bool; `weights` (B,) where one is not 1. `own` (B, T) bool: tokens that the
        policy wrote, judged or not.
    """
    rows = [item.rollout for item in scored]
    prompts = [row.request.draw.prompt_ids for row in rows]
    responses = [row.response.ids for row in rows]
    unknown = float("nan")
    logps = [row.response.logprobs or [unknown] * len(row.response.ids) for row in rows]
    dense = [
        item.token_rewards or [0.0] * len(row.response.ids)
        for row, item in zip(rows, scored, strict=True)
    ]
    ends = [
        item.ends or [False] * len(row.response.ids) for row, item in zip(rows, scored, strict=True)
    ]
    completion_mask_BT = _lengths_mask([len(ids) for ids in responses])
    loss_B = torch.tensor([item.trains for item in scored])
    drawn_BT = _drawn_mask(completion_mask_BT, [item.drawn for item in scored])
    batch = {
        "prompt_ids": filled(prompts, pad_id, torch.long, left=True),
        "prompt_mask": _lengths_mask([len(ids) for ids in prompts]).flip(1),
        "completion_ids": filled(responses, pad_id, torch.long),
        "completion_mask": completion_mask_BT,
        "own": completion_mask_BT.bool(),
        "loss_mask": drawn_BT & loss_B.unsqueeze(1),
        "drawn": drawn_BT,
        "unfinished": torch.tensor([item.unfinished for item in scored]),
        "rewards": torch.tensor(
            [unknown if item.reward is None else item.reward for item in scored],
            dtype=torch.float32,
        ),
        "token_rewards": filled(dense, 0.0, torch.float32),
        "spans": filled(ends, False, torch.bool),
        "sampler_logps": filled(logps, unknown, torch.float32),
        "task": torch.tensor([task_number(row.request.draw.problem.task) for row in rows]),
        "stale": torch.tensor([row.policy_step != policy_step for row in rows]),
        "correct": torch.tensor([item.correct for item in scored]),
    }
    if any(item.weight != 1 for item in scored):
        batch["weights"] = torch.tensor([item.weight for item in scored], dtype=torch.float32)
    return {name: tensor.to(device) for name, tensor in batch.items()}


def own_tokens(item: Scored) -> list[bool]:
    """Which tokens of a response its turns hold; all where it has none."""
    row = item.rollout
    own = [not row.turns] * len(row.response.ids)
    for turn in row.turns:
        own[turn.start : turn.end] = [True] * (turn.end - turn.start)
    return own


def with_own(batch: Batch, scored: Sequence[Scored]) -> Batch:
    """A batch whose `own`, `loss_mask` and `value_mask` are without tokens between turns."""
    own_BT = filled([own_tokens(one) for one in scored], False, torch.bool)
    own_BT = own_BT.to(batch["rewards"].device)
    judged_B1 = (~batch["rewards"].isnan()).unsqueeze(1)
    return {
        **batch,
        "own": own_BT,
        "loss_mask": batch["loss_mask"] & own_BT,
        "value_mask": own_BT & judged_B1,
    }


def task_number(task: str) -> int:
    """The number of a task in a batch's `task`."""
    return zlib.crc32(task.encode())


def kl_coefficients(batch: Batch, config: LossConfig) -> float | torch.Tensor:
    """The weight of a token's KL: one number, or (B, 1) where tasks have their own.

    A coefficient for each kind of prompt is Seed1.5-VL's (arXiv 2505.07062).
    """
    if not config.kl_coef_by_task:
        return config.kl_coef
    coefs_B1 = torch.full_like(batch["task"], config.kl_coef, dtype=torch.float32).unsqueeze(1)
    for task, coef in config.kl_coef_by_task.items():
        coefs_B1[batch["task"] == task_number(task)] = coef
    return coefs_B1


def value_mask(batch: Batch) -> torch.Tensor:
    """Tokens whose value is trained: the policy's, where their reward is known; (B, T) bool."""
    if "value_mask" in batch:
        return batch["value_mask"]
    return batch["completion_mask"].bool() & (~batch["rewards"].isnan()).unsqueeze(1)


def filled(
    rows: Sequence[Sequence[float]], filler: float, dtype: torch.dtype, *, left: bool = False
) -> torch.Tensor:
    """Rows of any lengths as (B, longest), on the CPU."""
    width = max(map(len, rows))
    filled: np.ndarray[Any, Any] = np.full((len(rows), width), filler, dtype=_NUMPY[dtype])
    for number, row in enumerate(rows):
        if left:
            filled[number, width - len(row) :] = row
        else:
            filled[number, : len(row)] = row
    return torch.from_numpy(filled)


def _lengths_mask(lengths: Sequence[int]) -> torch.Tensor:
    lengths_B1 = torch.tensor(lengths).unsqueeze(1)
    return (torch.arange(max(lengths)) < lengths_B1).long()


def _drawn_mask(mask_BT: torch.Tensor, drawn: Sequence[int | None]) -> torch.Tensor:
    lengths: list[int] = mask_BT.sum(dim=1).tolist()
    earlier_B = torch.tensor(
        [0 if some is None else length - some for length, some in zip(lengths, drawn, strict=True)]
    )
    return mask_BT.bool() & (torch.arange(mask_BT.shape[1]) >= earlier_B.unsqueeze(1))


def old_logps(batch: Batch, computed_BT: torch.Tensor | None, *, decoupled: bool) -> torch.Tensor:
    """The log-probabilities that each token's ratio starts from, (B, T).

    Fresh tokens have those of the weights before the step: `computed_BT`, or NaN, which stands for
    "the weights of the very first pass". Stale ones have their sampler's, unless the objective is
    the decoupled one, whose proximal policy is the present.
    """
    sampler_BT = batch["sampler_logps"]
    base_BT = torch.full_like(sampler_BT, float("nan")) if computed_BT is None else computed_BT
    if decoupled:
        return base_BT
    stale_BT = batch["stale"].unsqueeze(1) & ~sampler_BT.isnan()
    return torch.where(stale_BT, sampler_BT, base_BT)


def group_advantages(
    batch: Batch,
    chosen: AdvantageConfig,
    group_size: int,
    across: Across = ALONE,
    *,
    hooks: Sequence[Hooks] = (),
    step: int = 0,
) -> torch.Tensor:
    """Advantages without a critic, shape (B, T).

    All tokens of a response have the same, unless the rollout or a hook knows more. `step` counts
    from 0.
    """
    estimator = estimator_of(chosen)
    if estimator.credit == "tokens":
        of_tokens: torch.Tensor = resolved(estimator.function)(batch)
        return of_tokens
    rewards_PG = across.gather(batch["rewards"]).view(-1, group_size)
    tasks_P = across.gather(batch["task"]).view(-1, group_size)[:, 0]
    estimate = partial(_estimated, chosen)
    units = next(filter(None, (hook.units(batch) for hook in reversed(hooks))), None)
    mask_BT = batch["completion_mask"]
    advantages_BT = torch.zeros_like(mask_BT, dtype=rewards_PG.dtype)
    if units is None or units.whole_weight:
        all_PG = estimate(rewards_PG, tasks_P=tasks_P)
        advantages_BT = across.own(all_PG.reshape(-1), batch["rewards"]).unsqueeze(1) * mask_BT
    if units is not None:
        all_BU = episodes.unit_advantages(
            across.gather(units.keys_BU),
            across.gather(units.values_BU),
            estimate,
            group_size=group_size,
            tasks_P=tasks_P,
        )
        of_tokens_BT = episodes.to_tokens(across.own(all_BU, units.keys_BU), units.unit_BT)
        advantages_BT = units.weight * of_tokens_BT + units.whole_weight * advantages_BT
    if chosen.difficulty != "none":
        correct_PG = across.gather(batch["correct"].to(rewards_PG.dtype)).view(-1, group_size)
        weights_PG = difficulty.weights(
            rewards_PG,
            correct_PG.bool(),
            tasks_P,
            form=chosen.difficulty,
            alpha=chosen.difficulty_alpha,
            gamma=chosen.difficulty_gamma,
        )
        weights_B = across.own(weights_PG.reshape(-1), batch["rewards"])
        advantages_BT = advantages_BT * weights_B.unsqueeze(1)
    for hook in hooks:
        advantages_BT = hook.credit(batch, advantages_BT, step)
    if "weights" in batch:
        advantages_BT = advantages_BT * batch["weights"].unsqueeze(1)
    return advantages_BT * batch["completion_mask"]


def _estimated(
    chosen: AdvantageConfig, values_PG: torch.Tensor, *, tasks_P: torch.Tensor
) -> torch.Tensor:
    """Advantages of samples that are compared with one another, (P, G)."""
    function = resolved(estimator_of(chosen).function)
    all_PG: torch.Tensor = function(values_PG, scale=chosen.scale, tasks_P=tasks_P)
    if chosen.negative == "success":
        all_PG = estimators.success_scaled(
            all_PG, values_PG, base=chosen.negative_base, slope=chosen.negative_slope
        )
    return all_PG


def refined(
    advantages_BT: torch.Tensor, batch: Batch, config: AdvantageConfig, across: Across = ALONE
) -> torch.Tensor:
    """Advantages whitened and freed of outliers, as configured.

    Statistics are over the tokens in the loss, of all processes.
    """
    if config.normalise == "none" and not config.max_sigma:
        return advantages_BT
    all_BT = across.gather(advantages_BT)
    mask_BT = across.gather(batch["loss_mask"].to(all_BT.dtype)).bool()
    if config.normalise != "none":
        keys_BT = None
        if config.normalise == "task":
            keys_BT = across.gather(batch["task"]).unsqueeze(1).expand_as(all_BT)
        elif config.normalise == "role":
            keys_BT = across.gather(batch["role"])
        all_BT = estimators.standardise(all_BT, mask_BT, keys_BT=keys_BT)
    if config.max_sigma:
        all_BT = estimators.within_sigmas(all_BT, mask_BT, config.max_sigma)
    return across.own(all_BT, advantages_BT)


def critic_advantages(
    batch: Batch, config: MethodSettings, hooks: Sequence[Hooks] = ()
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Generalised advantages (B, T), the critic's targets (B, T), and lambda of each response (B,).

    Unfinished responses have the advantages of EGAE, T-PPO (arXiv 2506.15050); their targets mean
    nothing. The batch has `values` (B, T), and `kl_logps` and `ref_logps` (B, T) where the KL is
    part of the reward.
    """
    settings = config.advantage
    rewards_BT = token_rewards(batch, config.loss, hooks)
    mask_BT = batch["own"]
    length_B = mask_BT.sum(dim=1)
    if settings.length_adaptive_alpha:
        lam_B = gae.length_adaptive_lambda(
            length_B, settings.length_adaptive_alpha, floor=settings.min_lam
        )
    else:
        lam_B = torch.full(
            length_B.shape, settings.lam, dtype=rewards_BT.dtype, device=rewards_BT.device
        )
    estimate: Callable[..., tuple[torch.Tensor, torch.Tensor]] = partial(
        gae.decoupled_gae,
        bootstrap_B=gae.boundary_values(batch["values"], mask_BT, batch["unfinished"]),
    )
    estimate = estimate_by(hooks, batch) or estimate
    advantages_BT, returns_BT = estimate(
        rewards_BT,
        batch["values"],
        mask_BT,
        gamma=settings.gamma,
        lam_actor=lam_B.to(rewards_BT.dtype),
        lam_critic=config.critic.lam,
    )
    return advantages_BT, returns_BT, lam_B


def estimate_by(
    hooks: Sequence[Hooks], batch: Batch
) -> Callable[..., tuple[torch.Tensor, torch.Tensor]] | None:
    """A method's replacement of algos.gae.decoupled_gae, if there is one; see Hooks.returns."""
    given = [hook.returns(batch) for hook in hooks]
    return next(filter(None, reversed(given)), None)


def token_rewards(
    batch: Batch, loss: LossConfig, hooks: Sequence[Hooks] = (), *, with_kl: bool = True
) -> torch.Tensor:
    """The reward of each token, (B, T).

    The response's is on its last token, or where a method puts it; less the KL where it is part of
    the reward. Faulted rows are 0 and in no loss; unfinished ones have what they earned so far.
    """
    mask_BT = batch["own"]
    places_T = torch.arange(mask_BT.shape[1], device=mask_BT.device)
    last_B = torch.where(mask_BT, places_T, 0).amax(dim=1)
    rewards_BT = torch.zeros_like(batch["token_rewards"])
    rewards_BT.scatter_(1, last_B.unsqueeze(1), batch["rewards"].nan_to_num(0.0).unsqueeze(1))
    for hook in hooks:
        rewards_BT = hook.earned(batch, rewards_BT)
    if with_kl and loss.kl_most and loss.kl_place == "reward":
        kl_BT = kl.kl_k1(batch["kl_logps"], batch["ref_logps"])
        if "kl_mask" in batch:
            kl_BT = torch.where(batch["kl_mask"], kl_BT, 0.0)
        rewards_BT = rewards_BT - kl_coefficients(batch, loss) * kl_BT
    known_B1 = (~batch["rewards"].isnan() | batch["unfinished"]).unsqueeze(1)
    return torch.where(known_B1 & mask_BT, rewards_BT, 0.0)
