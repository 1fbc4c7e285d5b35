"""ms-swift: its own calls of reward functions, and its own advantages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import version
from types import SimpleNamespace

from assay.lab.steps import Groups, coefficients, tokens_of


@dataclass
class MsSwift:
    """A batch through `compute_rewards_per_func` and `compute_advantages`.

    Attributes:
        policy: for faults.
        scale: `--scale_rewards`.
    """

    title: str = "ms-swift, raise"
    default: bool = True
    policy: str = "raise"
    scale: str = "group"
    compared = "advantages"
    read = ""

    def version(self) -> str:
        """See Contestant."""
        import swift.rl_core.advantage  # noqa: F401

        return f"ms-swift {version('ms-swift')}"

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; groups of one size are scored in one call."""
        import torch
        from swift.rewards import orms
        from swift.rl_core.advantage import compute_advantages
        from swift.rl_core.data import GRPOSample
        from swift.rl_core.grpo_algorithm import compute_rewards_per_func

        import assay.clients.trainers.ms_swift  # noqa: F401  # as `--external_plugins`

        del target
        os.environ["ASSAY_ON_FAULT"] = self.policy
        args = SimpleNamespace(scale_rewards=self.scale, dynamic_sample=False)
        advantages: dict[str, float] = {}
        for size in sorted({len(group) for group in groups}):
            rows = [row for group in groups if len(group) == size for row in group]
            samples = [
                GRPOSample(
                    messages=[
                        {"role": "user", "content": row.prompt},
                        {"role": "assistant", "content": row.response},
                    ],
                    response_token_ids=[[1] * len(row.response)],
                    extra={"solution": row.name},
                )
                for row in rows
            ]
            functions = [orms["assay"](args=args)]
            rewards = compute_rewards_per_func(samples, functions, [None], torch.device("cpu"))
            told, _ = compute_advantages(rewards, torch.ones(1), size, scale_rewards=self.scale)
            advantages |= {row.name: value for row, value in zip(rows, told.tolist(), strict=True)}
        return coefficients(advantages, tokens_of([row for group in groups for row in group]))


MS_SWIFT = MsSwift()
MS_SWIFT_MASK = MsSwift("ms-swift, mask with gdpo", False, "mask", "gdpo")
