"""Letters for verdicts, drawn so that nobody who writes a response knows them.

A response that says "Answer: A" counts on A being an option. Drawn letters are no word of the
public template, and each stands for each of two opposite verdicts once: what a judge gives to the
letter itself, its place in the list, or a letter that the candidate wrote, falls out of the mean.

The letters of a judgement are a keyed hash of the seed over all that is judged. Equal seeds and
texts give equal letters; without the seed they cannot be told ahead, and the server draws one for
each call that states none.

Covered: verdicts that are written into a response, whatever their letter. Not covered: orders that
name the verdict and no letter ("say that it is correct"); bench/judge_injection measures both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

LETTERS = "EHJKLMQUVZ"
"""Letters that stand for nothing in a judge's usual forms: no A, B, C, D or grade F, no Y and N, T
and F, C and W, P and X, G, R or S (same), and none that reads as a digit or a word (I, O)."""
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
