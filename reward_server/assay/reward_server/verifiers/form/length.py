r"""`length`: a reward for how long a response is, in one of five shapes.

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
`correct` is true and (wrong_most, wrong_least) when it is not: the shorter a right answer the
better, the longer a wrong one the better, as thinking on is right while the answer is wrong.

**Correctness.** This verifier sees no answer. Inside of a profile let the verdict of the verifier
of answers choose between two components of `length`, one with `correct` true and one with it
false, or pass `correct` with the item.

**What could be gamed.** Characters and words count differently from tokens: a policy can pack more
tokens into fewer of them; use tokens wherever the caller knows them. `cosine` pays wrong answers
for length: pair it with `repetition`, as its paper does. `linear` pays for saying nothing; gate
it.

**Differences.** soft-overlong ends at -f as in the paper; verl's goes on falling beyond M, and
open-r1's equals this one with f = 1. `cosine` with margin 0 and exceed = wrong_least is open-r1's
shape up to M. up-to and target are open-instruct's (scale 8192), floored at 0. Rewards are for one
response; those relative to a group (Kimi 1.5) are a trainer's.

**Limits.** A text that is written without spaces, as Chinese is, is one word: take characters or
tokens for it.

**Sources.** DAPO (arXiv 2503.14476, equation 13); Demystifying Long Chain-of-Thought (arXiv
2502.03373, appendix C.1); open-r1 and open-instruct for the other shapes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNSUPPORTED_INPUT,
    Candidate,
    Component,
    Example,
    Item,
    Judgement,
    ParameterSpec,
    ParameterValue,
    Unjudgeable,
    Verifier,
    VerifierSpec,
)

_MOST = 100.0
_MAX_LENGTH = 100_000_000


def soft_overlong(length: int, max_length: int, cache_length: int, factor: float = 1.0) -> float:
    """DAPO's soft overlong punishment (arXiv 2503.14476, equation 13) times a factor.

    Returns:
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


_SPEC = VerifierSpec(
    name="length",
    version="1",
    description="A reward for the length of the response: soft overlong punishment, cosine, "
    "linear, up to or near a length.",
    tasks=("length",),
    min_reward=-_MOST,
    max_reward=_MOST,
    verdicts=("within-limit", "near-limit", "over-limit"),
    parameters=(
        ParameterSpec(
            "shape",
            "string",
            "soft-overlong",
            "The shape of the reward.",
            allowed_values=("soft-overlong", "cosine", "linear", "up-to", "target"),
        ),
        ParameterSpec(
            "unit",
            "string",
            "tokens",
            "What length is counted in; tokens are the caller's count.",
            allowed_values=("tokens", "characters", "words"),
        ),
        ParameterSpec(
            "max_length",
            "int",
            20_480,
            "The greatest length, or the one wanted, in units.",
            minimum=1,
            maximum=_MAX_LENGTH,
        ),
        ParameterSpec(
            "cache_length",
            "int",
            4_096,
            "Of soft-overlong: the last units before max_length, over which the punishment grows; "
            "at most max_length.",
            minimum=1,
            maximum=_MAX_LENGTH,
        ),
        ParameterSpec(
            "factor",
            "float",
            1.0,
            "Of soft-overlong: the greatest punishment.",
            minimum=0.0,
            maximum=_MOST,
        ),
        ParameterSpec(
            "scale",
            "int",
            8_192,
            "Of up-to and target: over how many units the reward falls from 1 to 0.",
            minimum=1,
            maximum=_MAX_LENGTH,
        ),
        ParameterSpec("correct", "bool", True, "Of cosine: whether the answer is right."),
        *(
            ParameterSpec(
                name, "float", default, f"Of cosine: {what}.", minimum=-_MOST, maximum=_MOST
            )
            for name, default, what in (
                ("correct_least", 0.0, "the reward of the longest right response"),
                ("correct_most", 1.0, "the reward of the shortest right response"),
                ("wrong_least", -1.0, "the reward of the shortest wrong response"),
                ("wrong_most", 0.0, "the reward of the longest wrong response"),
                ("exceed", -10.0, "the reward of a response that reaches max_length"),
            )
        ),
        ParameterSpec(
            "margin",
            "int",
            0,
            "Of cosine: lengths this near to max_length count as reaching it.",
            minimum=0,
            maximum=_MAX_LENGTH,
        ),
    ),
    cacheable=False,  # judging again costs less than looking up
    needs_reference=False,
    isolation="inline",
)


class LengthVerifier(Verifier):
    """Rewards or punishes length."""

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""
        return _SPEC

    @property
    def examples(self) -> tuple[Example, ...]:
        """A short, a long and a too long response."""
        return (
            Example(_example(16_384), "within-limit"),
            Example(_example(18_432), "near-limit"),
            Example(_example(20_481), "over-limit"),
        )

    def judge(self, item: Item) -> Judgement:
        """Measures the response.

        Raises:
            Unjudgeable: UNSUPPORTED_INPUT when tokens are asked for and not counted,
                INVALID_PARAMETER when cache_length exceeds max_length.
        """
        values = item.parameters
        unit, most = str(values["unit"]), _whole(values, "max_length")
        length = _length(item, unit)
        reward, near = _reward(length, most, values)
        verdict = "over-limit" if length > most else "near-limit" if near else "within-limit"
        return Judgement.composed(
            verdict,
            (Component("length", reward), Component(unit, float(length), 0.0)),
            explanation=f"{length} {unit}, limit {most}, {values['shape']}",
        )


def _length(item: Item, unit: str) -> int:
    """How long the response is.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT when tokens are asked for and not counted.
    """
    if unit != "tokens":
        text = item.response()
        return len(text) if unit == "characters" else len(text.split())
    if item.response_token_count is None:
        raise Unjudgeable(
            UNSUPPORTED_INPUT,
            "length in tokens needs response_token_count: send it, or set unit to words",
        )
    return item.response_token_count


def _reward(length: int, most: int, values: Mapping[str, ParameterValue]) -> tuple[float, bool]:
    """The reward of a length, and whether it is inside the stretch before the limit.

    Raises:
        Unjudgeable: INVALID_PARAMETER when cache_length exceeds max_length.
    """
    shape = values["shape"]
    if shape == "soft-overlong":
        cache = _whole(values, "cache_length")
        if cache > most:
            raise Unjudgeable(
                INVALID_PARAMETER,
                f"parameter 'cache_length' ({cache}) must not exceed 'max_length' ({most})",
            )
        near = length > most - cache
        return soft_overlong(length, most, cache, _real(values, "factor")), near
    if shape == "cosine":
        margin = _whole(values, "margin")
        ends = ("correct_least", "correct_most") if values["correct"] else _WRONG_SPAN
        span = (_real(values, ends[0]), _real(values, ends[1]))
        exceed = _real(values, "exceed")
        reward = cosine(length, most, span, exceed=exceed, margin=margin)
        return reward, length + margin >= most
    if shape == "linear":
        return linear(length, most), False
    scale = _whole(values, "scale")
    return (up_to if shape == "up-to" else target)(length, most, scale), False


_WRONG_SPAN = ("wrong_most", "wrong_least")


def _whole(values: Mapping[str, ParameterValue], name: str) -> int:
    value = values[name]
    return value if isinstance(value, int) else 0


def _real(values: Mapping[str, ParameterValue], name: str) -> float:
    value = values[name]
    return float(value) if isinstance(value, int | float) else 0.0


def _example(tokens: int, **parameters: ParameterValue) -> Item:
    return Item(
        Candidate("words"), parameters=_SPEC.complete(parameters), response_token_count=tokens
    )
