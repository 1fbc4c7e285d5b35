"""A second model with the policy's weights, current or earlier, for the thread that generates."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch


class Shadow:
    """A model with the weights of another.

    Its parameters share memory with the policy's until `wear` replaces those that train. Training
    mode, autocast's casts and generation settings stay separate; a frozen base exists once.

    Args:
        model: the policy, before anything wraps it or is set into it.
        shares: it uses the policy's current weights, which must not change while it generates.

    Attributes:
        model: generates; never in training mode.
        version: how often it took weights.
    """

    def __init__(self, model: Any, *, shares: bool = False) -> None:
        self.shares = shares
        own: dict[int, Any] = {
            id(weight): torch.nn.Parameter(weight.detach(), requires_grad=weight.requires_grad)
            for weight in model.parameters()
        }
        self.model: Any = copy.deepcopy(model, own).eval()
        pairs = zip(model.parameters(), self.model.parameters(), strict=True)
        self._pairs = [(weight, mine) for weight, mine in pairs if weight.requires_grad]
        self.version = 0

    @torch.no_grad()
    def copied(self) -> list[torch.Tensor]:
        """A copy of the policy's trained weights, on its device."""
        held = (weight.detach() for weight, _ in self._pairs)
        return list(held) if self.shares else [weight.clone() for weight in held]

    def wear(self, weights: Sequence[torch.Tensor]) -> None:
        """Takes weights from `copied`; called by the generating thread, between two batches."""
        self.version += 1
        for (_, mine), weight in zip(self._pairs, weights, strict=True):
            mine.data = weight
