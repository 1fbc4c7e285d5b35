"""Takes the dress off a short text: Markdown, LaTeX, emoji. What is said stays as it is.

Linear in the text's length; meant for a line, not for prose.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

MARKS = {
    "\u2705": True,  # white heavy check mark
    "\u2714": True,
    "\u2713": True,
    "\u2611": True,
    "\u274c": False,  # cross mark
    "\u274e": False,
    "\u2717": False,
    "\u2718": False,
    "\u2716": False,
}
"""Signs that judges write for right and wrong."""
_LATEX = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|textrm|mathrm|mathbf|underline)\s?\{|\\[()\[\]]|[${}]"
)
_EMPHASIS = re.compile(r"[*_`~]+|</?(?:b|i|strong|em|u|code|mark)>", re.IGNORECASE)
_FRONT = re.compile(r"\A(?:[#\s]|[-+\u2022\u2023\u25e6\u2043\u2013](?=\s))+")
_DASHES = re.compile(r"\s?(?:->|=>|[\u2013\u2014\u2192:=])\s?")
_BRACKETS = {"(": ")", "[": "]"}
QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u300c": "\u300d"}


def bare(text: str) -> str:
    """The text without dress, in single spaces: a word in bold or in a box is the word.

    Letter case stays, and so do quotation marks: what they hold may be somebody else's. Dashes,
    arrows and equals signs between words become colons.
    """
    plain = _EMPHASIS.sub("", _LATEX.sub("", "".join(c for c in text if not _is_sign(c))))
    plain = _DASHES.sub(": ", _FRONT.sub("", plain))
    return unwrapped(" ".join(plain.split()))


def unwrapped(text: str, pairs: Mapping[str, str] = _BRACKETS) -> str:
    """Without what closes a sentence, and without the brackets around the whole."""
    said = text.rstrip(" .!,;:\u3002").strip()
    while len(said) > 1 and pairs.get(said[0]) == said[-1]:
        said = said[1:-1].strip().rstrip(" .!,;")
    return said


def marks(text: str) -> frozenset[bool]:
    """What the signs in a text say: right, wrong, or both."""
    return frozenset(MARKS[character] for character in text if character in MARKS)


def _is_sign(character: str) -> bool:
    """Emoji and what belongs to them: symbols, variation selectors, joiners, skin tones."""
    if character < "\x80":
        return False
    category = unicodedata.category(character)
    return category in ("So", "Sk", "Cf") or "\ufe00" <= character <= "\ufe0f"
