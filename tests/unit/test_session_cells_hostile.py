"""Programs that mean to break the loop that runs cells: the cells after each must work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from session_cells_support import Process


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Process]:
    with Process("python", tmp_path) as process:
        yield process


_HOSTILE = {
    "class name raises": "class M(type):\n    @property\n    def __name__(s): raise SystemError\n"
    "class E(Exception, metaclass=M): pass\nraise E('x')",
    "str raises": "class E(Exception):\n    def __str__(s): raise SystemExit\nraise E",
    "class lies": "class L:\n    @property\n    def __class__(s): raise RuntimeError\nL()",
    "class is int": "class L:\n    __class__ = int\nL()",
    "answers to every name": "class G:\n    def __getattr__(s, n): return s\n"
    "    def __call__(s, *a, **k): return s\nG()",
    "metaclass exits": "class T(type):\n    def __getattribute__(s, n): raise SystemExit\n"
    "class A(metaclass=T): pass\nA()",
    "repr is no text": "class N:\n    def __repr__(s): return 5\nN()",
    "repr never ends": "class R:\n    def __repr__(s): return repr(s)\nR()",
    "a text of its own": "class S(str):\n    def encode(s, *a): raise ValueError\n"
    "    __str__ = encode\n"
    "class Q:\n    def __repr__(s): return S('q')\nQ()",
    "exit code of its own": "class I(int):\n    def __and__(s, o): raise ValueError\n"
    "raise SystemExit(I(1))",
    "exit code lies": "class L:\n    __class__ = property(lambda s: 1 / 0)\nraise SystemExit(L())",
    "trace": "import sys\ndef t(*a): raise RuntimeError\nsys.settrace(t)",
    "profile": "import sys\ndef t(*a): raise RuntimeError\nsys.setprofile(t)",
    "small depth": "import sys\ndef f(): sys.setrecursionlimit(30)\nf()",
    "gc": "import gc\ndef f(*a): raise ValueError\ngc.callbacks.append(f); gc.collect()",
    "gc thresholds": "import gc; gc.set_threshold(1); gc.callbacks.append(lambda *a: 1 / 0)",
    "traceback": "import traceback\n"
    "traceback.TracebackException = traceback.StackSummary = None\n1 / 0",
    "traceback's parts": "import traceback\ntraceback.TracebackException.format = None\n1 / 0",
    "linecache": "import linecache; linecache.cache = None",
    "no globals": "globals().clear()",
    "no modules": "import sys; sys.modules.clear()",
    "no builtins": "import builtins\nfor n in list(vars(builtins)):\n    delattr(builtins, n)",
    "json": "import json; json.dumps = json.loads = json.JSONEncoder.encode = None",
    "os": "import os; os.getpid = os._exit = os.write = None",
    "sys": "import sys; sys.getrecursionlimit = sys.settrace = sys.exc_info = None",
    "codec": "import collections; collections.deque = None; import re; re.compile = None",
    "a hook": "import sys; sys.excepthook = sys.displayhook = lambda *a: 1 / 0\n1 / 0",
    "at exit": "import atexit; atexit.register(lambda: 1 / 0)",
    "long chain": "e = ValueError()\nfor i in range(50_000):\n"
    "    n = ValueError(i); n.__cause__ = e; e = n\nraise e",
    "a loop of causes": "a, b = ValueError(), KeyError()\na.__cause__, b.__context__ = b, a\n"
    "raise a",
    "surrogates": "raise ValueError('\\ud800')",
    "large error": "raise ValueError('x' * 10**7)",
    "a signal": "import signal\ndef f(*a): raise TimeoutError\nsignal.signal(signal.SIGALRM, f)\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.001)",
    "own SIGINT": "import signal; signal.signal(signal.SIGINT, lambda *a: 1 / 0)",
    "import hook": "import sys\nclass F:\n  def find_spec(*a): 1 / 0\nsys.meta_path.insert(0, F())",
    "importers": "import sys; sys.path_importer_cache = None; sys.path = None",
    "closed 1": "import os; os.close(1)",
    "threads": "import threading\n"
    "for _ in range(8): threading.Thread(target=lambda: 1 / 0).start()",
    "audit": "import sys\ndef f(event, a):\n"
    "    if event == 'compile' and 'never' in str(a): raise SystemError\n"
    "sys.addaudithook(f)",
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_no_program_breaks_the_loop(tmp_path: Path, name: str) -> None:
    with Process("python", tmp_path) as process:
        process.run("kept = 41")
        first = process.run(_HOSTILE[name])
        assert first.end in {"completed", "raised", "exited"}
        assert first.error is None or max(map(len, first.error)) < 200_000
        process.run("pass")
        for _ in range(3):
            assert process.run("1 +").end == "raised"
            assert process.run("7 * 6").value == {"text/plain": "42"}
        if name != "no globals":
            assert process.run("kept + 1").value == {"text/plain": "42"}


def test_a_fork_of_the_programs_ends_with_the_cell(own: Process) -> None:
    own.run("import os, sys")
    assert own.run("if os.fork() == 0: sys.exit(5)\nos.wait()[1] >> 8").plain == "5"
    ran = own.run("if os.fork() == 0: raise ValueError('child')\nos.wait()[1] >> 8")
    assert (ran.plain, ran.err.strip().splitlines()[-1]) == ("1", b"ValueError: child")
    ran = own.run("if os.fork() == 0:\n    print('child')\nelse:\n    os.wait()")
    assert ran.out == b"child\n"
    assert own.run("1").plain == "1"


def test_a_trace_function_sees_the_program_alone(own: Process) -> None:
    own.run(
        "import sys; seen = set()\ndef t(f, e, a): seen.add(f.f_code.co_filename); return t\n"
        "sys.settrace(t)"
    )
    own.run("def g(): return 1\ng()")
    assert own.run("sys.settrace(None); sorted(seen)").plain == '["<cell 2>","<cell 3>"]'
