"""A critic that is a model of its own: VC-PPO's and VAPO's (arXiv 2503.01491, 2504.05118).

V(s_t) is its output at the token before response token t, so values_BT[:, t] has seen the prompt
and response[:t]. Its engine is the policy's: one process, DDP or FSDP2. DeepSpeed, which wants one
engine for each model, and FSDP's first version are refused.

Each backward call adds world_size * sum / tokens, where tokens counts the whole mini-batch over all
processes, and the engine averages over processes: gradients add up to that of the mini-batch's
mean however it is split.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from torch import Tensor
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.nn.parallel import DistributedDataParallel

from assay.kit.errors import ConfigError
from assay.trainer.algos import packing
from assay.trainer.critic import objective
from assay.trainer.critic.model import MEANING, check_meaning
from assay.trainer.critic.stepping import Stepper, make_adamw
from assay.trainer.engines.offload import OffloadedModel
from assay.trainer.settings.objective import CriticConfig

OPTIMIZER = "optimizer.pt"


class Critic:
    """A value model with its own optimizer.

    Args:
        model: of `load_critic`.
        accelerator: of the policy's trainer.
        tokenizer: saved beside the weights.
        optimizer: as `optim.optimizer`.
        offload: keeps the weights in the host's memory from `rest` until they are used, and the
            moments between steps.

    Raises:
        ConfigError: the engine holds one model only.
    """

    def __init__(
        self,
        model: Any,
        config: CriticConfig,
        accelerator: Any,
        *,
        tokenizer: Any = None,
        optimizer: str = "adamw",
        offload: bool = False,
    ) -> None:
        _check_engine(accelerator)
        self._config = config
        self._accelerator = accelerator
        self._tokenizer = tokenizer
        self._model, prepared = accelerator.prepare(model, make_adamw([model], config, optimizer))
        # beneath DDP: a forward pass without gradient need not be in step with other processes
        wrapped = isinstance(self._model, DistributedDataParallel)
        self._inner: Any = self._model.module if wrapped else self._model
        self._stepper = Stepper(getattr(prepared, "optimizer", prepared), config)
        self._waiting = OffloadedModel(self._inner, accelerator.device, on=offload)
        self.rest()

    @property
    def model(self) -> Any:
        """The token classifier."""
        return self._inner

    @property
    def steps(self) -> int:
        """Optimizer steps so far."""
        return self._stepper.steps

    def rest(self) -> None:
        """Frees the device while others generate or evaluate."""
        self._waiting.leave()

    @torch.no_grad()
    def values(self, batch: Mapping[str, Tensor], passes: Sequence[Tensor]) -> Tensor:
        """V(s_t) of each response token.

        Args:
            batch: prompt_ids and prompt_mask (B, P), padded on the left; completion_ids and
                completion_mask (B, T), padded on the right.
            passes: row numbers of each forward pass; under FSDP as many on every process.

        Returns:
            values_BT, float32; 0 where completion_mask is.
        """
        self._waiting.come()
        self._inner.eval()
        values_BT = packing.over_passes(
            batch,
            passes,
            lambda rows: objective.to_values(self._outputs(self._inner, rows), self._config),
        )
        self._inner.train()
        return values_BT

    def backward(
        self,
        batch: Mapping[str, Tensor],
        returns_BT: Tensor,
        old_values_BT: Tensor,
        mask_BT: Tensor,
        *,
        tokens: Tensor,
        sync: bool = True,
    ) -> dict[str, Tensor]:
        """Adds the gradient of one micro-batch.

        Args:
            batch: as for `values`.
            returns_BT: targets; anything outside of the mask.
            old_values_BT: of `values` at the rollout.
            mask_BT: value tokens: the policy's own, of judged rows. It may be empty.
            tokens: 0-dim; value tokens of the whole mini-batch over all processes.
            sync: exchanges gradients with the other processes; may be False in all but the last
                micro-batch.

        Returns:
            Detached sums over this micro-batch's value tokens: see `objective.value_loss`.
        """
        self._waiting.come()
        quiet = isinstance(self._model, DistributedDataParallel) and not sync
        with self._model.no_sync() if quiet else contextlib.nullcontext():
            outputs_BTK = self._outputs(self._model, batch)
            total, sums = objective.value_loss(
                outputs_BTK, old_values_BT, returns_BT, mask_BT, self._config
            )
            # accelerator.backward would divide by the policy's accumulation steps
            (total * self._accelerator.num_processes / tokens.clamp(min=1)).backward()
        self._stepper.count(tokens)
        return sums

    def step(self) -> dict[str, float]:
        """Clips, steps, and clears the gradients; without value tokens nothing moves.

        Returns:
            grad_norm before clipping, and lr.

        Raises:
            TrainingStoppedError: the gradient is not finite.
        """
        self._waiting.come()
        self._waiting.moments(self._stepper.optimizer, here=True)
        moved = self._stepper.step()
        self._waiting.moments(self._stepper.optimizer, here=False)
        return moved

    def save(self, folder: Path) -> None:
        """Writes weights, meaning, optimizer and step; every process calls it, one writes."""
        self.save_pretrained(folder)
        moments = (  # reading them before the first step would make one
            get_optimizer_state_dict(self._inner, self._stepper.optimizer, options=_WHOLE)
            if self.steps
            else {}
        )
        if self._accelerator.is_main_process:
            torch.save({"steps": self.steps, "optimizer": moments}, folder / OPTIMIZER)
        self._accelerator.wait_for_everyone()

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote; every process calls it.

        Raises:
            ConfigError: the saved values mean something else than the config's.
        """
        check_meaning(folder, self._config)
        saved = type(self._inner).from_pretrained(folder, dtype=self._inner.dtype)
        set_model_state_dict(self._inner, saved.state_dict(), options=_WHOLE)
        state = torch.load(folder / OPTIMIZER, map_location="cpu", weights_only=True)
        if state["steps"]:
            set_optimizer_state_dict(
                self._inner, self._stepper.optimizer, state["optimizer"], options=_WHOLE
            )
            self._waiting.moments(self._stepper.optimizer, here=False)
        self._stepper.steps = state["steps"]

    def save_pretrained(self, folder: Path) -> None:
        """Writes weights for transformers, and their meaning; every process calls it."""
        weights = get_model_state_dict(self._inner, options=_WHOLE)
        if self._accelerator.is_main_process:
            folder.mkdir(parents=True, exist_ok=True)
            self._inner.save_pretrained(folder, state_dict=weights)
            record = json.dumps(objective.meaning(self._config), indent=1)
            (folder / MEANING).write_text(record + "\n", encoding="utf-8")
            if self._tokenizer is not None:
                self._tokenizer.save_pretrained(folder)
        self._accelerator.wait_for_everyone()

    def _outputs(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        with self._accelerator.autocast():
            logits_BLK = model(**objective.model_inputs(batch)).logits
        return objective.before_each_token(logits_BLK, batch).float()


_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def _check_engine(accelerator: Any) -> None:
    kind = accelerator.distributed_type
    if kind == DistributedType.DEEPSPEED:
        raise ConfigError(
            'method.critic.sharing = "separate" needs a second model, and DeepSpeed\'s engine '
            "holds one; launch with FSDP2, as in configs/accelerate/fsdp2.yaml"
        )
    if kind == DistributedType.FSDP and not accelerator.is_fsdp2:
        raise ConfigError(
            'method.critic.sharing = "separate" runs on FSDP2, not on FSDP 1; set '
            "fsdp_version: 2 in accelerate's config"
        )
