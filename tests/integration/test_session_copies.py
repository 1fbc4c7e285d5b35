"""What a copy of a session holds, and what it cannot hold: refused with its name, or equal.

Each table is data. A row of `REFUSED`: a cell, what the refusal must name, and the cell that ends
it, after which a checkpoint works. A row of `SURVIVES`: a cell, and an expression that must have
the same value in the session, in the session rolled back, and in forks.
"""

# ruff: noqa: E501  # cells are data

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import sessions_wire as support
from sessions_wire import Refused, Server

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks")


class Held(NamedTuple):
    """Something that no copy would hold."""

    name: str
    code: str
    named: str
    undo: str


REFUSED = [
    Held(
        "thread",
        "import threading\nstop = threading.Event()\nt = threading.Thread(target=stop.wait)\nt.start()",
        "thread",
        "stop.set(); t.join()",
    ),
    Held(
        "executor",
        "from concurrent.futures import ThreadPoolExecutor\np = ThreadPoolExecutor(2)\np.submit(int).result()",
        "thread",
        "p.shutdown()",
    ),
    Held(
        "child",
        "import subprocess\np = subprocess.Popen(['sleep', '60'])",
        "process|child",
        "p.kill(); p.wait()",
    ),
    Held(
        "dead-child",
        "import os, time\npid = os.fork()\nif pid == 0: os._exit(0)\ntime.sleep(0.1)",
        "process|child",
        "os.waitpid(pid, 0)",
    ),
    Held(
        "daemon",
        "import os, time\nr = os.open('pid', os.O_CREAT | os.O_RDWR)\n"
        "if os.fork() == 0:\n    os.setsid()\n    pid = os.fork()\n    if pid:\n"
        "        os.write(r, b'%d' % pid); os._exit(0)\n    os.execvp('sleep', ['sleep', '60'])\n"
        "os.wait(); os.close(r)",
        "process|child",
        "import os, time\nos.kill(int(open('pid').read()), 9)\ntime.sleep(0.2)",
    ),
    Held("socket", "import socket\ns = socket.socket()", "socket", "s.close()"),
    Held(
        "socket-pair",
        "import socket\na, b = socket.socketpair()",
        "socket",
        "a.close(); b.close()",
    ),
    Held("pipe", "import os\nr, w = os.pipe()", "pipe", "os.close(r); os.close(w)"),
    Held(
        "fifo",
        "import os\nos.mkfifo('q')\nf = os.open('q', os.O_RDWR)",
        r"pipe|fifo|\(q\)",
        "os.close(f); os.unlink('q')",
    ),
    Held("epoll", "import select\ne = select.epoll()", "poll", "e.close()"),
    Held("eventfd", "import os\ne = os.eventfd(0)", "event", "os.close(e)"),
    Held(
        "asyncio",
        "import asyncio\nloop = asyncio.new_event_loop()",
        "socket|poll",
        "loop.close()",
    ),
    Held(
        "temporary-file",
        "import tempfile\nf = tempfile.TemporaryFile()\n_ = f.write(b'x')",
        "deleted",
        "f.close()",
    ),
    Held(
        "deleted-file",
        "import os\nf = open('gone', 'w')\nos.unlink('gone')",
        "deleted",
        "f.close()",
    ),
    Held("shared-memory", "import mmap\nm = mmap.mmap(-1, 4096)", "shared|mapping", "m.close()"),
    Held(
        "shared-file",
        "import mmap\nf = open('m', 'w+b')\nf.truncate(4096)\nm = mmap.mmap(f.fileno(), 4096)",
        "shared|mapping",
        "m.close(); f.close()",
    ),
    Held(
        "named-shared-memory",
        "from multiprocessing import shared_memory\ns = shared_memory.SharedMemory('n', True, 64, "
        "**({'track': False} if __import__('sys').version_info >= (3, 13) else {}))",
        "shared|mapping|process",
        "s.close(); s.unlink()\nfrom multiprocessing import resource_tracker as r\n"
        "r._resource_tracker._stop() if hasattr(r._resource_tracker, '_stop') else None",
    ),
    Held(
        "multiprocessing-value",
        "import multiprocessing, gc\nv = multiprocessing.Value('i', 7)",
        "shared|mapping",
        "del v; gc.collect()\nimport multiprocessing.heap as h\nh.BufferWrapper._heap = h.Heap()\ngc.collect()",
    ),
    Held(
        "interval-timer",
        "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 50)",
        "timer",
        "signal.setitimer(signal.ITIMER_REAL, 0)",
    ),
    Held(
        "profiling-timer",
        "import signal\nsignal.signal(signal.SIGPROF, lambda *a: None)\nsignal.setitimer(signal.ITIMER_PROF, 50)",
        "timer",
        "signal.setitimer(signal.ITIMER_PROF, 0)",
    ),
    Held(
        "alarm",
        "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.alarm(50)",
        "timer|alarm",
        "signal.alarm(0)",
    ),
    Held(
        "timerfd",
        "import ctypes\nc = ctypes.CDLL(None)\nt = c.timerfd_create(1, 0)\nassert t > 0",
        "timer",
        "import os; os.close(t)",
    ),
    Held(
        "signalfd",
        "import ctypes\nc = ctypes.CDLL(None)\nt = c.signalfd(-1, bytes(128), 0)\nassert t > 0",
        "signal",
        "import os; os.close(t)",
    ),
    Held(
        "inotify",
        "import ctypes\nc = ctypes.CDLL(None)\nt = c.inotify_init()\nassert t > 0",
        "inotify",
        "import os; os.close(t)",
    ),
    Held(
        "process-descriptor",
        "import os\np = os.pidfd_open(os.getpid())",
        "pid|process",
        "os.close(p)",
    ),
    Held(
        "deleted-folder",
        "import os\nos.mkdir('d'); d = os.open('d', os.O_RDONLY); os.rmdir('d')",
        "deleted|folder|director",
        "os.close(d)",
    ),
    Held(
        "shared-cwd-gone",
        "import os\nhome = os.getcwd(); os.mkdir('w'); os.chdir('w'); os.rmdir('../w')",
        "deleted|folder|director|cwd",
        "os.chdir(home)",
    ),
]

