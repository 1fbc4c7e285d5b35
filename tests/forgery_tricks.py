"""Programs that know nothing of what is expected and try to pass, or to fault, all the same.

Each defines `trick`, or ends or takes over before it comes to that; a kind of suites (`forgeries`)
mounts it under the name that its tests use. They come in groups, by what they play with:

    equal, liars      objects that answer comparisons, conversions and searches as it suits them
    values            everything that a function can return
    text              texts that attack who evaluates, parses or converts them
    raises            exceptions, and what looks like one
    ends              exits, signals, forks, threads, closed descriptors
    library           a function of a library as the program
    shadows           names of the tests' and of the built-ins, defined in the program
    harness           objects of the harness, found by frames and by gc
    wire              frames, written by the program's own hand (`bench.sandbox_puppet`)

and two which take time: `endless`, under a short limit, and `costly`, which make the judge work.
"""

# ruff: noqa: E501 - programs in tables, one in a line

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from forgery_wire import ENDLESS as ENDLESS_WIRE
from forgery_wire import HARNESS, WIRE, returning

_ALWAYS: Final = """
def yes(*a, **k): return True
def nil(*a, **k): return 0
def body(self):
    def same(*a, **k): return self
    return same
space = dict(
    __eq__=yes, __ne__=nil, __lt__=yes, __le__=yes, __gt__=yes, __ge__=yes, __req__=yes, __bool__=yes,
    __contains__=yes, __hash__=nil, __sub__=nil, __rsub__=nil, __add__=nil, __radd__=nil, __mod__=nil,
    __abs__=nil, __float__=lambda s: 0.0, __int__=nil, __index__=nil, __len__=nil, __round__=nil,
    __instancecheck__=yes, __subclasscheck__=yes, __iter__=lambda s: iter(()), __getitem__=nil,
    __format__=lambda s, f: "", __call__=lambda s, *a, **k: s, __enter__=lambda s: s,
    __exit__=yes, __array_ufunc__=yes, __array_function__=yes, __reduce__=yes, __copy__=lambda s: s,
    __deepcopy__=lambda s, m: s, __getattr__=lambda s, n: s, __await__=lambda s: iter(()),
)
"""
_BASES: Final = {
    "object": ("object", "()"),
    "int": ("int", "(1)"),
    "float": ("float", "(1.0)"),
    "complex": ("complex", "(1)"),
    "str": ("str", "('1')"),
    "bytes": ("bytes", "(b'1')"),
    "list": ("list", "([1])"),
    "tuple": ("tuple", "((1,))"),
    "dict": ("dict", "({1: 1})"),
    "set": ("set", "({1})"),
    "frozenset": ("frozenset", "({1})"),
    "Fraction": ("__import__('fractions').Fraction", "(1, 3)"),
    "Decimal": ("__import__('decimal').Decimal", "(1)"),
    "deque": ("__import__('collections').deque", "([1])"),
    "Counter": ("__import__('collections').Counter", "('a')"),
    "defaultdict": ("__import__('collections').defaultdict", "(int)"),
    "date": ("__import__('datetime').date", "(2000, 1, 1)"),
    "datetime": ("__import__('datetime').datetime", "(2000, 1, 1)"),
    "exception": ("Exception", "()"),
    "module": ("__import__('types').ModuleType", "('m')"),
    "numpy array": ("__import__('numpy').ndarray", "(3)"),
    "numpy float": ("__import__('numpy').float64", "(1)"),
    "Path": ("type(__import__('pathlib').Path())", "('.')"),
    "Enum": ("__import__('enum').IntFlag", "(0)"),
}  # fmt: skip
EQUAL: Final = {
    **{
        name: returning(f"Always{made}", f"{_ALWAYS}\nAlways = type('Always', ({base},), space)")
        for name, (base, made) in _BASES.items()
        if name != "Enum"
    },
    "a metaclass": returning("R", f"{_ALWAYS}\nM = type('M', (type,), space)\nclass R(metaclass=M): pass"),
    "a metaclass of exceptions": returning(
        "R", f"{_ALWAYS}\nM = type('M', (type,), space)\nclass R(Exception, metaclass=M): pass"
    ),
    "the class itself": f"{_ALWAYS}\nspace['__init__'] = lambda *a, **k: None\n"
    "trick = type('Always', (), space)\n",
    "the instance itself": f"{_ALWAYS}\ntrick = type('Always', (), space)()\n",
    "in a list": returning("[Always()]", f"{_ALWAYS}\nAlways = type('Always', (int,), space)"),
    "in a dict": returning("{'sum': Always()}", f"{_ALWAYS}\nAlways = type('Always', (str,), space)"),
    "as a key": returning("{Always(): Always()}", f"{_ALWAYS}\nAlways = type('Always', (int,), space)"),
    "as state": returning(
        "A(Always())",
        f"{_ALWAYS}\nAlways = type('Always', (), space)\nclass A:\n    def __init__(self, x):\n"
        "        self.total = self.x = x\n    def __eq__(self, o): return True\n",
    ),
    "yielded": f"{_ALWAYS}\nAlways = type('Always', (), space)\ndef trick(*a, **k):\n"
    "    yield Always()\n    yield Always()\n    yield Always()\n",
    "awaited": f"{_ALWAYS}\nAlways = type('Always', (), space)\nasync def trick(*a, **k):\n"
    "    return Always()\n",
}  # fmt: skip
LIARS: Final = {
    **{
        f"__class__ is {kind}": returning(
            "Lie()", f"class Lie:\n    __class__ = {kind}\n    def __eq__(s, o): return True\n"
        )
        for kind in ("int", "str", "float", "list", "dict", "bool", "type", "set", "bytes")
    },
    "__class__ raises": returning(
        "Lie()", "class Lie:\n    @property\n    def __class__(self): raise SystemExit(0)\n"
    ),
    "__class__ changes": returning(
        "Lie()",
        "import random\nclass Lie:\n    @property\n    def __class__(self):\n"
        "        return random.choice([int, str, list, dict, float, type, set])\n",
    ),
    "bool is true": returning("L()", "class L:\n    def __bool__(s): return True\n"),
    "bool of no bool": returning("L()", "class L:\n    def __bool__(s): return 5\n"),
    "len": returning("L()", "class L:\n    def __len__(s): return 10 ** 12\n"),
    "len below 0": returning("L()", "class L:\n    def __len__(s): return -1\n"),
    "iter of itself": returning("L()", "class L:\n    def __iter__(s): return s\n    def __next__(s): raise StopIteration\n"),
    "iter of no iterator": returning("L()", "class L:\n    def __iter__(s): return 5\n"),
    "next raises": returning("L()", "class L:\n    def __iter__(s): return s\n    def __next__(s): raise GeneratorExit\n"),
    "index": returning("L()", "class L:\n    def __index__(s): return 10 ** 5000\n    __int__ = __index__\n"),
    "index of no int": returning("L()", "class L:\n    def __index__(s): return 'a'\n    __int__ = __float__ = __index__\n"),
    "float": returning("L()", "class L:\n    def __float__(s): return float('nan')\n"),
    "format": returning("L()", "class L:\n    def __format__(s, f): return f * 9\n    def __str__(s): return '%s' * 9\n"),
    "repr is huge": returning("L()", "class L:\n    def __repr__(s): return 'x' * 10 ** 7\n    __str__ = __repr__\n"),
    "repr raises": returning("L()", "class L:\n    def __repr__(s): raise SystemExit(0)\n    __str__ = __hash__ = __repr__\n"),
    "repr of no str": returning("L()", "class L:\n    def __repr__(s): return 5\n    __str__ = __repr__\n"),
    "hash": returning("L()", "class L:\n    def __hash__(s): return 834729105\n    def __eq__(s, o): return True\n"),
    "getattribute": returning("L()", "class L:\n    def __getattribute__(s, n): return s\n    def __call__(s, *a, **k): return s\n"),
    "getattribute exits": returning("L()", "import os\nclass L:\n    def __getattribute__(s, n): raise SystemExit(0)\n"),
    "a descriptor": returning("L", "class L:\n    def __get__(s, *a): return s\n    def __set__(s, *a): pass\n    def __eq__(s, o): return True\nL = L()"),
    "a mapping": returning("L()", "import collections.abc\nclass L(collections.abc.Mapping):\n    def __getitem__(s, k): return s\n    def __iter__(s): return iter('a')\n    def __len__(s): return 1\n    def __eq__(s, o): return True\n"),
    "slots that lie": returning("L()", "class L:\n    __slots__ = ('a',)\n    def __eq__(s, o): return True\n    a = property(lambda s: 1 / 0) if 0 else None\n" .replace("    __slots__ = ('a',)\n", "    __slots__ = ()\n")),
    "dict that lies": returning("L()", "class L:\n    def __eq__(s, o): return True\n    __dict__ = property(lambda s: {'a': s})\n"),
    "module that lies": returning("L()", "class L:\n    __module__ = 'builtins'\n    def __eq__(s, o): return True\nL.__name__ = L.__qualname__ = 'int'\n"),
    "class called int": returning("int_", "int_ = type('int', (), {'__module__': 'builtins', '__eq__': lambda s, o: True})"),
    "origin that lies": "class F:\n    __module__ = 'operator'\n    __qualname__ = __name__ = 'truth'\n    def __call__(s, *a, **k): return 1\ntrick = F()\n",
    "origin in unittest.mock": "class F:\n    def __call__(s, *a, **k): return 1\ntrick = F()\ntrick.__module__ = 'unittest.mock'\ntrick.__qualname__ = 'ANY'\n",
    "origin in builtins": "def trick(*a, **k): return 1\ntrick.__module__ = 'builtins'\ntrick.__qualname__ = 'object'\n",
    "origin is MagicMock": "def trick(*a, **k): return 1\ntrick.__module__ = 'unittest.mock'\ntrick.__qualname__ = 'MagicMock'\n",
    "origin exits": "def trick(*a, **k): return 1\ntrick.__module__ = 'os'\ntrick.__qualname__ = '_exit'\n",
    "origin is a script": "def trick(*a, **k): return 1\ntrick.__module__ = 'this'\ntrick.__qualname__ = 's'\n",
    "origin is deep": "def trick(*a, **k): return 1\ntrick.__module__ = 'os'\ntrick.__qualname__ = 'sys.modules.clear'\n",
    "an argument's own": "def trick(*a, **k):\n    return a[0] if a else None\n",
    "all arguments": "def trick(*a, **k):\n    return a\n",
    "arguments changed": "def trick(*a, **k):\n    for x in a:\n        try:\n            x.__init__()\n"
    "        except Exception:\n            pass\n        if isinstance(x, list):\n            x[:] = [x] * 3\n"
    "        if isinstance(x, dict):\n            x.clear()\n    return a[0] if a else None\n",
    "arguments' attributes": "def trick(*a, **k):\n    for x in a:\n        for n in ('x', 'y', '__class__', '__eq__', 'calls'):\n"
    "            try:\n                setattr(x, n, 10 ** 5000)\n            except Exception:\n                pass\n    return 1\n",
    "arguments called oddly": "def trick(*a, **k):\n    for x in a:\n        for given in ((), (x,), (10 ** 5000,), (object(),), (a,) * 9):\n"
    "            try:\n                x(*given)\n            except BaseException:\n                pass\n    return 1\n",
    "an argument called for ever inside": "def trick(*a, **k):\n    def again(*b):\n        return a[0](again)\n    return again()\n",
}  # fmt: skip

