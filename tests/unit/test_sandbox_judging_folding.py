"""Folding: what is understood, what is left to a tester, and what asserts come to."""

from __future__ import annotations

import pytest

from assay.sandbox.harness.evaluation import NotFoldable
from assay.sandbox.judging.folding import FoldedCall, RaisedCall, fold


@pytest.mark.parametrize(
    ("code", "results", "passes"),
    [
        ("assert f(1) == 2", [2], True),
        ("assert f(1) == 2", [3], False),
        ("assert f(1) == 2", [2.0], True),
        ("assert f(1) == 2", [None], False),
        ("assert f(1) is None", [None], True),
        ("assert f(1) is True", [1], False),
        ("assert f(1) is not None", [0], True),
        ("assert not f(1)", [[]], True),
        ("assert f(1), 'message'", ["x"], True),
        ("assert 3 in f(1)", [[1, 3]], True),
        ("assert f(1) in (1, 2)", [2], True),
        ("assert f(1) not in [2]", [2], False),
        ("assert 0 < f(1) <= 5", [5], True),
        ("assert 0 < f(1) <= 5", [6], False),
        ("assert abs(f(1) - 0.3) < 1e-6", [0.1 + 0.2], True),
        ("assert abs(f(1) - 0.3) < 1e-6", ["x"], False),
        ("assert abs(f(1) - 0.3) < 1e-6", [float("nan")], False),
        ("assert f(1) == f(2) and f(3) == 1", [4, 4, 1], True),
        ("assert f(1) == f(2) and f(3) == 1", [4, 5, 1], False),
        ("assert round(f(1), 2) == 1.23", [1.2349], True),
        ("assert set(f(1)) == {1, 2}", [[2, 1, 2]], True),
        ("assert sorted(f(1)) == [1, 2]", [(2, 1)], True),
        ("assert len(f(1)) == 2 and f(1)[0] == 'a'", ["ab", "ab"], True),
        ("assert f(1)[1:] == (2,)", [(1, 2)], True),
        ("assert f(1)[7] == 2", [[1]], False),
        ("assert isinstance(f(1), (int, str))", ["x"], True),
        ("assert type(f(1)) == int", [True], False),
        ("assert f(1) == [x * 2 for x in range(3)]", [[0, 2, 4]], True),
        ("assert all(x > 0 for x in f(1))", [[1, 0]], False),
        ("assert any([x for x in f(1)])", [[0, 2]], True),
        ("import math\nassert math.isclose(f(1), math.pi)", [3.141592653589793], True),
        ("assert math.fabs(f(1)) == 1", [-1], True),
        ("for x, y in [(1, 2), (3, 4)]:\n    assert f(x) == y", [2, 4], True),
        ("for x, y in [(1, 2), (3, 4)]:\n    assert f(x) == y", [2, 5], False),
        ("for i, x in enumerate([5, 6]):\n    assert f(*[x], k=i) == x", [5, 6], True),
        ("r = f(1)\nassert r == 2\nassert len([r]) == 1", [2], True),
        ("assert f(1) == 2 if True else False", [2], True),
        ("assert (f(1) or 5) == 5", [0], True),
        ("assert f(1) != float('nan')", [float("nan")], True),
        ("assert f(-1) == +1 - 2 ** 3 // 3 % 5", [-1], True),
        ("assert f(1) == {'a': [1, (2,)]}", [{"a": [1, (2,)]}], True),
        ("assert f(1) == 'a' * 3 + 'b'", ["aaab"], True),
        ("assert f(1) - {1} == {2}", [{1, 2}], True),
        ("assert str(f(1)) == '2'", [2], True),
        ("print(f(1))\nassert f(2) == 1", [9, 1], True),
        ("assert list(reversed(f(1))) == [2, 1]", [[1, 2]], True),
        ("assert dict == dict and f(1) == 1", [1], True),
        ("assert sum(1, 2) == 3", [3], True),
    ],
)
def test_asserts(code: str, results: list[object], passes: bool) -> None:
    plan = fold(code, "")
    assert plan is not None
    assert len(plan.calls) == len(results)
    finding = plan.judge(results)
    assert finding is not None
    assert finding.passed == passes
    assert passes or finding.explanation


