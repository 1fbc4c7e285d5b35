"""Answers that a response does not mark: a bare line, the last formula, the last number.

Rules 4 to 6 of `extraction`, with what all rules share: what was found, and what joins answers.

The last number is an answer only where it stands for itself. It is none as a part of something
else: of a product or power (an operator or a letter is attached to it), of a tuple, an interval or
a set (an open bracket with a comma around it), of a ratio, of an inequality, of an equation in one
letter that is left to solve (`2x = 6`; of `x = 6`, `a + b = 6` and `2 * 3 = 6` it is the value), or
of a line with code or a formula behind it, and where a word right beside it changes it (`changes`:
"half of 12", "12 or more"). Numbers joined by "and" or "or" stay together.

Everything here is linear in the text; brackets are looked for in 200 characters around a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from assay.math import answer_phrases as phrases
from assay.math import changes

ANSWER_CHARS: Final = 2_000
JOINT_CHARS = 70
_SPAN_LINES = 3
LINE_CHARS = 200
_AROUND = 200
_NUMBERS_CHARS = 20_000
_JOINED_NUMBERS = 16


class FoundAnswer(NamedTuple):
    """An answer as it stands in a response.

    Attributes:
        text: the answer, without its mark; not blank.
        how: the rule that found it.
        start: where `text`, or the part that it was made of, begins in the response (code points).
        end: where that ends, exclusive.
    """

    text: str
    how: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """No answer, and why, in a few words."""

    why: str


# --- What joins answers ---------------------------------------------------------------------------

_JOINT_NOISE = re.compile(
    r"\\(?:text|quad|qquad|mathrm|[()\[\],;:! ])|[\s${}()~]|[.:;](?=\s)|[A-Za-z](?:_\{?\w\}?)?\s*="
)
_SPACE = re.compile(r"\\(?:quad|qquad|[,;:! ])|[ \t$~]")
_JOINT = re.compile(r"(?:,|、|\uff0c|,?and(?:also)?|,?aswellas|,?or|和|或|&|;)")


def joins(between: str) -> bool:
    """Whether the text between two answers only joins them: a comma, "and", "or", with noise."""
    if len(between) > JOINT_CHARS:
        return False
    return _JOINT.fullmatch(_JOINT_NOISE.sub("", between)) is not None


_UNIT_BEFORE = re.compile(
    r"\s?\$?\s?(?:\\text\s?\{\s?)?[A-Za-z]{1,12}\s?\}?\$?,?\s(?=(?:and|or)\s)"
)


def joins_units(between: str) -> bool:
    """The same where the first answer has its unit behind it, as in `[3] cm and [5] cm`."""
    unit = _UNIT_BEFORE.match(between)
    return unit is not None and joins(between[unit.end() - 1 :])


def is_space(between: str) -> bool:
    r"""Whether only space of one line stands between two answers: blanks, `\quad`, `$ $`."""
    if len(between) > JOINT_CHARS or "\n" in between or between.count("$") not in (0, 2):
        return False
    return not _SPACE.sub("", between)


_PART = re.compile(
    r"(?:^|[\n;,.]|\$)[ \t]*(?:[-*\u2022][ \t]+)?\**(?:Part[ \t])?"
    r"\(?(?P<name>[a-eA-E]|i{1,3}|iv|[1-5])\)"
    r"(?![ \t]*[-+*/^=])"
)
_BEFORE_PART = 400
_PART_NAMES = ("abcde", "12345")
_ROMAN = ("i", "ii", "iii", "iv")


def parts(text: str, spans: list[tuple[int, int]]) -> list[str]:
    """The names of the parts of a problem that places in a text answer: a, b, ..., or 1, 2, ...

    Of the last places, from the one that is named a, 1 or i; empty where they are not so named.

    Args:
        text: the response or the reference.
        spans: where each begins and ends, with its marks, in order.
    """
    names: list[str] = []
    if len(spans) < 2:
        return names
    for at in range(len(spans) - 1, -1, -1):
        begin = spans[at - 1][1] if at else max(0, spans[at][0] - _BEFORE_PART)
        mark = last_match(_PART, text[begin : spans[at][0]])
        if mark is None:
            return []
        names.insert(0, mark["name"].lower())
        if names[0] in ("a", "1") or (names[0] == "i" and names[1:2] in ([], ["ii"])):
            break
    known = [*(list(row[: len(names)]) for row in _PART_NAMES), list(_ROMAN[: len(names)])]
    return names if len(names) > 1 and names in known else []


def of_parts(names: list[str], contents: list[str]) -> str:
    """The answers to the parts of a problem as one: `(a) 3, (b) 4`."""
    pairs = zip(names, contents, strict=True)
    return ", ".join(f"({name}) {content}" for name, content in pairs)


_TRIM = " \t\r\n\"'`\u201c\u201d*_:\uff1a"


# --- Shared ---------------------------------------------------------------------------------------


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The pattern's last match."""
    mark = None
    for mark in pattern.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return mark


