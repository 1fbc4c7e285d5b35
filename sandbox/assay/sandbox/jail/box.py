"""Boxes made of the kernel's own walls, around children of a warm interpreter.

The walls: namespaces, seccomp, Landlock, rlimits, control groups.

Covered: one program at a time in each box, nothing of it left when the next starts; a box that
breaks is rebuilt for the next run.
Not covered: attacks on the kernel through allowed system calls (for which gVisor is there, by
`plugins/docker_backend`), and side channels through shared caches and timing.
"""

from __future__ import annotations

import contextlib
import marshal
import math
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.sandbox.box import Box, Pump
from assay.sandbox.domain import EndKind, RunRequest, SandboxFault
from assay.sandbox.jail import cgroups, owners, packages
from assay.sandbox.jail.config import COMMON_MODULES, TESTER_MODULES, JailConfig
from assay.sandbox.jail.launch import LaunchError, UserMap, ZygoteLink, fault, kill_user
from assay.sandbox.jail.run import JailRunning, JudgeChannel, OutputPipe
from assay.sandbox.zygote import landlock, syscalls
from assay.sandbox.zygote.protocol import MAX_INLINE_BYTES, RUN_NUMBER, BoxJob

_BOXES_PER_SLOT = 4
_SUPERVISORS = 65_536  # that have users of their own
_SWEEP_S = 300.0
_MEMFD_READABLE = 0o444


class JailBox:
    """One box, built at its first run and again after it broke."""

    def __init__(
        self, config: JailConfig, role: int, modules: Sequence[str], harness: str = "candidate"
    ) -> None:
        self.level: str = config.level
        self.missing: tuple[str, ...] = ()
        self._config = config
        self._modules = modules
        self._harness = harness
        self._number = config.slot * _BOXES_PER_SLOT + role
        self._users = _users(config, self._number)
        self._packages = packages.find(config.packages)
        self._link: ZygoteLink | None = None
        self._group: cgroups.ControlGroup | None = None
        self._current: JailRunning | None = None
        self._run = 0
        self._scratch = ""
        self._no_input = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def build(self) -> None:
        """Starts the zygote.

        Raises:
            LaunchError: it cannot come up.
        """
        why = ""
        if self._config.cgroups:
            self._group, why = cgroups.open_group(owners.name(self._number))
        if self._config.level != "namespaces":
            self._scratch = tempfile.mkdtemp(prefix=f"{owners.name(self._number)}-")
            os.chmod(self._scratch, 0o711)  # noqa: PTH101, S103  # passed through, not listed
        try:
            link = ZygoteLink(self._config.interpreter, self._settings(), self._users)
            self._link = link
            link.start(self._group.add if self._group is not None else None)
        except (LaunchError, OSError) as error:
            self._drop()
            raise LaunchError(str(error)) from error
        if self._group is not None:
            self._group.settle()
        self.missing = (*link.missing, *([f"cgroup: {why}"] if why else []))
        self._run = 0

    def start(self, request: RunRequest) -> JailRunning:
        """Starts a run; an abandoned one is ended first."""
        self._end_current()
        try:
            self._current = self._begin(request)
        except (BrokenPipeError, ConnectionResetError):
            # It died while it was idle: nothing of the program has run.
            self._drop()
            try:
                self._current = self._begin(request)
            except OSError as error:
                self._drop()
                raise fault(error) from error
        return self._current

    def _begin(self, request: RunRequest) -> JailRunning:
        if self._link is None:
            try:
                self.build()
            except LaunchError as error:
                raise fault(error) from error
        link = self._link
        assert link is not None  # noqa: S101  # build raises otherwise
        self._run = link.last_ended(self._run) + 1
        if self._group is not None:
            self._group.begin(request.limits.memory_bytes, request.limits.processes)
        return self._hand_over(request, link)

    def _hand_over(self, request: RunRequest, link: ZygoteLink) -> JailRunning:
        owned: list[int] = []  # ours to close when the child has its own copies
        try:
            stdin = self._stdin(request.stdin, owned)
            out_read, out_write = os.pipe2(os.O_CLOEXEC)
            err_read, err_write = os.pipe2(os.O_CLOEXEC)
            owned += [out_write, err_write]
            if self._users.program is not None:  # so that it can open /dev/stdout again
                os.fchown(out_write, self._users.program, self._users.program)
                os.fchown(err_write, self._users.program, self._users.program)
            descriptors = [stdin, out_write, err_write]
            channel = None
            if request.channel:
                ours, theirs = socket.socketpair()
                channel = JudgeChannel(ours)
                owned.append(theirs.detach())
                descriptors.append(owned[-1])
            if request.executable is not None:
                descriptors.append(request.executable)
            running = JailRunning(
                request,
                link,
                number=self._run,
                streams=(
                    OutputPipe(out_read, request.limits.output_bytes),
                    OutputPipe(err_read, request.limits.output_bytes),
                ),
                channel=channel,
                group=self._group,
                lost=self._drop,
            )
            job = marshal.dumps(tuple(self._job(request)))
            if len(job) > MAX_INLINE_BYTES:
                owned.append(_memfd("job", job))
                descriptors.append(owned[-1])
                message = b"F" + RUN_NUMBER.pack(self._run)
            else:
                message = b"J" + RUN_NUMBER.pack(self._run) + job
            socket.send_fds(link.control, [message], descriptors)
        finally:
            for descriptor in owned:
                os.close(descriptor)
        return running

    def _stdin(self, data: bytes, owned: list[int]) -> int:
        if not data:
            return self._no_input
        owned.append(_memfd("stdin", data))
        os.lseek(owned[-1], 0, os.SEEK_SET)
        return owned[-1]

    def _job(self, request: RunRequest) -> BoxJob:
        limits = request.limits
        return BoxJob(
            mode=request.mode.value,
            argv=tuple(request.argv),
            files=tuple((file.path, file.content, file.mode) for file in request.files),
            environment=dict(request.environment),
            channel=request.channel,
            executable=request.executable is not None,
            cpu_s=math.ceil(limits.cpu_s) + 1,
            memory_bytes=limits.memory_bytes,
            limit_data=self._group is None,
            disk_bytes=limits.disk_bytes,
            resize_disk=limits.disk_bytes != self._config.disk_bytes,
            processes=limits.processes,
        )

    def _settings(self) -> dict[str, Any]:
        config = self._config
        namespaces = config.level == "namespaces"
        readable = config.readable(self._packages.paths)
        if not namespaces:
            readable += [
                "/usr",
                "/bin",
                "/sbin",
                "/lib",
                "/lib64",
                "/etc/ld.so.cache",
                "/etc/alternatives",
            ]
        return {
            "namespaces": namespaces,
            "user": _inner_user(config, self._users),
            "scratch": self._scratch,
            "readable": readable,
            "packages": list(self._packages.folders),
            "modules": list(self._modules),
            "harness": self._harness,
            "sessions": False,
            "disk_bytes": config.disk_bytes,
            "landlock": syscalls.landlock_abi() > 0,
            "fork": config.level != "confined",
            "own_user": self._users.program is not None and self._group is not None,
            "spare_processes": _spare_processes(config, self._users),
        }

    def _end_current(self) -> None:
        running, self._current = self._current, None
        if running is None or running.record is not None:
            return
        running.kill(EndKind.SIGNALLED, "abandoned")
        pump = Pump()
        pump.add(running)
        with contextlib.suppress(SandboxFault):
            pump.finish(running)

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()
        group, self._group = self._group, None
        if group is not None:
            group.close()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = ""

    def close(self) -> None:
        """Kills what runs and frees everything."""
        self._drop()
        self._current = None
        if self._no_input >= 0:
            os.close(self._no_input)
            self._no_input = -1


