r"""Reads option letters out of an answer: "(B)", "B.", "\textbf{(B) } 5", "AB", "A or C".

An answer is read from its beginning: words that announce an option, then labels, then what may
follow a label. Any other shape names no option; in particular a letter somewhere in a sentence is
none ("a dog", "C is for cookie").

Linear: at most 2,000 characters are read, by patterns without nested repetition.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

READ_CHARS: Final = 2_000
_MOST_LEADS: Final = 16
_MOST_LABELS: Final = 26
_AROUND: Final = " \t\r\n.:;,()[]<>#"

_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|it|rm|sf|tt|cal|bb)|mbox|boxed|fbox|bf|rm|it|emph|left"
    r"|right|displaystyle|quad|qquad|operatorname)(?![A-Za-z])\*?|\\[()\[\],;:! ~]|[${}~*_`\"'"
    r"\u201c\u201d\u2018\u2019]"
)
_LEAD = re.compile(
    r"(?:answers?|options?|choices?|selections?|letters?|choose|pick|select|so|thus|hence|therefore"
    r"|the|my|our|final|correct|best|right|both|either|it|is|are|must be|should be|would be)(?=\W)"
    r"|选项|選項|答案|故|应|應|正确|正確|选|選|为|為|是|[\s:=>#.,【】]+",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[(\[【]\s?([A-Za-z])\s?[)\]】]|([A-Z])(?![A-Za-z0-9_'\u2019\\^+\-*=<>])")
_JOIN = re.compile(
    r"\s*(?:,|、|;|&|/|\|)?\s*(or|and/or|and|或者?|和|与|及|以及)?\s*", re.IGNORECASE
)
_OPENERS: Final = frozenset("([【")
_LISTED: Final = frozenset(",;、/|&")
_RUN = re.compile(r"([A-Z]{2,26})(?![A-Za-z0-9])")
_CLOSER = re.compile(r"\s*[.:;,)\]、。\-\u2013\u2014>]")
_GOES_ON = re.compile(
    r"\s*(?:\Z|\n|<|because\b|since\b|as\b|which\b|for\b|so\b|due\b|with\b|by\b|from\b|given\b"
    r"|(?:is|are|seems?|looks?|was)\s+(?:(?:the|indeed|most|clearly)\s+){0,2}"
    r"(?:correct|right|answers?|true|best|likely|option)\b"
    r"|\\(?:[dt]?frac|sqrt|pi|begin|\{)|[\d(\u3400-\u9fff\u00b1\u2212])",
    re.IGNORECASE,
)
_OTHER_LABEL = re.compile(
    r"(?:\b(?:or|and|nor|perhaps|maybe)\b|或者?|和|[,;、/|]|\n)\s*(?:also |option |choice |选项)*"
    r"(?:[(\[]([A-Z])[)\]]|([A-HJ-UWYZ])(?=[).:、]\s|[).:、]?\Z))"
    r"|(?<=\s)\(?([A-HJ-UWYZ])\)\s"
)
_JOINED_TEXT = re.compile(r"\s*(?:both|neither|either|all|none|only|each)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedOptions:
    """The options that an answer names.

    Attributes:
        letters: capital letters in the order named, each once.
        rest: what follows the label, when there is exactly one.
        hedged: they are joined by "or", or another option is named behind a label's text.
    """

    letters: tuple[str, ...]
    rest: str = ""
    hedged: bool = False


def plain(text: str) -> str:
    """The text without marks of LaTeX and Markdown, in plain characters; at most 2,000."""
    text = unicodedata.normalize("NFKC", text[:READ_CHARS])
    return _WRAPPER.sub(" ", text).strip()


def named(text: str) -> NamedOptions | None:
    """The options that an answer names; None when it names none."""
    text = plain(text)
    bare = text.strip(_AROUND)
    if len(bare) == 1 and "a" <= bare.lower() <= "z":
        return NamedOptions((bare.upper(),))
    at, announced = _after_lead(text)
    alone = text[at:].strip(_AROUND)
    if announced and len(alone) == 1 and "a" <= alone.lower() <= "z":
        return NamedOptions((alone.upper(),))
    run = _RUN.match(text, at)
    if run is not None and (announced or not text[run.end() :].strip(_AROUND)):
        return NamedOptions(tuple(run[1])) if len(set(run[1])) == len(run[1]) else None
    if text[at : at + 1] in _OPENERS and _LABEL.match(text, at) is None:
        at += 1
    return _labelled(text, at)


def _after_lead(text: str) -> tuple[int, bool]:
    """The end of the words that announce an option, and whether there are any."""
    at = 0
    announced = False
    for _ in range(_MOST_LEADS):
        lead = _LEAD.match(text, at)
        if lead is None:
            break
        announced = announced or lead[0].isalpha()
        at = lead.end()
    return at, announced


def _labelled(text: str, at: int) -> NamedOptions | None:
    """Labels one after the other, with what joins them and what follows the last."""
    letters: list[str] = []
    hedged = bracketed = False
    end = at
    while (label := _LABEL.match(text, end)) is not None and len(letters) < _MOST_LABELS:
        letters.append((label[1] or label[2]).upper())
        end, bracketed = label.end(), label[1] is not None
        joint = _joint(text, end)
        if joint is None:
            break
        hedged = hedged or joint[1]
        end = joint[0]
    if not letters:
        return None
    rest = text[end:]
    closer = _CLOSER.match(rest)
    if not (bracketed or closer or _GOES_ON.match(rest)):
        return None
    distinct = tuple(dict.fromkeys(letters))
    if len(letters) > 1:
        return NamedOptions(distinct, hedged=hedged and len(distinct) > 1)
    rest = rest[closer.end() :] if closer else rest
    return NamedOptions((letters[0],), rest.strip(), _names_another(rest, letters[0]))


def _joint(text: str, end: int) -> tuple[int, bool] | None:
    """Where the next label begins, and whether it is an alternative; None if there is none."""
    closer = None if text[end : end + 1] in _LISTED else _CLOSER.match(text, end)
    start = closer.end() if closer else end
    join = _JOIN.match(text, start)
    at = join.end() if join else start
    if (at == end and text[end : end + 1] not in _OPENERS) or _LABEL.match(text, at) is None:
        return None
    words = text[start:at].strip().lower()
    if closer is not None and not words:
        return None  # "D) I, III": the option's text begins with a letter
    return at, "or" in words or "或" in words or "/" in words or "|" in words


def _names_another(rest: str, letter: str) -> bool:
    """Whether the text behind a label names another option as an alternative."""
    if _JOINED_TEXT.match(rest):
        return False
    marks = (mark[1] or mark[2] or mark[3] for mark in _OTHER_LABEL.finditer(rest))
    return any(mark != letter for mark in marks)
