"""Stepwise progress attribution (SPA-RL, arXiv 2505.20732): rewards of steps that sum to the whole.

    c_t = w * h_t + (R - sum over steps of w * h) / steps

h_t is the policy's hidden state at a step's last token, of length 1, with a constant beside it.

Differences:

1. The paper trains a model of its own once, on explored trajectories, by the squared error of the
   sum. Here w is the ridge regression over the latest responses; a step is estimated before its
   own outcome is learnt, and value pre-training teaches the estimate too. [derivation]
2. The second term makes sums exact: without a memory, or where it errs, R is divided evenly.
3. The paper's reward for grounded actions is not built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from assay.kit.errors import ConfigError
from assay.trainer.algos import packing
from assay.trainer.algos.dense import contributions, ridge
from assay.trainer.core.batch import Batch, Scored, filled
from assay.trainer.core.hooks import Hooks
from assay.trainer.critic.objective import model_inputs
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.rollouts.keepers import Keeper, Plain, Read
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.settings.config import Config

STEPS = "progress_ends"
"""(B, T) bool: last tokens of steps."""


class Progress(Hooks):
    """Steps earn by their progress."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        chosen = config.method.progress
        self._estimator = ProgressEstimate(chosen.memory, chosen.ridge)
        self._policy: Any = None
        self._ends: dict[int, bool] = {}
        self._states_NX = torch.zeros(0, 1)

    def check_processes(self, processes: int) -> None:
        """See Hooks."""
        if processes > 1:
            raise ConfigError(
                "method.progress.enabled = true needs a run of one process, and this one has "
                f"{processes}: its estimate is fitted to the responses of one; start it without a "
                "launcher"
            )

    def before_training(self, policy: LoadedPolicy) -> None:
        """See Hooks."""
        self._policy = policy

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks: the memory is part of a checkpoint."""
        return {"keepers": (self._estimator,)}

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks; adds `progress_ends` and reads the states there."""
        del collected
        ends = [self._steps_of(item) for item in scored]
        marked = {**batch, STEPS: filled(ends, False, torch.bool).to(batch["loss_mask"].device)}
        self._states_NX = self._states(marked)
        return marked

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """See Hooks: the same in all, on steps; then the estimate learns of it."""
        steps_BT, judged_B = batch[STEPS], ~batch["rewards"].isnan()
        totals_B = rewards_BT.sum(dim=1)
        estimates_BT = torch.zeros_like(rewards_BT)
        estimates_BT[steps_BT] = self._estimator.of(self._states_NX).to(rewards_BT.dtype)
        if bool(judged_B.any()):
            missed_B = (totals_B - estimates_BT.sum(dim=1))[judged_B]
            self.seen["progress_error"] = float(missed_B.square().mean())
            self.seen["progress_steps"] = float(steps_BT.sum(dim=1)[judged_B].float().mean())
        rows_N = steps_BT.nonzero()[:, 0]
        self._estimator.learn(self._states_NX, rows_N, totals_B, judged_B)
        return contributions(estimates_BT, steps_BT, totals_B)

    def _steps_of(self, item: Scored) -> list[bool]:
        """Which tokens end a step; the last one always does."""
        rollout, ids = item.rollout, item.rollout.response.ids
        ends = [False] * len(ids)
        if isinstance(rollout, Rollout) and rollout.acted is not None:
            for turn in rollout.acted.turns:
                ends[turn.end - 1] = True
            return ends if any(ends) else [True, *ends[1:]]
        ends = [self._ends_step(token) for token in ids]
        return [*ends[:-1], True]

    def _ends_step(self, token: int) -> bool:
        if token not in self._ends:
            text = self._policy.tokenizer.decode([token])
            self._ends[token] = self.config.method.progress.step_end in text
        return self._ends[token]

    @torch.no_grad()
    def _states(self, batch: Batch) -> torch.Tensor:
        """The policy's hidden states at the ends of steps, in their order, (N, X) of length 1."""
        model = self._policy.model
        causal = model.get_base_model() if hasattr(model, "get_base_model") else model
        number_BT = batch[STEPS].flatten().cumsum(0).view_as(batch[STEPS]) - 1
        optim, training = self.config.optim, model.training
        passes = packing.Packing(optim.micro_batch, optim.micro_batch_tokens).passes(batch)
        found: dict[int, torch.Tensor] = {}
        model.eval()
        for rows_N in passes:
            part = packing.cut(batch, rows_N)
            outputs = causal.base_model(**model_inputs(part), use_cache=False)
            laid = packing.laid(part)
            states_BTX = packing.of_responses(outputs.last_hidden_state, laid, part, 0)
            width = part[STEPS].shape[1]
            numbers = number_BT[rows_N, :width][part[STEPS]].tolist()
            found |= dict(zip(numbers, states_BTX[part[STEPS]].float(), strict=True))
        model.train(training)
        states_NX = torch.stack([found[number] for number in range(len(found))])
        return torch.nn.functional.normalize(states_NX, dim=1)


class ProgressEstimate(Keeper):
    """The progress of steps, fitted to the latest responses.

    Args:
        memory: responses that it is fitted to.
        strength: of the ridge.
    """

    name = "progress"

    def __init__(self, memory: int, strength: float) -> None:
        self._memory, self._strength = memory, strength
        self._sums_MX = torch.zeros(0, 0)
        self._earned_M = torch.zeros(0)

    def of(self, states_NX: torch.Tensor) -> torch.Tensor:
        """The estimated progress of each step, (N,); 0 before it has learnt."""
        if not len(self._earned_M):
            return states_NX.new_zeros(len(states_NX))
        weights_X = ridge(self._sums_MX, self._earned_M, self._strength)
        return (_with_constant(states_NX) @ weights_X.to(states_NX)).to(states_NX.dtype)

    def learn(
        self,
        states_NX: torch.Tensor,
        rows_N: torch.Tensor,
        totals_B: torch.Tensor,
        judged_B: torch.Tensor,
    ) -> None:
        """Remembers judged rows: the sum of their steps' states, and what they earned."""
        steps_NX = _with_constant(states_NX)
        sums_BX = steps_NX.new_zeros(len(totals_B), steps_NX.shape[1])
        sums_BX = sums_BX.index_add(0, rows_N, steps_NX)[judged_B].cpu().double()
        held = [self._sums_MX, sums_BX] if len(self._earned_M) else [sums_BX]
        self._sums_MX = torch.cat(held)[-self._memory :]
        totals = totals_B[judged_B].cpu().double()
        self._earned_M = torch.cat([self._earned_M.double(), totals])[-self._memory :]

    def state_dict(self, plain: Plain) -> dict[str, torch.Tensor]:
        """See Keeper: what it remembers."""
        del plain
        return {"sums": self._sums_MX, "earned": self._earned_M}

    def load_state_dict(self, state: Mapping[str, torch.Tensor], read: Read) -> None:
        """See Keeper."""
        del read
        self._sums_MX, self._earned_M = state["sums"], state["earned"]


def _with_constant(states_NX: torch.Tensor) -> torch.Tensor:
    return torch.cat([states_NX, torch.ones_like(states_NX[:, :1])], dim=1)
