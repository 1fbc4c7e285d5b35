"""Scores of one row's suspicion, from what the model's own answers were drawn with. Pure.

Self-Critique (arXiv 2510.09259) and the baselines that its authors compare with, after their code
(RL-Data-Contamination). A policy that reinforcement learning has collapsed onto one path of a
problem follows it again when asked for another: the entropies of its tokens are the same.

Each score is higher for a more suspicious row. Differences from the authors' code:
1. Entropies are those of the whole vocabulary; theirs are of the likeliest tokens that vLLM gives.
2. Min-K% is the mean of the least likely tokens' log-probabilities (arXiv 2310.16789, equation 1);
   they take its negative, also as higher for members.
3. A score that is not defined (no token, no entropy at all) is None, and none of ours reads as 0.
4. CDD's edit distance is of whole responses; theirs is of the first 100 tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

SELF_CRITIQUE = "self-critique"
MIN_K_SHARE = 0.2
PEAK_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer, token by token, under the model's own distribution at temperature 1.

    Attributes:
        logprobs_T: of the drawn tokens, at most 0.
        entropies_T: in nats, of the distributions that they were drawn from.
        squares_T: the expected square of a token's log-probability there.
    """

    ids: tuple[int, ...]
    logprobs_T: tuple[float, ...]
    entropies_T: tuple[float, ...]
    squares_T: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """The answers to one row.

    Attributes:
        first: the likeliest one.
        second: the likeliest one when another way is asked for, with the first in the prompt.
        perturbed: the likeliest one to the prompt between two other texts; None if not asked.
        samples: the tokens of drawn ones.
    """

    first: Answered
    second: Answered
    perturbed: Answered | None = None
    samples: Sequence[Sequence[int]] = field(default=())


def entropy_similarity(first_T: Sequence[float], second_T: Sequence[float]) -> float | None:
    """Cosine of two sequences, the shorter padded with 0, times shorter / longer length.

    Self-Critique's score (arXiv 2510.09259, code), in [0, 1] for entropies. None where a sequence
    is empty or all 0.
    """
    shorter, longer = sorted((len(first_T), len(second_T)))
    norm = math.hypot(*first_T) * math.hypot(*second_T)
    if not shorter or not norm:
        return None
    dot = math.fsum(a * b for a, b in zip(first_T, second_T, strict=False))
    return min(1.0, dot / norm) * shorter / longer


def min_k(scores_T: Sequence[float], share: float = MIN_K_SHARE) -> float | None:
    """Mean of the lowest `share` of the tokens' scores, at least one (arXiv 2310.16789)."""
    if not scores_T:
        return None
    return fmean(sorted(scores_T)[: max(1, int(len(scores_T) * share))])


def min_k_plus(answer: Answered, share: float = MIN_K_SHARE) -> float | None:
    """Min-K%++ (arXiv 2404.02936): log-probabilities standardised under their distributions."""
    spread = zip(answer.logprobs_T, answer.entropies_T, answer.squares_T, strict=True)
    return min_k(
        [
            (logprob + entropy) / math.sqrt(max(square - entropy**2, 1e-6))
            for logprob, entropy, square in spread
        ],
        share,
    )


def peak(greedy: Sequence[int], samples: Sequence[Sequence[int]]) -> float | None:
    """CDD (arXiv 2402.15938): the share of samples within PEAK_ALPHA edits of the likeliest one.

    PEAK_ALPHA is of the mean length of all of them, as in Self-Critique's code.
    """
    if not samples:
        return None
    near = PEAK_ALPHA * fmean([len(greedy), *map(len, samples)])
    return fmean(edit_distance(greedy, one) <= near for one in samples)


def edit_distance(one: Sequence[int], other: Sequence[int]) -> int:
    """Levenshtein's distance of two sequences of tokens."""
    row_T = np.arange(len(other) + 1)
    places_T = np.arange(1, len(other) + 1)
    theirs_T = np.asarray(other, dtype=np.int64)
    for count, token in enumerate(one, 1):
        moved_T = np.minimum(row_T[1:] + 1, row_T[:-1] + (theirs_T != token))
        reached_T = np.minimum.accumulate(np.concatenate(([count], moved_T - places_T)))
        row_T = reached_T + np.arange(len(other) + 1)
    return int(row_T[-1])


def _recall(row: RowAnswers) -> float | None:
    """ReCaLL (arXiv 2406.15968), as adapted in Self-Critique's code."""
    if row.perturbed is None:
        return None
    own = fmean(row.first.logprobs_T)
    return fmean(row.perturbed.logprobs_T) / own if own else None


SCORES: Mapping[str, Callable[[RowAnswers], float | None]] = {
    SELF_CRITIQUE: lambda row: entropy_similarity(row.first.entropies_T, row.second.entropies_T),
    "perplexity": lambda row: -math.exp(-fmean(row.first.logprobs_T)),
    "min-k": lambda row: min_k(row.first.logprobs_T),
    "min-k++": lambda row: min_k_plus(row.first),
    "recall": _recall,
    "cdd": lambda row: peak(row.first.ids, row.samples),
}
"""Scores by name; higher is more suspicious. `perplexity` is its negative."""
