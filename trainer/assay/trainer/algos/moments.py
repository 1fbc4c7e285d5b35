"""Mean and variance of tokens by key, from float64 sums. Statistics, no method of a paper."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over the tokens of each of K keys.

    Attributes:
        sums_3K: float64, shape (3, K): number of tokens, sum, sum of squares.
    """

    sums_3K: torch.Tensor

    @property
    def counts(self) -> torch.Tensor:
        """Tokens of each key, shape (K,)."""
        return self.sums_3K[0]

    @property
    def means(self) -> torch.Tensor:
        """Means, shape (K,); 0 for a key without tokens."""
        return self.sums_3K[1] / self.counts.clamp(min=1)

    @property
    def variances(self) -> torch.Tensor:
        """Unbiased variances, shape (K,); 0 for a key with fewer than two tokens."""
        about_K = self.sums_3K[2] - self.counts * self.means.square()
        return about_K.clamp(min=0) / (self.counts - 1).clamp(min=1)


def keyed_moments(
    x_BT: torch.Tensor, mask_BT: torch.Tensor, keys_BT: torch.Tensor, keys: int
) -> Moments:
    """The moments of the unmasked tokens.

    `keys_BT` holds whole numbers from 0 to `keys` - 1, shape (B, T) or (B, 1).
    """
    keep_BT = mask_BT.bool()
    x_N = x_BT.detach()[keep_BT].double()
    keys_N = keys_BT.expand(keep_BT.shape)[keep_BT]
    sums_3K = torch.zeros(3, keys, dtype=torch.float64, device=x_BT.device)
    sums_3K.index_add_(1, keys_N, torch.stack([torch.ones_like(x_N), x_N, x_N.square()]))
    return Moments(sums_3K)
