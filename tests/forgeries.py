"""Kinds of suites, as data: the same small tasks tested in every way in which suites test.

Each kind has right programs, which must pass, and `WRONG`, which must not. A program that forges
(`forgery_tricks`) defines `trick`; a kind's `mount` puts that where its tests look for the program.

No expected value can be guessed: they are sums and the like of large numbers, and no trick knows
the arguments' meaning. Where a test trusts what the program returns, so that a trick would pass in
plain Python as well, the pair stands in TRUSTED with the reason.
"""

# ruff: noqa: E501 - programs in tables, one in a line

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from assay.clients.execution import (
    AssertTest,
    CallTest,
    Comparison,
    Limits,
    Program,
    StdioTest,
    TestCase,
    TestJob,
    TestSuite,
)

ROOMY: Final = Limits(wall_time_s=30.0)
MOUNT: Final = "f = trick\n"
METHODS: Final = """
class Solution:
    def f(self, *a, **k):
        return trick(*a, **k)
"""
STACK_MOUNT: Final = """
class Stack:
    def push(self, *a):
        return trick(*a)
    def pop(self):
        return trick()
    def peek(self):
        return trick()
    def is_empty(self):
        return trick()
    def __len__(self):
        return trick()
"""
PRINT_MOUNT: Final = "import sys\nprint(trick(*sys.stdin.read().split()))\n"

