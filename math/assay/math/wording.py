r"""Words around an answer: a label before it, a remark behind it, the parts of a problem.

For texts that are no mathematics as they stand: `\text{Area} = 48`, `5 (the smallest)`,
`(a) 3, (b) 4`. What a label or a remark may say is bounded by a list of words that change a value
("twice", "not", "at least"): with one of them the answer stays text.

Every function is linear in the length of its text.
"""

# ruff: noqa: SIM905 - one case, one return; tables as words
from __future__ import annotations

import re
from typing import NamedTuple

from assay.math import units
from assay.math.notation import TEXT
from assay.math.text import bare
from assay.math.vocabulary import NUMBER_WORDS

_CHANGING = frozenset(
    """
    above add after almost and anything approximate approximated aren't base before below
    between billion but cannot cubed decreased different divide divided doesn't double
    dozen dozens either everything except exist exists
    extraneous factorial false fewer guess guessed half
    hundred if impossible incorrect increased instead invalid inverse isn't least less
    maybe million minus mod modulo more most multiplied multiply nearly negative neither
    never no nor not only opposite or other otherwise over perhaps plus possibly previous
    rather ratio reciprocal rejected squared subtract than thousand times to trillion
    triple twice under unless unlike up when where without wrong
    """.split()
)
_WORD_BLOCK = re.compile(
    rf"\s?(?:{TEXT}\s?\{{([^{{}}\\$^_]{{1,60}})\}}|([A-Za-z][A-Za-z'-]{{0,30}}))"
)
_LABEL = re.compile(r"[A-Za-z][A-Za-z' \-]*")
_JOINT = re.compile(r"\s?(?:([:=])|\\approx)\s?")
_COMPUTED = re.compile(
    r"(?:the )?(?:(?:square|cube)(?: root)?|logarithm|log|factorial|inverse|third|quarter) of "
)
_SHORT_LABELS = frozenset({"sum", "area", "cost", "mean", "mode", "rate", "time"})
_MAX_BLOCKS, _MAX_WORDS = 8, 8
_EXTREME = re.compile(r"\b(?:max|min)(?:imum|ima)?\b", re.IGNORECASE)  # labels to tell apart
_SAYS = (
    " is", " are", " equals", " at", " was", " must be", " evaluates to", " converges to",
    " simplifies to", " measures",
)  # fmt: skip
_PROBABILITY = re.compile(
    r"(?:\\?(?:P|Pr)|\\(?:mathbb|mathrm|text|operatorname)\s?\{(?:P|Pr)\})\s?"
    r"(?P<of>\([^()=]{1,60}\)|\([^()]{1,40}=[^()=]{1,20}\))\s?=\s?(?=\S)"
)
_REMARK = re.compile(r"(.*\S)\s?\(\s?([A-Za-z][^()]{1,80})\)")
_REMARK_WORDS = re.compile(r"[A-Za-z][A-Za-z' ,.\-]*")
_REASON = re.compile(r"(?:since|because|as required|by )\b")
_REASON_CHANGES = re.compile(r"\b(?:or|if|not|otherwise|unless|when|but|except)\b")


class Labelled(NamedTuple):
    """A label, whether it stands before an equals sign, and what follows."""

    label: str
    equals: bool
    value: str


def relabelled(form: str) -> Labelled | None:
    r"""A value behind a label in words: `\text{Area} = 48`, `x-coordinate: 3`, `P(red) = 0.5`.

    None when there is no such label or one of its words changes what is said about the value.
    """
    chance = _PROBABILITY.match(form)
    if chance is not None:
        return Labelled(f"P {bare(chance['of'])}", True, form[chance.end() :])
    words, at = "", 0
    wrapped = False
    for _ in range(_MAX_BLOCKS):
        block = _WORD_BLOCK.match(form, at)
        if block is None:
            break
        glue = "" if not words or (block[1] or block[2])[0] == "-" else " "
        words += glue + (block[1] or block[2])
        wrapped = wrapped or block[1] is not None
        at = block.end()
        if block[1] is not None and words.rstrip().endswith((":", "=", *_SAYS)):
            break
    if not at:
        return None
    words = words.strip()
    joint = _JOINT.match(form, at)
    if words.endswith((":", "=")):
        equals, words, end = words[-1] == "=", words[:-1].strip(), at
    elif joint is not None:
        equals, end = joint[1] != ":", joint.end()
    elif wrapped and words.endswith(_SAYS):
        equals, words, end = bool(_EXTREME.search(words)), words.rpartition(" ")[0], at
    elif wrapped and words.lower() in ("the point", "point", "center", "vertex"):
        equals, end = False, at
    else:
        return None
    if not _LABEL.fullmatch(words) or end >= len(form) or not _is_label(words, wrapped=wrapped):
        return None
    return Labelled(" ".join(words.lower().split()), equals, form[end:].strip())


