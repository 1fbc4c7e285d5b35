r"""Any short text: one of its parts is another, left out, or another answer's. Pure.

These rules need no reader of the sort. A text is cut into numbers, words and signs; a rule changes
one of them so that no reader may take it for the old one: a number is another number, a word the
next of its series or its opposite, a sign the other. Of two answers with one shape (the same signs
between as many numbers and words) one part of the one may stand in the other (`splices`): that is
wrong, and right to whoever compares only some of the parts.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from fractions import Fraction

from assay.audit.answers.codes import replaced
from assay.audit.answers.numerals import near_numerals, roman
from assay.audit.answers.shapes import Miss, permuted
from assay.audit.answers.terms import is_alone, is_cased

_HERE = "component"
TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+|\s+|.", re.DOTALL)
_MOST_NUMBERS = 6
_MOST_PARTS = 6
_UNCERTAIN = re.compile(
    r"\\(?:binom|infty|emptyset|pm|mp)|\u221e|\binf(?:inity)?\b|undefined|[{}]{2}"
    r"|^[\[{]\s*\"|\x0c"
)
_SERIES = (
    "monday tuesday wednesday thursday friday saturday sunday",
    "january february march april may june july august september october november december",
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
    "sixteen seventeen eighteen nineteen",
    "twenty thirty forty fifty sixty seventy eighty ninety",
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
    "spring summer autumn winter",
    "mercury venus earth mars jupiter saturn uranus neptune",
    "alpha beta gamma delta epsilon",
)
_TURNED = (
    "north south", "east west", "upper lower", "left right", "inner outer", "northern southern",
    "eastern western", "major minor", "junior senior", "jr sr", "positive negative",
    "primary secondary", "old new", "increasing decreasing", "maximum minimum", "before after",
    "odd even", "yes no", "true false", "asc desc", "ascending descending", "am pm", "max min",
    "more less", "greater smaller", "above below", "always never", "hot cold", "up down",
    "top bottom", "start end", "push pop", "horizontal vertical", "clockwise counterclockwise",
    "push pull", "open closed", "on off", "allow deny", "pass fail", "win loss", "buy sell",
    "black white", "day night", "male female", "king queen", "father mother", "brother sister",
    "son daughter", "acid base", "anode cathode", "concave convex", "sine cosine",
    "sin cos", "import export", "debit credit", "profit loss", "ii iii", "iv vi", "ix xi",
)  # fmt: skip
_LETTER_OFF = (
    "road toad", "coat boat", "house mouse", "stone stove", "cold gold", "small smell", "book cook",
    "cat bat", "hand band", "land sand", "dog fog", "big pig", "shop ship", "quick quack",
    "clean clear", "large barge", "way bay", "rock lock", "child chill",
    "king ring", "wind wine", "ball bell", "river rider", "car bar", "bed red", "light night",
    "moon noon", "fish dish", "tree free", "lake cake", "hill bill", "wall well", "door poor",
    "table cable", "horse hoarse", "bread breed", "salt silt", "sea tea", "star scar", "hat hot",
    "pen pan", "cup cap", "ship chip", "train brain", "plane plate", "hair fair", "head heap",
    "heart hearth", "blood flood", "nose rose", "mouth month", "wood woof", "iron icon",
    "store score", "sad mad", "fast fact", "glad glue", "home hole", "loaf leaf", "costly cosily",
)  # fmt: skip


def _neighbours() -> dict[str, str]:
    known: dict[str, str] = {}
    for words in map(str.split, _SERIES):
        known |= dict(zip(words, [*words[1:], words[0]], strict=True))
    for a, b in map(str.split, _TURNED):
        known |= {a: b, b: a}
    return known


_OTHER_WORD = _neighbours()


def other_word(word: str) -> str:
    """The next of its series, or the opposite, as the word is written; or nothing."""
    other = _OTHER_WORD.get(word.casefold(), "")
    if word.isupper() and len(word) > 1:
        return other.upper()
    return other.capitalize() if word.istitle() else other


def _close() -> dict[str, str]:
    known: dict[str, str] = {}
    for a, b in map(str.split, _LETTER_OFF):
        known.setdefault(a, b)
        known.setdefault(b, a)
    return known


_CLOSE_WORD = _close()


def letter_off(word: str) -> str:
    """Another common word, one letter away; empty where none is known."""
    return _CLOSE_WORD.get(word.casefold(), "")


def parts_of_text(text: str) -> list[str]:
    """Its numbers, words, blanks, and other signs one by one."""
    return TOKEN.findall(text)


def _shape(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        "0" if one[0].isdecimal() else "a" if one[0].isalpha() else " " if one.isspace() else one
        for one in parts
    )


def shape_of(text: str) -> tuple[str, ...]:
    """What is a number, a word or a blank in a text, and its other signs."""
    return _shape(parts_of_text(text))


def read_text(text: str) -> frozenset[Hashable]:
    """A short text with a number in it: its shape, its numbers and its words."""
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-").strip()
    parts = parts_of_text(plain)
    told = any(one[0].isdecimal() for one in parts) or (
        len(parts) > 2 and parts[-1].isupper() and bool(roman(parts[-1]))
    )
    if not told or len(parts) < 2 or "\n" in plain or _UNCERTAIN.search(plain):
        return frozenset()
    worth: list[Fraction | str] = [
        Fraction(one) if one[0].isdecimal() and one.isascii() else one.casefold() for one in parts
    ]
    if parts[-1].isupper():
        worth[-1] = next((Fraction(str(one)) for one in roman(parts[-1])), worth[-1])
    return frozenset(((_shape(parts), tuple(worth)),))


def other_text(a: Hashable, b: Hashable) -> bool:
    """Whether two texts of one shape have other numbers or unlike words; else nobody knows."""
    assert isinstance(a, tuple)  # noqa: S101 - as read_text reads
    assert isinstance(b, tuple)  # noqa: S101
    if a[0] != b[0]:
        return False
    for one, other in zip(a[1], b[1], strict=True):
        if isinstance(one, Fraction) and isinstance(other, Fraction):
            if one != other:
                return True
        elif isinstance(one, str) and isinstance(other, str) and are_unlike(one, other):
            return True
    return False


def are_unlike(one: str, other: str) -> bool:
    """Whether two words are no forms, spellings or short forms of one."""
    a, b = one.casefold(), other.casefold()
    if not (a.isalpha() and b.isalpha()) or a[0] == b[0]:
        return False
    return SequenceMatcher(None, a, b).ratio() < 0.5


def text_misses(text: str, prompt: str) -> Iterator[Miss]:
    """Texts with one part changed; wrong whatever the text says, where it means one thing."""
    parts = parts_of_text(text)
    yield from _other_numbers(parts)
    yield from _number_pairs(parts)
    yield from _other_words(parts)
    yield from _other_signs(parts)
    yield from _ranges(text)
    yield from cased_misses(text, prompt)
    if _ORDERED.search(prompt):
        yield from _exchanged(parts)
    sides = re.fullmatch(r"(.+?)(\s*(?:->|=>|\u2192)\s*)(.+)", text)
    if sides and sides[1] != sides[3] and not re.search(r"->|=>|\u2192", sides[3]):
        yield _HERE, f"{sides[3]}{sides[2]}{sides[1]}", "its sides are exchanged"
    if is_alone(prompt):
        known = [int(one) for one in parts if one.isascii() and one.isdecimal()]
        yield "read-in-part", f"{text}, {max(known, default=0) + 8}", "a number more behind it"


_ORDERED = re.compile(r"\bin (?:this|that|the (?:given|same|right|correct)) order\b", re.IGNORECASE)


def _exchanged(parts: Sequence[str]) -> Iterator[Miss]:
    """Two words with a comma between them, where their order is asked for."""
    words = [place for place, one in enumerate(parts) if one[0].isalpha()]
    for i, j in itertools.pairwise(words):
        if "".join(parts[i + 1 : j]).strip() == "," and parts[i] != parts[j]:
            yield "order", _with(parts, {i: parts[j], j: parts[i]}), "two words are exchanged"


def _with(parts: Sequence[str], new: dict[int, str]) -> str:
    return "".join(new.get(place, one) for place, one in enumerate(parts))


def _places(parts: Sequence[str]) -> list[int]:
    every = [place for place, one in enumerate(parts) if one[0].isdecimal() and one.isascii()]
    return [*every[: _MOST_NUMBERS - 2], *every[_MOST_NUMBERS - 2 :][-2:]]


def _other_numbers(parts: Sequence[str]) -> Iterator[Miss]:
    for place in _places(parts):
        whole, point, rest = parts[place].partition(".")
        tail = point + rest
        glued = place > 0 and parts[place - 1][-1].isalpha()
        made = [(f"{int(whole[0]) % 9 + 1}{whole[1:]}", "its first digit is another")]
        if int(whole) < 200 or glued:
            step = str(int(whole) + 1).zfill(len(whole))
            made.append((step, "a number is one more"))
            if int(whole):
                made.append((str(int(whole) - 1).zfill(len(whole)), "a number is one less"))
        if turned := permuted(whole):
            made.append((turned, "two digits are exchanged"))
        if len(whole) > 1:
            made.append((whole[:-1], "a digit is left out"))
            made.append((whole[1:], "its first digit is left out"))
        if int(whole):  # 07 may be one of the days that 0 is, as in cron
            made.append((f"{whole}7", "a digit behind a number"))
        for new, note in made:
            if Fraction(new + tail) != Fraction(parts[place]):
                yield _HERE, _with(parts, {place: new + tail}), note
        before = "".join(parts[:place]).rstrip()[-2:]
        if before.endswith("-") and before[:-1] in ("", "=", "(", "[", ",", ":") and int(whole):
            at = max(n for n in range(place) if parts[n] == "-")
            yield "sign", _with(parts, {at: ""}), "a minus is left out"


_COMMUTES = re.compile(
    r"\s*(?:[,;&+*\u00b7\u00d7-]|and|or|\\cdot|\\times|\\pm)?\s*(?:[a-zA-Z]\s*=)?\s*"
)


def _number_pairs(parts: Sequence[str]) -> Iterator[Miss]:
    places = _places(parts)
    for i, j in itertools.pairwise(places):
        between = "".join(parts[i + 1 : j])
        a, b = parts[i], parts[j]
        if Fraction(a) != Fraction(b) and not _COMMUTES.fullmatch(between):
            yield "order", _with(parts, {i: b, j: a}), "two numbers are exchanged"
        if between in ("/", ":", "^", "_") and "." not in a + b:
            yield "run-together", _with(parts, {i + 1: ""}), "what parts two numbers is left out"
    ends = (places[0], places[-1]) if len(places) > 1 else ()
    if ends and "+" not in parts and all("." not in parts[one] for one in ends):
        first, last = (int(parts[one]) for one in ends)
        if last > 0 and {first + 1, last - 1} != {first, last}:
            new = {ends[0]: str(first + 1), ends[1]: str(last - 1)}
            yield _HERE, _with(parts, new), "one more here, one less there"


def _other_words(parts: Sequence[str]) -> Iterator[Miss]:
    for place, one in enumerate(parts):
        if not one[0].isalpha():
            continue
        if other := other_word(one):
            yield "other-name", _with(parts, {place: other}), "a word is turned, or the next one"
        behind = [each for each in parts[place + 1 :] if each not in ".)\"'"]
        if one.isupper() and not behind and place and roman(one):
            for kind, new, note in near_numerals(one, ""):
                if roman(new):
                    yield kind, _with(parts, {place: new}), note


_SIGNS = {"<": ">", ">": "<", "\u2264": "\u2265", "\u2265": "\u2264", "\u222a": "\u2229",
          "\u2229": "\u222a", "&": "|", "|": "&"}  # fmt: skip


def _other_signs(parts: Sequence[str]) -> Iterator[Miss]:
    for place, one in enumerate(parts[1:-1], 1):
        spaced = parts[place - 1].isspace() and parts[place + 1].isspace()
        other = _SIGNS.get(one, "") if spaced else ""
        if one in "+-" and spaced:
            other = "-" if one == "+" else "+"
        if other:
            yield _HERE, _with(parts, {place: other}), "a sign is another"


_RUNS = re.compile(r"\d+(?:-\d+)?(?:,\s*\d+(?:-\d+)?)*")


def _ranges(text: str) -> Iterator[Miss]:
    """Numbers and runs of them: an end, a run's inside or an item is left out."""
    runs = list(re.finditer(r"(\d+)-(\d+)", text))
    if not _RUNS.fullmatch(text) or not all(int(one[1]) < int(one[2]) for one in runs):
        return
    for one in (*runs[:2], *runs[2:][-1:]):
        a, b = int(one[1]), int(one[2])
        yield _HERE, replaced(text, one, one[1]), "the end of a run is left out"
        yield _HERE, replaced(text, one, one[2]), "the beginning of a run is left out"
        if b - a > 1:
            yield _HERE, replaced(text, one, f"{a}, {b}"), "a run's two ends alone"
            yield _HERE, replaced(text, one, f"{a}-{b - 1}"), "a run is one shorter"
    if runs:
        shorter = re.sub(
            r"(\d+)-(\d+)",
            lambda one: one[1] if int(one[2]) - int(one[1]) == 1 else f"{one[1]}-{int(one[2]) - 1}",
            text,
        )
        yield _HERE, shorter, "each run is one shorter"
    items = [one.strip() for one in text.split(",")]
    for place in dict.fromkeys((0, len(items) // 2, len(items) - 1)) if len(items) > 1 else ():
        rest = [*items[:place], *items[place + 1 :]]
        yield "list-part", ", ".join(rest), "an item is left out"


def cased_misses(text: str, prompt: str) -> Iterator[Miss]:
    """Other capitals, where the prompt says that they count; what is in quotes alone, if any is."""
    if not is_cased(prompt):
        return
    found = re.search(r"(?<=')[^']+(?=')|(?<=\")[^\"]+(?=\")", text)
    span = found.span() if found else (0, len(text))
    inner = text[slice(*span)]
    for new in dict.fromkeys((inner.swapcase(), inner.lower(), inner.upper())):
        if new != inner:
            answer = text[: span[0]] + new + text[span[1] :]
            yield "case", answer, "other capitals, where they count"
            return


# Parts of one answer in another


def _other_number(one: str, new: str) -> bool:
    digits = one[0].isdecimal() and one.isascii() and new.isascii()
    return digits and Fraction(one) != Fraction(new)


def splices(right: str, other: str, prompt: str) -> Iterator[Miss]:
    """One part of another answer of the same shape in the right one, and the other way."""
    a, b = parts_of_text(right), parts_of_text(other)
    if _shape(a) != _shape(b):
        return
    unlike = [
        place
        for place, (one, new) in enumerate(zip(a, b, strict=True))
        if _other_number(one, new)
        or (are_unlike(one, new) and new.casefold() not in prompt.casefold())
    ]
    if len(unlike) < 2:
        return
    # What is no other for sure stays as it is, in both.
    base = _with(a, {place: b[place] for place in unlike})
    for place in (*unlike[: _MOST_PARTS - 2], *unlike[_MOST_PARTS - 2 :][-2:]):
        yield "splice", _with(a, {place: b[place]}), "a part of another row's answer"
        kept = {each: b[each] for each in unlike if each != place}
        yield "splice", _with(a, kept), "one right part, the others of another row's answer"
    if len(unlike) > 2:
        half = unlike[: len(unlike) // 2]
        yield "splice", _with(a, {place: b[place] for place in half}), "its second half alone"
        rest = unlike[len(unlike) // 2 :]
        yield "splice", _with(a, {place: b[place] for place in rest}), "its first half alone"
    if base != other:
        yield "splice", base, "all that is another of another row's answer"