ADD: Final[Mapping[str, str]] = {
    "plain": "def f(a, b):\n    return a + b\n",
    "lambda": "f = lambda a, b: a + b\n",
    "operator": "from operator import add as f\n",
    "operator in place": "import operator\nf = operator.iadd\n",
    "partial": "from functools import partial\nf = partial(lambda z, a, b: z + a + b, 0)\n",
    "instance": "class Add:\n    def __call__(self, a, b):\n        return a + b\nf = Add()\n",
    "static": "class S:\n    @staticmethod\n    def add(a, b):\n        return a + b\nf = S.add\n",
    "class method": "class S:\n    @classmethod\n    def add(c, a, b):\n        return a + b\nf = S.add\n",
    "bound": "class S:\n    def add(self, a, b):\n        return a + b\nf = S().add\n",
    "cached": "import functools\n@functools.lru_cache(None)\ndef f(a, b):\n    return a + b\n",
    "wrapped": "import functools\ndef twice(g):\n    @functools.wraps(g)\n    def h(*a):\n"
    "        return g(*a)\n    return h\n@twice\ndef f(a, b):\n    return a + b\n",
    "a class": "class f:\n    def __new__(cls, a, b):\n        return a + b\n",
    "own int": "class I(int):\n    pass\ndef f(a, b):\n    return I(a + b)\n",
    "recursive": "def f(a, b):\n    return a if b == 0 else a + b if b > 9 else f(a + 1, b - 1)\n",
    "printing": "print('loading')\ndef f(a, b):\n    print(a, b)\n    return a + b\n",
    "main part": "def f(a, b):\n    return a + b\nif __name__ == '__main__':\n    print(f(*input()))\n",
    "threads": "import threading\ndef f(a, b):\n    found = []\n"
    "    t = threading.Thread(target=lambda: found.append(a + b))\n    t.start()\n    t.join()\n"
    "    return found[0]\n",
}  # fmt: skip
ADD_FEW: Final = {name: ADD[name] for name in ("plain", "operator", "instance", "bound")}
WRONG: Final = "def trick(*a, **k):\n    return 1\n"


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to test one task.

    Attributes:
        tests: the suite.
        rights: programs that pass, by name.
        mount: put behind a trick, it makes a program that the suite can test.
        core: tricks are held against it in every run of the tests, not only in the slow ones.
    """

    tests: Sequence[TestCase]
    rights: Mapping[str, str] = field(default_factory=lambda: ADD_FEW)
    mount: str = MOUNT
    core: bool = False

    def job(self, source: str, limits: Limits = ROOMY, name: str = "") -> TestJob:
        """A program held against this suite."""
        return TestJob(Program("python", source), TestSuite(tuple(self.tests), limits), id=name)


def asserts(
    code: str,
    rights: Mapping[str, str] = ADD_FEW,
    *,
    entry: str = "",
    core: bool = False,
    mount: str = MOUNT,
) -> Kind:
    return Kind((AssertTest(code, entry),), rights, mount, core)


def unit(body: str, head: str = "") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"import unittest\n{head}\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n{lines}"


def _plain(call: str) -> dict[str, str]:
    return {"plain": f"def f(a, b):\n    return {call}\n", "lambda": f"f = lambda a, b: {call}\n"}


CHECK: Final = (
    "def check(candidate):\n    assert candidate(2, 834729103) == 834729105\n"
    "    assert candidate(-7, 7919) == 7912, 'negative'\n"
    "    assert candidate(10 ** 12, 4711) == 10 ** 12 + 4711\n"
)
EQUAL: Final = "assert f(2, 834729103) == 834729105\nassert f(-7, 7919) == 7912\n"
UNIT: Final = unit(
    "self.assertEqual(f(2, 834729103), 834729105)\nself.assertTrue(f(-7, 7919) == 7912)\n"
    "self.assertNotEqual(f(-7, 7919), 7913)\n"
)
CHECKER: Final = (
    "import sys\nanswer = int(open(sys.argv[2]).read())\n"
    "expected = int(open(sys.argv[3]).read())\nsys.exit(0 if answer == expected else 1)\n"
)
JSON_CHECKER: Final = (
    "import json, sys\nanswer = json.load(open(sys.argv[2]))\n"
    "expected = json.load(open(sys.argv[3]))\nprint(answer['sum'])\n"
    "sys.exit(0 if answer['sum'] == expected['sum'] else 1)\n"
)
STDIN: Final = b"2 834729103\n"
SUM: Final = b"834729105\n"
STDIO: Final = {
    "plain": "a, b = map(int, input().split())\nprint(a + b)\n",
    "written": "import sys\nsys.stdout.write(str(sum(map(int, sys.stdin.read().split()))))\n",
    "bytes": "import sys\nsys.stdout.buffer.write(b'%d' % sum(map(int, sys.stdin.buffer.read().split())))\n",
    "main part": "def main():\n    print(sum(map(int, input().split())))\n"
    "if __name__ == '__main__':\n    main()\n",
    "exits": "import sys\nprint(sum(map(int, input().split())))\nsys.exit(0)\n",
}  # fmt: skip


def _stdio(kind: str, checker: str = "", expected: bytes = SUM, **tolerance: float) -> Kind:
    judge = Program("python", checker) if checker else None
    comparison = Comparison(kind, checker=judge, **tolerance)
    rights = STDIO
    if checker == JSON_CHECKER:
        rights = {
            "json": "import json\nprint(json.dumps({'sum': sum(map(int, input().split()))}))\n"
        }
    if kind == "exact":
        rights = {name: STDIO[name] for name in ("plain", "main part", "exits")}
    return Kind((StdioTest(STDIN, expected, comparison=comparison),), rights, PRINT_MOUNT)


def _calls(kind: str, function: str = "f", mount: str = MOUNT, **tolerance: float) -> Kind:
    comparison = Comparison(kind, **tolerance)
    cases = (((2, 834729103), 834729105), ((-7, 7919), 7912), ((10**12, 4711), 10**12 + 4711))
    rights: Mapping[str, str] = ADD
    if "." in function:
        rights = {
            "plain": "class Solution:\n    def f(self, a, b):\n        return a + b\n",
            "static": "class Solution:\n    @staticmethod\n    def f(a, b):\n        return a + b\n",
            "slots": "class Solution:\n    __slots__ = ()\n    def f(self, a, b):\n        return a + b\n",
        }
    if kind == "exact":
        rights = {name: text for name, text in ADD.items() if name != "own int"}
    tests = tuple(CallTest(function, args, value, comparison=comparison) for args, value in cases)
    return Kind(tests, rights, mount)


_RANGES: Final = {
    "list": "def f(n, start):\n    return [start + i for i in range(n)]\n",
    "tuple": "def f(n, start):\n    return tuple(start + i for i in range(n))\n",
    "range": "def f(n, start):\n    return range(start, start + n)\n",
    "generator": "def f(n, start):\n    for i in range(n):\n        yield start + i\n",
    "expression": "def f(n, start):\n    return (start + i for i in range(n))\n",
    "map": "def f(n, start):\n    return map(lambda i: start + i, range(n))\n",
    "iter": "def f(n, start):\n    return iter([start + i for i in range(n)])\n",
    "own": "class R:\n    def __init__(self, n, start):\n        self.n, self.start = n, start\n"
    "    def __iter__(self):\n        return (self.start + i for i in range(self.n))\nf = R\n",
    "items": "class R:\n    def __init__(self, n, start):\n        self.n, self.start = n, start\n"
    "    def __getitem__(self, i):\n        if i >= self.n:\n            raise IndexError(i)\n"
    "        return self.start + i\ndef f(n, start):\n    return R(n, start)\n",
    "deque": "from collections import deque\ndef f(n, start):\n    return deque(range(start, start + n))\n",
    "dict": "def f(n, start):\n    return {start + i: i for i in range(n)}\n",
    "keys": "def f(n, start):\n    return {start + i: i for i in range(n)}.keys()\n",
    "islice": "from itertools import count, islice\ndef f(n, start):\n    return islice(count(start), n)\n",
}  # fmt: skip
_RUN: Final = "[834729101, 834729102, 834729103]"
_STACKS: Final = {
    "list": """
