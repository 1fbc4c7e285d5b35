"""A cell's text as code, as Jupyter reads it: its last expression is its own part. Pure."""

from __future__ import annotations
import __future__

import _ast
import builtins
import re
from types import CodeType
from typing import Any, Final, NamedTuple

globals()["__builtins__"] = dict(vars(builtins))  # also when the program deletes them

_ONLY_AST: Final = 0x400  # ast.PyCF_ONLY_AST, without the module around it
_TOP_LEVEL_AWAIT: Final = 0x2000
_FEATURES: Final = sum(
    {getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}
    - {0x10}  # `nested_scopes` shares its bit with code that is nested
)
_MAGIC: Final = re.compile(r"\s*(?:[%!]|[\w.,\s]+=\s*[%!])")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_NO_MAGICS: Final = "magics are not served; use a bash session"


class CellCode(NamedTuple):
    """A cell's code.

    Attributes:
        body: its statements but the last expression; None for none.
        last: that expression, where its value is to be shown.
        flags: of `from __future__`, for the cells to come.
    """

    body: CodeType | None
    last: CodeType | None
    flags: int


def compiled(text: str, name: str, flags: int) -> CellCode:
    """Compiles a cell; nothing of it has run yet.

    Raises:
        SyntaxError: it does not parse.
        ValueError: a null character.
        MemoryError, RecursionError: it is nested too deeply.
    """
    wanted = flags | _TOP_LEVEL_AWAIT
    try:
        tree: Any = compile(text, name, "exec", wanted | _ONLY_AST, True)
    except SyntaxError as error:
        shifted = _unindented(text) if isinstance(error, IndentationError) else None
        if shifted is None:
            raise _explained(error, text, name) from None
        text = shifted
        tree = compile(text, name, "exec", wanted | _ONLY_AST, True)
    statements = tree.body
    last = statements[-1] if statements else None
    if type(last) is not _ast.Expr or _silenced(text, last):
        body = compile(tree, name, "exec", wanted, True)
        return CellCode(body, None, flags | body.co_flags & _FEATURES)
    del statements[-1]
    expression = _ast.Expression(last.value)
    if not statements:
        return CellCode(None, compile(expression, name, "eval", wanted, True), flags)
    body = compile(tree, name, "exec", wanted, True)
    flags |= body.co_flags & _FEATURES
    return CellCode(body, compile(expression, name, "eval", flags | _TOP_LEVEL_AWAIT, True), flags)


def _silenced(text: str, last: Any) -> bool:
    """Whether a semicolon follows the expression."""
    if ";" not in text:
        return False
    lines = _LINE_END.split(text)  # form feeds and the like end no line for the compiler
    rest = [lines[last.end_lineno - 1].encode()[last.end_col_offset :].decode()]
    rest += lines[last.end_lineno :]
    return any(line.split("#", 1)[0].lstrip(" \t\f\r)\\").startswith(";") for line in rest)


def _unindented(text: str) -> str | None:
    """The text without its first line's indentation; None where it has none."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip() and line.lstrip()[0] != "#"), "")
    indent = first[: len(first) - len(first.lstrip())]
    return "\n".join(line.removeprefix(indent) for line in lines) if indent else None


def _explained(error: SyntaxError, text: str, name: str) -> SyntaxError:
    lines = _LINE_END.split(text)
    number = error.lineno or 0
    if 0 < number <= len(lines) and _MAGIC.match(lines[number - 1]):
        line = lines[number - 1]
        column = len(line) - len(line.lstrip()) + 1
        return SyntaxError(_NO_MAGICS, (name, number, column, line + "\n"))
    return error.with_traceback(None)
