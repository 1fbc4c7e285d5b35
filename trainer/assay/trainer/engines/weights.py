"""A policy's weights as an engine loads them: full tensors under the names of a checkpoint.

One tensor is gathered and merged at a time, which spares a second whole policy. Adapters are added
to a copy of their weight; the policy stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from assay.kit.errors import ConfigError

_BASE = ".base_layer."
_SAVED = ".modules_to_save."


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor of a policy, before gathering.

    Attributes:
        name: in a checkpoint without adapters.
        tensor: as the policy has it; a part where it is sharded.
        layer: of PEFT, whose adapters belong to it; None for none.
    """

    name: str
    tensor: torch.Tensor
    layer: Any = None

    def full(self, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The whole tensor, adapters merged in, as `dtype` if it is floating.

        Where it is sharded, every process calls this, in the same order.
        """
        whole = _gathered(self.tensor.detach())
        if self.layer is not None:
            whole = _merged(self.layer, whole, bias=self.name.endswith(".bias"))
        return whole.to(dtype) if dtype is not None and whole.is_floating_point() else whole


def weights(model: Any, dtype: torch.dtype | None = None) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and full tensors; see Weight.full. Tied weights come once, under their first name."""
    with torch.no_grad():
        for weight in listed(model):
            yield weight.name, weight.full(dtype)


def listed(model: Any) -> list[Weight]:
    """The weights of a policy, in order, nothing gathered.

    Raises:
        ConfigError: its adapters are of a kind that cannot be merged one weight at a time.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    layers = _adapted(base)
    found: list[Weight] = []
    seen: set[int] = set()
    for name, tensor in base.state_dict(keep_vars=True).items():
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        plain = _plain(name, layers)
        if plain is not None:
            found.append(Weight(plain, tensor, _layer(name, layers)))
    return found


def described(
    model: Any, dtype: torch.dtype | None = None
) -> list[tuple[str, torch.dtype, tuple[int, ...]]]:
    """Names, dtypes and full shapes, as `weights` gives them, nothing gathered."""
    return [
        (
            weight.name,
            dtype
            if dtype is not None and weight.tensor.is_floating_point()
            else weight.tensor.dtype,
            tuple(weight.tensor.shape),
        )
        for weight in listed(model)
    ]


def _adapted(base: Any) -> dict[str, Any]:
    if not getattr(base, "peft_config", None) and not any(
        ".base_layer." in name for name, _ in base.named_parameters()
    ):
        return {}
    from peft.tuners.lora import LoraLayer  # noqa: PLC0415  # with adapters only
    from peft.tuners.tuners_utils import BaseTunerLayer  # noqa: PLC0415
    from peft.utils.other import AuxiliaryTrainingWrapper, ModulesToSaveWrapper  # noqa: PLC0415

    found: dict[str, Any] = {}
    for name, module in base.named_modules():
        if isinstance(module, LoraLayer | ModulesToSaveWrapper):
            found[name] = module
        elif isinstance(module, BaseTunerLayer | AuxiliaryTrainingWrapper):
            raise ConfigError(
                f"{name} has adapters of the kind {type(module).__name__}, which cannot be merged "
                'for an engine of its own; use rollout.backend = "hf"'
            )
    return found


def _plain(name: str, layers: dict[str, Any]) -> str | None:
    """A weight's name in a checkpoint without adapters; None for what only adapters have."""
    for prefix, module in layers.items():
        if not name.startswith(f"{prefix}."):
            continue
        rest = name[len(prefix) :]
        if rest.startswith(_BASE):
            return f"{prefix}.{rest[len(_BASE) :]}"
        if hasattr(module, "lora_A"):
            return None
        active = f"{_SAVED}{module.active_adapters[0]}."
        if rest.startswith(active):
            return f"{prefix}.{rest[len(active) :]}"
        return None
    return name


def _layer(name: str, layers: dict[str, Any]) -> Any:
    """The LoRA layer whose adapters belong to a weight; None for none."""
    prefix, found, _ = name.rpartition(_BASE)
    return layers[prefix] if found else None


def _merged(layer: Any, whole: torch.Tensor, *, bias: bool) -> torch.Tensor:
    """A base weight with the adapters of its layer, as PEFT's own `merge` makes it."""
    if layer.disable_adapters or layer.merged:
        return whole
    for adapter in layer.active_adapters:
        if adapter not in layer.lora_A and adapter not in layer.lora_embedding_A:
            continue
        if adapter in layer.lora_variant:
            raise ConfigError(
                "adapters other than plain LoRA cannot be merged for an engine of its own; use "
                'rollout.backend = "hf"'
            )
        if not bias:
            whole = whole + _gathered(layer.get_delta_weight(adapter)).to(whole)
        elif layer.lora_bias[adapter]:
            own = _gathered(layer.lora_B[adapter].bias.detach())
            whole = whole + (own * layer.scaling[adapter]).to(whole)
    return whole


def _gathered(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
