"""AReaL: the awaited reward of its workflow, and its own `Normalization`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from assay.lab.steps import Groups, LabRow, coefficients, tokens_of
from assay.lab.trainers.source import taken, version_of


@dataclass
class AReaL:
    """Prompts by our workflow's reward; one whose reward raises is rejected."""

    title: str = "AReaL, drop"
    default: bool = True
    compared = "advantages"
    read = "that `GroupedRolloutWorkflow` gives up the prompt of an exception (run by hand)"

    def version(self) -> str:
        """See Contestant."""
        return version_of("areal", "areal")

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant."""
        from assay.clients.trainers.areal import async_reward_fn
        from assay.clients.trainers.common.faults import FaultError

        del target

        async def prompt(rows: Sequence[LabRow]) -> list[float]:
            return await asyncio.gather(
                *(
                    async_reward_fn(
                        row.prompt, row.response, [1], [1] * len(row.response), answer=row.name
                    )
                    for row in rows
                )
            )

        async def asked() -> list[Any]:
            return await asyncio.gather(*map(prompt, groups), return_exceptions=True)

        advantages: dict[str, float] = {}
        kept: list[LabRow] = []
        for rows, told in zip(groups, asyncio.run(asked()), strict=True):
            if isinstance(told, BaseException) and not isinstance(told, FaultError):
                raise told
            if not isinstance(told, BaseException):
                kept += rows
                advantages |= self._normalised(rows, told)
        return coefficients(advantages, tokens_of(kept))

    def _normalised(self, rows: Sequence[LabRow], rewards: Sequence[float]) -> dict[str, float]:
        import numpy as np
        import torch
        import torch.distributed as dist

        kind = taken("areal", "utils/data.py", "Normalization", torch=torch, np=np, dist=dist)
        settings = SimpleNamespace(
            mean_level="group", mean_leave1out=False, std_level="group", std_unbiased=True,
            group_size=len(rows), eps=1e-5,
        )  # fmt: skip
        told = kind(settings)(torch.tensor(rewards))
        return {row.name: value for row, value in zip(rows, told.tolist(), strict=True)}


AREAL = AReaL()
