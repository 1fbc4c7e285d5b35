"""The zygote: a warm interpreter that forks a child for every run.

Process 1 of its own namespaces. The supervisor starts it with two lines: control, a
sequential-packet socket, and the kill line, a pipe.

    supervisor -> zygote   the settings, marshalled
    zygote -> supervisor   b"U": left the user namespace, waits for its ids and its control group
    supervisor -> zygote   b"M": done
    zygote -> supervisor   b"P" + process id of the process that goes on, as the supervisor sees it
                       b"R" + marshalled {"missing": [...]}: a child waits for a job
                       b"X" + text: cannot go on
    supervisor -> child    b"J" or b"F" + number of the run + job, with descriptors; see
                       `assay.sandbox.zygote.child`
    child -> supervisor    b"E" + text: could not become the program; nothing of it has run
    zygote -> supervisor   b"D" + status, with a descriptor of the folder: the run has ended and all
                       its processes are dead

The kill line carries the number of the run to kill; both sides number runs from 1. Where there is
no tmpfs to drop, it also says that a run's folder has been read and may be emptied.

Covered: it never reads a job, so a child finds no other's data in its memory; a kill that comes too
late hits no other run; when the supervisor goes away, everything of the box dies.
Not covered: the walls themselves; see child, root, seccomp and landlock.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import select
import struct
import sys
import time

# The C modules beneath socket and signal: whatever is loaded here, every run pays for.
from _signal import SIG_IGN, SIGINT, SIGKILL
from _signal import signal as set_signal
from _socket import SCM_RIGHTS, SOL_SOCKET, socket
from typing import Any, NoReturn

from assay.sandbox.zygote import child, landlock, root, seccomp, seeding, syscalls
from assay.sandbox.zygote.families import FamilyZygote
from assay.sandbox.zygote.protocol import CONTROL, DONE, FETCHED, KILL_LINE, RUN_NUMBER
from assay.sandbox.zygote.walls import ZygoteBox

_INODES = (
    4_096  # a chain of so many folders costs Landlock a second, as it looks at each on the way up
)
_FORK_TRIES, _FORK_PAUSE_S = 200, 0.01


class Zygote(ZygoteBox):
    """Forks children, waits for each to end, kills what it left."""

    def __init__(self, control: socket, settings: dict[str, Any]) -> None:
        super().__init__(control, settings)
        self._scratch = root.SCRATCH if self._namespaces else settings["scratch"]
        self._run = 0
        self._asked: set[int] = set()  # what came on the kill line
        module = importlib.import_module(f"assay.sandbox.harness.{settings['harness']}")
        self._harness: child.Harness = module.main
        self._warm_up_harness = getattr(module, "warm_up", None)

    def start(self) -> list[str]:
        """As of `ZygoteBox`; also makes what confines each run."""
        missing = super().start()
        self._confinement = self._make_confinement()
        return missing

    def _make_confinement(self) -> child.Confinement:
        settings = self._settings
        if self._namespaces:
            readable, listed = ["/"], []
            writable = [root.WRITABLE, "/proc", *map("/dev/{}".format, root.DEVICES)]
        else:
            readable, listed = settings["readable"], settings["packages"]
            writable = [self._scratch, *map("/dev/{}".format, root.DEVICES)]
        rules = None
        if settings["landlock"]:
            rules = landlock.ruleset(readable, writable, listed, sockets=self._namespaces)
        policy = seccomp.SyscallPolicy(
            sockets=self._namespaces, fork=settings["fork"], own_user=settings["own_user"]
        )
        halves = seccomp.halve(policy)
        self._inherited_filter = syscalls.SeccompFilter(halves.inherited)
        return child.Confinement(
            zygote=os.getpid(),
            user=self._user,
            folder=f"{self._scratch}/box",
            filter=syscalls.SeccompFilter(halves.own),
            landlock=rules,
            base_data_bytes=_private_bytes(),
            own_disk=self._scratch if self._namespaces else None,
            spare_processes=settings["spare_processes"],
        )

    def serve(self, missing: list[str]) -> NoReturn:
        """Forks one child after the other until the supervisor is gone."""
        poll = select.poll()
        poll.register(KILL_LINE, select.POLLIN)
        while True:
            self._run += 1
            folder = self._fresh_scratch()
            if self._run == 1:
                self._settle()
            pid = _fork()
            if pid == 0:
                child.serve(self._control, self._run, self._confinement, self._harness)
            if self._run == 1:
                self._control.send(b"R" + marshal.dumps({"missing": missing}))
            self._wait(pid, poll)
            self._report(pid, folder)

    def _settle(self) -> None:
        """Makes what all children share, before the first fork."""
        folder = f"{self._scratch}/box"
        tmp = root.TMP_LINK if self._namespaces else f"{self._scratch}/tmp"  # noqa: S108
        os.environ.update(HOME=folder, TMPDIR=tmp)
        child.lower_common_limits()
        child.warm_up(folder)
        if self._warm_up_harness is not None:
            self._warm_up_harness(f"{folder}/warm-up.py")
        child.forget_modules()
        self._inherited_filter.install()
        gc.collect()
        gc.freeze()
        gc.disable()

    def _fresh_scratch(self) -> int:
        if self._namespaces:
            folder = root.mount_scratch(self._settings["disk_bytes"], _INODES, self._user)
            root.show_kept(self._kept)
        else:
            folder = root.make_folders(self._scratch, self._user)
        os.fchdir(folder)
        return folder

    def _wait(self, pid: int, poll: select.poll) -> None:
        ended = os.pidfd_open(pid)
        poll.register(ended, select.POLLIN)
        if self._run in self._asked:  # it came together with the last run's
            self._kill(pid)
        try:
            while True:
                ready = {descriptor for descriptor, _ in poll.poll()}
                if ended in ready:
                    return
                if not self._read_kill_line():
                    self._kill(pid)
                    os._exit(0)
                if self._run in self._asked:
                    self._kill(pid)
        finally:
            poll.unregister(ended)
            os.close(ended)

    def _read_kill_line(self) -> bool:
        """Carries out requests of the kill line; False when the supervisor is gone."""
        numbers = os.read(KILL_LINE, 4096)
        self._asked = {n for n in self._asked if n & ~FETCHED >= self._run}
        self._asked.update(number for (number,) in RUN_NUMBER.iter_unpack(numbers))
        return bool(numbers)

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, SIGKILL)
        self._kill_all()

    def _kill_all(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._namespaces:
                os.kill(-1, SIGKILL)  # everything in this process namespace but process 1
            elif self._user is not None:
                syscalls.kill_user(self._user)

    def _report(self, pid: int, folder: int) -> None:
        """Makes sure that every process of the run is dead, then reports how it ended."""
        _, status, usage = os.wait4(pid, 0)
        cpu_s, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
        if self._leftovers():
            self._kill_all()
        while True:
            try:
                _, _, more = os.wait4(-1, 0)
            except ChildProcessError:
                break
            cpu_s += more.ru_utime + more.ru_stime
            peak = max(peak, more.ru_maxrss)
        message = DONE.pack(b"D", self._run, status, cpu_s, peak * 1024)
        try:
            rights = [(SOL_SOCKET, SCM_RIGHTS, struct.pack("i", folder))]
            self._control.sendmsg([message], rights)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)
        os.close(folder)
        if self._namespaces:
            root.unmount_scratch()
        else:
            self._await_fetched()

    def _leftovers(self) -> bool:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def _await_fetched(self) -> None:
        """Without a tmpfs: empties the folder once the supervisor has read it."""
        while self._run | FETCHED not in self._asked:
            if not self._read_kill_line():
                os._exit(0)
        os.chmod(self._scratch, 0o711)  # noqa: S103  # it may have been the program's to close
        folder = os.open(self._scratch, os.O_RDONLY | os.O_DIRECTORY)
        root.clear_folder(folder)
        os.close(folder)


def _fork() -> int:
    for _ in range(_FORK_TRIES):
        with contextlib.suppress(OSError):
            return syscalls.fork()
        time.sleep(_FORK_PAUSE_S)
    return syscalls.fork()


def _private_bytes() -> int:
    """Private writable memory of this process, which RLIMIT_DATA counts."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmData:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 64 * 2**20