def trimmed(text: str, start: int, end: int, how: str) -> FoundAnswer | None:
    """What stands between two places, without marks and white space around it; None if nothing."""
    while start < end and text[start] in _TRIM:
        start += 1
    while start < end and text[end - 1] in _TRIM:
        end -= 1
    return FoundAnswer(text[start:end], how, start, end) if start < end else None


# --- Rules 4 and 5: formulas and numbers ----------------------------------------------------------

_CLOSERS = {"$$": "$$", "$": "$", "\\[": "\\]", "\\(": "\\)"}
_OPENER = re.compile(r"(?<!\\)\$\$?|\\\\?[\[(]")
_SPAN_CHARS = 1_000
_PERCENT = re.compile(r"[ \t]?\\?%")
NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])[-+\u2212]?\$?"
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+,\d{2}(?![\d,])|\d+)?(?:\.\d+)?(?<=\d)"
    r"(?:/\d+|\s?%|[eE][-+]?\d+)?"
)
_ATTACHED_BEFORE = re.compile(r"[-+|^_/]|(?<!\*)\*")
_ATTACHED_AFTER = re.compile(
    r"[!_/(]|\^(?!\{?\\circ)|\\(?!\\|text|mathrm|[%)\],;! ])|\s?\*(?!\*)"
    r"|[A-Za-fi-kn-rt-zA-BD-EG-JN-Z](?![A-Za-z])"
)


_UNIT = re.compile(r"\\(?:text|mathrm|textbf)\s?\{[^{}]*\}|\^\{?\\circ\}?|\\[,;! ]")
_CODE = re.compile(r"[\[\]{}^_=<>|]|(?<!\*)\*(?!\*)|\\(?!%)|[A-Za-z0-9_]\(")


def span_at(text: str, start: int) -> int | None:
    """Where the formula that opens at `start` ends, closer included; None if none opens there."""
    opener = _OPENER.match(text, start)
    if opener is None:
        return None
    closer = _CLOSERS.get(opener[0])
    if closer is None:
        return None
    end = text.find(closer, opener.end(), opener.end() + _SPAN_CHARS)
    return None if end < 0 else end + len(closer)


def math_span(text: str) -> FoundAnswer | Nothing | None:
    """The last formula, with those that are joined to it."""
    spans = _formulas(text)
    return _stated(text, spans, "math-span") if spans else None


def late_span(text: str) -> FoundAnswer | Nothing | None:
    """The last formula, if it stands in the last lines and no later sentence holds a number."""
    spans = _formulas(text)
    if not spans:
        return None
    end = spans[-1][3]
    if text.count("\n", end, len(text.rstrip())) > _SPAN_LINES:
        return None
    if text[spans[-1][1] : spans[-1][2]].rstrip().endswith("."):
        sentence_end = end  # of a displayed formula
    else:
        sentence = phrases.SENTENCE_END.search(text, end)
        sentence_end = sentence.end() if sentence else len(text)
    if NUMBER.search(text, sentence_end):
        return None
    return _stated(text, spans, "math-span")


