"""Which names test code takes from the candidate's program: read off its syntax, nothing is run."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

LIBRARIES: Final = frozenset({*sys.stdlib_module_names, "numpy"})
ALIASES: Final = {"np": "numpy"}
# What test code uses without importing it, and means the library's by it.
_MODULES: Final = frozenset(
    {
        "math",
        "re",
        "json",
        "itertools",
        "functools",
        "collections",
        "copy",
        "random",
        "operator",
        "statistics",
        "unittest",
        "typing",
        "sys",
    }
)
_HELPERS: Final = {
    "isclose": "math", "inf": "math", "nan": "math", "deepcopy": "copy",
    **dict.fromkeys(("Counter", "deque", "defaultdict", "OrderedDict"), "collections"),
    "Fraction": "fractions", "Decimal": "decimal",
    **dict.fromkeys(("Any", "Callable", "Dict", "Iterable", "Iterator", "List", "Optional",
                     "Sequence", "Set", "Tuple", "Union"), "typing"),
}  # fmt: skip
_RUN_TEXTS: Final = frozenset({"eval", "exec", "compile"})
_WORD: Final = re.compile(r"[^\W\d]\w*")
BUILTINS: Final = frozenset(vars(builtins)) - {"__doc__", "__name__", "__spec__", "__loader__"}


_walked: list[Any] = [None, ()]  # the last tree, and its nodes: each is asked many questions


def _walk(tree: ast.AST) -> Sequence[ast.AST]:
    if _walked[0] is not tree:
        _walked[:] = [tree, tuple(ast.walk(tree))]
    nodes: Sequence[ast.AST] = _walked[1]
    return nodes


def subject_names(tree: ast.Module, entry_point: str) -> frozenset[str]:
    """Names that the program is to provide.

    Those that the code uses and never binds, built-in ones left out, and the entry point. Where the
    code calls built-in names only, those that its assertions call outermost: a program that defines
    `sum` is tested by `assert sum(1, 2) == 3`.
    """
    bound, used = bound_names(tree), used_names(tree)
    free = used - bound
    names = free - BUILTINS
    if entry_point:
        return names | {entry_point}
    if not names & _called(tree):
        names |= _outermost(tree) - bound
    return names


def library_names(tree: ast.Module, names: frozenset[str], entry_point: str) -> dict[str, str]:
    """Which unbound names of test code are a library's, each with its module.

    They mean the library's even where the program defines the name: else the program's `isclose`
    would
    decide what is close. Except, as for built-in names, the entry point and code that calls nothing
    else.
    """
    found = {alias: library for alias, library in ALIASES.items() if alias in names}
    bare = _bare(tree)
    found |= {name: name for name in names & _MODULES if name not in bare}
    called = (names & _called(tree)) - found.keys()
    if entry_point or called - _HELPERS.keys():
        found |= {name: _HELPERS[name] for name in names & _HELPERS.keys()}
    found.pop(entry_point, None)
    return found


def imported(tree: ast.Module) -> frozenset[str]:
    """The modules that the code imports, but for imports whose failure it handles."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Try):
            waiting += [*node.handlers, *node.orelse, *node.finalbody]
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        waiting += ast.iter_child_nodes(node)
    return frozenset(found)


def derived_from(tree: ast.AST, names: frozenset[str]) -> frozenset[str]:
    """Those of some names from which the code derives a class."""
    bases = (base for node in _walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases)
    return names & {base.id for base in bases if isinstance(base, ast.Name)}


def first_mention(tree: ast.Module, names: frozenset[str], modules: set[str]) -> int | None:
    """The first line that has to do with the program; None where none has.

    Args:
        tree: the test code.
        names: names that stand for something of the program's.
        modules: names by which the program is imported.
    """
    lines: list[int] = []
    for node in _walk(tree):
        match node:
            case ast.Name(id=name) if name in names:
                lines.append(node.lineno)
            case ast.ImportFrom(module=module) if module in modules:
                lines.append(node.lineno)
            case ast.Import(names=taken) if modules & {alias.name for alias in taken}:
                lines.append(node.lineno)
            case ast.FunctionDef(name="check") if _reads_its_argument(node):
                lines.append(node.lineno)
    return min(lines, default=None)


def _reads_its_argument(function: ast.FunctionDef) -> bool:
    arguments = function.args.args
    return bool(arguments) and arguments[0].arg in used_names(function)


def unasserted_blocks(tree: ast.AST) -> list[range]:
    """The lines of `with` blocks that assert nothing."""
    blocks = [node for node in _walk(tree) if isinstance(node, (ast.With, ast.AsyncWith))]
    return [
        range(block.lineno, (block.end_lineno or block.lineno) + 1)
        for block in blocks
        if not any(_asserts(node) for statement in block.body for node in ast.walk(statement))
    ]


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        name = function.id if isinstance(function, ast.Name) else name
        return "assert" in name.lower() or name == "fail"
    return isinstance(node, ast.Assert)


def taken_from(tree: ast.AST, modules: set[str]) -> frozenset[str]:
    """The names that `from ... import ...` of these modules binds in the code."""
    return frozenset(
        alias.asname or alias.name
        for node in _walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in modules
        for alias in node.names
    )


def texts(tree: ast.AST) -> frozenset[str]:
    """The string constants of the code."""
    constants = (node.value for node in _walk(tree) if isinstance(node, ast.Constant))
    return frozenset(text for text in constants if isinstance(text, str))


def named_in_texts(tree: ast.Module) -> frozenset[str]:
    """Words in the texts of code that evaluates texts: perhaps names of the program's."""
    if not used_names(tree) & _RUN_TEXTS:
        return frozenset()
    words = {word for text in texts(tree) for word in _WORD.findall(text)}
    return frozenset(words) - bound_names(tree) - BUILTINS


def called_at_top(tree: ast.Module) -> frozenset[str]:
    """Functions that the module's own statements call by name."""
    names: set[str] = set()
    for statement in tree.body:
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names |= _called(statement)
    return frozenset(names)


def used_names(tree: ast.AST) -> frozenset[str]:
    """Every name that the code reads."""
    return frozenset(
        node.id
        for node in _walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def _bare(tree: ast.AST) -> frozenset[str]:
    based = {
        id(node.value)
        for node in _walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return frozenset(
        node.id for node in _walk(tree) if isinstance(node, ast.Name) and id(node) not in based
    )


def _called(tree: ast.AST) -> frozenset[str]:
    return frozenset(
        node.func.id
        for node in _walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )


def bound_names(tree: ast.AST) -> frozenset[str]:
    """Every name that the code binds anywhere."""
    names: set[str] = set()
    for node in _walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                names.add(name)
            case ast.arg(arg=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name.split(".")[0])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
    return frozenset(names)


def _outermost(tree: ast.AST) -> frozenset[str]:
    """Built-in names that assertions call directly, or on the left of a comparison."""
    names: set[str] = set()
    for node in _walk(tree):
        if isinstance(node, ast.Assert):
            test = node.test.left if isinstance(node.test, ast.Compare) else node.test
            if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
                names.add(test.func.id)
    return frozenset(names - _RUN_TEXTS)
