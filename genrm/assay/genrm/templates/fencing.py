"""Puts other people's text into a prompt so that it cannot speak for us.

A fenced text stands between two lines of ours that carry a code derived from the text:

    [RESPONSE 5be01f9c begins]
    ...
    [RESPONSE 5be01f9c ends]

The code is the first one of a sequence of hashes that is not in the text, not even with other
letter forms, or with spaces, dashes or invisible characters between its digits. So no text holds
its own closing line, and equal texts get equal fences: prompts stay reproducible, and beginnings
stay shared.

Covered: closing the fence from within; lines that look like one of ours but lack the code. That
special tokens of the model are not read out of fenced text is the engine's part (`Piece.trusted`).
Not covered: text that persuades the model. How often it does is measured by bench/judge_injection.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from assay.genrm.engines.base import Piece

_CODE_DIGITS = 8
_REMEMBERED_CHARS = 65_536
_NOT_HEX = re.compile(r"[^0-9a-f]+")


def fence(label: str, text: str, *, cuttable: bool = False) -> tuple[Piece, ...]:
    """A text between an opening and a closing line.

    Args:
        label: what it is, in our words; one line.
        text: what stands between; may be empty.
        cuttable: its middle may be left out where it does not fit.
    """
    return _between(label, code_of(text), (Piece(text, trusted=False, cuttable=cuttable),))


def fence_steps(label: str, steps: Sequence[str], *, cuttable: bool = False) -> tuple[Piece, ...]:
    """A text that is cut into steps, each under a line of ours that numbers it from 1."""
    code = code_of("\n".join(steps))
    inner: list[Piece] = []
    for number, step in enumerate(steps, start=1):
        heading = f"[Step {number} {code}]\n"
        inner.append(Piece(heading if number == 1 else "\n" + heading))
        inner.append(Piece(step.strip("\r\n"), trusted=False, cuttable=cuttable))
    return _between(label, code, inner)


def join(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The same text in fewer pieces: our words that touch are one piece; empty ones are gone."""
    joined: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if joined and piece.trusted and joined[-1].trusted:
            joined[-1] = Piece(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return tuple(joined)


def code_of(text: str) -> str:
    """Eight hexadecimal digits that the text does not hold, however it is dressed up."""
    return _remembered(text) if len(text) <= _REMEMBERED_CHARS else _code(text)


def _code(text: str) -> str:
    bare = _hex_digits(text)
    content = text.encode("utf-8", "surrogatepass")
    for attempt in range(len(bare) + 1):
        digest = hashlib.sha256(b"%d\0%b" % (attempt, content)).hexdigest()
        if (code := digest[:_CODE_DIGITS]) not in bare:
            return code
    raise AssertionError("a text of n digits holds fewer than n + 1 codes")


# Round-robin puts each response of a group into many prompts.
_remembered = lru_cache(maxsize=128)(_code)


def _hex_digits(text: str) -> str:
    """The text's hexadecimal digits, in whatever letter form, run together."""
    if text.isascii():
        return _NOT_HEX.sub("", text.lower())
    return _NOT_HEX.sub("", unicodedata.normalize("NFKC", text).casefold())


def _between(label: str, code: str, inner: Sequence[Piece]) -> tuple[Piece, ...]:
    return (Piece(f"[{label} {code} begins]\n"), *inner, Piece(f"\n[{label} {code} ends]"))
