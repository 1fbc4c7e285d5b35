"""What is added to, or replaces, the reward of a response for its length and repetition.

    soft overlong     0, falling to -factor over the last tokens   DAPO (arXiv 2503.14476, eq. 13)
    cosine            reward by correctness and length             arXiv 2502.03373, appendix C.1
    repetition        share of n-grams that occurred before        arXiv 2502.03373, appendix C.2
    concise           a bonus for a correct, short response        Observe-R1, arXiv 2505.12432
    difficulty        a penalty over a budget by the pass rate     TRAAC, arXiv 2510.01581
    progress          similarity of a failure to a success         SRPO, arXiv 2511.15605
    win               w, w - 1/2 or log(w / (1 - w))               Pairwise-RL, arXiv 2504.04950

The verdict stays as it is, and filters such as dynamic sampling read that.

Differences:
1. Of Observe-R1 and TRAAC the ideas are the abstracts'; the forms are derivations. TRAAC's pruning
   by attention is not built.
2. SRPO compares videos in the latent space of a world model. Here a response is its counts of
   n-grams of tokens: exact, the same in every process, and without a second model. The policy's own
   hidden states would move with what they are to judge. [derivation]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

Lengths = float | torch.Tensor
WinForm = Literal["win", "centred", "log-odds"]


def soft_overlong(
    length_B: Lengths, *, max_length: int, cache_length: int, factor: float = 1.0
) -> torch.Tensor:
    """DAPO's soft overlong punishment (arXiv 2503.14476, equation 13), times a factor.

    It grows over the last `cache_length` tokens before `max_length`.

    Returns:
        float64, of the lengths' shape, from -factor to 0.

    Raises:
        ValueError: cache_length is not between 1 and max_length.
    """
    if not 0 < cache_length <= max_length:
        raise ValueError(
            f"cache_length must lie between 1 and max_length = {max_length}, got {cache_length}"
        )
    over = torch.as_tensor(length_B, dtype=torch.float64) - (max_length - cache_length)
    return -factor * (over / cache_length).clamp(0, 1)


def cosine_length_reward(
    length_B: Lengths,
    correct_B: bool | torch.Tensor,
    *,
    max_length: int,
    correct_range: tuple[float, float] = (0.0, 1.0),
    wrong_range: tuple[float, float] = (-1.0, 0.0),
    exceed: float = -10.0,
    margin: int = 0,
) -> torch.Tensor:
    """A reward that favours short correct responses and long wrong ones.

    end + (start - end) (1 + cos(pi length / max_length)) / 2 (arXiv 2502.03373, appendix C.1).

    Args:
        length_B: tokens of each response, a number or shape (B,).
        correct_B: whether each is correct.
        max_length: the most a response may have.
        correct_range: of a correct response, at full length and at length 0.
        wrong_range: of a wrong response, at length 0 and at full length.
        exceed: the reward where length + margin reaches max_length.
        margin: lengths this near to the end count as cut.

    Returns:
        float64, of the lengths' shape.
    """
    length = torch.as_tensor(length_B, dtype=torch.float64)
    correct = torch.as_tensor(correct_B, device=length.device).bool()
    weight = (1 + torch.cos(math.pi * length / max_length)) / 2
    right, wrong = (
        end + (start - end) * weight for end, start in (correct_range, wrong_range[::-1])
    )
    return torch.where(length + margin >= max_length, exceed, torch.where(correct, right, wrong))


def ngram_repetition_penalty(tokens: Sequence[int], n: int, max_penalty: float) -> float:
    """max_penalty * (1 - distinct n-grams / n-grams) (arXiv 2502.03373, appendix C.2).

    Between max_penalty, which is negative, and 0; 0 for fewer than n tokens.

    Raises:
        ValueError: n is less than 1.
    """
    if n < 1:
        raise ValueError(f"n-grams need n of at least 1, got {n}")
    total = len(tokens) - n + 1
    if total <= 0:
        return 0.0
    distinct = len(set(zip(*(tokens[start:] for start in range(n)), strict=False)))
    return max_penalty * (1 - distinct / total)


def concise_bonus(
    length_B: Lengths, correct_B: bool | torch.Tensor, *, below: int, bonus: float
) -> torch.Tensor:
    """`bonus` for a correct response of fewer than `below` tokens, else 0 (arXiv 2505.12432).

    float64, of the lengths' shape.
    """
    length = torch.as_tensor(length_B, dtype=torch.float64)
    short = torch.as_tensor(correct_B, device=length.device).bool() & (length < below)
    return bonus * short.double()


def calibrated_length_penalty(
    length_B: Lengths, pass_rate: float, *, least: int, most: int, factor: float
) -> torch.Tensor:
    """-factor * max(0, L - L*) / L*, by the prompt's budget L* (TRAAC, arXiv 2510.01581).

    L* = least + (1 - pass_rate) (most - least), with the pass rate in [0, 1].

    Returns:
        float64, of the lengths' shape, at most 0.

    Raises:
        ValueError: least is below 1 or above most.
    """
    if not 0 < least <= most:
        raise ValueError(f"a budget lies between 1 and most = {most}, got least = {least}")
    budget = least + (1 - pass_rate) * (most - least)
    length = torch.as_tensor(length_B, dtype=torch.float64)
    return -factor * (length - budget).clamp(min=0) / budget


def prefix_similarities(
    responses: Sequence[Sequence[int]], *, ngram: int, cuts: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How alike responses are on their way, pair by pair: SRPO's progress (arXiv 2511.15605).

    The mean over k = 1 .. cuts of the cosine of two responses' first k / cuts, each the counts of
    its n-grams of 1 to `ngram` tokens.

    Returns:
        (G, G), symmetric, in [0, 1]: 1 for the same tokens, 0 without a common one or for an empty
        response.
    """
    count = len(responses)
    dots_GG = np.zeros((count, count))
    for cut in range(1, cuts + 1):
        ends = [-(-len(ids) * cut // cuts) for ids in responses]
        pieces = [ids[:end] for ids, end in zip(responses, ends, strict=True)]
        counts_GU = _ngram_counts(pieces, ngram)
        lengths_G = np.linalg.norm(counts_GU, axis=1, keepdims=True)
        unit_GU = counts_GU / np.maximum(lengths_G, 1e-12)
        dots_GG += unit_GU @ unit_GU.T
    means_GG: np.ndarray[Any, np.dtype[np.float64]] = np.clip(dots_GG / cuts, 0.0, 1.0)
    return means_GG


def _ngram_counts(
    pieces: Sequence[Sequence[int]], most: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Counts (G, U) of the n-grams of 1 to `most` tokens that occur in any piece."""
    columns: dict[tuple[int, ...], int] = {}
    places: list[tuple[int, int]] = []
    for row, ids in enumerate(pieces):
        for n in range(1, most + 1):
            grams = zip(*(ids[start:] for start in range(n)), strict=False)
            places += [(row, columns.setdefault(gram, len(columns))) for gram in grams]
    counts_GU = np.zeros((len(pieces), len(columns)))
    if places:
        np.add.at(counts_GU, tuple(np.array(places).T), 1.0)
    return counts_GU


def win_reward(win: float, form: WinForm = "win", *, clip: float = 5.0) -> float:
    """The reward of a chance `win` in [0, 1] of beating the anchor.

    w, w - 1/2 or log(w / (1 - w)), the last within [-clip, clip]: derivations from Pairwise-RL
    (arXiv 2504.04950), whose text was not at hand. Where w = sigmoid(r(y) - r(y*)), the log-odds
    are the difference of the scores.

    Raises:
        ValueError: w is no probability, or the form is unknown.
    """
    if not 0 <= win <= 1:
        raise ValueError(f"a win probability lies in [0, 1], got {win}")
    match form:
        case "win":
            return win
        case "centred":
            return win - 0.5
        case "log-odds":
            if win in (0.0, 1.0):
                return clip if win else -clip
            return min(clip, max(-clip, math.log(win) - math.log1p(-win)))
        case _:
            raise ValueError(f"unknown form {form!r}; known: win, centred, log-odds")
