"""What the data's own answers are made of: a part of one stands where another's stood. Pure.

No reader of the notation is needed: where the references of many rows have a word, a number or a
sign in one place (the second field, or before the hyphen of `B-PER`), each of them is an answer
there, and another than the others. Two of them may mean the same in one row by chance, as letters
of a formula do; so what a grader accepts counts where it accepts it of several rows (`likely` of
`assay.audit.probes.ProbeClass`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from random import Random

from assay.audit.answers.shapes import Miss
from assay.audit.answers.terms import is_alone, is_open
from assay.audit.answers.tokens import TOKEN, shape_of
from assay.audit.answers.truth import ARTICLES

KIND = "vocabulary"
_CELL = re.compile(r"[^\s,;|()\[\]{}<>\"'`]+")
_FIELD = re.compile(r"[^\s,;]+(?:[,;]+[^\s,;]+)*")  # where all answers have as many, between blanks
_MOST_CHARS = 400
_MOST_HERE = 12
_RECURS = 2  # rows in which a part must stand
_CLOSED = 0.5  # most different parts for each place, among those that stand there
_LABEL = 0.9  # of the answers hold a cell that is a label
_CASED = re.compile(r"[A-Za-z][A-Z]?")
_FEW_LABELS = 8  # so few are all asked
_WHOLE, _ANSWER, _ITEM = "a cell", "the answer", "an item"
_LISTS = (("\n", 2), ("; ", 2), (", ", 3), (" > ", 3), (" -> ", 3), (" ", 3), ("-", 3))
"""What parts the items of an answer, the coarsest first, and how few may be some."""
_MEANS = "<>+*/^|&~!#"  # signs of which more or fewer are not the same
_TURNS = frozenset("+*=&|-/\u00b7\u00d7~")  # what stands on either side of it may change places
_BOTH = frozenset(("and", "or", "with", "is", "equals", "vs", "versus", "meets", "between"))
"""Words whose sides may change places."""
_WORD = re.compile(r"[^\W\d_]{2,}|[-=]?>|\u2192")
_SENTENCE = re.compile(r"[^,;\n]+")


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of an answer: where it stands, what, and in which sort of place."""

    start: int
    text: str
    place: str


