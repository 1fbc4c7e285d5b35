"""verl: its reward function, and its own `compute_advantage`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from assay.lab.steps import Groups, LabRow, coefficients, tokens_of


@dataclass
class Verl:
    """One batch through the function by its path, and verl's estimator.

    Attributes:
        estimator: `algorithm.adv_estimator`.
        policy: for faults.
    """

    title: str = "verl, raise"
    default: bool = True
    estimator: str = "grpo"
    policy: str = "raise"
    compared = "advantages"
    read = (
        "that the V1 trainer goes on with the rest of a group (run in tests/adapters/test_verl.py)"
    )

    def version(self) -> str:
        """See Contestant."""
        import verl.trainer.ppo.ray_trainer  # noqa: F401

        return f"verl {version('verl')}"

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; a row whose function raises is not in the batch."""
        from assay.clients.trainers.common.faults import FaultError
        from assay.clients.trainers.verl import compute_score_async

        rows = [row for group in groups for row in group]

        async def asked() -> list[Any]:
            calls = [
                compute_score_async(
                    "exact", row.response, row.name, {}, target=target, on_fault=self.policy
                )
                for row in rows
            ]
            return list(await asyncio.gather(*calls, return_exceptions=True))

        kept, scores = [], []
        for row, told in zip(rows, asyncio.run(asked()), strict=True):
            if isinstance(told, BaseException) and not isinstance(told, FaultError):
                raise told
            if not isinstance(told, BaseException):
                kept.append(row)
                scores.append(told["score"])
        return coefficients(self._advantages(kept, scores), tokens_of(kept))

    def _advantages(self, rows: Sequence[LabRow], scores: Sequence[float]) -> dict[str, float]:
        if not rows:
            return {}
        import numpy as np
        import torch
        from omegaconf import OmegaConf
        from verl import DataProto
        from verl.trainer.ppo.ray_trainer import compute_advantage

        import assay.clients.trainers.verl_manager  # noqa: F401  # registers assay_grpo

        rewards = torch.zeros(len(rows), 2)
        rewards[:, -1] = torch.tensor(scores)
        data = DataProto.from_dict(
            tensors={"token_level_rewards": rewards, "response_mask": torch.ones(len(rows), 2)},
            non_tensors={"uid": np.array([row.group for row in rows], dtype=object)},
        )
        config = OmegaConf.create({"norm_adv_by_std_in_grpo": True})
        told = compute_advantage(data, self.estimator, config=config).batch["advantages"]
        return {row.name: value for row, value in zip(rows, told[:, 0].tolist(), strict=True)}


VERL = Verl()
VERL_MASK = Verl("verl, mask with assay_grpo", False, "assay_grpo", "mask")
VERL_MASK_PLAIN = Verl("verl, mask without assay_grpo", False, "grpo", "mask")
