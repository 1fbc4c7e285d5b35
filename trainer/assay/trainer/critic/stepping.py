"""The optimizer of a critic: warm-up to a constant rate, clipping, and no step without tokens.

Unlike transformers' schedule, the first of `warmup_steps` steps has the rate lr / warmup_steps
rather than 0, so that every rollout counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.objective import CriticConfig

OPTIMIZERS = {
    "adamw": "adamw_torch_fused",
    "adamw-8bit": "adamw_bnb_8bit",
    "paged-adamw": "paged_adamw_32bit",
    "paged-adamw-8bit": "paged_adamw_8bit",
}
"""`optim.optimizer` as transformers calls it."""


def make_adamw(
    modules: Iterable[nn.Module], config: CriticConfig, name: str = "adamw"
) -> torch.optim.Optimizer:
    """An optimizer of the modules' weights; only matrices decay, as in transformers.

    `name` is as `optim.optimizer`; all but adamw are of bitsandbytes.
    """
    weights = [weight for module in modules for weight in module.parameters()]
    trained = [weight for weight in weights if weight.requires_grad]
    groups = [
        {"params": [w for w in trained if w.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [w for w in trained if w.dim() < 2], "weight_decay": 0.0},
    ]
    filled = [group for group in groups if group["params"]]
    if name == "adamw":
        return torch.optim.AdamW(filled, lr=config.learning_rate)
    import bitsandbytes  # noqa: PLC0415  # an extra; engines/requirements.py has asked for it

    bits = 8 if name.endswith("8bit") else 32
    made: torch.optim.Optimizer = bitsandbytes.optim.AdamW(
        filled, lr=config.learning_rate, optim_bits=bits, is_paged=name.startswith("paged")
    )
    return made


class Stepper:
    """Counts tokens and steps, and moves the weights.

    The optimizer is a plain one of torch; accelerate's wrapper, which steps only with the policy's
    accumulation, must be unwrapped.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, config: CriticConfig) -> None:
        self.optimizer = optimizer
        self.steps = 0
        self._config = config
        self._tokens: Tensor | None = None

    @property
    def rate(self) -> float:
        """Learning rate of the next step."""
        warmup = self._config.warmup_steps
        return self._config.learning_rate * (min(1.0, (self.steps + 1) / warmup) if warmup else 1.0)

    def count(self, tokens: Tensor) -> None:
        """Adds the tokens of the mini-batch of a backward pass."""
        self._tokens = tokens if self._tokens is None else torch.maximum(self._tokens, tokens)

    def step(self) -> dict[str, float]:
        """Clips, steps and clears the gradients.

        Without tokens since the last step neither weights nor moments change.

        Returns:
            grad_norm before clipping, and lr; both 0 without tokens.

        Raises:
            TrainingStoppedError: the gradient is not finite. The weights are as they were.
        """
        if self._tokens is None or not bool(self._tokens > 0):
            self._clear()
            return {"grad_norm": 0.0, "lr": 0.0}
        rate = self.rate
        norm = self._clip()
        if not math.isfinite(norm):
            self._clear()
            raise TrainingStoppedError(
                f"the gradient of the critic is {norm}; lower method.critic.learning_rate, or "
                "look at the rewards"
            )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.steps += 1
        self._clear()
        return {"grad_norm": norm, "lr": rate}

    def _clip(self) -> float:
        weights = [w for group in self.optimizer.param_groups for w in group["params"]]
        norm: Any = nn.utils.clip_grad_norm_(weights, self._config.max_grad_norm or math.inf)
        return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)

    def _clear(self) -> None:
        self._tokens = None
        self.optimizer.zero_grad(set_to_none=True)