class Vocabulary:
    """The parts of all right answers, by their places.

    A part is a cell (what stands between blanks, commas and brackets) or a word or number of one;
    its place is the column, where all answers have as many, or the shape of the cell: `a-a` of
    `B-PER`.

    Args:
        texts: the first right answer of each row.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        widths = {len(text.split()) for text in texts}
        self._columns = len(widths) == 1 and max(widths) > 1
        self._count = len(texts)
        self._rows: dict[str, Counter[str]] = defaultdict(Counter)
        for text in texts:
            found = _by_place(self._parts(text))
            found[_WHOLE] = {cell[0] for cell in self._cells(text)}
            found[_ANSWER] = {text}
            mark, items = _items(text)
            found[_ITEM + mark.strip()] = set(items)
            for cells in _sentences(text):
                for number, cell in enumerate(cells):
                    found.setdefault(_seat(cells, number), set()).add(cell[0])
            for place, parts in found.items():
                self._rows[place].update(parts)

    def misses(self, text: str, prompt: str, draws: Random) -> Iterator[Miss]:
        """Answers with one part that stands in its place in other rows, and those of such parts."""
        if len(text) > _MOST_CHARS or is_open(prompt):
            return
        for other in self._others(_Part(0, text, _ANSWER), set(), draws):
            yield KIND, other, "another row's answer"
        parts = self._parts(text)
        if len(parts) < 2:
            return
        texts = [part.text.casefold() for part in parts]
        is_row = self._columns or len(set(texts)) < len(texts)  # else it may be a set
        here = set[str]() if is_row else set(texts)
        made: list[Miss] = []
        for part in draws.sample(parts, min(_MOST_HERE, len(parts))):
            for other in self._others(part, here, draws):
                new = text[: part.start] + other + text[part.start + len(part.text) :]
                made.append((KIND, new, f"another that stands in its place ({part.place})"))
        yield from draws.sample(made, min(_MOST_HERE, len(made)))
        yield from _turned(text, draws)
        yield from self._exchanged(text, draws)
        yield from _reversed(text, prompt)
        if is_alone(prompt):
            yield from self._of_other_length(text, is_row=is_row, draws=draws)

    def _cells(self, text: str) -> list[re.Match[str]]:
        return list((_FIELD if self._columns else _CELL).finditer(text))

    def _parts(self, text: str) -> list[_Part]:
        """Cells, and the runs of those that have several."""
        found = []
        for column, cell in enumerate(self._cells(text)):
            runs = list(TOKEN.finditer(cell[0]))
            if len(runs) == 1 or re.fullmatch(r"[^\W\d_]+", cell[0]):
                place = f"column {column + 1}" if self._columns else _shape(cell[0])
                found.append(_Part(cell.start(), cell[0], place))
                continue
            shape = _shape(cell[0])
            whole = f"column {column + 1}" if self._columns else _WHOLE
            found.append(_Part(cell.start(), cell[0], whole))
            for number, run in enumerate(runs):
                if run[0].isalnum() and cell[0][run.start() - 1 : run.start()] != "\\":
                    place = f"{shape}, {number + 1}"
                    found.append(_Part(cell.start() + run.start(), run[0], place))
        return found

    def _closed(self, place: str) -> bool:
        """Whether few different parts stand there, each in many rows."""
        known = self._rows[place]
        return len(known) > 1 and len(known) <= _CLOSED * known.total()

    def _others(self, part: _Part, here: set[str], draws: Random) -> list[str]:
        """The one most like a part, and any: of its place, not in the answer, another for sure."""
        closed = self._closed(part.place)
        known = [
            other
            for other, rows in sorted(self._rows[part.place].items())
            if (_number(other) is not None or (closed and rows >= _RECURS))
            and other.casefold() not in here
            and _is_other(part.text, other)
        ]
        if not known:
            return []
        if part.place == _ANSWER and len(known) <= _FEW_LABELS:
            return known
        draws.shuffle(known)
        nearest = max(known, key=lambda other: _likeness(part.text, other))
        return list(dict.fromkeys((nearest, known[0])))

    def _of_other_length(self, text: str, *, is_row: bool, draws: Random) -> Iterator[Miss]:
        """An item more, which is none of the answer's unless it is a row; or an item fewer."""
        mark, items = _items(text)
        if not items or (mark.isspace() and not self._closed(_WHOLE)):
            return
        here = () if is_row and mark.isspace() else items
        known = [
            other
            for other in sorted(self._rows[_ITEM + mark.strip()])
            if re.search(r"[^\W\d_]", other) and all(_is_other(one, other) for one in here)
        ]
        if known and not (self._columns and mark.isspace()):
            yield KIND, f"{text}{mark}{draws.choice(known)}", "an item more, of another row"
        if self._tells(items[-1]):
            yield KIND, mark.join(items[:-1]), "its last item is left out"
        if self._tells(items[0]):
            yield KIND, mark.join(items[1:]), "its first item is left out"

    def _exchanged(self, text: str, draws: Random) -> Iterator[Miss]:
        """Two cells change places around a word or an arrow, each where other rows have it."""
        made = [
            text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]
            for cells in _sentences(text)
            for (i, a), (j, b) in combinations(enumerate(cells), 2)
            if _one_way({cell[0].casefold() for cell in cells[i + 1 : j]})
            and _is_other(a[0], b[0])
            and a[0] in self._rows[_seat(cells, j)]
            and b[0] in self._rows[_seat(cells, i)]
        ]
        if made:
            yield KIND, draws.choice(made), "both sides of a word change places"

    def _tells(self, cell: str) -> bool:
        """Whether a cell says something: it is no article, and no label of all answers."""
        return cell not in ARTICLES and self._rows[_WHOLE][cell] < _LABEL * self._count


