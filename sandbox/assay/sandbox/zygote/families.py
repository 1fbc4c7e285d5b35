"""The zygote of sessions: forks the keeper of each family.

It is process 1 of the box and holds no session's data. The host talks to it over the control
socket:

    host -> zygote    b"K" + marshalled settings of a family, with descriptors: the keeper's control
                      socket; channel, stdout and stderr of the family's first branch; the doors of
                      its control group, where a process can enter it by itself
    zygote -> host    b"R" + marshalled {"missing": [...]}: ready
                      b"E" + text: no keeper could be forked for the last b"K"

Each family has namespaces of its own for users, processes, mounts, network and System V objects.
Its user 0 is the box's; from 1000 on it has a range of the box's users, one for each branch.

Covered: when the host is gone, everything dies.
Not covered: the walls between a family's members; see keeper.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import os

# The C modules beneath socket and signal: whatever is loaded here, every session pays for.
from _signal import SIGCHLD, set_wakeup_fd
from _signal import signal as set_signal
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC
from select import POLLIN, poll
from typing import Any, NoReturn

from assay.sandbox.zygote import branch, child, keeper, root, seccomp, syscalls
from assay.sandbox.zygote.protocol import descriptors_of
from assay.sandbox.zygote.walls import ZygoteBox

_NAMESPACES = (
    syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
)
_MAX_MESSAGE = 1 << 16


class FamilyZygote(ZygoteBox):
    """Forks keepers until the host is gone."""

    def start(self) -> list[str]:
        """As of `ZygoteBox`; warms up what sessions run."""
        missing = super().start()
        # A Python that a program starts is the one that runs it, with the same packages.
        os.environ.update(
            PATH=f"{root.COMMANDS}:{os.environ['PATH']}",
            PYTHONPATH=":".join(self._settings["packages"]),
        )
        policy = seccomp.SyscallPolicy(own_user=self._settings["user"] is not None, session=True)
        self._filter = syscalls.SeccompFilter(seccomp.build(policy))
        branch.warm_up()
        child.forget_modules()
        gc.collect()
        gc.freeze()
        gc.disable()
        return missing

    def serve(self, missing: list[str]) -> NoReturn:
        """Forks a keeper for each request."""
        wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        set_signal(SIGCHLD, lambda *_: None)
        set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        waiting = poll()
        waiting.register(self._control, POLLIN)
        waiting.register(wake, POLLIN)
        self._control.send(b"R" + marshal.dumps({"missing": missing}))
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if wake in ready:
                os.read(wake, 4096)
                _reap()
            if self._control.fileno() in ready:
                self._make()

    def _make(self) -> None:
        message, ancillary, _, _ = self._control.recvmsg(
            _MAX_MESSAGE, CMSG_SPACE(4 * 16), MSG_CMSG_CLOEXEC
        )
        if not message:
            os._exit(0)
        given = descriptors_of(ancillary)
        try:
            self._fork(marshal.loads(message[1:]), given)  # noqa: S302  # the host's
        except OSError as error:
            self._control.send(b"E" + str(error).encode()[:1000])
        for descriptor in given:
            os.close(descriptor)

    def _fork(self, settings: dict[str, Any], given: list[int]) -> None:
        mapped_read, mapped = os.pipe2(os.O_CLOEXEC)
        # Only what is dumpable shows its maps; nobody else sees it in these processes' namespace.
        syscalls.set_dumpable(dumpable=True)
        try:
            pid = syscalls.fork(_NAMESPACES)
            if pid == 0:
                os.close(mapped)
                self._become_keeper(mapped_read, settings, given)
            _map_users(pid, settings)
            os.write(mapped, b"M")
        finally:
            syscalls.set_dumpable(dumpable=False)
            os.close(mapped_read)
            os.close(mapped)

    def _become_keeper(self, mapped: int, settings: dict[str, Any], given: list[int]) -> NoReturn:
        try:
            syscalls.die_with_parent()
            if os.read(mapped, 1) != b"M":
                os._exit(1)
            syscalls.set_dumpable(dumpable=False)
            os.close(mapped)
            self._control.close()
            set_wakeup_fd(-1)
            keeper.FamilyKeeper(settings, self._kept, self._filter, given).serve()
        finally:
            os._exit(1)


def _map_users(pid: int, settings: dict[str, Any]) -> None:
    first, count = settings["first_user"], settings["users"]
    users = f"1000 {first} {count}\n"
    if settings["copies"]:
        lines, groups = f"0 0 1\n{users}", f"0 0 1\n{users}"
    else:
        lines = groups = users
        with open(f"/proc/{pid}/setgroups", "w") as file:
            file.write("deny")
    for name, text in (("uid_map", lines), ("gid_map", groups)):
        with open(f"/proc/{pid}/{name}", "w") as file:
            file.write(text)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
