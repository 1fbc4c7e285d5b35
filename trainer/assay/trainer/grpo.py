"""TRL's GRPOTrainer, less its trust in every reward; and with checkpoints to rely on.

Faults stay out of the loss, checkpoints appear whole, and a resumed run repeats exactly.

Written against trl 1.16.0; tests/contract/test_trl_surface.py pins what is overridden here. The
methods, and why:

    _calculate_rewards              keep the rewards, NaN where there is no judgement
    _generate_and_score_completions our advantages, and the loss mask without the faulted samples
    _compute_loss                   where the loss is a mean over rows, count the judged rows only
    _save_checkpoint                write beside, then publish by one rename; add TRL's buffers
    _load_optimizer_and_scheduler   read those back
    create_model_card               none: a checkpoint is not a publication

TRL by itself gives a sample without a reward the advantage 0 and leaves it out of its group's mean,
but its tokens stay in the loss's normaliser and in the KL term.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from trl.trainer.grpo_trainer import GRPOTrainer

from assay.clients.runs import checkpoints
from assay.trainer.algos.advantages import Scale, group_advantages
from assay.trainer.algos.faults import mask_faults

ROLLOUT_STATE = "rollout_state.pt"
_ROW_MEAN_LOSSES = frozenset({"grpo", "dr_grpo"})


class FaultAwareGRPOTrainer(GRPOTrainer):
    """GRPO on judged samples only.

    Args:
        advantage_scale: what centred rewards are divided by.
        *args: as for GRPOTrainer; exactly one reward function.
        **kwargs: as for GRPOTrainer.

    Attributes:
        judged: samples with a judgement in the latest rollout, over all processes.
        signal_ratio: share of the latest rollout's groups with an advantage other than 0.
        rollout_s: seconds that the latest rollout took: generation and reference log-probabilities,
            without scoring.
        score_s: seconds that the latest rollout waited for its rewards.
    """

    def __init__(self, *args: Any, advantage_scale: Scale = "group", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.advantage_scale: Scale = advantage_scale
        self.judged = 0
        self.signal_ratio = 0.0
        self.rollout_s = 0.0
        self.score_s = 0.0
        self._rewards_N = torch.empty(0)

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        started = time.perf_counter()
        rewards: torch.Tensor = super()._calculate_rewards(
            inputs, prompts, completions, completion_ids_list
        )
        self.score_s = time.perf_counter() - started
        self._rewards_N = rewards[:, 0]  # N rows over all processes, in order
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        started = time.perf_counter()
        # one context around all tokens: the weights are cast once, and not for every token
        with self.accelerator.autocast():
            batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self.rollout_s = time.perf_counter() - started - self.score_s
        judged_N = ~torch.isnan(self._rewards_N)
        group_size = int(self.num_generations or 0)
        advantages_PG = group_advantages(
            self._rewards_N.view(-1, group_size), scale=self.advantage_scale
        )
        self.judged = int(judged_N.sum())
        self.signal_ratio = (advantages_PG != 0).any(dim=1).float().mean().item()
        rows = batch["completion_mask"].shape[0]
        mine = slice(
            self.accelerator.process_index * rows, (self.accelerator.process_index + 1) * rows
        )
        batch["advantages"] = advantages_PG.view(-1)[mine]
        if not bool(judged_N.all()):
            batch = mask_faults(batch, judged_N[mine])
            batch["num_items_in_batch"] = self.accelerator.gather(batch["num_items_in_batch"]).sum()
            batch["row_scale"] = torch.tensor(
                judged_N.numel() / max(1, self.judged), device=self.accelerator.device
            )
        return batch

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss: torch.Tensor = super()._compute_loss(model, inputs)
        if self.loss_type in _ROW_MEAN_LOSSES and "row_scale" in inputs:
            return loss * inputs["row_scale"]
        return loss

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        final = Path(str(self.args.output_dir))
        with checkpoints.staged(final, self.state.global_step) as staging:
            self.args.output_dir = str(staging)
            try:
                super()._save_checkpoint(model, trial)
            finally:
                self.args.output_dir = str(final)
            state = {
                "micro_step": self._step,
                "buffered": self._buffered_inputs,
                "judged": self.judged,
            }
            torch.save(state, staging / checkpoints.name_of(self.state.global_step) / ROLLOUT_STATE)

    def _load_optimizer_and_scheduler(self, checkpoint: Any) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            path = Path(checkpoint) / ROLLOUT_STATE
            state = torch.load(path, map_location=self.accelerator.device, weights_only=True)
            self._step, self._buffered_inputs, self.judged = (
                state["micro_step"],
                state["buffered"],
                state["judged"],
            )

    def create_model_card(self, *_args: Any, **_kwargs: Any) -> None:
        """Writes nothing."""
