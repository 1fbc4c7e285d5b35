"""What a prompt says of the form of its answer: what counts, and what does not. Pure.

A prompt that says what does not matter ("capitals do not matter", "padding is free") says that the
rest does; one that asks for the words as they are given says so of their letters.
"""

from __future__ import annotations

import re
from typing import Literal

Order = Literal["said", "unsaid", "free"]

_SAID = re.compile(
    r"\b(?:sort|arrange|rank|reorder|order) (?:\w+ ){0,2}(?:the|these|them|all|following|by)"
    r"\b"
    r"|\b(?:list|give|name|write|return|state|answer|which|what)\b[^.?!]{0,80}\b"
    r"in (?:the |this |that |which )?"
    r"(?:right |correct |same |given |chronological )?order\b(?! to\b)"
    r"|\b(?:write|reverse|list|give|read|spell)\b[^.?!]{0,60}\b"
    r"(?:backwards?|reversed|reverse order)\b"
    r"|\breverse (?:the|this|these)\b"
    r"|\b(?:what is|which is|give|write|find|complete) (?:the|this) (?:\w+ )?sequence\b"
    r"|\bnext (?:\w+ )?(?:terms|numbers|elements)\b",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"\bin (?:\w+ )?order\b(?! to\b)|\bordered\b|\bsort(?:ed|s)?\b|\bascending\b|\bdescending\b"
    r"|\bsequence\b|\branked\b|\branking\b|\broute\b|\bpath\b|\bcoordinates?\b|\bvector\b"
    r"|\bmatrix\b|\btuple\b|\bpermutation\b",
    re.IGNORECASE,
)
"""Of numbers with commas this may be asked for as a form alone, or be what the task is about."""
_ARRAYS = re.compile(r"\b(?:json|arrays?|lists?|lines?)\b", re.IGNORECASE)
_FREE = re.compile(
    r"\bany order\b|\border (?:does|is|need)(?: not|n.t)\b|\b(?:irrespective|regardless) of"
    r" (?:the )?order\b|\bunordered\b|\bno particular order\b|\bsets?\b",
    re.IGNORECASE,
)
PRINTED = re.compile(
    r"\bprint(?:s|ed)?\b|\bstdout\b|\bprogram\b|\bscript\b|\bconsole\b|\boutput of\b|\btable\b"
    r"|\bcsv\b|\bcommand\b",
    re.IGNORECASE,
)

