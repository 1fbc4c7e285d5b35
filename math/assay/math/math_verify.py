r"""math-verify's `parse` and `verify`, by this grader: change one import line.

    from assay.math.math_verify import parse, verify     # was: from math_verify import ...

    verify(parse("$\\frac{1}{2}$"), parse("The answer is 0.5"))

Written for math-verify 0.9.0. What differs, numbered:

1. `parse` gives readings (`assay.math.Reading`), no objects of sympy; `str` of one is its text, and
   the list is empty where nothing was found. It needs no time-out: reading is bounded.
2. `verify` holds its time-out, in any thread, because what may take long runs in a process that is
   killed; None means 5 seconds, not none at all.
3. A comparison that nobody could make (the time was over, a worker died) raises `FaultError`.
   math-verify returns False there, which trains on a made-up zero; `raise_on_error=False` does too.
4. The conventions are this grader's (docs/use/math.md), except for `float_rounding`: where an
   answer holds a decimal, numbers are compared rounded to so many, as there, and for braces around
   a list, which may also be a set. One place of the response is read, so a list
   never holds several guesses. `numeric_precision` and `allow_set_relation_comp` change nothing:
   values are compared to 60 digits, and an interval equals its inequality. `strict=False` is
   refused.
5. Of the extraction configs, math-verify's own or those of this module, these count: whether LaTeX,
   plain expressions or both are asked for, `boxed_match_priority` below 0 (no boxes),
   `try_extract_without_anchor`, and all of StringExtractionConfig, whose answers are texts, as
   there. The rest is taken and changes nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.math import extraction
from assay.math.compare import compare
from assay.math.grading import TIMEOUT_S, asking
from assay.math.nodes import Number, walk
from assay.math.outcomes import AskFailedError, FaultError
from assay.math.policy import Policy
from assay.math.reading import DEFAULT, Reading, read

_LETTERS = ("A", "B", "C", "D")
_UNREAD = ("text", "nothing")
_BARE_CHARS = 200
_PLAIN_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_BRACES = re.compile(r"(?<![\\\w}^_])\{([^{}\\]*,[^{}\\]*)\}")


@dataclass(frozen=True)
class LatexExtractionConfig:
    """Formulas of LaTeX, in boxes or between delimiters."""

    try_extract_without_anchor: bool = True
    boxed_match_priority: int = 50
    normalization_config: Any = None


@dataclass(frozen=True)
class ExprExtractionConfig:
    """Numbers and expressions in plain text."""

    try_extract_without_anchor: bool = True


@dataclass(frozen=True)
class StringExtractionConfig:
    """One of some words, such as the letters of a choice."""

    strings: tuple[str, ...] = _LETTERS
    try_extract_without_anchor: bool = True
    lowercase: bool = True


BOTH = (LatexExtractionConfig(), ExprExtractionConfig())


def parse(  # noqa: PLR0917 - the peer's signature
    pred: str,
    extraction_config: Sequence[Any] = BOTH,
    fallback_mode: str = "first_match",
    extraction_mode: str = "any_match",
    parsing_timeout: float | None = None,
    raise_on_error: bool = False,
) -> list[Reading] | list[str]:
    """The final answer of a text, read; empty where there is none.

    Args:
        pred: a response, or a reference.
        extraction_config: what to look for.
        fallback_mode: `no_fallback` leaves out what cannot be read as mathematics.
        extraction_mode: changes nothing: one place is read.
        parsing_timeout: changes nothing: reading is bounded.
        raise_on_error: changes nothing: reading raises nothing.

    Returns:
        The answer, and what it says at its end where it is a sentence; with braces around a list
        also as a set; for a StringExtractionConfig the word, in lower case and as it stands.
    """
    del extraction_mode, parsing_timeout, raise_on_error
    kinds = {type(config).__name__: config for config in extraction_config}
    strings = kinds.pop("StringExtractionConfig", None)
    latex, plain = kinds.get("LatexExtractionConfig"), kinds.get("ExprExtractionConfig")
    texts = _answers(pred, latex, plain)
    sets = (_BRACES.sub(r"\\{\1\\}", text) for text in texts)
    readings = [read(text) for text in dict.fromkeys((*texts, *sets))]
    if not readings and strings is not None:
        return _word(pred, strings)
    if fallback_mode == "no_fallback":
        return [one for one in readings if one.kind not in _UNREAD]
    return [one for one in readings if one.kind != "nothing"]


def verify(  # noqa: PLR0917 - the peer's signature
    gold: Any,
    target: Any,
    float_rounding: int = 6,
    numeric_precision: int = 15,
    strict: bool = True,
    allow_set_relation_comp: bool = False,
    timeout_seconds: float | None = TIMEOUT_S,
    raise_on_error: bool = True,
) -> bool:
    """Whether one of the answers in `target` is one of those in `gold`.

    Args:
        gold: what is right: a reading, a text, a number, an object of sympy, or a list of these.
        target: what is judged, likewise.
        float_rounding: numbers are compared rounded to so many decimals, at most 15.
        numeric_precision: changes nothing.
        strict: True.
        allow_set_relation_comp: changes nothing.
        timeout_seconds: until there must be an answer; None for 5.
        raise_on_error: whether a fault is raised; otherwise it is a plain False.

    Raises:
        FaultError: nobody could compare them.
        ValueError: `strict` is False.
    """
    del numeric_precision, allow_set_relation_comp
    if not strict:
        raise ValueError("strict=False is not offered: variables are never matched by position")
    rounded = Policy(decimals=float_rounding)
    ask = asking(timeout_seconds or TIMEOUT_S)
    try:
        for right in _readings(gold):
            for answer in _readings(target):
                policy = rounded if _decimal(right) or _decimal(answer) else DEFAULT
                compared = compare(right, answer, policy)
                if compared.equal is None:
                    compared = ask(right, answer, DEFAULT)
                if compared.equal:
                    return True
    except AskFailedError as failure:
        if raise_on_error:
            raise FaultError(failure.fault) from None
    return False


def _decimal(reading: Reading) -> bool:
    """Whether an answer holds a number with a point, which may stand for one that it rounds."""
    parts = () if reading.node is None else walk(reading.node)
    return any(isinstance(part, Number) and part.decimals > 0 for part in parts)


def _readings(values: Any) -> Iterable[Reading]:
    for value in values if isinstance(values, list | tuple) else [values]:
        if isinstance(value, Reading):
            yield value
        else:
            yield read(_latex(value))


def _latex(value: object) -> str:
    """A value as text; only a program that has sympy's objects has loaded sympy."""
    sympy = sys.modules.get("sympy")
    if sympy is not None and isinstance(value, sympy.Basic | sympy.MatrixBase):
        return str(sympy.latex(value))
    return str(value)