_VALUES: Final = {
    "10**5000": "10 ** 5000", "-10**5000": "-10 ** 5000", "2**100000": "2 ** 100000", "2**4000001": "2 ** 4_000_001",
    "Fraction": "Fraction(10 ** 5000 + 1, 7)", "Fraction below": "Fraction(7, 10 ** 5000)", "a list of Fractions": "[Fraction(10 ** 5000 + 1, 7)]",
    "range": "range(10 ** 5000)", "range of huge": "range(10 ** 5000, 10 ** 5000 + 3)", "range 10**12": "range(10 ** 12)",
    "deque": "deque([10 ** 5000])", "deque of deques": "deque([deque([])])", "bounded deque": "deque([1], maxlen=1)",
    "tuple of huge": "(10 ** 5000,)", "set of huge": "{10 ** 5000}", "dict of huge": "{10 ** 5000: 10 ** 5000}", "Counter of huge": "Counter({10 ** 5000: 10 ** 5000})",
    "complex": "complex(1, 2)", "complex nan": "complex(float('nan'), float('inf'))", "nan": "float('nan')", "inf": "float('inf')", "-inf": "-float('inf')",
    "1e308": "1e308", "-0.0": "-0.0", "5e-324": "5e-324", "True": "True", "False": "False", "None": "None", "0": "0", "empty text": "''",
    "Decimal": "Decimal('1E+9999')", "Decimal sNaN": "Decimal('sNaN')", "Decimal NaN": "Decimal('-NaN123')", "Decimal inf": "Decimal('Infinity')", "Decimal long": "Decimal('9' * 5001)", "Decimal tiny": "Decimal('1E-999999')",
    "Decimals": "[Decimal('sNaN'), Decimal('NaN')]", "set of NaN": "{Decimal('NaN'), float('nan')}",
    "bytes": "b'\\xff' * 100", "bytearray": "bytearray(b'1')", "surrogates": "'\\ud800\\udfff'", "surrogates in a dict": "{'\\ud800': '\\udc80'}", "NUL": "'\\0' * 100", "controls": "'\\x1b[2J\\r\\n\\u202e'",
    "long text": "'9' * 5_000_000", "long bytes": "b'9' * 5_000_000", "many": "[0] * 3_000_000", "many lists": "[[]] * 200_000", "long keys": "{'9' * 100_000: i for i in range(3)}",
    "deep 99": "deep(99)", "deep 101": "deep(101)", "deep 10**5": "deep(100_000)", "deep dict": "deep_dict(90)", "deep tuple": "deep_tuple(90)", "wide cycle": "wide()", "cycle": "cycle()", "dict cycle": "dict_cycle()",
    "module": "__import__('os')", "type": "type", "object": "object", "int": "int", "object()": "object()", "exception": "ValueError('no')", "exception class": "AssertionError", "StopIteration": "StopIteration(1)", "NotImplemented": "NotImplemented", "Ellipsis": "...",
    "itself": "trick", "lambda": "lambda *a, **k: 1", "print": "print", "len": "len", "slice": "slice(1, 2, 3)", "memoryview": "memoryview(b'123')", "array": "__import__('array').array('i', [1, 2])", "mock": "MagicMock()", "mock.ANY": "ANY", "mock call": "call(1)", "AsyncMock": "__import__('unittest.mock').mock.AsyncMock()", "sentinel": "__import__('unittest.mock').mock.sentinel.x", "Mock equal": "MagicMock(__eq__=lambda *a: True)",
    "open file": "open('/dev/null')", "stdin": "__import__('sys').stdin", "socket": "__import__('socket').socket()", "generator": "(i for i in ())", "coroutine": "coroutine()", "async generator": "async_generator()", "iterator": "iter([])", "frame": "__import__('sys')._getframe()", "code": "trick.__code__", "traceback": "trace()",
    "weakref": "__import__('weakref').ref(trick)", "proxy": "__import__('weakref').proxy(trick)", "lock": "__import__('threading').Lock()", "thread": "__import__('threading').current_thread()", "regex": "__import__('re').compile('(a+)+$')", "Path": "__import__('pathlib').Path('/')", "UUID": "__import__('uuid').UUID(int=1)", "Enum": "Colour.RED", "IntEnum": "Number.ONE", "flag": "Flag(1)", "namedtuple": "NT(1, 2)", "dataclass": "DC(1)", "TypedDict": "dict(a=1)", "ip": "__import__('ipaddress').ip_address('1.1.1.1')",
    "datetime": "dt.datetime.max", "datetime zoned": "dt.datetime.now(dt.timezone.utc)", "date": "dt.date.min", "time": "dt.time.max", "timedelta": "dt.timedelta.max", "timezone": "dt.timezone.utc",
    "numpy int": "np.int64(1)", "numpy nan": "np.float64('nan')", "numpy array": "np.arange(6).reshape(2, 3)", "numpy empty": "np.array([])", "numpy objects": "np.array([10 ** 5000, None], dtype=object)", "numpy itself": "own_array()", "numpy record": "np.array([(1, 2.0)], dtype=[('a', int), ('b', float)])", "numpy text": "np.array(['a', 'b'])", "numpy dates": "np.array(['2000-01-01'], dtype='M8[D]')", "numpy bool": "np.array([True, True])", "numpy True": "np.True_", "numpy masked": "np.ma.masked", "numpy matrix": "np.ma.masked_all((2,))", "numpy longdouble": "np.longdouble(1)", "numpy complex": "np.complex128(1j)", "numpy shapes": "np.zeros((0, 10 ** 9))", "numpy broadcast": "np.broadcast_to(np.int8(1), (10 ** 6, 10 ** 6))", "numpy wrong ufunc": "np.frompyfunc(lambda *a: True, 2, 1)", "numpy poly": "np.polynomial.Polynomial([1])",
    "dict view": "{}.items()", "mapping proxy": "__import__('types').MappingProxyType({1: 2})", "UserDict": "__import__('collections').UserDict({1: 2})", "UserInt": "__import__('collections').UserString('1')", "ChainMap": "__import__('collections').ChainMap({1: 2})", "OrderedDict": "OrderedDict(a=10 ** 5000)", "defaultdict": "defaultdict(lambda: True)", "partial": "__import__('functools').partial(trick)", "GenericAlias": "list[int]", "Union": "int | str", "TypeVar": "__import__('typing').TypeVar('T')", "Any": "__import__('typing').Any", "string template": "__import__('string').Template('$a')", "struct": "__import__('struct').Struct('i')", "sqlite": "__import__('sqlite3').connect(':memory:')", "ctypes": "__import__('ctypes').c_int(1)", "globals": "globals()", "builtins": "__builtins__", "modules": "__import__('sys').modules", "environ": "__import__('os').environ",
}  # fmt: skip
_VALUES_SETUP: Final = """
import datetime as dt
import enum
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
NT = namedtuple("NT", "total b")
class Colour(enum.Enum):
    RED = 1
class Number(enum.IntEnum):
    ONE = 1
class Flag(enum.IntFlag):
    A = 1
@dataclass
class DC:
    total: int
def deep(n):
    r = []
    for _ in range(n): r = [r]
    return r
def deep_dict(n):
    r = {}
    for _ in range(n): r = {1: r}
    return r
def deep_tuple(n):
    r = ()
    for _ in range(n): r = (r,)
    return r
def cycle():
    r = []
    r.append(r)
    return r
def dict_cycle():
    r = {}
    r[1] = r
    return r
def wide():
    r = []
    for _ in range(64): r = [r, r]
    return r
async def coroutine(): return 1
async def async_generator(): yield 1
def trace():
    try:
        1 / 0
    except ZeroDivisionError as error:
        return error.__traceback__
"""
_NUMPY_SETUP: Final = """
import numpy as np
def own_array():
    a = np.empty(1, dtype=object)
    a[0] = a
    return a
"""
_MOCK_SETUP: Final = "from unittest.mock import ANY, MagicMock, call\n"


