"""The process reward model of Qwen2.5-Math-PRM (arXiv 2501.07301), a Qwen2 with two labels.

Its published folder brings Python of its own; this replaces it. The trunk is `model`; `score` is
two linear layers with a ReLU between them, at every token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import Qwen2Config, Qwen2Model, Qwen2PreTrainedModel
from transformers.modeling_outputs import TokenClassifierOutput


class Qwen2ForProcessRewardModel(Qwen2PreTrainedModel):
    """Logits of each label at each token."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__(config)
        labels = int(config.num_labels or 2)
        self.model = Qwen2Model(config)
        self.score = nn.Sequential(
            nn.Linear(config.hidden_size, config.hidden_size),
            nn.ReLU(),
            nn.Linear(config.hidden_size, labels),
        )
        self.post_init()

    def forward(self, input_ids: torch.Tensor, **arguments: Any) -> TokenClassifierOutput:
        """Logits [B, T, labels]; other arguments are the trunk's."""
        out = self.model(input_ids, **arguments)
        found = TokenClassifierOutput(logits=self.score(out.last_hidden_state))
        found["past_key_values"] = out.past_key_values
        return found
