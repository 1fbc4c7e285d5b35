"""The fork server: a single-threaded process that loads a service's work once, then forks workers.

The pool's own process holds gRPC's threads, so it is never forked. The fork server is the parent
of the workers, so a process id that it kills cannot have been reused. When the socket to the pool
closes, it kills every worker and exits.

    pool -> fork server    b"S" + id, with a worker's end of a socket pair: fork a worker on it
                           b"K" + id: kill that worker
    fork server -> pool    b"R" + 0: the work is loaded
                           b"D" + id: the worker has ended
"""

from __future__ import annotations

import argparse
import gc
import importlib
import logging
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Sequence

from assay.kit import log_format
from assay.kit.pool import worker
from assay.kit.pool.worker import Work, WorkerLimits

MESSAGE = struct.Struct("!cI")

_log = logging.getLogger(__name__)


class ForkServer:
    """Forks, kills and reaps workers as the pool asks."""

    def __init__(self, control: socket.socket, work: Work, limits: WorkerLimits) -> None:
        self._control = control
        self._work = work
        self._limits = limits
        self._children: dict[int, int] = {}  # process id -> worker id

    def run(self) -> None:
        """Serves until the pool closes the control socket; then no worker is left."""
        wakeup_read, wakeup_write = os.pipe()
        os.set_blocking(wakeup_read, False)
        os.set_blocking(wakeup_write, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(wakeup_read, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        self._reply(b"R", 0)
        try:
            while True:
                ready = {fd for fd, _ in poll.poll()}
                if wakeup_read in ready:
                    os.read(wakeup_read, 4096)
                    self._reap()
                if self._control.fileno() in ready and not self._serve_one(
                    (wakeup_read, wakeup_write)
                ):
                    return
        except (BrokenPipeError, ConnectionResetError):
            return
        finally:
            self._kill_all()

    def _serve_one(self, wakeup: tuple[int, int]) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, MESSAGE.size, 1)
        while data and len(data) < MESSAGE.size:
            more = self._control.recv(MESSAGE.size - len(data))
            if not more:
                return False
            data += more
        if not data:
            return False
        action, worker_id = MESSAGE.unpack(data)
        if action == b"S":
            self._fork(worker_id, fds[0], wakeup)
        else:
            for pid, child in self._children.items():
                if child == worker_id:
                    os.kill(pid, signal.SIGKILL)
        return True

    def _fork(self, worker_id: int, fd: int, wakeup: tuple[int, int]) -> None:
        own_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            _log.error("cannot fork a worker: %s", error)
            os.close(fd)
            self._reply(b"D", worker_id)
            return
        if pid == 0:
            self._become_worker(fd, wakeup, own_pid)
        os.close(fd)
        self._children[pid] = worker_id

    def _become_worker(self, fd: int, wakeup: tuple[int, int], parent: int) -> None:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            for inherited in wakeup:
                os.close(inherited)
            with socket.socket(fileno=fd) as connection:
                worker.run(connection, self._work, self._limits, parent)
            status = 0
        except (BrokenPipeError, ConnectionResetError):
            status = 0
        except Exception:  # noqa: BLE001 - the worker loop: the pool replaces this process
            _log.exception("a worker failed")
        finally:
            # Not sys.exit: the child must not run the fork server's own clean-up.
            os._exit(status)

    def _reap(self) -> None:
        for pid in list(self._children):
            reaped, _ = os.waitpid(pid, os.WNOHANG)
            if reaped:
                self._reply(b"D", self._children.pop(pid))

    def _kill_all(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
        for pid in self._children:
            os.waitpid(pid, 0)

    def _reply(self, kind: bytes, worker_id: int) -> None:
        self._control.sendall(MESSAGE.pack(kind, worker_id))


def load(name: str) -> Callable[[str], Work]:
    """The function "module:function" that makes a service's work of its settings."""
    module, _, function = name.partition(":")
    prepare: Callable[[str], Work] = getattr(importlib.import_module(module), function)
    return prepare


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the fork server on the control socket of its arguments."""
    parser = argparse.ArgumentParser(description="Internal process of an Assay service.")
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--settings", required=True)
    parser.add_argument("--memory-bytes", type=int, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--growth-bytes", type=int, required=True)
    parser.add_argument(log_format.WORKER_FLAG, action="store_true")
    options = parser.parse_args(arguments)
    # A Ctrl-C in a terminal reaches the whole process group; the server decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.die_with_parent(options.parent)
    log_format.set_up_worker(options.log_json)
    work = load(options.work)(options.settings)
    gc.collect()
    gc.freeze()
    limits = WorkerLimits(options.memory_bytes, options.jobs, options.growth_bytes)
    with socket.socket(fileno=options.control_fd) as control:
        ForkServer(control, work, limits).run()


if __name__ == "__main__":
    main()
    sys.exit(0)