SURVIVES = {
    "variables": ("x = [1, {'a': (2, 3)}]; y = x", "x.append(4); (x, y is x)"),
    "generator": ("g = (n * n for n in range(9)); next(g); next(g)", "list(g)"),
    "closure": (
        (
            "def make():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n"
            "    return up\nup = make(); up()"
        ),
        "(up(), up())",
    ),
    "class": (
        "class A:\n    n = 1\n    def __init__(self): self.m = 2\na = A(); A.n = 5",
        "(a.n, a.m)",
    ),
    "cache": (
        "import functools\ncalls = []\n@functools.lru_cache\ndef f(n):\n    calls.append(n)\n    return n\nf(1)",
        "(f(1), f(2), calls)",
    ),
    "open-for-reading": (
        "open('t', 'w').write('one\\ntwo\\nthree\\n')\nf = open('t'); f.readline()",
        "(f.tell(), f.readline(), f.read())",
    ),
    "unflushed": (
        "f = open('u', 'w'); f.write('abc')",
        "(f.write('d'), f.flush(), open('u').read())[2]",
    ),
    "flushed": (
        "f = open('u', 'w'); f.write('abc'); f.flush()",
        "(f.write('d'), f.flush(), open('u').read())[2]",
    ),
    "append": (
        "f = open('u', 'a'); f.write('abc'); f.flush()",
        "(f.write('d'), f.flush(), open('u').read())[2]",
    ),
    "read-and-write": (
        "f = open('b', 'w+b'); f.write(b'0123456789'); f.seek(4)",
        "(f.write(b'X'), f.flush(), f.read(2), open('b', 'rb').read())",
    ),
    "bare-descriptor": (
        "import os\nd = os.open('d', os.O_CREAT | os.O_RDWR); os.write(d, b'abcdef'); os.lseek(d, 2, 0)",
        "(os.read(d, 2), os.write(d, b'Z'), os.pread(d, 9, 0), os.get_inheritable(d))",
    ),
    "folder-descriptor": (
        "import os\nos.mkdir('k'); open('k/f', 'w').write('in'); d = os.open('k', os.O_RDONLY)",
        "(os.listdir(d), os.open('f', os.O_RDONLY, dir_fd=d) > 0)",
    ),
    "renamed-open-file": (
        "import os\nf = open('r1', 'w+'); f.write('abc'); f.flush(); os.rename('r1', 'r2')",
        "(f.write('d'), f.flush(), open('r2').read())[2]",
    ),
    "hard-links": (
        "import os\nopen('h1', 'w').write('a'); os.link('h1', 'h2')",
        "(open('h1', 'a').write('b'), open('h2').read(), os.stat('h1').st_nlink)",
    ),
    "symbolic-links": (
        "import os\nopen('s1', 'w').write('a'); os.symlink('s1', 's2'); os.symlink('/nowhere', 's3')",
        "(open('s2').read(), os.readlink('s2'), os.readlink('s3'))",
    ),
    "modes-and-times": (
        "import os\nopen('m', 'w').write('a'); os.chmod('m', 0o751); os.utime('m', ns=(5, 7))\nos.mkdir('md', 0o700); os.chmod('md', 0o1711)",
        "(oct(os.stat('m').st_mode), os.stat('m').st_mtime_ns, oct(os.stat('md').st_mode))",
    ),
    "closed-folder": (
        "import os\nos.mkdir('c'); open('c/f', 'w').write('in'); os.chmod('c', 0)",
        "(oct(os.stat('c').st_mode), os.chmod('c', 0o700), open('c/f').read())",
    ),
    "strange-names": (
        "import os\nfor n in (b'\\xff\\xfe', b'a b', b'\\xc3\\xa9', b'-rf', b'new\\nline'): open(n, 'w').write('x')",
        "sorted(os.listdir(b'.'))",
    ),
    "deep-folders": (
        "import os\nhome = os.getcwd()\nfor n in range(300): os.mkdir('d'); os.chdir('d')\nopen('f', 'w').write('deep')\nos.chdir(home)",
        "[os.chdir('d') for _ in range(300)] and open('f').read()",
    ),
    "sparse-file": (
        "f = open('big', 'wb'); f.truncate(1 << 24); f.close()",
        "__import__('os').stat('big').st_size",
    ),
    "fifo-in-the-folder": (
        "import os, stat\nos.mkfifo('q')",
        "stat.S_ISFIFO(os.stat('q').st_mode)",
    ),
    "working-directory": (
        "import os\nos.makedirs('a/b'); os.chdir('a/b'); open('f', 'w').write('x')",
        "(os.getcwd(), os.listdir())",
    ),
    "tmp-and-shm": (
        "open('/tmp/t', 'w').write('1'); open('/dev/shm/s', 'w').write('2')",
        "(open('/tmp/t').read(), open('/dev/shm/s').read())",
    ),
    "module-of-the-workspace": (
        "import sys\nopen('own.py', 'w').write('n = 1\\ndef f(): return n')\nsys.path.insert(0, '.')\nimport own; own.n = 9",
        "(own.f(), __import__('importlib').reload(own).f())",
    ),
    "sqlite": (
        "import sqlite3\nc = sqlite3.connect('db'); c.execute('create table t (n)'); c.execute('insert into t values (1)'); c.commit()",
        "(c.execute('insert into t values (2)'), c.commit(), c.execute('select n from t').fetchall())[2]",
    ),
    "sqlite-in-a-transaction": (
        "import sqlite3\nc = sqlite3.connect('db'); c.execute('create table t (n)'); c.commit(); c.execute('insert into t values (1)')",
        "(c.execute('insert into t values (2)'), c.commit(), sqlite3.connect('db').execute('select n from t').fetchall())[2]",
    ),
    "sqlite-in-memory": (
        "import sqlite3\nc = sqlite3.connect(':memory:'); c.execute('create table t (n)'); c.execute('insert into t values (1)')",
        "c.execute('select n from t').fetchall()",
    ),
    "random": (
        "import random\nrandom.seed(3); random.random(); r = random.Random(4)",
        "(random.random(), random.gauss(0, 1), r.random())",
    ),
    "unseeded-random": ("import random\nrandom.seed()", "random.random()"),
    "hash-seed": ("", "(hash('abc'), list({'a', 'b', 'c'}))"),
    "environment": (
        "import os\nos.environ['A'] = 'b'; del os.environ['PATH']",
        "(os.environ.get('A'), os.environ.get('PATH'), os.getenv('HOME'))",
    ),
    "decimal": (
        "import decimal\ndecimal.getcontext().prec = 5; decimal.getcontext().traps[decimal.Inexact] = True",
        "(decimal.getcontext().prec, decimal.getcontext().traps[decimal.Inexact])",
    ),
    "signal-handlers": (
        "import signal\nhit = []\nsignal.signal(signal.SIGUSR1, lambda *a: hit.append(a[0])); signal.signal(signal.SIGUSR2, signal.SIG_IGN)",
        "(signal.raise_signal(signal.SIGUSR1), signal.raise_signal(signal.SIGUSR2), hit)",
    ),
    "blocked-signals": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {10})",
        "sorted(map(int, signal.pthread_sigmask(0, ())))",
    ),
    "pending-signal": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {10}); signal.raise_signal(10)",
        "(signal.signal(10, signal.SIG_IGN), sorted(map(int, signal.pthread_sigmask(0, ()))))[1]",
    ),
    "warnings": ("import warnings\nwarnings.simplefilter('error')", "warnings.filters[0][0]"),
    "garbage": (
        "import gc\ngc.disable(); gc.set_threshold(5, 6, 7)",
        "(gc.isenabled(), gc.get_threshold())",
    ),
    "garbage-enabled": (
        "import gc, weakref\nclass N: pass",
        "(gc.isenabled(), gc.get_threshold())",
    ),
    "cycles-are-freed": (
        "import gc, weakref\nclass N: pass",
        "[n := N(), setattr(n, 'me', n), w := weakref.ref(n), n := None, gc.collect(), w()][-1] is None",
    ),
    "weak-references": ("import weakref\nclass N: pass\nn = N(); w = weakref.ref(n)", "w() is n"),
    "context": (
        "import contextvars\nv = contextvars.ContextVar('v', default=1); v.set(2)",
        "v.get()",
    ),
    "thread-local": (
        "import threading\nl = threading.local(); l.x = 3",
        "(l.x, threading.current_thread() is threading.main_thread())",
    ),
    "locks": (
        "import threading\nk = threading.Lock(); k.acquire(); q = threading.RLock(); q.acquire()",
        "(k.locked(), q.acquire(), k.release(), k.acquire(timeout=1))",
    ),
    "umask": ("import os\nos.umask(0o077)", "oct(os.umask(0))"),
    "recursion-limit": ("import sys\nsys.setrecursionlimit(777)", "sys.getrecursionlimit()"),
    "hooks": (
        "import sys\nsys.displayhook = print; sys.excepthook = len; sys.path.append('zz')",
        "(sys.excepthook is len, sys.path[-1])",
    ),
    "replaced-streams": (
        "import sys, io\nreal = sys.stderr\nsys.stderr = io.StringIO('kept')",
        "sys.stderr.getvalue()",
    ),
    "locale": (
        "import locale\nlocale.setlocale(locale.LC_ALL, 'C')",
        "locale.setlocale(locale.LC_ALL)",
    ),
    "ctypes": (
        "import ctypes\nb = ctypes.create_string_buffer(b'abc', 9); p = ctypes.pointer(b)",
        "p.contents.value",
    ),
    "private-mapping": (
        "import mmap\nm = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m[:3] = b'abc'",
        "bytes(m[:3])",
    ),
    "iterators": (
        "import itertools\nc = itertools.count(5); next(c); z = zip('ab', [1, 2]); next(z)",
        "(next(c), list(z))",
    ),
    "big-state": (
        "s = [bytearray(range(256)) * 4096 for _ in range(40)]",
        "__import__('hashlib').sha256(b''.join(s)).hexdigest()",
    ),
    "limits": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1])); resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
        "resource.getrlimit(resource.RLIMIT_NOFILE)",
    ),
    "temporary-names": (
        "import tempfile\nt = tempfile.mkdtemp(); open(t + '/f', 'w').write('x')",
        "(open(t + '/f').read(), tempfile.gettempdir())",
    ),
    "exception-kept": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    kept = e",
        "(repr(kept), kept.__traceback__ is not None)",
    ),
    "input-is-empty": ("", "__import__('sys').stdin.read()"),
    "no-descriptor-more": ("import os", "sorted(os.listdir('/proc/self/fd'))[:40]"),
}

