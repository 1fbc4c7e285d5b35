"""Cells that run in this process, by `exec` in a thread. Not a sandbox: run only what you trust.

Covered: state, output, values, tracebacks, the limit on the clock, interrupts of Python code, and
copies of plain state. Not covered: every wall and every other limit. `open` of a relative path
finds the session's folder; the process's own working directory, signals and `os._exit` are yours.
"""

from __future__ import annotations

import ast
import builtins
import copy
import ctypes
import io
import shutil
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.api.session.v1 import session_pb2
from assay.kit.durations import fill_duration
from assay.kit.plain import to_plain

Emit = Callable[[int, bytes], None]
_HEED_S = 2.0
_POLL_S = 0.01


class _Router(io.TextIOBase):
    """A standard stream that leads what a cell's thread writes to its session."""

    def __init__(self, stream: int, beneath: Any) -> None:
        self.beneath = beneath
        self._stream = stream
        self.routes: dict[int, Emit] = {}

    def write(self, text: str) -> int:
        emit = self.routes.get(threading.get_ident())
        if emit is None:
            return int(self.beneath.write(text))
        emit(self._stream, text.encode("utf-8", "surrogateescape"))
        return len(text)

    def flush(self) -> None:
        if threading.get_ident() not in self.routes:
            self.beneath.flush()

    def writable(self) -> bool:
        return True


class _Streams:
    """stdout and stderr, routed while a fake serves."""

    def __init__(self) -> None:
        self._users = 0
        self._lock = threading.Lock()
        self._routers: tuple[_Router, _Router] | None = None

    def acquire(self) -> None:
        with self._lock:
            self._users += 1
            if self._routers is None:
                self._routers = (
                    _Router(session_pb2.OUTPUT_STREAM_STDOUT, sys.stdout),
                    _Router(session_pb2.OUTPUT_STREAM_STDERR, sys.stderr),
                )

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._routers is not None:
                for name, router in zip(("stdout", "stderr"), self._routers, strict=True):
                    if getattr(sys, name) is router:
                        setattr(sys, name, router.beneath)
                self._routers = None

    def _install(self) -> None:
        """Stands before whatever the streams are now: pytest changes them for each test."""
        with self._lock:
            for name, router in zip(("stdout", "stderr"), self._routers or (), strict=False):
                if getattr(sys, name) is not router:
                    router.beneath = getattr(sys, name)
                    setattr(sys, name, router)

    def route(self, emit: Emit | None) -> None:
        """Leads the output of this thread; None for no longer."""
        if emit is not None:
            self._install()
        for router in self._routers or ():
            if emit is None:
                router.routes.pop(threading.get_ident(), None)
            else:
                router.routes[threading.get_ident()] = emit


STREAMS = _Streams()


class CannotCopyError(Exception):
    """A variable that has no copy."""


