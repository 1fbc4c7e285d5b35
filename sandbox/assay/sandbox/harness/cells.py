"""Runs Python cells as Jupyter does, in one `__main__` that lives from cell to cell.

It is Python, not IPython: magics and shell lines are refused. Differences from Jupyter:

1. The value of a cell's last expression is `_` as at Python's own prompt: a name of `builtins`, so
   a program's own `_` hides it.
2. `asyncio.run` works in a cell, for no event loop runs there; top-level await has a loop of its
   own (`awaiting`).
3. What raises in a value's `__repr__` is the cell's exception.

Between cells signals wait, and SIGINT does nothing, so that no handler of the program's runs in the
loop that asks for the next cell.

Covered: whatever a cell raises, replaces or deletes in modules that this one uses; its forks end
where the cell ends.
Not covered: a program that means to take this process over: it owns it.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import io
import linecache
import os
import sys
import types
from _signal import (
    SIG_BLOCK,
    SIG_IGN,
    SIG_SETMASK,
    SIGALRM,
    SIGCHLD,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGIO,
    SIGPIPE,
    SIGPROF,
    SIGQUIT,
    SIGTERM,
    SIGUSR1,
    SIGUSR2,
    SIGVTALRM,
    SIGWINCH,
    default_int_handler,
    getitimer,
    pthread_sigmask,
)
from _signal import signal as set_signal
from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable
from os import _exit, getpid
from sys import (
    getprofile,
    getrecursionlimit,
    gettrace,
    setprofile,
    setrecursionlimit,
    settrace,
)
from typing import Any, Final

from assay.sandbox.harness import bundles, reports, sources
from assay.sandbox.harness.awaiting import Awaiting
from assay.sandbox.harness.codec import encode
from assay.sandbox.harness.figures import Figures
from assay.sandbox.harness.interpreters import Bundle, CellOutcome

globals()["__builtins__"] = dict(vars(builtins))  # also when the program deletes them

MAX_PLAIN: Final = 16 * 2**10
_KEPT_CELLS: Final = 1_000
_KEPT_CHARACTERS: Final = 4 * 2**20
_MIN_DEPTH: Final = 500  # of recursion, for our own part
_COROUTINE: Final = 0x80  # inspect.CO_COROUTINE
_TIMERS: Final = ((0, "real time"), (1, "virtual time"), (2, "CPU time"))
_LEAST_GROWTH: Final = 32 * 2**20
_SMALL_BLOCK: Final = 64  # bytes, of the interpreter's own allocator
_DEFERRED: Final = frozenset(
    {SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGIO, SIGPIPE, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2}
    | {SIGVTALRM, SIGWINCH}
)  # fmt: skip
_WARM_UP_ROUNDS: Final = 10  # the interpreter has settled on a function's form after eight calls
_WARM_UP: Final = (
    "import math\nx = [1, 2.5, 'a', (None, {1: True})]", "x", "x;", "print(len(x))",
    "class A:\n    def _repr_html_(self):\n        return '<b>'\nA()", "def f():\n    1 / 0\nf()",
    "x ===", "raise SystemExit", "display(x)",
)  # fmt: skip
_CODE_OF: Final[Any] = vars(SystemExit)["code"].__get__
_libc = ctypes.CDLL(None)
_flush_c_streams = _libc.fflush
_flush_c_streams.argtypes = [ctypes.c_void_p]


class PythonCells:
    """Runs Python cells; the working directory is the process's."""

    def __init__(self) -> None:
        main = types.ModuleType("__main__")
        main.__builtins__ = builtins  # type: ignore[attr-defined]
        sys.modules["__main__"] = main
        sys.argv = [""]
        if "" not in sys.path:
            sys.path.insert(0, "")
        os.environ.setdefault("MPLBACKEND", "Agg")  # there is no display
        self._main = main
        self._space: dict[str, Any] = main.__dict__
        self._modules, self._folder = sys.modules, os.getcwd()
        self._flags = 0
        self._sources: dict[str, str] = {}
        self._source_names: deque[str] = deque()
        self._source_size = 0
        self._awaiting = Awaiting()
        self._figures = Figures(self._pass_on)
        self._lock, self._thread = allocate_lock(), get_ident()
        self._show: Callable[[Bundle], None] | None = None
        self._handler: Any = default_int_handler
        self._mask = pthread_sigmask(SIG_BLOCK, ())
        self._depth = getrecursionlimit()
        self._trace: Any = None
        self._profile: Any = None
        # Bytes in use: what was alive at the last search for garbage, what was frozen last, and
        # what is usual since.
        self._live = self._frozen = self._usual = _memory_in_use()
        self._streams: tuple[Any, ...] = ()
        self._open_streams()
        builtins.display = self.display  # type: ignore[attr-defined]

    def run(self, code: str, number: int, show: Callable[[Bundle], None]) -> CellOutcome:
        """Runs a cell; see `Interpreter`."""
        outcome: CellOutcome | None = None
        try:
            try:
                self._resume(show)
                outcome = self._attempt(code, f"{reports.CELL}{number}>")
            finally:
                self._pause()
        except KeyboardInterrupt:
            outcome = CellOutcome("interrupted")
        except BaseException as error:  # noqa: BLE001 - the fault boundary: the program's own
            outcome = CellOutcome("raised", error=(reports.name_of(error), "", ""))
        return outcome

    def display(self, *objects: object, raw: bool = False, **options: object) -> None:
        """Shows objects at once; with `raw`, each is a dictionary of forms by mime type.

        Jupyter's further options are taken and do nothing.
        """
        for shown in objects:
            is_raw = raw and isinstance(shown, dict)
            bundle = bundles.raw_bundle(shown) if is_raw else bundles.bundle_of(shown)  # type: ignore[arg-type]
            self._flush()
            self._pass_on(bundle)

    def holds(self) -> list[str]:
        """See `Interpreter`."""
        found = [f"an interval timer ({name})" for kind, name in _TIMERS if getitimer(kind)[0]]
        try:
            with open("/proc/self/timers") as file:
                found += ["a POSIX timer" for line in file if line.startswith("ID:")]
        except OSError:
            pass  # a kernel without it
        return found

    def before_copy(self) -> None:
        """Flushes, and takes the heap out of the collector's reach, so that its pages stay shared.

        What is garbage by now, or becomes it later, is not freed then. A search of all of the heap
        costs 60 ns an object, so it is made where much may be garbage and memory has doubled.
        """
        self._flush()
        if gc.isenabled():
            in_use = _memory_in_use()
            if self._frozen - self._live < _LEAST_GROWTH:
                self._usual = in_use
                gc.collect(1)
            elif in_use > 2 * self._usual + _LEAST_GROWTH:
                gc.unfreeze()
                gc.collect()
                in_use = self._live = self._usual = _memory_in_use()
            self._frozen = in_use
        gc.freeze()

    def after_copy(self, *, is_copy: bool) -> None:
        """See `Interpreter`."""
        threading = self._modules.get("threading")
        if is_copy and threading is not None:
            with contextlib.suppress(BaseException):  # the program's module by now
                threading.main_thread()._set_native_id()  # noqa: SLF001  # else its parent's

    def reseed(self, seed: int) -> None:
        """See `Interpreter`. numpy is seeded as it is loaded, where it is not yet."""
        with contextlib.suppress(BaseException):  # the program's list by now
            for finder in sys.meta_path:
                if hasattr(finder, "first_numpy_seed"):
                    finder.first_numpy_seed = seed % 2**32
        for name, state in (("random", seed), ("numpy.random.mtrand", seed % 2**32)):
            with contextlib.suppress(BaseException):  # the program's module by now
                if name in self._modules:
                    self._modules[name].seed(state)

    def _pass_on(self, bundle: Bundle) -> None:
        """Shows it; an interrupt waits, for it would leave half a message on the channel."""
        late: list[tuple[Any, ...]] = []
        handler: Any = None
        with self._lock:
            if self._show is None:
                return
            if get_ident() != self._thread:
                self._show(bundle)
                return
            handler = set_signal(SIGINT, lambda *signal: late.append(signal))
            try:
                self._show(bundle)
            finally:
                set_signal(SIGINT, default_int_handler if handler is None else handler)
        if late and callable(handler):
            handler(*late[0])

    def _attempt(self, code: str, name: str) -> CellOutcome:
        pid, caught, value = getpid(), None, None
        self._keep_source(name, code)
        space = self._space
        space.pop("__warningregistry__", None)  # a warning is shown once in each cell
        space.setdefault("__builtins__", builtins)
        space.setdefault("__name__", "__main__")
        try:
            body, last, self._flags = sources.compiled(code, name, self._flags)
            if body is not None:
                self._execute(body)
            if last is not None:
                value = self._execute(last)
        except BaseException as error:  # noqa: BLE001 - the fault boundary: what it raises is its own
            caught = error
        self._depth = getrecursionlimit()
        if self._depth < _MIN_DEPTH:
            setrecursionlimit(_MIN_DEPTH)
        if getpid() != pid:
            self._leave(caught)
        try:
            return self._ended(value, caught)
        finally:
            del value, caught  # a traceback refers to this frame

    def _execute(self, code: types.CodeType) -> object:
        if self._trace is not None or self._profile is not None:
            setprofile(self._profile)
            settrace(self._trace)
        try:
            value: object = eval(code, self._space)  # noqa: S307  # its purpose; it takes both kinds
            if code.co_flags & _COROUTINE:
                value = self._awaiting.complete(value)  # type: ignore[arg-type]
            return value
        finally:  # functions of C alone: a trace function of the program's sees none of ours
            try:
                self._trace, self._profile = gettrace(), getprofile()
            except BaseException:  # noqa: BLE001 - its profile function raised: then it is gone
                self._trace = self._profile = None
            settrace(None)
            setprofile(None)

    def _ended(self, value: object, caught: BaseException | None) -> CellOutcome:
        bundle, plain = None, b""
        try:
            if value is not None:
                builtins._ = value  # type: ignore[attr-defined]
                bundle, plain = bundles.bundle_of(value), _plain(value)
            if caught is None or issubclass(type(caught), Exception):
                self._figures.show_all()
        except BaseException as error:  # noqa: BLE001 - the fault boundary: its `__repr__`, its figure
            caught = error if caught is None else caught
        try:
            if caught is None:
                return CellOutcome("completed", 0, bundle, plain)
            if issubclass(type(caught), SystemExit):
                return CellOutcome("exited", _exit_code(caught))
            end = "interrupted" if issubclass(type(caught), KeyboardInterrupt) else "raised"
            return CellOutcome(end, error=reports.report(caught, self._sources))
        finally:
            self._flush()
            del caught

    def _leave(self, caught: BaseException | None) -> None:
        """Ends a process that the cell has forked, and that came to the cell's end."""
        code = 1
        try:
            if caught is None:
                code = 0
            elif issubclass(type(caught), SystemExit):
                code = _exit_code(caught)
            else:
                self._complain(caught)
            self._flush()
        finally:
            _exit(code)

    def _complain(self, error: BaseException) -> None:
        with contextlib.suppress(BaseException):  # the program's own stream
            sys.stderr.write(reports.report(error, self._sources)[2])

    def _resume(self, show: Callable[[Bundle], None]) -> None:
        """Gives the process to the program as it left it; first come the signals since then."""
        self._show = show
        self._modules["__main__"] = self._main
        with contextlib.suppress(Exception):  # files may have come since, in the same tick
            sys.path_importer_cache[self._folder].invalidate_caches()  # type: ignore[union-attr]
        if any(stream.closed for stream in self._streams):  # `exit()` closes stdin
            self._open_streams()
        try:
            pthread_sigmask(SIG_SETMASK, self._mask)
        except BaseException as error:  # noqa: BLE001 - the fault boundary: its handler's own
            self._complain(error)
        if self._depth < _MIN_DEPTH:
            setrecursionlimit(self._depth)
        set_signal(SIGINT, self._handler)

    def _pause(self) -> None:
        """Takes it back, also where the program's functions interfere."""
        for _ in range(3):
            try:
                self._handler = set_signal(SIGINT, SIG_IGN) or default_int_handler
                break
            except BaseException:  # noqa: BLE001, S112 - a signal that came late
                continue
        for _ in range(3):
            try:
                self._mask = pthread_sigmask(SIG_BLOCK, _DEFERRED)
                break
            except BaseException:  # noqa: BLE001, S112 - a signal that came late
                continue
        with self._lock:
            self._show = None

    def _open_streams(self) -> None:
        """Streams on the descriptors 0, 1 and 2, which stay open when these are closed."""
        old = self._streams or (sys.__stdin__, sys.__stdout__, sys.__stderr__)
        new = (
            io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8"),
            _writer(1, "strict"),
            _writer(2, "backslashreplace"),
        )
        for name, before, stream in zip(("stdin", "stdout", "stderr"), old, new, strict=True):
            if not self._streams or getattr(sys, name, None) is before:
                setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        self._streams = new

    def _flush(self) -> None:
        for name in ("stdout", "stderr"):
            for stream in (getattr(sys, name, None), getattr(sys, f"__{name}__", None)):
                try:
                    if stream is not None:
                        stream.flush()
                except KeyboardInterrupt:
                    raise
                except BaseException:  # noqa: BLE001, S112 - the fault boundary: it is the program's
                    continue
        _flush_c_streams(None)

    def _keep_source(self, name: str, code: str) -> None:
        try:
            self._sources[name] = code
            self._source_names.append(name)
            self._source_size += len(code)
            while len(self._source_names) > _KEPT_CELLS or self._source_size > _KEPT_CHARACTERS:
                oldest = self._source_names.popleft()
                self._source_size -= len(self._sources.pop(oldest, ""))
                linecache.cache.pop(oldest, None)
            linecache.cache.pop(name, None)
            reports.show_sources({name: code})
        except (AttributeError, TypeError):
            pass  # the program has replaced it


