"""Distributions that a token is drawn from.

FIRE (arXiv 2410.21236) draws the first token of a response at a very high temperature among the
likeliest few. That token is not from the policy's distribution, so the policy's loss must leave it
out or weigh it. [derivation]
"""

from __future__ import annotations

import torch


def fire_first_token_probs(
    logits_V: torch.Tensor, *, temperature: float = 30.0, top_k: int = 16
) -> torch.Tensor:
    """The softmax of the top_k largest logits / temperature: FIRE (arXiv 2410.21236).

    30 and 16 are those of its first author's code. Tokens equal to the last of the top_k can be
    drawn, too. The result has shape (..., V), 0 for tokens that cannot be drawn.
    """
    least = logits_V.topk(min(top_k, logits_V.shape[-1]), dim=-1).values[..., -1:]
    kept = logits_V.masked_fill(logits_V < least, float("-inf"))
    return torch.softmax(kept / temperature, dim=-1)
