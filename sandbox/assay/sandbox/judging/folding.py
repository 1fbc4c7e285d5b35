"""Assert code that needs no process of its own: the supervisor calls, and evaluates the asserts.

Most assert code is a list of `assert f(...) == literal`. Where every statement is understood,
`fold` finds all calls of the candidate in advance, and what their results must satisfy. The rest is
for the tester process (`assertions`); both judge alike. Pure.

Differences from direct execution:
 1. Results are plain values, so no code of the candidate's runs in a comparison.
 2. The calls are made ahead of the asserts between them; they do not depend on one another.
 3. Built-in names mean the built-ins, even where the candidate's program defines them.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.sandbox.harness.codec import encode
from assay.sandbox.harness.evaluation import (
    PLAIN,
    SUBJECT,
    UNKNOWN,
    Evaluator,
    NotFoldable,
    Scope,
    bind,
)
from assay.sandbox.harness.names import subject_names
from assay.sandbox.harness.references import CodecError
from assay.sandbox.judging.text import brief, one_line

MAX_CODE: Final = 2**20
KEPT_CODE: Final = 2**14
MAX_CALLS: Final = 5_000
_IMMUTABLE: Final = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class FoldedCall:
    """One call of the candidate."""

    function: str
    arguments: tuple[object, ...]
    keyword_arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class RaisedCall:
    """A call that raised, in one line."""

    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of the asserts. `raised` is the index of the call that raised, where one did."""

    passed: bool
    explanation: str = ""
    raised: int | None = None


@dataclass(frozen=True, slots=True)
class FoldedAsserts:
    """Assert code that the supervisor judges itself."""

    calls: tuple[FoldedCall, ...]
    _code: str
    _statements: tuple[ast.stmt, ...]
    _scope: Scope
    _function: str

    def judge(self, results: Sequence[object]) -> Finding | None:
        """Holds results against the asserts; None where one needs a missing result.

        Args:
            results: of each call in order, its value or `RaisedCall`; fewer than calls, if the
                program
                ended before it answered.

        Raises:
            NotFoldable: a result is not plain, or too large to judge here.
        """
        run = _Run(self._function, results)
        try:
            run.statements(self._statements, dict(self._scope))
        except _Ended:
            return None
        except _CallRaised as raised:
            return Finding(False, f"the program raised {raised.text}", raised.index)
        except _Failed as failed:
            where = f"line {failed.node.lineno} of the tests"
            return Finding(False, f"{where}: {self._source(failed.node)}: {failed.text}")
        except NotFoldable:
            raise
        except Exception as error:  # noqa: BLE001 - the fault boundary: the results are the candidate's
            text = one_line(f"{type(error).__name__}: {error}")
            return Finding(False, f"the tests could not use the answer: {text[:200]}")
        return Finding(True)

    def _source(self, node: ast.stmt) -> str:
        line = self._code.splitlines()[node.lineno - 1].strip()
        return line if len(line) <= 120 else line[:117] + "..."


def fold(code: str, entry_point: str) -> FoldedAsserts | None:
    """Folds assert code; None where it needs a tester process."""
    if len(code) > MAX_CODE:
        return None
    return _fold_again(code, entry_point) if len(code) <= KEPT_CODE else _fold(code, entry_point)


@functools.lru_cache(maxsize=256)
def _fold_again(code: str, entry_point: str) -> FoldedAsserts | None:
    """The same, cached: the samples of a group are held against the same code in a row."""
    return _fold(code, entry_point)


def _fold(code: str, entry_point: str) -> FoldedAsserts | None:
    try:
        tree = ast.parse(code)
        function = _function(tree, entry_point)
        statements, scope = _flatten(tree, function)
        collected = _Run(function, None)
        collected.mutable_loads = _loads(tree)
        collected.statements(statements, dict(scope))
    except NotFoldable:
        return None
    except (SyntaxError, MemoryError, TypeError, ValueError, ArithmeticError, LookupError):
        return None
    except RecursionError:
        return None
    if not collected.calls:
        return None
    return FoldedAsserts(tuple(collected.calls), code, statements, scope, function)


def _function(tree: ast.Module, entry_point: str) -> str:
    if entry_point:
        return entry_point
    names = subject_names(tree, "") - {"math"}
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    if len(names) != 1 or not names <= called:
        raise NotFoldable("not one function")
    return next(iter(names))


def _flatten(tree: ast.Module, function: str) -> tuple[tuple[ast.stmt, ...], Scope]:
    """The statements in the order in which they run, and the names that they start with."""
    scope: Scope = {function: SUBJECT, "math": math}
    if function == "math":
        raise NotFoldable("a function named math")
    statements: list[ast.stmt] = []
    check: ast.FunctionDef | None = None
    done = False
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            if check is not None:
                raise NotFoldable("several functions")
            check = statement
            scope[_parameter(check)] = SUBJECT
        elif check is not None and _is_check_call(statement, function):
            statements += check.body
            done = True
        else:
            if done:
                raise NotFoldable("statements after the check")
            statements.append(statement)
    if check is not None and not done:
        statements += check.body
    return tuple(statements), scope


def _parameter(check: ast.FunctionDef) -> str:
    arguments = check.args
    simple = not (
        arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs
    )
    if check.name != "check" or check.decorator_list or len(arguments.args) != 1 or not simple:
        raise NotFoldable("another function")
    return arguments.args[0].arg


