"""What a grader's own source says: its shape, and the words it looks for. Reads, never runs."""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from assay.kit.errors import ConfigError

_MOST_WORDS = 60
_MOST_CHARS = 80
_LITERAL = re.compile(r"[^\\^$.*+?{}()\[\]|]{3,}")
_LENGTHS = range(8, 50_001)


@dataclass(frozen=True, slots=True)
class GraderSource:
    """A file of a grader, as far as it can be read.

    Attributes:
        parameters: of the function, in order; empty where it is not a function of the file.
        required: those without a default.
        words: texts that stand in the file.
        lengths: whole numbers that stand there.
    """

    parameters: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()


def module_file(module: str) -> Path | None:
    """The source of a module that can be imported; None where there is none."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"the module {module!r} cannot be found: {error}") from error
    if found is None:
        raise ConfigError(f"there is no module {module!r}; install it, or name FILE.py:FUNCTION")
    path = Path(found.origin or "")
    return path if path.suffix == ".py" and path.is_file() else None


def read_source(path: Path | None, function: str) -> GraderSource:
    """Reads a file; what cannot be parsed says nothing."""
    if path is None:
        return GraderSource()
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return GraderSource()
    named = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    ]
    parameters, required = _parameters(named[-1]) if named else ((), ())
    return GraderSource(parameters, required, *_constants(tree))


def _parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    given = [*node.args.posonlyargs, *node.args.args]
    bare = given[: len(given) - len(node.args.defaults)]
    keywords = list(zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))
    names = [one.arg for one in (*given, *node.args.kwonlyargs)]
    required = [one.arg for one in bare] + [one.arg for one, value in keywords if value is None]
    return tuple(names), tuple(required)


def _constants(tree: ast.Module) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Its texts, those of patterns by their literal parts, and its whole numbers; no docstrings."""
    said = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    words: dict[str, None] = {}
    lengths: dict[int, None] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in said:
            continue
        value = node.value
        if isinstance(value, str) and value.strip():
            for word in (value, *_LITERAL.findall(value)):
                if word.strip() and len(word) <= _MOST_CHARS:
                    words.setdefault(word)
        elif type(value) is int and value in _LENGTHS:
            lengths.setdefault(value)
    return tuple(words)[:_MOST_WORDS], tuple(lengths)[:8]
