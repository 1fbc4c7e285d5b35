"""The policy beside itself: a model that another thread generates with while the policy learns.

Not a second policy: it has the policy's weights as they are, or as they were.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch


class Shadow:
    """A model with the weights of another.

    Its parameters are tensors of their own on the same memory, until `wear` gives those that train
    other values. So what the one computes with (training or not, autocast's casts, generation
    settings) is nothing to the other, and a frozen base is there once.

    Args:
        model: the policy, before anything is wrapped around it or set into it.
        shares: it answers with the policy's weights as they are, which must not change while it
            does; nothing is copied.

    Attributes:
        model: answers; never in training mode.
        shares: as given.
        version: how often weights were taken on.
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
        """The policy's weights as they are now, those that train; on its device."""
        held = (weight.detach() for weight, _ in self._pairs)
        return list(held) if self.shares else [weight.clone() for weight in held]

    def wear(self, weights: Sequence[torch.Tensor]) -> None:
        """Answers with these from now on; for the thread that generates, between two batches.

        Args:
            weights: as `copied` gave them.
        """
        self.version += 1
        for (_, mine), weight in zip(self._pairs, weights, strict=True):
            mine.data = weight
