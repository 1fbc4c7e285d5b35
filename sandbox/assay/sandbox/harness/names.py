"""Which names test code takes from the candidate's program: read off its syntax, nothing is run."""

from __future__ import annotations

import ast
import builtins
from typing import Final

BUILTINS: Final = frozenset(vars(builtins)) - {"__doc__", "__name__", "__spec__", "__loader__"}


def subject_names(tree: ast.Module, entry_point: str) -> frozenset[str]:
    """Names that the program is to provide.

    Names that the code uses and nowhere binds, built-in ones left out, and the entry point. Where
    the code calls nothing but built-in names, those that its assertions call outermost are meant:
    a program that defines `sum` is tested by `assert sum(1, 2) == 3`.
    """
    bound, used = _bound(tree), _used(tree)
    free = used - bound
    names = free - BUILTINS
    if entry_point:
        return names | {entry_point}
    if not names & _called(tree):
        names |= _outermost(tree) - bound
    return names


def called_at_top(tree: ast.Module) -> frozenset[str]:
    """Functions that the module's own statements call by name."""
    names: set[str] = set()
    for statement in tree.body:
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names |= _called(statement)
    return frozenset(names)


def _used(tree: ast.AST) -> frozenset[str]:
    return frozenset(
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def _called(tree: ast.AST) -> frozenset[str]:
    return frozenset(
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )


def _bound(tree: ast.AST) -> frozenset[str]:
    """Every name that is bound anywhere."""
    names: set[str] = set()
    for node in ast.walk(tree):
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
    """Built-in names that assertions call directly, on the left of a comparison if there is one."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            test = node.test.left if isinstance(node.test, ast.Compare) else node.test
            if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
                names.add(test.func.id)
    return frozenset(names)
