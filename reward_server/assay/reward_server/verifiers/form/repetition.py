"""`repetition`: a penalty for repeating oneself.

**What it judges.** The response falls into T units and these into their T - n + 1 n-grams; the
share of n-grams that occurred before, 1 - distinct / all, times `max_penalty` is the reward (from
max_penalty to 0). Units are words (lower case, split at white space); where Chinese, Japanese, Thai
and the like are written without spaces each character is a unit (`unit` = auto). Responses of fewer
than n units get 0. The verdict is repetitive when the share exceeds `tolerance`.

Two components of weight 0 each have a suspicion of their own:

- `longest-repeat`: how long a run of units is that occurs twice (1,024 at most), among the last
  4,096 units; `long-repeat` is suspected from `long_repeat` units on. Loops are at the end of the
  response.
- `compression-ratio`: characters as UTF-8 per byte that zlib needs; `highly-compressible` is
  suspected above `compression`. Prose has 2 to 3, a loop more than 10. Not measured below 512
  bytes.

**What could be gamed.** Variation without meaning: numbered or reworded sentences repeat no n-gram.
A large n sees loops only, a small n (3) punishes lists, tables and code, which repeat lawfully:
leave `max_penalty` small there. Silence reaches 0, the greatest reward.

**Differences.** arXiv 2502.03373 counts tokens (n = 20 there; open-r1 and TRL count words with n =
3, the default here) and open-r1 segments Chinese into words with jieba; characters stand in for
them. The paper gives the penalty to each token in its source; the reward here is one number.

**Limits.** Linear in the response but for a factor n. The server itself judges responses of up to
8,192 characters, a worker the rest.

**Sources.** Demystifying Long Chain-of-Thought (arXiv 2502.03373, appendix C.2); open-r1's
`get_repetition_penalty_reward`.

Measured: shares equal to a plain count, and the longest repeat to a plain search, on random texts
(`tests/property/test_verifier_form_laws.py`): no difference. Which responses people call loops: not
yet, because no such labels are at hand.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Annotated, Literal

from assay.reward_server.domain import (
    Component,
    Judgement,
    VerifierItem,
)
from assay.reward_server.functions import Range, verifier

MAX_NGRAM = 40
_MOST = 100.0
_GLANCE_CHARS = 8_192
_TAIL_UNITS = 4_096
_MAX_REPEAT = 1_024
_LEAST_COMPRESSED_BYTES = 512
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003134f"
)
_AUTO_UNIT = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


def units(text: str, unit: str = "auto") -> list[str]:
    """The units of a text, in lower case.

    Args:
        text: any text.
        unit: "words" split at white space; "characters" without white space; "auto" words, but
            single characters of scripts that are written without spaces.
    """
    text = text.lower()
    if unit == "characters":
        return list("".join(text.split()))
    return text.split() if unit == "words" else _AUTO_UNIT.findall(text)


def numbered(parts: Sequence[Hashable]) -> list[int]:
    """The parts as small numbers, equal ones alike."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(part, len(numbers)) for part in parts]


def repeated_share(numbers: Sequence[int], n: int) -> float:
    """The share of n-grams that occurred before: 1 - distinct / all (arXiv 2502.03373, C.2).

    From 0 to 1; 0 for fewer than n units.
    """
    total = len(numbers) - n + 1
    if total <= 0:
        return 0.0
    packed = array("L", numbers)
    width = packed.itemsize
    data = packed.tobytes()
    distinct = {data[i * width : (i + n) * width] for i in range(total)}
    return 1.0 - len(distinct) / total


def longest_repeat(numbers: Sequence[int]) -> int:
    """The length of the longest run of units that occurs twice (overlaps count), at most 1,024.

    Only the last 4,096 units are looked at. Sorted by what follows them, the two places that agree
    the longest are neighbours.
    """
    data = array("H", numbered(numbers[-_TAIL_UNITS:])).tobytes()
    places = sorted(data[i : i + 2 * _MAX_REPEAT] for i in range(0, len(data), 2))
    longest = 0
    for one, other in pairwise(places):
        shorter = min(len(one), len(other))
        while 2 * longest < shorter and one.startswith(other[: 2 * longest + 2]):
            longest += 1
    return longest


def compression_ratio(text: str) -> float:
    """Bytes of the text per byte of it when compressed; 0 for texts too short to tell."""
    data = text.encode("utf-8", "replace")
    if len(data) < _LEAST_COMPRESSED_BYTES:
        return 0.0
    return len(data) / len(zlib.compress(data, 1))


@verifier(
    "repetition",
    verdicts=("varied", "repetitive"),
    rewards=(-_MOST, 0.0),
    needs_reference=False,
    glance=_GLANCE_CHARS,
)
def repetition(
    item: VerifierItem,
    *,
    ngram: Annotated[int, Range(1, MAX_NGRAM), "How many units an n-gram has."] = 3,
    max_penalty: Annotated[float, Range(-_MOST, 0.0), "The reward when everything repeats."] = -1.0,
    unit: Annotated[
        Literal["auto", "words", "characters"],
        "What n-grams are made of; auto takes words, and characters of scripts that are "
        "written without spaces.",
    ] = "auto",
    tolerance: Annotated[
        float,
        Range(0.0, 1.0),
        "The share of repeated n-grams above which the verdict is repetitive.",
    ] = 0.2,
    long_repeat: Annotated[
        int,
        Range(2, _MAX_REPEAT),
        "How many units in a row may occur twice before long-repeat is suspected.",
    ] = 50,
    compression: Annotated[
        float,
        Range(1.0, 1000.0),
        "The compression ratio above which highly-compressible is suspected.",
    ] = 8.0,
) -> Judgement:
    """A penalty for the share of n-grams that repeat earlier ones."""
    text = item.response()
    numbers = numbered(units(text, unit))
    share = repeated_share(numbers, ngram)
    run = longest_repeat(numbers)
    ratio = compression_ratio(text)
    suspicions = []
    if run >= long_repeat:
        suspicions.append("long-repeat")
    if ratio > compression:
        suspicions.append("highly-compressible")
    return Judgement.composed(
        "repetitive" if share > tolerance else "varied",
        (
            Component("repetition", share * max_penalty or 0.0),
            Component("repeated-share", share, 0.0),
            Component("longest-repeat", float(run), 0.0),
            Component("compression-ratio", ratio, 0.0),
        ),
        explanation=f"{share:.1%} of {ngram}-grams repeat; longest repeat {run} units",
        suspicions=tuple(suspicions),
    )
