"""A small stand-in for pytest in the tester.

Serves `raises`, `approx`, `mark.parametrize` (of other marks only skips), `skip`, `fail`, and
fixtures that the test code writes (`fixtures`). Test code that needs pytest's own fixtures or
plugins is a fault, never a verdict.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.sandbox.harness.fixtures import Fixtures, Skipped, fixture
from assay.sandbox.harness.grants import UnsupportedRequest

Test = Callable[..., object]


def module() -> types.ModuleType:
    """The stand-in, as the module `pytest`."""
    made = types.ModuleType("pytest")
    vars(made).update(
        raises=raises, approx=approx, mark=_Marks(), skip=skip, fail=fail, param=_param
    )
    made.__dict__["fixture"] = fixture
    return made


def call(test: Any, fixtures: Fixtures) -> int:
    """Runs a test function, once for each set of parameters; returns how often it ran."""
    if getattr(test, "assay_skip", False):
        return 0
    return sum(fixtures.run(test, arguments) for arguments in _cases(test))


def _cases(test: Any) -> list[dict[str, object]]:
    cases: list[dict[str, object]] = [{}]
    for names, values in getattr(test, "assay_parameters", ()):
        rows = [values_of if len(names) > 1 else (values_of,) for values_of in values]
        cases = [{**case, **dict(zip(names, row, strict=True))} for case in cases for row in rows]
    return cases


class _Marks:
    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "parametrize":
            return _parametrize
        if name in {"skip", "skipif", "xfail"}:
            return _skip_mark if name == "skip" else _conditional(name)
        if name == "usefixtures":
            return _use_fixtures
        return lambda *args, **_: args[0] if args and callable(args[0]) else (lambda test: test)


def _parametrize(names: str | Sequence[str], values: Sequence[Any], **_: Any) -> Any:
    split = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def mark(test: Any) -> Any:
        test.assay_parameters = [*getattr(test, "assay_parameters", ()), (split, list(values))]
        return test

    return mark


def _use_fixtures(*names: str) -> Any:
    def mark(test: Any) -> Any:
        test.assay_fixtures = [*getattr(test, "assay_fixtures", ()), *names]
        return test

    return mark


def _skip_mark(*args: Any, **_: Any) -> Any:
    def mark(test: Any) -> Any:
        test.assay_skip = True
        return test

    return mark(args[0]) if args and callable(args[0]) else mark


def _conditional(name: str) -> Callable[..., Any]:
    def make(condition: object = True, *_: Any, **__: Any) -> Any:
        if name == "xfail":
            raise UnsupportedRequest("mark.xfail is not served")
        return _skip_mark() if condition else (lambda test: test)

    return make


def _param(*values: Any, **_: Any) -> Any:
    return values if len(values) > 1 else values[0]


def skip(reason: str = "", **_: Any) -> None:
    """Ends the test without a judgement."""
    raise Skipped(reason)


def fail(reason: str = "", **_: Any) -> None:
    """Fails the test."""
    raise AssertionError(reason)


class raises:  # noqa: N801 - pytest's name
    """A block, or a call, that must raise."""

    def __init__(self, expected: Any, *call: Any, match: str | None = None, **kwargs: Any) -> None:
        self._expected = expected
        self._match = match
        self.value: BaseException | None = None
        if call:
            with self:
                call[0](*call[1:], **kwargs)

    @property
    def type(self) -> type[BaseException] | None:
        """The class of what was raised."""
        return None if self.value is None else type(self.value)

    def __enter__(self) -> raises:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: object) -> bool:
        if error is None:
            raise AssertionError(f"did not raise {self._expected}")
        if not isinstance(error, self._expected):
            return False
        self.value = error
        if self._match is not None and not re.search(self._match, str(error)):
            raise AssertionError(f"{error!s} does not match {self._match!r}")
        return True


class approx:  # noqa: N801 - pytest's name
    """A number, or a container of numbers, that is equal within a tolerance."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        expected: Any,
        rel: float | None = None,
        abs: float | None = None,  # noqa: A002 - pytest's name
        nan_ok: bool = False,
    ) -> None:
        self._expected = expected
        self._absolute = 1e-12 if abs is None else abs
        self._relative = (0.0 if abs is not None else 1e-6) if rel is None else rel
        self._nan_ok = nan_ok

    def __eq__(self, actual: object) -> bool:
        return self._near(self._expected, actual)

    def __repr__(self) -> str:
        return f"approx({self._expected!r})"

    def _near(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, Mapping):
            return (
                isinstance(actual, Mapping)
                and expected.keys() == actual.keys()
                and all(self._near(value, actual[key]) for key, value in expected.items())
            )
        if isinstance(expected, (list, tuple)):
            return (
                isinstance(actual, (list, tuple))
                and len(expected) == len(actual)
                and all(map(self._near, expected, actual))
            )
        if isinstance(expected, (int, float)) and isinstance(actual, (int, float)):
            if math.isnan(expected):
                return self._nan_ok and math.isnan(actual)
            if math.isinf(expected) or math.isinf(actual):
                return expected == actual
            return abs(expected - actual) <= max(self._absolute, self._relative * abs(expected))
        return bool(expected == actual)