_ALONE = re.compile(
    r"\b(?:alone|only|exactly|nothing else|no other|no more|one (?:last )?line)\b", re.IGNORECASE
)
_OPEN = re.compile(
    r"\b(?:an? (?:\w+ )?example|examples of|one possible|any (?:\w+ )?(?:that|which|such|one)|"
    r"for instance|of your own)\b",
    re.IGNORECASE,
)
_AS_IT_IS = (
    r"\b(?:as|exactly as|the way) (?:it |they |it is |they are |is |are )?"
    r"(?:written|given|labell?ed|spel[tl]\w*|shown|printed|stated|listed)\b"
    r"|\bas on the (?:card|label|sign|list|sheet|page|plate|form|receipt|ticket|badge|bill)\b"
    r"|\b(?:verbatim|word for word|letter for letter|character by character|unchanged)\b"
    r"|\bin the words of\b|\b(?:exact|same) (?:words|spelling|text|wording|string|name|title)\b"
    r"|\bcopy (?:it|the|this|them)\b"
)
_CASED = re.compile(
    r"\bcase(?: of letters)? (?:matters|counts|is significant)\b|\bcase[- ]sensitive\b"
    r"|\bmind the case\b|\bcase included\b|\bcapitals (?:matter|count|included)\b"
    r"|\b(?:names?|texts?|letters|capitals|spelling)\b[^.;]{0,24}"
    r"\bas (?:given|written|spelt|shown)"
    r"|\b(?:verbatim|letter for letter|character by character)\b",
    re.IGNORECASE,
)
_UNCASED = re.compile(
    r"\b(?:case|capitals|upper[- ]?case|lower[- ]?case)\b[^.;]{0,40}"
    r"\b(?:do(?:es)? not (?:matter|count)|is (?:free|ignored|all one)|are (?:free|ignored))"
    r"|\bcase[- ]insensitive\b|\bany case\b|\b(?:ignor\w+|regardless of|whatever the) case\b",
    re.IGNORECASE,
)
_NO_MATTER = (
    r"[^.;]{0,60}\b(?:do(?:es)? not (?:matter|count)|is all one|(?:is|are) (?:free|ignored)"
    r"|may be left out|make no difference)\b"
)
_LENIENT = (
    r"\b(?:capitals|case|spaces|spacing|blanks|padding|punctuation|full stops?|leading zeros"
    r"|empty lines|whitespace|quotes|hyphens)\b" + _NO_MATTER
)
_UNSIGNED = re.compile(
    r"\b(?:punctuation|hyphens?|dashes|dots|points|apostrophes?|quotes|signs|accents|separators)\b"
    + _NO_MATTER,
    re.IGNORECASE,
)
_SPELT = re.compile(f"{_AS_IT_IS}|{_LENIENT}|{_CASED.pattern}", re.IGNORECASE)
_WRITTEN = re.compile(f"{_AS_IT_IS}|{_CASED.pattern}", re.IGNORECASE)
_ONCE = re.compile(
    r"\b(?:each|every)\b[^.;]{0,30}\bonce\b|\b(?:once|one time) (?:each|only)\b"
    r"|\b(?:no|without|not?) (?:duplicates?|repeats?|repetitions?|doubles)\b"
    r"|\b(?:unique|distinct)\b",
    re.IGNORECASE,
)
_TYPED = re.compile(
    r"\((?:a|as a) number|\ba number, not|\btypes? matter|\bJSON types?\b"
    r"|\btypes (?:listed|given)\b|\(an? (?:boolean|bool|integer|int|string|float)\b"
    r"|: (?:boolean|bool|integer|int|float)\b|\bschema\b",
    re.IGNORECASE,
)
_DAY_FIRST = re.compile(r"\bday first\b|\bDD?[/.-]MM?\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(r"\bmonth first\b|\bMM?[/.-]DD?\b", re.IGNORECASE)
_NAMED_ORDER = re.compile(
    r"\bfrom (?:the )?(?:last|first|left|right|top|bottom|front|back|oldest|newest|earliest|latest"
    r"|smallest|largest|shortest|longest|lowest|highest|most|fewest|least)\b[^.;]{0,40}\bto\b"
    r"|\b(?:first|last),? then\b|\b\w+ (?:comes )?first\b(?=\s*[;.)])|\bin (?:this|that|reverse"
    r"|alphabetical|numerical|ascending|descending|chronological|the (?:given|same|right|correct))"
    r" order\b",
    re.IGNORECASE,
)


def order_of(prompt: str, sort: str) -> Order:
    """Whether a prompt says that the order matters, or that it does not."""
    if _FREE.search(prompt):
        return "free"
    kept = sort != "list" and _ARRAYS.search(prompt) and _FORM.search(prompt)
    said = kept or _SAID.search(prompt)
    return "said" if said or (sort == "lines" and PRINTED.search(prompt)) else "unsaid"


def is_alone(prompt: str) -> bool:
    """Whether nothing may stand beside the answer."""
    return _ALONE.search(prompt) is not None


def is_open(prompt: str) -> bool:
    """Whether a prompt asks for one of many right answers."""
    return _OPEN.search(prompt) is not None


def is_cased(prompt: str) -> bool:
    """Whether capitals count."""
    return _CASED.search(prompt) is not None and _UNCASED.search(prompt) is None


def is_spelt(prompt: str) -> bool:
    """Whether letters count: words are given to be repeated, or what does not matter is listed."""
    return _SPELT.search(prompt) is not None and not is_open(prompt)


def is_written(prompt: str) -> bool:
    """Whether signs count as letters do."""
    free = _UNSIGNED.search(prompt) is not None
    return _WRITTEN.search(prompt) is not None and not free and not is_open(prompt)


def is_once(prompt: str) -> bool:
    """Whether each part may come once."""
    return _ONCE.search(prompt) is not None


def is_typed(prompt: str) -> bool:
    """Whether the types of values count: a number is no text, and no truth value."""
    return _TYPED.search(prompt) is not None


def is_row(prompt: str) -> bool:
    """Whether the prompt says in which order the words of an answer come."""
    return _NAMED_ORDER.search(prompt) is not None and _FREE.search(prompt) is None


def day_first(prompt: str) -> bool | None:
    """Whether a date's first number is the day; None where the prompt does not say."""
    day, month = _DAY_FIRST.search(prompt), _MONTH_FIRST.search(prompt)
    return None if (day is None) == (month is None) else day is not None
