"""Forms in which texts are compared: the normalisations of the text verifiers.

`squad_words` is the published normalisation of SQuAD v1.1, to the letter. `Normalization` is our
own, for answers that must not be confused: it keeps what changes a value (a sign, a decimal point,
a superscript), which the SQuAD form removes ("-5" and "5", "3.5" and "35" are equal there).

Both are idempotent and linear in the text.
"""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

Unicode = Literal["nfc", "nfkc"]
Punctuation = Literal["keep", "edges", "remove"]

_ASCII_PUNCTUATION: Final = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ONE_ARTICLE: Final = frozenset({"a", "an", "the"})

# Han, kana, Hangul, Thai, Lao, Khmer, Burmese: scripts whose words no space parts.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])"
)
_CJK_PUNCTUATION = re.compile(
    "[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\u2010-\u2027]"
)

# What NFKC would turn into plain digits: "x\u00b2" is not "x2", "\u00bd" not "1/2" after a digit.
_RAISED = re.compile("([\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209c\u2150-\u215f\u2189]+)")

_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
_LEADING: Final = _QUOTES + "*_#:;,\uff1a\uff1b\uff0c\u3001 "
_TRAILING: Final = _QUOTES + "*_.:;,!?\u3002\uff0e\uff1a\uff1b\uff0c\uff01\uff1f\u3001 "
_IN_NUMBERS: Final = frozenset(".,/:")
_SIGNS: Final = frozenset("-\u2212")
_NUMBER = re.compile(r"([-+]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?")


def squad_words(text: str) -> list[str]:
    """The words of a text in the form of SQuAD v1.1 (Rajpurkar et al. 2016, arXiv 1606.05250).

    In the order of the published script: lower case, ASCII punctuation removed, the words a, an,
    the removed, white space collapsed.
    """
    return _ARTICLES.sub(" ", text.lower().translate(_ASCII_PUNCTUATION)).split()


def answer_words(text: str, *, characters: bool = False) -> list[str]:
    """The words of an answer: of the SQuAD form, or of the bare text where that is empty.

    So "The The" and "A+" equal themselves and nothing else.

    Args:
        text: an answer.
        characters: each character of a script without spaces is a word of its own, and the
            punctuation of those scripts is removed.
    """
    if characters:
        text = _UNSPACED.sub(r" \1 ", _CJK_PUNCTUATION.sub(" ", unicodedata.normalize("NFC", text)))
    return squad_words(text) or text.lower().split()


@dataclass(frozen=True, slots=True)
class Normalization:
    """How two texts are made alike before they are compared.

    Attributes:
        case_sensitive: upper and lower case differ.
        unicode: "nfkc" makes full-width and other compatibility characters plain, except raised
            and lowered digits and fractions; "nfc" only composes.
        punctuation: "edges" takes quotes, emphasis and sentence marks from both ends; "remove"
            takes punctuation everywhere but between two digits and before a digit; "keep" leaves
            it.
        articles: the words a, an and the are removed, unless nothing else is left.
        numbers: a word that is a number stands for its value: 1,000.0 is 1000, 007 is 7.
    """

    case_sensitive: bool = False
    unicode: Unicode = "nfkc"
    punctuation: Punctuation = "edges"
    articles: bool = False
    numbers: bool = False

    def apply(self, text: str) -> str:
        """The text in this form."""
        text = self._characters(text)
        if self.punctuation == "remove":
            text = _without_punctuation(text)
        elif self.punctuation == "edges":
            text = _without_edges(" ".join(text.split()))
        words = text.split()
        if self.articles:
            words = [word for word in words if word.lower() not in _ONE_ARTICLE] or words
        if self.numbers:
            words = [_canonical_number(word) for word in words]
        return " ".join(words)

    def _characters(self, text: str) -> str:
        for _ in range(4):  # folding and composing undo each other's work for a few characters
            before = text
            text = _compose(text, self.unicode)
            if not self.case_sensitive:
                text = _compose(text.casefold(), self.unicode)
            if text == before:
                break
        return text


def _compose(text: str, form: Unicode) -> str:
    if form == "nfc" or text.isascii():
        return unicodedata.normalize("NFC", text)
    if _RAISED.search(text) is None:
        return unicodedata.normalize("NFKC", text)
    parts = _RAISED.split(text)
    return unicodedata.normalize(
        "NFC",
        "".join(
            part if index % 2 else unicodedata.normalize("NFKC", part)
            for index, part in enumerate(parts)
        ),
    )


def _without_punctuation(text: str) -> str:
    """Without the characters of Unicode's categories P, where they change no number.

    A mark between two digits (3.5, 1,000, 1/2, 10:30) and a minus before a digit stay, and so do
    symbols (+, <, $, ^), which are not in P. A mark between two words parts them.
    """
    out: list[str] = []
    for index, char in enumerate(text):
        if not unicodedata.category(char).startswith("P"):
            out.append(char)
            continue
        digit_after = text[index + 1 : index + 2].isdigit()
        digit_before = index > 0 and text[index - 1].isdigit()
        if char == "%" or (digit_after and (digit_before or char in "-.\u2212")):
            out.append(char)
        elif char not in _QUOTES:
            out.append(" ")
    return "".join(out)


def _without_edges(text: str) -> str:
    return text.lstrip(_LEADING).rstrip(_TRAILING) or text


def _canonical_number(word: str) -> str:
    """A decimal number without separators, leading and trailing zeros; other words as they are."""
    match = _NUMBER.fullmatch(word)
    if match is None:
        return word
    whole = match[2].replace(",", "").lstrip("0") or "0"
    part = (match[3] or "").rstrip("0").rstrip(".")
    value = whole + part
    return "-" + value if match[1] == "-" and value != "0" else value


def holds(text: str, part: str, where: Literal["contains", "prefix", "suffix"]) -> bool:
    """Whether a text holds a part, begins or ends with it, at the borders of words.

    "know" does not hold "no". A character of a script without spaces is a word by itself.

    Args:
        text: normalised.
        part: normalised; not empty.
        where: "contains", "prefix" or "suffix".
    """
    if where == "prefix":
        return text.startswith(part) and _borders(text, 0, len(part))
    if where == "suffix":
        return text.endswith(part) and _borders(text, len(text) - len(part), len(text))
    at = text.find(part)
    while at >= 0:
        if _borders(text, at, at + len(part)):
            return True
        at = text.find(part, at + 1)
    return False


def _borders(text: str, start: int, end: int) -> bool:
    return not _joined_before(text, start) and not _joined_after(text, end)


def _joined_before(text: str, start: int) -> bool:
    """Whether the character before `start` belongs to the word or number that begins there."""
    left, first = text[start - 1 : start] if start else "", text[start]
    if _same_word(left, first):
        return True
    before = text[start - 2 : start - 1] if start > 1 else ""
    if not first.isdigit():
        return False
    return (left in _IN_NUMBERS and before.isdigit()) or (left in _SIGNS and not before.isalnum())


def _joined_after(text: str, end: int) -> bool:
    """Whether the character at `end` belongs to the word or number that stands before it."""
    last, right = text[end - 1], text[end : end + 1]
    if _same_word(last, right):
        return True
    if not last.isdigit():
        return False
    return right == "%" or (right in _IN_NUMBERS and text[end + 1 : end + 2].isdigit())


def _same_word(left: str, right: str) -> bool:
    if not (left.isalnum() and right.isalnum()):
        return False
    return not (_UNSPACED.match(left) or _UNSPACED.match(right))
