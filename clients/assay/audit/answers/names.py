"""Near misses of words and names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from assay.audit.answers.shapes import OTHERS, Miss
from assay.audit.answers.tokens import letter_off, other_word
from assay.audit.answers.truth import (
    Truth,
    is_certainly_wrong,
    loose_words,
)

_OTHER_VOWELS = str.maketrans("aeiouAEIOU", "oiuaeOIUAE")
_NAMESAKES = {
    "Paris": "Texas", "London": "Ontario", "Athens": "Georgia", "Rome": "Georgia",
    "Moscow": "Idaho", "Berlin": "New Hampshire", "Cairo": "Illinois", "Lima": "Ohio",
    "Dublin": "Ohio", "Vienna": "Virginia", "Lisbon": "Maine", "Madrid": "Iowa",
    "Warsaw": "Indiana", "Toronto": "Ohio", "Manchester": "New Hampshire",
}  # fmt: skip
_FIRST_NAMES = {
    "A": ("Albert", "Agnes"), "B": ("Bernard", "Beatrice"), "C": ("Conrad", "Clara"),
    "D": ("Dennis", "Doris"), "E": ("Edgar", "Edith"), "F": ("Felix", "Flora"),
    "G": ("Gerald", "Gloria"), "H": ("Howard", "Helga"), "I": ("Igor", "Irene"),
    "J": ("Jerome", "Judith"), "K": ("Kenneth", "Karen"), "L": ("Leonard", "Laura"),
    "M": ("Maurice", "Mildred"), "N": ("Norman", "Nora"), "O": ("Oscar", "Olga"),
    "P": ("Philip", "Paula"), "R": ("Rudolf", "Rosa"), "S": ("Simon", "Sylvia"),
    "T": ("Theodore", "Thelma"), "V": ("Victor", "Vera"), "W": ("Walter", "Wanda"),
}  # fmt: skip
_WHO = re.compile(r"\b(?:who|whom|whose)\b|\bwhich (?:person|author|scientist|artist|president|"
                  r"composer|king|queen|writer|painter)\b", re.IGNORECASE)  # fmt: skip


def near_names(truth: Truth) -> Iterator[Miss]:
    """Other names that share letters or words with the right one."""
    words = loose_words(truth.text)
    word = max(words, key=len)
    given = truth.text.split()
    if len(given) > 1 and given[0].isalpha() and given[0][0].casefold() != given[0][-1]:
        answer = " ".join([given[0][-1], *given[1:]])
        yield "other-name", answer, "of its first word the last letter"
    if 2 <= len(words) <= 4 and all(one.isalpha() and len(one) > 2 for one in words):
        yield "other-name", f"{OTHERS[0]} {words[-1]}", "its last word is left, no other"
        yield "other-name", f"{words[0]} {OTHERS[2]}", "its first word is left, no other"
    if len(word) >= 5:
        yield "fragment", truth.text[:1], "its first letter"
        yield "fragment", truth.text[:2], "its first two letters"
    if len(word) >= 3 and word.isalpha():
        if word[::-1] != word:
            yield "digits", truth.text[::-1], "the letters in reverse"
        ordered = "".join(sorted(word))
        if ordered != word:
            yield "digits", ordered, "the letters, sorted"
        twice = re.sub(r"([^\W\d_])", r"\1\1", truth.text)
        yield "digits", twice, "every letter twice"
        turned = truth.text.translate(_OTHER_VOWELS)
        if SequenceMatcher(None, turned, truth.text).ratio() < 0.6:
            yield "digits", turned, "other vowels"
        if len(words) > 1:
            turned = " ".join(one[::-1] for one in truth.text.split())
            yield "digits", turned, "each word in reverse"
            inside = " ".join(f"un{one}able" for one in truth.text.split())
            yield "digits", inside, "each word as a part of a longer one"
    yield from _other_forms(truth)
    for other in OTHERS[:2]:
        if is_certainly_wrong(other, truth):
            yield "another-word", other, "another word"
    yield from _opposites(truth)
    yield from _namesakes(truth)


def _other_forms(truth: Truth) -> Iterator[Miss]:
    """Another word of the right one's stem, where the prompt names the words to choose from."""
    text, said = truth.text, truth.prompt.casefold()
    known = set(re.findall(r"\w+", said))
    if text.islower() and text.isalpha() and len(text) > 2 and text in known:
        for ending in ("ing", "ed", "less"):
            if f"{text}{ending}" not in known:
                yield "other-name", f"{text}{ending}", "another word of its stem"
                yield "other-name", f"{text}{text[-1]}{ending}", "another word of its stem"


def _opposites(truth: Truth) -> Iterator[Miss]:
    """One word is turned, or the next of its series, or another one by a letter."""
    for one in re.finditer(r"[^\W\d_]+", truth.text):
        close = letter_off(one[0])
        for other in (other_word(one[0]), close):
            if other:
                note = "one of its words is another, against it or next to it"
                new = f"{truth.text[: one.start()]}{other}{truth.text[one.end() :]}"
                yield "other-name", new, note


def _namesakes(truth: Truth) -> Iterator[Miss]:
    """Who or what has the name, too, or another one close to it."""
    state = _NAMESAKES.get(truth.text)
    if state and state.casefold() not in truth.prompt.casefold():
        yield "namesake", f"{truth.text}, {state}", "another place of that name"
    names = truth.text.split()
    person = len(names) in (2, 3) and all(re.fullmatch("[A-Z][^\\W\\d_]+", one) for one in names)
    if not person or not _WHO.search(truth.prompt):
        return
    for other in _FIRST_NAMES.get(names[0][0], ()):
        if other[:2] != names[0][:2] and other not in truth.prompt:
            answer = " ".join([other, *names[1:]])
            yield "other-name", answer, "the same initials, another first name"
    for word in ("daughter", "teacher"):
        if word not in truth.prompt.casefold():
            yield "namesake", f"{truth.text}'s {word}", "who stands close to that person"
