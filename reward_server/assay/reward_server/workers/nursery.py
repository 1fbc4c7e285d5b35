"""The nursery: a single-threaded process that loads the verifiers once, then forks workers.

Started by the server with one end of a socket pair. It is the workers' parent, so a process id that
it kills is its own child's and cannot have been reused. When the server goes away, in whatever
manner, the socket ends and the nursery kills every worker, busy or not, and exits.

    server -> nursery    b"S" + id, with the worker's end of a socket pair attached: fork a worker
    on it
                         b"K" + id: kill that worker
    nursery -> server    b"R" + 0: verifiers are loaded
                         b"P" + id + process id: the worker was forked
                         b"D" + id + wait status: the worker has ended
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Collection, Sequence

from assay.reward_server.domain import CompositeVerifier
from assay.reward_server.registry import Registry, load_registry
from assay.reward_server.workers import worker
from assay.reward_server.workers.worker import WorkerLimits
from assay.rpc import log_format

REQUEST = struct.Struct("!cI")
REPLY = struct.Struct("!cIi")

_log = logging.getLogger(__name__)


class Nursery:
    """Forks, kills and reaps workers as the server asks."""

    def __init__(
        self,
        control: socket.socket,
        registry: Registry,
        limits: WorkerLimits,
        prepared: Collection[str],
    ) -> None:
        self._control = control
        self._registry = registry
        self._limits = limits
        self._prepared = prepared
        self._children: dict[int, int] = {}  # process id -> worker id

    def run(self) -> None:
        """Serves until the server closes the control socket; then no worker is left."""
        wakeup_read, wakeup_write = os.pipe()
        os.set_blocking(wakeup_read, False)
        os.set_blocking(wakeup_write, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(wakeup_read, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        self._reply(b"R", 0, os.getpid())
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
        """Serves one request; False when the server is gone."""
        data, fds, _, _ = socket.recv_fds(self._control, REQUEST.size, 1)
        while data and len(data) < REQUEST.size:
            more = self._control.recv(REQUEST.size - len(data))
            if not more:
                return False
            data += more
        if not data:
            return False
        action, worker_id = REQUEST.unpack(data)
        if action == b"S":
            self._fork(worker_id, fds[0], wakeup)
        else:
            for pid, child in self._children.items():
                if child == worker_id:
                    os.kill(pid, signal.SIGKILL)
        return True

    def _fork(self, worker_id: int, fd: int, wakeup: tuple[int, int]) -> None:
        nursery_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            _log.error("cannot fork a worker: %s", error)
            os.close(fd)
            self._reply(b"D", worker_id, -1)
            return
        if pid == 0:
            self._become_worker(fd, wakeup, nursery_pid)
        os.close(fd)
        self._children[pid] = worker_id
        self._reply(b"P", worker_id, pid)

    def _become_worker(self, fd: int, wakeup: tuple[int, int], nursery_pid: int) -> None:
        """The child's side of the fork; never returns."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            for inherited in wakeup:
                os.close(inherited)
            with socket.socket(fileno=fd) as connection:
                worker.run(connection, self._registry, self._limits, nursery_pid, self._prepared)
            status = 0
        except (BrokenPipeError, ConnectionResetError):
            status = 0
        except Exception:  # noqa: BLE001 - the worker loop: the server replaces this process
            _log.exception("a worker failed")
        finally:
            # Not sys.exit: the child must not run the nursery's own clean-up.
            os._exit(status)

    def _reap(self) -> None:
        for pid in list(self._children):
            reaped, status = os.waitpid(pid, os.WNOHANG)
            if reaped:
                worker_id = self._children.pop(pid)
                self._reply(b"D", worker_id, status)

    def _kill_all(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
        for pid in self._children:
            os.waitpid(pid, 0)

    def _reply(self, kind: bytes, worker_id: int, value: int) -> None:
        self._control.sendall(REPLY.pack(kind, worker_id, value))


def _prepare(registry: Registry, preload: Sequence[str]) -> set[str]:
    """Loads what the verifiers that run in workers need; of lazy ones those that are named.

    Returns:
        The names of the verifiers that are loaded.
    """
    prepared: set[str] = set()
    for verifier in registry:
        if isinstance(verifier, CompositeVerifier):
            continue
        spec = verifier.spec
        wanted = not spec.lazy or spec.name in preload or "all" in preload
        if spec.isolation != "process" or not wanted:
            continue
        try:
            verifier.prepare()
        except Exception:  # noqa: BLE001 - the isolation border
            # It will fail its self-test and be reported unhealthy;
            # the others go on.
            _log.exception("verifier %s cannot be prepared", verifier.spec.name)
        else:
            prepared.add(spec.name)
    return prepared


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the nursery on the control socket that the server passed."""
    parser = argparse.ArgumentParser(description="Internal process of the Assay reward server.")
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--memory-bytes", type=int, required=True)
    parser.add_argument("--items", type=int, required=True)
    parser.add_argument("--growth-bytes", type=int, required=True)
    parser.add_argument("--preload", default="")
    parser.add_argument(log_format.WORKER_FLAG, action="store_true")
    options = parser.parse_args(arguments)
    # A Ctrl-C in a terminal reaches the whole process group; the server decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.die_with_parent(options.parent)
    log_format.set_up_worker(options.log_json)
    registry = load_registry()
    prepared = _prepare(registry, options.preload.split(","))
    gc.collect()
    gc.freeze()
    limits = WorkerLimits(options.memory_bytes, options.items, options.growth_bytes)
    with socket.socket(fileno=options.control_fd) as control:
        Nursery(control, registry, limits, prepared).run()


if __name__ == "__main__":
    main()
    sys.exit(0)
