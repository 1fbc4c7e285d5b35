"""A critic's targets by B-Coder's conservative Bellman operator (arXiv 2310.03173).

    Q(s, a) = A(s, a) + V(s),  A(s, a) = alpha (l(s, a) - max over b of l(s, b))        equation 7
    V learns r + gamma Q(s', a') - A(s, a),  a' the policy's likeliest token at s'      12, 14

l are the logits of a policy that stands still. A(s', a') is 0 there, so that V's target is the
usual one with -A(s, a) added to the reward of each token: what the policy would earn by its
likeliest tokens, learnt from whatever was written.

Differences:

1. The paper takes one step ahead; here `method.critic.lam` says how far (0 is the paper's).
   Whatever it is, V of a state settles at the same number: the mean, over what was written from
   there, of gamma^k (r - A) summed.
2. Value pre-training takes lambda 1, as it always does.
3. Of the paper's two stages this is the first, the one of the value head. Its second moves the
   policy's logits by the same error, with a loss on the advantages of human solutions and a
   cross-entropy; it is not built, and neither is the bound on V by the largest reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from assay.kit.errors import ConfigError
from assay.trainer.algos import packing
from assay.trainer.algos.value_losses import greedy_gaps
from assay.trainer.core.batch import Batch, Scored
from assay.trainer.core.hooks import Hooks
from assay.trainer.critic.objective import before_each_token, model_inputs
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.rollouts.types import Collected
from assay.trainer.settings.config import Config

GAPS = "greedy_gaps"
"""(B, T): -A(s, a) of each token."""


class Conservative(Hooks):
    """Tokens earn what they lost against the policy's likeliest ones."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._alpha = config.method.critic.conservative
        self._policy: Any = None

    def check_processes(self, processes: int) -> None:
        """See Hooks."""
        if self._alpha and processes > 1:
            raise ConfigError(
                f"method.critic.conservative = {self._alpha:g} needs a run of one process, and "
                f"this one has {processes}: each token's logits are read of whole weights; start "
                "it without a launcher"
            )

    def before_training(self, policy: LoadedPolicy) -> None:
        """See Hooks."""
        self._policy = policy

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks; adds `greedy_gaps`."""
        del scored, collected
        return {**batch, GAPS: self._gaps(batch)} if self._alpha else batch

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """See Hooks."""
        if not self._alpha:
            return rewards_BT
        gaps_BT, own_BT = batch[GAPS], batch["own"]
        self.seen["greedy_gap"] = float(gaps_BT.sum() / own_BT.sum().clamp(min=1))
        return rewards_BT + gaps_BT.to(rewards_BT.dtype)

    @torch.no_grad()
    def _gaps(self, batch: Batch) -> torch.Tensor:
        model, optim = self._policy.model, self.config.optim
        training = model.training
        model.eval()
        passes = packing.Packing(optim.micro_batch, optim.micro_batch_tokens).passes(batch)
        gaps_BT = packing.over_passes(batch, passes, self._gaps_of)
        model.train(training)
        return torch.where(batch["own"], gaps_BT, 0.0)

    def _gaps_of(self, rows: Batch) -> torch.Tensor:
        inputs = model_inputs(rows)
        logits_SLV = self._policy.model(**inputs, use_cache=False).logits[:, :-1]
        gaps_SL = greedy_gaps(logits_SLV, inputs["input_ids"][:, 1:], temperature=self._alpha)
        return before_each_token(pad(gaps_SL, (0, 1)), rows)