def _items(text: str) -> tuple[str, list[str]]:
    """What parts the items of an answer, and these; nothing where it is no plain row of some."""
    if re.search(r"[\[\](){}<\"'`=]", text):
        return "", []
    for mark, few in _LISTS:
        items = text.split(mark)
        if len(items) >= few and all(items) and (mark != "-" or "".join(items).isalpha()):
            return mark, items
    return "", []


def _sentences(text: str) -> list[list[re.Match[str]]]:
    """The cells of each part between commas and semicolons."""
    return [
        list(_CELL.finditer(text, part.start(), part.end())) for part in _SENTENCE.finditer(text)
    ]


def _seat(cells: Sequence[re.Match[str]], number: int) -> str:
    return f"{number + 1} of {len(cells)}"


def _one_way(between: Set[str]) -> bool:
    """Whether a word or an arrow stands there, and none whose sides may change places."""
    return any(map(_WORD.fullmatch, between)) and not between & _BOTH


def _reversed(text: str, prompt: str) -> Iterator[Miss]:
    """The way back, where the prompt says from where to where."""
    for mark in (" > ", " -> ", " \u2192 ", " - ", "-"):
        way, comma, rest = text.partition(",")
        items = way.split(mark)
        ends = re.escape(items[0]), re.escape(items[-1])
        if len(items) > 2 and re.search(rf"\bfrom {ends[0]} to {ends[1]}\b", prompt):
            yield KIND, mark.join(reversed(items)) + comma + rest, "the way back"
            return


def _shape(cell: str) -> str:
    return "".join(shape_of(cell))


def _by_place(parts: Sequence[_Part]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        found[part.place].add(part.text)
    return found


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text, re.ASCII) else None


def _is_other(one: str, other: str) -> bool:
    """Whether two parts differ in more than capitals, signs, articles, zeros in front and order.

    Of signs that mean something there may be more: A>B is not A>>B.
    """
    a, b = _number(one), _number(other)
    if a is not None and b is not None:
        return a != b and 0 not in (a, b)
    if _CASED.fullmatch(one) and _CASED.fullmatch(other) and one[1:] == other[1:]:
        return one != other  # m and M, mA and MA, where answers have both
    first, second = (Counter(sign for sign in text if sign in _MEANS) for text in (one, other))
    apart = first != second and first.keys() == second.keys()
    return (apart or _bare(one) != _bare(other)) and not {one, other} & ARTICLES


def _bare(part: str) -> tuple[str, ...]:
    """Its words and numbers, which may stand in any order, as in a set."""
    words = [
        run[0].casefold().lstrip("0") or "0" for run in TOKEN.finditer(part) if run[0].isalnum()
    ]
    return tuple(sorted(one for one in words if one not in ARTICLES)) or (part,)


def _likeness(one: str, other: str) -> float:
    a, b = _number(one), _number(other)
    if a is not None and b is not None:
        return 1 / (1 + abs(a - b))
    return SequenceMatcher(None, one, other).ratio()


def _turned(text: str, draws: Random) -> Iterator[Miss]:
    """Two unlike runs of one sort change places within a cell."""
    made: list[Miss] = []
    for cell in _CELL.finditer(text):
        runs = [one for one in TOKEN.finditer(cell[0]) if one[0].isalnum()]
        for i, one in enumerate(runs):
            for other in runs[i + 1 :]:
                between = cell[0][one.end() : other.start()]
                same = one[0].isdecimal() == other[0].isdecimal() and _is_other(one[0], other[0])
                if same and _TURNS.isdisjoint(between):
                    turned = (
                        cell[0][: one.start()] + other[0] + between + one[0]
                        + cell[0][other.end() :]
                    )  # fmt: skip
                    new = text[: cell.start()] + turned + text[cell.end() :]
                    made.append((KIND, new, f"two runs of {_shape(cell[0])} change places"))
    if made:
        yield draws.choice(made)
