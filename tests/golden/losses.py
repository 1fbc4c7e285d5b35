"""What the losses that train say of single tokens.

The policy's loss and the critic's are sums or means over a mini-batch. A token's own part is the
loss of a batch where it alone counts. A histogram that the critic learns is read from the gradient.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from trl.trainer.utils import add_fused_lm_head

from assay.trainer.core.objective import Counts, count, policy_loss
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.critic.objective import value_loss
from assay.trainer.settings.objective import CriticConfig, LossConfig
from golden.batches import Matrix, Vector, batch_of, plain_rows, row, tensor

ONE = torch.ones(())


def loss(
    logprobs: Matrix,
    config: LossConfig,
    *,
    advantages: torch.Tensor | None = None,
    mask: Matrix | None = None,
    entropies: torch.Tensor | None = None,
    counts: Counts | None = None,
    max_length: int = 1,
    own: Any = None,
    **columns: torch.Tensor,
) -> torch.Tensor:
    """The loss of a mini-batch in one piece, `own` being the loss's table.

    Without `old_logps` these very weights drew the tokens; without advantages they are 0.
    """
    logps_BT = tensor(logprobs)
    batch = batch_of(
        plain_rows(*logps_BT.shape),
        **{
            "advantages": torch.zeros_like(logps_BT) if advantages is None else advantages,
            "loss_mask": torch.ones_like(logps_BT).bool() if mask is None else tensor(mask).bool(),
            "old_logps": torch.full_like(logps_BT, math.nan),
            **columns,
        },
    )
    return policy_loss(
        logps_BT,
        torch.zeros_like(logps_BT) if entropies is None else entropies,
        batch,
        config,
        count(batch) if counts is None else counts,
        max_length=max_length,
        own=own,
    ).loss


def token_losses(
    logprobs: Matrix,
    advantages_BT: torch.Tensor,
    config: LossConfig,
    mask: Matrix | None = None,
    **columns: torch.Tensor,
) -> torch.Tensor:
    """What each token adds to the loss: the loss of a batch where no other has an advantage."""
    losses_BT = torch.zeros_like(advantages_BT)
    for place in range(advantages_BT.numel()):
        alone_BT = torch.zeros_like(advantages_BT)
        alone_BT.view(-1)[place] = advantages_BT.reshape(-1)[place]
        losses_BT.view(-1)[place] = loss(
            logprobs,
            config,
            advantages=alone_BT,
            mask=mask,
            counts=Counts(ONE, ONE, ONE),
            **columns,
        )
    return losses_BT


class Fixed(torch.nn.Module):
    """A model that gives these logits, (B, T, V), whatever it reads."""

    def __init__(self, logits_BTV: torch.Tensor) -> None:
        super().__init__()
        size = logits_BTV.shape[-1]
        self.config = SimpleNamespace(get_text_config=SimpleNamespace)
        self._states = torch.nn.functional.pad(logits_BTV, (0, 0, 0, 1))
        self._head = torch.nn.Linear(size, size, bias=False, dtype=torch.float64)
        torch.nn.init.eye_(self._head.weight)

    def base_model(self, **_: Any) -> Any:
        return SimpleNamespace(last_hidden_state=self._states)

    def get_output_embeddings(self) -> torch.nn.Linear:
        return self._head

    def forward(self, **_: Any) -> Any:
        raise NotImplementedError


def entropies_of(logits_BTV: torch.Tensor) -> torch.Tensor:
    """As the trainer has them of a model, (B, T)."""
    rows, length, _ = logits_BTV.shape
    model: Any = Fixed(logits_BTV)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    trainer: Any = SimpleNamespace(
        accelerator=SimpleNamespace(autocast=nullcontext, is_main_process=False)
    )
    ids = torch.zeros(rows, 1 + length, dtype=torch.long)
    entropies_BT: torch.Tensor = PolicyTrainer._get_per_token_logps_and_entropies(
        trainer, model, ids, torch.ones_like(ids), length, compute_entropy=True
    )[1]
    return entropies_BT


def value_token_loss(
    outputs_K: torch.Tensor, old: float, target: float, config: CriticConfig
) -> torch.Tensor:
    """The loss of one token."""
    ones = torch.ones(1, 1)
    return value_loss(outputs_K.view(1, 1, -1), row([old]), row([target]), ones, config)[0]


def histograms(targets: Vector, config: CriticConfig) -> torch.Tensor:
    """What the loss trains towards: its gradient in the logits is softmax(logits) - histogram."""
    outputs = torch.zeros(1, len(targets), config.bins, dtype=torch.float64, requires_grad=True)
    returns_BT = row(targets)
    total, _ = value_loss(outputs, returns_BT, returns_BT, torch.ones(1, len(targets)), config)
    (slope,) = torch.autograd.grad(total, outputs)
    return 1 / config.bins - slope[0]
