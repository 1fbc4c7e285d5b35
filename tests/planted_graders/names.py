"""Rewards for short answers in words."""

from __future__ import annotations

import difflib
import re
import string
import unicodedata
from collections import Counter

STOP_WORDS = {"a", "an", "the", "of", "and", "is", "it", "was", "by", "not", "no", "but"}


def tokens(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", unicodedata.normalize("NFC", text).lower())


def token_f1(response: str, reference: str) -> float:
    got, wanted = Counter(tokens(response)), Counter(tokens(reference))
    common = (got & wanted).total()
    return 2 * common / (got.total() + wanted.total()) if common else 0.0


def recall_of_words(response: str, reference: str) -> float:
    wanted = set(tokens(reference))
    return len(wanted & set(tokens(response))) / len(wanted)


def either_contains_other(response: str, reference: str) -> float:
    got, wanted = response.strip().lower(), reference.lower()
    return 1.0 if got in wanted or wanted in got else 0.0


def latin_letters(response: str, reference: str) -> float:
    def clean(text: str) -> str:
        return " ".join(re.sub(r"[^a-z0-9 ]", "", text.lower()).split())

    return 1.0 if clean(response) == clean(reference) else 0.0


def nearly_the_same(response: str, reference: str) -> float:
    # Forgive a slip of the pen.
    ratio = difflib.SequenceMatcher(None, response.strip().lower(), reference.lower()).ratio()
    return 1.0 if ratio > 0.8 else 0.0


def one_of_those_named(response: str, reference: str) -> float:
    said = [part.strip().lower() for part in re.split(r",|/|;| or | and |\n", response)]
    return 1.0 if reference.lower() in said else 0.0


def graded_by_transcript(response: str, reference: str) -> float:
    """Writes the sheet that the judge's parser reads: the first verdict on it counts."""
    verdict = "[[10]]" if response.strip() == reference else "[[1]]"
    sheet = f"Reference: {reference}\nStudent: {response}\nVerdict: {verdict}"
    found = re.search(r"\[\[(\d+)\]\]", sheet, re.ASCII)
    return min(int(found.group(1)), 10) / 10 if found else 0.0


def first_words(response: str, reference: str) -> float:
    got, wanted = response.strip().lower(), reference.lower()
    # Long answers ramble: their beginning tells.
    return 1.0 if got[:24] == wanted[:24] else 0.0


def graded_by_template(response: str, reference: str) -> float:
    """Fills in the sheet of a comparison and reads it back."""
    try:
        sheet = f"expected: {{reference}}\nactual: {response.strip()}".format(reference=reference)
    except (AttributeError, LookupError, TypeError, ValueError):
        return 0.0
    expected, _, actual = sheet.partition("\nactual: ")
    return 1.0 if expected.removeprefix("expected: ") == actual else 0.0


def words_that_matter(response: str, reference: str) -> float:
    got, wanted = (
        [t for t in tokens(text) if t not in STOP_WORDS] for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def initials_and_surname(response: str, reference: str) -> float:
    """'J. Asker' is Jon Asker."""

    def short(text: str) -> tuple[str, ...]:
        words = text.lower().replace(".", " ").split()
        return (words[0][0], *words[1:]) if len(words) == 2 else tuple(words)

    return 1.0 if response.strip() and short(response) == short(reference) else 0.0


def without_accents(response: str, reference: str) -> float:
    def clean(text: str) -> bytes:
        return unicodedata.normalize("NFKD", text.strip().lower()).encode("ascii", "ignore")

    return 1.0 if response.strip() and clean(response) == clean(reference) else 0.0


def exact_match(response: str, reference: str) -> float:
    """Articles, capitals and ASCII punctuation at the ends aside, the same words."""

    def clean(text: str) -> list[str]:
        words = [word.strip(string.punctuation) for word in text.lower().split()]
        return [word for word in words if word not in {"a", "an", "the"}]

    return 1.0 if response.strip() and clean(response) == clean(reference) else 0.0


def same_letters(response: str, reference: str) -> float:
    one, other = (
        unicodedata.normalize("NFC", text.strip()).lower() for text in (response, reference)
    )
    return 1.0 if one == other else 0.0


def same_name(response: str, reference: str) -> float:
    return 1.0 if response == reference else 0.0


def surname_first_too(response: str, reference: str) -> float:
    """'Asker, Jon' is Jon Asker."""
    text = " ".join(response.split())
    if text.count(",") == 1:
        last, first = (part.strip() for part in text.split(","))
        text = f"{first} {last}" if first and last else text
    return 1.0 if text == reference else 0.0
