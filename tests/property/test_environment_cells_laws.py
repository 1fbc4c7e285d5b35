"""Laws of what a policy's texts and paths may become, and of hidden tests' imports."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.sessions import CellEnd, CellError, CellResult, DisplayValue, Output
from assay.environments.cells import cut, is_path, is_text, shown
from assay.environments.environment import ToolError
from assay.environments.shipped.shell import _relative
from assay.environments.shipped.workspaces import hidden_code, is_tested
from assay.kit.errors import ConfigError

_PARTS = st.one_of(
    st.sampled_from(["..", ".", "", "/", "//", "box", "a", ".assay", "\0", "x" * 300, "\ud800"]),
    st.text(max_size=12),
)


@given(st.text(), st.integers(0, 400))
def test_a_cut_text_is_no_longer_than_it_may_be(text: str, chars: int) -> None:
    found = cut(text, chars)
    assert len(found) <= chars
    assert found == text or len(text) > chars


@given(st.lists(_PARTS, max_size=5).map("/".join))
def test_a_path_of_a_tool_stays_in_the_working_folder(path: str) -> None:
    try:
        found = _relative(path)
    except ToolError:
        return
    assert not found.startswith("/")
    assert ".." not in found.split("/")
    assert is_text(found)
    assert found


@given(st.lists(_PARTS, max_size=5).map("/".join))
def test_a_path_that_is_tested_is_one_that_a_run_takes(path: str) -> None:
    if is_tested(path):
        assert is_path(path)
        assert not {"", ".", "..", ".assay"} & set(path.split("/"))
        assert "\0" not in path
        assert len(path.encode()) <= 1024


@given(
    st.sampled_from(CellEnd), st.booleans(), st.binary(max_size=30), st.text(max_size=20),
    st.booleans(),
)  # fmt: skip
def test_whatever_a_cell_did_is_shown_as_some_text(
    end: CellEnd, over: bool, out: bytes, value: str, raised: bool
) -> None:
    result = CellResult(
        end, over, Output(out), Output(out[::-1]),
        DisplayValue({"text/plain": value.encode("utf-8", "replace")}),
        error=CellError("E", value) if raised else None,
    )  # fmt: skip
    for language in ("python", "bash"):
        text = shown(result, language, 5.0)
        assert text.strip("\n")
        assert ("a new session begins" in text) >= (over and end in _SAID_ENDS)


_SAID_ENDS = set(CellEnd) - {CellEnd.COMPLETED, CellEnd.RAISED}


@pytest.mark.parametrize(
    ("code", "found", "modules"),
    [
        ("from calc import a", "from solution import a", ("calc",)),
        ("from calc.core import a as b", "from solution import a as b", ("calc.core",)),
        ("import calc", "import solution as calc", ("calc",)),
        ("import calc.core as c, os", "import solution as c, os", ("calc.core",)),
        ("import math\nfrom b import x\nfrom a import y",
         "import math\nfrom solution import x\nfrom solution import y", ("b", "a")),
        ("def test():\n    from a import y", "def test():\n    from solution import y", ("a",)),
    ],
)  # fmt: skip
def test_hidden_code_asks_for_the_solution(code: str, found: str, modules: tuple[str, ...]) -> None:
    assert hidden_code(code, ()) == (found, modules)


def test_named_modules_are_the_only_ones() -> None:
    code = "import pandas\nfrom calc import a"
    assert hidden_code(code, ["calc"]) == ("import pandas\nfrom solution import a", ("calc",))


@pytest.mark.parametrize("code", ["import os", "import calc.core", "def f(:", "x = '\0'", ""])
def test_hidden_code_that_tests_nothing_is_refused(code: str) -> None:
    with pytest.raises(ConfigError):
        hidden_code(code, ())


@given(st.from_regex(r"[a-z]{3,6}_[a-z]{2}(\.[a-z]{2,4})?", fullmatch=True), st.integers())
def test_only_imports_change(module: str, number: int) -> None:
    body = f"def test_it():\n    assert f({number}) == '{module}'"
    found, modules = hidden_code(f"from {module} import f\n{body}", ())
    assert modules == (module,)
    assert ast.dump(ast.parse(found).body[1]) == ast.dump(ast.parse(body).body[0])