def _is_label(words: str, *, wrapped: bool) -> bool:
    """Whether words name a value; products of letters do not, nor words that change it."""
    listed = words.lower().replace("-", " ").split()
    if _COMPUTED.match(words.lower()):
        return False
    if not listed or len(listed) > _MAX_WORDS or _CHANGING.intersection(listed):
        return False
    if listed[-1] in ("of", "to", "by", "from", "the", "a", "for", "with"):
        return False
    return wrapped or any(len(word) > 4 or word in _SHORT_LABELS for word in listed)


def remark(form: str) -> str:
    """What stands before a remark in brackets, such as `(the smallest)`; empty if there is none."""
    match = _REMARK.fullmatch(_unwrapped(form)) if form.endswith((")", "}")) else None
    if match is None:
        return ""
    said = match[2].lower().strip()
    if _REASON.match(said):
        return "" if _REASON_CHANGES.search(said) else match[1]
    listed = said.replace("-", " ").replace(",", " ").replace(".", " ").split()
    if not _REMARK_WORDS.fullmatch(said) or _CHANGING.intersection(listed):
        return ""
    known = any(len(word) > 2 for word in listed) and len(listed) <= _MAX_WORDS
    return match[1] if known else ""


_VERBS = (
    "is|are|was|were|has|have|had|equals|takes?|took|needs?|costs?|paid|pays|gets?|got|makes?|made"
    "|will be|must be|can be done in|can be chosen in|earns?|earned|sold|sells?|bought|buys"
    "|ate|eats?|spent|spends|saved?|saves|used?|uses"
)
_STATED = re.compile(
    rf"(?P<before>[A-Za-z][A-Za-z' ]{{0,120}}?) (?:{_VERBS})"
    r"(?: (?:only|exactly|equal to|a total of|now|the number))?:? "
    r"(?P<value>-?(?:\\dollar )?\d[\d,]{0,20}(?:\.\d{1,20})?(?:/\d{1,20})?\s?\\?%?)"
    r"(?P<after>(?: [A-Za-z][A-Za-z']*){0,8})"
)
_SMALL = [word for word, value in NUMBER_WORDS.items() if 1 < value < 100]
_NUMBER_WORD = re.compile(
    rf"(?<![\w-])(?:{'|'.join(_SMALL)})(?![\w-])",
    re.IGNORECASE,
)
_BRIEF = re.compile(
    r"(?P<before>(?:exactly|therefore|thus|hence|so|a total of|the answer(?=:)|)),?:?\s?"
    r"(?P<value>-?(?:\\dollar )?\d[\d,]{0,20}(?:\.\d{1,20})?(?:/\d{1,20})?)"
    r"(?P<after>(?: [A-Za-z][A-Za-z']*){0,3}?)"
    r"(?P<tail> (?:in total|altogether|in all|(?:is|are) (?:needed|required)"
    r"|is the (?:final )?answer))?",
    re.IGNORECASE,
)
_TEXTS = re.compile(rf"{TEXT}\s?\{{([^{{}}]*)\}}")
_COMPUTING = frozenset(
    """
    about approximately around cube cubed divisible e each every factorial log mod per pi power
    powers root roots roughly sin cos square sqrt sum tan theta units i x y z
    """.split()
)


