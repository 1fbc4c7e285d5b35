"""The trainers: transformers' own, with our losses; TRL's for Bradley-Terry.

What differs:

    PairwiseTrainer      compute_loss: the verdict tokens at the answer's place
    StepTrainer          compute_loss: the head at the last token of each step
    BradleyTerryTrainer  TRL's RewardTrainer on token ids that were made as the engine makes them
    all of them          _save_checkpoint: see core/publishing.py

TRL has no trainer for process reward models, and none for generative judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import Trainer
from trl.trainer.reward_trainer import RewardTrainer

from assay.trainer.core.publishing import Published
from assay.trainer.recipes.reward_model.config import MethodConfig
from assay.trainer.recipes.reward_model.objectives import pairwise_loss, step_loss

Example = Mapping[str, Any]


def pad_ids(rows: Sequence[Sequence[int]], pad_id: int, *, left: bool) -> tuple[Tensor, Tensor]:
    """Token ids of unequal length as one tensor, and what in it is no padding.

    Returns:
        ids_BT and mask_BT, the mask of ones and zeros.
    """
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
        """ids, mask [B*R, T], padded on the left; signs [B, R], see encode_pairs."""
        rows = [ids for example in examples for ids in example["orders"]]
        ids_BT, mask_BT = pad_ids(rows, self.pad_id, left=True)
        signs = torch.tensor([example["signs"] for example in examples], dtype=torch.float32)
        return {"ids": ids_BT, "mask": mask_BT, "signs": signs}


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


def pair_margins(model: Any, batch: Mapping[str, Tensor], options: tuple[int, int]) -> Tensor:
    """Logit of the verdict for the chosen response less that of the other, [B, R].

    Args:
        model: a causal language model.
        batch: of `PairCollator`.
        options: token ids of the verdicts "the first" and "the second".
    """
    mask_BT = batch["mask"]
    logits = model(
        input_ids=batch["ids"],
        attention_mask=mask_BT,
        position_ids=(mask_BT.cumsum(-1) - 1).clamp(min=0),
        logits_to_keep=1,
        use_cache=False,
    ).logits[:, -1]
    first, second = options
    signs_BR = batch["signs"]
    return (logits[:, first] - logits[:, second]).float().view_as(signs_BR) * signs_BR


def step_margins(model: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """Logit of "right" less that of "wrong" at the end of each labelled step, [S].

    Args:
        model: a token classification model with two labels, 1 for right; or with one output, above
            0 for right, which is given as it is.
        batch: of `StepCollator`.
    """
    logits = model(input_ids=batch["ids"], attention_mask=batch["mask"], use_cache=False).logits[
        batch["rows"], batch["places"]
    ]
    if logits.shape[1] == 1:
        return logits[:, 0].float()
    return (logits[:, 1] - logits[:, 0]).float()


class PairwiseTrainer(Published, Trainer):
    """Trains a language model to name the better of two responses.

    Args:
        method: weights of the loss.
        options: token ids of the verdicts "the first" and "the second".
        *args: as for Trainer; the collator is a PairCollator.
        **kwargs: as for Trainer.
    """

    loss_is_scaled_for_ga = False  # a mean: divide by the number of micro-batches

    def __init__(
        self, *args: Any, method: MethodConfig, options: tuple[int, int], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._method = method
        self._options = options

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of a batch of pairs."""
        margins_BR = pair_margins(model, inputs, self._options)
        loss = pairwise_loss(margins_BR, self._method.consistency)
        return (loss, {"margins": margins_BR}) if return_outputs else loss


class StepTrainer(Published, Trainer):
    """Trains a process reward model: a token classification head at the ends of steps.

    Args:
        method: which loss.
        *args: as for Trainer; the collator is a StepCollator.
        **kwargs: as for Trainer.
    """

    loss_is_scaled_for_ga = False  # a mean: divide by the number of micro-batches

    def __init__(self, *args: Any, method: MethodConfig, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._method = method

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of a batch of responses."""
        margins_S = step_margins(model, inputs)
        loss = step_loss(margins_S, inputs["labels"], inputs["weights"], self._method.loss)
        return (loss, {"margins": margins_S}) if return_outputs else loss


class BradleyTerryTrainer(Published, RewardTrainer):
    """TRL's trainer of scalar reward models."""
