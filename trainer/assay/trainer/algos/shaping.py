"""What is added to, or replaces, the reward of a response for its length and repetition.

    soft overlong     0, falling to -factor over the last tokens   DAPO (arXiv 2503.14476, eq. 13)
    cosine            reward by correctness and length             arXiv 2502.03373, appendix C.1
    repetition        share of n-grams that occurred before        arXiv 2502.03373, appendix C.2
    win               w, w - 1/2 or log(w / (1 - w))               Pairwise-RL, arXiv 2504.04950

The verdict stays as it is, and filters such as dynamic sampling read that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

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
