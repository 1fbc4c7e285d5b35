"""Tricks that speak the harness's own protocol, as data: they find its objects, or take its channel.

Those of `HARNESS` ask the objects of ours that share their process; those of `WIRE`, `ENDLESS` and
`COSTLY` write frames themselves (`bench.sandbox_puppet`).
"""

# ruff: noqa: E501 - programs in tables, one in a line

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench import sandbox_puppet

PUPPET: Final = Path(sandbox_puppet.__file__).read_text(encoding="utf-8")


def returning(expression: str, setup: str = "") -> str:
    """A program whose answer is an expression."""
    return f"{setup}\ndef trick(*a, **k):\n    return {expression}\n"


_FIND: Final = """
import gc, os, sys
def found():
    seen = []
    frame = sys._getframe()
    while frame:
        seen.extend(frame.f_locals.values())
        frame = frame.f_back
    seen += gc.get_objects()
    for thing in seen:
        name = type(thing).__name__
        if name in ('_Candidate', 'Channel', 'Candidate', 'Link'):
            yield thing
def harness():
    for thing in found():
        if hasattr(thing, '_call_back'):
            return thing
"""
_REFS: Final = "from assay.sandbox.harness.references import Ref\n"


def _harness(body: str, setup: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{_FIND}{setup}\ndef trick(*a, **k):\n    h = harness()\n{lines}"


_CLASSES: Final = ("type", "slice", "bool", "str", "list", "map", "property", "super", "object")
HARNESS: Final = {
    **{
        f"a class whose equality is {name}": _harness(
            f"E = h._call_back('call', type, ['E', (object,), {{'__eq__': {name}, '__ne__': {name},"
            f" '__lt__': {name}, '__sub__': {name}, '__bool__': {name}}}], {{}})\n"
            "return h._call_back('call', E, [], {})\n"
        )
        for name in ("type", "bool", "str", "slice", "list")
    },
    **{
        f"a subclass of {base}": _harness(
            f"E = h._call_back('call', type, ['E', ({base},), {{'__eq__': type, '__hash__': {base}.__hash__ and type}}], {{}})\n"
            "return h._call_back('call', E, [], {})\n"
        )
        for base in ("int", "str", "list", "dict", "float")
    },
    **{
        f"calls {name}": _harness(f"return h._call_back('call', {name}, [1], {{}})\n")
        for name in _CLASSES
    },
    "the class itself": _harness(
        "return h._call_back('call', type, ['M', (type,), {'__eq__': type}], {})\n"
    ),
    "a class of that metaclass": _harness(
        "M = h._call_back('call', type, ['M', (type,), {'__eq__': type, '__bool__': bool}], {})\n"
        "return h._call_back('call', M, ['R', (), {}], {})\n"
    ),
    "an exception class": _harness(
        "E = h._call_back('call', type, ['E', (AssertionError,), {'__eq__': type}], {})\n"
        "return h._call_back('call', E, ['x'], {})\n"
    ),
    **{
        f"attribute {name}": _harness(f"return h._call_back('getattr', type, {name!r})\n")
        for name in ("__subclasses__", "mro", "__dict__", "__init__", "x")
    },
    "attribute set": _harness("return h._call_back('setattr', type, 'x', 1)\n"),
    "unknown operation": _harness("return h._call_back('import', 'os', 'x')\n"),
    "no operation": _harness("return h._call_back()\n"),
    "a call-back at load": _FIND + "h = harness()\n"
    "E = h._call_back('call', type, ['E', (object,), {'__eq__': type}], {}) if h else 0\n"
    "V = h._call_back('call', E, [], {}) if h else 0\ndef trick(*a, **k):\n    return V\n",
    "sends rubbish": _harness("h._channel.send(b'A', b'[]')\nreturn 1\n"),
    "sends done": _harness("h._channel.send(b'D', b'[\"0\", \"passed\", \"\"]')\nreturn 1\n"),
    "sends hello": _harness("h._channel.send(b'H', b'')\nreturn 1\n"),
    "closed": _harness("os.close(h._channel._descriptor)\nreturn 1\n"),
    "answers replaced": _harness(
        "h._answer = lambda content: True\nh._operations.clear()\nreturn 1\n"
    ),
    "namespace replaced": _harness("h._namespace = {}\nh._objects.clear()\nreturn 1\n"),
    "objects swapped": _harness("h._objects[:] = [len] * 50\nreturn object()\n"),
    "numbers swapped": _harness("h._numbers = {id(x): -1 for x in a}\nreturn object()\n"),
    **{
        f"reference {side}{number}": _harness(
            f"return Ref({side!r}, {number}, 'instance', 'x', ())\n", _REFS
        )
        for side in ("t", "c", "x", "")
        for number in (0, -1, 3, 10**6, 2**63)
    },
    "reference of all traits": _harness(
        "from assay.sandbox.harness.candidate import CARRIED\n"
        "return Ref('c', 0, 'instance', 'x', CARRIED)\n", _REFS
    ),
    "reference to an exception": _harness(
        "return Ref('c', 0, 'exception-class', 'AssertionError', ('AssertionError', 'Exception'))\n", _REFS
    ),
    "reference to a silent exception": _harness(
        "return Ref('c', 0, 'exception-class', 'X', ('SystemExit',))\n", _REFS
    ),
    "reference to a coroutine": _harness("return Ref('c', 0, 'coroutine', 'x', ())\n", _REFS),
    "reference to a tester": _harness("return Ref('c', 0, 'tester', 'x' * 10 ** 6, ('__call__',))\n", _REFS),
    "codec patched": _FIND + "c = sys.modules.get('assay.sandbox.harness.codec')\n"
    "for n in ('encode', '_dumps', 'decode'):\n    setattr(c, n, lambda *a, **k: b'[]')\n"
    "def trick(*a, **k): return 1\n",
    "candidate patched": _FIND + "c = sys.modules.get('assay.sandbox.harness.candidate')\n"
    "for n in ('_state', '_kind', '_origin', '_describe'):\n    setattr(c, n, lambda *a, **k: ['int', 'int', {}])\n"
    "def trick(*a, **k): return object()\n",
    "origins of abort": _FIND + "c = sys.modules.get('assay.sandbox.harness.candidate')\n"
    "c._origin = lambda v: ['os', 'abort']\ndef trick(*a, **k): return 1\n",
    "origins of mock": _FIND + "c = sys.modules.get('assay.sandbox.harness.candidate')\n"
    "c._origin = lambda v: ['unittest.mock', 'MagicMock']\ndef trick(*a, **k): return 1\n",
    "origins that import": _FIND + "c = sys.modules.get('assay.sandbox.harness.candidate')\n"
    "c._origin = lambda v: ['antigravity', '']\ndef trick(*a, **k): return 1\n",
    "origins of rubbish": _FIND + "c = sys.modules.get('assay.sandbox.harness.candidate')\n"
    "c._origin = lambda v: [5, {}, 'x']\ndef trick(*a, **k): return 1\n",
}  # fmt: skip


def wire(body: str) -> str:
    """A program that takes the channel over; `body` defines `serve`, and `look_up` where it likes."""
    return f"{PUPPET}\n{body}\ntake_over(serve, globals().get('look_up', rows))\n"


_MADE: Final = """
made = None
def make(tag):
    global made
    if made is None:
        {0}
    return made
def serve(tag, request):
    returned(tag, request, make(tag))
"""


def _made(lines: str) -> str:
    return wire(_MADE.replace("{0}", lines))


_CLASS: Final = 'call_back(tag, "call", {{"y": "type"}}, ["E", {{"t": [{base}]}}, {{"d": {members}}}], NO_ARGUMENTS)'
_SERVE: Final = "def serve(tag, request):\n    {0}\n"


def _each(*lines: str) -> str:
    """Serves each request with these lines."""
    return wire("def serve(tag, request):\n" + "".join(f"    {line}\n" for line in lines))


def _value(text: str) -> str:
    return _each(f"returned(tag, request, {text})")


def _look_up(text: str) -> str:
    return wire(
        f"def look_up(names):\n    return {text}\ndef serve(tag, request):\n    returned(tag, request, 1)\n"
    )


_MEMBERS: Final = '["__eq__", {"y": "%s"}, "__ne__", {"y": "%s"}, "__bool__", {"y": "bool"}, "__sub__", {"y": "type"}]'
_EXTRA: Final = (
    "abs", "round", "isinstance", "all", "any", "sorted", "len", "list", "int", "str", "eval", "sum", "unittest", "pytest", "math", "np", "check", "same", "near", "value", "number", "AssertionError", "ValueError", "__builtins__", "__build_class__", "__name__", "__file__", "__loader__", "candidate", "TestIt", "test_it", "doctest", "assert_", "super", "object", "print", "f",
)  # fmt: skip
_ORIGINS: Final = (
    ("os", "_exit"), ("os", "abort"), ("sys", "exit"), ("unittest.mock", "ANY"), ("unittest.mock", "MagicMock"), ("builtins", "slice"), ("builtins", "type"), ("builtins", "bool"), ("builtins", "exec"), ("builtins", "eval"), ("builtins", "input"), ("builtins", "exit"), ("antigravity", ""), ("this", ""), ("idlelib.idle", ""), ("ctypes", "string_at"), ("ctypes", "pythonapi"), ("faulthandler", "_sigsegv"), ("sys", "modules"), ("sys", "modules.clear"), ("gc", "get_objects"), ("unittest", "SkipTest"), ("unittest", "TestCase.assertEqual"), ("operator", "truth"), ("threading", "Timer"), ("signal", "pause"), ("turtle", "done"), ("nothing", "x"), ("os", ""), ("", ""), ("os.path", "join"), ("numpy", "ma.masked"), ("typing", "Any"), ("contextlib", "suppress"), ("os", "environ.clear"), ("json.tool", "main"), ("lib2to3", ""), ("distutils", ""), ("test.crashers", ""), ("ensurepip", "bootstrap"), ("tkinter", "mainloop"), ("code", "interact"), ("pdb", "set_trace"), ("__main__", ""), ("assay", ""), ("unittest.__main__", ""), ("assay.sandbox", ""),
)  # fmt: skip
_ODD: Final = {
    "empty frame": 'b"\\0\\0\\0\\0"', "kind only": 'b"\\0\\0\\0\\1A"', "no content": 'frame(b"A", tag, b"")', "rubbish": 'b"\\0\\0\\0\\x20" + os.urandom(32)', "too large": 'b"\\xff\\xff\\xff\\xff" + b"A" * 64', "negative": 'b"\\x80\\0\\0\\0" + b"A" * 64', "truncated": 'b"\\0\\1\\0\\0A"', "half": 'frame(b"A", tag, ["value", 1, [], -1])[:-3]', "two in one": 'frame(b"A", tag, ["value", 1, [], -1]) * 2', "many": 'frame(b"A", tag, ["value", 1, [], -1]) * 1000', "empty frames": 'b"\\0\\0\\0\\0" * 100_000',
    "kind Z": 'frame(b"Z", tag, ["value", 1])', "kind Q": 'frame(b"Q", tag, ["call", "f", [], NO_ARGUMENTS])', "kind D": 'frame(b"D", tag, ["0" * 32, "passed", ""])', "kind B": 'frame(b"B", tag, ["x", "pass", "f", "s"])', "kind R": 'frame(b"R", tag, ["value", 1])', "kind H": 'frame(b"H", tag, [])', "hello": 'b"\\0\\0\\0\\1H"', "kind NUL": 'frame(b"\\0", tag, ["value", 1])',
    "no list": 'frame(b"A", tag, b"5")', "null": 'frame(b"A", tag, b"null")', "an empty list": 'frame(b"A", tag, [])', "no value": 'frame(b"A", tag, ["value"])', "unknown outcome": 'frame(b"A", tag, ["passed", 1])', "outcome 5": 'frame(b"A", tag, [5, 1])', "outcome list": 'frame(b"A", tag, [["value"], 1])', "outcome dict": 'frame(b"A", tag, [{"d": []}, 1])', "outcome true": 'frame(b"A", tag, [True, 1])', "not UTF-8": 'frame(b"A", tag, b"\\xff\\xfe")', "NaN": 'frame(b"A", tag, b"[NaN]")', "deep": 'frame(b"A", tag, b"[" * 500_000)', "deep closed": 'frame(b"A", tag, b"[" * 500_000 + b"]" * 500_000)', "deep objects": 'frame(b"A", tag, b\'{"t":[\' * 90_000)',
    "error": 'frame(b"A", tag, ["error", {"d": []}])', "error of nothing": 'frame(b"A", tag, ["error"])', "error null": 'frame(b"A", tag, ["error", None])', "error text": 'frame(b"A", tag, ["error", "AssertionError"])', "error types": 'frame(b"A", tag, ["error", {"d": ["type", 5, "text", {"t": []}, "where", [], "bases", 7, "args", 3, "vars", 9]}])', "error SkipTest": 'failure(tag, "SkipTest", ["Exception"])', "error Unsupported": 'failure(tag, "Unsupported", ["BaseException"])', "error _Invalid": 'failure(tag, "_Invalid", ["Exception"])', "error SystemExit": 'failure(tag, "SystemExit", ["SystemExit", "BaseException"])', "error StopIteration": 'failure(tag, "StopIteration", ["StopIteration", "Exception"])', "error bases print": 'failure(tag, "print", ["print"])', "error bases type": 'failure(tag, "type", ["type"])', "error bases object": 'failure(tag, "x", ["object"])', "error bases __import__": 'failure(tag, "x", ["__import__"])', "error no bases": 'failure(tag, "x", [])', "error Warning": 'failure(tag, "Warning", ["Warning"])', "error group": 'failure(tag, "ExceptionGroup", ["ExceptionGroup"])', "error Unicode": 'failure(tag, "UnicodeDecodeError", ["UnicodeDecodeError"])', "error AssertionError": 'failure(tag, "AssertionError", ["AssertionError", "Exception"])', "error NUL": 'failure(tag, "a\\0b", ["Exception"])', "error surrogate": 'failure(tag, "\\ud800", ["Exception"])', "error huge name": 'failure(tag, "x" * 10 ** 6, ["Exception"])', "error huge int": 'failure(tag, "ValueError", ["ValueError"], {"i": "f" * 5000})', "error MemoryError": 'failure(tag, "MemoryError", ["MemoryError"])', "error NameError": 'failure(tag, "NameError", ["NameError"])', "error ImportError": 'failure(tag, "ImportError", ["ImportError"])', "error SyntaxError": 'failure(tag, "SyntaxError", ["SyntaxError"])', "error vars": 'frame(b"A", tag, ["error", "ValueError", ["ValueError"], "x", "", None, {"d": ["name", 5, "args", 7, "add_note", 9, "with_traceback", 1, 6, 7]}])',
    "stop": 'frame(b"A", tag, ["stop", 1])', "stop of nothing": 'frame(b"A", tag, ["stop"])', "stop of much": 'frame(b"A", tag, ["stop", 1, 2, 3])',
    "old tag": 'frame(b"A", OLD, ["value", 1, [], -1])', "tag of zeros": 'frame(b"A", b"\\0" * 8, ["value", 1, [], -1])', "tag null": 'frame(b"A", b"", ["value", 1, [], -1])', "tag list": 'frame(b"A", b"\1", ["value", 1, [], -1])', "tag cut": 'frame(b"A", tag[:-1], ["value", 1, [], -1])', "tag upper": 'frame(b"A", tag.upper() + tag[:1], ["value", 1, [], -1])',
    "changes": 'frame(b"A", tag, ["value", 1, [[0, 5], [99, 1], [-1, [1]]], -1])', "changes of text": 'frame(b"A", tag, ["value", 1, "abc", -1])', "changes null": 'frame(b"A", tag, ["value", 1, None, None])', "alias 99": 'frame(b"A", tag, ["value", 1, [], 99])', "alias -5": 'frame(b"A", tag, ["value", 1, [], -5])', "alias text": 'frame(b"A", tag, ["value", 1, [], "a"])', "alias huge": 'frame(b"A", tag, ["value", 1, [], {"i": "f" * 5000}])', "alias true": 'frame(b"A", tag, ["value", 1, [], True])', "changes deep": 'frame(b"A", tag, ["value", 1, [[[[]]]], -1])', "one more": 'frame(b"A", tag, ["value", 1, [], -1, 5, 6, 7])',
}  # fmt: skip
_FAILURE: Final = """
OLD = (tags() or [b"\\0" * 8])[0]
def failure(tag, kind, bases, *args):
    return frame(b"A", tag, ["error", kind, bases, "x", "", list(args), {"d": []}])
"""
_TREES: Final = {
    "y type": '{"y": "type"}', "y unknown": '{"y": "nothing"}', "y list": '{"y": []}', "y exception": '{"y": "SystemExit"}', "unknown tag": '{"Z": 1}', "two keys": '{"t": [], "s": []}', "no key": "{}", "t of text": '{"t": "abc"}', "set of lists": '{"s": [[1]]}', "dict of lists": '{"d": [[1], 2]}', "odd dict": '{"d": [1]}', "n dtype object": '{"n": ["object", [1, {"y": "type"}]]}', "n dtype huge": '{"n": ["S1000000000", ["a", "b"]]}', "n dtype void": '{"n": ["V10", [1]]}', "n dtype text": '{"n": ["(1000,1000,1000)i8", [1]]}', "n dtype fields": '{"n": ["i4,i4,(9999,9999)f8", [[1, 2, 3]]]}', "n dtype dates": '{"n": ["M8[ns]", ["nat"]]}', "n dtype lists": '{"n": ["float64", [[1], [1, 2]]]}', "n dtype bad": '{"n": ["nothing", [1]]}', "k bad": '{"k": ["nothing", "", []]}', "k factory": '{"k": ["defaultdict", "print", []]}', "k factory class": '{"k": ["defaultdict", "type", []]}', "k Counter": '{"k": ["Counter", "", ["a", "b"]]}', "F zero": '{"F": [1, 0]}', "F float": '{"F": [1.5, 2]}', "F bool": '{"F": [True, 2]}', "r step 0": '{"r": [0, 1, 0]}', "r huge": '{"r": [0, {"i": "f" * 5000}, 1]}', "D long": '{"D": "9" * 5001}', "D exponent": '{"D": "1E9999"}', "D NaN": '{"D": "NaN"}', "T bad": '{"T": ["date", "x"]}', "T span": '{"T": ["timedelta", 10 ** 18, 0, 0]}', "T zoned": '{"T": ["datetime", "2000-01-01T00:00:00+00:00"]}', "T kind": '{"T": ["now", "x"]}', "i bad": '{"i": "xyz"}', "i long": '{"i": "f" * 1_000_001}', "i fits": '{"i": "f" * 900_000}', "x bad": '{"x": "1"}', "u bad": '{"u": "00"}', "u high": '{"u": "ffffffff"}', "b odd": '{"b": "f"}', "c text": '{"c": ["a", "b"]}', "q of dicts": '{"q": [{"d": []}]}', "h short": '{"h": ["t"]}', "h types": '{"h": [1, 2, 3, 4, 5]}', "h kind": '{"h": ["c", 0, {"t": []}, "x", []]}', "h traits": '{"h": ["c", 0, "x", "x", ["__eq__", "__hash__", "__class__", "__init__", "__del__", "__getattribute__"]]}',
    **{f"h t {n}": f'theirs({n})' for n in ("0", "1", "-1", "2 ** 31", "2 ** 63", "-(2 ** 70)", "True", "1.5", "None", "'0'", '{"i": "f" * 5000}')},
    **{f"h c {n}": f'mine({n}, "instance", "__iter__", "__len__", "__bool__", "__call__")' for n in ("0", "-1", "2 ** 63", "True")},
    "h exceptions": '{"h": ["c", 0, "exception-class", "AssertionError", ["AssertionError"]]}', "h exception of type": '{"h": ["c", 0, "exception-class", "x", ["type"]]}', "h exception of print": '{"h": ["c", 0, "exception-class", "x", ["print"]]}', "h exception of exit": '{"h": ["c", 0, "exception-class", "x", ["SystemExit"]]}', "h exception surrogate": '{"h": ["c", 0, "exception-class", "\\ud800", ["ValueError"]]}', "h exception NUL": '{"h": ["c", 0, "exception-class", "a\\0", ["ValueError"]]}', "h exception group": '{"h": ["c", 0, "exception-class", "x", ["ExceptionGroup"]]}', "h coroutine": 'mine(0, "coroutine")', "h module": 'mine(0, "module")', "h generator": 'mine(0, "generator", "__iter__", "__next__")', "h many": '[mine(n) for n in range(100_000)]', "h kinds": '[mine(n, "instance", *T[:n]) for n in range(len(T))]',
    "long list": "[0] * 5_000_000", "long text": '"x" * 40_000_000', "many sets": '[{"s": [1]}] * 300_000', "same hashes": '{"s": [(2 ** 61 - 1) * n for n in range(1, 4)]}',
}  # fmt: skip
_TREES_SETUP: Final = (
    'T = ["__len__", "__iter__", "__bool__", "__str__", "__eq__", "__add__", "__call__", "__x__"]\n'
)
WIRE: Final = {
    **{
        f"equality of {name}": _made(
            "made = " + _CLASS.format(base='{"y": "object"}', members=_MEMBERS.replace("%s", name))
            + '\n        made = call_back(tag, "call", made, [], NO_ARGUMENTS) if made else 1'
        )
        for name in ("type", "bool", "str", "slice", "list", "map")
    },
    **{
        f"{base} with an equality": _made(
            "made = " + _CLASS.format(base=f'{{"y": "{base}"}}', members=_MEMBERS.replace("%s", "type"))
            + '\n        made = call_back(tag, "call", made, [], NO_ARGUMENTS) if made else 1'
        )
        for base in ("int", "float", "str", "list", "dict", "Exception")
    },
    "a metaclass": _made(
        "made = " + _CLASS.format(base='{"y": "type"}', members=_MEMBERS.replace("%s", "type"))
        + '\n        made = call_back(tag, "call", made, ["R", {"t": []}, {"d": []}], NO_ARGUMENTS) if made else 1'
    ),
    **{
        f"call of {name}": _made(f'made = call_back(tag, "call", {{"y": "{name}"}}, [1], NO_ARGUMENTS) or 1')
        for name in _CLASSES
    },
    **{
        f"{operation} of t {number}": _made(
            f'made = [call_back(tag, "{operation}", theirs({number}), *{rest}) for _ in range(2)]'
        )
        for number in (0, 1, -1, 2**63, True)
        for operation, rest in (
            ("call", '([], NO_ARGUMENTS)'), ("getattr", '("__class__",)'), ("getattr", '("x",)'), ("setattr", '("x", 1)'), ("next", "()"),
        )
    },
    **{
        f"call-back {name}": _made(f"made = [call_back(tag, *{text})]")
        for name, text in {
            "of nothing": "()", "of text": '("call", "f", [], NO_ARGUMENTS)', "without arguments": '("call", theirs(0))', "of a c": '("call", mine(), [], NO_ARGUMENTS)', "with odd arguments": '("call", theirs(0), 5, 6)', "unknown": '("import", "os")', "__import__": '("call", "__import__", ["os"], NO_ARGUMENTS)', "getattr of y": '("getattr", {"y": "type"}, "mro")', "getattr c": '("getattr", mine(), "x")', "setattr c": '("setattr", mine(), "x", 1)', "getattr no text": '("getattr", theirs(0), 5)', "getattr huge": '("getattr", theirs(0), {"i": "f" * 5000})', "next c": '("next", mine())', "next list": '("next", [1])', "eval": '("eval", "1")', "list": '([["call"]],)', "operation dict": '({"d": []}, theirs(0))',
        }.items()
    },
    **{f"row {name} a class": _look_up(f'[*rows(names), ["{name}", {{"y": "list"}}]]') for name in _EXTRA},
    **{f"row {name} ours": _look_up(f'[*rows(names), ["{name}", mine(5)]]') for name in _EXTRA},
    "row __builtins__ a dict": _look_up('[*rows(names), ["__builtins__", {"d": ["__build_class__", {"y": "slice"}, "__import__", {"y": "slice"}]}]]'),
    "row __builtins__ empty": _look_up('[*rows(names), ["__builtins__", {"d": []}]]'),
    **{f"row {name} 5": _look_up(f'[*rows(names), ["{name}", 5]]') for name in ("unittest", "__builtins__", "f", "check", "abs")},
    **{f"row {name} of mock": _look_up(f'[*rows(names), ["{name}", mine(5), ["unittest.mock", "MagicMock"]]]') for name in ("abs", "check", "same", "__import__", "isinstance", "all")},
    **{
        f"origin {module}:{name}": _look_up(f'[[n, mine(), ["{module}", "{name}"]] for n in names]')
        for module, name in _ORIGINS
    },
    **{
        f"rows {name}": _look_up(text)
        for name, text in {
            "none": "[]", "5": "5", "null": "None", "text": '"f"', "short": "[[n] for n in names]", "long": "[[n, 1, None, 4, 5] for n in names]", "twice": "rows(names) * 2", "numbers": "[[5, 1, None]]", "lists": "[[[n], 1, None] for n in names]", "names huge": '[[{"i": "f" * 5000}, 1, None]]', "origin 5": "[[n, mine(), 5] for n in names]", "origin text": '[[n, mine(), "os"] for n in names]', "origin short": '[[n, mine(), ["os"]] for n in names]', "origin numbers": "[[n, mine(), [5, 6]] for n in names]", "origin dots": '[[n, mine(), ["os", "...."]] for n in names]', "origin relative": '[[n, mine(), [".os", "x"]] for n in names]', "origin NUL": '[[n, mine(), ["os\\0", "x"]] for n in names]', "a class": '[[n, {"y": "slice"}, None] for n in names]', "type": '[[n, {"y": "type"}, None] for n in names]', "exception": '[[n, {"h": ["c", 0, "exception-class", "SystemExit", ["SystemExit"]]}, None] for n in names]', "values": "[[n, 1, None] for n in names]", "dicts": '[[n, {"d": []}, None] for n in names]', "many": 'rows(names) + [["x%d" % n, 1, None] for n in range(100_000)]', "extra value": 'rows(names), 5', "tests": "[[n, theirs(0), None] for n in names]",
        }.items()
    },
    **{
        f"public {name}": f"{PUPPET}\ndef serve(tag, request):\n    returned(tag, request, 1)\ntake_over(serve, rows, {text})\n"
        for name, text in {
            "many": '["x%d" % n for n in range(200_000)]', "odd": '[5, None, [], {"i": "f" * 5000}]', "dunder": '["__builtins__", "__name__", "f"]', "shadows": '["unittest", "TestIt", "abs", "isinstance", "f"]', "none": "[]",
        }.items()
    },
    **{f"frame {name}": wire(_FAILURE + _SERVE.replace("{0}", f"write({text})")) for name, text in _ODD.items()},
    **{f"frame {name}, then right": wire(_FAILURE + _SERVE.replace("{0}", f"write({text}); returned(tag, request, 1)")) for name, text in _ODD.items()},
    **{f"frame {name}, at once": f"{PUPPET}\n{_FAILURE}\ntag = OLD\nwrite({text})\ndef trick(*a, **k): return 1\n" for name, text in _ODD.items()},
    **{f"tree {name}": wire(f"{_TREES_SETUP}def serve(tag, request):\n    returned(tag, request, {text})\n") for name, text in _TREES.items()},
    **{f"argument {name}": _each(*_TREES_SETUP.splitlines(), f'call_back(tag, "call", theirs(0), [{text}], NO_ARGUMENTS)', "returned(tag, request, 1)") for name, text in _TREES.items() if "many" not in name and "long" not in name},
    "answers in bundles": wire("held = []\ndef serve(tag, request):\n    held.append((tag, request))\n    for t, r in reversed(held):\n        returned(t, r, 1)\n"),
    "answers late": wire("held = []\ndef serve(tag, request):\n    for t, r in held:\n        returned(t, r, 1)\n    held[:] = [(tag, request)]\n    call_back(tag, 'call', theirs(0), [], NO_ARGUMENTS)\n"),
    "asks instead of answering": _each("write(frame(b'K', tag, ['call', theirs(0), [], NO_ARGUMENTS]))", "returned(tag, request, 1)"),
    "asks and leaves": _each("write(frame(b'K', tag, ['call', theirs(0), [], NO_ARGUMENTS]))", "os._exit(0)"),
    "answers and leaves": _each("returned(tag, request, 1)", "os._exit(0)"),
    "dies in silence": _each("os._exit(0)"),
    "closes": _each("os.close(3)", "os._exit(0)"),
    "asks in a row": _each("for _ in range(50): call_back(tag, 'call', theirs(0), [_], NO_ARGUMENTS)", "returned(tag, request, 1)"),
    "true": _value("True"), "one": _value("1"), "nothing": _value("None"),
    "the arguments": _value("request[2] if len(request) > 2 else 1"),
    "the request": _value("request"),
}  # fmt: skip

# Under a time limit of their own, and against few kinds: each uses all of it.
ENDLESS: Final = {
    "loops": "def trick(*a, **k):\n    while True:\n        pass\n",
    "loops at once": "while True:\n    pass\n",
    "sleeps": "import time\ndef trick(*a, **k):\n    time.sleep(60)\n",
    "counts": "import itertools\ndef trick(*a, **k):\n    return itertools.count()\n",
    "yields": "def trick(*a, **k):\n    while True:\n        yield 1\n",
    "iterates": "class L:\n    def __iter__(s): return s\n    def __next__(s): return 1\n    def __len__(s): return 5\ntrick = lambda *a, **k: L()\n",
    "indexes": "class L:\n    def __getitem__(s, i): return i\n    def __len__(s): return 2 ** 62\ntrick = lambda *a, **k: L()\n",
    "stops itself": "import os\ndef trick(*a, **k):\n    os.kill(os.getpid(), 19)\n",
    "prints": "import sys\ndef trick(*a, **k):\n    while True:\n        sys.stdout.write('OK' * 100_000)\n",
    "prints errors": "import sys\ndef trick(*a, **k):\n    while True:\n        sys.stderr.write('OK' * 100_000)\n",
    "forks": "import os\ndef trick(*a, **k):\n    while True:\n        try:\n            os.fork()\n        except OSError:\n            pass\n",
    "forks at once": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
    "threads": "import threading, time\ndef trick(*a, **k):\n    while True:\n        try:\n            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n        except RuntimeError:\n            pass\n",
    "memory": "def trick(*a, **k):\n    x = []\n    while True:\n        x.append(bytearray(2 ** 20))\n",
    "calls back for ever": "def trick(g=None, *a, **k):\n    while True:\n        g and callable(g) and g(1)\n",
    "recursive call-backs": "def trick(g=None, *a, **k):\n    def again(*b): return g(again)\n    return again()\n",
    "regex": "import re\ndef trick(*a, **k):\n    return re.match('(x+x+)+y', 'x' * 50)\n",
    "wire: asks for ever": _each("while True: call_back(tag, 'call', theirs(0), [], NO_ARGUMENTS)"),
    "wire: asks classes for ever": _each("while True: call_back(tag, 'call', {'y': 'list'}, [], NO_ARGUMENTS)"),
    "wire: hello for ever": _each("while True: write(frame(b'H', tag, []))"),
    "wire: empty for ever": _each("while True: write(b'\\0\\0\\0\\0' * 10_000)"),
    "wire: drips": _each("import time", "for byte in frame(b'A', tag, ['value', 1, [], -1]): write(bytes([byte])); time.sleep(0.2)"),
    "wire: never reads": wire("def serve(tag, request):\n    while True: write(frame(b'K', tag, ['call', theirs(0), ['x' * 10 ** 6], NO_ARGUMENTS]))\n"),
    "wire: says nothing": _each("import time", "time.sleep(60)"),
    "wire: endless iterator": _each("returned(tag, request, mine(1, 'generator', '__iter__', '__next__') if request[0] == 'call' or request[1] == '__iter__' else 1)"),
    "wire: deep call-backs": _each("write(frame(b'K', tag, ['call', theirs(0), [mine(0)], NO_ARGUMENTS]))"),
}  # fmt: skip

# Two numbers that no short computation divides: their Fraction takes Python half a minute.
_LONG: Final = (
    "import random\ndef long(seed):\n"
    "    return {'i': format(random.Random(seed).getrandbits(3_999_999), 'x')}\n"
)
_SAYS_V: Final = _SERVE.replace("{0}", "returned(tag, request, V)")
_ASKS_V: Final = _SERVE.replace(
    "{0}", "call_back(tag, 'call', theirs(0), [V], NO_ARGUMENTS); returned(tag, request, V)"
)
# What they say takes the judge long to read: minutes, where it does not watch its clock.
COSTLY: Final = {
    "Fraction": wire(f"{_LONG}V = {{'F': [long(1), long(2)]}}\n{_SAYS_V}"),
    "Fractions": wire(f"{_LONG}V = [{{'F': [long(n), long(n + 4)]}} for n in range(4)]\n{_SAYS_V}"),
    "Fraction in an argument": wire(f"{_LONG}V = {{'F': [long(1), long(2)]}}\n{_ASKS_V}"),
    "Fraction in a row": wire(
        f"{_LONG}V = {{'F': [long(1), long(2)]}}\ndef look_up(names):\n"
        f"    return [[name, V, None] for name in names]\n{_SAYS_V}"
    ),
    "Fraction, honestly": returning(
        "made",
        "import random\nfrom fractions import Fraction\nmade = object.__new__(Fraction)\n"
        "made._numerator = random.getrandbits(3_999_999)\nmade._denominator = random.getrandbits(3_999_999)\n",
    ),
    "nested lists": _value("[[[]] * 8 for _ in range(1_500_000)]"),
    "48 MiB of lists": _value('[[[1]]] * 5_000_000'),
    "colliding sets": _value('{"s": [{"i": format((2 ** 61 - 1) * n, "x")} for n in range(1, 100_000)]}'),
    "few colliding, often": _value('[{"s": [{"i": format((2 ** 61 - 1) * n, "x")} for n in range(1, 990)]} for _ in range(1_000)]'),
    "colliding keys": _value('{"d": [v for n in range(1, 990) for v in ({"i": format((2 ** 61 - 1) * n, "x")}, n)]}'),
    "colliding tuples": _value('[{"s": [{"t": [{"i": format((2 ** 61 - 1) * n, "x")}]} for n in range(1, 990)]} for _ in range(500)]'),
    "huge numbers": _value('[{"i": "f" * 999_999}] * 40'),
    "Decimals": _value('[{"D": "9" * 4_999 + "E9999"}] * 8_000'),
    "dates": _value('[{"T": ["datetime", "2000-01-01T00:00:00"]}] * 800_000'),
    "ranges": _value('[{"r": [0, 1, 1]}] * 1_500_000'),
    "arrays": _value('[{"n": ["float64", [1.0]]}] * 700_000'),
    "large array": _value('{"n": ["object", [1] * 4_000_000]}'),
    "wide dtype": _value('{"n": ["U10000000", ["a"] * 100]}'),
    "references": _value('[mine(n, "instance", "__len__") for n in range(600_000)]'),
    "deep": _value('json.loads("[" * 98 + "]" * 98)'),
    "many deep": _value('[json.loads("[" * 90 + "]" * 90)] * 200_000'),
    "a deep set": _value('[{"f": [{"f": [{"f": [1]}]}]}] * 300_000'),
    "changes": _each('answer(tag, "value", 1, [[0, [[1]] * 2_000_000]], -1)'),
    "slow repr": returning("L()", "import time\nclass L:\n    def __repr__(s): time.sleep(1); return 'x'\n    __str__ = __len__ = __bool__ = __repr__\n"),
}  # fmt: skip
