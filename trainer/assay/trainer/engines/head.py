"""The output layer in float32, whatever the rest of the policy computes in.

Logits in bfloat16 have three digits, and sampler and trainer differ by as much; ScaleRL (arXiv
2510.13786) computes the head in float32 on both sides. TRL does so in its fused log-probabilities
(`cast_lm_head_to_fp32`); here the model's own forward pass does, which generates and which TRL's
patch leaves to autocast.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from assay.kit.errors import ConfigError


def head_in_float32(model: Any) -> None:
    """Has a model compute its logits in float32, from weights that become float32.

    The output of an embedding that shares the weights stays as it was.

    Raises:
        ConfigError: its output layer is no plain linear layer, as one with adapters is not.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    head: Any = base.get_output_embeddings()
    kind: Any = type(head)
    if kind is not nn.Linear:
        raise ConfigError(
            f'model.head_precision = "float32": the output layer is a {kind.__module__}.'
            f'{kind.__name__}, no plain linear layer; use "auto", and leave it out of '
            "model.lora.target_modules"
        )
    embeddings, before = base.get_input_embeddings(), head.weight.dtype
    head.float()
    if embeddings.weight is head.weight and before is not torch.float32:
        embeddings.register_forward_hook(lambda _module, _args, out: out.to(before))

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        bias = None if head.bias is None else head.bias.float()
        with torch.autocast(hidden.device.type, enabled=False):
            return nn.functional.linear(hidden.float(), head.weight.float(), bias)

    head.forward = forward
