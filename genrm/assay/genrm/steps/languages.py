"""Comments and strings of programming languages, as far as it takes to tell lines of code.

Where a lexis depends on syntax (regular expressions of JavaScript, heredocs of the shell), the
common case is covered and the rest is code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quoted:
    """A string literal: its beginning, the rest as a pattern, and whether it spans lines."""

    begins: str
    rest: re.Pattern[str]
    spans_lines: bool


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """Comments and strings of a language.

    Attributes:
        line: begin a comment up to the end of the line.
        blocks: begin and end a comment.
        nested: block comments nest.
        apart: `line` counts only at the beginning of a word.
        strings: string literals.
    """

    line: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    nested: bool = False
    apart: bool = False
    strings: tuple[Quoted, ...] = ()


def _escaped(quote: str, *, lines: bool) -> Quoted:
    """A string with backslash escapes, also of line ends."""
    first, length = re.escape(quote[0]), len(quote)
    inside = rf"[^\\{first}]" if lines else rf"[^\\{first}\r\n]"
    short = rf"|{first}(?!{first * (length - 1)})" if length > 1 else ""
    rest = rf"(?:{inside}++|\\(?:\r\n|[\s\S]){short})*{re.escape(quote)}"
    return Quoted(quote, re.compile(rest), lines)


def _plain(begins: str, ends: str) -> Quoted:
    return Quoted(begins, re.compile(rf"[\s\S]*?{re.escape(ends)}"), spans_lines=True)


_DOUBLE, _SINGLE = _escaped('"', lines=False), _escaped("'", lines=False)
_DOUBLES, _SINGLES = _escaped('"', lines=True), _escaped("'", lines=True)
_TRIPLE, _BACKTICKS = _escaped('"""', lines=True), _escaped("`", lines=True)
_CHARACTER = Quoted("'", re.compile(r"(?:\\[^\r\n]{1,9}?|[^\\'\r\n])'"), spans_lines=False)
_SQL = Quoted("'", re.compile(r"[^']*+'"), spans_lines=True)
_SLASHES, _STARS = ("//",), (("/*", "*/"),)
_RAW_RUST = tuple(_plain(f'r{"#" * n}"', f'"{"#" * n}') for n in range(3))

_C = CodeLanguage(_SLASHES, _STARS, strings=(_DOUBLE, _CHARACTER))
_JAVA = CodeLanguage(_SLASHES, _STARS, strings=(_TRIPLE, _DOUBLE, _CHARACTER))
_NESTING = CodeLanguage(_SLASHES, _STARS, nested=True, strings=(_TRIPLE, _DOUBLE, _CHARACTER))
_JAVASCRIPT = CodeLanguage(_SLASHES, _STARS, strings=(_DOUBLE, _SINGLE, _BACKTICKS))
_GO = CodeLanguage(_SLASHES, _STARS, strings=(_DOUBLE, _CHARACTER, _plain("`", "`")))
_RUST = CodeLanguage(_SLASHES, _STARS, nested=True, strings=(*_RAW_RUST, _DOUBLES, _CHARACTER))
_PHP = CodeLanguage(("//", "#"), _STARS, strings=(_DOUBLES, _SINGLES))
_HASH = CodeLanguage(("#",), apart=True, strings=(_DOUBLES, _SINGLES))
_SQL_LIKE = CodeLanguage(("--",), _STARS, strings=(_DOUBLE, _SQL))
_LUA = CodeLanguage(("--",), (("--[[", "]]"),), strings=(_DOUBLE, _SINGLE, _plain("[[", "]]")))
_HASKELL = CodeLanguage(("--",), (("{-", "-}"),), nested=True, strings=(_DOUBLE,))
_LISP = CodeLanguage((";",), (("#|", "|#"),), nested=True, strings=(_DOUBLES,))
_OCAML = CodeLanguage((), (("(*", "*)"),), nested=True, strings=(_DOUBLES,))
_PERCENT = CodeLanguage(("%",), strings=(_DOUBLE,))
_MARKUP = CodeLanguage((), (("<!--", "-->"),))
_CSS = CodeLanguage((), _STARS, strings=(_DOUBLE, _SINGLE))

PYTHON = frozenset({"python", "python3", "py", "py3", "pycon", "sage", "starlark"})
"""Names of Python, which has a scanner of its own."""

UNKNOWN = CodeLanguage()
"""A language without comments."""

LANGUAGES: dict[str, CodeLanguage] = {
    **dict.fromkeys(("c", "h", "cpp", "c++", "cc", "cxx", "hpp", "objective-c", "cuda"), _C),
    **dict.fromkeys(("java", "csharp", "c#", "cs", "d"), _JAVA),
    **dict.fromkeys(("kotlin", "kt", "swift", "scala", "dart", "groovy"), _NESTING),
    **dict.fromkeys(("javascript", "js", "typescript", "ts", "jsx", "tsx", "node"), _JAVASCRIPT),
    **dict.fromkeys(("go", "golang"), _GO),
    **dict.fromkeys(("rust", "rs"), _RUST),
    "php": _PHP,
    **dict.fromkeys(
        ("shell", "sh", "bash", "zsh", "ruby", "rb", "perl", "pl", "r", "julia", "jl", "yaml"),
        _HASH,
    ),
    **dict.fromkeys(("yml", "toml", "dockerfile", "makefile", "elixir", "tcl", "nim"), _HASH),
    **dict.fromkeys(("sql", "sqlite", "postgresql", "mysql"), _SQL_LIKE),
    "lua": _LUA,
    **dict.fromkeys(("haskell", "hs", "elm", "lean"), _HASKELL),
    **dict.fromkeys(("lisp", "scheme", "racket", "rkt", "clojure", "clj", "elisp"), _LISP),
    **dict.fromkeys(("ocaml", "ml", "fsharp", "f#", "coq", "pascal"), _OCAML),
    **dict.fromkeys(("tex", "latex", "matlab", "octave", "erlang", "prolog"), _PERCENT),
    **dict.fromkeys(("html", "xml", "svg", "markdown"), _MARKUP),
    **dict.fromkeys(("css", "scss", "less"), _CSS),
}
"""By the names that fenced blocks use, in lower case."""
