"""`length`: a reward for how long a response is, in one of five shapes.

**What it judges.** L is the length in `unit`: tokens (the caller's count, response_token_count; an
item without one is the fault UNSUPPORTED_INPUT), characters (code points) or words (runs of
characters that are not white space). M is `max_length`.

| shape | reward |
|---|---|
| soft-overlong | 0 for L <= M - C; f ((M - C) - L) / C up to M; -f beyond (DAPO, eq. 13) |
| cosine | a + (b - a) (1 + cos(pi L / M)) / 2 while L + margin < M; else `exceed` |
| linear | max(0, 1 - L / M) |
| up-to | 1 for L <= M; then max(0, 1 - (L - M) / scale) |
| target | max(0, 1 - abs(L - M) / scale) |

C is `cache_length`, f is `factor`. For `cosine` (a, b) is (correct_least, correct_most) when
`correct` is true and (wrong_most, wrong_least) when it is not: of right answers the
shorter earns more, of wrong ones the longer, since thinking on is right while the answer is wrong.

**Correctness.** This verifier sees no answer. In a profile let the verdict of the verifier of
answers choose between two components of `length`, one with `correct` true and one with it false, or
pass `correct` with the item.

**What could be gamed.** A policy can pack more tokens into fewer characters or words: use tokens
wherever the caller knows them. `cosine` pays wrong answers for length: pair it with `repetition`,
as its paper does. `linear` pays for saying nothing; gate it.

**Differences.** soft-overlong ends at -f as in the paper; verl's goes on falling beyond M, and
open-r1's equals this one with f = 1. `cosine` with margin 0 and exceed = wrong_least is open-r1's
shape up to M. up-to and target are open-instruct's (scale 8192), floored at 0. Rewards are for one
response; those relative to a group (Kimi 1.5) are a trainer's.

**Limits.** A text that is written without spaces, as Chinese is, is one word: take characters or
tokens for it.

**Sources.** DAPO (arXiv 2503.14476, equation 13); Demystifying Long Chain-of-Thought (arXiv
2502.03373, appendix C.1); open-r1 and open-instruct for the other shapes.

Measured: 23 published and worked values of the shapes, to 1e-9, and laws on their slopes
(`tests/unit/test_verifier_form.py`). It counts; there is no error beside the count that the caller
states.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNSUPPORTED_INPUT,
    Component,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import Range, verifier

_MOST = 100.0
_MAX_LENGTH = 100_000_000
_BOUNDS = Range(-_MOST, _MOST)


def soft_overlong(length: int, max_length: int, cache_length: int, factor: float = 1.0) -> float:
    """DAPO's soft overlong punishment (arXiv 2503.14476, equation 13) times a factor.

    From -factor to 0.
    """
    over = length - (max_length - cache_length)
    return -factor * min(1.0, over / cache_length) if over > 0 else 0.0


def cosine(
    length: int,
    max_length: int,
    span: tuple[float, float],
    *,
    exceed: float,
    margin: int = 0,
) -> float:
    """The cosine length-scaled reward (arXiv 2502.03373, appendix C.1).

    Args:
        length: of the response.
        max_length: where the response would be cut.
        span: the rewards at max_length and at length 0, in this order.
        exceed: the reward when length + margin reaches max_length.
        margin: lengths this near to the end count as cut.
    """
    if length + margin >= max_length:
        return exceed
    end, start = span
    return end + 0.5 * (start - end) * (1.0 + math.cos(math.pi * length / max_length))


def linear(length: int, max_length: int) -> float:
    """1 for nothing, falling to 0 at max_length."""
    return max(0.0, 1.0 - length / max_length)


def up_to(length: int, max_length: int, scale: int) -> float:
    """1 up to max_length, then falling to 0 over `scale`."""
    return max(0.0, 1.0 - max(0, length - max_length) / scale)


def target(length: int, wanted: int, scale: int) -> float:
    """1 at the wanted length, falling to 0 over `scale` on both sides."""
    return max(0.0, 1.0 - abs(length - wanted) / scale)


@verifier(
    "length",
    verdicts=("within-limit", "near-limit", "over-limit"),
    rewards=(-_MOST, _MOST),
    description="A reward for the length of the response: soft overlong punishment, cosine, "
    "linear, up to or near a length.",
    isolation="inline",
    needs_reference=False,
    cacheable=False,
)
def length(
    item: VerifierItem,
    *,
    shape: Annotated[
        Literal["soft-overlong", "cosine", "linear", "up-to", "target"], "The shape of the reward."
    ] = "soft-overlong",
    unit: Annotated[
        Literal["tokens", "characters", "words"],
        "What length is counted in; tokens are the caller's count.",
    ] = "tokens",
    max_length: Annotated[
        int, Range(1, _MAX_LENGTH), "The greatest length, or the one wanted, in units."
    ] = 20_480,
    cache_length: Annotated[
        int,
        Range(1, _MAX_LENGTH),
        "Of soft-overlong: the last units before max_length, over which the punishment grows; "
        "at most max_length.",
    ] = 4_096,
    factor: Annotated[float, Range(0.0, _MOST), "Of soft-overlong: the greatest punishment."] = 1.0,
    scale: Annotated[
        int,
        Range(1, _MAX_LENGTH),
        "Of up-to and target: over how many units the reward falls from 1 to 0.",
    ] = 8_192,
    correct: Annotated[bool, "Of cosine: whether the answer is right."] = True,
    correct_least: Annotated[
        float, _BOUNDS, "Of cosine: the reward of the longest right response."
    ] = 0.0,
    correct_most: Annotated[
        float, _BOUNDS, "Of cosine: the reward of the shortest right response."
    ] = 1.0,
    wrong_least: Annotated[
        float, _BOUNDS, "Of cosine: the reward of the shortest wrong response."
    ] = -1.0,
    wrong_most: Annotated[
        float, _BOUNDS, "Of cosine: the reward of the longest wrong response."
    ] = 0.0,
    exceed: Annotated[
        float, _BOUNDS, "Of cosine: the reward of a response that reaches max_length."
    ] = -10.0,
    margin: Annotated[
        int,
        Range(0, _MAX_LENGTH),
        "Of cosine: lengths this near to max_length count as reaching it.",
    ] = 0,
) -> Judgement:
    """Measures the response.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT when tokens are asked for and not counted,
            INVALID_PARAMETER when cache_length exceeds max_length.
    """
    count = _length(item, unit)
    near = False
    if shape == "soft-overlong":
        if cache_length > max_length:
            raise Unjudgeable(
                INVALID_PARAMETER,
                f"parameter 'cache_length' ({cache_length}) must not exceed 'max_length' "
                f"({max_length})",
            )
        near = count > max_length - cache_length
        reward = soft_overlong(count, max_length, cache_length, factor)
    elif shape == "cosine":
        near = count + margin >= max_length
        span = (correct_least, correct_most) if correct else (wrong_most, wrong_least)
        reward = cosine(count, max_length, span, exceed=exceed, margin=margin)
    elif shape == "linear":
        reward = linear(count, max_length)
    else:
        reward = (up_to if shape == "up-to" else target)(count, max_length, scale)
    verdict = "over-limit" if count > max_length else "near-limit" if near else "within-limit"
    return Judgement.composed(
        verdict,
        (Component("length", reward), Component(unit, float(count), 0.0)),
        explanation=f"{count} {unit}, limit {max_length}, {shape}",
    )


def _length(item: VerifierItem, unit: str) -> int:
    if unit != "tokens":
        text = item.response()
        return len(text) if unit == "characters" else len(text.split())
    if item.response_token_count is None:
        raise Unjudgeable(
            UNSUPPORTED_INPUT,
            "length in tokens needs response_token_count: send it, or set unit to words",
        )
    return item.response_token_count
