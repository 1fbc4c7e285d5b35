"""Sentences of English text: after the Punkt algorithm with fixed parameters, and by plain rules.

Kiss and Strunk, Unsupervised Multilingual Sentence Boundary Detection, Computational Linguistics
32(4), 2006. IFEval and IFBench count sentences with NLTK's Punkt tokenizer and its trained English
parameters, which have to be downloaded; short tables stand in for them. Differences from NLTK with
its trained parameters:

1. The abbreviations and the words that start a sentence after one are most of those that the
   English model has learned, without its oddities. As in the model "e.g.", "i.e." and "etc." are
   missing: a sentence ends after them.
2. Function words (those that are no names after an initial) stand in for Punkt's orthographic
   contexts, the case of some 20,000 words.
3. There are no learned collocations.

IF-RLVR's training code splits some texts by plain rules instead, `plain_sentences`. Both are linear
in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from assay.verifiers_extra.instructions.words import STOP_WORDS, sentence_tokens, word_set

_SPLITTING = re.escape(")\";}]*:@'({[\u2018\u2019“”«»?!")
_RUN = re.compile(r"\S+")
_RUN_WITH_STOP = re.compile(r"(?<!\S)[^\s.?!]*+[.?!]\S*")
_INNER_END = re.compile(rf"[.?!](?=[{_SPLITTING}])")
_COMMA_AT_END = rf",(?:$|[{_SPLITTING}]|--|\.\.)"
_TOKEN = re.compile(
    rf"-{{2,}}|\.{{2,}}"
    rf"|[^(\"`{{\[:;&#*@)}}\]\-,](?:(?!--|\.\.|{_COMMA_AT_END})[^{_SPLITTING}])*"
    rf"|."
)
_CLOSING = re.compile(r"[\"')\]}\u2018\u2019“”«»]+(?=\s|--|$)")
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*")
_ABBREVIATIONS = word_set(
    # people and ranks
    "mr mrs ms dr prof sr jr messrs adm col gen lt maj sen rep reps ph.d m.b.a "
    # firms
    "inc co corp ltd bros cie cos s.a s.p.a b.v n.v a.g "
    # the calendar
    "jan feb aug sep sept oct nov dec tues wed fri a.m p.m a.d "
    # places
    "u.s u.k u.n u.s.a u.s.s.r d.c n.y n.j n.c n.m n.d n.h s.c l.a r.i w.va ala ariz calif colo "
    "conn fla ga ill kan ky mich minn nev okla ore pa tenn va vt wash wis st ave ft ct sw "
    # measures and the like
    "mg yr chg vs ok "
    # initials
    "c d e f g h k l m n p r s t v w a.a a.c a.h a.s a.t b.f c.v d.h d.w e.f e.h e.l e.m f.g f.j "
    "g.d g.f g.k h.c h.f h.m j.b j.c j.j j.k j.p j.r l.f l.p m.j r.a r.h r.j r.k r.t s.g s.s t.j "
    "w.c w.r w.w"
)
_STARTERS = word_set(
    "according although among both but despite even he however i if in indeed instead it many "
    "meanwhile moreover most nevertheless nonetheless nor separately similarly since so some the "
    "there these they this though thus under when while yet"
)


_STOP, _END = "\ud800", "\ud801"  # no text that comes over the wire holds a lone surrogate
_LETTER_STOP = r"([A-Za-z])\."
_INITIAL_STARTERS = (
    r"(Mr|Mrs|Ms|Dr|Prof|Capt|Cpt|Lt|He\s|She\s|It\s|They\s|Their\s|Our\s|We\s|But\s|However\s"
    r"|That\s|This\s|Wherever)"
)
_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"(Mr|St|Mrs|Ms|Dr)\.", rf"\1{_STOP}"),
    (r"\.(com|net|org|io|gov|edu|me)", rf"{_STOP}\1"),
    (r"([0-9])\.([0-9])", rf"\1{_STOP}\2"),
    (r"\.{2,}", lambda dots: _STOP * len(dots.group()) + _END),
    (r"Ph\.D\.", f"Ph{_STOP}D{_STOP}"),
    (rf"\s{_LETTER_STOP} ", rf" \1{_STOP} "),
    (rf"([A-Z]\.[A-Z]\.(?:[A-Z]\.)?) {_INITIAL_STARTERS}", rf"\1{_END} \2"),
    (_LETTER_STOP * 3, rf"\1{_STOP}\2{_STOP}\3{_STOP}"),
    (_LETTER_STOP * 2, rf"\1{_STOP}\2{_STOP}"),
    (rf" (Inc|Ltd|Jr|Sr|Co)\. {_INITIAL_STARTERS}", rf" \1{_END} \2"),
    (r" (Inc|Ltd|Jr|Sr|Co)\.", rf" \1{_STOP}"),
    (rf" {_LETTER_STOP}", rf" \1{_STOP}"),
    (r"\.”", "”."),
    (r'\."', '".'),
    (r'!"', '"!'),
    (r'\?"', '"?'),
    (r"([.?!])", rf"\1{_END}"),
)
"""Stops that end no sentence become `_STOP`; what ends one is followed by `_END`."""
_COMPILED = tuple((re.compile(pattern), replacement) for pattern, replacement in _RULES)


def tokens(text: str) -> Iterator[str]:
    """The Treebank tokens of a text, sentence by sentence."""
    return (token for part in sentences(text) for token in sentence_tokens(part))


def plain_sentences(text: str) -> list[str]:
    """The sentences of a text by a list of titles, initials, numbers and the like.

    As IF-RLVR's training code does it, which knows no sentence from its neighbour where one ends
    in a line break alone. A sentence between two marks ("?!") may be blank.
    """
    text = " " + text.replace("\n", " ") + "  "
    for pattern, replacement in _COMPILED:
        text = pattern.sub(replacement, text)
    parts = [part.strip() for part in text.replace(_STOP, ".").split(_END)]
    return parts if parts[-1] else parts[:-1]


def sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space around them; none in a blank text."""
    parts = _realigned(text, _parts(text))
    return [text[start:end] for start, end in parts if text[start:end].strip()]


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences start and end, before closing marks are given back to theirs."""
    start = len(text) - len(text.lstrip())
    for run in _RUN_WITH_STOP.finditer(text):
        word, after = run.group(), _RUN.search(text, run.end())
        for end in _candidates(word, after is not None):
            is_whole = end == len(word)
            following = after.group() if after and is_whole else word[end : end + 1]
            if _breaks(word[:end], following):
                yield start, run.start() + end
                start = after.start() if after and is_whole else run.start() + end
    yield start, len(text.rstrip())


def _candidates(run: str, is_followed: bool) -> list[int]:
    """Where in a run of characters without space a sentence might end.

    That is the last place only, and the first one too when the run begins with it.
    """
    ends = [match.end() for match in _INNER_END.finditer(run)]
    if is_followed and run[-1] in ".?!":
        ends.append(len(run))
    return ends[-1:] if len(ends) < 2 or ends[0] != 1 else [1, ends[-1]]


def _breaks(before: str, after: str) -> bool:
    """Whether a sentence ends somewhere in `before` or, as in Punkt, inside of `after`."""
    tokens = _TOKEN.findall(before)
    tokens += _TOKEN.findall(after)
    return any(_ends(token, tokens[i + 1]) for i, token in enumerate(tokens[:-1]))


def _ends(token: str, after: str) -> bool:
    """Whether a sentence ends with this token (Kiss and Strunk, sections 3 and 4)."""
    if token in (".", "?", "!"):
        return True
    if not token.endswith("."):
        return False
    word = token[:-1].lower()
    is_initial = len(word) == 1 and word.isalpha()
    is_upper = after[0].isupper()
    following = _type(after)
    if token.startswith("..") or _is_abbreviation(word):
        return is_upper and not is_initial and following in _STARTERS
    if (is_initial or _NUMBER.fullmatch(word)) and (after[0].islower() or after in ";:,.!?"):
        return False
    return not (is_initial and is_upper and following not in STOP_WORDS | _STARTERS)


def _is_abbreviation(word: str) -> bool:
    return word in _ABBREVIATIONS or word.rpartition("-")[2] in _ABBREVIATIONS


def _type(token: str) -> str:
    """A token without the stop that ends a sentence."""
    word = token.lower()
    if word.endswith(".") and not _is_abbreviation(word[:-1]):
        return word[:-1]
    return word


def _realigned(text: str, parts: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Gives closing quotes and brackets that follow the end of a sentence to that sentence."""
    held: tuple[int, int] | None = None
    for start, end in parts:
        begin = start
        if held is not None:
            closing = _CLOSING.match(text, start, end)
            if closing:
                held = (held[0], closing.end())
                begin = closing.end()
                while begin < end and text[begin].isspace():
                    begin += 1
            yield held
        held = (begin, end)
    if held is not None:
        yield held
