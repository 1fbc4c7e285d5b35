from __future__ import annotations

import ast
import itertools
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.sandbox.harness import bundles, sources
from assay.sandbox.harness.codec import MAX_BYTES, CodecError, decode, encode
from session_cells_support import Process


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process("python", tmp_path_factory.mktemp("cells")) as process:
        yield process


@pytest.fixture
def cells(shared: Process) -> Process:
    """Nothing has run yet in its `__main__`; modules are those of all tests."""
    shared.fresh()
    return shared


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Process]:
    with Process("python", tmp_path) as process:
        yield process


# Texts


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("1", True), ("x = 1", False), ("", False), ("# only a comment", False), ("1;", False),
        ("1; # why", False), ("1 # ;", True), ("';'", True), ("(1\n)", True), ("(1 # ;\n)", True),
        ("(1\n) ;", False), ("a = 1; a", True), ("a = 1; a;", False), ("f'{1};{2}'", True),
        ("'é' ;", False), ("'é;'", True), ("1\r\n", True), ("x = ';'\rx", True), ("x = ';'\rx;",
        False),
        ("def f(): 1", False), ("if True: 1", False), ("  1", True),
        ("x = 1\nx\n\n;" , None),
    ],
)  # fmt: skip
def test_the_last_expression_is_shown_unless_a_semicolon_follows(
    text: str, shows: bool | None
) -> None:
    try:
        parts = sources.compiled(text, "<cell 1>", 0)
    except SyntaxError:
        assert shows is None
        return
    assert (parts.last is not None) is shows


