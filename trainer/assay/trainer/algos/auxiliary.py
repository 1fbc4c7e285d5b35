"""The language-model loss on correct responses: VAPO (arXiv 2504.05118), equation of L_NLL.

    L = L_PPO + mu * L_NLL,    L_NLL = mean over the tokens of correct responses of -log pi

It is divided by the tokens of correct responses alone, and is 0 without any. [derivation]
"""

from __future__ import annotations

import torch

from assay.trainer.algos.aggregation import aggregate


def positive_mask(mask_BT: torch.Tensor, correct_B: torch.Tensor) -> torch.Tensor:
    """The tokens in the mask of correct responses: bool, shape (B, T)."""
    return mask_BT.bool() & correct_B.bool().unsqueeze(1)


def positive_lm_loss(
    logps_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    correct_B: torch.Tensor,
    *,
    tokens: torch.Tensor | float | None = None,
) -> torch.Tensor:
    """Mean negative log-likelihood of the tokens of correct responses (arXiv 2504.05118).

    `tokens` counts those of the whole mini-batch (`positive_mask`), so that micro-batches add up;
    by default those of these rows. The result is 0-dim, 0 where no response is correct.
    """
    return aggregate(-logps_BT, positive_mask(mask_BT, correct_B), "token-mean", tokens=tokens)
