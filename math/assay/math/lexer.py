r"""Tokens of an answer: LaTeX, ASCII and words, in one pass.

A token is a pair of a kind and a value:

| kind | value |
|---|---|
| `number` | digits, with a point, an exponent, or \x01 before a repeating part |
| `name` | a variable |
| `constant` | pi, e, i, infinity, degree, percent |
| `function` | a known function |
| `macro` | frac, sqrt, binom, overline, begin..., end... |
| `text` | words |
| `sign` | an operator, relation, bracket or separator |
"""

from __future__ import annotations

import re
from typing import NamedTuple

from assay.math import vocabulary

MAX_TOKENS = 1200
MAX_DIGITS = 2000


class Token(NamedTuple):
    """A kind and a value."""

    kind: str
    value: str


class Unreadable(Exception):
    """The text is not an answer that can be read; the argument says why."""


class OverLimit(Unreadable):
    """The text passes a limit; the argument says which."""


_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d+(?:\.\d+|\.(?=\x01|[\s*/+\-,)^]|$))?|\.\d+|\.(?=\x01))(?:\x01\d+)?"
    r"(?:[eE][-+]?\d{1,6}(?![\dA-Za-z.]))?)"
    r"|(?P<macro>\\[A-Za-z]+|\\.)"
    r"|(?P<word>[A-Za-z]+)"
    r"|(?P<sign>=/=|=\\=|<=|>=|=<|=>|!=|<>|==|\*\*|\.\.\.+|->|[-+*/^_(){}\[\],;:|!'%=<>&?])"
    r"|(?P<other>[^\x00-\x7f]+|.)",
    re.DOTALL,
)
_THOUSANDS = re.compile(
    r"(?!0)\d{1,3}(?:,\d{3})+(?!\d|,\d)(?:\.\d+)?|\d{1,3}(?: \d{3})+(?![\d /]|\.\d)"
)
_SUPPORTED_BRACE = re.compile(r"\s*\{([^{}]*)\}")
_SPELLED = re.compile(r"[A-Za-z\u00c0-\uffff]")
_UNITS_LIKE_FUNCTIONS = frozenset({"min", "sec", "in", "deg"})
_UNIT_LETTERS = frozenset("mgshLlWNJVAKCFT")  # behind a number, in upright type
_SIGN_NAMES = {
    "**": "^", "==": "=", "=<": "<=", "=>": "to", "!=": "!=", "<>": "!=", "=/=": "!=",
    "=\\=": "!=", "->": "to",
}  # fmt: skip


def tokenise(form: str, *, thousands: bool = True, scientific: bool = True) -> list[Token]:
    """The tokens of a normal form.

    Args:
        form: a text as `text.normal` gives it.
        thousands: whether commas and spaces between groups of three digits outside brackets belong
            to a number.
        scientific: whether `3e-1` is a number, not 3e - 1.

    Raises:
        OverLimit: more than `MAX_TOKENS` tokens, or a number longer than `MAX_DIGITS`.
    """
    tokens: list[Token] = []
    depth = 0
    position, end = 0, len(form)
    match_token = _TOKEN.match
    while position < end:
        grouped = _grouped(form, position) if thousands and depth <= 0 else ""
        if grouped:
            tokens.append(Token("number", grouped.replace(",", "").replace(" ", "")))
            position += len(grouped)
            continue
        match = match_token(form, position)
        if match is None:
            raise Unreadable("unknown character")
        kind, value = match.lastgroup, match[0]
        position = match.end()
        if kind == "macro":
            depth += (value == "\\{") - (value == "\\}")
            position = _macro(value, form, position, tokens)
        elif kind == "number":
            position = _number(value, position, tokens, scientific=scientific)
        elif kind == "sign":
            depth += (value in "([") - (value in ")]")
            if value.startswith("...") and _is_ellipsis(form, position, tokens):
                tokens.append(Token("name", "..."))
                continue
            tokens.append(Token("sign", _SIGN_NAMES.get(value, value)))
        elif kind != "space":
            tokens.extend(_letters(value, form, position, tokens))
        if len(tokens) > MAX_TOKENS:
            raise OverLimit(f"more than {MAX_TOKENS} tokens")
    return tokens


def _is_ellipsis(form: str, position: int, tokens: list[Token]) -> bool:
    """Whether three dots stand between signs of a sum or of a list."""
    before = tokens[-1].value if tokens else ","
    return before in (",", "+", "-", "*") and form[position : position + 2].lstrip()[:1] in ",+-*"


def _letters(value: str, form: str, position: int, tokens: list[Token]) -> list[Token]:
    """The tokens of letters; those of other scripts are words."""
    if not value.isascii() or not value.isalpha():
        return [Token("text", value)]
    if value in _UNITS_LIKE_FUNCTIONS and _is_unit(form, position, tokens):
        return [Token("text", value)]
    if len(value) == 2 and value[1] == "e" and form[position : position + 1] == "^":
        return [*_word(value[0]), Token("constant", "e")]  # Be^x is no word
    return _word(value)


def _is_unit(form: str, position: int, tokens: list[Token]) -> bool:
    """Whether `min`, `sec` or `in` is a unit here: behind a number, before no argument."""
    if not _behind_number(tokens):
        return False
    following = form[position : position + 2].lstrip()[:1]
    return following == "" or following in ",;^/.*)}"


