"""The language-model loss on correct responses: VAPO (arXiv 2504.05118), equation of L_NLL.

    L = L_PPO + mu * L_NLL,    L_NLL = mean over the tokens of correct responses of -log pi

Its denominator is the number of tokens of correct responses, not that of the policy loss. Without a
correct response it is 0. [derivation]
"""

from __future__ import annotations

import torch

from assay.trainer.algos.aggregation import aggregate


def positive_mask(mask_BT: torch.Tensor, correct_B: torch.Tensor) -> torch.Tensor:
    """The tokens of correct responses: bool, shape (B, T).

    Args:
        mask_BT: the tokens in the loss, of bool or 0 and 1, shape (B, T).
        correct_B: shape (B,), true where the response was judged correct.
    """
    return mask_BT.bool() & correct_B.bool().unsqueeze(1)


def positive_lm_loss(
    logps_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    correct_B: torch.Tensor,
    *,
    tokens: torch.Tensor | float | None = None,
) -> torch.Tensor:
    """Mean negative log-likelihood of the tokens of correct responses (arXiv 2504.05118).

    Args:
        logps_BT: log-probabilities under the policy, shape (B, T), with gradient.
        mask_BT: the tokens in the loss.
        correct_B: shape (B,).
        tokens: how many tokens `positive_mask` holds in the whole mini-batch, so that micro-batches
            add up; by default in these rows.

    Returns:
        0-dim; 0 where no response is correct.
    """
    return aggregate(-logps_BT, positive_mask(mask_BT, correct_B), "token-mean", tokens=tokens)