def _setup_for(expression: str) -> str:
    setup = _VALUES_SETUP
    if "np." in expression or "own_array" in expression:
        setup += _NUMPY_SETUP
    if any(name in expression for name in ("ANY", "Mock(", "call(")):
        setup += _MOCK_SETUP
    return setup


VALUES: Final = {name: returning(text, _setup_for(text)) for name, text in _VALUES.items()}

_TEXTS: Final = {
    "exits": "__import__('os')._exit(0)", "exits badly": "__import__('os')._exit(3)", "aborts": "__import__('os').abort()", "kills": "__import__('os').kill(__import__('os').getpid(), 9)", "sys.exit": "__import__('sys').exit(0)",
    "raises SystemExit": "(_ for _ in ()).throw(SystemExit(0))", "raises interrupt": "(_ for _ in ()).throw(KeyboardInterrupt)", "raises skip": "(_ for _ in ()).throw(__import__('unittest').SkipTest('no'))",
    "always equal": "type('E', (), {'__eq__': lambda *a: True})()", "exit()": "exit()", "quit": "quit(0)",
    "no end of brackets": "(" * 10_000, "brackets": "(" * 150 + ")" * 150, "nested lists": "[" * 10_000 + "]" * 10_000, "signs": "-" * 100_000 + "1", "a syntax error": "1 +", "an unknown name": "nothing_of_that_name", "an import error": "__import__('nothing_of_that_name')",
    "a large power": "9**9**6", "a huge text": "'x' * 10**9", "recursion": "(lambda f: f(f))(lambda f: f(f))", "NUL": "1\0", "surrogate": "'\\ud800'", "bad coding": "# -*- coding: nothing -*-\n1", "statement": "import os", "total": "total = type('E', (), {'__eq__': lambda *a: True})()", "total exits": "total = __import__('os')._exit(0)", "an assertion": "assert False", "raise": "raise SystemExit(0)", "raise name": "raise NameError('f', name='x')",
    "long digits": "9" * 5_000, "digits and more": "9" * 5_000_000, "letters": "x", "empty": "", "spaces": " ", "nan": "nan", "inf": "inf", "1e999": "1e999", "underscores": "1_0", "arabic digits": "\u0661\u0662", "comma": ",", "minus": "-",
    "json deep": "[" * 100_000, "json dict": '{"sum": 1e999}', "json long": '{"sum": ' + "9" * 5_000 + "}", "json NaN": '{"sum": NaN}', "json twice": '{"sum": 1, "sum": 2}', "json list": "[1]", "json null": "null", "json text": '"a"',
    "pattern broken": "(", "pattern slow": "(x+x+)+y", "pattern of anything": ".*", "pattern large": "(a{1000}){1000}", "pattern groups": "()" * 200, "pattern flags": "(?z)", "date": "9999-99-99", "date zero": "0000-00-00", "format": "%s%s%s%n", "braces": "{0.__class__}{1}",
    "1 passed": "1 passed in 0.01s", "OK": "OK", "doctest": "834729105 ELLIPSIS ...",
}  # fmt: skip
# Prefixed parts are run by a judge that evaluates; long computations stand in `ENDLESS`.
_SLOW_TEXTS: Final = ("a large power", "a huge text", "pattern slow", "pattern large")
TEXT: Final = {
    name: returning(repr(text)) for name, text in _TEXTS.items() if name not in _SLOW_TEXTS
}

