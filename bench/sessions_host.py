"""Our host of sessions by its own frames, without gRPC: what is behind the call."""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping

from assay.api.session.v1 import session_pb2 as pb
from assay.kit.log_format import worker_flags
from assay.kit.pool import frames
from assay.sandbox.sessions import wire
from assay.sandbox.sessions.settings import Allowance, HostSettings
from bench.sandbox_census import cpu_s
from bench.sessions_ours import SETTLE_S, SPARES, timed_ms

_SLOT = 90  # beside those of services that run
_FORKS = 16


class Host:
    """A host of our own, and blocking calls of it."""

    def __init__(self, spares: int) -> None:
        self._settings = HostSettings(slot=_SLOT, level="namespaces", spares=spares)
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", "assay.sandbox.sessions.host"]
            command += ["--link-fd", str(theirs.fileno()), "--settings", self._settings.to_json()]
            self._process = subprocess.Popen(
                [*command, *worker_flags()], stdout=2, pass_fds=(theirs.fileno(),)
            )
        self._reader = frames.FrameReader()
        self._numbers = itertools.count(1)
        self._keys = itertools.count(1)
        self._waiting: list[frames.Frame] = []

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def __enter__(self) -> Host:
        frame = self._read()
        if frame.kind != frames.READY:
            self.__exit__()
            raise RuntimeError(f"the host said {frame.payload!r}")
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait(30)

    def create(self) -> int:
        """Opens a session; its key."""
        key = next(self._keys)
        asked = pb.CreateRequest(language="python", limits=Allowance().to_proto())
        self.call(wire.CREATE, wire.pack(key, asked.SerializeToString()))
        return key

    def run(self, key: int, code: str) -> pb.CellResult:
        """A cell.

        Raises:
            RuntimeError: it did not run to its end.
        """
        limits = self._settings.default_limits.to_proto()
        asked = pb.ExecuteRequest(
            code=code, wall_time=limits.cell_wall_time, cpu_time=limits.cell_cpu_time
        )
        answer = self.call(wire.EXECUTE, wire.pack(key, asked.SerializeToString()))
        result = pb.ExecuteResponse.FromString(answer).result
        if result.end != pb.CELL_END_COMPLETED:
            raise RuntimeError(f"the cell {code[:60]!r} ended so: {result}")
        return result

    def checkpoint(self, key: int) -> str:
        """Keeps its state; the checkpoint's id."""
        answer = self.call(wire.CHECKPOINT, wire.pack(key))
        return pb.CheckpointResponse.FromString(answer).checkpoint_id

    def drop(self, key: int, kept: str) -> None:
        """Frees a checkpoint."""
        asked = pb.DropCheckpointsRequest(checkpoint_ids=[kept])
        self.call(wire.DROP, wire.pack(key, asked.SerializeToString()))

    def rollback(self, key: int, kept: str) -> None:
        """Puts it back."""
        asked = pb.RollbackRequest(checkpoint_id=kept)
        self.call(wire.ROLLBACK, wire.pack(key, asked.SerializeToString()))

    def fork(self, key: int, count: int) -> list[int]:
        """Copies it; the copies' keys."""
        copies = [next(self._keys) for _ in range(count)]
        asked = pb.ForkRequest(count=count).SerializeToString()
        self.call(wire.FORK, wire.pack_fork(key, copies, asked))
        return copies

    def close(self, key: int) -> None:
        """Ends it."""
        self.call(wire.CLOSE, wire.pack(key))

    def call(self, kind: bytes, payload: bytes) -> bytes:
        """Asks, and waits for the answer.

        Raises:
            RuntimeError: it was a fault.
        """
        number = next(self._numbers)
        self._socket.sendall(frames.pack(kind, number, payload))
        while (frame := self._read()).kind == wire.EVENT or frame.number != number:
            pass
        if frame.kind != frames.DONE:
            raise RuntimeError(f"the host answered {frame.payload!r}")
        return frame.payload

    def _read(self) -> frames.Frame:
        while not self._waiting:
            data = self._socket.recv(1 << 20)
            if not data:
                raise RuntimeError("the host is gone")
            self._waiting += self._reader.feed(data)
        return self._waiting.pop(0)


class HostBench:
    """Times and CPU time of a host's calls.

    Args:
        add: told each time, by name.
        spent: told the CPU time of host, keepers and branches for each of some calls, by name.
        repeats: so many, or fewer in a small run.
    """

    def __init__(
        self,
        add: Callable[[str, float], None],
        spent: Callable[[str, float], None],
        repeats: Callable[[int], range],
    ) -> None:
        self._add = add
        self._spent = spent
        self._repeats = repeats

    def measure(self, cells: Mapping[str, str], states: Mapping[str, str]) -> None:
        """All of them."""
        for spares, kind in ((0, "cold"), (SPARES, "from a spare")):
            with Host(spares) as host:
                host.close(host.create())
                with self._cpu(host, f"create, a cell and close, {kind}", 100):
                    for _ in self._repeats(100):
                        self._create(host, kind)
                if spares:
                    self._cells(host, cells)
                    for state, code in states.items():
                        self._copies(host, state, code)

    def _create(self, host: Host, kind: str) -> None:
        time.sleep(SETTLE_S)
        key, took = timed_ms(host.create)
        self._add(f"create, {kind}", took)
        self._add(f"create and first cell, {kind}", took + timed_ms(host.run, key, "1")[1])
        self._add("close", timed_ms(host.close, key)[1])

    def _cells(self, host: Host, cells: Mapping[str, str]) -> None:
        key = host.create()
        host.run(key, "import subprocess\nx = 0")
        for name, code in cells.items():
            with self._cpu(host, name, 200):
                for _ in self._repeats(200):
                    self._add(name, timed_ms(host.run, key, code)[1])
        host.close(key)

    def _copies(self, host: Host, state: str, code: str) -> None:
        key = host.create()
        host.run(key, code)
        with self._cpu(host, f"checkpoint and its spare fork, {state}", 20):
            for _ in self._repeats(20):
                kept, took = timed_ms(host.checkpoint, key)
                self._add(f"checkpoint, {state}", took)
                host.drop(key, kept)
        kept = host.checkpoint(key)
        with self._cpu(host, f"rollback, two cells and a spare fork, {state}", 20):
            for _ in self._repeats(20):
                self._rollback(host, key, kept, state)
        with self._cpu(host, f"{_FORKS} forks and their end, {state}", 8):
            for _ in self._repeats(8):
                forked, took = timed_ms(host.fork, key, _FORKS)
                self._add(f"{_FORKS} forks, {state}", took)
                for copy in forked:
                    host.close(copy)
                time.sleep(SETTLE_S)
        host.close(key)

    def _rollback(self, host: Host, key: int, kept: str, state: str) -> None:
        host.run(key, "y = 1")
        time.sleep(SETTLE_S)
        self._add(f"rollback, {state}", timed_ms(host.rollback, key, kept)[1])
        self._add(f"first cell after a rollback, {state}", timed_ms(host.run, key, "y = 2")[1])

    @contextlib.contextmanager
    def _cpu(self, host: Host, name: str, count: int) -> Iterator[None]:
        time.sleep(10 * SETTLE_S)
        before_s = cpu_s(host.pid)
        yield
        time.sleep(10 * SETTLE_S)
        self._spent(name, (cpu_s(host.pid) - before_s) / len(self._repeats(count)) * 1e3)