_statements = st.lists(
    st.sampled_from([
        "a = 1", "b = [a for a in range(3)]", "a += 1", "def f(x=a): return x + a",
        "c = f()", "class K:\n    n = a\n    def m(self): return self.n + 1", "d = K().m()",
        "import math", "e = math.floor(2.5)", "for i in range(3): a += i",
        "try:\n    del z\nexcept NameError:\n    z = a", "f = lambda x=a, /: x", "'a text'", "a",
        "g = (n for n in range(9))", "h = next(g, None)", "if a > 2:\n    a -= 2",
        "global k; k = a", "with open('/dev/null') as w: v = w.read()", "j: int = 3",
        "from __future__ import annotations", "def t(q: Nowhere = 1): return q", "s = t()",
        "a, (b, *l) = 1, (2, 3, 4)", "n = m = a", "assert a", "print(a, end='')",
        "import sys; sys.argv",
    ]),
    max_size=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(statements=_statements, cuts=st.sets(st.integers(0, 12)))
def test_cell_by_cell_is_as_in_one_piece(
    shared: Process, statements: list[str], cuts: set[int]
) -> None:
    """Unless a statement raises, namespaces and output are the same."""
    statements.sort(key=lambda line: "__future__" not in line)
    whole = "\n".join(statements)
    pieces = ["\n".join(statements[a:b]) for a, b in _spans(len(statements), cuts)]
    look = (
        "{k: v for k, v in globals().items() if isinstance(v, (int, str, list, tuple))"
        " and k not in ('__doc__', '__name__')}"
    )
    shared.fresh()
    at_once = shared.run(whole)
    expected = shared.run(look)
    shared.fresh()
    ran = [shared.run(piece) for piece in pieces]
    found = shared.run(look)
    if at_once.end == "completed":
        assert [cell.end for cell in ran] == ["completed"] * len(ran)
        assert found.plain == expected.plain
        assert b"".join(cell.out for cell in ran) == at_once.out
    else:
        assert {cell.end for cell in ran} >= {"raised"}


def _spans(length: int, cuts: set[int]) -> list[tuple[int, int]]:
    edges = sorted({0, length, *(cut for cut in cuts if cut < length)})
    return list(itertools.pairwise(edges))


_plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(value=_plain.filter(lambda value: value is not None))
def test_a_plain_value_comes_back(shared: Process, value: object) -> None:
    ran = shared.run(repr(value))
    assert ran.end == "completed"
    assert ran.value == {
        "text/plain": repr(value).encode("utf-8", "backslashreplace").decode("latin-1")
    }
    assert decode(ran.plain.encode()) == value == ast.literal_eval(repr(value))


@settings(max_examples=100, deadline=None)
@given(value=_plain, most=st.integers(1, 200))
def test_a_limit_of_bytes_is_kept(value: object, most: int) -> None:
    whole = encode(value, max_bytes=MAX_BYTES)
    try:
        assert encode(value, max_bytes=most) == whole
    except CodecError:
        assert len(whole) > most or _elements(value) * 9 > 3 * most
    else:
        assert len(whole) <= most


def _elements(value: object) -> int:
    parts = list(value.values()) + list(value) if isinstance(value, dict) else value
    return 1 + sum(map(_elements, parts)) if isinstance(parts, (list, tuple)) else 1


# What a cell comes to


@pytest.mark.parametrize(
    ("code", "end", "said"),
    [
        ("1/0", "raised", "ZeroDivisionError"), ("x ===", "raised", "SyntaxError"),
        ("return 1", "raised", "SyntaxError"), ("if x:\npass", "raised", "IndentationError"),
        ("raise SystemExit", "exited", ""), ("exit()", "exited", ""), ("input()", "raised",
        "EOFError"),
        ("raise KeyboardInterrupt", "interrupted", "KeyboardInterrupt"),
        ("raise BaseException", "raised", "BaseException"), ("\0", "raised", "Error"),
        ("-" * 100_000 + "1", "raised", "Error"), ("10**5000", "raised", "ValueError"),
        ("def f(): f()\nf()", "raised", "RecursionError"),
        ("raise ExceptionGroup('g', [ValueError()] * 9999)", "raised", "ExceptionGroup"),
        ("raise GeneratorExit", "raised", "GeneratorExit"), ("breakpoint()", "raised", "BdbQuit"),
        ("%matplotlib inline", "raised", "SyntaxError"), ("!ls", "raised", "SyntaxError"),
        ("files = !ls", "raised", "SyntaxError"), ("await nothing()", "raised", "NameError"),
    ],
)  # fmt: skip
def test_each_end_is_told_and_the_next_cell_runs(
    cells: Process, code: str, end: str, said: str
) -> None:
    ran = cells.run(code)
    assert ran.end == end
    if end == "exited":
        assert ran.error is None
    else:
        assert ran.error is not None
        assert said in ran.error[0]
        assert ran.error[0] in ran.error[2]
    assert cells.run("40 + 2").plain == "42"


@pytest.mark.parametrize(
    ("argument", "code", "said"),
    [("", 0, b""), ("None", 0, b""), ("3", 3, b""), ("True", 1, b""), ("256 + 7", 7, b""), ("-1",
     255, b""),
     ("'a reason'", 1, b"a reason\n"), ("[1]", 1, b"[1]\n")],
)  # fmt: skip
def test_an_exit_has_its_code(cells: Process, argument: str, code: int, said: bytes) -> None:
    ran = cells.run(f"import sys; sys.exit({argument})")
    assert (ran.end, ran.exit_code, ran.err) == ("exited", code, said)


def test_magics_are_refused_in_words(cells: Process) -> None:
    for code in ("%%bash\nls", "!pip install x", "x = %time 1", "a = 1\n%timeit a"):
        ran = cells.run(code)
        assert ran.error is not None
        assert "use a bash session" in ran.error[1]
    assert cells.run("7 \\\n% 4").plain == "3"


def test_a_traceback_shows_the_program_alone(cells: Process) -> None:
    cells.run("def f(x):\n    return 1 / x")
    ran = cells.run("y = 2\nf(0)")
    assert ran.error is not None
    lines = ran.error[2].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == '  File "<cell 2>", line 2, in <module>'
    assert lines[2] == "    f(0)"
    assert '  File "<cell 1>", line 2, in f' in lines
    assert "    return 1 / x" in lines
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "harness" not in ran.error[2]


def test_an_awaited_error_shows_the_program_alone(cells: Process) -> None:
    ran = cells.run("async def f():\n    1 / 0\nawait f()")
    assert ran.error is not None
    assert "asyncio" not in ran.error[2]
    assert "line 2, in f" in ran.error[2]


def test_the_last_value_is_kept_as_a_prompt_keeps_it(cells: Process) -> None:
    cells.run("6 * 7")
    assert cells.run("_ + 1").plain == "43"
    cells.run("_ = 'mine'; 5")
    assert cells.run("_").plain == '"mine"'


def test_main_is_a_module(cells: Process) -> None:
    cells.run(
        "import dataclasses, inspect, pickle, sys, typing\n"
        "@dataclasses.dataclass\nclass P:\n    x: int = 3\n"
        "def twice(f):\n    return lambda *a: f(f(*a))\n"
        "@twice\ndef up(n):\n    return n + 1\n"
        "def plain(n):\n    return n  # a comment\n"
    )
    assert cells.run("pickle.loads(pickle.dumps(P(5))) == P(5)").plain == "true"
    assert cells.run("up(1)").plain == "3"
    assert cells.run("inspect.getsource(plain)").plain.endswith('# a comment\\n"')
    assert cells.run("__name__ == '__main__' and sys.modules['__main__'].up is up").plain == "true"
    assert cells.run("typing.get_type_hints(P)['x'] is int").plain == "true"


def test_future_statements_hold_for_later_cells(cells: Process) -> None:
    cells.run("from __future__ import annotations")
    cells.run("def f(x: Nowhere): pass")
    assert cells.run("f.__annotations__").plain == '{"d":["x","Nowhere"]}'


def test_a_warning_is_shown_once_a_cell_with_its_place(cells: Process) -> None:
    code = "import warnings\nfor _ in range(3):\n    warnings.warn('look out')"
    for number in (1, 2):
        ran = cells.run(code)
        assert ran.err.count(b"look out") == 2  # the text, and the line
        assert b"<cell %d>:3: UserWarning: look out" % number in ran.err


def test_many_cells_leave_tracebacks_whole_and_memory_flat(cells: Process) -> None:
    cells.run("def first():\n    1 / 0")
    for number in range(1_100):
        cells.run(f"x{number % 3} = {number}")
    assert (
        int(
            cells.run("import linecache; sum(n.startswith('<cell') for n in linecache.cache)").plain
        )
        <= 1_001
    )
    ran = cells.run("\n\n1 / 0")
    assert ran.error is not None
    assert "    1 / 0" in ran.error[2]
    old = cells.run("first()")
    assert old.error is not None
    assert '"<cell 1>", line 2, in first' in old.error[2]


# Streams


def test_output_streams_while_the_cell_runs_and_is_whole_when_it_ends(
    own: Process, tmp_path: Path
) -> None:
    ran = own.run(
        "import os, time\nprint('first')\n"
        "while not os.path.exists('go'): time.sleep(0.001)\nprint('last', end='')",
        when=lambda p: b"first\n" in p.out and (tmp_path / "go").touch() is None,
    )
    assert ran.out == b"first\nlast"


def test_output_larger_than_a_pipe(cells: Process) -> None:
    ran = cells.run(
        "import os, sys\nprint('x' * 3_000_000)\nsys.stderr.write('e' * 300_000)\n"
        "os.write(1, b'raw')\nos.system('echo child')"
    )
    assert ran.end == "completed"
    assert ran.out == b"x" * 3_000_000 + b"\nraw" + b"child\n"
    assert ran.err == b"e" * 300_000


@pytest.mark.parametrize(
    "spoil",
    ["sys.stdout = None", "sys.stdout = object()", "del sys.stdout", "sys.stdout.close()",
     "sys.stdout = io.StringIO()", "sys.__stdout__.close()", "sys.stderr.close()", "exit()",
     "sys.stdout.flush = lambda: 1 / 0"],
)  # fmt: skip
def test_a_spoiled_stream_spoils_no_other_cell(own: Process, spoil: str) -> None:
    own.run("import io, sys")
    own.run(spoil)
    assert own.run("sys.__stdout__.write('back\\n');").out == b"back\n"
    assert own.run("sys.stdout = sys.__stdout__; print('on')").out == b"on\n"
    assert own.run("1 + 1").plain == "2"


def test_what_c_code_buffers_comes_with_its_cell(cells: Process) -> None:
    ran = cells.run("import ctypes; ctypes.CDLL(None).puts(b'from C');")
    assert ran.out == b"from C\n"


# Values and displays


@pytest.mark.parametrize(
    ("body", "mime", "content"),
    [
        ("def _repr_html_(self): return '<b>'", "text/html", "<b>"),
        ("def _repr_markdown_(self): return '*'", "text/markdown", "*"),
        ("def _repr_svg_(self): return '<svg/>'", "image/svg+xml", "<svg/>"),
        ("def _repr_png_(self): return b'\\x89PNG'", "image/png", "\x89PNG"),
        ("def _repr_png_(self): return 'iVBORw=='", "image/png", "\x89PNG"),
        ("def _repr_jpeg_(self): return b'\\xff\\xd8', {'width': 1}", "image/jpeg", "\xff\xd8"),
        ("def _repr_latex_(self): return '$x$'", "text/latex", "$x$"),
        ("def _repr_json_(self): return {'a': [1]}", "application/json", '{"a": [1]}'),
        ("def _repr_mimebundle_(self, include, exclude): return {'x/y': 'z'}", "x/y", "z"),
        ("def _repr_mimebundle_(self, **k): return {'text/plain': 'own'}, {}", "text/plain", "own"),
    ],
)  # fmt: skip
def test_an_object_is_shown_in_its_forms(
    cells: Process, body: str, mime: str, content: str
) -> None:
    code = f"class A:\n    def __repr__(self): return 'plain'\n    {body}\n"
    value = cells.run(code + "A()").value
    assert value is not None
    assert value[mime] == content
    assert set(value) == {"text/plain", mime}
    shown = cells.run("display(A(), 3)").shown
    assert shown == [value, {"text/plain": "3"}]


@pytest.mark.parametrize(
    "body",
    ["1 / 0", "raise SystemExit", "return 5", "return NotImplemented", "return {1: 2}",
     "return [self]",
     "return None", "return 'x' * 1_250_000", "import sys; sys.setrecursionlimit(5)"],
)  # fmt: skip
def test_a_form_that_fails_is_left_out(cells: Process, body: str) -> None:
    names = ("_repr_html_", "_repr_png_", "_repr_mimebundle_")
    methods = "".join(f"    def {name}(self, **k): {body}\n" for name in names)
    ran = cells.run(f"class A:\n    def __repr__(self): return 'A!'\n{methods}A()")
    assert ran.end == "completed"
    assert ran.value is not None
    assert ran.value["text/plain"] == "A!"
    assert sum(map(len, ran.value.values())) <= bundles.MAX_BUNDLE


@pytest.mark.parametrize(
    "make",
    ["'x' * 10**7", "b'x' * 10**7", "list(range(10**6))", "tuple(range(10**6))", "[[0] * 10**6]",
     "set(range(10**6))", "{n: n for n in range(10**6)}"],
)  # fmt: skip
def test_a_large_value_is_cut(cells: Process, make: str) -> None:
    ran = cells.run(make)
    assert ran.end == "completed"
    assert ran.value is not None
    assert len(ran.value["text/plain"]) <= bundles.MAX_TEXT + 100
    assert "\n... of " in ran.value["text/plain"]
    assert ran.plain == ""


def test_a_raw_bundle_is_shown_as_it_is(cells: Process) -> None:
    ran = cells.run("display({'text/html': '<i>', 'text/plain': 'i', 3: 4}, raw=True)")
    assert ran.shown == [{"text/html": "<i>", "text/plain": "i"}]


def test_figures_are_shown_and_closed(own: Process, tmp_path: Path) -> None:
    """A module of pyplot's shape: the figures' own work is matplotlib's."""
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text("")
    (tmp_path / "matplotlib" / "pyplot.py").write_text(
        "figures = {}\ndef show(): 1 / 0\n"
        "class Figure:\n    def __init__(self): figures[len(figures)] = self\n"
        "    def savefig(self, fname, **k): fname.write(b'\\x89PNG')\n"
        "    def __repr__(self): return '<Figure>'\n"
        "def figure(n): return figures[n]\ndef get_fignums(): return list(figures)\n"
        "def close(f): figures.clear()\n"
    )
    picture = {"text/plain": "<Figure>", "image/png": "\x89PNG"}
    own.run("import os; from matplotlib import pyplot as plt")
    ran = own.run("one = plt.Figure(); plt.show(block=True); display('between'); plt.Figure();")
    assert ran.shown == [picture, {"text/plain": "'between'"}, picture]
    assert own.run("plt.Figure(); 1 / 0").shown == [picture]
    assert own.run("os.environ['MPLBACKEND']").plain == '"Agg"'
    assert own.run("1").shown == []
    assert own.run("one").value == picture


# Interrupts


@pytest.mark.parametrize(
    "wait",
    ["while True: pass", "import time; time.sleep(99)", "await __import__('asyncio').sleep(99)",
     "import threading; threading.Event().wait()",
     "class R:\n    def __repr__(s): time.sleep(99)\nimport time; R()",
     "import subprocess; subprocess.run(['sleep', '99'])"],
)  # fmt: skip
def test_an_interrupt_ends_the_cell_alone(own: Process, wait: str) -> None:
    own.run("x = 1")
    ran = own.run(
        "print('begun', flush=True)\n" + wait,
        when=lambda p: b"begun" in p.out and (p.interrupt() or True),
    )
    assert ran.end == "interrupted"
    assert own.run("x + 1").plain == "2"


def test_an_interrupt_between_cells_is_for_nobody(own: Process) -> None:
    for number in range(20):
        own.run(f"x = {number}")
        own.interrupt()
        assert own.run("x").plain == str(number)


def test_a_program_may_catch_an_interrupt(own: Process) -> None:
    ran = own.run(
        "import time\ntry:\n    print('begun')\n    time.sleep(99)\nexcept KeyboardInterrupt:\n"
        "    print('caught')",
        when=lambda p: b"begun" in p.out and (p.interrupt() or True),
    )
    assert (ran.end, ran.out) == ("completed", b"begun\ncaught\n")


# Await


def test_tasks_wait_between_cells_and_go_on(own: Process) -> None:
    own.run(
        "import asyncio, os\nseen = []\nasync def tick():\n    for n in range(3):\n"
        "        seen.append(n)\n        await asyncio.sleep(0)"
    )
    own.run("async def begin():\n    return asyncio.create_task(tick())\ntask = await begin()")
    before = own.run("len(os.listdir('/proc/self/fd'))").plain
    own.copy(go_on_as_copy=True)
    own.run("await task")
    assert own.run("seen").plain == "[0,1,2]"
    assert own.run("len(os.listdir('/proc/self/fd'))").plain == before
    assert own.run("asyncio.run(asyncio.sleep(0, 'run'))").plain == '"run"'
    own.run("queue = asyncio.Queue()\nawait queue.put(5)")
    assert own.run("await queue.get()").plain == "5"


def test_a_loop_that_serves_keeps_its_descriptors(own: Process) -> None:
    own.run(
        "import asyncio\n"
        "async def answer(r, w):\n    w.write(await r.readline()); w.close()\n"
        "server = await asyncio.start_unix_server(answer, 'socket')"
    )
    ran = own.run(
        "r, w = await asyncio.open_unix_connection('socket')\nw.write(b'hello\\n')\n"
        "await r.readline()"
    )
    assert ran.plain == '{"b":"' + b"hello\n".hex() + '"}'


# Copies


@pytest.mark.parametrize("as_copy", [False, True])
def test_a_copy_is_equal(own: Process, as_copy: bool) -> None:
    own.run(
        "import random, itertools, io, threading\nrandom.seed(5); numbers = itertools.count()\n"
        "next(numbers); big = [[n] for n in range(100_000)]\nbig[0].append(big)\n"
        "def g():\n    yield from range(9)\ngen = g(); next(gen)"
    )
    expected = own.run("random.getstate()[1][:3]").plain
    for _ in range(3):
        own.copy(go_on_as_copy=as_copy)
    assert own.run("random.getstate()[1][:3]").plain == expected
    assert (
        own.run("next(numbers), next(gen), len(big), big[0][1] is big").plain
        == '{"t":[1,1,100000,true]}'
    )
    assert own.run("threading.main_thread().native_id == threading.get_native_id()").plain == "true"


def test_garbage_of_checkpointed_states_is_freed(own: Process) -> None:
    own.run(
        "import os\ndef size(): return int(open('/proc/self/statm').read().split()[1]) * 4096 / 1e6"
    )
    own.run(
        "class Node: pass\ndef make():\n"
        "    n = Node(); n.me = n; n.data = bytearray(20_000_000); return n"
    )
    for _ in range(40):
        own.run("state = make()")
        own.copy(go_on_as_copy=False)
    assert float(own.run("size()").plain) < 300  # of 800 that were made


def test_reseeding_gives_each_its_own_numbers(own: Process) -> None:
    own.run("import random")
    drawn = []
    for seed in (1, 2, 1):
        own.reseed(seed)
        drawn.append(own.run("random.random()").plain)
    assert drawn[0] == drawn[2] != drawn[1]


def test_numpy_that_is_loaded_later_is_seeded_by_then(own: Process) -> None:
    own.run("from assay.sandbox.zygote import seeding; seeding.watch_numpy()")
    own.reseed(7)
    own.run("import numpy; expected = numpy.random.RandomState(7).random()")
    assert own.run("numpy.random.random() == expected").plain == "true"


def test_timers_are_named(own: Process) -> None:
    assert own.holds() == []
    own.run("from signal import *; setitimer(ITIMER_REAL, 1000); setitimer(ITIMER_PROF, 1000);")
    assert own.holds() == ["an interval timer (real time)", "an interval timer (CPU time)"]
    own.run("alarm(0); setitimer(ITIMER_PROF, 0);")
    assert own.holds() == []


@pytest.mark.skipif(not Path("/proc/self/timers").exists(), reason="the kernel does not tell")
def test_timers_of_c_code_are_named(own: Process) -> None:
    own.run("import ctypes; number = ctypes.c_int(); libc = ctypes.CDLL(None)")
    if own.run("libc.timer_create(1, None, ctypes.byref(number))").plain == "0":
        assert own.holds() == ["a POSIX timer"]


def test_a_file_that_came_between_cells_is_imported(own: Process, tmp_path: Path) -> None:
    for name in string.ascii_lowercase:
        ran = own.run(f"import late_{name}")
        assert ran.error is not None
        (tmp_path / f"late_{name}.py").write_text(f"x = {name!r}")
        assert own.run(f"import late_{name}; late_{name}.x").plain == f'"{name}"'


def test_threads_go_on_between_cells(own: Process) -> None:
    own.run(
        "import threading, time\nn = 0\ndef f():\n    global n\n"
        "    while n < 50: n += 1; time.sleep(0.001)\nt = threading.Thread(target=f); t.start()"
    )
    assert own.run("t.join(); n").plain == "50"
