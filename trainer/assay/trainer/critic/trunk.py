"""A critic that shares the policy's trunk: a linear head on its last hidden states.

TRL's fused LM head drops the hidden states before the loss sees them. A forward hook on the
backbone keeps them, so that policy and value loss share one forward pass:

    with critic.watch():
        logps = ...                     one or several forward passes of the policy
    loss = policy_loss + critic.loss_from_last_forward(batch, returns, old_values, mask, ...)[0]
    loss.backward()
    optimizer.step(); critic.step()

The value loss's gradient goes through the hidden states into the trunk, which moves with the
policy's optimizer; the head has its own. It starts from zeros, so that the first value gradient
does not reach the trunk, is float32, and is whole on every process; `step` averages its gradients.
There is no value pre-training, and the policy's updates move the values as well.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from assay.kit.errors import ConfigError
from assay.trainer.algos import packing
from assay.trainer.critic import objective
from assay.trainer.critic.critic import OPTIMIZER
from assay.trainer.critic.model import MEANING, check_meaning
from assay.trainer.critic.stepping import Stepper, make_adamw
from assay.trainer.settings.objective import CriticConfig

HEAD = "head.safetensors"


class TrunkCritic:
    """A value head on the policy.

    Args:
        model: the policy in training: a causal model, with or without PEFT, DDP or FSDP2 around it.
        accelerator: of the policy's trainer.

    Attributes:
        head: the linear layer, on this process.

    Raises:
        ConfigError: the engine does not gather weights for a gradient that comes from a hook.
    """

    def __init__(self, model: Any, config: CriticConfig, accelerator: Any) -> None:
        if accelerator.distributed_type == DistributedType.DEEPSPEED:
            raise ConfigError(
                'method.critic.sharing = "trunk" cannot learn through weights that DeepSpeed '
                "has sharded; launch with FSDP2, as in configs/accelerate/fsdp2.yaml"
            )
        self._config = config
        self._accelerator = accelerator
        self._policy: Any = model.module if isinstance(model, DistributedDataParallel) else model
        causal = self._policy
        if hasattr(causal, "get_base_model"):  # PEFT puts its layers into the model itself
            causal = causal.get_base_model()
        self._keep_one_logit = "logits_to_keep" in inspect.signature(causal.forward).parameters
        width = causal.config.get_text_config().hidden_size
        self.head = nn.Linear(width, objective.output_count(config), device=accelerator.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self._stepper = Stepper(make_adamw([self.head], config), config)
        self._seen: list[Tensor] = []
        self._watching = False
        causal.base_model.register_forward_hook(self._capture)

    @property
    def steps(self) -> int:
        """Optimizer steps of the head."""
        return self._stepper.steps

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Keeps the hidden states of the policy's forward passes in this block, in order."""
        self._seen = []
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    def _capture(self, _module: Any, _inputs: Any, output: Any) -> None:
        if self._watching:
            self._seen.append(output[0] if isinstance(output, tuple) else output.last_hidden_state)

    def _outputs(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Outputs for these rows of the passes watched last, which are dropped."""
        if not self._seen:
            raise RuntimeError("no forward pass of the policy ran within watch()")
        states_BLH = torch.cat(self._seen)
        self._seen = []
        states_BTH = objective.before_each_token(states_BLH, batch)
        with torch.autocast(states_BTH.device.type, enabled=False):
            outputs: Tensor = self.head(states_BTH.float())
        return outputs

    def loss_from_last_forward(
        self,
        batch: Mapping[str, Tensor],
        returns_BT: Tensor,
        old_values_BT: Tensor,
        mask_BT: Tensor,
        *,
        tokens: Tensor,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The value loss that is added to the policy's loss of a micro-batch.

        Args:
            batch: the rows of the passes within `watch`, in order, laid out as by
                `objective.model_inputs`.
            returns_BT: as for `Critic.backward`.
            old_values_BT: as for `Critic.backward`.
            mask_BT: as for `Critic.backward`.
            tokens: as for `Critic.backward`.

        Returns:
            coef * world_size * sum / tokens, 0-dim with gradient: added over micro-batches and
            averaged over processes, coef times the mean over the mini-batch's tokens. A trainer
            that scales its own loss afterwards must leave this one's scale as it is, or undo it.
            And detached sums: see `objective.value_loss`.

        Raises:
            RuntimeError: no forward pass ran within `watch`.
        """
        outputs_BTK = self._outputs(batch)
        total, sums = objective.value_loss(
            outputs_BTK, old_values_BT, returns_BT, mask_BT, self._config
        )
        self._stepper.count(tokens)
        scale = self._config.coef * self._accelerator.num_processes / tokens.clamp(min=1)
        return total * scale, sums

    @torch.no_grad()
    def values(self, batch: Mapping[str, Tensor], passes: Sequence[Tensor]) -> Tensor:
        """As `Critic.values`, by forward passes of the policy."""
        # through the whole model, for sharded weights are gathered there; but with one logit a row
        few = {"logits_to_keep": 1} if self._keep_one_logit else {}
        training = self._policy.training
        self._policy.eval()

        def of_rows(rows: Mapping[str, Tensor]) -> Tensor:
            with self.watch(), self._accelerator.autocast():
                self._policy(**objective.model_inputs(rows), **few, use_cache=False)
            return objective.to_values(self._outputs(rows), self._config)

        values_BT = packing.over_passes(batch, passes, of_rows)
        self._policy.train(training)
        return values_BT

    def step(self) -> dict[str, float]:
        """As `Critic.step`, for the head, whose gradients it averages over processes first."""
        for weight in self.head.parameters():
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            weight.grad = self._accelerator.reduce(weight.grad, "mean")
        return self._stepper.step()

    def save(self, folder: Path) -> None:
        """Writes head, meaning, optimizer and step; every process calls it, one writes."""
        self.save_pretrained(folder)
        if self._accelerator.is_main_process:
            state = {"steps": self.steps, "optimizer": self._stepper.optimizer.state_dict()}
            torch.save(state, folder / OPTIMIZER)
        self._accelerator.wait_for_everyone()

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote; every process calls it.

        Raises:
            ConfigError: the saved values mean something else than the config's.
        """
        check_meaning(folder, self._config)
        self.head.load_state_dict(load_file(folder / HEAD))
        state = torch.load(folder / OPTIMIZER, map_location="cpu", weights_only=True)
        self._stepper.optimizer.load_state_dict(state["optimizer"])
        self._stepper.steps = state["steps"]

    def save_pretrained(self, folder: Path) -> None:
        """Writes the head and its meaning; every process calls it."""
        if self._accelerator.is_main_process:
            folder.mkdir(parents=True, exist_ok=True)
            weights = {name: w.detach().cpu() for name, w in self.head.state_dict().items()}
            save_file(weights, folder / HEAD)
            record = json.dumps(objective.meaning(self._config), indent=1)
            (folder / MEANING).write_text(record + "\n", encoding="utf-8")
        self._accelerator.wait_for_everyone()