def _writer(descriptor: int, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors, line_buffering=True)


def _plain(value: object) -> bytes:
    """The value by `codec`, where it is plain data and not large."""
    try:
        if type(value) in {str, bytes, list, tuple, dict, set} and len(value) > MAX_PLAIN:  # type: ignore[arg-type]
            return b""
        return encode(value, max_bytes=MAX_PLAIN)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the fault boundary: a hostile class may raise anything
        return b""


def _exit_code(stop: BaseException) -> int:
    code: Any = _CODE_OF(stop)
    if code is None:
        return 0
    if issubclass(type(code), int):
        return int.__and__(code, 0xFF)
    try:
        sys.stderr.write(f"{code}\n")
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001, S110 - the fault boundary: the program's own text and stream
        pass
    return 1


class _MallocInfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("a", "b", "c", "d", "mapped", "e", "f", "used", "g", "h")
    )


def _memory_in_use() -> int:
    """Bytes that the program has allocated; where the C library does not say, what is in memory."""
    try:
        info = (
            _libc.mallinfo2()
        )  # what it mapped is its fifth number, what else is in use its eighth
    except AttributeError:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    used: int = info.mapped + info.used + sys.getallocatedblocks() * _SMALL_BLOCK
    return used


if hasattr(_libc, "mallinfo2"):
    _libc.mallinfo2.restype = _MallocInfo


def warm_up() -> None:
    """Runs a few cells in this process, so that the first of a copy cost less."""
    names = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__", "argv")
    saved = [getattr(sys, name) for name in names]
    path, main, handler = list(sys.path), sys.modules["__main__"], set_signal(SIGINT, SIG_IGN)
    environment, finders = dict(os.environ), list(sys.meta_path)
    mask = pthread_sigmask(SIG_BLOCK, ())
    cells = PythonCells()
    sys.stdout = io.StringIO()
    for _ in range(_WARM_UP_ROUNDS):
        for number, code in enumerate(_WARM_UP):
            cells.run(code, number, lambda _: None)
        cells.holds()
    for name, value in zip(names, saved, strict=True):
        setattr(sys, name, value)
    sys.path[:], sys.meta_path[:], sys.modules["__main__"] = path, finders, main
    for name in os.environ.keys() - environment:
        del os.environ[name]
    set_signal(SIGINT, handler)
    pthread_sigmask(SIG_SETMASK, mask)
    linecache.cache.clear()
    del builtins.display  # type: ignore[attr-defined]
    builtins.__dict__.pop("_", None)