def narrowed(statement: str) -> str | None:
    """The last formula of a sentence, else its last number; None when it holds neither.

    Words around a number are passed over; where there are brackets, macros or operators it is part
    of something else. What "and", "or" or a comma joins stays together, so that "3 or 5" is not 5.
    """
    spans = _formulas(statement)
    if spans:
        found = _stated(statement, spans, "")
        return found.text if isinstance(found, FoundAnswer) else None
    if phrases.NEGATION.search(statement) or phrases.NO_PROSE.search(statement):
        return None
    marks = list(NUMBER.finditer(statement))
    if not marks or _is_attached(statement, marks[-1]):
        return None
    numbers = [(mark.start(), mark.start(), mark.end(), mark.end()) for mark in marks]
    found = _stated(statement, numbers, "")
    return found.text if isinstance(found, FoundAnswer) else None


def _is_attached(text: str, number: re.Match[str]) -> bool:
    """Whether an operator or a variable is written to a number, so that it is part of more."""
    start, end = number.span()
    if start and _ATTACHED_BEFORE.match(text, start - 1):
        return True
    return _ATTACHED_AFTER.match(text, end) is not None


def _stated(text: str, spans: list[tuple[int, int, int, int]], how: str) -> FoundAnswer | Nothing:
    """The last of the spans, as the words beside it say it."""
    names = parts(text, [(span[0], span[3]) for span in spans])
    if names:
        found = spans[-len(names) :]
        contents = [text[span[1] : span[2]].strip(" .,;") for span in found]
        if all(contents):
            return FoundAnswer(of_parts(names, contents), how, found[0][1], found[-1][2])
    found = _joint(text, spans)
    said = group(text, found, how)
    return _with_words(text, said, found[0][0], max(said.end, found[-1][3]), len(found))


def _with_words(
    text: str, found: FoundAnswer, start: int, end: int, count: int
) -> FoundAnswer | Nothing:
    """An answer with the words for its sign and magnitude; nothing where others change it."""
    words = changes.around(text, start, end)
    if not (words.changed or words.negative or words.magnitude):
        return found
    if words.changed or (words.magnitude and count > 1):
        return Nothing("the words beside the last number change it")
    said = found.text
    if words.negative:
        if not NUMBER.match(said) or said[0] in "-+\u2212":
            return Nothing("the words beside the last formula change its sign")
        said = f"-{said}"
    if words.magnitude:
        said = f"{said} {words.magnitude}"
    return FoundAnswer(said, found.how, min(words.start, found.start), found.end)