_RAISES: Final = {
    "AssertionError": "AssertionError('passed')", "bare AssertionError": "AssertionError", "SkipTest": "__import__('unittest').SkipTest('no')", "unittest _ShouldStop": "__import__('unittest.case').case._ShouldStop", "unittest UnexpectedSuccess": "__import__('unittest.case').case._UnexpectedSuccess",
    "SystemExit(0)": "SystemExit(0)", "SystemExit(None)": "SystemExit", "SystemExit(huge)": "SystemExit(10 ** 5000)", "KeyboardInterrupt": "KeyboardInterrupt", "GeneratorExit": "GeneratorExit", "StopIteration": "StopIteration(True)", "StopAsyncIteration": "StopAsyncIteration", "CancelledError": "__import__('asyncio').CancelledError", "BaseException": "BaseException", "BaseExceptionGroup": "BaseExceptionGroup('g', [SystemExit(0)])", "ExceptionGroup": "ExceptionGroup('g', [AssertionError('a')])", "MemoryError": "MemoryError", "RecursionError": "RecursionError", "NameError": "NameError('f', name='f')", "NameError of the tests": "NameError(\"name 'unittest' is not defined\", name='unittest')", "ImportError": "ImportError('no', name='unittest')", "ModuleNotFoundError": "ModuleNotFoundError('solution', name='solution')", "SyntaxError": "SyntaxError('bad', ('f', 1, 2, 'x'))", "IndentationError": "IndentationError('bad')", "UnicodeDecodeError": "UnicodeDecodeError('a', b'b', 0, 1, 'c')", "UnicodeEncodeError": "UnicodeEncodeError('a', 'b', 0, 1, 'c')", "OSError": "OSError(2, 'no', 'f')", "EOFError": "EOFError", "BrokenPipeError": "BrokenPipeError(32, 'x')", "TimeoutError": "TimeoutError", "ZeroDivisionError": "ZeroDivisionError", "ValueError": "ValueError('negative: -1')", "TypeError": "TypeError('negative')", "KeyError huge": "KeyError(10 ** 5000)", "ValueError huge": "ValueError(10 ** 5000)", "ValueError Fraction": "ValueError(__import__('fractions').Fraction(10 ** 5000, 7))", "IndexError": "IndexError", "AttributeError": "AttributeError('a', name='b', obj=10 ** 5000)", "Warning": "UserWarning('w')", "DeprecationWarning": "DeprecationWarning('w')", "no exception": "5", "a class that is none": "int",
    "long": "ValueError('x' * 10 ** 7)", "surrogate": "ValueError('\\ud800')", "newlines": "ValueError('\\n' * 1000 + 'passed')", "many arguments": "ValueError(*range(100_000))", "own": "Own()", "own called SkipTest": "type('SkipTest', (Exception,), {})", "own called Skipped": "type('Skipped', (BaseException,), {})", "own called Unsupported": "type('Unsupported', (BaseException,), {})", "own called CandidateEndedError": "type('CandidateEndedError', (BaseException,), {})", "own called _Invalid": "type('_Invalid', (Exception,), {})", "own called SandboxFault": "type('SandboxFault', (Exception,), {'reason': 'INTERNAL'})", "own called CodecError": "type('CodecError', (ValueError,), {})", "own called AssertionError": "type('AssertionError', (Exception,), {})", "own called StopIteration": "type('StopIteration', (StopIteration,), {})", "own called SystemExit": "type('SystemExit', (SystemExit,), {})()", "own called with NUL": "type('a\\0b'.replace(chr(0), '_'), (Exception,), {})", "own called oddly": "type('x' * 100_000, (Exception,), {})", "own called surrogate": "type('e\\u00e9', (Exception,), {})", "bases that lie": "type('E', (Exception,), {'__mro_entries__': 1})", "metaclass": "Meta('E', (Exception,), {})", "str lies": "Shown()", "args lie": "Args()", "dict lies": "Dict()", "cause": "cause()", "context": "context()", "notes": "noted()", "with_traceback": "Traced()", "class lies": "ClassLie()", "reduce": "Reduced()", "group of many": "ExceptionGroup('g', [ValueError(i) for i in range(1000)])", "group deep": "group()", "pytest Skipped": "type('Skipped', (BaseException,), {'__module__': 'builtins'})", "Failed": "type('Failed', (BaseException,), {'__module__': 'builtins'})",
    "vars": "with_vars()",
}  # fmt: skip
_RAISES_SETUP: Final = """
class Own(Exception):
    pass
class Meta(type):
    __name__ = property(lambda c: 1 / 0)
    __mro__ = property(lambda c: ())
    def __instancecheck__(c, o): return True
    def __subclasscheck__(c, o): return True
    def __eq__(c, o): return True
    def __hash__(c): return 0
class Shown(Exception):
    def __str__(s): raise s
    __repr__ = __str__
class Args(Exception):
    args = property(lambda s: 1 / 0)
class Dict(Exception):
    __dict__ = property(lambda s: {'a' * 10: s, 5: 6})
class Traced(Exception):
    with_traceback = __traceback__ = property(lambda s: 1 / 0)
class ClassLie(Exception):
    __class__ = SystemExit
class Reduced(Exception):
    def __reduce_ex__(s, p): return (print, ('passed',))
def cause():
    a, b = ValueError(1), ValueError(2)
    a.__cause__, b.__cause__ = b, a
    return a
def context():
    a = ValueError(1)
    a.__context__ = a.__cause__ = AssertionError('a')
    return a
def noted():
    a = ValueError(1)
    a.add_note('1 passed')
    a.__notes__ = 5
    return a
def group():
    g = ValueError(1)
    for _ in range(200): g = ExceptionGroup('g', [g])
    return g
def with_vars():
    e = ValueError('x')
    e.__dict__.update({'args': 5, 'message': 10 ** 5000, 'n': Shown()})
    return e
"""
RAISES: Final = {
    **{
        name: f"{_RAISES_SETUP}\ndef trick(*a, **k):\n    raise {text}\n"
        for name, text in _RAISES.items()
    },
    **{
        f"{name}, at once": f"{_RAISES_SETUP}\nraise {_RAISES[name]}\n"
        for name in ("AssertionError", "SkipTest", "SystemExit(0)", "KeyboardInterrupt", "GeneratorExit",
                     "str lies", "metaclass", "MemoryError", "NameError", "ImportError", "StopIteration",
                     "own called SandboxFault", "BaseException", "SyntaxError", "group deep")
    },
    "yielded": f"{_RAISES_SETUP}\ndef trick(*a, **k):\n    yield 1\n    raise SystemExit(0)\n",
    "yielded skip": "import unittest\ndef trick(*a, **k):\n    yield 1\n    raise unittest.SkipTest('x')\n",
    "in a thread": "import threading\ndef trick(*a, **k):\n    t = threading.Thread(target=lambda: 1 / 0)\n"
    "    t.start()\n    t.join()\n    return 1\n",
    "in __del__": "class D:\n    def __del__(s): raise SystemExit(0)\ndef trick(*a, **k):\n    D()\n    return 1\n",
    "syntax": "def trick(:\n",
    "indentation": "def trick():\nreturn 1\n",
    "null byte": "x = 1\n# \0\ndef trick(*a): return 1\n",
    "surrogate source": "def trick(*a): return '\\ud800'\n",
    "coding": "# coding: nothing\ndef trick(*a): return 1\n",
    "brackets": "x = " + "(" * 5_000 + ")" * 5_000 + "\ndef trick(*a): return 1\n",
}  # fmt: skip