def statement(form: str) -> str:
    """The number that a sentence states, as in `There are 12 ways`; empty if it does not.

    It stands right behind a verb, is the only number, and no word of the sentence changes it.
    """
    if len(form) > 300:
        return ""
    said = " ".join(_TEXTS.sub(r" \1 ", form).split()).rstrip(" .")
    if not any(map(str.isdigit, said)):
        said = _NUMBER_WORD.sub(lambda word: str(NUMBER_WORDS[word[0].lower()]), said)
    brief = _BRIEF.fullmatch(said)
    match = brief if brief and (brief["before"] or brief["tail"]) else _STATED.fullmatch(said)
    if match is None:
        return ""
    after = match["after"]
    if after.startswith(" more ") and " than" not in after and _NEEDS.search(said):
        after = after.removeprefix(" more")  # 8 more apples are 8
    listed = f"{match['before']} {after}".lower().replace("'", " ").split()
    if _CHANGING.intersection(listed) or _COMPUTED.match(match["before"].lower()):
        return ""
    behind = after.lower().split()
    if _COMPUTING.intersection(behind) or _FRACTIONS.intersection(behind[:1]):
        return ""
    unit = units.parse(after) if behind else None
    known = unit is not None and unit.known
    return match["value"].strip() + (f" \\text{{{' '.join(behind)}}}" if known else "")


_NEEDS = re.compile(r"\bneed(?:s|ed)? \d")
_CLAUSE = re.compile(
    rf"(?:[a-z]\s?)?{TEXT}\s?\{{\s?(?:[Yy]es, )?(?P<words>(?:[A-Za-z][A-Za-z', -]{{1,80}}? )?)"
    r"(?:is|are|equals?|(?:is |are )?equal to|must be|has to be|converges to|evaluates to)"
    r"(?: (?:exactly|equal to))?\s?:?\s?\}\s?(?P<value>(?:[a-z]\s?=\s?)?[^A-Za-z\s].*)"
)
_NO_CHANGE = re.compile(
    r"\bexists? and\b|\bonly (?=(?:possible |real |positive |integer |such )?"
    r"(?:value|solution|answer|number|integer|root|choice|possibility)\b)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    rf"(?P<value>.*[^\s,]),?\s?{TEXT}\s?\{{\s?(?:is|are) "
    r"(?P<words>(?:the|our|its) [A-Za-z ]{1,60})\}"
)
_TELLING = _CHANGING | {"square", "cube", "log", "logarithm", "factorial", "remaining", "each"}
_FRACTIONS = frozenset(
    """
    halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths seventh sevenths
    eighth eighths ninth ninths tenth tenths hundredths thousandths
    """.split()
)
_ANSWERS = frozenset(
    """
    answer answers solution solutions value values result results number integer root roots sum
    product limit minimum maximum total area volume length
    """.split()
)


def said_value(form: str) -> str:
    r"""What a clause in words says of a value: `\text{The limit exists and equals } 4/9`, or empty.

    Also `18 \text{ is the only solution}`. No word may change the value.
    """
    if len(form) > 300 or "\\" not in form:
        return ""
    match = _CLAUSE.fullmatch(form)
    if match is not None:
        listed = _NO_CHANGE.sub("", match["words"]).lower().replace("-", " ").split()
        return "" if _TELLING.intersection(word.strip(",'") for word in listed) else match["value"]
    match = _TAIL.fullmatch(form)
    if match is None:
        return ""
    listed = _NO_CHANGE.sub("", match["words"]).lower().split()
    said = _ANSWERS.intersection(listed) and not _TELLING.intersection(listed)
    return match["value"] if said else ""


_LAST_TEXT = re.compile(rf"(.*\S)\s?{TEXT}\s?\{{(\s?\([^{{}}]*\)\s?)\}}")


def _unwrapped(form: str) -> str:
    r"""The form with the words of its last `\text{(...)}` laid bare."""
    match = _LAST_TEXT.fullmatch(form)
    return form if match is None else f"{match[1]} {match[2].strip()}"


_PART = re.compile(
    rf"(?:^|[,;]?\s)(?:{TEXT}\s?\{{\s?)?(?:[Pp]art )?\(?([a-e]|i{{1,3}}|iv|[1-5])\):?\s?\}}?:?\s?"
)
_PART_NAMES = ("abcde", "12345")


def parts(form: str) -> list[str]:
    """The answers of `(a) 3, (b) 4`, in order; empty when it is not of that form."""
    marks = list(_PART.finditer(form)) if ")" in form[:16] else []
    if len(marks) < 2 or marks[0].start():
        return []
    names = [mark[1] for mark in marks]
    expected = ["i", "ii", "iii", "iv"][: len(names)]
    if names != expected and "".join(names) not in (
        sequence[: len(names)] for sequence in _PART_NAMES
    ):
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(form)]
    answers = [form[mark.end() : end].strip(" ,;.") for mark, end in zip(marks, ends, strict=True)]
    return answers if all(answers) else []
