"""Sampling that depends on a seed and a place in the run alone.

torch.multinomial draws from a stream that all rows of a batch share, so a response changes with
its neighbours, with the number of processes and with a resume. Here every response has uniform
numbers of its own, from a counter-based generator (Philox 4x64-10, Salmon et al., "Parallel Random
Numbers: As Easy as 1, 2, 3", SC 2011) whose key is the run's seed and whose counter starts at
(turn, sample, draw). A token is drawn by inverting the cumulative distribution in the order of
token ids, so that small changes of the logits rarely change it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from assay.trainer.algos.sampling import fire_first_token_probs
from assay.trainer.engines.types import Sampling
from assay.trainer.errors import TrainingStoppedError

_WORD = 2**64
_BLOCK = 4  # words for one value of the counter


def uniforms(seed: int, draw_number: int, index: int, count: int) -> NDArray[np.float64]:
    """The random numbers of one response, one for each token.

    The same on every machine; the first numbers do not depend on `count`.

    Args:
        seed: of the run, at least 0; taken modulo 2^128.
        draw_number: the draw's place in the stream of prompts, 0 to 2^64 - 1.
        index: the sample's place in its group, 0 to 2^64 - 1.
        count: how many, at least 0.

    Returns:
        (count,) in [0, 1), multiples of 2^-53.
    """
    return uniform_rows(seed, [(draw_number, index)], count)[0]


def uniform_rows(
    seed: int,
    places: Sequence[tuple[int, int] | tuple[int, int, int]],
    count: int,
    *,
    firsts: Sequence[int] | None = None,
) -> NDArray[np.float64]:
    """`uniforms` of several responses, (B, count).

    Args:
        seed: of the run.
        places: draw number, index and turn of each; the turn is 0 by default.
        count: how many for each.
        firsts: for each, how many numbers to skip: those of tokens that it has already; None for
            none.
    """
    key = np.array([seed % _WORD, seed // _WORD % _WORD], dtype=np.uint64)
    generator = np.random.Philox(key=key)
    state = generator.state  # with an empty buffer
    words_BT = np.empty((len(places), count), dtype=np.uint64)
    for row, (draw_number, index, *later) in enumerate(places):
        turn = later[0] if later else 0
        block, rest = divmod(firsts[row] if firsts else 0, _BLOCK)
        # least significant first
        state["state"]["counter"] = np.array([block, turn, index, draw_number], dtype=np.uint64)
        generator.state = state
        words_BT[row] = generator.random_raw(rest + count)[rest:]
    return np.asarray((words_BT >> np.uint64(11)) * 2.0**-53)


def choose(
    logits_BV: torch.Tensor,
    uniforms_B: torch.Tensor,
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws one token a row: the first whose cumulative probability passes the row's number.

    Args:
        logits_BV: of the next token; computed with in float32. -inf is a token that cannot be.
        uniforms_B: float64 in [0, 1), on the same device.
        temperature: above 0; divides the logits.
        top_k: only tokens at least as likely as the k-th most likely are drawn; 0 for all.
        top_p: of what top_k leaves, only the smallest set of most likely tokens with this share of
            the probability, and those as likely as its last; 1 for all.

    Returns:
        tokens_B, int64; and logprobs_B, float32: log softmax(logits / temperature) of these tokens,
        before top_k and top_p.

    Raises:
        TrainingStoppedError: a row's logits hold NaN or +inf, or nothing but -inf.
    """
    tokens_B, logprobs_B = draw(
        logits_BV, uniforms_B, temperature=temperature, top_k=top_k, top_p=top_p
    )
    if not bool(torch.isfinite(logprobs_B).all()):
        raise not_numbers()
    return tokens_B, logprobs_B


def not_numbers() -> TrainingStoppedError:
    """The error for a log-probability of `draw` that is not finite."""
    return TrainingStoppedError(
        "the policy's logits are not numbers; its weights have diverged, or its precision does not "
        "hold them: lower optim.learning_rate, or set model.precision to float32"
    )