class Cells:
    """The state of one session: its variables, its folder, its counter."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fake-session-"))
        self.number = 0
        self.cpu_s = 0.0
        self.space: dict[str, Any] = {"__name__": "__main__"}
        self.space["__builtins__"] = self._builtins()
        self._thread: threading.Thread | None = None
        self._end = 0

    def _builtins(self) -> dict[str, Any]:
        def open_here(file: Any, *args: Any, **kwargs: Any) -> Any:
            return open(  # noqa: PTH123  # as the cell calls it
                self.folder / file if isinstance(file, str | Path) else file, *args, **kwargs
            )

        return {**vars(builtins), "open": open_here}

    def copy(self) -> Cells:
        """A copy: deep of plain state; modules and classes are shared.

        Raises:
            CannotCopyError: a variable has none, such as a lock or a generator.
        """
        made = Cells()
        made.number, made.cpu_s = self.number, self.cpu_s
        memo: dict[int, Any] = {id(self.space): made.space}
        for name, value in self.space.items():
            if name == "__builtins__":
                continue
            try:
                made.space[name] = self._copied(value, made.space, memo)
            except Exception as error:
                made.discard()
                raise CannotCopyError(f"{name}: a {type(value).__name__}") from error
        shutil.copytree(self.folder, made.folder, dirs_exist_ok=True)
        return made

    def _copied(self, value: Any, space: dict[str, Any], memo: dict[int, Any]) -> Any:
        if isinstance(value, types.ModuleType):
            return value
        if isinstance(value, types.FunctionType) and value.__globals__ is self.space:
            made = types.FunctionType(
                value.__code__, space, value.__name__, value.__defaults__, value.__closure__
            )
            made.__kwdefaults__, made.__dict__ = value.__kwdefaults__, dict(value.__dict__)
            return made
        return copy.deepcopy(value, memo)

    def discard(self) -> None:
        """Removes its folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def interrupt(self, end: int) -> None:
        """Raises KeyboardInterrupt in the running cell, which then ends with `end`."""
        self._end = end
        if self._thread is not None and self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(KeyboardInterrupt)
            )

    def run(self, code: str, wall_s: float, emit: Emit) -> session_pb2.CellResult:
        """Runs a cell to its end, or until it has not heeded its interrupt for 2 s."""
        self.number += 1
        self._end = 0
        result = session_pb2.CellResult(number=self.number, end=session_pb2.CELL_END_COMPLETED)
        kept: dict[int, list[bytes]] = {1: [], 2: []}

        def keep(stream: int, data: bytes) -> None:
            kept[stream].append(data)
            emit(stream, data)

        began = time.monotonic()
        self._thread = threading.Thread(
            target=self._work, args=(code, keep, result), name="fake-cell", daemon=True
        )
        self._thread.start()
        self._wait(began + wall_s)
        if self._thread.is_alive():
            result = session_pb2.CellResult(number=self.number, session_over=True)
            result.detail = "it did not heed its interrupt"
        if self._end:
            result.end = session_pb2.CellEnd.ValueType(self._end)
        self._thread = None
        for stream, captured in ((1, result.stdout), (2, result.stderr)):
            captured.data = b"".join(kept[stream])
            captured.total_bytes = len(captured.data)
        fill_duration(result.usage.wall_time, time.monotonic() - began)
        self._count(result.usage)
        return result

    def _wait(self, deadline_s: float) -> None:
        thread = self._thread
        assert thread is not None  # noqa: S101  # `run` has set it
        asked_s = None
        while thread.is_alive():
            thread.join(_POLL_S if asked_s or deadline_s > time.monotonic() + _POLL_S else 0.001)
            now = time.monotonic()
            if now > deadline_s and not self._end and thread.is_alive():
                self.interrupt(session_pb2.CELL_END_WALL_TIME_LIMIT)
            if self._end and asked_s is None:
                asked_s = now
            if asked_s is not None and now > asked_s + _HEED_S:
                return

    def _count(self, usage: session_pb2.CellUsage) -> None:
        files = list(self.folder.rglob("*"))
        usage.files = len(files)
        usage.disk_bytes = sum(one.stat().st_size for one in files if one.is_file())
        self.cpu_s += usage.cpu_time.ToTimedelta().total_seconds()
        fill_duration(usage.session_cpu_time, self.cpu_s)

    def _work(self, code: str, emit: Emit, result: session_pb2.CellResult) -> None:
        STREAMS.route(emit)
        began = time.thread_time()
        try:
            value = self._run_code(code)
            if value is not None:
                result.value.data["text/plain"] = repr(value).encode("utf-8", "replace")
                _add_plain(value, result)
        except KeyboardInterrupt:
            result.end = session_pb2.CELL_END_INTERRUPTED
        except SystemExit as leaving:
            result.end = session_pb2.CELL_END_EXITED
            result.exit_code = (
                leaving.code if isinstance(leaving.code, int) else leaving.code is not None
            )
        except BaseException as error:  # noqa: BLE001  # whatever the cell raises is its result
            result.end = session_pb2.CELL_END_RAISED
            _add_error(error, result)
        finally:
            STREAMS.route(None)
            fill_duration(result.usage.cpu_time, time.thread_time() - began)

    def _run_code(self, code: str) -> object:
        name = f"<cell {self.number}>"
        tree = ast.parse(code, name)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, name, "exec"), self.space)  # noqa: S102  # what this is for
        if not isinstance(last, ast.Expr):
            return None
        value: object = eval(compile(ast.Expression(last.value), name, "eval"), self.space)  # noqa: S307  # as above
        return value


def _add_plain(value: object, result: session_pb2.CellResult) -> None:
    try:
        result.plain_value.CopyFrom(to_plain(value))
    except (TypeError, ValueError):
        result.ClearField("plain_value")


def _add_error(error: BaseException, result: session_pb2.CellResult) -> None:
    trace = error.__traceback__
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<cell"):
        trace = trace.tb_next
    result.error.name = type(error).__name__
    result.error.message = str(error)
    result.error.traceback = "".join(traceback.format_exception(type(error), error, trace))
