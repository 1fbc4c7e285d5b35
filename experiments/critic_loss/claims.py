"""What Stop Regressing (arXiv 2403.03950) says of values learnt by classification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from assay.trainer.algos.value_losses import ValueBins, mse_value_losses
from experiments.claim import Claim

INPUTS, WIDTH, SEEN, BATCH = 16, 128, 4096, 256
BINS = ValueBins(-1.25, 1.25, 51)
RATE, EPOCHS = 3e-4, 20
"""The best of two rates and six lengths for either loss, by pilots."""
OUTCOMES = (
    "a network of two layers of 128 on 4,096 states of 16 numbers; the true value is a smooth"
    " function between -1 and 1, known in closed form, and a target is an outcome of -1 or 1 drawn"
    " with that mean; 20 epochs at the learning rate that is the best for either loss; 51 bins"
)
CLAIMS = tuple(
    Claim(
        f"critic-{loss}",
        f"A value learnt as a histogram ({loss}) is nearer to the truth than one by regression,"
        " where targets are noisy.",
        "Stop Regressing, arXiv 2403.03950, analysis of noisy targets",
        OUTCOMES + ".",
        "The noise is that of outcome rewards, up to 1 in variance, and the network can fit much of"
        " it. The truth is known, so that the error is no estimate.",
        "error",
        loss,
        "mse",
        -0.01,
        0.018,
    )
    for loss in ("hl-gauss", "two-hot")
)


def prepare(models: Path) -> None:
    """Nothing: data are drawn by the seed."""


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Learns from outcomes; the mean squared error to the true values of fresh states."""
    return {"error": learnt(arm, seed, RATE, EPOCHS)}


def learnt(loss: str, seed: int, rate: float, epochs: int) -> float:
    """The error after so many epochs."""
    dice = torch.Generator().manual_seed(seed)
    truth = _truth(dice)
    states, fresh = (torch.randn(SEEN, INPUTS, generator=dice) for _ in range(2))
    outcomes = 2 * torch.bernoulli((truth(states) + 1) / 2, generator=dice) - 1
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Linear(INPUTS, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, 1 if loss == "mse" else BINS.count),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    for _ in range(epochs):
        for rows in torch.randperm(SEEN, generator=dice).split(BATCH):
            told = network(states[rows])
            if loss == "mse":
                each = mse_value_losses(told.squeeze(-1), outcomes[rows])
            else:
                encode = BINS.hl_gauss if loss == "hl-gauss" else BINS.two_hot
                each = BINS.cross_entropy(told, encode(outcomes[rows]))
            optimizer.zero_grad()
            each.mean().backward()
            optimizer.step()
    with torch.no_grad():
        told = network(fresh)
        values = told.squeeze(-1) if loss == "mse" else BINS.expectation(told)
        return float((values - truth(fresh)).square().mean())


def _truth(dice: torch.Generator) -> nn.Module:
    """A smooth function, drawn anew for each seed."""

    class Truth(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.randn(INPUTS, 8, generator=dice) / INPUTS**0.5
            self.second = torch.randn(8, generator=dice) / 8**0.5

        def forward(self, states: torch.Tensor) -> torch.Tensor:
            return torch.tanh(torch.tanh(2 * states @ self.first) @ self.second)

    return Truth()
