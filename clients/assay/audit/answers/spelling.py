r"""Near misses of words whose letters, signs or places count, and names close to others. Pure.

Where a prompt asks for words as they are, or lists what does not matter (`terms.is_spelt`), a
letter that is another makes another answer. Elsewhere a word is exchanged only for one that the
prompt itself tells apart from it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from assay.audit.answers.shapes import OTHERS, Miss
from assay.audit.answers.terms import is_alone, is_row, is_spelt, is_written

_WORD = re.compile(r"[^\W\d_]{3,}")
_INNER = re.compile(
    r"(?<=[^\W\d_])[-.,'/:+&#](?=[^\W_])|(?<=[^\W_])[-.,'/:+&#](?=[^\W\d_])|(?<=\d)\.(?=\d)"
)
_ENDING = re.compile(r"(?:ing|ed|es|er|ly|al|[sdyen])$")
_SMALL = {
    "and", "are", "but", "for", "from", "has", "have", "into", "its", "not", "nor", "out", "than",
    "that", "the", "then", "they", "this", "was", "were", "with", "when", "who", "because",
}  # fmt: skip
_ALSO = re.compile(
    r"\b(?:also|alias\w*|a\.k\.a|aka|spelt|spelled|formerly|n\u00e9e)\b", re.IGNORECASE
)
_SYMMETRIC = re.compile(r"[,;&+/]|\b(?:and|or|with|equals|married|versus|vs)\b", re.IGNORECASE)
_MOST_WORDS = 3
_MOST_GAPS = 3


def spelling_misses(text: str, prompt: str) -> Iterator[Miss]:
    """Texts with a letter, a sign or a word changed, where that makes another answer."""
    if "\n" in text or len(text) > 200:
        return
    yield from _close_ones(text, prompt)
    if is_spelt(prompt):
        yield from _misspelt(text, prompt)
        yield from _sentences(text, prompt)
    if is_written(prompt):
        for one in list(_INNER.finditer(text))[:_MOST_GAPS]:
            new = text[: one.start()] + text[one.end() :]
            yield "altered", new, "a sign is left out, where signs count"
            other = "x" if one[0] != "." else "-"
            yield "altered", f"{text[: one.start()]}{other}{text[one.end() :]}", "another sign"
    if is_row(prompt):
        yield from _elsewhere(text)


def _close_ones(text: str, prompt: str) -> Iterator[Miss]:
    """A word is another of the prompt that looks like it, such as Brandt for Brand."""
    if _ALSO.search(prompt):
        return
    known = {one[0] for one in _WORD.finditer(text)}
    said = list(dict.fromkeys(one[0] for one in _WORD.finditer(prompt)))
    inside = {one.casefold() for one in known}
    for one in list(_WORD.finditer(text))[:_MOST_WORDS]:
        fit = [
            new for new in said
            if new.casefold() not in inside and _is_close(one[0], new)
            and not _alternatives(one[0], new, prompt)
        ]  # fmt: skip
        for new in fit[:2]:
            answer = text[: one.start()] + new + text[one.end() :]
            yield "other-name", answer, "a word of the prompt that looks like the right one"


def _is_close(word: str, other: str) -> bool:
    """Whether two words look alike, and are no forms of one."""
    if word[0].isupper() != other[0].isupper():
        return False
    a, b = word.casefold(), other.casefold()
    return _stem(a) != _stem(b) and SequenceMatcher(None, a, b).ratio() >= 0.7


def _stem(word: str) -> str:
    """A word without the endings of its forms, and the letter that they double."""
    stem = _ENDING.sub("", word)
    return stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] else stem


def _alternatives(word: str, other: str, prompt: str) -> bool:
    """Whether the prompt gives both as one: 'small or little'."""
    pairs = ((word, other), (other, word))
    return any(re.search(rf"\b{a}\b,? (?:or|\(|=|/) ?{b}\b", prompt) for a, b in pairs)


def _misspelt(text: str, prompt: str) -> Iterator[Miss]:
    """A letter inside a word is another, left out, too many, or exchanged with the next."""
    every = list(_WORD.finditer(text))
    said = prompt.casefold()
    picked = (
        [every[place] for place in sorted({0, len(every) // 2, len(every) - 1})] if every else []
    )
    for number, one in enumerate(picked):
        word, at = one[0], len(one[0]) // 2
        other = "x" if word[at].casefold() not in "xks" else "b"
        made = [
            (word[:at] + other + word[at + 1 :], "a letter is another"),
            (word[:at] + word[at + 1 :], "a letter is left out"),
            (f"{word[:at]}{other}{word[at:]}", "a letter too many"),
            (f"{word}{other}", "a letter behind it"),
            (f"{other}{word}", "a letter before it"),
        ]
        if word[at - 1].casefold() != word[at].casefold():
            turned = word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]
            made.append((turned.lower() if word.islower() else turned, "two letters are exchanged"))
        for new, note in made[: None if number == 0 else 2]:
            if not re.search(rf"\b{re.escape(new.casefold())}\b", said):
                answer = text[: one.start()] + new + text[one.end() :]
                yield "altered", answer, f"{note}, where letters count"


def _sentences(text: str, prompt: str) -> Iterator[Miss]:
    """Of several words: one more, one fewer, one denied, or two exchanged."""
    words = [one for one in _WORD.finditer(text) if one[0].casefold() not in _SMALL]
    gaps = [one.start() for one in re.finditer(r"(?<=[^\W_]) (?=[^\W_])", text)]
    if len(words) < 2 or not gaps:
        return
    for gap in [gaps[place] for place in sorted({0, len(gaps) // 2, len(gaps) - 1})][:_MOST_GAPS]:
        if is_alone(prompt):
            other = next(one for one in OTHERS if one.casefold() not in text.casefold()).lower()
            yield "altered", f"{text[:gap]} {other}{text[gap:]}", "a word more inside it"
        if len(gaps) > 3:
            yield "altered", f"{text[:gap]} not{text[gap:]}", "it is denied inside"
    if len(gaps) > 3:
        middle = words[len(words) // 2]
        rest = f"{text[: middle.start()].rstrip()}{text[middle.end() :]}"
        yield "altered", rest.strip(), "a word is left out"
        a, b = words[0], words[-1]
        if a[0].casefold() != b[0].casefold() and not _SYMMETRIC.search(text):
            turned = text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]
            yield "order", turned, "two words of a sentence are exchanged"


def _elsewhere(text: str) -> Iterator[Miss]:
    """Words without commas in another order, where the prompt says which comes first."""
    words = text.split(" ")
    if len(words) < 2 or not all(re.fullmatch(r"[^\W\d_]+", one) for one in words):
        return
    seen = [one.casefold() for one in words]
    for a, b in list(itertools.pairwise(range(len(words)))):
        if seen[a] != seen[b] and a in (0, len(words) // 2, len(words) - 2):
            new = [*words[:a], words[b], words[a], *words[b + 1 :]]
            yield "order", " ".join(new), "two words are exchanged"
    for new, note in (
        (words[::-1], "in reverse"), ([*words[1:], words[0]], "the first is put last"),
        (sorted(words), "sorted"),
    ):  # fmt: skip
        if [one.casefold() for one in new] != seen:
            yield "order", " ".join(new), note
    yield "list-part", " ".join([*words, words[-1]]), "the last word twice"
    if len(words) > 2:
        half = len(words) // 2
        yield "list-part", " ".join([*words[:half], *words[half + 1 :]]), "a word is left out"
        yield "list-part", " ".join([*words[:half], OTHERS[2], *words[half + 1 :]]), "another word"
        yield "list-part", " ".join([*words[:half], words[half], *words[half:]]), "a word twice"
