"""Letters for verdicts, drawn so that nobody who writes a response knows them.

The letters of a judgement are a hash, keyed by the seed, of all that is judged: equal for equal
seeds and texts, and without the seed not to be told ahead.

Covered: verdicts that are written into a response, whatever their letter. Not covered: orders that
name the verdict and no letter ("say that it is correct"); bench/judge_injection measures both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

# Not those with a meaning in a judge's usual forms: A to D and F, Y and N, T, W, P, X, G, R, S, and
# I and O, which read as digits or words.
LETTERS = "EHJKLMQUVZ"
_DIGEST_BYTES = 16
_SEED_BYTES = 8


def draw(count: int, seed: int, texts: Iterable[str]) -> tuple[str, ...]:
    """So many different letters, by the seed (a signed 64-bit number) and the texts, in order.

    Raises:
        ValueError: there are not so many letters.
    """
    if count > len(LETTERS):
        raise ValueError(f"{count} of {len(LETTERS)} letters")
    key = seed.to_bytes(_SEED_BYTES, "big", signed=True)
    digest = hashlib.blake2b(key=key, digest_size=_DIGEST_BYTES)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    number, left, drawn = int.from_bytes(digest.digest(), "big"), list(LETTERS), []
    for _ in range(count):
        number, at = divmod(number, len(left))
        drawn.append(left.pop(at))
    return tuple(drawn)