def _behind_number(tokens: list[Token]) -> bool:
    return bool(tokens) and (tokens[-1].kind == "number" or tokens[-1].value in ("}", ")"))


def _behind_value(tokens: list[Token]) -> bool:
    """Whether a number or pi precedes: a letter that is set upright is a unit there."""
    return _behind_number(tokens) or tokens[-1:] == [Token("constant", "pi")]


def _grouped(form: str, position: int) -> str:
    """A number in groups of three digits that starts here; empty when there is none."""
    if not form[position].isdigit():
        return ""
    if position and (form[position - 1].isdigit() or form[position - 1] in ".,"):
        return ""
    match = _THOUSANDS.match(form, position)
    if match is None:
        return ""
    if len(match[0]) > MAX_DIGITS:
        raise OverLimit(f"a number of more than {MAX_DIGITS} digits")
    return match[0]


def _number(value: str, position: int, tokens: list[Token], *, scientific: bool) -> int:
    if len(value) > MAX_DIGITS:
        raise OverLimit(f"a number of more than {MAX_DIGITS} digits")
    mantissa, mark, exponent = value.replace("E", "e").partition("e")
    if mark and not scientific:
        tokens.append(Token("number", mantissa))
        return position - len(exponent) - 1
    tokens.append(Token("number", value))
    return position


def _word(run: str) -> list[Token]:
    """The tokens of a run of letters: a known word, words, or a product of letters."""
    known = vocabulary.KNOWN.get(run)
    if known:
        return [Token(*known)]
    lowered = run.lower()
    if lowered in vocabulary.ENGLISH and (run.islower() or run.istitle() or len(run) > 4):
        return [Token("text", run)]
    if len(run) == 1:
        return [Token("name", run)]
    pieces = _pieces(run)
    if pieces is None:
        return [Token("text", run)]
    return pieces


def _pieces(run: str) -> list[Token] | None:
    """Functions, constants and letters that a run is made of; None when it is a word."""
    if len(run) > 24:
        return None
    pieces: list[Token] = []
    position = 0
    found = False
    while position < len(run):
        for size in (6, 5, 4, 3, 2):
            known = vocabulary.EMBEDDED.get(run[position : position + size])
            if known and len(run) - position >= size:
                pieces.append(Token(*known))
                position += size
                found = True
                break
        else:
            letter = run[position]
            pieces.append(Token(*vocabulary.KNOWN.get(letter, ("name", letter))))
            position += 1
    if found:
        return pieces if len(run) <= 8 else None
    product = len(run) <= 3 or run.isupper() or run in vocabulary.ALPHABET
    return pieces if product or (any(map(str.isupper, run[1:])) and len(run) <= 6) else None


def _operator(wrapper: str, content: str, behind: str) -> Token | None:
    r"""A function in upright letters, `\operatorname{sh}^2`, `\text{GCD}(4,6)`; None for words."""
    known = vocabulary.MACROS.get(content) or vocabulary.MACROS.get(content.lower())
    operator, applied = wrapper == "operatorname", behind.lstrip().startswith("(")
    if known is not None and known[0] == "function" and (operator or applied):
        return Token(*known)
    named = operator and applied and content.isalpha() and len(content) > 1
    return Token("function", f"operator_{content}") if named else None  # no name of `nodes`


def _macro(value: str, form: str, position: int, tokens: list[Token]) -> int:
    """Appends what a macro stands for; returns where reading goes on."""
    name = value[1:]
    known = vocabulary.MACROS.get(name)
    if known is not None:
        if known[0]:
            tokens.append(Token(*known))
        return position
    if name in vocabulary.WRAPPERS:
        return _wrapped(name, form, position, tokens)
    if name in ("begin", "end"):
        brace = _SUPPORTED_BRACE.match(form, position)
        if brace is None:
            raise Unreadable("an environment without a name")
        tokens.append(Token("macro", name + brace[1].strip("*")))
        return brace.end()
    raise Unreadable(f"unknown macro \\{name[:20]}")


def _wrapped(name: str, form: str, position: int, tokens: list[Token]) -> int:
    r"""Appends the content of `\text{...}` and its kin, as words or as what it holds."""
    brace = _SUPPORTED_BRACE.match(form, position)
    if brace is None or name in ("boxed", "fbox"):
        return position  # what follows is read as if bare, here as where braces are nested
    content = brace[1].strip()
    if name in ("mathbb", "mathcal", "mathscr", "mathfrak"):
        tokens.append(Token("name", f"{name}{content}"))
    elif content in _UNIT_LETTERS and name != "operatorname" and _behind_value(tokens):
        tokens.append(Token("text", content))
    elif len(content) == 1 or not _SPELLED.search(content):
        tokens.extend(tokenise(content, thousands=False))
    elif (
        content in vocabulary.KNOWN
        and vocabulary.KNOWN[content][0] != "text"
        and (name == "operatorname" or content not in _UNITS_LIKE_FUNCTIONS)
    ):
        tokens.append(Token(*vocabulary.KNOWN[content]))
    elif (function := _operator(name, content, form[brace.end() :])) is not None:
        tokens.append(function)
    elif content[0].isdigit() or content[0] in "-+\\(":
        tokens.extend(tokenise(content))
    else:
        tokens.append(Token("text", content))
    return brace.end()
