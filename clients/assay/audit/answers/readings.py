"""What a notation is: a lenient reader, and what is close. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from assay.audit.answers.shapes import Miss

Readings = frozenset[Hashable]
NOTHING: Readings = frozenset()


@dataclass(frozen=True, slots=True)
class Notation:
    """How answers of one form are read, and what is close to them.

    Attributes:
        read: all readings of a text; none of what is no such answer.
        misses: texts close to one; wrong where they are apart from it.
        asked: what a prompt must say; None: the text alone tells.
        sure: what a text has that needs no such prompt.
        apart: whether two readings never mean the same; equality where None.
    """

    name: str
    read: Callable[[str], Readings]
    misses: Callable[[str, str], Iterator[Miss]]
    asked: re.Pattern[str] | None = None
    sure: re.Pattern[str] | None = None
    apart: Callable[[Hashable, Hashable], bool] | None = None

    def differ(self, given: str, right: str) -> bool:
        """Whether two texts are apart however they are read."""
        a, b = _readings(self.read, given), _readings(self.read, right)
        apart = self.apart or (lambda one, other: one != other)
        return bool(a and b) and all(apart(x, y) for x, y in itertools.product(a, b))


@lru_cache(1 << 14)
def _readings(read: Callable[[str], Readings], text: str) -> Readings:
    return read(text)


def asked(words: str) -> re.Pattern[str]:
    """A pattern of whole words in a prompt."""
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
