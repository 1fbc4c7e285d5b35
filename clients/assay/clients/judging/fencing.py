"""The code in the lines that fence other people's text in a prompt. Pure.

    [RESPONSE 5be01f9c begins]
    ...
    [RESPONSE 5be01f9c ends]

It is the first of a sequence of hashes that the text does not contain, in any letter form, or with
spaces, dashes or invisible characters between its digits. So no text contains its own closing line,
and equal texts get equal fences.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

_CODE_DIGITS = 8
_REMEMBERED_CHARS = 65_536
_NOT_HEX = re.compile(r"[^0-9a-f]+")


def code_of(text: str) -> str:
    """Eight hexadecimal digits that the text does not contain in any form."""
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
    """The text's hexadecimal digits, in whatever letter form, joined."""
    if text.isascii():
        return _NOT_HEX.sub("", text.lower())
    return _NOT_HEX.sub("", unicodedata.normalize("NFKC", text).casefold())
