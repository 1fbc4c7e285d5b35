"""Whole suites against programs in processes of their own: verdicts, faults, limits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.sandbox.domain import EndKind, RunLimits, SandboxFault, SubmittedProgram
from assay.sandbox.judging import assertions
from assay.sandbox.judging.model import (
    AnswerComparison,
    AssertCase,
    CallCase,
    ComparisonKind,
    StdioCase,
    TestVerdict,
)
from sandbox_support import ProcessBoxes, judge_python

PASSED, WRONG = TestVerdict.PASSED, TestVerdict.WRONG_ANSWER
ERROR, LIMIT = TestVerdict.RUNTIME_ERROR, TestVerdict.LIMIT_EXCEEDED
NOT_RUN = TestVerdict.NOT_RUN
SHORT = RunLimits(wall_s=1.5)

PROGRAM = """
import collections, dataclasses, decimal, math
from collections import Counter
from typing import List

class Refused(ValueError):
    pass

class Stack:
    def __init__(self, *items):
        self.items = list(items)
    def push(self, item):
        self.items.append(item)
        return self
    def __len__(self):
        return len(self.items)
    def __iter__(self):
        return iter(self.items)
    def __getitem__(self, i):
        return self.items[i]
    def top(self):
        return self.items[-1]
    def __add__(self, other):
        return Stack(*self.items, *other.items)

@dataclasses.dataclass
class Point:
    x: int
    y: int

class Solution:
    def __init__(self):
        self.calls = 0
    def twice(self, x):
        self.calls += 1
        return x * 2 + (self.calls - 1)

count = 0
VERSION = "1.2"
def add(a, b=1):
    return a + b
def counted():
    global count
    count += 1
    return count
def sort(items):
    items.sort()
    return items
def numbers(n):
    yield from range(n)
def refuse(x):
    raise Refused("not " + str(x))
def crash():
    import os
    os.abort()
def leave():
    raise SystemExit(0)
def sleep():
    import time
    time.sleep(60)
def apply(f, items):
    return [f(item) for item in items]
def depth(node):
    return 0 if node is None else 1 + max(depth(node.left), depth(node.right))
def money():
    return decimal.Decimal("1.50")
def eat():
    raise MemoryError
async def later(x):
    return x + 1