def _answers(text: str, latex: Any, plain: Any) -> list[str]:
    """What the text gives as its answer: one, or a sentence and what it says at its end."""
    asked = [config for config in (latex, plain) if config is not None]
    boxes = latex is not None and latex.boxed_match_priority >= 0
    found = extraction.look(text, "strict" if boxes else "answer-line") if asked else None
    if isinstance(found, extraction.FoundAnswer):
        return _sentence(found)
    if not any(config.try_extract_without_anchor for config in asked):
        return []
    if plain is not None and _is_answer(text):
        return [text]
    both = ("auto", "math-span") if boxes else ("math-span", "last-number")
    modes = both if latex and plain else ("math-span",) if latex else ("last-number",)
    spans = (extraction.look(text, mode) for mode in modes)
    return next(([span.text] for span in spans if isinstance(span, extraction.FoundAnswer)), [])


def _is_answer(text: str) -> bool:
    """Whether a text is an answer as it stands, and no sentence that holds one."""
    if len(text) > _BARE_CHARS or len(_PLAIN_WORD.findall(text)) > 1:
        return False
    return read(text).kind not in _UNREAD


def _sentence(found: extraction.FoundAnswer) -> list[str]:
    """An answer, and the formula or number in it when it is a sentence."""
    inner = None if read(found.text).kind != "text" else extraction.narrowed(found.text)
    return [found.text] if inner is None else [found.text, inner]


def _word(text: str, config: Any) -> list[str]:
    """The first of the words that the answer's sentence holds, or else that the text does."""
    line = extraction.look(text, "answer-line")
    words = "|".join(map(re.escape, config.strings))
    for place in (line.text if isinstance(line, extraction.FoundAnswer) else "", text):
        found = re.search(rf"(?<!\w)(?:{words})(?!\w)", place)
        if found is not None:
            return [found[0].lower() if config.lowercase else found[0], found[0]]
    return []
