"""math-verify, in the configuration that was most accurate on labelled pairs, without its alarms.

Import this module in a worker process only: it loads sympy (half a second, 60 MB) and its calls may
take unbounded time and memory, so whoever calls must be able to kill.

Differences from math-verify's defaults:
 1. No alarms. They count whole seconds of wall time and turn "too slow" into False, which is label
    noise; here the worker's parent kills, and the item is a fault.
 2. Errors inside a comparison are raised instead of counting as unequal.
 3. A box goes before any other place where an answer may stand (`boxed_match_priority=0`).
 4. Parsed references are kept for 1,024 references (math-verify keeps 20), because the samples of a
    group share one.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

_TARGETS = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())
_REFERENCES_KEPT = 1024

# It warns once for each process that its alarms are off.
logging.getLogger("math_verify").setLevel(logging.ERROR)


def parse_text(text: str) -> tuple[Any, ...]:
    """What math-verify finds: sympy expressions and, last, the answer's text; or nothing."""
    return tuple(parse(text, _TARGETS, parsing_timeout=None, raise_on_error=True))


@lru_cache(maxsize=_REFERENCES_KEPT)
def parse_reference(delimited: str) -> tuple[Any, ...]:
    """The same for a delimited reference, remembered."""
    return parse_text(delimited)


def equal(reference: tuple[Any, ...], answer: tuple[Any, ...]) -> bool:
    """Whether some reading of the answer equals some reading of the reference.

    Raises:
        Exception: the comparison failed inside math-verify or sympy, and the texts are not the
            same.
    """
    known_texts = {part.strip() for part in reference if isinstance(part, str)}
    if any(isinstance(part, str) and part.strip() in known_texts - {""} for part in answer):
        return True
    return bool(verify(list(reference), list(answer), timeout_seconds=None, raise_on_error=True))
