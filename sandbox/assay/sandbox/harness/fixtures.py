"""Fixtures of pytest-style tests, as far as the test code writes them.

Served: returned and yielded values, fixtures of fixtures, `params` with `request.param`, `autouse`,
`name`, and scopes (one wider than the test's is made once for all). Of pytest's own: `capsys` and
`monkeypatch` (`setattr`, `setitem`).
"""

from __future__ import annotations

import importlib
import inspect
import io
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from assay.sandbox.harness.grants import UnsupportedRequest

_REQUEST: Final = "request"
_MISSING: Final = object()


class Skipped(BaseException):
    """The test skips itself."""


class Fixture:
    """A function that makes what tests ask for by its name."""

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        params: Sequence[Any],
        *,
        shared: bool,
        autouse: bool,
    ) -> None:
        self.name = name
        self.make = make
        self.params = params
        self.shared = shared
        self.autouse = autouse

    def bound(self, instance: object) -> Fixture:
        """The same as a method of an object."""
        make = self.make.__get__(instance)
        return Fixture(self.name, make, self.params, shared=self.shared, autouse=self.autouse)

    def __call__(self, *_: object, **__: object) -> object:
        """Refused: a test asks for it by its name."""
        raise UnsupportedRequest("the test code calls a fixture")


class _Request:
    def __init__(self, param: object) -> None:
        self.param = param


def fixture(
    make: Callable[..., Any] | None = None,
    *,
    scope: str = "function",
    params: Sequence[Any] | None = None,
    autouse: bool = False,
    name: str | None = None,
    **_: object,
) -> Any:
    """`pytest.fixture`, with and without arguments."""

    def mark(function: Callable[..., Any]) -> Fixture:
        shared = scope != "function"
        own = name or function.__name__
        return Fixture(own, function, list(params or ()), shared=shared, autouse=autouse)

    return mark if make is None else mark(make)


class Fixtures:
    """The fixtures that some tests see.

    Args:
        namespace: where they are defined; a fixture goes by its own name.
        around: those of the module around a class.
        instance: to which fixtures that are methods are bound.
    """

    def __init__(
        self,
        namespace: Mapping[str, object],
        around: Fixtures | None = None,
        instance: object = None,
    ) -> None:
        found = (value for value in namespace.values() if isinstance(value, Fixture))
        own = {made.name: made if instance is None else made.bound(instance) for made in found}
        before = around._known if around else _BROUGHT  # noqa: SLF001
        self._known: dict[str, Fixture] = {**before, **own}
        self._shared: dict[tuple[str, int], object] = around._shared if around else {}  # noqa: SLF001
        self._ends: list[Iterator[Any]] = around._ends if around else []  # noqa: SLF001

    def run(self, test: Callable[..., Any], arguments: Mapping[str, object]) -> int:
        """Runs a test once for each set of fixture parameters; returns how often it ran.

        Raises:
            UnsupportedRequest: it needs a fixture that is not here.
            BaseException: what the test raises, but for `Skipped`.
        """
        needed = self._needed(test, arguments)
        turns = [range(max(1, len(self._known[name].params))) for name in needed]
        count = 0
        for indices in itertools.product(*turns):
            ends: list[Iterator[Any]] = []
            values: dict[str, object] = {}
            try:
                for name, index in zip(needed, indices, strict=True):
                    values[name] = self._value(name, index, values, ends)
                wanted = inspect.signature(test).parameters
                given = {name: value for name, value in values.items() if name in wanted}
                test(**{**given, **arguments})
                count += 1
            except Skipped:
                continue
            finally:
                _end(ends)
        return count

    def close(self) -> None:
        """Ends the fixtures that were made once for all."""
        _end(self._ends)

    def _value(
        self, name: str, index: int, values: Mapping[str, object], ends: list[Iterator[Any]]
    ) -> object:
        made = self._known[name]
        if made.shared and (name, index) in self._shared:
            return self._shared[name, index]
        given: dict[str, object] = {
            need: values[need] for need in _parameters(made.make) if need in values
        }
        if _REQUEST in _parameters(made.make):
            given[_REQUEST] = _Request(made.params[index] if made.params else None)
        value = made.make(**given)
        if inspect.isgeneratorfunction(made.make):
            (self._ends if made.shared else ends).append(value)
            value = next(value)
        if made.shared:
            self._shared[name, index] = value
        return value

    def _needed(self, test: Callable[..., Any], arguments: Mapping[str, object]) -> list[str]:
        """The fixtures of a test, each after those that it needs itself."""
        order: list[str] = []
        marked = getattr(test, "assay_fixtures", ())
        automatic = [name for name, made in self._known.items() if made.autouse]
        for name in (*automatic, *marked, *_parameters(test)):
            if name not in arguments:
                self._add(name, order, (getattr(test, "__name__", "a test"),))
        return order

    def _add(self, name: str, order: list[str], way: tuple[str, ...]) -> None:
        if name in order:
            return
        if name not in self._known or name in way:
            raise UnsupportedRequest(f"{way[0]} needs the fixture {name!r}, which is not served")
        for need in _parameters(self._known[name].make):
            if need != _REQUEST:
                self._add(need, order, (*way, name))
        order.append(name)


class _Captured:
    def __init__(self) -> None:
        self._saved = sys.stdout, sys.stderr
        self._start()

    def _start(self) -> None:
        self._out, self._err = io.StringIO(), io.StringIO()
        sys.stdout, sys.stderr = self._out, self._err

    def readouterr(self) -> _Output:
        found = _Output(self._out.getvalue(), self._err.getvalue())
        self._start()
        return found

    def close(self) -> None:
        sys.stdout, sys.stderr = self._saved


class _Output(NamedTuple):
    out: str
    err: str


class _Patch:
    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def setattr(self, target: Any, name: Any, value: Any = _MISSING, raising: bool = True) -> None:
        """Replaces an attribute; of a module also by a dotted name."""
        if isinstance(target, str):
            target, name, value = *_found(target), name
        old = getattr(target, name) if raising else getattr(target, name, None)
        self._undo.append(lambda: setattr(target, name, old))
        setattr(target, name, value)

    def setitem(self, target: Any, name: Any, value: Any) -> None:
        old = dict(target)
        self._undo.append(lambda: (target.clear(), target.update(old))[0])
        target[name] = value

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


def _found(dotted: str) -> tuple[Any, str]:
    path, _, name = dotted.rpartition(".")
    first, *rest = path.split(".")
    found: Any = importlib.import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found, name


def _capsys() -> Iterator[_Captured]:
    made = _Captured()
    yield made
    made.close()


def _monkeypatch() -> Iterator[_Patch]:
    made = _Patch()
    yield made
    made.undo()


_BROUGHT: Final[dict[str, Fixture]] = {
    name: Fixture(name, make, (), shared=False, autouse=False)
    for name, make in (("capsys", _capsys), ("monkeypatch", _monkeypatch))
}


def _parameters(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty and parameter.kind not in kinds
    ]


def _end(ends: list[Iterator[Any]]) -> None:
    """Resumes the fixtures that yielded, the last one first."""
    while ends:
        for _ in ends.pop():
            pass
