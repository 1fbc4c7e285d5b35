"""Models that wait in the host's memory while they are not used."""

from __future__ import annotations

from typing import Any

import torch

_HOST = torch.device("cpu")


class OffloadedModel:
    """A model that comes to its device when it is used, and leaves it when told to.

    Its optimizer's moments come for a step only. Weights keep their identity, so that optimizers
    and DDP go on with them; those of FSDP2 move as shards.

    Args:
        model: of torch, on its device.
        device: where it computes.
        on: False leaves everything where it is.
    """

    def __init__(self, model: Any, device: torch.device, *, on: bool) -> None:
        self._model = model
        self._device = device
        self._on = on
        self.here = True

    def come(self) -> None:
        """To the device, before the model is used."""
        self._move(here=True)

    def leave(self) -> None:
        """To the host, with its gradients. The device's memory is free for others."""
        self._move(here=False)

    def _move(self, *, here: bool) -> None:
        if not self._on or self.here == here:
            return
        self._model.to(self._device if here else _HOST)
        self.here = here
        if not here and self._device.type == "cuda":
            torch.cuda.empty_cache()  # an engine of its own, such as vLLM's, takes from there

    def moments(self, optimizer: torch.optim.Optimizer, *, here: bool) -> None:
        """Moves what an optimizer remembers of each weight; counters of steps stay."""
        if not self._on:
            return
        target = self._device if here else _HOST
        for state in optimizer.state.values():
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and value.dim():
                    state[name] = value.to(target)
