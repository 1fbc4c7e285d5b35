"""`eval`, `exec` and `compile` of test code.

Tests hand texts to `eval`: "2 + 3 * 4", which the program answered; "add(1, 2)", which they wrote
themselves. A text that is a constant of the test code (the very object: an equal one may be an
answer) runs as ever. Any other may be the program's:

    eval    is computed here where it is an expression over plain values (`evaluation`) and what the
            tests put into a namespace for it. Once a text has come from the program, it sees none
            of the tests' other names, or it would be "expected", and calls nothing. Else the
            program's process computes it, and the result must be an object that stays there, such
            as a function: plain data that we could not compute ourselves is refused
    exec    runs in the program's process; the names that it defines stand for what is there
    compile keeps the text for eval and exec

Covered: no code of the program's runs in the tester by these three.
Not covered: other ways to run a text, such as pickle or a library's own eval.
"""

from __future__ import annotations

import ast
import math
import sys
import types
from collections.abc import Mapping
from typing import Any, Final

from assay.sandbox.harness.evaluation import PLAIN, Evaluator, NotFoldable, Scope
from assay.sandbox.harness.names import BUILTINS, texts
from assay.sandbox.harness.peer import Peer, Proxy

_VALUES: Final = (*PLAIN, type(None), range)
_MOST_NAMES: Final = 1_000


class RefusedText(Exception):
    """A text of the program's that is no expression over plain values."""


class _Kept:
    def __init__(self, text: str) -> None:
        self.text = text


class Texts:
    """The three functions, for one run of some test code.

    Args:
        tree: the test code, whose own texts are trusted.
        peer: the link to the program.
        own: names that the test code binds itself: no text binds them anew.
    """

    def __init__(self, tree: ast.AST, peer: Peer, own: frozenset[str]) -> None:
        self._written = texts(tree)
        self._trusted: dict[int, str] = {}  # by identity
        self._peer = peer
        self._own = own

    def trust(self, code: types.CodeType) -> None:
        """Takes the constants of compiled test code for the tests' own texts."""
        waiting: list[object] = [code]
        while waiting:
            value = waiting.pop()
            if isinstance(value, types.CodeType):
                waiting += value.co_consts
            elif isinstance(value, (tuple, frozenset)):
                waiting += value
            elif isinstance(value, str) and len(value) > 1:  # of one letter there is one object
                self._trusted[id(value)] = value

    def functions(self) -> dict[str, object]:
        """The functions by their names."""
        return {"eval": self.eval, "exec": self.exec, "compile": self.compile}

    def compile(self, source: Any, filename: Any, mode: str, *rest: Any, **more: Any) -> object:
        """The built-in one, for the tests' own texts."""
        if self._is_own(source):
            return compile(source, filename, mode, *rest, **more)
        return _Kept(_text(source))

    def eval(self, source: Any, globals: Any = None, locals: Any = None, /) -> object:  # noqa: A002
        """The value of an expression.

        Raises:
            RefusedText: it is the program's, and not to be computed here.
        """
        frame = sys._getframe(1)  # noqa: SLF001 - as the built-in function does
        if globals is None:
            globals, locals = frame.f_globals, frame.f_locals  # noqa: A001
        locals = globals if locals is None else locals  # noqa: A001
        if self._is_own(source):
            return eval(source, globals, locals)  # noqa: S307 - the tests' own text
        text = _text(source).strip()
        own = (frame.f_globals, frame.f_locals)
        seen = [
            space
            for space in (globals, locals)
            if not self._peer.texts or not any(space is other for other in own)
        ]
        names = {name: value for space in seen for name, value in space.items()}
        names.setdefault("math", math)
        try:
            called = {} if self._peer.texts else self._called(names)
            return _Expression(called).value(ast.parse(text, mode="eval").body, _plain(names))
        except NotFoldable:
            return self._computed_there(text)

    def exec(self, source: Any, globals: Any = None, locals: Any = None, /) -> None:  # noqa: A002
        """Runs statements; those of the program's in its process."""
        frame = sys._getframe(1)  # noqa: SLF001 - as the built-in function does
        if globals is None:
            globals, locals = frame.f_globals, frame.f_locals  # noqa: A001
        locals = globals if locals is None else locals  # noqa: A001
        own = locals is frame.f_globals
        if self._is_own(source):
            exec(source, globals, locals)  # noqa: S102 - the tests' own text
            return
        found = self._peer.execute(_text(source))
        kept = [name for name in found if not name.startswith("_") and name not in BUILTINS]
        for name in kept[:_MOST_NAMES]:
            if not (own and (name in self._own or name in locals)):
                locals[name] = found[name]

    def _called(self, names: Mapping[str, Any]) -> dict[str, Proxy]:
        return {
            name: value
            for name, value in names.items()
            if isinstance(value, Proxy) and any(f"{name}(" in text for text in self._written)
        }

    def _computed_there(self, text: str) -> object:
        value = self._peer.execute(f"answer = (\n{text}\n)").get("answer")
        if isinstance(value, Proxy):
            return value
        raise RefusedText("the answer is no expression over plain values")

    def _is_own(self, source: object) -> bool:
        if isinstance(source, ast.AST):
            return not self._peer.texts
        if isinstance(source, (str, _Kept)):
            return id(source) in self._trusted
        return not isinstance(source, (bytes, bytearray, Proxy))


class _Expression(Evaluator):
    """Evaluates an expression that may call some functions of the program's."""

    def __init__(self, called: Mapping[str, Proxy]) -> None:
        super().__init__(self._nothing)
        self._functions: Mapping[str, Any] = called

    def _nothing(self, *_: object) -> object:
        raise NotFoldable("no function of this name")

    def _called(self, node: ast.Call, scope: Scope) -> object:
        function = node.func
        if isinstance(function, ast.Name) and function.id in self._functions:
            args = [self.value(argument, scope) for argument in node.args]
            kwargs = {str(k.arg): self.value(k.value, scope) for k in node.keywords}
            answer: object = self._functions[function.id](*args, **kwargs)
            return answer
        return super()._called(node, scope)


def _plain(names: Mapping[str, Any]) -> Scope:
    return {n: value for n, value in names.items() if type(value) in _VALUES or value is math}


def _text(source: Any) -> str:
    if isinstance(source, _Kept):
        return source.text
    if isinstance(source, str):
        return source
    if isinstance(source, (bytes, bytearray)):
        return source.decode()
    if isinstance(source, ast.AST):
        return ast.unparse(source)
    raise TypeError("eval() arg 1 must be a string, bytes or code object")
