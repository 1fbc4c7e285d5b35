"""Options of several tokens as a tree, so that common beginnings are asked about once. Pure.

The log-probability of an option is the sum over its tokens, each given those before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Ids = tuple[int, ...]


def branches(options: Sequence[Ids]) -> dict[Ids, Ids]:
    """The questions: after these tokens of the options, how likely is each of those next.

    Raises:
        ValueError: an option has no tokens.
    """
    if not all(options):
        raise ValueError("an option without tokens")
    asked: dict[Ids, dict[int, None]] = {}
    for option in options:
        for index, token in enumerate(option):
            asked.setdefault(option[:index], {})[token] = None
    return {before: tuple(tokens) for before, tokens in asked.items()}


def totals(options: Sequence[Ids], found: Mapping[Ids, Mapping[int, float]]) -> tuple[float, ...]:
    """The log-probability of each option, from the answers to `branches`."""
    return tuple(
        sum(found[option[:index]][token] for index, token in enumerate(option))
        for option in options
    )


def verdict_mass(options: Sequence[str], logprobs: Sequence[float]) -> float:
    """The share of the model's probability on any of some texts, in [0, 1].

    A text that begins with another one is counted with it.
    """
    counted = [
        logprob
        for option, logprob in zip(options, logprobs, strict=True)
        if not any(option != other and option.startswith(other) for other in options)
    ]
    return min(1.0, math.fsum(map(math.exp, counted)))