class JailBoxes:
    """The boxes of one slot: for candidates, for those with packages preloaded, for testers."""

    def __init__(self, config: JailConfig) -> None:
        self._config = config
        self._sweep(everywhere=True)
        self._packages = packages.find(config.packages)
        self._made: dict[int, JailBox] = {}

    def candidate(self, source: str = "") -> Box:
        """The box for a candidate."""
        if time.monotonic() > self._swept_s + _SWEEP_S:
            self._sweep(everywhere=False)
        if self._packages.wanted_by(source):
            return self._box(1, [*COMMON_MODULES, *self._packages.modules])
        return self._box(0, COMMON_MODULES)

    def tester(self) -> Box:
        """The box for test code."""
        return self._box(2, [*COMMON_MODULES, *TESTER_MODULES], "tester")

    def close(self) -> None:
        """Kills what runs and frees everything."""
        for box in self._made.values():
            box.close()
        self._made.clear()

    def _sweep(self, *, everywhere: bool) -> None:
        self._swept_s = time.monotonic()
        _sweep_folders(self._config)
        cgroups.sweep(everywhere=everywhere)

    def _box(self, role: int, modules: Sequence[str], harness: str = "candidate") -> JailBox:
        if role not in self._made:
            self._made[role] = JailBox(self._config, role, modules, harness)
        return self._made[role]


def _users(config: JailConfig, number: int) -> UserMap:
    if os.geteuid() != 0:
        return UserMap(os.geteuid(), None)
    first = _first_user(config.first_user, os.getpid(), number)
    return UserMap(first, first + 1)


def _first_user(first: int, pid: int, number: int) -> int:
    """The first of a box's two users, different for every supervisor of the machine and box."""
    return first + (pid % _SUPERVISORS) * 64 + 2 * (number % 32)


def _inner_user(config: JailConfig, users: UserMap) -> int | None:
    if users.program is None:
        return None
    return 1000 if config.level == "namespaces" else users.program


def _spare_processes(config: JailConfig, users: UserMap) -> int | None:
    if config.level == "confined":
        return None  # the user's other processes would count; it may not fork at all
    return 0 if users.program is not None else 1


def _sweep_folders(config: JailConfig) -> None:
    """Removes folders of killed services, and ends what their programs left running.

    Folders exist only without namespaces, which would have died with their first process.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{owners.PREFIX}*"):
        whose = owners.owner_and_box(folder.name)
        if whose is None or not owners.is_left(folder):
            continue
        if os.geteuid() == 0 and not _shares_users(whose[0]):
            kill_user(config.interpreter, _first_user(config.first_user, *whose) + 1)
        shutil.rmtree(folder, ignore_errors=True)


def _shares_users(pid: int) -> bool:
    """Whether a living process would have the same users, were it a supervisor."""
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    return any(
        Path(f"/proc/{other}").exists() for other in range(pid % _SUPERVISORS, most, _SUPERVISORS)
    )


def _memfd(name: str, data: bytes) -> int:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    os.fchmod(descriptor, _MEMFD_READABLE)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    return descriptor


def landlock_scopes() -> bool:
    """Whether Landlock keeps signals inside, which a box without namespaces and users needs."""
    return syscalls.landlock_abi() >= landlock.SCOPED_ABI
