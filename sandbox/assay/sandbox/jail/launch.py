"""Starts a zygote and keeps the ends of its lines; see `assay.sandbox.zygote.main`.

Covered: a zygote that cannot come up says why; one that has died is noticed.
Not covered: starting another, which the box does.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.sandbox.domain import SandboxFault
from assay.sandbox.zygote.protocol import DONE, FETCHED, RUN_NUMBER

_START_TIMEOUT_S = 60.0
_ROOT = Path(__file__).resolve().parents[3]  # the folder that holds the package `assay`
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from assay.sandbox.zygote.main import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
_KILLER = "import os, sys; os.setresuid(*[int(sys.argv[1])] * 3); os.kill(-1, 9)"
_STACK_BYTES = 64 * 2**20
# A fixed hash seed: the same program on the same input gives the same answer every time.
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class LaunchError(Exception):
    """The zygote did not come up; the text says why."""


@dataclass(frozen=True, slots=True)
class UserMap:
    """Which user ids of the host stand behind those of the box.

    Attributes:
        zygote: the zygote's own.
        program: the programs'; None: the box has one user, the service's own.
        count: how many ids from `program` on stand behind the box's 1000 and those after it.
    """

    zygote: int
    program: int | None
    count: int = 1


class ZygoteLink:
    """A running zygote. Its first child waits for a job."""

    def __init__(self, interpreter: str, settings: Mapping[str, Any], users: UserMap) -> None:
        self.missing: tuple[str, ...] = ()
        self._interpreter = interpreter
        self._users = users
        self._settings = dict(settings)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self.control, theirs):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        kill_read, self._kill_line = os.pipe2(os.O_CLOEXEC)
        # Its streams are pipes from the start: an interpreter remembers what its streams can do.
        self._words, words = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._words, False)
        os.set_blocking(self._kill_line, False)
        try:
            self._process = _spawn(interpreter, theirs.fileno(), kill_read, words)
        except LaunchError:
            self.control.close()
            os.close(self._kill_line)
            os.close(self._words)
            raise
        finally:
            theirs.close()
            os.close(kill_read)
            os.close(words)
        self.pid = self._process.pid

    def start(self, join_group: Any = None) -> None:
        """Carries out the supervisor's part of the zygote's start.

        Args:
            join_group: called with the zygote's process id, to put it into its control group.

        Raises:
            LaunchError: it cannot come up.
        """
        try:
            self._go_through(join_group)
        except OSError as error:
            raise LaunchError(f"{self.last_words()} ({error})") from error

    def _go_through(self, join_group: Any) -> None:
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        if not self._settings["namespaces"] and join_group is not None:
            join_group(self.pid)
        self.control.send(marshal.dumps(self._settings))
        while True:
            message = self._receive(deadline_s)
            kind, rest = message[:1], message[1:]
            if kind == b"U":
                self._map_users()
                if join_group is not None:
                    join_group(self.pid)
                self.control.send(b"M")
            elif kind == b"P":
                (self.pid,) = RUN_NUMBER.unpack(rest)
                self._process.wait()
            elif kind == b"R":
                self.missing = tuple(marshal.loads(rest)["missing"])  # noqa: S302  # before any job
                return
            else:
                raise LaunchError(rest.decode(errors="replace") or self.last_words())

    def kill_run(self, number: int) -> None:
        """Asks for the end of this run; no effect if it has ended."""
        with contextlib.suppress(BrokenPipeError, BlockingIOError):
            os.write(self._kill_line, RUN_NUMBER.pack(number))

    def fetched(self, number: int) -> None:
        """Without a tmpfs: says that the run's folder was read and may be emptied."""
        if not self._settings["namespaces"]:
            self.kill_run(number | FETCHED)

    def last_ended(self, run: int) -> int:
        """The last run that has ended: `run`, or one after it whose waiting child died.

        Raises:
            BrokenPipeError: the zygote has died.
        """
        while True:
            try:
                message, rights, _, _ = self.control.recvmsg(
                    4096, socket.CMSG_SPACE(4), socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return run
            for _, _, folder in rights:
                os.close(int.from_bytes(folder[:4], sys.byteorder))
            if message[:1] != b"D":
                raise BrokenPipeError(self.last_words())
            run = DONE.unpack(message)[1]
            self.fetched(run)

    def close(self) -> None:
        """Kills the zygote, and with it everything in its namespaces."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self._process.returncode is None and self.pid != self._process.pid:
            self._process.kill()
        self._process.wait()
        if self.pid != self._process.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        if self._users.program is not None and not self._settings["namespaces"]:
            # Nothing else ends what the program started, should the zygote have been killed.
            kill_user(self._interpreter, self._users.program)
        self.control.close()
        os.close(self._kill_line)
        os.close(self._words)

    def last_words(self) -> str:
        """What the zygote wrote before it died, in one line."""
        with contextlib.suppress(BlockingIOError):
            lines = os.read(self._words, 1 << 16).decode(errors="replace").strip().splitlines()
            return "the zygote died" + (f": {lines[-1]}" if lines else "")
        return "the zygote died"

    def _receive(self, deadline_s: float) -> bytes:
        left_ms = max(0.0, deadline_s - time.monotonic()) * 1e3
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        if not poll.poll(left_ms):
            raise LaunchError(f"the zygote was not ready within {_START_TIMEOUT_S:g} s")
        return self.control.recv(1 << 16) or b"X"

    def _map_users(self) -> None:
        folder = Path(f"/proc/{self.pid}")
        zygote, program = self._users.zygote, self._users.program
        if program is None:
            (folder / "setgroups").write_text("deny")
            lines = f"1000 {zygote} 1\n"
            group = f"1000 {os.getegid()} 1\n"
        else:
            lines = group = f"0 {zygote} 1\n1000 {program} {self._users.count}\n"
        (folder / "uid_map").write_text(lines)
        (folder / "gid_map").write_text(group)


def _spawn(interpreter: str, control: int, kill_line: int, words: int) -> subprocess.Popen[bytes]:
    # How far a stack can grow is settled when a program is executed, by the limit in force then.
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < _STACK_BYTES:
        stack = _STACK_BYTES if hard == resource.RLIM_INFINITY else min(hard, _STACK_BYTES)
        resource.setrlimit(resource.RLIMIT_STACK, (stack, hard))
    command = [interpreter, "-S", "-s", "-P", "-c", _PROGRAM]
    try:
        return subprocess.Popen(  # noqa: S603  # our own interpreter and program
            [*command, str(_ROOT), str(control), str(kill_line)],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            pass_fds=(control, kill_line),
            env=_ENVIRONMENT,
            cwd="/",
        )
    except OSError as error:
        raise LaunchError(f"{interpreter} cannot be started: {error.strerror}") from error


def kill_user(interpreter: str, user: int) -> None:
    """Kills every process of a user, all at once. As root only.

    By a program of its own, as the supervisor has threads: a bare fork of it would wait for ever
    where one of them had asked for the interpreter's lock.
    """
    subprocess.run(  # noqa: S603  # our own interpreter and program
        [interpreter, "-I", "-S", "-c", _KILLER, str(user)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_ENVIRONMENT,
        cwd="/",
        check=False,
    )


def fault(error: Exception) -> SandboxFault:
    """The fault of a run whose box cannot be built."""
    return SandboxFault("WORKER_DIED", f"the sandbox cannot build a box: {error}")
