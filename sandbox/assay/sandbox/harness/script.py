"""Runs a file as `python FILE` would, in an interpreter that is already up.

Differences from a fresh interpreter:

1. The zygote's modules are loaded.
2. Objects that are alive at the end are not finalised: no __del__ runs after the last statement.
   Threads are joined, exit functions run and streams are flushed in the interpreter's own order.
"""

from __future__ import annotations

import atexit
import builtins
import os
import signal
import sys
import types
from collections.abc import Callable
from typing import Any

_EXIT_FLUSH_FAILED = 120  # what the interpreter itself exits with


def prepare_main(path: str, arguments: tuple[str, ...]) -> types.ModuleType:
    """A fresh `__main__` for a script, with its sys.argv and sys.path."""
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    sys.argv = [path, *arguments]
    # Plain text work: the functions of os.path would cost every run a dozen pages.
    folder, here = path.rpartition("/")[0], os.getcwd()
    sys.path.insert(0, folder if path.startswith("/") else f"{here}/{folder}".rstrip("/"))
    return main


def execute(path: str, namespace: dict[str, Any]) -> None:
    """Compiles a file and runs it in a namespace. Raises whatever it raises."""
    with open(path, "rb") as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), namespace)  # noqa: S102


def run(path: str, arguments: tuple[str, ...]) -> int:
    """Runs a script to its end and returns the exit code."""
    main = prepare_main(path, arguments)
    return finish(lambda: execute(path, main.__dict__), frames=3)


def finish(body: Callable[[], object], *, frames: int) -> int:
    """Calls `body`, then ends as the interpreter would: report, threads, exit functions, streams.

    Args:
        body: what to run.
        frames: innermost-last frames of ours that a traceback leaves out.
    """
    try:
        body()
        code = 0
    except SystemExit as stop:
        code = _exit_code(stop)
    except KeyboardInterrupt:
        code = _report(frames)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - the fault boundary: what it raises is its own
        code = _report(frames)
    return _shut_down(code)


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    _write_error(f"{stop.code}\n")
    return 1


def _report(frames: int) -> int:
    kind, error, trace = sys.exc_info()
    for _ in range(frames):
        trace = trace.tb_next if trace is not None else None
    try:
        if error is not None and kind is not None:
            sys.excepthook(kind, error.with_traceback(trace), trace)
    except BaseException:  # noqa: BLE001 - the program's own hook failed
        _write_error("Error in sys.excepthook\n")
    return 1


def _shut_down(code: int) -> int:
    threading = sys.modules.get("threading")
    try:
        if threading is not None:
            threading._shutdown()  # noqa: SLF001  # what the interpreter calls itself
        atexit._run_exitfuncs()  # noqa: SLF001
    except SystemExit as stop:
        code = _exit_code(stop)
    except BaseException:  # noqa: BLE001 - the fault boundary
        code = code or 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:  # noqa: BLE001 - the fault boundary
            code = _EXIT_FLUSH_FAILED
    return code


def _write_error(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - the fault boundary: the stream may be gone
        return
