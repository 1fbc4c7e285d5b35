"""The hooks of forced rethinking."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from assay.trainer.algos.turns import turn_gae
from assay.trainer.core.batch import Batch, Scored, with_own
from assay.trainer.core.evaluation import end_token_ids
from assay.trainer.core.hooks import Hooks
from assay.trainer.core.rewards import Judge
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.methods.rethinking.talk import Rethinking
from assay.trainer.rollouts.exchange import Talk
from assay.trainer.rollouts.types import Collected, Remote


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
        return with_own(batch, scored)

    def returns(self, batch: Batch) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
        """See Hooks: over the trigger, as if it did not stand there."""
        del batch
        return partial(turn_gae, independent=False)


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
