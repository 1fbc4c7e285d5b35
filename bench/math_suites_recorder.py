"""A plug-in of pytest: writes down what latex2sympy's tests say, for `bench.math_suites`.

The tests call `assert_equal(latex, value)`; this one records both instead of comparing them, the
value as sympy prints it in LaTeX, and then each text against the value of the text before it in the
same test module where those two differ. Runs in the child process of the suite.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import sympy

NAMED = {"bar", "lambda", "theta", "alpha", "beta"}
RECORD = Path(os.environ["ASSAY_BENCH_RECORD"])
_before: dict[str, Any] = {}
_said: list[dict[str, Any]] = []
_test = ""


def pytest_configure() -> None:
    """Stands in the place of the parser that is not installed, and of the comparison."""
    for name in ("latex2sympy", "latex2sympy.latex2sympy2", "latex2sympy2"):
        module = types.ModuleType(name)
        module.latex2sympy = module.process_sympy = _unread  # type: ignore[attr-defined]
        sys.modules.setdefault(name, module)
    RECORD.write_text("")
    importlib.import_module("tests.context").assert_equal = record  # type: ignore[attr-defined]


def _unread(*_: Any, **__: Any) -> None:
    pytest.skip("not a pair")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Knows which test runs."""
    global _test  # noqa: PLW0603 - one child, one test at a time
    _test = item.nodeid.partition("[")[0].rpartition("/")[2]
    _said.clear()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes down what a test said, unless it waits for an error, which this one never raises."""
    if report.when == "call" and report.passed:
        with RECORD.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(said) + "\n" for said in _said)


def record(latex: str, value: Any, *_: Any, **__: Any) -> None:
    """Notes a pair, and the text against its predecessor's value."""
    value = sympy.sympify(value)
    module = _test.partition("::")[0]
    pairs = [(value, True)]
    before = _before.get(module)
    if before is not None and _differ(before, value):
        pairs.append((before, False))
    _before[module] = value
    for one, expected in pairs:
        _said.append({"test": _test, "latex": latex, "gold": printed(one), "expected": expected})


def printed(value: Any) -> str:
    """LaTeX of a value, worked out: sympy prints no logarithm's base, and no name with an index."""
    done = value.doit()
    names = {
        one: f"\\{one.name}"
        for one in done.free_symbols
        if one.name.partition("_")[0].partition("{")[0] in NAMED and "{" in one.name
    }
    return str(sympy.latex(done, symbol_names=names))


def _differ(one: Any, other: Any) -> bool:
    """Whether two values are different for certain."""
    scalars = all(
        isinstance(value, sympy.Expr) and not value.is_Matrix and value.is_finite is not False
        for value in (one, other)
    )
    return scalars and (one.doit() - other.doit()).equals(0) is False
