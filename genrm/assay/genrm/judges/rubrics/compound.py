"""Finds criteria that ask several things at once, and proposes how to split them. Pure.

English only, by its words: entries of a list, sentences, clauses behind a semicolon, and verbs
joined by "and", "but" or "as well as". Two nouns ("salt and pepper") are one criterion.

Not covered: other languages, relative clauses, "both X and Y" of nouns.
"""

from __future__ import annotations

import re

_VERBS = (
    "acknowledges? addresse?s? advises? apologi[sz]es? asks? avoids? begins? calculates? cites? "
    "clarif(?:y|ies) compares? computes? concludes? considers? contains? contradicts? converts? "
    "defines? demonstrates? derives? describes? discusse?s? distinguish(?:es)? emphasi[sz]es? "
    "encourages? ensures? evaluates? explains? explores? expresses express follows? gives? "
    "greets? identif(?:y|ies) includes? indicates? interprets? introduces? invents? "
    "justif(?:y|ies) keeps? maintains? makes? mentions? proposes? proves? provides? "
    "recogni[sz]es? recommends? refers? refuses? responds? returns? says? solves? "
    "specif(?:y|ies) states? stresses stress suggests? summari[sz]es? tells? verif(?:y|ies) "
    "warns? writes?"
)
_NOUNS_TOO = (
    "answers? checks? closes? corrects? covers? ends? highlights? labels? lists? names? notes? "
    "offers? omits? outlines? points? presents? promises? quotes? references? reports? "
    "requests? shows? starts? stays? supports? thanks? urges? uses?"
)
_DETERMINER = (
    r"\s+(?:the|an?|that|how|why|what|whether|which|its?|their|any|each|every|all|no|at|to|in|"
    r"with|out|one|two|three|\d)\b"
)
_CLEAR = rf"(?:{'|'.join(_VERBS.split())})\b"
_VERB = rf"(?:{_CLEAR}|(?:{'|'.join(_NOUNS_TOO.split())}){_DETERMINER})"
_MODAL = r"(?:does not|doesn't|do not|is|has|must|should|never)"
_ASKS = re.compile(rf"^(?:the response |it )?(?:{_MODAL} )?(?:\w+ly )?{_VERB}", re.IGNORECASE)
_BEHIND = rf"(?:also |then |clearly |correctly |explicitly |briefly )?(?:{_MODAL} )?"
_JOINED = re.compile(
    rf",?\s+(?:and|but|as well as|while also)\s+(?={_BEHIND}{_VERB})|,\s+(?={_BEHIND}{_CLEAR})",
    re.IGNORECASE,
)
_LISTED = re.compile(r"(?:^|\n)\s*(?:[-*\u2022]|\(?\d{1,2}[.)]|\(?[a-h][.)])\s+")
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|Dr|Mr|Mrs|Ms|St|approx|Fig|Eq|No)\.$")
_FIRST = re.compile(
    rf"^\s*(?:{'|'.join(_NOUNS_TOO.split())})\b|\b(?:{_VERB}|{_MODAL}\b)", re.IGNORECASE
)
_SUBJECT = re.compile(
    r"^\s*((?:the|this|an?|its?|every|each)\s+(?:\w+\s+){0,3}?)"
    rf"(?=(?:\w+ly )?(?:{_MODAL}|{_VERB}))",
    re.IGNORECASE,
)


def parts_of(text: str) -> tuple[str, ...]:
    """The criteria that a text holds; the text alone where it asks one thing."""
    parts = [
        phrase
        for entry in _entries(text.strip())
        for sentence in _sentences(entry)
        for clause in sentence.split("; ")
        for phrase in _phrases(clause)
    ]
    made = tuple(_sentence(part) for part in parts if re.search(r"\w", part))
    return made if len(made) > 1 else (text.strip(),)


def _entries(text: str) -> list[str]:
    """The entries of a list, without the line that introduces it."""
    found = _LISTED.split(text)
    return [entry.strip() for entry in found[1:]] if len(found) > 2 else [text]


def _sentences(text: str) -> list[str]:
    """Sentences that ask something; what only explains stays with the one before."""
    sentences: list[str] = []
    for part in _SENTENCES.split(text):
        if sentences and (_ABBREVIATED.search(sentences[-1]) or not _ASKS.search(part)):
            sentences[-1] += f" {part}"
        else:
            sentences.append(part)
    return sentences


def _phrases(clause: str) -> list[str]:
    """Phrases of a verb each, with the subject of the first."""
    first, *others = _JOINED.split(clause)
    if not _FIRST.search(first):
        return [clause]
    subject = _SUBJECT.match(first)
    return [first, *(f"{subject[1] if subject else ''}{other}" for other in others)]


def _sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    text = text.strip().rstrip(",;")
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