NUMPY = {
    "numpy-legacy": ("import numpy as np\nnp.random.seed(5); np.random.rand()", "np.random.rand(3).tolist()"),
    "numpy-unseeded": ("import numpy as np", "np.random.rand(3).tolist()"),
    "numpy-generator": ("import numpy as np\ng = np.random.default_rng(5); g.random()", "g.random(3).tolist()"),
    "numpy-array": ("import numpy as np\na = np.arange(10**6)", "(a.__setitem__(0, 5), int(a.sum()))"),
    "numpy-errors": ("import numpy as np\n_ = np.seterr(all='raise')", "np.geterr()"),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with support.serving() as running:
        yield running


@pytest.mark.skipif(support.NAIVE, reason="it copies blindly")
@pytest.mark.parametrize("held", REFUSED, ids=lambda held: held.name)
def test_what_a_copy_would_lose_is_refused_by_name(server: Server, held: Held) -> None:
    session = server.one()
    try:
        made = session.execute(held.code)
        assert made.end == "completed", made.texts
        for copy in (session.checkpoint, session.fork):
            with pytest.raises(Refused) as refused:
                copy()
            assert refused.value.reason == "CANNOT_FORK"
            assert re.search(held.named, refused.value.metadata["holds"]), refused.value.metadata
        undone = session.execute(held.undo)
        assert undone.end == "completed", undone.texts
        point = session.checkpoint()
        assert session.value("6 * 7") == "42"
        session.rollback(point)
        assert session.value("6 * 7") == "42"
    finally:
        session.close()


@pytest.mark.skipif(support.NAIVE, reason="it copies blindly")
def test_a_late_word_about_a_refused_copy_is_no_word_about_the_next(server: Server) -> None:
    """The keeper refuses by what the copy holds before its busy parent has said that it split."""
    session = server.one()
    try:
        slow = "lambda self: (time.sleep(0.3 * (os.getpid() == PARENT)), CLOSE(self))[1]"
        made = session.execute(
            f"{support.PRELUDE}\nPARENT, CLOSE = os.getpid(), SERVE._close_handed\n"
            f"SERVE._close_handed = {slow}"
        )
        assert made.end == "completed", made.texts
        inotify = next(held for held in REFUSED if held.name == "inotify")
        session.execute(inotify.code)
        for copy in (session.checkpoint, session.fork):
            with pytest.raises(Refused) as refused:
                copy()
            assert refused.value.metadata["holds"].count("inotify") > 0, refused.value.metadata
        session.execute(f"{inotify.undo}\nSERVE._close_handed = CLOSE")
        point = session.checkpoint()
        [copied] = session.fork()
        assert copied.value("6 * 7") == "42"
        session.rollback(point)
        assert session.value("6 * 7") == "42"
    finally:
        session.close()


@pytest.mark.skipif(support.NAIVE, reason="it copies blindly")
def test_all_that_holds_a_session_is_named_at_once(server: Server) -> None:
    session = server.one()
    try:
        session.execute(
            "import threading, socket, os\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
            "s = socket.socket()\nr, w = os.pipe()"
        )
        with pytest.raises(Refused) as refused:
            session.checkpoint()
        holds = refused.value.metadata["holds"]
        assert all(word in holds for word in ("thread", "socket", "pipe")), holds
    finally:
        session.close()


@pytest.mark.parametrize("name", SURVIVES)
def test_what_a_copy_holds_is_equal(server: Server, name: str) -> None:
    assert_survives(server, *SURVIVES[name])


@pytest.mark.parametrize("name", NUMPY)
def test_what_a_copy_holds_of_numpy_is_equal(server: Server, name: str) -> None:
    if not support.NAIVE and "numpy" not in server.describe().python_packages:
        pytest.skip("sessions have no numpy here")
    assert_survives(server, *NUMPY[name])


def assert_survives(server: Server, code: str, ask: str) -> None:
    session = server.one()
    copies = []
    try:
        made = session.execute(code)
        assert made.end == "completed", made.texts
        point = session.checkpoint()
        copies = session.fork(2)
        live = session.execute(ask)
        assert live.end == "completed", live.texts
        copies += session.fork(1, checkpoint=point)
        for _ in range(2):
            session.rollback(point)
            assert session.execute(ask).seen == live.seen
        for copy in copies:
            assert copy.execute(ask).seen == live.seen
    finally:
        server.close_all([session, *copies])