class Stack:
    def __init__(self):
        self.items = []
    def push(self, item):
        self.items.append(item)
    def pop(self):
        if not self.items:
            raise IndexError("pop from an empty stack")
        return self.items.pop()
    def peek(self):
        return self.items[-1]
    def is_empty(self):
        return not self.items
    def __len__(self):
        return len(self.items)
""",
    "derived": """
class Base(list):
    push = list.append
class Stack(Base):
    def peek(self):
        return self[-1]
    def is_empty(self):
        return len(self) == 0
""",
    "linked": """
class Node:
    def __init__(self, value, below):
        self.value, self.below = value, below
class Stack:
    def __init__(self):
        self.top, self.count = None, 0
    def push(self, value):
        self.top, self.count = Node(value, self.top), self.count + 1
    def pop(self):
        if self.top is None:
            raise IndexError
        value, self.top, self.count = self.top.value, self.top.below, self.count - 1
        return value
    def peek(self):
        return self.top.value
    def is_empty(self):
        return self.top is None
    def __len__(self):
        return self.count
""",
}
_STACK_STEPS: Final = (
    "s = Stack()\ns.push(834729105)\ns.push(417364553)\n{0}(s.pop(), 417364553)\n"
    "{0}(s.peek(), 834729105)\n{0}(len(s), 1)\n{0}(s.pop(), 834729105)\n"
    "{0}(s.is_empty(), True)\n"
)
_SORT: Final = {
    "plain": "def f(a):\n    a.sort()\n",
    "sliced": "def f(a):\n    a[:] = sorted(a)\n",
    "list.sort": "f = list.sort\n",
    "swaps": "def f(a):\n    for i in range(len(a)):\n        for j in range(i):\n"
    "            if a[j] > a[i]:\n                a[i], a[j] = a[j], a[i]\n",
}  # fmt: skip
_APPLY: Final = {
    "plain": "def f(g, x):\n    return g(x)\n",
    "lambda": "f = lambda g, x: g(x)\n",
    "operator.call": "from operator import call as f\n",
    "map": "def f(g, x):\n    return list(map(g, [x]))[0]\n",
    "partial": "import functools\ndef f(g, x):\n    return functools.partial(g, x)()\n",
    "reduce": "import functools\ndef f(g, x):\n    return functools.reduce(lambda a, b: g(b), [0, x])\n",
}  # fmt: skip
_POINT: Final = "class Point:\n    def __init__(self, x, y):\n        self.x, self.y = x, y\n"
_POINTS: Final = {
    "plain": "def f(p):\n    return p.x + p.y\n",
    "attrgetter": "import operator\ndef f(p):\n    return sum(operator.attrgetter('x', 'y')(p))\n",
}
_NUMPY: Final = {
    "ufunc": "import numpy\nf = numpy.add\n",
    "plain": "import numpy as np\ndef f(a, b):\n    return np.asarray(a) + np.asarray(b)\n",
}
_TOTALS: Final = {
    "namedtuple": "from collections import namedtuple\nR = namedtuple('R', 'total parts')\n"
    "def f(a, b):\n    return R(a + b, (a, b))\n",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass R:\n    total: int\n"
    "def f(a, b):\n    return R(a + b)\n",
    "namespace": "from types import SimpleNamespace\ndef f(a, b):\n    return SimpleNamespace(total=a + b)\n",
    "property": "class R:\n    def __init__(self, *a):\n        self._a = a\n    @property\n"
    "    def total(self):\n        return sum(self._a)\nf = R\n",
}  # fmt: skip
_CLOSURES: Final = {
    "closure": "def f(a):\n    def g(b):\n        return a + b\n    return g\n",
    "lambda": "f = lambda a: lambda b: a + b\n",
    "partial": "import functools, operator\ndef f(a):\n    return functools.partial(operator.add, a)\n",
    "bound": "def f(a):\n    return a.__add__\n",
    "class": "class f:\n    def __init__(self, a):\n        self.a = a\n    def __call__(self, b):\n"
    "        return self.a + b\n",
}  # fmt: skip
_CONTEXTS: Final = {
    "contextmanager": "import contextlib\n@contextlib.contextmanager\ndef f(a, b):\n    yield a + b\n",
    "class": "class f:\n    def __init__(self, *a):\n        self.a = a\n    def __enter__(self):\n"
    "        return sum(self.a)\n    def __exit__(self, *a):\n        return None\n",
}  # fmt: skip
_VALIDATED: Final = {
    "plain": "def f(a, b):\n    if b < 0:\n        raise ValueError('negative: %d' % b)\n    return a + b\n",
    "own error": "class Negative(ValueError):\n    pass\ndef f(a, b):\n    if b < 0:\n"
    "        raise Negative('negative: %d' % b)\n    return a + b\n",
}  # fmt: skip
_RAISES: Final = "with {0}(ValueError):\n    f(1, -1)\n"

KINDS: Final[Mapping[str, Kind]] = {
    # HumanEval, MBPP.
    "check": asserts(CHECK, ADD, entry="f", core=True),
    "check called": asserts(f"{CHECK}\ncheck(f)\n", entry="f"),
    "asserts": asserts(EQUAL, ADD, core=True),
    "one assert": asserts("assert f(2, 834729103) == 834729105\n"),
    "assert in": asserts("assert f(2, 834729103) in [834729105, 834729106]\n"),
    "assert not unequal": asserts("assert not (f(2, 834729103) != 834729105)\n"),
    "assert near": asserts("assert abs(f(0.5, 834729104.25) - 834729104.75) < 1e-6\n"),
    "assert rounded": asserts("assert round(f(0.5, 834729104.26), 1) == 834729104.8\n"),
    "assert between": asserts("assert 834729104 < f(2, 834729103) < 834729106\n"),
    "assert all": asserts(
        "assert all(f(i, 834729105) == i + 834729105 for i in range(4))\n", core=True
    ),
    "assert list": asserts(f"assert list(f(3, 834729101)) == {_RUN}\n", _RANGES),
    "assert isclose": asserts(
        "import math\nassert math.isclose(f(0.5, 834729104.25), 834729104.75)\n", core=True
    ),
    "assert isinstance": asserts(
        "r = f(2, 834729103)\nassert isinstance(r, int) and r == 834729105\n"
    ),
    "assert looked up": asserts("assert {834729105: True}.get(f(2, 834729103))\n"),
    "assert difference": asserts("assert f(2, 834729103) - 834729105 == 0\n"),
    "assert str": asserts("assert str(f(2, 834729103)) == '834729105'\n"),
    "assert sum": asserts("assert sum([f(2, 834729103), 1]) == 834729106\n"),
    "assert type": asserts("r = f(2, 834729103)\nassert type(r) is int and r == 834729105\n",
                            {"plain": ADD["plain"], "operator": ADD["operator"]}),
    # What does not fold.
    "helper": asserts("def same(a, b):\n    return a == b\nassert same(f(2, 834729103), 834729105)\n",
                       ADD, core=True),
    "helper reversed": asserts(
        "def same(a, b):\n    return b == a\nassert same(f(2, 834729103), 834729105)\n"
    ),
    "helper near": asserts(
        "def near(a, b):\n    return abs(a - b) < 1e-6\nassert near(f(0.5, 834729104.25), 834729104.75)\n",
        core=True,
    ),
    "try": asserts(
        "try:\n    got = f(2, 834729103)\nexcept ValueError:\n    got = None\nassert got == 834729105\n"
    ),
    "try else": asserts(
        "try:\n    assert f(2, 834729103) == 834729105\nexcept AssertionError as error:\n"
        "    raise AssertionError('differs') from error\n"
    ),
    "with": asserts(
        "import contextlib\nwith contextlib.nullcontext():\n    assert f(2, 834729103) == 834729105\n"
    ),
    "f-string": asserts("assert f'{f(2, 834729103)}' == '834729105'\n"),
    "formatted": asserts(
        "x = f(0.5, 834729104.25)\nassert '%.2f' % x == '834729104.75'\n"
        "assert '{:,.1f}'.format(x) == '834,729,104.8'\n"
    ),
    "local function": asserts(
        "def run():\n    result = f(2, 834729103)\n    assert result == 834729105\nrun()\n"
    ),
    "while": asserts("n = 0\nwhile n < 3:\n    assert f(n, 834729105) == n + 834729105\n    n += 1\n"),
    "match": asserts(
        "match f(2, 834729103):\n    case 834729105:\n        ok = True\n    case _:\n        ok = False\n"
        "assert ok\n"
    ),
    "walrus": asserts("def g():\n    assert (r := f(2, 834729103)) == 834729105, r\ng()\n"),
    "global": asserts(
        "seen = []\ndef note(x):\n    seen.append(x)\nnote(f(2, 834729103))\n"
        "assert seen == [834729105] and sorted(seen) == seen and max(seen) == 834729105\n"
    ),
    "implicit math": asserts(
        "def near(a, b):\n    return math.isclose(a, b)\nassert near(f(0.5, 834729104.25), 834729104.75)\n",
        {name: f"import math\n{ADD[name]}" for name in ("plain", "lambda")},
        core=True,
    ),
    "implicit numpy": asserts(
        "def same(a, b):\n    return np.array_equal(a, b)\nassert same(f(2, 834729103), 834729105)\n",
        {name: f"import numpy as np\n{ADD[name]}" for name in ("plain", "lambda")},
    ),
    # unittest.
    "unittest": asserts(UNIT, ADD, core=True),
    "unittest import": asserts(f"from solution import f\n{UNIT}", ADD, core=True),
    "unittest star": asserts(f"from solution import *\n{UNIT}"),
    "unittest module": asserts(
        unit("self.assertEqual(solution.f(2, 834729103), 834729105)", "import solution"), ADD
    ),
    "unittest main": asserts(f"{UNIT}\nif __name__ == '__main__':\n    unittest.main()\n"),
    "unittest almost": asserts(
        unit("self.assertAlmostEqual(f(0.5, 834729104.25), 834729104.75)\n"
              "self.assertGreater(f(2, 834729103), 834729104)\nself.assertLess(f(2, 834729103), 834729106)")
    ),
    "unittest in": asserts(
        unit("self.assertIn(f(2, 834729103), {834729105})\nself.assertIsInstance(f(1, 2), int)")
    ),
    "unittest lists": asserts(
        unit("self.assertListEqual([f(i, i) for i in (417364552, 4711)], [834729104, 9422])\n"
              "self.assertCountEqual([f(1, 4711), f(1, 4712)], [4713, 4712])\n"
              "self.assertDictEqual({'a': f(2, 834729103)}, {'a': 834729105})")
    ),
    "unittest subtests": asserts(
        unit("for a, b in ((2, 834729103), (4711, 17)):\n    with self.subTest(a=a):\n"
              "        self.assertEqual(f(a, b), a + b)")
    ),
    "unittest set up": asserts(
        "import unittest\nclass TestIt(unittest.TestCase):\n    def setUp(self):\n"
        "        self.function = f\n    def test_it(self):\n"
        "        self.assertEqual(self.function(2, 834729103), 834729105)\n"
    ),
    "unittest raises": asserts(
        unit(_RAISES.format("self.assertRaises") + "self.assertEqual(f(2, 834729103), 834729105)"),
        _VALIDATED, core=True,
    ),
    # pytest.
    "pytest": asserts(f"def test_it():\n    {EQUAL.splitlines()[0]}\n", ADD, core=True),
    "pytest import": asserts(
        f"from solution import f\ndef test_it():\n    {EQUAL.splitlines()[0]}\n", ADD
    ),
    "pytest class": asserts(
        "class TestIt:\n    def setup_method(self):\n        self.a = 2\n    def test_it(self):\n"
        "        assert f(self.a, 834729103) == 834729105\n"
    ),
    "pytest parametrize": asserts(
        "import pytest\n@pytest.mark.parametrize('a, b, c', [(2, 834729103, 834729105), (-7, 7919, 7912)])\n"
        "def test_it(a, b, c):\n    assert f(a, b) == c\n"
    ),
    "pytest raises": asserts(
        "import pytest\ndef test_it():\n    with pytest.raises(ValueError, match='negative'):\n"
        "        f(1, -1)\n    assert f(2, 834729103) == 834729105\n",
        _VALIDATED,
    ),
    "pytest approx": asserts(
        "import pytest\ndef test_it():\n    assert f(0.5, 834729104.25) == pytest.approx(834729104.75)\n"
        "    assert [f(1, 4711)] == pytest.approx([4712])\n",
        core=True,
    ),
    # Strings that are run.
    "eval own": asserts("assert eval('f(2, 834729103)') == 834729105\n", entry="f"),
    "doctest": asserts(
        "import doctest\ntext = '>>> f(2, 834729103)\\n834729105\\n>>> f(-7, 7919)\\n7912\\n'\n"
        "test = doctest.DocTestParser().get_doctest(text, {'f': f}, 'add', None, 0)\n"
        "runner = doctest.DocTestRunner(verbose=False)\nrunner.run(test, out=lambda text: None)\n"
        "assert (runner.failures, runner.tries) == (0, 2)\n"
    ),
    "eval answer": asserts(
        "assert eval(f(2, 834729103)) == 834729105\n", _plain("f'{a} + {b}'"), core=True
    ),
    "eval answer bare": asserts(
        "def value(text):\n    return eval(text, {'__builtins__': {}})\n"
        "assert value(f(2, 834729103)) == 834729105\n",
        _plain("f'{a} + {b}'"),
    ),
    "exec answer": asserts(
        "space = {}\nexec(f(2, 834729103), space)\nassert space['total'] == 834729105\n",
        _plain("f'total = {a} + {b}'"),
    ),
    "int of answer": asserts("assert int(f(2, 834729103)) == 834729105\n", _plain("str(a + b)"),
                              core=True),
    "int of answer, helper": asserts(
        "def number(text):\n    return int(text)\nassert number(f(2, 834729103)) == 834729105\n",
        _plain("str(a + b)"),
    ),
    "json answer": asserts(
        "import json\nassert json.loads(f(2, 834729103)) == {'sum': 834729105}\n",
        {"plain": "import json\ndef f(a, b):\n    return json.dumps({'sum': a + b})\n"},
        core=True,
    ),
    "pattern answer": asserts(
        "import re\nassert re.fullmatch(f(2, 834729103), 'x834729105x') and not re.match(f(2, 834729103), 'y')\n",
        _plain("f'x{a + b}x'"),
    ),
    "split answer": asserts(
        "assert [int(part) for part in f(2, 834729103).split(',')] == [834729105, 834729101]\n",
        _plain("f'{a + b},{b - a}'"),
    ),
    "date answer": asserts(
        "import datetime\nassert datetime.date.fromisoformat(f(2031, 5)) == datetime.date(2031, 5, 17)\n",
        _plain("f'{a}-{b:02}-17'"),
    ),
    # What is handed over, and what comes back.
    "callback": asserts("assert f(lambda x: 3 * x + 1, 278243035) == 834729106\n", _APPLY, core=True),
    "callback class": asserts(
        "class Count:\n    def __init__(self):\n        self.calls = 0\n    def __call__(self, x):\n"
        "        self.calls += 1\n        return x\nc = Count()\nassert f(c, 834729105) == 834729105\n"
        "assert c.calls == 1\n",
        _APPLY,
    ),
    "object": asserts(f"{_POINT}assert f(Point(2, 834729103)) == 834729105\n", _POINTS, core=True),
    "handed function": asserts(
        "assert f(max, [834729105, 3]) == 834729105\nassert f(sorted, {834729105, 3}) == [3, 834729105]\n",
        {**_APPLY, "operator.call": "from operator import call as f\n"},
    ),
    "handed class": asserts(
        f"{_POINT}p = f(Point, 2, 834729103)\nassert isinstance(p, Point) and (p.x, p.y) == (834729103, 2)\n",
        {"plain": "def f(c, x, y):\n    return c(y, x)\n", "lambda": "f = lambda c, x, y: c(x=y, y=x)\n"},
    ),
    "handed generator": asserts(
        "def numbers():\n    yield 834729101\n    yield 4\nassert f(numbers()) == 834729105\n",
        {"sum": "f = sum\n", "loop": "def f(g):\n    t = 0\n    for x in g:\n        t += x\n    return t\n"},
    ),
    "mutated": asserts("a = [834729105, 4711, 17]\nf(a)\nassert a == [17, 4711, 834729105]\n", _SORT,
                        core=True),
    "iterated": asserts(
        f"got = []\nfor x in f(3, 834729101):\n    got.append(x)\nassert got == {_RUN}\n",
        _RANGES, core=True,
    ),
    "sorted": asserts(f"def g(x):\n    return sorted(x)\nassert g(f(3, 834729101)) == {_RUN}\n", _RANGES),
    "unpacked": asserts(f"a, b, c = f(3, 834729101)\nassert [a, b, c] == {_RUN}\n", _RANGES),
    "zipped": asserts(
        f"got = f(3, 834729101)\nassert [y - x for x, y in zip([0, 0, 0], got, strict=True)] == {_RUN}\n",
        _RANGES,
    ),
    "function": asserts("g = f(2)\nassert g(834729103) == 834729105\n", _CLOSURES),
    "attribute": asserts("assert f(2, 834729103).total == 834729105\n", _TOTALS),
    "method": asserts("assert f('assay-', 'Forge').swapcase() == 'ASSAY-fORGE'\n"),
    "managed": asserts("with f(2, 834729103) as got:\n    assert got == 834729105\n", _CONTEXTS),
    "coroutine": asserts(
        "import asyncio\nassert asyncio.run(f(2, 834729103)) == 834729105\n",
        {"async": "import asyncio\nasync def f(a, b):\n    await asyncio.sleep(0)\n    return a + b\n"},
    ),
    "class": asserts(_STACK_STEPS.format("assert (lambda a, b: a == b)"), _STACKS, mount=STACK_MOUNT),
    "class unittest": asserts(
        unit(_STACK_STEPS.format("self.assertEqual")), _STACKS, mount=STACK_MOUNT, core=True
    ),
    # Library values.
    "numpy close": asserts(
        "import numpy as np\nnp.testing.assert_allclose(f(np.array([1.5, 2.0]), np.array([834729103.0, 4711.5])), "
        "[834729104.5, 4713.5])\n", _NUMPY, core=True,
    ),
    "numpy equal": asserts(
        "import numpy as np\nassert np.array_equal(f(np.arange(3), 834729101), np.array([834729101, 834729102, 834729103]))\n",
        _NUMPY,
    ),
    "numpy all": asserts(
        "import numpy as np\nassert (f(np.arange(3), 834729101) == np.arange(3) + 834729101).all()\n",
        _NUMPY,
    ),
    "Counter": asserts(
        "from collections import Counter\nassert f('abracadabra') == Counter('abracadabra')\n",
        {"alias": "from collections import Counter as f\n", "dict": "def f(s):\n    return {c: s.count(c) for c in s}\n"},
    ),
    "deque": asserts(
        "from collections import deque\ndef g(x):\n    return x == deque([834729105, 4711])\nassert g(f([834729105, 4711]))\n",
        {"alias": "from collections import deque as f\n"},
    ),
    "Fraction": asserts(
        "from fractions import Fraction\ndef g(x):\n    return x == Fraction(834729105, 7919)\nassert g(f(834729105, 7919))\n",
        {"alias": "from fractions import Fraction as f\n"},
    ),
    "Decimal": asserts(
        "from decimal import Decimal\ndef g(x):\n    return x == Decimal('834.729105')\nassert g(f('834.729105'))\n",
        {"alias": "from decimal import Decimal as f\n"},
    ),
    "date": asserts(
        "import datetime\ndef g(x):\n    return x == datetime.date(2031, 5, 17)\nassert g(f(2031, 5, 17))\n",
        {"alias": "from datetime import date as f\n"},
    ),
    # Calls, and stdin and stdout.
    "calls": _calls("default"),
    "calls exact": _calls("exact"),
    "calls numeric": _calls("numeric", absolute_tolerance=1e-6),
    "calls unordered": _calls("unordered"),
    "calls method": _calls("default", "Solution.f", METHODS),
    "stdio": _stdio("default"),
    "stdio exact": _stdio("exact"),
    "stdio numeric": _stdio("numeric", relative_tolerance=1e-12),
    "stdio checker": _stdio("checker", CHECKER),
    "stdio json checker": _stdio("checker", JSON_CHECKER, b'{"sum": 834729105}\n'),
}  # fmt: skip

# A kind whose test does with the answer what only trust can do, and the group of tricks that may
# then pass, here as in plain Python. They must not fault all the same.
TRUSTED: Final[Mapping[tuple[str, str], str]] = {
    ("eval answer", "text"): "the test runs the answer: what it evaluates to is the answer",
    ("eval answer bare", "text"): "the test runs the answer: what it evaluates to is the answer",
    ("exec answer", "text"): "the test runs the answer: what it defines is the answer",
}
