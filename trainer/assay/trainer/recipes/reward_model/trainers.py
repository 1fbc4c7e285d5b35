"""The trainers: transformers' own, with our losses; TRL's for Bradley-Terry.

Overrides:

    LossTrainer          compute_loss: of the verdict tokens at the answer's place (pair_verdicts),
                         of what the judge writes (written_logits), or of the head at the last token
                         of each step (step_outputs)
    BradleyTerryTrainer  TRL's RewardTrainer on token ids that were made as the engine makes them
    both                 _save_checkpoint: see core/publishing.py

TRL trains no process reward models and no generative judges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import Trainer
from trl.trainer.reward_trainer import RewardTrainer

from assay.trainer.core.publishing import Published
from assay.trainer.recipes.reward_model.objectives import score_bins

Example = Mapping[str, Any]


def pad_ids(rows: Sequence[Sequence[int]], pad_id: int, *, left: bool) -> tuple[Tensor, Tensor]:
    """Token ids of unequal length as ids_BT and mask_BT, of ones and zeros."""
    width = max(map(len, rows))
    ids_BT = torch.full((len(rows), width), pad_id, dtype=torch.long)
    mask_BT = torch.zeros((len(rows), width), dtype=torch.long)
    for index, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids_BT[index, place] = torch.tensor(row, dtype=torch.long)
        mask_BT[index, place] = 1
    return ids_BT, mask_BT


@dataclass(frozen=True, slots=True)
class PairCollator:
    """Pairs in one or two orders as one batch, the orders of a pair beside each other."""

    pad_id: int

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """ids, mask [B*R, T], padded on the left; signs [B, R], verdicts [B*R, 2].

        See encode_pairs.
        """
        rows = [ids for example in examples for ids in example["orders"]]
        ids_BT, mask_BT = pad_ids(rows, self.pad_id, left=True)
        signs = torch.tensor([example["signs"] for example in examples], dtype=torch.float32)
        verdicts = [ids for example in examples for ids in example["verdicts"]]
        told = torch.tensor(verdicts, dtype=torch.long)
        return {"ids": ids_BT, "mask": mask_BT, "signs": signs, "verdicts": told}


@dataclass(frozen=True, slots=True)
class CritiqueCollator:
    """Critiques behind their prompts as one batch."""

    pad_id: int

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """ids, mask, written [B, T]; places [B], of the closing verdicts, and options [B, 2]."""
        ids_BT, mask_BT = pad_ids([example["ids"] for example in examples], self.pad_id, left=False)
        written_BT = torch.zeros_like(ids_BT)
        places = []
        for index, example in enumerate(examples):
            end = len(example["ids"])
            written_BT[index, end - example["written"] : end] = 1
            places.append(end - example["written"] + example["place"])
        return {
            "ids": ids_BT,
            "mask": mask_BT,
            "written": written_BT,
            "places": torch.tensor(places),
            "options": torch.tensor([example["options"] for example in examples]),
        }


@dataclass(frozen=True, slots=True)
class StepCollator:
    """Responses in steps as one batch."""

    pad_id: int

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """ids, mask [B, T]; rows, places, labels, weights [S], one for each labelled step."""
        ids_BT, mask_BT = pad_ids([example["ids"] for example in examples], self.pad_id, left=False)
        counts = torch.tensor([len(example["places"]) for example in examples])

        def joined(key: str, kind: torch.dtype) -> Tensor:
            return torch.tensor([x for example in examples for x in example[key]], dtype=kind)

        return {
            "ids": ids_BT,
            "mask": mask_BT,
            "rows": torch.repeat_interleave(torch.arange(len(examples)), counts),
            "places": joined("places", torch.long),
            "labels": joined("labels", torch.float32),
            "weights": joined("weights", torch.float32),
        }


def pair_verdicts(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The verdicts where the answer begins, [B, R] each.

    The logit of the verdict for the chosen response less that of the other, and the logarithm of
    the share of the probability that both hold together.
    """
    mask_BT = batch["mask"]
    logits = model(
        input_ids=batch["ids"],
        attention_mask=mask_BT,
        position_ids=(mask_BT.cumsum(-1) - 1).clamp(min=0),
        logits_to_keep=1,
        use_cache=False,
    ).logits[:, -1]
    told = logits.gather(-1, batch["verdicts"])
    signs_BR = batch["signs"]
    margins_BR = (told[:, 0] - told[:, 1]).float().view_as(signs_BR) * signs_BR
    held = torch.logsumexp(told.float(), -1)
    return margins_BR, (held - torch.logsumexp(logits.float(), -1)).view_as(signs_BR)


def written_logits(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The logits of a batch of critiques, [B, T, V], and the margins of their verdicts, [B].

    A margin is the logit of the verdict that is written less that of the other, at its place.
    """
    logits = model(input_ids=batch["ids"], attention_mask=batch["mask"], use_cache=False).logits
    rows = torch.arange(len(logits), device=logits.device)
    at = logits[rows, batch["places"] - 1].float()
    found = at.gather(1, batch["options"])
    return logits, found[:, 0] - found[:, 1]


def step_outputs(model: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """The head's outputs at the end of each labelled step, [S, K]."""
    logits = model(input_ids=batch["ids"], attention_mask=batch["mask"], use_cache=False).logits
    found: Tensor = logits[batch["rows"], batch["places"]].float()
    return found


def step_margins(outputs_SK: Tensor) -> Tensor:
    """How far each step is on the side of "right", [S]; above 0 for right.

    Of two outputs the logit of "right" less that of "wrong", one as it is, of more the mean of the
    classes of scores, from -1 to 1.
    """
    if outputs_SK.shape[1] == 1:
        return outputs_SK[:, 0]
    if outputs_SK.shape[1] == 2:
        return outputs_SK[:, 1] - outputs_SK[:, 0]
    return score_bins(outputs_SK.shape[1]).expectation(outputs_SK)


class LossTrainer(Published, Trainer):
    """transformers' trainer with a loss of ours.

    `loss` maps the model and a batch to the mean loss and the margins.
    """

    loss_is_scaled_for_ga = False  # a mean: divide by the number of micro-batches

    def __init__(
        self, *args: Any, loss: Callable[[Any, Any], tuple[Tensor, Tensor]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._loss = loss

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of a batch."""
        loss, margins = self._loss(model, inputs)
        return (loss, {"margins": margins}) if return_outputs else loss


class BradleyTerryTrainer(Published, RewardTrainer):
    """TRL's trainer of scalar reward models."""
