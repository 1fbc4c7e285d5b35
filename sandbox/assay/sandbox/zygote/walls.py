"""The walls around a zygote: its namespaces and its root, made once.

Not covered: what confines each program, which comes on top; see child and branch.
"""

from __future__ import annotations

import os
from _socket import socket
from typing import Any

from assay.sandbox.zygote import root, syscalls
from assay.sandbox.zygote.protocol import RUN_NUMBER


class ZygoteBox:
    """The walls around a zygote."""

    def __init__(self, control: socket, settings: dict[str, Any]) -> None:
        self._control = control
        self._settings = settings
        self._namespaces: bool = settings["namespaces"]
        self._user: int | None = settings["user"]
        self._kept: dict[str, str] = {}

    def start(self) -> list[str]:
        """Builds the box's walls; returns the missing ones, for people."""
        missing: list[str] = []
        if self._namespaces:
            sources = self._leave_namespaces()
            self._kept = root.kept(sources)
            missing = root.build(
                *(sources, root.links(), self._settings["packages"]),
                commands=self._settings.get("commands"),
                users=self._settings.get("users", 1),
            )
        else:
            os.umask(0o022)
            if self._user is None:
                # With a user of their own, programs may fork: then this process outlives the
                # supervisor for as long as it takes to kill them all.
                syscalls.die_with_parent()
            syscalls.adopt_orphans()
        syscalls.set_dumpable(dumpable=False)
        return missing

    def _leave_namespaces(self) -> list[root.HostPath]:
        """Makes the namespaces, becomes process 1 of them; returns the new root's contents."""
        syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
        # In the new mount namespace, and before the rights of the service's user are gone.
        sources = root.open_sources(self._settings["readable"])
        self._control.send(b"U")
        if self._control.recv(16) != b"M":
            os._exit(0)
        if self._user is not None:
            os.setgroups([])
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        syscalls.unshare(
            syscalls.CLONE_NEWNET
            | syscalls.CLONE_NEWIPC
            | syscalls.CLONE_NEWUTS
            | syscalls.CLONE_NEWCGROUP
        )
        pid = syscalls.clone_sibling(syscalls.CLONE_NEWPID)
        if pid:
            self._control.send(b"P" + RUN_NUMBER.pack(pid))
            os._exit(0)
        syscalls.drop_bounding_set()
        os.umask(0o022)
        return sources