@pytest.mark.parametrize(
    "code",
    [
        "assert f(f(1)) == 2",  # a call that depends on another
        "assert f(1) == 2 or f(2) == 3",
        "if f(1): assert f(2)",
        "assert g(f(1)) == h(2)",
        "assert f(1) == g",
        "x = [1]\nf(x)\nassert x == [2]",  # changed in place
        "x = [1]\nassert f(x) == 1\nassert f(x) == 2",
        "x = [1]\ny = [x]\nassert f(y) == 1\nassert x == [1]",
        "x = [1]\nfor i in range(2):\n    assert f(x) == 1",
        "assert [1 for a in (1, 2) for b in f(a)] == [1]",
        "for i in range(2):\n    for j in [[1]]:\n        assert f(j)",
        "assert f(1).lower() == 'a'",
        "assert f('a'.lower()) == 'a'",
        "assert f(1) == eval('2')",
        "assert f(1) == open('x')",
        "assert f(1) == (lambda: 2)()",
        "assert f(1) == 9 ** 9 ** 9",
        "assert f(1) == 1 << 10 ** 10",
        "assert f(1) == 'x' * 10 ** 9",
        "assert f(1) == [0] * 10 ** 9",
        "assert f(1) == list(range(10 ** 9))",
        "assert f(1) == round(5, -10 ** 9)",
        "assert f([x for x in range(1000) for y in range(1000)]) == 1",
        "assert f(1) == f'{1}'",
        "assert f(1) == '%9999999999d' % 1",
        "assert [f(1) for _ in (1, 2) if f(2)] == [1]",
        "assert all(f(x) for x in (1, 2))",
        "while f(1): pass",
        "try:\n    f(1)\nexcept ValueError: pass\nassert f(2)",
        "with f(1): pass",
        "import os\nassert f(1)",
        "def g(): return f(1)\nassert g() == 1",
        "def check(a, b): assert a(1) == 1",
        "def check(c=f): assert c(1) == 1",
        "@f\ndef check(c): assert c(1) == 1",
        "assert f",
        "f = 1\nassert f == 1",
        "assert f(1) == (y := 2)",
        "assert f(...) == 1",
        "assert f(**{'a': 1}) == 1",
        "assert f(1) is 5",
        "assert 1 == 1",
        "",
        "assert (",
        "assert f(1) == " + "(" * 500 + "1" + ")" * 500,
        "assert f(1) == " + "-" * 5_000 + "1",
    ],
)
def test_what_is_left_to_a_tester(code: str) -> None:
    assert fold(code, "") is None


def test_a_check_function_is_called_with_the_entry_point() -> None:
    code = """METADATA = {"a": 1}
def check(g):
    "Doc."
    assert g([1], k=2) == 3
"""
    for text in (code, code + "check(f)\n"):
        plan = fold(text, "f")
        assert plan is not None
        assert plan.calls == (FoldedCall("f", ([1],), {"k": 2}),)
    assert fold(code + "check(other)\n", "f") is None
    assert fold(code, "") is None


def test_the_first_failure_decides_and_what_follows_is_not_needed() -> None:
    plan = fold("assert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3", "f")
    assert plan is not None
    assert plan.judge([1]) is None
    early = plan.judge([1, 5])
    assert early is not None
    assert not early.passed
    assert "line 2" in early.explanation
    raised = plan.judge([1, RaisedCall("ValueError: no")])
    assert raised is not None
    assert raised.raised == 1
    wrong_first = plan.judge([0, RaisedCall("ValueError: no")])
    assert wrong_first is not None
    assert wrong_first.raised is None


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("assert f(1) == 2", object()),
        ("assert f(1)[0] + f(2)[0] == 2", [2**100_000]),
        ("assert sorted(f(1)) == 2", [0] * 300_000),
        ("assert set(f(1)) == {2}", [(2**61 - 1) * i for i in range(1, 5_000)]),
        ("assert 'x' * f(1) == 2", 10**12),
        ("assert f(1) ** f(1) == 2", 10**6),
        ("assert list(range(f(1))) == 2", 10**12),
        ("assert sum([1 for a in f(1) for b in range(1000)]) == 2", [0] * 1_000),
    ],
)
def test_a_result_that_could_cost_much_is_left_to_a_tester(code: str, result: object) -> None:
    plan = fold(code, "")
    assert plan is not None
    with pytest.raises(NotFoldable):
        plan.judge([result] * len(plan.calls))


def test_an_explanation_is_one_short_line() -> None:
    plan = fold(f"assert f(1) == {'x' * 5_000!r}", "")
    assert plan is not None
    finding = plan.judge(["y\n" * 5_000])
    assert finding is not None
    assert len(finding.explanation) < 400
    assert "\n" not in finding.explanation