print("loaded")
"""


@pytest.fixture(scope="module")
def boxes() -> Iterator[ProcessBoxes]:
    made = ProcessBoxes()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("function", "arguments", "expected", "verdict"),
    [
        ("add", (1, 2), 3, PASSED),
        ("add", (1,), 2, PASSED),
        ("add", ([1], [2]), [1, 2], PASSED),
        ("add", (1, 2), 4, WRONG),
        ("add", (1, "x"), 3, ERROR),
        ("missing", (), 3, ERROR),
        ("numbers", (3,), [0, 1, 2], WRONG),
        ("Solution.twice", (4,), 8, PASSED),
        ("sort", ([2, 1],), [1, 2], PASSED),
        ("leave", (), None, ERROR),
        ("crash", (), None, ERROR),
        ("eat", (), None, LIMIT),
        ("money", (), 1.5, PASSED),
    ],
)
def test_a_call(
    boxes: ProcessBoxes,
    function: str,
    arguments: tuple[object, ...],
    expected: object,
    verdict: TestVerdict,
) -> None:
    (outcome,) = judge_python(boxes, PROGRAM, CallCase("a", function, arguments, expected))
    assert outcome.verdict is verdict, outcome.explanation
    assert bool(outcome.explanation) == (verdict is not PASSED)
    assert outcome.record is not None
    if function != "crash":
        assert outcome.record.stdout.data == b"loaded\n"


def test_calls_share_a_process_until_one_ends_it(boxes: ProcessBoxes) -> None:
    tests = [
        CallCase("1", "counted", (), 1),
        CallCase("2", "counted", (), 2),
        CallCase("3", "Solution.twice", (1,), 2),
        CallCase("4", "Solution.twice", (1,), 2),
        CallCase("5", "crash", (), 0),
        CallCase("6", "counted", (), 1),
        CallCase("7", "add", (), 1, {"a": 0}),
    ]
    verdicts = [outcome.verdict for outcome in judge_python(boxes, PROGRAM, *tests)]
    assert verdicts == [PASSED] * 4 + [ERROR, PASSED, PASSED]


def test_each_call_has_its_own_time(boxes: ProcessBoxes) -> None:
    tests = [
        CallCase("1", "counted", (), 1, limits=SHORT),
        CallCase("2", "sleep", (), None, limits=SHORT),
        CallCase("3", "counted", (), 1, limits=SHORT),
    ]
    outcomes = judge_python(boxes, PROGRAM, *tests)
    assert [outcome.verdict for outcome in outcomes] == [PASSED, LIMIT, PASSED]
    assert outcomes[1].record is not None
    assert outcomes[1].record.end is EndKind.WALL_TIME_LIMIT


def test_more_calls_than_are_sent_ahead(boxes: ProcessBoxes) -> None:
    tests = [CallCase(str(i), "add", (i,), i + 1 if i != 150 else 0) for i in range(300)]
    outcomes = judge_python(boxes, PROGRAM, *tests)
    assert [o.name for o in outcomes if o.verdict is not PASSED] == ["150"]


def test_a_program_that_does_not_load_fails_every_call(boxes: ProcessBoxes) -> None:
    tests = [CallCase("1", "f", (), 1), CallCase("2", "f", (), 1)]
    for source in ("1 / 0", "def f(:", "import os\nos._exit(0)", "raise SystemExit(0)", "\0"):
        outcomes = judge_python(boxes, source, *tests)
        assert [outcome.verdict for outcome in outcomes] == [ERROR, ERROR], source


def test_a_guarded_main_part_does_not_run(boxes: ProcessBoxes) -> None:
    source = "def f(x):\n    return __name__\nif __name__ == '__main__':\n    x = int(input())\n"
    tests = [CallCase("1", "f", (1,), "solution"), AssertCase("2", "assert f(1) == 'solution'")]
    outcomes = judge_python(boxes, source, *tests)
    assert [outcome.verdict for outcome in outcomes] == [PASSED, PASSED]


def test_the_first_failure_may_stop_the_suite(boxes: ProcessBoxes) -> None:
    tests = [
        CallCase("1", "add", (1,), 2),
        CallCase("2", "add", (1,), 3),
        CallCase("3", "add", (1,), 2),
        AssertCase("4", "assert add(1) == 2"),
    ]
    outcomes = judge_python(boxes, PROGRAM, *tests, stop_at_first_failure=True)
    assert [outcome.verdict for outcome in outcomes] == [PASSED, WRONG, NOT_RUN, NOT_RUN]
    assert outcomes[2].record is None
    outcomes = judge_python(boxes, PROGRAM, *tests)
    assert [outcome.verdict for outcome in outcomes] == [PASSED, WRONG, PASSED, PASSED]


NODES = """
class Node:
    def __init__(self, left=None, right=None):
        self.left, self.right = left, right
assert depth(Node(Node(), Node(None, Node()))) == 3
"""
PYTEST_CLASS = """
class TestIt:
    def setup_method(self):
        self.x = 1
    def test_a(self):
        assert add(self.x) == 2
"""
PYTEST_FILE = """
import pytest
@pytest.mark.parametrize('a,b', [(1, 2), (2, 3)])
def test_a(a, b):
    assert add(a) == b
def test_b():
    with pytest.raises(Refused, match='not 1'):
        refuse(1)
    assert add(0.1, 0.2) == pytest.approx(0.3)
"""
FIXTURES = """
import pytest
ended = []
@pytest.fixture(params=[1, 2])
def number(request):
    return request.param
@pytest.fixture(scope='module')
def base():
    yield 10
    ended.append('base')
@pytest.fixture
def stack(number, base):
    made = Stack()
    made.push(number + base)
    yield made
    ended.append(number)
class TestIt:
    @pytest.fixture(autouse=True)
    def two(self):
        self.two = 2
    @pytest.mark.parametrize('more', [0, 1])
    def test_a(self, stack, number, more):
        assert self.two == 2
        assert stack.top() == number + {0}
