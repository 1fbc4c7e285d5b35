r"""Numbers in a stated base: `204_5`, `(1F)_{16}`, `101_{\text{two}}`, `0x1F`, `101 base 2`."""

from __future__ import annotations

import re

from assay.math.building import based
from assay.math.lexer import Unreadable
from assay.math.nodes import Node
from assay.math.text import bare

MAX_CHARS = 500
_UPRIGHT = r"\\(?:text|mathrm|mathtt|texttt|textrm)\s?\{\s?"
_LITERAL = re.compile(r"0([xXbBoO])([0-9A-Fa-f]{1,200}(?:\\?_[0-9A-Fa-f]{1,60}){0,40})")
_BASED = re.compile(
    rf"(?:{_UPRIGHT})?\(?([0-9A-Za-z]{{1,200}}(?: [0-9A-Za-z]{{3,200}}){{0,40}}"
    rf"(?:\.[0-9A-Z]{{1,200}})?)\)?\s?\}}?\s?_\s?"
    rf"\{{?\s?(?:{_UPRIGHT})?\(?\s?(?:base\s?\}}?\s?)?(\d{{1,2}}|[a-z]{{3,8}})\s?\)?\s?\}}{{0,2}}"
)
_IN_BASE = re.compile(
    r"\(?([0-9A-Z]{1,200}(?:\.[0-9A-Z]{1,200})?)\)?,?\s?"
    r"\(?\s?(?:(?:in )?base[\s-]?(\d{1,2}|[a-z]{3,7})"
    r"|(?:in )?(binary|octal|hexadecimal|hex))\s?\)?"
)
_BASES = {"x": "16", "b": "2", "o": "8"}


def number(form: str) -> Node | None:
    """The number that a whole answer writes in a base; None when it writes none."""
    if len(form) > MAX_CHARS:
        return None
    literal = _LITERAL.fullmatch(form) if form.startswith("0") else None
    if literal is not None:
        digits = literal[2].replace("\\", "").replace("_", "").upper()
        return _in_base(digits, _BASES[literal[1].lower()], prefixed=True)
    match = _BASED.fullmatch(form) if "_" in form else None
    if match is not None:
        return _in_base(_digits(match[1], match[2]), match[2])
    if "base" in form or "bin" in form or "oct" in form or "hex" in form:
        match = _IN_BASE.fullmatch(bare(form))
        if match is not None:
            return _in_base(match[1], match[2] or match[3])
    return None


def _digits(digits: str, base: str) -> str:
    """Digits without spaces; small letters only where they cannot be a variable's."""
    digits = digits.replace(" ", "")
    sixteen = base in ("16", "sixteen", "hex")
    if sixteen and len(digits) > 1 and digits == digits.lower():
        return digits.upper()
    return digits


def _in_base(digits: str, base: str, *, prefixed: bool = False) -> Node | None:
    try:
        return based(digits, base, prefixed=prefixed)
    except Unreadable:
        return None
