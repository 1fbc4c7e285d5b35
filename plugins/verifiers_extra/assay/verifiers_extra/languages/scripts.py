"""Which script a word is in, and which languages a script tells apart.

Words here are runs of letters; in scripts that are written without spaces every character is a word
of its own. Code, formulas in dollars, LaTeX commands, tags, addresses and single Latin letters
(variables) are no words of any language and are left out. Linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_RANGES: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "latin"),
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "cyrillic"),
    (0x0530, 0x058F, "armenian"),
    (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x077F, "arabic"),
    (0x0900, 0x097F, "devanagari"),
    (0x0980, 0x09FF, "bengali"),
    (0x0A00, 0x0A7F, "gurmukhi"),
    (0x0A80, 0x0AFF, "gujarati"),
    (0x0B80, 0x0BFF, "tamil"),
    (0x0C00, 0x0C7F, "telugu"),
    (0x0C80, 0x0CFF, "kannada"),
    (0x0D00, 0x0D7F, "malayalam"),
    (0x0E00, 0x0E7F, "thai"),
    (0x10A0, 0x10FF, "georgian"),
    (0x1100, 0x11FF, "hangul"),
    (0x1E00, 0x1EFF, "latin"),
    (0x1F00, 0x1FFF, "greek"),
    (0x3040, 0x30FF, "kana"),
    (0x3130, 0x318F, "hangul"),
    (0x31F0, 0x31FF, "kana"),
    (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"),
    (0xAC00, 0xD7AF, "hangul"),
    (0xF900, 0xFAFF, "han"),
    (0xFB50, 0xFDFF, "arabic"),
    (0xFE70, 0xFEFF, "arabic"),
    (0x20000, 0x3134F, "han"),
)
_STARTS = [start for start, _, _ in _RANGES]

OWN_SCRIPTS: dict[str, frozenset[str]] = {
    "bn": frozenset({"bengali"}),
    "el": frozenset({"greek"}),
    "gu": frozenset({"gujarati"}),
    "he": frozenset({"hebrew"}),
    "hy": frozenset({"armenian"}),
    "ja": frozenset({"han", "kana"}),
    "ka": frozenset({"georgian"}),
    "kn": frozenset({"kannada"}),
    "ko": frozenset({"hangul"}),
    "ml": frozenset({"malayalam"}),
    "pa": frozenset({"gurmukhi"}),
    "ta": frozenset({"tamil"}),
    "te": frozenset({"telugu"}),
    "th": frozenset({"thai"}),
    "zh": frozenset({"han"}),
}
"""Languages that their script gives away."""

_SHARED = {
    "arabic": "ar fa ur",
    "cyrillic": "bg mk ru uk",
    "devanagari": "hi mr ne",
    "latin": "af ca cs cy da de en es et fi fr hr hu id it lt lv nl no pl pt ro sk sl so sq sv sw "
    "tl tr vi",
}
SHARED_SCRIPTS: dict[str, str] = {
    language: script for script, languages in _SHARED.items() for language in languages.split()
}
"""Languages that share their script with others, and which script that is."""

LANGUAGES = tuple(sorted((*OWN_SCRIPTS, *SHARED_SCRIPTS)))

_UNSPACED = (
    "\u0e00-\u0e7f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
_WORD = re.compile(rf"[{_UNSPACED}]|(?:[^\W\d_{_UNSPACED}][\u0300-\u036f\u0900-\u0dff]*)+")
_NO_PROSE = re.compile(
    r"`[^`\n]*`|\$[^$\n]*\$|\\[A-Za-z]+|</?[A-Za-z][\w-]*>|\bhttps?://\S*|\bwww\.\S*"
)


def prose(text: str) -> str:
    """The text without code, formulas, tags and addresses; lines stay lines."""
    outside = "\n".join(text.split("```")[::2])
    return _NO_PROSE.sub(" ", outside)


def scripts(line: str) -> list[str]:
    """The script of each word of a line; "other" for scripts that are not known here."""
    found = []
    for match in _WORD.finditer(line):
        script = script_of(match.group()[0])
        if script != "latin" or match.end() - match.start() > 1:
            found.append(script)
    return found


def script_of(character: str) -> str:
    """The script of a letter."""
    code = ord(character)
    at = bisect_right(_STARTS, code) - 1
    if at >= 0 and code <= _RANGES[at][1]:
        return _RANGES[at][2]
    return "other"
