"""Rows of several conversations in the real trainer: log-probabilities, entropies, the loss and its
gradient are those of the conversations as rows of their own, however they are packed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.trainer.algos import packing
from assay.trainer.algos.packing import Packing
from contexts_support import apart, gathered, rows_of
from trainer_support import ExactTransport, built_trainer

ROWS = [(3, [4, 6, 2]), (5, [9]), (2, [1, 1]), (4, [3, 8]), (1, [5, 2, 2, 7]), (6, [12])]
GAE = {"estimator": "gae"}


@pytest.mark.parametrize("name", ["group", "separate", "trunk"])
def test_a_mini_batch_of_conversations_is_one_of_rows_apart(
    tiny_config: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    method: dict[str, Any] = {"loss": {"entropy_coef": 0.01, "aggregation": "token-mean"}}
    if name != "group":
        method |= {"advantage": GAE, "critic": {"sharing": name, "learning_rate": 1e-3}}
    config = tiny_config(method=method, optim={"epochs": 2})
    with built_trainer(config, tmp_path, ExactTransport()) as trainer:
        vocabulary = len(trainer._tokenizer)
        batch = rows_of(ROWS, vocabulary=vocabulary)
        alone, places = apart(batch, ROWS)
        shape = batch["completion_ids"]
        wanted = {"compute_entropy": True, "compute_aux_loss": False}
        with torch.no_grad():
            told = trainer._of_tokens(trainer.model, batch, **wanted)
            expected = trainer._of_tokens(trainer.model, alone, **wanted)
        for found, other in zip(told[:2], expected[:2], strict=True):
            assert found.abs().sum() > 0
            torch.testing.assert_close(found, gathered(other, places, shape), rtol=1e-4, atol=1e-5)
        columns = columns_of(gathered(alone["completion_mask"], places, shape).bool())
        together = trainer._counted(batch | columns)
        separate = trainer._counted(alone | scattered(columns, places, alone))
        kept = [gradient(trainer, [together]), gradient(trainer, [separate])]
        for limit in (2, 5):
            passes = Packing(limit).passes(together)
            kept.append(gradient(trainer, [packing.cut(together, rows) for rows in passes]))
        assert abs(kept[0][0]) > 1e-4
        assert kept[0][1].norm() > 1e-3
        for loss, grad in kept[1:]:
            assert loss == pytest.approx(kept[0][0], rel=1e-4, abs=1e-6)
            torch.testing.assert_close(grad, kept[0][1], rtol=1e-3, atol=2e-6)


def columns_of(mask_BT: torch.Tensor) -> dict[str, torch.Tensor]:
    """What the loss reads of tokens in the mask."""
    generator = torch.Generator().manual_seed(3)

    def some(scale: float = 1.0) -> torch.Tensor:
        return torch.where(mask_BT, scale * torch.randn(mask_BT.shape, generator=generator), 0.0)

    return {
        "loss_mask": mask_BT,
        "own": mask_BT,
        "drawn": mask_BT,
        "value_mask": mask_BT,
        "advantages": some(),
        "old_logps": some(0.1) - 2.0 * mask_BT,
        "sampler_logps": some(0.1) - 2.0 * mask_BT,
        "values": some(),
        "returns": some(),
        "rewards": torch.ones(len(mask_BT)),
        "correct": torch.zeros(len(mask_BT), dtype=torch.bool),
        "stale": torch.zeros(len(mask_BT), dtype=torch.bool),
        "task": torch.zeros(len(mask_BT), dtype=torch.long),
    }


def scattered(
    columns: dict[str, torch.Tensor], places: list[tuple[int, slice]], alone: Any
) -> dict[str, torch.Tensor]:
    """The columns of rows apart."""
    found = {}
    for name, values in columns.items():
        if values.dim() == 1:
            found[name] = torch.stack([values[number] for number, _ in places])
            continue
        found[name] = torch.zeros(alone["completion_ids"].shape, dtype=values.dtype)
        for row, (number, where) in enumerate(places):
            found[name][row, : where.stop - where.start] = values[number, where]
    return found


def gradient(trainer: Any, micro_batches: list[dict[str, Any]]) -> tuple[float, torch.Tensor]:
    """Of a mini-batch, the critic's beside the policy's."""
    critic = trainer.critic
    learning = [trainer.model, *filter(None, (getattr(critic, n, None) for n in ("model", "head")))]
    for model in learning:
        model.zero_grad()
    total = 0.0
    for micro in micro_batches:
        loss = trainer._compute_loss(trainer.model, micro)
        loss.backward()
        total += float(loss.detach())
        if hasattr(critic, "backward"):
            values = (micro[name] for name in ("returns", "values", "value_mask"))
            sums = critic.backward(micro, *values, tokens=micro["window_value_tokens"])
            total += float(sums["loss"]) / float(micro["window_value_tokens"])
    weights = [weight for model in learning for weight in model.parameters()]
    return total, torch.cat([weight.grad.flatten().clone() for weight in weights])
