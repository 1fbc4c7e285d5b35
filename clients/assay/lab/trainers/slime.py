"""slime: its `Sample`, and the normalisation of its `RolloutManager`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from assay.lab.steps import Groups, LabRow, coefficients
from assay.lab.trainers.source import taken, version_of


@dataclass
class Slime:
    """Groups through `custom_rm`, slime's hooks, and `_post_process_rewards`.

    Attributes:
        policy: for faults; "drop" and "mask" with the functions that they ask for.
    """

    title: str = "slime, raise"
    default: bool = True
    policy: str = "raise"
    compared = "advantages"
    read = "the rollout around them, which needs SGLang"

    def version(self) -> str:
        """See Contestant."""
        found = version_of("slime")
        from slime.utils.types import Sample  # noqa: F401

        return found

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; groups of one size are normalised in one call."""
        from slime.utils.types import Sample

        from assay.clients.trainers import slime as adapter

        del target
        os.environ["ASSAY_ON_FAULT"] = self.policy
        args = SimpleNamespace(
            reward_key=None, advantage_estimator="grpo", rewards_normalization=True,
            grpo_std_normalization=True,
        )  # fmt: skip
        rows = [row for group in groups for row in group]
        samples = {
            row.name: Sample(
                prompt=row.prompt, response=row.response, label=row.name, index=number,
                group_index=ord(row.group), response_length=len(row.response),
            )
            for number, row in enumerate(rows)
        }  # fmt: skip

        async def asked() -> list[float]:
            calls = (adapter.custom_rm(args, samples[row.name]) for row in rows)
            return list(await asyncio.gather(*calls))

        for row, reward in zip(rows, asyncio.run(asked()), strict=True):
            samples[row.name].reward = reward
        if self.policy == "drop":
            groups = [
                group
                for group in groups
                if adapter.drop_faulted_groups(args, [samples[row.name] for row in group]).keep
            ]
        advantages: dict[str, float] = {}
        for size in sorted({len(group) for group in groups}):
            same = [row for group in groups if len(group) == size for row in group]
            args.n_samples_per_prompt, args.rollout_batch_size = size, len(same) // size
            advantages |= self._normalised(args, same, [samples[row.name] for row in same])
        tokens = {
            row.name: 0 if samples[row.name].remove_sample else len(row.response)
            for group in groups
            for row in group
        }
        return coefficients(advantages, tokens)

    def _normalised(
        self, args: Any, rows: Sequence[LabRow], samples: list[Any]
    ) -> dict[str, float]:
        import torch

        from assay.clients.trainers.slime import post_process_rewards

        own = post_process_rewards if self.policy == "mask" else None
        process = taken(
            "slime", "ray/rollout.py", "RolloutManager._post_process_rewards", torch=torch
        )
        manager = SimpleNamespace(args=args, custom_reward_post_process_func=own)
        _, told = process(manager, samples)
        return {row.name: value for row, value in zip(rows, told, strict=True)}


SLIME = Slime()
SLIME_DROP = Slime("slime, drop with its filter", False, "drop")
SLIME_MASK = Slime("slime, mask with its post-processing", False, "mask")
