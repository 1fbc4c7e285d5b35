"""The critic's loss of each token, for a critic that predicts a number or a histogram.

    mse       (V - R)^2 / 2
    clipped   max( (V - R)^2, (clip(V, V_old - c, V_old + c) - R)^2 ) / 2
    hl-gauss  cross-entropy to p_i = Phi((b_{i+1} - R) / s) - Phi((b_i - R) / s)
    two-hot   cross-entropy to the two bins next to R, weighed so that their mean is R

HL-Gauss is of arXiv 2403.03950; the clipped loss is that of PPO's implementations. What a token
loses against the likeliest one is B-Coder's (arXiv 2310.03173).

Differences:
1. The bins of both histograms have their centres from `low` to `high` inclusive, so that the two
   encodings share one head; the outermost HL-Gauss bins reach half a width beyond.
2. HL-Gauss's probabilities are divided by the mass within the bins, so they sum to 1. Near the ends
   this draws its mean inwards; choose bins wider than the returns where that matters.
3. Targets outside are moved to the nearest end.
4. The spread s of 0.75 bin widths is our default. [derivation]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

SIGMA_RATIO = 0.75
"""The spread of HL-Gauss in bin widths."""


def mse_value_losses(values_BT: torch.Tensor, returns_BT: torch.Tensor) -> torch.Tensor:
    """(V - R)^2 / 2: PPO's usual loss, and that of VC-PPO's pre-training (arXiv 2503.01491)."""
    return (values_BT - returns_BT).square() / 2


def clipped_value_losses(
    values_BT: torch.Tensor, old_values_BT: torch.Tensor, returns_BT: torch.Tensor, *, clip: float
) -> torch.Tensor:
    """The larger of the squared errors of V and of V moved by at most `clip` from V_old, halved.

    [derivation: the form of PPO's common implementations; arXiv 1707.06347 does not give it]
    `old_values_BT` are those at the time of the rollout.
    """
    near_BT = torch.maximum(torch.minimum(values_BT, old_values_BT + clip), old_values_BT - clip)
    return torch.maximum((values_BT - returns_BT).square(), (near_BT - returns_BT).square()) / 2


def greedy_gaps(
    logits_BTV: torch.Tensor, ids_BT: torch.Tensor, *, temperature: float
) -> torch.Tensor:
    """What each token loses against the likeliest one, (B, T), at least 0 (arXiv 2310.03173).

    temperature * (max over the vocabulary of the logits - the token's): -A(s, a) of equation 7.
    `ids_BT` are the tokens that stand behind what `logits_BTV` have seen.
    """
    logits_BTV = logits_BTV.float()
    told_BT = logits_BTV.gather(-1, ids_BT.unsqueeze(-1)).squeeze(-1)
    return temperature * (logits_BTV.amax(dim=-1) - told_BT)


@dataclass(frozen=True, slots=True)
class ValueBins:
    """A histogram over values.

    Attributes:
        low: centre of the first bin.
        high: centre of the last bin.
        count: bins, at least 2.
    """

    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        if self.count < 2 or not self.low < self.high:
            raise ValueError(f"bins need low < high and a count of at least 2, got {self}")

    @property
    def width(self) -> float:
        """Of one bin."""
        return (self.high - self.low) / (self.count - 1)

    def centres(self, like: torch.Tensor) -> torch.Tensor:
        """Shape (K,), on the device of `like`, float64."""
        return torch.linspace(
            self.low, self.high, self.count, dtype=torch.float64, device=like.device
        )

    def hl_gauss(self, targets_BT: torch.Tensor) -> torch.Tensor:
        """The mass of a normal distribution around each target in each bin; shape (..., K).

        arXiv 2403.03950.
        """
        centres_K = self.centres(targets_BT)
        edges_E = torch.cat([centres_K - self.width / 2, centres_K[-1:] + self.width / 2])
        distance = edges_E - self._inside(targets_BT).unsqueeze(-1)
        below = torch.erf(distance / (SIGMA_RATIO * self.width * math.sqrt(2)))
        mass = below[..., -1:] - below[..., :1]
        return (below.diff(dim=-1) / mass).to(targets_BT.dtype)

    def two_hot(self, targets_BT: torch.Tensor) -> torch.Tensor:
        """Weights of the two bins next to each target whose mean is the target; (..., K)."""
        place = (self._inside(targets_BT) - self.low) / self.width
        distance = (place.unsqueeze(-1) - torch.arange(self.count, device=place.device)).abs()
        return (1 - distance).clamp(min=0).to(targets_BT.dtype)

    def expectation(self, logits_BTK: torch.Tensor) -> torch.Tensor:
        """The mean of the histogram that the logits stand for: V, shape (...)."""
        probabilities = torch.softmax(logits_BTK.double(), dim=-1)
        return (probabilities @ self.centres(logits_BTK)).to(logits_BTK.dtype)

    def cross_entropy(
        self, logits_BTK: torch.Tensor, target_probabilities_BTK: torch.Tensor
    ) -> torch.Tensor:
        """-sum_i p_i log q_i of each token; shape (...)."""
        logq_BTK = torch.log_softmax(logits_BTK, dim=-1)
        return -(target_probabilities_BTK * logq_BTK).sum(dim=-1)

    def _inside(self, targets_BT: torch.Tensor) -> torch.Tensor:
        return targets_BT.double().clamp(self.low, self.high)