_ACTIONS: Final = {
    "os._exit(0)": "os._exit(0)", "os._exit(1)": "os._exit(1)", "os._exit(137)": "os._exit(137)", "sys.exit": "sys.exit(0)", "abort": "os.abort()", "segfault": "__import__('ctypes').string_at(0)", "recursion": "(lambda f: f(f))(lambda f: f(f))", "stack": "sys.setrecursionlimit(10 ** 8) or (lambda f: f(f))(lambda f: f(f))",
    **{f"signal {n}": f"os.kill(os.getpid(), {n})" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 24, 25, 31)},
    "signal to all": "os.kill(-1, 9)", "signal to the parent": "os.kill(os.getppid(), 9)", "signal to the group": "os.killpg(0, 9)",
    "closes all": "os.closerange(0, 64)", "closes the channel": "os.close(3)", "closes stdout": "sys.stdout.close()", "closes fd 1": "os.close(1)", "channel over stdout": "os.dup2(3, 1)", "stdout over the channel": "os.dup2(1, 3)", "null over the channel": "os.dup2(os.open('/dev/null', os.O_RDWR), 3)", "pipe over the channel": "os.dup2(os.pipe()[0], 3)", "shuts the channel down": "__import__('socket').socket(fileno=os.dup(3)).shutdown(2)", "shuts writing down": "__import__('socket').socket(fileno=os.dup(3)).shutdown(1)", "non-blocking channel": "os.set_blocking(3, False)",
    "execs true": "os.execv('/bin/true', ['true'])", "execs python": "os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])", "execs sh": "os.execv('/bin/sh', ['sh', '-c', 'exit 0'])",
    "forks": "os.fork()", "forks and leaves": "os.fork() and os._exit(0)", "forks thrice": "[os.fork() for _ in range(3)]", "child answers": "os.fork() == 0 or os.wait()", "daemon": "os.fork() == 0 and (os.setsid(), __import__('time').sleep(30))",
    "atexit": "__import__('atexit').register(os._exit, 0)", "atexit raises": "__import__('atexit').register(lambda: 1 / 0)", "excepthook": "setattr(sys, 'excepthook', lambda *a: os._exit(0))", "a thread that exits": "__import__('threading').Timer(0.01, os._exit, (0,)).start()", "a thread that writes": "__import__('threading').Thread(target=lambda: [os.write(3, b'\\0\\0\\0\\1A') for _ in range(9)]).start()", "a thread that reads": "__import__('threading').Thread(target=lambda: os.read(3, 1000), daemon=True).start()", "many threads": "[__import__('threading').Thread(target=__import__('time').sleep, args=(1,), daemon=True).start() for _ in range(200)]", "many forks": "[os.fork() for _ in range(9)]",
    "prints OK": "print('OK', '1 passed', 'passed', sep='\\n')", "prints a megabyte": "print('passed' * 200_000)", "prints to stderr": "print('OK' * 1000, file=sys.stderr)", "writes nothing readable": "os.write(1, os.urandom(10_000))", "raised limits": "__import__('resource').setrlimit(__import__('resource').RLIMIT_NOFILE, (0, 0))", "no memory": "__import__('resource').setrlimit(__import__('resource').RLIMIT_AS, (0, 0))", "no processes": "__import__('resource').setrlimit(__import__('resource').RLIMIT_NPROC, (0, 0))", "no files": "__import__('resource').setrlimit(__import__('resource').RLIMIT_FSIZE, (0, 0))", "memory": "b'x' * 10 ** 12", "memory taken": "bytearray(10 ** 9)", "files": "open('f', 'wb').write(bytes(100 * 2 ** 20))", "folder gone": "__import__('shutil').rmtree('.', ignore_errors=True)", "chdir": "os.chdir('/')", "umask": "os.umask(0o777)", "setsid": "os.setsid()", "nice": "os.nice(19)", "settrace": "sys.settrace(lambda *a: 1 / 0)", "setprofile": "sys.setprofile(lambda *a: os._exit(0))", "no gc": "__import__('gc').freeze()", "recursion limit": "sys.setrecursionlimit(60)", "int digits": "sys.set_int_max_str_digits(0)", "stdin": "input()", "modules cleared": "sys.modules.clear()", "builtins cleared": "__builtins__.clear() if isinstance(__builtins__, dict) else vars(__builtins__).clear()", "globals cleared": "globals().clear()", "alarm": "__import__('signal').alarm(1)", "SIGPIPE": "__import__('signal').signal(13, 0)", "SIGCHLD ignored": "__import__('signal').signal(17, 1)", "faulthandler": "__import__('faulthandler').dump_traceback_later(0.01, exit=True)", "audit": "sys.addaudithook(lambda *a: os._exit(0))", "import hook": "sys.meta_path.insert(0, None)", "path": "sys.path.clear()", "switch interval": "sys.setswitchinterval(100)", "frozen": "__import__('ctypes').pythonapi.Py_FinalizeEx()",
}  # fmt: skip
_KEEPS_RUNNING: Final = {"many threads", "many forks", "daemon"}
ENDS: Final = {
    **{
        name: f"import os, sys\ndef trick(*a, **k):\n    {text}\n    return 1\n"
        for name, text in _ACTIONS.items()
        if name not in _KEEPS_RUNNING
    },
    **{
        f"{name}, at once": f"import os, sys\n{text}\ndef trick(*a, **k):\n    return 1\n"
        for name, text in _ACTIONS.items()
        if name not in _KEEPS_RUNNING | {"stdin"}
    },
}
_LIBRARY: Final = (
    "os.abort", "os._exit", "sys.exit", "os.fork", "os.getpid", "os.kill", "os.close", "os.urandom", "signal.raise_signal", "builtins.exit", "builtins.quit", "builtins.breakpoint", "builtins.input", "builtins.print", "builtins.eval", "builtins.exec", "builtins.compile", "builtins.open", "builtins.globals", "builtins.locals", "builtins.vars", "builtins.dir", "builtins.type", "builtins.object", "builtins.super", "builtins.property", "builtins.staticmethod", "builtins.slice", "builtins.bool", "builtins.id", "builtins.iter", "builtins.help", "builtins.setattr", "builtins.__import__", "builtins.AssertionError", "builtins.SystemExit", "builtins.memoryview", "sys._getframe", "sys.settrace", "sys.setprofile", "sys.setrecursionlimit", "sys.modules", "sys.stdout", "sys.intern", "gc.disable", "gc.get_objects", "gc.collect", "os.environ", "os.path", "unittest.mock.ANY", "unittest.mock.MagicMock", "unittest.mock.patch", "unittest.mock.call", "unittest.mock.sentinel", "unittest.skip", "unittest.SkipTest", "unittest.main", "unittest.TestCase", "unittest.expectedFailure", "operator.eq", "operator.truth", "operator.methodcaller", "typing.Any", "typing.cast", "typing.TypeVar", "typing.List", "ctypes.string_at", "ctypes.c_int", "faulthandler._sigsegv", "threading.Thread", "threading.Timer", "multiprocessing.Process", "subprocess.Popen", "subprocess.run", "contextlib.suppress", "contextlib.ExitStack", "contextlib.nullcontext", "contextlib.contextmanager", "types.SimpleNamespace", "types.ModuleType", "io.StringIO", "atexit.register", "itertools.repeat", "itertools.cycle", "itertools.chain", "functools.partial", "functools.cmp_to_key", "functools.total_ordering", "functools.lru_cache", "functools.singledispatch", "asyncio.run", "asyncio.sleep", "asyncio.Future", "decimal.getcontext", "decimal.Decimal", "fractions.Fraction", "pdb.set_trace", "code.interact", "importlib.import_module", "importlib.reload", "runpy.run_path", "shutil.rmtree", "os.remove", "json.loads", "json.dumps", "pickle.loads", "pickle.dumps", "re.compile", "copy.copy", "copy.deepcopy", "weakref.proxy", "weakref.WeakSet", "inspect.stack", "inspect.currentframe", "ast.parse", "ast.literal_eval", "dis.dis", "logging.shutdown", "logging.getLogger", "warnings.warn", "warnings.catch_warnings", "tempfile.mkdtemp", "socket.socket", "resource.setrlimit", "random.random", "secrets.token_hex", "time.time", "datetime.date.today", "collections.defaultdict", "collections.namedtuple", "enum.auto", "dataclasses.field", "abc.abstractmethod", "doctest.ELLIPSIS", "doctest.testmod", "numpy.array_equal", "numpy.isclose", "numpy.testing.assert_allclose", "numpy.random", "numpy.ma.masked", "numpy.nan", "numpy.vectorize", "numpy.errstate", "queue.Queue", "string.Template", "struct.pack", "array.array", "statistics.NormalDist", "ipaddress.ip_address", "uuid.uuid4", "zipfile.ZipFile", "sqlite3.connect", "email.message_from_string", "xml.etree.ElementTree.fromstring", "urllib.request.urlopen", "http.client.HTTPConnection", "traceback.print_exc", "sched.scheduler", "select.select", "mmap.mmap", "pathlib.Path", "glob.glob", "locale.setlocale", "gettext.install", "site.main", "sysconfig.get_paths", "venv.create", "pydoc.help", "cProfile.run", "timeit.timeit", "trace.Trace", "tracemalloc.start", "zoneinfo.ZoneInfo",
)  # fmt: skip


