"""Models that are kept in the host's memory while unused."""

from __future__ import annotations

from typing import Any

import torch

_HOST = torch.device("cpu")


class OffloadedModel:
    """A model that moves to its device for use, and back to the host.

    Its optimizer's moments are on the device for a step only. Weights keep their identity, so that
    optimizers and DDP go on with them; those of FSDP2 move as shards. `on` False leaves all in
    place.
    """

    def __init__(self, model: Any, device: torch.device, *, on: bool) -> None:
        self._model = model
        self._device = device
        self._on = on
        self.here = True

    def come(self) -> None:
        """Moves the model to the device."""
        self._move(here=True)

    def leave(self) -> None:
        """Moves the model and its gradients to the host, and frees the device's memory."""
        self._move(here=False)

    def _move(self, *, here: bool) -> None:
        if not self._on or self.here == here:
            return
        self._model.to(self._device if here else _HOST)
        self.here = here
        if not here and self._device.type == "cuda":
            torch.cuda.empty_cache()  # an engine of its own, such as vLLM's, takes from there

    def moments(self, optimizer: torch.optim.Optimizer, *, here: bool) -> None:
        """Moves an optimizer's moments; counters of steps stay."""
        if not self._on:
            return
        target = self._device if here else _HOST
        for state in optimizer.state.values():
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and value.dim():
                    state[name] = value.to(target)