def draw(
    logits_BV: torch.Tensor,
    uniforms_B: torch.Tensor,
    *,
    temperature: float,
    top_k: int,
    top_p: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`choose` without its check: never waits for the device, so that a CUDA graph can hold it.

    With a temperature of 0 it takes the likeliest token, with its log softmax(logits).
    """
    if temperature == 0:
        logps_BV = torch.log_softmax(logits_BV.float(), dim=-1)
        tokens_B = logps_BV.argmax(dim=-1)
        return tokens_B, logps_BV.gather(1, tokens_B[:, None]).squeeze(1)
    logps_BV = torch.log_softmax(_tempered(logits_BV, temperature), dim=-1)
    kept_BV = _filtered(logps_BV, top_k, top_p)
    tokens_B1 = _inverted(kept_BV.double().exp_(), uniforms_B)
    return tokens_B1.squeeze(1), logps_BV.gather(1, tokens_B1).squeeze(1)


def drawn(
    logits_BV: torch.Tensor,
    uniforms_B: torch.Tensor,
    sampling: Sampling,
    firsts_B: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`draw` by a sampling, and by its `first` where `firsts_B` marks a response's first token."""
    tokens_B, logprobs_B = draw(
        logits_BV,
        uniforms_B,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
    )
    first = sampling.first
    if first is None or firsts_B is None:
        return tokens_B, logprobs_B
    own_B, own_logps_B = draw_first(
        logits_BV, uniforms_B, temperature=first.temperature, top_k=first.top_k
    )
    return torch.where(firsts_B, own_B, tokens_B), torch.where(firsts_B, own_logps_B, logprobs_B)


def draw_first(
    logits_BV: torch.Tensor, uniforms_B: torch.Tensor, *, temperature: float, top_k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`draw` of FIRE's first token (arXiv 2410.21236).

    It comes from the softmax of the top_k largest logits / temperature, as does its
    log-probability.
    """
    probs_BV = fire_first_token_probs(logits_BV.float(), temperature=temperature, top_k=top_k)
    tokens_B1 = _inverted(probs_BV.double(), uniforms_B)
    return tokens_B1.squeeze(1), probs_BV.gather(1, tokens_B1).squeeze(1).log()


def _inverted(probs_BV: torch.Tensor, uniforms_B: torch.Tensor) -> torch.Tensor:
    cdf_BV = probs_BV.cumsum_(dim=-1)
    total_B1 = cdf_BV[:, -1:]
    # u * total may round up to the total, which no cumulative probability passes
    below_B1 = torch.nextafter(total_B1, torch.zeros_like(total_B1))
    target_B1 = torch.minimum(uniforms_B[:, None] * total_B1, below_B1)
    return torch.searchsorted(cdf_BV, target_B1, right=True).clamp_(max=cdf_BV.shape[1] - 1)


def _tempered(logits_BV: torch.Tensor, temperature: float) -> torch.Tensor:
    logits_BV = logits_BV.float()
    return logits_BV if temperature == 1.0 else logits_BV / temperature


def _filtered(logps_BV: torch.Tensor, top_k: int, top_p: float) -> torch.Tensor:
    size = logps_BV.shape[1]
    cut = 0 < top_k < size
    if not cut and top_p >= 1.0:
        return logps_BV
    if cut:
        best_BK = torch.topk(logps_BV, top_k, dim=-1).values
    else:
        best_BK = torch.sort(logps_BV, dim=-1, descending=True).values
    threshold_B1 = best_BK[:, -1:]
    if top_p < 1.0:
        threshold_B1 = torch.maximum(threshold_B1, _nucleus_threshold(best_BK, top_p))
    return logps_BV.masked_fill(logps_BV < threshold_B1, float("-inf"))


def _nucleus_threshold(best_BK: torch.Tensor, top_p: float) -> torch.Tensor:
    """The log-probability of the last token of the nucleus; `best_BK` falls along a row."""
    probs_BK = best_BK.double().exp_()
    cdf_BK = probs_BK.cumsum(dim=-1)
    inside_BK = cdf_BK - probs_BK < top_p * cdf_BK[:, -1:]
    last_B1 = (inside_BK.sum(dim=-1, keepdim=True) - 1).clamp_(min=0)
    return best_BK.gather(1, last_B1)
