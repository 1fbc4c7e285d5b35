"""From logits to the next token, each row with its own settings and random numbers.

Shape suffixes: B rows, V vocabulary.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

_TOP = 1024


@dataclass(frozen=True, slots=True)
class RowSampler:
    """How one row is sampled.

    Attributes:
        temperature: 0 takes the likeliest.
        top_p: keeps the fewest likeliest tokens that together have this probability.
        numbers: one is drawn for each token.
    """

    temperature: float
    top_p: float
    numbers: random.Random


def next_tokens(logits_BV: torch.Tensor, samplers: Sequence[RowSampler]) -> list[int | None]:
    """The next token of each row; None where its logits are not finite.

    Drawn by the inverse of the distribution function, in vocabulary order, or with top_p in order
    of probability.
    """
    sound = torch.logsumexp(logits_BV, -1).isfinite().tolist()
    tokens = logits_BV.argmax(-1).tolist()
    drawn = [n for n, s in enumerate(samplers) if s.temperature > 0 and sound[n]]
    if drawn:
        scale = torch.tensor([samplers[n].temperature for n in drawn], device=logits_BV.device)
        probabilities = torch.softmax(logits_BV[drawn] / scale[:, None], -1)
        for n, token in zip(drawn, _draw(probabilities, [samplers[n] for n in drawn]), strict=True):
            tokens[n] = token
    return [token if fine else None for token, fine in zip(tokens, sound, strict=True)]


def _draw(probabilities_BV: torch.Tensor, samplers: list[RowSampler]) -> list[int]:
    # In (0, 1], so that a token of probability 0 is never drawn.
    chances = [1.0 - sampler.numbers.random() for sampler in samplers]
    whole = [n for n, sampler in enumerate(samplers) if sampler.top_p >= 1]
    found = dict(
        zip(whole, _invert(probabilities_BV[whole], [chances[n] for n in whole]), strict=True)
    )
    for n, sampler in enumerate(samplers):
        if sampler.top_p < 1:
            values, order = _nucleus(probabilities_BV[n], sampler.top_p)
            found[n] = int(order[_invert(values[None], [chances[n]])[0]])
    return [found[n] for n in range(len(samplers))]


def _invert(weights_BV: torch.Tensor, chances: list[float]) -> list[int]:
    """The first index at which the running sum reaches the chance's share of the whole."""
    if not chances:
        return []
    sums = weights_BV.double().cumsum(-1)
    shares = torch.tensor(chances, dtype=torch.float64, device=sums.device)[:, None] * sums[:, -1:]
    return [int(index) for index in torch.searchsorted(sums, shares).squeeze(-1).tolist()]


def _nucleus(probabilities_V: torch.Tensor, top_p: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The fewest likeliest tokens that reach top_p: probabilities and ids."""
    for count in (min(_TOP, len(probabilities_V)), len(probabilities_V)):
        values, order = probabilities_V.topk(count)
        before = values.double().cumsum(-1) - values
        kept = int((before < top_p).sum())
        if kept < count or count == len(probabilities_V):
            break
    return values[:kept], order[:kept]