def _is_check_call(statement: ast.stmt, function: str) -> bool:
    match statement:
        case ast.Expr(ast.Call(ast.Name("check"), [ast.Name(name)], [])):
            return name == function
    return False


def _loads(tree: ast.AST) -> dict[str, int]:
    loads: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads[node.id] = loads.get(node.id, 0) + 1
    return loads


class _Ended(Exception):
    """A needed result is missing."""


class _CallRaised(Exception):
    def __init__(self, index: int, text: str) -> None:
        super().__init__(text)
        self.index = index
        self.text = text


class _Failed(Exception):
    def __init__(self, node: ast.stmt, text: str) -> None:
        super().__init__(text)
        self.node = node
        self.text = text


class _Run:
    def __init__(self, function: str, results: Sequence[object] | None) -> None:
        self.calls: list[FoldedCall] = []
        self.mutable_loads: dict[str, int] = {}
        self._function = function
        self._results = results
        self._next = 0
        self._targets: list[frozenset[str]] = []
        self._scope: Scope = {}
        self._evaluator = Evaluator(self._call)

    def statements(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        self._scope = scope
        for statement in statements:
            self._evaluator.step()
            match statement:
                case ast.Assert(test=test):
                    self._assert(statement, test, scope)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.Expr(value=expression):
                    self._evaluator.value(expression, scope)
                case ast.Assign(targets=[target], value=expression):
                    self._assign(target, self._evaluator.value(expression, scope), scope)
                case ast.Import(names=[ast.alias(name="math", asname=None)]):
                    pass
                case ast.For(orelse=[]):
                    self._for(statement, scope)
                case _:
                    raise NotFoldable(type(statement).__name__)

    def _assign(self, target: ast.expr, value: object, scope: Scope) -> None:
        if not isinstance(target, ast.Name):
            if value is UNKNOWN:
                raise NotFoldable("unpacking a result")
            bind(target, value, scope)
        else:
            bind(target, value, scope)

    def _for(self, loop: ast.For, scope: Scope) -> None:
        source = self._evaluator.value(loop.iter, scope)
        if source is UNKNOWN:
            raise NotFoldable("a loop over a result")
        names = (part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name))
        self._targets.append(frozenset(names))
        for item in self._evaluator.items(source):
            bind(loop.target, item, scope)
            self.statements(loop.body, scope)
        self._targets.pop()

    def _assert(self, statement: ast.Assert, test: ast.expr, scope: Scope) -> None:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
                self._assert(statement, part, scope)
            return
        before = self._next
        value = self._evaluator.value(test, scope)
        if value is UNKNOWN or value:
            return
        raise _Failed(statement, self._seen(before))

    def _seen(self, before: int) -> str:
        results = (self._results or ())[before : self._next]
        if not results:
            return "does not hold"
        return "got " + ", ".join(brief(result) for result in results[:2])

    def _call(self, node: ast.Call, args: list[object], kwargs: dict[str, object]) -> object:
        if self._results is None:
            return self._collect(node, args, kwargs)
        index, self._next = self._next, self._next + 1
        if index >= len(self._results):
            raise _Ended
        result = self._results[index]
        if isinstance(result, RaisedCall):
            raise _CallRaised(index, result.text)
        if result is not None and type(result) not in PLAIN:
            raise NotFoldable("a result that is not plain")
        return result

    def _collect(self, node: ast.Call, args: list[object], kwargs: dict[str, object]) -> object:
        given = [*args, *kwargs.values()]
        if any(value is UNKNOWN for value in given):
            raise NotFoldable("a call that depends on another")
        if any(map(_is_mutable, given)):
            self._hold_unshared(node)
        try:
            encode(given)
        except CodecError as error:
            raise NotFoldable(str(error)) from error
        if len(self.calls) >= MAX_CALLS:
            raise NotFoldable("too many calls")
        self.calls.append(FoldedCall(self._function, tuple(args), kwargs))
        return UNKNOWN

    def _hold_unshared(self, node: ast.Call) -> None:
        """Refuses code that sees whether the call changes its arguments in place."""
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            for part in ast.walk(argument):
                if isinstance(part, ast.Name) and _is_mutable(self._scope.get(part.id)):
                    self._hold_name(part.id)

    def _hold_name(self, name: str) -> None:
        """Refuses a mutable value that is read elsewhere, or by another name."""
        again = len(self._targets) > 1 or (self._targets and name not in self._targets[0])
        if again or self.mutable_loads.get(name, 0) > 1:
            raise NotFoldable("an argument that is used again")
        parts = _parts(self._scope.get(name))
        for other, value in self._scope.items():
            shared = other != name and self.mutable_loads.get(other, 0) > 1
            if shared and _is_mutable(value) and parts & _parts(value):
                raise NotFoldable("an argument that is known by another name")


def _parts(value: object) -> set[int]:
    found: set[int] = set()
    level = [value]
    while level:
        below: list[object] = []
        for item in level:
            if not _is_mutable(item) or id(item) in found:
                continue
            found.add(id(item))
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, (list, tuple, set, frozenset)):
                below.extend(item)
        level = below
    return found


def _is_mutable(value: object) -> bool:
    if isinstance(value, _IMMUTABLE) or value is SUBJECT or value is UNKNOWN:
        return False
    if isinstance(value, (tuple, frozenset)):
        return any(map(_is_mutable, value))
    return True