def test_all_were_ended(base):
    assert ended == [1, 2, 1, 2]
"""
UNITTEST_FILE = """
import unittest
from solution import add
class AddTest(unittest.TestCase):
    def setUp(self):
        self.x = 1
    def test_a(self):
        self.assertEqual(add(self.x), 2)
        with self.assertRaises(TypeError):
            add(1, 'x')
if __name__ == '__main__':
    unittest.main()
"""
SUBTESTS = """
import unittest
class AddTest(unittest.TestCase):
    def test_a(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertEqual(add(i), 2)
unittest.main()
"""
BAD_CALLBACK = """
def bad(x):
    raise KeyError(x)
try:
    apply(bad, [1])
except KeyError:
    caught = True
assert caught
"""
ASSERTIONS = [
    ("assert add(1, 2) == 3", PASSED),
    ("assert add(1, 2) == 4", WRONG),
    ("assert add(1, 'x') == 4", ERROR),
    ("assert add(add(1)) == 3", PASSED),
    ("assert add(1, None) == 4", ERROR),
    ("assert len(add(1)) == 4", WRONG),
    ("assert missing(1) == 4", ERROR),
    ("assert add(1) == missing", ERROR),
    ("x = [2, 1]\nassert sort(x) is x\nassert x == [1, 2]", PASSED),
    ("x = [2, 1]\ny = [x]\nsort(x)\nassert y == [[1, 2]]", PASSED),
    ("x = {'a': [2, 1]}\nsort(x['a'])\nassert x == {'a': [1, 2]}", PASSED),
    ("assert list(numbers(3)) == [0, 1, 2]", PASSED),
    ("g = numbers(2)\nassert next(g) == 0 and next(g) == 1 and next(g, 5) == 5", PASSED),
    ("assert numbers(3) == [0, 1, 2]", WRONG),
    ("assert 2 in numbers(3) and 3 not in numbers(3)", PASSED),
    ("s = Stack(1).push(2)\nassert len(s) == 2 and s.top() == 2 and s[0] == 1", PASSED),
    ("s = Stack(1, 2)\nassert [x for x in s] == [1, 2] and 2 in s and s.items == [1, 2]", PASSED),
    ("assert (Stack(1) + Stack(2)).items == [1, 2]", PASSED),
    ("s = Stack()\ns.items = [7]\nassert s.top() == 7\nassert isinstance(s, Stack)", PASSED),
    ("assert not isinstance(3, Stack)\nassert add(1) == 2", PASSED),
    ("assert Point(1, 2) == Point(1, 2)\nassert Point(1, 2) != Point(1, 3)", PASSED),
    ("assert Stack(1) != Stack(1)", PASSED),
    ("s = Solution()\nassert s.twice(1) == 2\nassert s.twice(x=1) == 3", PASSED),
    ("try:\n    refuse(1)\nexcept Refused as e:\n    assert str(e) == 'not 1'", PASSED),
    ("try:\n    refuse(1)\nexcept ValueError as e:\n    assert e.args == ('not 1',)", PASSED),
    ("try:\n    add(1)\nexcept ValueError:\n    pass\nelse:\n    assert False", WRONG),
    ("refuse(1)", ERROR),
    ("assert apply(lambda x: x + 1, [1, 2]) == [2, 3]", PASSED),
    ("assert apply(add, [1, 2]) == [2, 3]", PASSED),
    ("assert apply(int, ['1']) == [1]", PASSED),
    (BAD_CALLBACK, PASSED),
    (NODES, PASSED),
    ("assert math.isclose(add(0.1, 0.2), 0.3)\nassert Counter(numbers(1)) == {0: 1}", PASSED),
    ("assert add(Counter('a'), Counter('ab'))['a'] == 2", PASSED),
    ("assert money() == 1.5", PASSED),
    ("assert VERSION == '1.2'", PASSED),
    ("import asyncio\nassert asyncio.run(later(1)) == 2", PASSED),
    ("import solution\nfrom main import *\nassert add(1) == 2 == solution.add(1)", PASSED),
    ("from main import nothing", ERROR),
    ("crash()", ERROR),
    ("leave()", ERROR),
    ("eat()", LIMIT),
    ("def test_a():\n    assert add(1) == 2\ndef test_b():\n    assert add(1) == 3", WRONG),
    (PYTEST_CLASS, PASSED),
    (PYTEST_FILE, PASSED),
    (FIXTURES.replace("{0}", "10"), PASSED),
    (FIXTURES.replace("{0}", "11"), WRONG),
    ("import pytest\ndef test_a():\n    with pytest.raises(KeyError):\n        refuse(1)", ERROR),
    ("import pytest\ndef test_a():\n    with pytest.raises(KeyError):\n        add(1)", WRONG),
    (UNITTEST_FILE, PASSED),
    (SUBTESTS, WRONG),
    ("def check(c):\n    assert c(1) == 2\ncheck(add)", PASSED),
    ("import sys\nok = add(1) == 2\nsys.exit(0 if ok else 1)", PASSED),
    ("import sys\nok = add(1) == 3\nsys.exit(0 if ok else 1)", WRONG),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("code", "verdict"), ASSERTIONS)
def test_assert_code(boxes: ProcessBoxes, code: str, verdict: TestVerdict) -> None:
    (outcome,) = judge_python(boxes, PROGRAM, AssertCase("a", code))
    assert outcome.verdict is verdict, outcome.explanation
    assert bool(outcome.explanation) == (verdict is not PASSED)
    assert len(outcome.explanation) <= 400


FOLDED = [(code, verdict) for code, verdict in ASSERTIONS if assertions.fold(code, "")]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "verdict"), FOLDED)
def test_folded_or_not_the_verdict_is_the_same(
    boxes: ProcessBoxes, monkeypatch: pytest.MonkeyPatch, code: str, verdict: TestVerdict
) -> None:
    monkeypatch.setattr(assertions, "fold", lambda code, entry_point: None)
    (outcome,) = judge_python(boxes, PROGRAM, AssertCase("a", code))
    assert outcome.verdict is verdict, outcome.explanation


def test_a_check_function_gets_the_entry_point(boxes: ProcessBoxes) -> None:
    code = "import random\ndef check(candidate):\n    assert candidate(1) == 2\n"
    (outcome,) = judge_python(boxes, PROGRAM, AssertCase("a", code, "add"))
    assert outcome.verdict is PASSED
    (outcome,) = judge_python(boxes, PROGRAM, AssertCase("a", code, "nothing"))
    assert outcome.verdict is ERROR
    assert "nothing" in outcome.explanation


def test_a_program_may_be_named_like_a_built_in(boxes: ProcessBoxes) -> None:
    source = "def sum(a, b):\n    return a - b\n"
    (outcome,) = judge_python(boxes, source, AssertCase("a", "assert sum(5, 3) == 2"))
    assert outcome.verdict is PASSED
    (outcome,) = judge_python(boxes, source, AssertCase("a", "assert sum(5, 3) == 8"))
    assert outcome.verdict is WRONG


@pytest.mark.parametrize(
    "code",
    [
        "assert (",
        "assert 1 == 1",
        "def check(candidate):\n    assert candidate(1) == 2",
        "import no_such_module\nassert add(1) == 2",
        "def test_a(some_fixture):\n    assert add(1) == 2",
        "class Sub(Stack):\n    pass\nassert Sub(1)",
        "import solution\nsolution.add = lambda x: 2\nassert solution.add(1) == 2",
        "import os\nassert add(1) == 2\nos._exit(0)",
        "1 / 0",
        "def f():\n    assert add(1) == 3",
    ],
)
def test_a_broken_suite_is_a_fault_and_no_verdict(boxes: ProcessBoxes, code: str) -> None:
    with pytest.raises(SandboxFault) as caught:
        judge_python(boxes, PROGRAM, AssertCase("a", code))
    assert caught.value.reason == "INVALID_TEST"


@pytest.mark.parametrize("code", ["assert sleep() == 1", "assert add(sleep()) == 1"])
def test_time_runs_out_folded_or_not(boxes: ProcessBoxes, code: str) -> None:
    (outcome,) = judge_python(boxes, PROGRAM, AssertCase("a", code, limits=SHORT))
    assert outcome.verdict is LIMIT
    assert outcome.record is not None
    assert outcome.record.end is EndKind.WALL_TIME_LIMIT


def test_a_failed_assert_does_not_wait_for_later_calls(boxes: ProcessBoxes) -> None:
    source = "import time\ndef nap(seconds):\n    time.sleep(seconds)\n    return seconds\n"
    folded = "assert nap(0.1) == 3\nassert nap(60) == 60"
    tested = "x = nap(0.1)\nassert x.real == 3\nassert nap(60) == 60"
    for code in (folded, tested):
        (outcome,) = judge_python(boxes, source, AssertCase("a", code, limits=SHORT))
        assert outcome.verdict is WRONG, outcome.explanation


def test_no_test_is_a_fault(boxes: ProcessBoxes) -> None:
    with pytest.raises(SandboxFault, match="no test"):
        judge_python(boxes, PROGRAM)


ECHO = (
    "import sys\nsys.stdout.write(sys.stdin.read().upper())\nsys.exit(int((sys.argv + ['0'])[1]))"
)


@pytest.mark.parametrize(
    ("stdin", "expected", "arguments", "verdict"),
    [
        (b"a b\n", b"A B", ("0",), PASSED),
        (b"a b\n", b"A", ("0",), WRONG),
        (b"a b\n", b"A B", ("3",), ERROR),
        (b"\xc3\xa9\n", "É".encode(), ("0",), PASSED),
    ],
)
def test_stdio(
    boxes: ProcessBoxes,
    stdin: bytes,
    expected: bytes,
    arguments: tuple[str, ...],
    verdict: TestVerdict,
) -> None:
    test = StdioCase("a", stdin, expected, arguments=arguments)
    (outcome,) = judge_python(boxes, ECHO, test)
    assert outcome.verdict is verdict, outcome.explanation


def test_an_output_that_was_cut_never_passes(boxes: ProcessBoxes) -> None:
    test = StdioCase("a", b"", b"x" * 10, limits=RunLimits(output_bytes=10))
    (outcome,) = judge_python(boxes, "print('x' * 10, end='')", test)
    assert outcome.verdict is PASSED
    (outcome,) = judge_python(boxes, "print('x' * 10)", test)
    assert outcome.verdict is WRONG


CHECKER = """
import sys
question, answer, expected = (open(name).read() for name in sys.argv[1:])
if answer == "break":
    1 / 0
print("not near")
sys.exit(0 if abs(float(answer) - float(expected)) < float(question) else 1)
"""


def checked(checker: str, output: str) -> StdioCase:
    program = SubmittedProgram("python", checker)
    return StdioCase("a", b"0.5", b"10", AnswerComparison(ComparisonKind.CHECKER, checker=program))


@pytest.mark.parametrize(("output", "verdict"), [("10.4", PASSED), ("10.6", WRONG)])
def test_a_checker_decides(boxes: ProcessBoxes, output: str, verdict: TestVerdict) -> None:
    test = checked(CHECKER, output)
    (outcome,) = judge_python(boxes, f"print({output!r}, end='')", test)
    assert outcome.verdict is verdict
    assert "near" in outcome.explanation or verdict is PASSED


@pytest.mark.parametrize(
    "checker", ["1 / 0", "import sys; sys.exit(7)", "def (", "import os; os.abort()"]
)
def test_a_broken_checker_is_a_fault(boxes: ProcessBoxes, checker: str) -> None:
    with pytest.raises(SandboxFault) as caught:
        judge_python(boxes, "print('break', end='')", checked(checker, "break"))
    assert caught.value.reason == "INVALID_TEST"


def test_an_output_that_breaks_a_sound_checker_is_wrong(boxes: ProcessBoxes) -> None:
    (outcome,) = judge_python(boxes, "print('break', end='')", checked(CHECKER, "break"))
    assert outcome.verdict is WRONG
    assert "could not read the output: exit code 1: " in outcome.explanation
