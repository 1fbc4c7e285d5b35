"""Random batches for the laws of the algorithms' arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from hypothesis import settings
from hypothesis import strategies as st

law = settings(max_examples=settings.default.max_examples // 3)
"""A third of the profile's examples: each is many small tensors."""


@dataclass(frozen=True)
class Batch:
    """B rows of T tokens, float64; every row may have another mask, also an empty one."""

    mask_BT: torch.Tensor
    seed: int

    def normal(self, salt: int = 0, scale: float = 1.0) -> torch.Tensor:
        """Random numbers, shape (B, T)."""
        source = torch.Generator().manual_seed(self.seed * 1000 + salt)
        return scale * torch.randn(self.mask_BT.shape, generator=source, dtype=torch.float64)

    def logps(self, salt: int = 0) -> torch.Tensor:
        """Log-probabilities of tokens, shape (B, T)."""
        return -self.normal(salt).abs() - 0.05

    def spoiled(self, x_BT: torch.Tensor, value: float) -> torch.Tensor:
        """The same with another value at masked tokens."""
        return torch.where(self.mask_BT, x_BT, value)


@st.composite
def batches(
    draw: st.DrawFn, *, max_rows: int = 5, max_tokens: int = 12, inner: bool = True, least: int = 0
) -> Batch:
    """Batches.

    Args:
        max_rows: most rows.
        max_tokens: most tokens in a row.
        inner: masked tokens may lie anywhere; else only at the end.
        least: unmasked tokens that each row has at the start.
    """
    b, t = draw(st.integers(1, max_rows)), draw(st.integers(max(1, least), max_tokens))
    if inner:
        row = st.lists(st.booleans(), min_size=t, max_size=t)
        mask = torch.tensor(draw(st.lists(row, min_size=b, max_size=b)))
        mask[:, :least] = True
    else:
        lengths = draw(st.lists(st.integers(least, t), min_size=b, max_size=b))
        mask = torch.arange(t) < torch.tensor(lengths).unsqueeze(1)
    return Batch(mask, draw(st.integers(0, 10_000)))


def gradient(function: Callable[[torch.Tensor], torch.Tensor], at: torch.Tensor) -> torch.Tensor:
    """Of the function's sum."""
    leaf = at.clone().requires_grad_(True)
    (result,) = torch.autograd.grad(function(leaf).sum(), leaf)
    return result


def close(one: torch.Tensor, other: torch.Tensor, tolerance: float = 1e-9) -> bool:
    """Equal shapes and values."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=tolerance, atol=tolerance)
