"""Objects, exceptions and texts of the program, as test code uses them across processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.sandbox.judging.model import AssertCase, TestVerdict
from sandbox_support import ProcessBoxes, judge_python

PASSED, WRONG = TestVerdict.PASSED, TestVerdict.WRONG_ANSWER
ERROR = TestVerdict.RUNTIME_ERROR


@pytest.fixture(scope="module")
def boxes() -> Iterator[ProcessBoxes]:
    made = ProcessBoxes()
    yield made
    made.close()


DERIVED = """
import collections, json
class BankError(ValueError):
    pass
class Funds(BankError):
    def __init__(self, need):
        self.need = need
    def __str__(self):
        return f"need {self.need}"
class Pile(list):
    def push(self, item):
        self.append(item)
Point = collections.namedtuple("Point", "x y")
def pay(x):
    if x:
        raise Funds(x)
    return 0
def skip():
    import unittest
    raise unittest.SkipTest("x")
def read(text):
    return json.loads(text)
class Quiet:
    def __init__(self, *kinds):
        self.kinds = kinds
    def __enter__(self):
        return 3
    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, self.kinds)
"""


WITH_RAISES = """
import pytest
with pytest.raises(BankError, match='need 3') as e:
    pay(3)
assert e.value.need == 3 and pay(0) == 0
"""
JSON_ERROR = """
import json
try:
    read('{')
except json.JSONDecodeError as e:
    assert e.pos == 1
else:
    assert False
"""
OTHER_ERROR = """
try:
    with Quiet(ValueError):
        1 / 0
except ZeroDivisionError:
    pass
assert pay(0) == 0
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (WITH_RAISES, PASSED),
        ("try:\n    pay(2)\nexcept Funds as e:\n    assert str(e) == 'need 3'", WRONG),
        ("try:\n    pay(2)\nexcept KeyError:\n    pass", ERROR),
        (JSON_ERROR, PASSED),
        ("import unittest\nclass T(unittest.TestCase):\n    def test_it(self): skip()", ERROR),
        ("p = Point(1, 2)\nassert p == (1, 2) and p.x == 1 and p._x == 1", WRONG),
        ("p = Point(1, 2)\nassert p == (1, 2) and p.x == 1 and isinstance(p, tuple)", PASSED),
        ("s = Pile()\ns.push(1)\nassert s == [1] and s[0] == 1 and len(s) == 1 != s", PASSED),
        ("s = Pile()\ns.push(1)\nassert s == []", WRONG),
        ("with Quiet(ValueError):\n    int('x')\nassert pay(0) == 0", PASSED),
        ("with Quiet(Exception) as x:\n    assert x == 5", WRONG),
        ("with Quiet(Exception) as x:\n    assert x.y == 5", WRONG),
        (OTHER_ERROR, PASSED),
        ("import sys\nassert eval('pay(0)') == 0 and eval(f'pay({0})') == 0", PASSED),
        ("ns = {}\nexec('x = pay(0)', globals(), ns)\nassert ns['x'] == 0", PASSED),
    ],
)
def test_what_derives_from_something_stays_what_it_is(
    boxes: ProcessBoxes, code: str, verdict: TestVerdict
) -> None:
    (outcome,) = judge_python(boxes, DERIVED, AssertCase("a", code))
    assert outcome.verdict is verdict, outcome.explanation


PRINTING = """
import sys
def hello(n):
    print("Hello", n)
    print("warned", file=sys.stderr)
    return n
def ask():
    return int(input("n? ")) + 1
def line():
    return sys.stdin.readline().strip()
"""
PATCHED = """
import io, unittest
from unittest.mock import patch
from solution import hello, ask
class T(unittest.TestCase):
    @patch('sys.stdout', new_callable=io.StringIO)
    def test_out(self, out):
        hello('x')
        self.assertEqual(out.getvalue(), 'Hello {0}\\n')
    @patch('builtins.input', side_effect=['4', '5'])
    def test_in(self, ask_for):
        self.assertEqual([ask(), ask()], [5, 6])
        ask_for.assert_called_with('n? ')
    @patch('builtins.print')
    def test_print(self, written):
        hello(3)
        written.assert_any_call('Hello', 3)
"""
CAPTURED = """
def test_out(capsys):
    hello(1)
    told = capsys.readouterr()
    assert told.out == 'Hello {0}\\n' and told.err == 'warned\\n'
    assert capsys.readouterr().out == ''
def test_in(monkeypatch):
    import io
    monkeypatch.setattr('builtins.input', lambda *a: '7')
    monkeypatch.setattr('sys.stdin', io.StringIO('a\\nb\\n'))
    assert ask() == 8 and line() == 'a' and line() == 'b'
def test_all_is_as_it_was():
    assert hello(2) == 2
"""
REDIRECTED = """
import contextlib, io
kept = io.StringIO()
with contextlib.redirect_stdout(kept):
    assert hello(2) == 2
assert kept.getvalue() == 'Hello {0}\\n'
"""


