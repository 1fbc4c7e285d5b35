"""Fixtures of pytest-style tests, as far as the test code writes them.

Served: values that are returned or yielded, fixtures that need fixtures, `params` with
`request.param`, `autouse`, names of their own, and scopes (a wider one than the test's is made once
for all). Fixtures that pytest itself brings, such as `tmp_path`, are not.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from assay.sandbox.harness.grants import Unsupported

_REQUEST = "request"


class Skipped(BaseException):
    """The test does not want to be run."""


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
        """Nobody may: a test asks for it by its name."""
        raise Unsupported("the test code calls a fixture")


class _Request:
    """What a fixture knows of its turn."""

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
        instance: what fixtures that are methods are bound to.
    """

    def __init__(
        self,
        namespace: Mapping[str, object],
        around: Fixtures | None = None,
        instance: object = None,
    ) -> None:
        found = (value for value in namespace.values() if isinstance(value, Fixture))
        own = {made.name: made if instance is None else made.bound(instance) for made in found}
        self._known: dict[str, Fixture] = {**(around._known if around else {}), **own}  # noqa: SLF001
        self._shared: dict[tuple[str, int], object] = around._shared if around else {}  # noqa: SLF001
        self._ends: list[Iterator[Any]] = around._ends if around else []  # noqa: SLF001

    def run(self, test: Callable[..., Any], arguments: Mapping[str, object]) -> int:
        """Runs a test once for each set of parameters of its fixtures; returns how often it ran.

        Raises:
            Unsupported: it needs a fixture that is not here.
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
            raise Unsupported(f"{way[0]} needs the fixture {name!r}, which is not served")
        for need in _parameters(self._known[name].make):
            if need != _REQUEST:
                self._add(need, order, (*way, name))
        order.append(name)


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The parameters that have no default."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty and parameter.kind not in kinds
    ]


def _end(ends: list[Iterator[Any]]) -> None:
    """Lets what yielded go on, the last one first."""
    while ends:
        for _ in ends.pop():
            pass
