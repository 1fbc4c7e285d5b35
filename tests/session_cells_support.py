"""A process that runs cells as a session's does, between pipes, without walls."""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

_DRIVER = """
import builtins, json, marshal, os, signal, sys
globals()["__builtins__"] = dict(vars(builtins))
from assay.sandbox.harness import cells, shell
from assay.sandbox.zygote import syscalls
running = False

def interrupt(number, frame):
    if running:
        raise KeyboardInterrupt

def text(value):
    if value is None or isinstance(value, str):
        return value
    return {mime: content.decode("latin-1") for mime, content in value.items()}

def serve(make, loads, dumps, write, requests, answers):
    global running
    interpreter, number = make(), 0
    signal.signal(signal.SIGINT, interrupt)
    while True:
        request = loads(requests.readline() or "[null]")
        if request[0] is None:
            os._exit(0)
        answer = None
        if request[0] == "fresh":
            interpreter.before_copy()  # which ends what it holds
            interpreter, number = make(), 0
        elif request[0] == "holds":
            answer = interpreter.holds()
        elif request[0] == "redirect":
            os.dup2(os.open(request[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
        elif request[0] == "seed":
            interpreter.reseed(request[1])
        elif request[0] == "copy":
            interpreter.before_copy()
            child = syscalls.fork()
            is_copy = child == 0
            if request[1] != is_copy:
                os._exit(os.waitpid(child, 0)[1] and 1) if child else os._exit(0)
            if child:
                os.waitpid(child, 0)
            interpreter.after_copy(is_copy=is_copy)
        else:
            number += 1
            shown, show = [], lambda bundle: shown.append(text(bundle))
            running = True
            try:
                outcome = interpreter.run(request[1], number, show)
            except KeyboardInterrupt:
                outcome = ("interrupted", 0, None, b"", None)
            finally:
                running = False
            end, code, value, plain, error = outcome
            answer = [end, code, text(value), plain.decode(), error, shown, number]
        write(answers, dumps(answer).hex().encode() + b"\\n")

kind, requests, answers = sys.argv[1], open(int(sys.argv[2]), closefd=False), int(sys.argv[3])
make = {"python": cells.PythonCells, "bash": shell.BashShell}[kind]
for module in (cells, shell):
    module.warm_up()
serve(make, json.loads, marshal.dumps, os.write, requests, answers)
"""
_PATIENCE_S = 60.0


class Ran(NamedTuple):
    """What a cell came to."""

    end: str
    exit_code: int
    value: dict[str, str] | None
    plain: str
    error: list[str] | None
    shown: list[dict[str, str]]
    out: bytes
    err: bytes


class Process:
    """Runs cells of a language in a process of its own."""

    def __init__(self, language: str, folder: str | os.PathLike[str]) -> None:
        self._mark = uuid.uuid4().hex
        theirs, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-c", _DRIVER, language, str(theirs), str(answers)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs, answers),
            cwd=folder,
            env={**os.environ, "ASSAY_TEST_MARK": self._mark},
            start_new_session=True,
        )
        os.close(theirs)
        os.close(answers)
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._streams = [os.dup(s.fileno()) for s in (self._child.stdout, self._child.stderr)]
        self._child.stdout.close()
        self._child.stderr.close()
        for stream in self._streams:
            os.set_blocking(stream, False)
        self.out, self.err = bytearray(), bytearray()
        self.pid = self._child.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._requests)
        self._child.kill()
        self._child.wait()
        for descriptor in (*self._streams, self._answers):
            os.close(descriptor)
        for process in _marked(self._mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def run(self, code: str, *, when: Callable[[Process], object] | None = None) -> Ran:
        """Runs a cell; `when` is asked after each piece of output, until it is true."""
        self.out, self.err = bytearray(), bytearray()
        end, exit_code, value, plain, error, shown, _ = self._ask(["run", code], when)
        return Ran(end, exit_code, value, plain, error, shown, bytes(self.out), bytes(self.err))

    def fresh(self) -> None:
        """Another interpreter, which has run nothing."""
        self._ask(["fresh"])

    def holds(self) -> list[str]:
        """What a copy would lose."""
        found: list[str] = self._ask(["holds"])
        return found

    def reseed(self, seed: int) -> None:
        """Another random state."""
        self._ask(["seed", seed])

    def copy(self, *, go_on_as_copy: bool) -> None:
        """Copies the process; one of the two is gone afterwards."""
        self._ask(["copy", go_on_as_copy])

    def interrupt(self) -> None:
        """SIGINT to the process alone."""
        os.kill(self.pid, signal.SIGINT)

    def interrupt_soon(self, delay_s: float, again_s: float = 0) -> None:
        """The same by another thread, after a while; and again and again until `calm`."""
        self._calm = threading.Event()

        def send() -> None:
            self._calm.wait(delay_s)
            self.interrupt()
            while again_s and not self._calm.wait(again_s):
                self.interrupt()

        self._sender = threading.Thread(target=send)
        self._sender.start()

    def calm(self) -> None:
        """No interrupt comes any more."""
        self._calm.set()
        self._sender.join()

    def redirect(self, path: os.PathLike[str]) -> None:
        """Gives the process another stdout."""
        self._ask(["redirect", os.fspath(path)])

    def _ask(self, request: list[Any], when: Callable[[Process], object] | None = None) -> Any:
        os.write(self._requests, json.dumps(request).encode() + b"\n")
        answer = b""
        last = time.monotonic() + _PATIENCE_S
        while not answer.endswith(b"\n"):
            assert time.monotonic() < last, (request, bytes(self.out), bytes(self.err))
            ready, _, _ = select.select([self._answers, *self._streams], [], [], 1)
            self._drain()
            if when is not None and when(self):
                when = None
            if self._answers in ready:
                piece = os.read(self._answers, 1 << 20)
                assert piece, ("it died", bytes(self.err))
                answer += piece
        self._drain()
        assert when is None, "the output never came"
        return marshal.loads(bytes.fromhex(answer.decode()))

    def _drain(self) -> None:
        for stream, kept in zip(self._streams, (self.out, self.err), strict=True):
            try:
                while piece := os.read(stream, 1 << 20):
                    kept.extend(piece)
            except BlockingIOError:
                continue


def _marked(mark: str) -> list[int]:
    """Processes that programs have left."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found