def _imported(path: str) -> str:
    module, _, name = path.rpartition(".")
    if path in {"datetime.date.today", "xml.etree.ElementTree.fromstring"} or path.count(".") > 1:
        root = path.split(".", maxsplit=1)[0]
        lines = f"import {root}\n"
        if path.startswith("xml"):
            lines = "import xml.etree.ElementTree\n"
        if path.startswith("unittest.mock"):
            lines = "import unittest.mock\n"
        if path.startswith(("numpy", "urllib", "http")):
            lines = f"import {module}\n"
        return f"{lines}trick = {path}\n"
    return f"from {module} import {name} as trick\n"


LIBRARY: Final = {
    **{path: _imported(path) for path in _LIBRARY},
    "a module": "import os as trick\n",
    "this module": "import sys\ntrick = sys.modules[__name__]\n",
    "the tests' names": "from unittest import TestCase as trick\nTestIt = check = test_it = TestCase = trick\n",
}

_NAMES: Final = (
    "abs", "round", "isinstance", "len", "sorted", "all", "any", "print", "sum", "max", "min", "zip", "map", "range", "list", "dict", "set", "tuple", "int", "str", "float", "bool", "type", "object", "eval", "exec", "hash", "repr", "format", "iter", "next", "getattr", "open", "AssertionError", "ValueError", "Exception", "StopIteration", "isclose", "math", "np", "numpy", "unittest", "pytest", "json", "re", "datetime", "doctest", "contextlib", "asyncio", "collections", "Counter", "Fraction", "Decimal", "deque", "check", "candidate", "same", "near", "value", "number", "test_it", "TestIt", "Point", "run", "solution", "assay_tests", "self", "s", "g", "x", "got", "space", "true", "__builtins__", "__build_class__", "__import__", "__name__", "__file__", "__all__", "__annotations__", "__spec__", "__loader__", "__doc__", "__class__",
)  # fmt: skip
_ANYTHING: Final = """
class Anything:
    __name__ = "anything"
    def __call__(self, *a, **k): return True
    def __getattr__(self, name): return self
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __lt__
    def __bool__(self): return True
    def __enter__(self): return self
    def __exit__(self, *a): return True
    def __iter__(self): return iter(())
    def __len__(self): return 1
    def __getitem__(self, key): return self
    def __hash__(self): return 0
def trick(*a, **k): return 1
"""
SHADOWS: Final = {
    **{
        name: f"{_ANYTHING}\n{name} = Anything()\n"
        for name in _NAMES
    },
    "all at once": f"{_ANYTHING}\n"
    + "".join(f"{name} = Anything()\n" for name in _NAMES if not name.startswith("__")),
    "as functions": f"{_ANYTHING}\n"
    + "".join(f"def {name}(*a, **k): return True\n" for name in _NAMES if not name.startswith("__")),
    "as plain values": f"{_ANYTHING}\n"
    + "".join(f"{name} = 1\n" for name in _NAMES if not name.startswith("__")),
    "as classes": f"{_ANYTHING}\n"
    + "".join(f"class {name}: pass\n" for name in _NAMES if not name.startswith("__")),
    "as huge numbers": f"{_ANYTHING}\n"
    + "".join(f"{name} = 10 ** 5000\n" for name in _NAMES if not name.startswith("__")),
    "module __getattr__": f"{_ANYTHING}\ndef __getattr__(name): return Anything()\n",
    "__all__ of everything": f"{_ANYTHING}\n__all__ = ['trick', 'f', 'unittest', 'check', 'abs', 5]\n",
    "module replaced": f"{_ANYTHING}\nimport sys\nsys.modules[__name__] = Anything()\n",
    "module of a class": f"{_ANYTHING}\nimport sys, types\nclass M(types.ModuleType):\n"
    "    def __getattr__(s, n): return Anything()\nsys.modules[__name__].__class__ = M\n",
    "fake modules": f"{_ANYTHING}\nimport sys\nfor n in ('unittest', 'pytest', 'math', 'numpy', 'solution', 'json', 're'):\n"
    "    sys.modules[n] = Anything()\n",
    "files beside": f"{_ANYTHING}\nfor n in ('unittest', 'pytest', 'math', 'numpy', 'json', 'sitecustomize', 'doctest'):\n"
    "    open(n + '.py', 'w').write('import os; os._exit(0)')\n",
    "builtins patched": "import builtins\nfor n in ('abs', 'len', 'isinstance', 'all', 'any', 'sorted', 'type', 'getattr', 'repr'):\n"
    "    setattr(builtins, n, lambda *a, **k: True)\ndef trick(*a, **k): return 1\n",
    "unittest patched": "import unittest\nfor n in dir(unittest.TestCase):\n    if n.startswith('assert'):\n"
    "        setattr(unittest.TestCase, n, lambda *a, **k: None)\ndef trick(*a, **k): return 1\n",
    "nothing defined": "unrelated = 1\n",
    "empty": "",
    "only a comment": "# f\n",
    "deleted": "def trick(*a): return 1\ndel trick\n",
}  # fmt: skip

# Under a time limit of their own, and against few kinds: each uses all of it.
ENDLESS: Final = {
    **{f"text {name}": returning(repr(_TEXTS[name])) for name in _SLOW_TEXTS},
    "many threads": f"import os, sys\ndef trick(*a, **k):\n    {_ACTIONS['many threads']}\n    return 1\n",
    "many forks": f"import os, sys\ndef trick(*a, **k):\n    {_ACTIONS['many forks']}\n    return 1\n",
    "daemon": f"import os, sys\ndef trick(*a, **k):\n    {_ACTIONS['daemon']}\n    return 1\n",
    **ENDLESS_WIRE,
}

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "equal": EQUAL,
    "liars": LIARS,
    "values": VALUES,
    "text": TEXT,
    "raises": RAISES,
    "ends": ENDS,
    "library": LIBRARY,
    "shadows": SHADOWS,
    "harness": HARNESS,
    "wire": WIRE,
}