@pytest.mark.parametrize(("code", "right"), [(PATCHED, "x"), (CAPTURED, "1"), (REDIRECTED, "2")])
def test_what_a_program_prints_and_reads_goes_where_the_tests_say(
    boxes: ProcessBoxes, code: str, right: str
) -> None:
    for said, verdict in ((right, PASSED), ("9", WRONG)):
        test = AssertCase("a", code.replace("{0}", said))
        (outcome,) = judge_python(boxes, PRINTING, test)
        assert outcome.verdict is verdict, outcome.explanation


PARSED = """
import ast
tree = ast.parse(text('KIND'), mode='eval')
assert eval(compile(tree, 'x', 'eval')) == 24
"""
OWN_TEXTS = """
for own, value in [('len(text("sum"))', 11), ('text("name")', 'nothing')]:
    assert eval(own) == value
"""
ANSWERED = """
def text(kind):
    return {
        "sum": "2 * (3 + 9)", "call": "text('sum')", "lambda": "lambda a: a + 1",
        "computed": "(lambda: 24)()", "class": "type('E', (), {'__eq__': lambda *a: True})()",
        "leave": "__import__('os')._exit(0)", "raise": "1 / 0",
        "deep": "(" * 9_000, "name": "nothing",
        "expected": "expected", "math": "isclose = lambda *a, **k: True",
        "code": "def g(a):\\n    return a + 1", "shadow": "abs = all = lambda *a: True",
    }[kind]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("assert eval(text('sum')) == 24", PASSED),
        ("assert eval(text('sum')) == 25", WRONG),
        ("t = text('computed')\nassert eval(t) == 24", WRONG),
        ("t = text('class')\nassert eval(t) == 24", WRONG),
        ("t = text('deep')\nassert eval(t) == 24", WRONG),
        ("t = text('call')\nassert eval(t) == '2 * (3 + 9)'", ERROR),
        ("expected = 24\nassert eval(text('expected')) == expected", ERROR),
        ("def test_it():\n    expected = 24\n    assert eval(text('expected')) == expected", ERROR),
        ("t = text('expected')\nassert eval(t, {'expected': 24}) == 24", PASSED),
        (PARSED.replace("KIND", "class"), WRONG),
        (PARSED.replace("KIND", "sum"), PASSED),
        (OWN_TEXTS, PASSED),
        ("exec(text('math'))\nassert isclose(len(text('sum')), 5)", WRONG),
        ("t = text('leave')\nassert eval(t) == 24", ERROR),
        ("t = text('raise')\nassert eval(t) == 24", WRONG),
        ("t = text('name')\nassert eval(t) == 24", ERROR),
        ("g = eval(text('lambda'))\nassert g(3) == 4", PASSED),
        ("g = eval(compile(text('lambda'), 'x', 'eval'))\nassert g(3) == 5", WRONG),
        ("ns = {}\nexec(text('code'), ns)\nassert ns['g'](3) == 4", PASSED),
        ("exec(text('shadow'))\nassert abs(text('sum') == 5) == 1", WRONG),
    ],
)  # fmt: skip
def test_a_text_of_the_programs_never_runs_beside_the_tests(
    boxes: ProcessBoxes, code: str, verdict: TestVerdict
) -> None:
    (outcome,) = judge_python(boxes, ANSWERED, AssertCase("a", code))
    assert outcome.verdict is verdict, outcome.explanation