def _joint(text: str, spans: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """The last of the spans, with those that are joined to it."""
    found = spans[-1:]
    for span in reversed(spans[:-1]):
        if not joins(text[span[3] : found[0][0]]):
            break
        found.insert(0, span)
    return found


def group(text: str, spans: list[tuple[int, int, int, int]], how: str) -> FoundAnswer:
    """The last of the spans, with those that are joined to it and a percent sign behind it."""
    found = _joint(text, spans)
    joined = ", ".join(text[span[1] : span[2]].strip() for span in found)
    percent = _PERCENT.match(text, found[-1][3])
    if percent is not None:
        return FoundAnswer(f"{joined}\\%", how, found[0][1], percent.end())
    return FoundAnswer(joined, how, found[0][1], found[-1][2])


def _formulas(text: str) -> list[tuple[int, int, int, int]]:
    """Of each formula: where it opens, begins, ends and closes. Prices are none."""
    spans = []
    at = 0
    while (opener := _OPENER.search(text, at)) is not None:
        at = opener.end()
        closer = _CLOSERS.get(opener[0])
        if closer is None:
            continue
        end = text.find(closer, at, at + _SPAN_CHARS)
        if end < 0 or not _is_formula(text, opener[0], at, end):
            continue
        spans.append((opener.start(), at, end, end + len(closer)))
        at = end + len(closer)
    return spans


_MONEY = re.compile(r"\d[\d,.]*(?:\s|\.$)")
_PROSE = re.compile(r"(?<![\\{A-Za-z])[a-z]{3,}\s+[a-z]{2,}\s")


def _is_formula(text: str, opener: str, start: int, end: int) -> bool:
    """Whether what two marks enclose is a formula and not the text between two prices."""
    content = text[start:end]
    if not content.strip():
        return False
    if opener != "$":
        return True
    if "\n\n" in content or (_MONEY.match(content) and text[end + 1 : end + 2].isdigit()):
        return False
    return _PROSE.search(content) is None


_RELATED = re.compile(
    r"(?:(?<![-=>A-Za-z\"'/])>|(?<![<])<|[\u2264\u2265\u2260]|[!<>]="
    r"|\\(?:leq?|geq?|lt|gt|neq?|leqslant|geqslant)(?![A-Za-z]))\s?\\?\$?\Z"
)
_STATED = re.compile(r"=\s?\\?\$?\Z")
_CLAUSE = re.compile(r"[,;:=]|\.\s|(?:and|so|then|that|is|get|have|gives|thus|hence|therefore)\s")
_LETTER = "[a-fi-kn-rt-z](?![A-Za-z])"  # g, h, l, m and s are units as often
_UNKNOWN = re.compile(
    rf"(?:(?<=[\d)+*/^(-])|(?<=[+*/^-] )|(?<=[\d)] )(?!a)){_LETTER}(?!\s?[\d$(])"
    rf"|(?<![A-Za-z\\]){_LETTER}(?=\s?[-+*/^])"
)
_BRACKET = re.compile(r"[()\[\]{}]")
_RATIO = re.compile(r"\d\s?:\Z")
_OPERATED_BEFORE = re.compile(
    r"(?:(?<![A-Za-z\\])[A-Za-z]|[\d)}%])\s?[-+*/\u00d7\u00f7\u2212]\s\\?\$?\Z"
)
_OPERATED_BEHIND = re.compile(r"\s?[-+/\u00d7\u00f7\u2212]\s?(?:\(|\\[a-z]|[A-Za-z](?![A-Za-z]))")
_DENIED = re.compile(
    r"(?:\b(?:not|cannot|never|except)|n['\u2019]t)\s(?:be\s)?(?:equal\s(?:to\s)?)?\\?\$?\Z",
    re.IGNORECASE,
)
_PLAIN_WORD = re.compile(r"[A-Za-z]{3,}")
_AND_OR = re.compile(r"\s?,?\s(?:and|or)\s")


def _is_part(text: str, number: re.Match[str]) -> bool:
    """Whether a number is a side of a relation, or one of several in brackets or a ratio."""
    start, end = number.span()
    before = text[max(0, start - _AROUND) : start].rpartition("\n")[2]
    if _RELATED.search(before) and before.strip() != ">":
        return True
    if _RATIO.search(before) or _DENIED.search(before) or _OPERATED_BEFORE.search(before):
        return True
    if _OPERATED_BEHIND.match(text, end):
        return True
    if _STATED.search(before):
        side = _CLAUSE.split(before.rstrip(" $\\")[:-1])[-1]
        if len(set(_UNKNOWN.findall(side))) == 1:
            return True
    return _is_listed(before, text[start : end + _AROUND].partition("\n")[0])


def _is_listed(before: str, onwards: str) -> bool:
    """Whether a bracket that opens before a number holds a comma, and no prose."""
    if not any(bracket in before for bracket in "([{"):
        return False
    depth = 0
    for bracket in reversed(list(_BRACKET.finditer(before))):
        depth += 1 if bracket[0] in ")]}" else -1
        if depth < 0:
            inside = before[bracket.end() :] + _BRACKET.split(onwards, maxsplit=1)[0]
            listed = inside.replace("\\", " ")
            return "," in inside and _PLAIN_WORD.search(listed) is None
    return False


_SIDE = r"-?(?:\d{1,12}(?:\.\d{1,12})?(?:/\d{1,12})?|[a-z](?![A-Za-z])|\\?infty|\\?infinity)"
_ORDER = r"(?:<=|>=|=<|<|>|\u2264|\u2265|\\(?:leq?|geq?|lt|gt)(?![A-Za-z]))"
_LAST_STRUCTURE = re.compile(
    rf"(?:(?<![\w)\]}}=<>+*/^-])(?P<bracket>[(\[]\s?{_SIDE}(?:\s?,\s?{_SIDE}){{1,5}}\s?[)\]])"
    rf"|(?<![\w)\]}}=<>+*/^,-])(?<![\d)\]}}=<>+*/^,-]\s)(?:{_SIDE}\s?{_ORDER}\s?)?"
    rf"(?P<name>[a-zA-Z])\s?{_ORDER}\s?{_SIDE})(?=[.!*`\s]*\Z)"
)
_LEADS = re.compile(
    r"(?:\b(?:is|are|be|get|gets|have|need|needs|obtain|find|point|pair|triple|interval|range|set"
    r"|direction|vector|forces|means|gives|so|thus|hence|therefore|to|in|that|at|condition"
    r"|requires)\s*[:*]*\s*|[:=]\s*)\Z",
    re.IGNORECASE,
)


def _last_structure(text: str, number: re.Match[str]) -> FoundAnswer | None:
    """The tuple, interval or inequality that ends the response and that its last number is in.

    Only behind a word that leads to an answer, such as "is" or "the point".
    """
    begin = max(text.rfind("\n", 0, number.start()) + 1, number.start() - _AROUND)
    found = None
    for found in _LAST_STRUCTURE.finditer(text, begin):  # noqa: B007 - the last one is wanted
        pass
    if found is None or not found.start() <= number.start() < found.end():
        return None
    if not _LEADS.search(text[begin : found.start()]):
        return None
    return FoundAnswer(found[0].strip(), "math-span", found.start(), found.end())


def last_number(text: str) -> FoundAnswer | Nothing | None:
    """The last number, with a sign, a fraction or a percent sign that belongs to it."""
    marks = list(NUMBER.finditer(text, max(0, len(text) - _NUMBERS_CHARS)))
    if not marks:
        return None
    mark = marks[-1]
    if _is_attached(text, mark) or _is_part(text, mark):
        return _last_structure(text, mark)
    end = mark.end()
    if text[mark.start() - 1 : mark.start()] + text[end : end + 1] == "[]":
        end += 1  # an answer between brackets
    line = text[end : end + ANSWER_CHARS].partition("\n")[0]
    if _CODE.search(_UNIT.sub(" ", line)):
        return None
    first = mark
    for earlier in reversed(marks[-_JOINED_NUMBERS:-1]):
        if _AND_OR.fullmatch(text, earlier.end(), first.start()) is None:
            break
        first = earlier
    said = text[first.start() : mark.end()] if first is not mark else mark[0].replace("$", "")
    found = FoundAnswer(said.strip(), "last-number", first.start(), mark.end())
    return _with_words(text, found, first.start(), mark.end(), 1 + (first is not mark))


_SET_APART = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathbb|operatorname|begin|end)\s?\{[^{}]{0,80}\}"
    r"|\\[A-Za-z]+"
)
_IN_FORMULAS = (
    "and|or|if|for|mod|in|no|all|real|reals|numbers?|integers?|solutions?|sqrt|sin|cos|tan|cot|sec|csc"
    "|log|ln|exp|pi|max|min|gcd|lcm|det|abs|inf|infinity|otherwise|else|base|union|cup|where|when"
    "|infty|frac|theta|alpha|beta|floor|ceil|None|True|False|Yes|No|yes|true|false"
)
_SAID = re.compile(
    rf"(?<![A-Za-z])(?:(?!(?:{_IN_FORMULAS})(?![A-Za-z]))[A-Za-z]{{3,}}"
    r"|(?:[Ii]s|[Ii]t|[Ss]o|[Ww]e|[Hh]e|[Bb]e|[Dd]o|[Aa]s|[Uu]s|[Mm]y|[Mm]e|[Bb]y|[Oo]f)(?![A-Za-z]))"
)
_NO_IDEA = re.compile(
    r"\b(?:answer|nothing|idea|sure|know|unknown|idk|i|we|response)\b", re.IGNORECASE
)
_FEW_WORDS, _ENDED_WORDS = 6, 2


def bare_line(text: str) -> FoundAnswer | Nothing | None:
    """All of a response that is one short line of mathematics, or a few words without a number."""
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    if not 0 < end - start <= LINE_CHARS or "\n" in text[start:end] or text[start] == "=":
        return None
    if _formulas(text):
        return None
    line = _SET_APART.sub(" ", text[start:end])
    if _SAID.search(line) is not None:
        most = _ENDED_WORDS if line[-1] == "." else _FEW_WORDS
        few = len(line.split()) <= most and line[-1] not in "!?:;,"
        if not few or any(map(str.isdigit, line)) or _NO_IDEA.search(line):
            return None
    return trimmed(text, start, end, "whole")
