r"""Lists in which words say what each value is: `domain: \mathbb{R}, range: [0,1]`, `max at 2`.

Such a list is read part by part; the words belong to the answer, so that `max at 4, min at 2` is
not `max at 2, min at 4`. Linear in the length of the text.
"""

from __future__ import annotations

import re

from assay.math.notation import TEXT

MAX_CHARS = 400
MAX_PARTS = 6
_LABEL = re.compile(
    rf"(?P<and>^|[,;.]\s*|\s+and\s+|\s*{TEXT}\s?\{{\s?and\s?\}}\s*)(?:{TEXT}\s?\{{\s?)?"
    r"(?P<words>\\?[A-Za-z][a-z]+\.?(?:[ -][a-z]+\.?){0,3}?)"
    r"(?:\s?(?P<joint>:|=|\b(?:at|on|when|is|are)\b)|(?<=\.)\s?(?=\()|\s(?=\())"
    r"\s?\}?\s*(?=\S)",
    re.IGNORECASE,
)
_NOT_LABELS = re.compile(
    r"\b(?:and|or|not|no|if|then|yes|when|where|for|let|we|the|it|this|maybe|either)\b|\\(?!max|min)",
    re.IGNORECASE,
)


_EXTREME = re.compile(
    rf"(?:{TEXT}\s?\{{\s?)?[,;]?\s?(?:and\s)?(?:the\s)?\\?(?P<name>min|max)(?:imum)?(?:\svalue)?"
    r"(?![A-Za-z_^(])(?:\s?(?:is|:|=)(?![a-z]))?\s?\}?\s?[:=]?\s?",
    re.IGNORECASE,
)


def extremes(form: str) -> list[tuple[str, str]]:
    """`min` and `max` with their values where a form states both, in any words; else empty."""
    if len(form) > MAX_CHARS:
        return []
    found = list(_EXTREME.finditer(form))
    names = [match["name"].lower() for match in found]
    if sorted(names) != ["max", "min"] or found[0].start():
        return []
    values = (form[found[0].end() : found[1].start()], form[found[1].end() :])
    return [(name, value.strip(" ,;.")) for name, value in zip(names, values, strict=True)]


def parts(form: str) -> list[tuple[str, str]]:
    """Labels and the values behind them; empty when the form is not made of such parts."""
    if len(form) > MAX_CHARS:
        return []
    found = list(_LABEL.finditer(form))
    if not 1 <= len(found) <= MAX_PARTS or found[0].start():
        return []
    ends = [*(match.start() for match in found[1:]), len(form)]
    listed: list[tuple[str, str]] = []
    for match, end in zip(found, ends, strict=True):
        value = form[match.end() : end].strip(" ,;.")
        if not value or _NOT_LABELS.search(match["words"]):
            return []
        joint = (match["joint"] or "").strip(":=").lower()
        words = match["words"].lower().strip("\\").replace(".", "")
        listed.append((f"{words} {joint}".strip(), value))
    return listed
