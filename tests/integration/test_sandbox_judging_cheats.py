"""Tricks by which programs pass tests elsewhere: none passes here, folded or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.sandbox.domain import RunLimits, SandboxFault
from assay.sandbox.judging import assertions
from assay.sandbox.judging.model import AssertCase, CallCase, TestVerdict
from sandbox_support import ProcessBoxes, judge_python

LIMITS = RunLimits(wall_s=4.0)
SECRET = 834_729_105  # what f(3) is said to be: no program can know it

ALWAYS_EQUAL = """
class Always{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __hash__(self): return 0
    def __bool__(self): return True
    def __contains__(self, item): return True
    def __sub__(self, other): return 0
    __rsub__ = __add__ = __radd__ = __mod__ = __sub__
    def __abs__(self): return 0
    def __float__(self): return 0.0
    def __round__(self, n=None): return self
    def __instancecheck__(self, other): return True
def f(x):
    return Always()
"""

PEEK = """
import gc, sys
def f(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            if isinstance(value, int) and value > 10 ** 8:
                return value
        frame = frame.f_back
    for thing in gc.get_objects():
        values = thing.values() if isinstance(thing, dict) else thing
        if isinstance(thing, (dict, list, tuple)):
            for value in list(values):
                if type(value) is int and 8 * 10 ** 8 < value < 9 * 10 ** 8:
                    return value
    return 0
"""

CHANNEL = """
import os, json, socket, struct
def descriptors():
    for fd in range(3, 64):
        try:
            if os.readlink("/proc/self/fd/%d" % fd).startswith("socket"):
                yield fd
        except OSError:
            pass
"""

CHEATS = {
    "equal object": ALWAYS_EQUAL.format(base=""),
    "equal int": ALWAYS_EQUAL.format(base="(int)"),
    "equal float": ALWAYS_EQUAL.format(base="(float)"),
    "equal str": ALWAYS_EQUAL.format(base="(str)"),
    "equal list": ALWAYS_EQUAL.format(base="(list)"),
    "equal dict": ALWAYS_EQUAL.format(base="(dict)"),
    "the function is a class": ALWAYS_EQUAL.format(base="") + "f = Always\nAlways.__init__ = "
    "lambda self, x: None\n",
    "a metaclass": "class M(type):\n    def __eq__(c, o): return True\n    __hash__ = None\n"
    "class R(metaclass=M): pass\ndef f(x): return R\n",
    "a class that lies": "class L:\n    __class__ = int\n    def __eq__(s, o): return True\n"
    "def f(x): return L()\n",
    "frames and gc": PEEK,
    "builtins patched": "import builtins\nbuiltins.abs = builtins.round = lambda *a: 0\n"
    "builtins.isinstance = lambda *a: True\nbuiltins.len = lambda a: 0\n"
    "builtins.AssertionError = type('E', (Exception,), {})\ndef f(x): return 0\n",
    "names shadowed": "abs = round = len = lambda *a: 0\nset = sorted = lambda *a: 0\n"
    "def f(x): return 0\n",
    "unittest patched": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
    "def f(x): return 0\n",
    "json patched": "import json\njson.loads = json.dumps = lambda *a, **k: '1'\n"
    "import json.encoder\njson.encoder.encode_basestring_ascii = lambda s: '1'\n"
    "def f(x): return 0\n",
    "codec patched": "import sys\nm = sys.modules.get('assay.sandbox.harness.codec')\n"
    "if m:\n    m._dumps = lambda tree: tree\ndef f(x): return 0\n",
    "harness patched": "import sys\nm = sys.modules['assay.sandbox.harness.candidate']\n"
    "m._Candidate._answer = lambda self, content: True\ndef f(x): return 0\n",
    "settrace": "import sys\ndef t(*a): return t\nsys.settrace(t)\n"
    "sys.setprofile(lambda *a: None)\ndef f(x): return 0\n",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 0\n",
    "excepthook": "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\n"
    "def f(x): raise ValueError\n",
    "os._exit in a call": "import os\ndef f(x): os._exit(0)\n",
    "sys.exit in a call": "import sys\ndef f(x): sys.exit(0)\n",
    "os._exit at once": "import os\nos._exit(0)\n",
    "sys.exit at once": "import sys\nsys.exit(0)\n",
    "a signal": "import os\ndef f(x): os.kill(os.getpid(), 15)\n",
    "closed streams": "import os\nos.closerange(0, 64)\ndef f(x): return 0\n",
    "a sentinel printed": "print('passed OK 1 test 0 failures')\ndef f(x): print('passed')\n",
    "done, written early": CHANNEL + "for fd in descriptors():\n"
    "    body = b'Dpassed'\n    os.write(fd, struct.pack('!I', len(body)) + body)\n"
    "def f(x): return 0\n",
    "answers, written early": CHANNEL + "for fd in descriptors():\n    for i in range(8):\n"
    "        body = b'A' + json.dumps(['0' * 16, 'value', 1]).encode()\n"
    "        os.write(fd, struct.pack('!I', len(body)) + body)\ndef f(x): return 0\n",
    "an answer too many": CHANNEL + "def f(x):\n    for fd in descriptors():\n"
    "        body = b'A' + json.dumps(['0' * 16, 'value', 1]).encode()\n"
    "        os.write(fd, struct.pack('!I', len(body)) + body)\n    return 0\n",
    "rubbish": CHANNEL + "def f(x):\n    for fd in descriptors():\n"
    "        os.write(fd, os.urandom(64))\n    os._exit(0)\n",
    "a huge frame announced": CHANNEL + "def f(x):\n    for fd in descriptors():\n"
    "        os.write(fd, b'\\xff\\xff\\xff\\xff' + b'A' * 1000)\n    os._exit(0)\n",
    "a callback unasked": CHANNEL + "for fd in descriptors():\n"
    "    body = b'K' + json.dumps(['call', 0, [], {}]).encode()\n"
    "    os.write(fd, struct.pack('!I', len(body)) + body)\ndef f(x): return 0\n",
    "a fork that answers": "import os\nos.fork()\ndef f(x): return 0\n",
    "a fork in a call": "import os\ndef f(x):\n    os.fork()\n    return os.getpid() % 2\n",
    "a huge result": "def f(x): return [0] * 10_000_000\n",
    "a deep result": "def f(x):\n    r = []\n    for _ in range(100_000):\n        r = [r]\n"
    "    return r\n",
    "a cycle": "def f(x):\n    r = []\n    r.append(r)\n    return r\n",
    "a wide cycle": "def f(x):\n    r = []\n    for _ in range(64):\n        r = [r, r]\n"
    "    return r\n",
    "colliding elements": "def f(x): return {(2 ** 61 - 1) * i for i in range(1, 3000)}\n",
    "nan": "def f(x): return float('nan')\n",
    "infinity": "def f(x): return float('inf')\n",
    "a true value": "def f(x): return True\n",
    "a patched import": "import sys, types\nm = types.ModuleType('math')\n"
    "m.isclose = lambda *a, **k: True\nm.fabs = lambda x: 0\nsys.modules['math'] = math = m\n"
    "def f(x): return 0\n",
    "an exception to be caught": "def f(x): raise AssertionError('passed')\n",
    "a base exception": "class B(BaseException): pass\ndef f(x): raise B\n",
    "an exception that cannot be shown": "class B(Exception):\n    def __str__(s): raise s\n"
    "    __repr__ = __str__\ndef f(x): raise B\n",
    "pickle": "class R:\n    def __reduce__(s): return (print, ('passed',))\n"
    "    def __reduce_ex__(s, p): return (print, ('passed',))\ndef f(x): return R()\n",
}  # fmt: skip

EQUALITY = f"assert f(3) == {SECRET}"
CODES = {
    "folded": EQUALITY,
    "near": f"assert abs(f(3) - {SECRET}) < 1e-6",
    "isclose": f"import math\nassert math.isclose(f(3), {SECRET})",
    "in": f"assert f(3) in [{SECRET}]",
    "tested": f"answers = {{3: {SECRET}}}\nfor k in answers.keys():\n    assert f(k) == answers[k]",
    "tested near": f"def near(a, b):\n    return abs(a - b) < 1e-6\nassert near(f(3), {SECRET})",
    "tested the other way": f"def same(a, b):\n    return b == a\nassert same(f(3), {SECRET})",
    "unit test": "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n"
    f"        self.assertEqual(f(3), {SECRET})\n        self.assertTrue({SECRET} == f(3))",
    "pytest": f"import pytest\ndef test_it():\n    assert f(3) == pytest.approx({SECRET})",
}


@pytest.fixture(scope="module")
def boxes() -> Iterator[ProcessBoxes]:
    made = ProcessBoxes()
    yield made
    made.close()


@pytest.mark.parametrize("cheat", CHEATS)
def test_no_trick_passes_a_call(boxes: ProcessBoxes, cheat: str) -> None:
    test = CallCase("a", "f", (3,), SECRET, limits=LIMITS)
    (outcome,) = judge_python(boxes, CHEATS[cheat], test)
    assert outcome.verdict is not TestVerdict.PASSED


@pytest.mark.parametrize("code", ["folded", "tested near"])
@pytest.mark.parametrize("cheat", CHEATS)
def test_no_trick_passes_assertions(boxes: ProcessBoxes, cheat: str, code: str) -> None:
    test = AssertCase("a", CODES[code], limits=LIMITS)
    (outcome,) = judge_python(boxes, CHEATS[cheat], test)
    assert outcome.verdict is not TestVerdict.PASSED, outcome


@pytest.mark.exhaustive
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("cheat", CHEATS)
def test_no_trick_passes_any_kind_of_assertion(boxes: ProcessBoxes, cheat: str, code: str) -> None:
    test = AssertCase("a", CODES[code], limits=LIMITS)
    (outcome,) = judge_python(boxes, CHEATS[cheat], test)
    assert outcome.verdict is not TestVerdict.PASSED, outcome


@pytest.mark.parametrize("code", CODES)
def test_the_right_answer_passes_all_of_these(boxes: ProcessBoxes, code: str) -> None:
    source = f"def f(x):\n    return {SECRET}\n"
    (outcome,) = judge_python(boxes, source, AssertCase("a", CODES[code]))
    assert outcome.verdict is TestVerdict.PASSED, outcome.explanation


LOOPS = {
    "map": "for value, wanted in zip(map(f, [3, 4]), [{0}, {0}]):\n    assert value == wanted",
    "comprehension": "assert [*map(f, [3])] in [[], [{0}]]",
    "iter": "for value in iter(lambda: f(3), {0}):\n    assert False",
    "unit test": "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n"
    "        for value in map(f, [3]):\n            self.assertEqual(value, {0})",
}  # fmt: skip


@pytest.mark.parametrize("code", LOOPS)
@pytest.mark.parametrize(
    "error",
    [
        "StopIteration",
        "StopAsyncIteration",
        "GeneratorExit",
        "KeyboardInterrupt",
        "SystemExit(0)",
        "type('S', (StopIteration,), {})",
        "__import__('unittest').SkipTest",
    ],
)
def test_an_exception_that_ends_loops_in_silence_does_not_pass(
    boxes: ProcessBoxes, error: str, code: str
) -> None:
    source = f"def f(x):\n    raise {error}\n"
    (outcome,) = judge_python(boxes, source, AssertCase("a", LOOPS[code].format(SECRET)))
    assert outcome.verdict is TestVerdict.RUNTIME_ERROR, outcome.explanation


LISTEN = """
import sys, os
class Ear:
    def __getattribute__(self, name): return self
    def __call__(self, *a, **k):
        heard(a, k)
        return self
for name in ("__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__ __sub__ __rsub__ __radd__ __mul__ "
             "__contains__ __mod__ __and__ __xor__ __or__").split():
    setattr(Ear, name, lambda self, other: heard(other) or True)
seen = []
def heard(*things):
    seen.append(things)
    sys.stderr.write(repr(things) + "\\n")
    sys.stderr.flush()
def f(x):
    heard(x)
    return Ear()
"""


@pytest.mark.parametrize("code", CODES)
def test_the_expected_value_never_enters_the_candidate(boxes: ProcessBoxes, code: str) -> None:
    (outcome,) = judge_python(boxes, LISTEN, AssertCase("a", CODES[code]))
    assert outcome.verdict is not TestVerdict.PASSED
    assert outcome.record is not None
    assert b"3" in outcome.record.stderr.data
    assert str(SECRET).encode() not in outcome.record.stderr.data


def test_a_callback_shows_the_candidate_nothing_of_the_tests(boxes: ProcessBoxes) -> None:
    source = """
def f(callback):
    found = []
    for name in ("__globals__", "__code__", "__closure__", "_ask", "func_globals", "gi_frame"):
        try:
            found.append(getattr(callback, name))
        except AttributeError:
            pass
    return found
"""
    code = f"expected = {SECRET}\nassert f(lambda: expected) == []"
    (outcome,) = judge_python(boxes, source, AssertCase("a", code))
    assert outcome.verdict in {TestVerdict.PASSED, TestVerdict.WRONG_ANSWER}
    assert str(SECRET) not in outcome.explanation


def test_a_harness_that_does_not_come_up_is_a_fault(
    boxes: ProcessBoxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox_support.HARNESS", "import sys; sys.exit(1)")
    for code in ("folded", "tested"):
        with pytest.raises(SandboxFault) as caught:
            judge_python(boxes, "def f(x): return 1", AssertCase("a", CODES[code]))
        assert caught.value.reason == "WORKER_DIED"
    with pytest.raises(SandboxFault):
        judge_python(boxes, "def f(x): return 1", CallCase("a", "f", (1,), 1))


def test_the_listed_code_is_folded_where_it_says_so() -> None:
    assert assertions.fold(CODES["folded"], "") is not None
    assert assertions.fold(CODES["tested"], "") is None