def _load(modules: list[str]) -> None:
    """Loads what programs use, and the names that an interpreter with site-packages has."""
    site = importlib.import_module("site")
    site.setquit()
    site.setcopyright()
    site.sethelper()
    seeding.watch_numpy()
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    seeding.seed_random()


def main(control_line: int, kill_line: int) -> NoReturn:
    """Serves on the descriptors that the supervisor passed; never returns."""
    os.dup2(control_line, 1003, inheritable=False)
    os.dup2(kill_line, 1004, inheritable=False)
    os.dup2(1003, CONTROL, inheritable=False)
    os.dup2(1004, KILL_LINE, inheritable=False)
    os.closerange(KILL_LINE + 1, 1005)
    control = socket(fileno=CONTROL)
    set_signal(SIGINT, SIG_IGN)
    try:
        settings = marshal.loads(control.recv(1 << 17))  # noqa: S302  # the supervisor's
        sys.dont_write_bytecode = True
        sys.path.pop(0)  # where Assay lies: loaded by now, and nothing for programs
        sys.path.extend(settings["packages"])
        _load(settings["modules"])
        zygote: Zygote | FamilyZygote
        zygote = (FamilyZygote if settings["sessions"] else Zygote)(control, settings)
        missing = zygote.start()
        zygote.serve(missing)
    except BaseException as error:  # the process's fault boundary: the supervisor must hear why
        control.send(b"X" + f"{type(error).__name__}: {error}".encode()[:1000])
        raise
