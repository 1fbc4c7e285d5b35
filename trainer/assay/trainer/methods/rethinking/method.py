"""The hooks of forced rethinking."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from assay.trainer.algos.turns import turn_gae
from assay.trainer.core.batch import Batch, Scored, filled
from assay.trainer.core.evaluation import end_token_ids
from assay.trainer.core.hooks import Hooks
from assay.trainer.core.rewards import Judge
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.methods.rethinking.talk import Rethinking
from assay.trainer.rollouts.exchange import Talk
from assay.trainer.rollouts.types import Collected, Remote, Rollout


class Rethink(Hooks):
    """Some responses go on behind their end (VL-Rethinker, arXiv 2504.08837)."""

    _talk: Rethinking | None = None

    def needs_single_judgements(self) -> str:
        """See Hooks."""
        return (
            "method.rethinking has attempts judged by themselves; set method.rethinking.share = 0"
        )

    def talk(self, policy: LoadedPolicy, judge: Judge) -> Talk:
        """See Hooks."""
        del judge
        tokenizer, chosen = policy.tokenizer, self.config.method.rethinking
        self._talk = Rethinking(
            chosen,
            [
                tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
                for text in chosen.triggers
            ],
            lambda ids: str(tokenizer.decode(ids, skip_special_tokens=True)),
            ends=end_token_ids(policy),
            most=self.config.rollout.max_new_tokens,
            seed=self.config.run.seed,
        )
        return self._talk

    def measured(self, collected: Collected) -> Mapping[str, float]:
        """See Hooks."""
        told = [
            one.facts if isinstance(one, Remote) else self._talk.facts(one)
            for one in collected.judged
            if self._talk is not None
        ]
        return rethinking_metrics(told)

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks: the trigger's tokens leave `own`, `loss_mask` and what a critic learns."""
        del collected
        own_BT = filled([own_tokens(one) for one in scored], False, torch.bool)
        own_BT = own_BT.to(batch["rewards"].device)
        judged_B1 = (~batch["rewards"].isnan()).unsqueeze(1)
        return {
            **batch,
            "own": own_BT,
            "loss_mask": batch["loss_mask"] & own_BT,
            "value_mask": own_BT & judged_B1,
        }

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """See Hooks: the response's reward is on its last token, behind the trigger."""
        own_BT, moved_BT = batch["own"], rewards_BT.clone()
        reward_B1 = batch["rewards"].nan_to_num(0.0).unsqueeze(1).to(rewards_BT.dtype)
        places_T = torch.arange(own_BT.shape[1], device=own_BT.device)
        last_B1 = torch.where(own_BT, places_T, 0).amax(dim=1, keepdim=True)
        moved_BT.scatter_add_(1, own_BT.sum(dim=1, keepdim=True) - 1, -reward_B1)
        return moved_BT.scatter_add_(1, last_B1, reward_B1)

    def returns(self, batch: Batch) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
        """See Hooks: over the trigger, as if it did not stand there."""
        del batch
        return partial(turn_gae, independent=False)


def own_tokens(item: Scored) -> list[bool]:
    """Which tokens of a response the policy wrote."""
    row = item.rollout
    own = [True] * len(row.response.ids)
    if isinstance(row, Rollout) and row.turns:
        first, second = row.turns
        own[first.end : second.start] = [False] * (second.start - first.end)
    return own


def rethinking_metrics(facts: Sequence[Sequence[float]]) -> dict[str, float]:
    """Metrics from `Rethinking.facts` of a step's responses, as far as they are of any."""
    if not facts:
        return {}
    rows = np.array(facts, np.float64)
    tried = rows[rows[:, 0] > 0]
    kept, before, after = tried[:, 1], tried[:, 2], tried[:, 3]
    found = {
        "rethinking_tried": len(tried) / len(rows),
        "rethinking_kept": _share(kept),
        "rethinking_corrected": _share(after[before == 0]),
        "rethinking_lost": _share(1 - after[before > 0]),
    }
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _share(flags: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(flags.mean()) if len(flags) else math.nan
