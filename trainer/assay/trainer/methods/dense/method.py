"""The hooks of rewards within a response: spans on their tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from assay.clients import Fault
from assay.kit.reasons import Reason
from assay.trainer.algos.dense import dense_group_advantages
from assay.trainer.core.batch import Batch, Scored
from assay.trainer.core.hooks import Hooks
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.methods.dense.settings import DenseConfig
from assay.trainer.methods.dense.spans import span_tokens
from assay.trainer.rollouts.types import Rollout


class Dense(Hooks):
    """Steps earn where they end (DeepSeekMath, arXiv 2402.03300, section 4.1.3)."""

    _tokenizer: Any = None

    def before_training(self, policy: LoadedPolicy) -> None:
        """See Hooks."""
        self._tokenizer = policy.tokenizer

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """See Hooks."""
        dense = self.config.method.dense
        return [[with_spans(item, self._tokenizer, dense) for item in group] for group in groups]

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """See Hooks: `dense.weight` times the spans' rewards, beside the response's."""
        return rewards_BT + self.config.method.dense.weight * batch["token_rewards"]

    def credit(self, batch: Batch, advantages_BT: torch.Tensor, step: int) -> torch.Tensor:
        """See Hooks: adds, or mixes in, what a token's own and later steps earned."""
        dense, size = self.config.method.dense, self.config.rollout.group_size
        weight = self.seen["step_weight"] = dense.weight_at(step, self.config.run.steps)
        judged_B1 = (~batch["rewards"].isnan()).unsqueeze(1)
        rows = torch.arange(batch["rewards"].shape[0], device=batch["rewards"].device)
        dense_BT = dense_group_advantages(
            batch["token_rewards"], batch["spans"] & judged_B1, rows // size
        )
        outcome = 1 - weight if dense.mix == "interpolate" else 1.0
        return outcome * advantages_BT + weight * dense_BT


def with_spans(item: Scored, tokenizer: Any, config: DenseConfig) -> Scored:
    """A rollout with its spans' unweighted rewards on its tokens.

    A judgement whose spans do not fit the response becomes a fault.
    """
    rollout = item.rollout
    if not isinstance(rollout, Rollout):
        return item
    judgement, response = rollout.result.judgement, rollout.response
    if judgement is None or not judgement.spans:
        return item
    spans = judgement.spans
    try:
        places = span_tokens(spans, len(response.text), response.ids, tokenizer)
    except ValueError as error:
        fault = Fault(Reason.INTERNAL.value, f"{judgement.verifier}: {error}", "INTERNAL")
        return Scored(replace(rollout, result=replace(rollout.result, outcome=fault)), None)
    rewards_T, ends_T = [0.0] * len(response.ids), [False] * len(response.ids)
    share = config.correct_share if judgement.verdict == "correct" else 1.0
    for span, where in zip(spans, places, strict=True):
        rewards_T[where] += share * span.reward / (len(spans) if config.normalise else 1)
        ends_T[where] = True
    return replace(item, token_rewards=rewards_T, ends=ends_T)
