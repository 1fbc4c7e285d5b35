"""Cells that mean to break what runs them, for interpreters alone and within walls."""

from __future__ import annotations

# Python, by name. After each, the next cells must run as ever.
HOSTILE = {
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

# bash: each with its status and its output, None where these vary. All leave the shell as it was.

NASTY: list[tuple[str, int, bytes | None]] = [
    ("cat", 0, b""), ("read x; echo \"[$x]\"", 0, b"[]\n"), ("echo 'unclosed", 2, b""),
    ("echo \"unclosed", 2, b""), ("cat <<EOF\nhere", 0, b"here\n"), ("if true; then", 2, b""),
    ("echo (", 2, b""), (")", 2, b""), ("exec >out.txt; echo lost", 0, b""), ("echo hi | cat -",
    0, b"hi\n"),
    ("exec 2>&1; echo mixed >&2", 0, b"mixed\n"), ("exec </dev/zero; head -c 3 | wc -c", 0, b"3\n"),
    ("${nothing:?missing}; echo no", 1, b""), ("readonly r=1; r=2; echo no", 1, b""),
    ("return 4", 2, b""), ("break; continue; echo on", 0, b"on\n"), ("local x; echo on",
    0, b"on\n"),
    ("(exit 7)", 7, b""), ("nosuchcommand", 127, b""), ("/etc/passwd", 126, b""), ("false", 1, b""),
    ("printf 'no newline'", 0, b"no newline"), ("printf '\\0\\1\\377'", 0, b"\0\1\xff"),
    ("kill -9 $BASHPID & wait $!", 137, b""), ("sh -c 'kill -9 $$'", 137, b""), ("\0", 0, b""),
    ("python3 -c 'import sys; print(repr(sys.stdin.read()))'", 0, b"''\n"), ("set -n", 0, b""),
    ("coproc cat; kill $COPROC_PID; wait", None, None), ("g() { g; }; FUNCNEST=20 g", 1, b""),
     # type: ignore[list-item]
    ("trap 'echo bye' EXIT", 0, b""), ("TMOUT=1", 0, b""),
    ("PS1='> ' PS2='+ ' PROMPT_COMMAND='echo prompt'", 0, b""),
    ("set -o posix; set +o posix", 0, b""), ("set -u; echo $nothing; echo no", 1, b""),
    ("set -x; : traced; set +x", 0, b""), ("set -v; set +v", 0, b""),
    ("unalias -a; unset -f __assay", 1, b""),
    ("builtin printf '1 0 /tmp\\0' >&62", 1, b""), ("cat <&63", 1, b""),
    ("echo x >&60; echo y >&61", 1, b""),
    ("readonly IFS; :", 0, b""), ("LC_ALL=C; x=\u00e9; echo ${#x}", 0, b"2\n"), ("", 0, b""),
    ("# only a comment", 0, b""), ("echo back\\", 0, b"back\n"), ("yes | head -n 1", 0, b"y\n"),
    ("ulimit -c 0", 0, b""), ("stty -a", 1, b""),
    ("wait; jobs; fg", 1, b""),
    ("echo {1..20000} | wc -w", 0, b"20000\n"), ("eval 'eval \"echo deep\"'", 0, b"deep\n"),
    ("source /dev/stdin; echo on", 0, b"on\n"), ("select x in a b; do break; done", 1, None),
    ("IFS=; shopt -s failglob; unset IFS; shopt -u failglob", 0, b""), ("history; fc -l; !!",
    127, None),
]  # fmt: skip
