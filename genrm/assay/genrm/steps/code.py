"""What of a program is code, and what is comment, blank, or a string that does nothing.

A lexical scan, which survives programs that do not parse. Python's docstrings, and other strings
that are statements, count as comments. What is opened and never closed is code: a broken program
gains nothing by a comment without an end. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from assay.genrm.steps.languages import LANGUAGES, PYTHON, UNKNOWN, CodeLanguage, Quoted

_LINE_END = re.compile(r"[\r\n]|\Z")
_PYTHON_TOKEN = re.compile(
    r"#[^\r\n]*|(?P<prefix>(?:(?<!\w)[rRbBuUfFtT]{1,2})?)(?P<quote>'''|\"\"\"|'|\")"
    r"|[\[({]|[\])}]|\\\r?\n|[;\r\n]"
)
_PYTHON_STRINGS = {
    quote: re.compile(
        rf"(?:[^\\{quote[0]}{'' if len(quote) > 1 else chr(13) + chr(10)}]++"
        rf"|\\(?:\r\n|[\s\S]){f'|{quote[0]}(?!{quote[:2]})' if len(quote) > 1 else ''})*{quote}"
    )
    for quote in ("'''", '"""', "'", '"')
}
_HEADER = re.compile(
    r"\s*(?:async\s|def\s|class\s|if\b|elif\b|else\b|for\b|while\b|try\b|except\b|finally\b|with\b)"
    r"(?:(?!\blambda\b).)*:\s*",
    re.DOTALL,
)
_HEADER_CHARS = 500
_STATEMENT_ENDS = re.compile(r"[ \t\f]*(?:[;#\r\n]|\Z)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]{0,40})[^\r\n`]*\r?$", re.MULTILINE)


# The code points `start <= i < end`, and whether they are idle: a comment, or else a string.
_Part = tuple[int, int, bool]


def mask_idle(text: str, language: str) -> str:
    """The text with a space for every character that is not code, equally long.

    Of a response with fenced blocks, all outside of them is idle. `language` is that of a text
    without blocks, and of blocks that name none; an unknown one has no comments.
    """
    blocks = list(blocks_of(text, language))
    if not blocks:
        return _mask(text, language)
    masked: list[str] = []
    done = 0
    for start, end, named in blocks:
        masked += [" " * (start - done), _mask(text[start:end], named)]
        done = end
    return "".join([*masked, " " * (len(text) - done)])


def _mask(program: str, language: str) -> str:
    name = language.lower()
    if name in PYTHON:
        parts = _scan_python(program)
    else:
        parts = _scan(program, LANGUAGES.get(name, UNKNOWN))
    masked: list[str] = []
    done = 0
    for start, end, idle in parts:
        masked += [program[done:start], (" " if idle else "x") * (end - start)]
        done = end
    return "".join([*masked, program[done:]])


def last_block(text: str, language: str) -> tuple[int, int] | None:
    """Code points of the inside of the last fenced block of a language; None without any block.

    Blocks that name no language count as this one; where no block does, the last of all.
    """
    blocks = list(blocks_of(text, language))
    same = PYTHON if language.lower() in PYTHON else {language.lower()}
    fitting = [block for block in blocks if block[2].lower() in same] or blocks
    return fitting[-1][:2] if fitting else None


def blocks_of(text: str, language: str) -> Iterator[tuple[int, int, str]]:
    """The fenced blocks: start and end of their inside, and their language.

    A fence within a string or comment of an unfenced program opens no block.
    """
    fences = list(_FENCE.finditer(text))
    if not fences or _mask(text, language)[fences[0].start(1)] != fences[0][1][0]:
        return
    opening: re.Match[str] | None = None
    for fence in fences:
        if opening is None:
            opening = fence
        elif fence[1].startswith(opening[1]) and not fence[2]:
            yield opening.end(), fence.start(), opening[2] or language
            opening = None
    if opening is not None:
        yield opening.end(), len(text), opening[2] or language


def _scan_python(text: str) -> Iterator[_Part]:
    position = depth = statement = 0
    while token := _PYTHON_TOKEN.search(text, position):
        position = token.end()
        first = token[0][0]
        if first == "#":
            yield token.start(), position, True
        elif token["quote"]:
            end = _python_string_end(text, token)
            if end < 0:
                return
            alone = depth == 0 and _is_statement(text, statement, token, end)
            yield token.start(), end, alone
            position = end
        elif first in "[({":
            depth += 1
        elif first in "])}":
            depth = max(0, depth - 1)
        elif depth == 0 and first in ";\r\n":
            statement = position


def _is_statement(text: str, statement: int, token: re.Match[str], end: int) -> bool:
    """Whether a string is a statement, by itself or behind a header such as `def f():`.

    Formatted strings may do something, and count as code.
    """
    if set(token["prefix"].lower()) & set("ft") or token.start() - statement > _HEADER_CHARS:
        return False
    head = text[statement : token.start()]
    return bool((not head.strip() or _HEADER.fullmatch(head)) and _STATEMENT_ENDS.match(text, end))


def _python_string_end(text: str, token: re.Match[str]) -> int:
    """Where a string ends; unclosed: at the end of its line, or -1 if it may span lines."""
    closed = _PYTHON_STRINGS[token["quote"]].match(text, token.end())
    if closed:
        return closed.end()
    return -1 if len(token["quote"]) > 1 else _line_end(text, token.end())


def _scan(text: str, language: CodeLanguage) -> Iterator[_Part]:
    openers = _openers(language)
    if openers is None:
        return
    blocks = dict(language.blocks)
    strings = {quoted.begins: quoted for quoted in language.strings}
    position = 0
    while token := openers.search(text, position):
        start = token.start()
        if token[0] in blocks:
            end = _block_end(text, token, blocks[token[0]], language.nested)
        elif token[0] in strings:
            end = _string_end(text, token, strings[token[0]])
        else:
            end = _line_end(text, token.end())
        if end < 0:
            return
        yield start, end, token[0] not in strings
        position = end


@lru_cache(maxsize=128)
def _openers(language: CodeLanguage) -> re.Pattern[str] | None:
    patterns = {text: re.escape(text) for text, _ in language.blocks}
    apart = r"(?<![^\s;])" if language.apart else ""
    patterns |= {text: apart + re.escape(text) for text in language.line}
    for quoted in language.strings:
        word = r"(?<!\w)" if quoted.begins[0].isalpha() else ""
        patterns[quoted.begins] = word + re.escape(quoted.begins)
    longest = sorted(patterns, key=len, reverse=True)
    return re.compile("|".join(patterns[text] for text in longest)) if patterns else None


def _string_end(text: str, token: re.Match[str], quoted: Quoted) -> int:
    """Where a string ends; unclosed: behind its quote or its line, or -1 if it may span lines."""
    closed = quoted.rest.match(text, token.end())
    if closed:
        return closed.end()
    if quoted.begins == "'":  # a lifetime, a type variable, an apostrophe
        return token.end()
    return -1 if quoted.spans_lines else _line_end(text, token.end())


def _block_end(text: str, token: re.Match[str], closer: str, nested: bool) -> int:
    if not nested:
        end = text.find(closer, token.end())
        return end if end < 0 else end + len(closer)
    depth = 1
    borders = re.compile(f"{re.escape(token[0])}|{re.escape(closer)}")
    for border in borders.finditer(text, token.end()):
        depth += 1 if border[0] == token[0] else -1
        if depth == 0:
            return border.end()
    return -1


def _line_end(text: str, position: int) -> int:
    match = _LINE_END.search(text, position)
    return match.start() if match else len(text)
