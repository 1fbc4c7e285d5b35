r"""Whether an answer is a computation that is left to do. On texts; no algebra.

To a computer algebra system `4 * 7` is as good an answer to "what is 4 * 7?" as `28`, so a policy
that is paid for equality learns to repeat the question: one trained here on such a reward did
(docs/understand/results/quickstart.md).

Linear in the length of the texts.
"""

from __future__ import annotations

import re
from functools import lru_cache

from assay.math.text import normal

_INTEGER = re.compile(r"[-+]?\d[\d,]*")
_FRACTION = r"[-+]?\(?\d+\)?/\(?\d+\)?|[-+]?\\[cdt]?frac(?:\{\d+\}\{\d+\}|\d\d)"
_DIVISION = re.compile(_FRACTION)
_NUMBER = re.compile(rf"[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)%?|{_FRACTION}")
_TIMES = r"\\times|\\cdot|[*\u00d7\u00b7]"
_POWER_OF_TEN = re.compile(rf"[-+]?(?:\d+(?:\.\d+)?(?:{_TIMES}))?10(?:\^|\*\*)(?:\{{?[-+]?\d+\}}?)")
_INVERSE_POWER = re.compile(r"[-+]?\d+(?:\^|\*\*)(?:\{-\d+\}|-\d+|\(-\d+\))")
_DEGREES = re.compile(r"\^\{?\\circ\}?|\u00b0")
_OPERATION = re.compile(
    rf"(?<=[\d.)}}\]!])(?:{_TIMES}|[-+^\u00f7]|\\div)(?=[-+({{\d.\\])|(?<=[\d)])\((?=[-+\d])"
)
_WORK = re.compile(r"frac|begin|[-+*/^(\u00b7\u00d7\u00f7\u2212]|\\(?:times|cdot|div)")
_WHOLE_ARITHMETIC = re.compile(rf"(?:[\d,()+\-/\u00f7{{}}]|{_TIMES}|\\div|\\[cdt]?frac)+")
_MATRIX = re.compile(r"\\begin\s?\{(?:[pbvBV]?(?:small)?matrix|array)\}")
_ALONG = re.compile(
    r"(?:(?<![A-Za-z\\])[a-z]|\\(?:lambda|mu|tau))\s?\\begin\s?\{(?:[pb]?(?:small)?matrix|array)\}"
)
_DETERMINANT = re.compile(r"\\det(?![A-Za-z])|\\begin\s?\{vmatrix\}|\|\s?\\begin")
_MATRIX_POWER = re.compile(r"(?:matrix|array)\}\s?(?:\\right\s?[)\]]\s?)?\^\s?\{?\s?-?\d")
_SPACING = re.compile(r"\\[!,;: ]|\{,\}|\$")


def leaves_work_undone(answer: str, reference: str) -> bool:
    r"""Whether the reference is a number and the answer a computation that gives it, not a number.

    What counts as undone, where the reference is a number: a sum, difference, product, quotient
    sign or power between numbers; and where the reference is whole, a fraction. Not undone:
    `3 \times 10^5`, `10^5`, `2^{-3}` for a fraction, `90^\circ`, a root, and a fraction that is not
    reduced. Matrices are undone work where they are added, multiplied, inverted, or a determinant.

    Args:
        answer: the answer's text as extracted; of an equation, what follows the last `=` counts.
        reference: the reference's text, without delimiters.
    """
    answer = answer if answer == reference else _in_signs(answer)
    if answer == reference or _WORK.search(answer) is None:
        return False
    stated = answer.rpartition("=")[2]
    if _MATRIX.search(stated) is not None:
        return _leaves_matrices(stated, reference)
    return _leaves_numbers(stated, reference)


def _leaves_numbers(stated: str, reference: str) -> bool:
    """The same for what is said behind the last `=`, of a reference that is a number."""
    number, whole = _kind(reference)
    if not number:
        return False
    stated = _DEGREES.sub("", _compact(stated))
    if _POWER_OF_TEN.fullmatch(stated):
        return False
    if not whole and _INVERSE_POWER.fullmatch(stated):
        return False
    if whole and _DIVISION.fullmatch(stated):
        return True
    return _OPERATION.search(stated) is not None


def _leaves_matrices(answer: str, reference: str) -> bool:
    """Whether an answer has a determinant, or more matrices or a power where the reference has not.

    A factor before a matrix is a form of it, and so is a transpose; a column behind a letter is the
    direction of a line or plane, which is not added up.
    """
    counts = [
        len(_MATRIX.findall(text)) - len(_ALONG.findall(text)) for text in (answer, reference)
    ]
    if counts[0] > max(counts[1], 1):
        return True
    return any(
        mark.search(answer) is not None and mark.search(reference) is None
        for mark in (_DETERMINANT, _MATRIX_POWER)
    )


def is_whole_arithmetic(answer: str) -> bool:
    """Whether an answer is nothing but whole numbers under + - * and /, brackets included.

    Args:
        answer: as for `leaves_work_undone`.
    """
    return _WHOLE_ARITHMETIC.fullmatch(_compact(answer.rpartition("=")[2])) is not None


@lru_cache(maxsize=4_096)
def _kind(reference: str) -> tuple[bool, bool]:
    """Whether a reference is a number, and whether a whole one; a group's samples ask again."""
    known = _compact(reference)
    return _NUMBER.fullmatch(known) is not None, _INTEGER.fullmatch(known) is not None


def _in_signs(text: str) -> str:
    """The text in the signs of LaTeX and ASCII, whatever script or page it was written for."""
    return normal(text) if not text.isascii() or "&" in text or "<" in text else text


def _compact(text: str) -> str:
    """The text without white space and dollars, with ASCII minus signs."""
    return "".join(_SPACING.sub("", _in_signs(text)).replace("\u2212", "-").split())
