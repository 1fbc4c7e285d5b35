"""Makes families: keeps the zygote, a few families ready to be taken, and the ranges of user ids.

Belongs to the host's event loop.
"""

from __future__ import annotations

import asyncio
import logging
import marshal
import os
import socket
from collections import deque
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from assay.sandbox.domain import SandboxFault
from assay.sandbox.jail import cgroups, owners, packages
from assay.sandbox.jail.config import COMMON_MODULES, JailConfig
from assay.sandbox.jail.launch import LaunchError, UserMap, ZygoteLink
from assay.sandbox.sessions.family import USERS, SessionFamily
from assay.sandbox.sessions.held import Ends, FamilyLost, HeldBranch
from assay.sandbox.sessions.settings import HostSettings
from assay.sandbox.zygote import syscalls

_FIRST_HOST_USER = 0x7100_0000
_RANGES = 64  # of hosts of this machine, by their process ids
_INODES = 4_096
_RETRY_S = 1.0
_AFTER_S = 0.02  # who took one is served before the next is made

_log = logging.getLogger(__name__)


class Nursery:
    """Families that wait, and the zygote that forks them.

    Raises:
        LaunchError: no zygote comes up.
    """

    def __init__(self, settings: HostSettings) -> None:
        if settings.level != "namespaces":
            raise LaunchError(
                f"sessions need namespaces, and this machine has the level {settings.level!r}"
            )
        self._settings = settings
        self.copies = os.geteuid() == 0
        self.group_missing = ""
        self.missing: tuple[str, ...] = ()
        most = settings.families + settings.spares + 1
        self._users = _users(most) if self.copies else UserMap(os.geteuid(), None)
        self._config = JailConfig(
            slot=settings.slot,
            read_only_paths=settings.read_only_paths,
            packages=settings.python_packages,
        )
        self._packages = packages.find(settings.python_packages)
        self._free = deque(range(most))
        self._ready: deque[tuple[SessionFamily, HeldBranch]] = deque()
        self._filling: asyncio.Task[None] | None = None
        self._families: set[SessionFamily] = set()
        self._link: ZygoteLink | None = None
        self._closed = False
        cgroups.sweep(everywhere=True)
        self._start()

    def versions(self) -> dict[str, str]:
        """The packages that sessions may import."""
        found = {}
        for name in self._settings.python_packages:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
        return found

    async def take(self) -> tuple[SessionFamily, HeldBranch]:
        """A family whose first branch waits to begin.

        Raises:
            SandboxFault: none can be made.
        """
        if self._ready:
            ready = self._ready.popleft()
            self.fill()
            return ready
        try:
            made = await self._make()
        except (FamilyLost, LaunchError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            text = f"the sandbox cannot make a session: {why}"
            raise SandboxFault("WORKER_DIED", text) from error
        self.fill()
        return made

    def fill(self) -> None:
        """Makes spare families, one after the other, when nothing else is to do."""
        if self._settings.spares and not self._closed and self._filling is None:
            self._filling = asyncio.create_task(self._fill())

    async def _fill(self) -> None:
        try:
            while len(self._ready) < self._settings.spares and not self._closed:
                await asyncio.sleep(_AFTER_S)
                try:
                    made = await self._make()
                    self._ready.append(made)
                except (FamilyLost, LaunchError, OSError, TimeoutError) as error:
                    _log.warning("no spare session can be made: %s", error)
                    await asyncio.sleep(_RETRY_S)
        finally:
            self._filling = None

    def close(self) -> None:
        """Ends everything."""
        self._closed = True
        if self._filling is not None:
            self._filling.cancel()
        for family in list(self._families):
            family.close()
        if self._link is not None:
            asyncio.get_running_loop().remove_reader(self._link.control)
            self._link.close()
            self._link = None

    def give_back(self, family: SessionFamily) -> None:
        """Ends a family, also one that is lost; its users may be given to another."""
        if family in self._families:
            self._families.discard(family)
            for ready in [one for one in self._ready if one[0] is family]:
                self._ready.remove(ready)
            family.close()
            self._free.append(family.number)

    async def _make(self) -> tuple[SessionFamily, HeldBranch]:
        if self._link is None:
            self._start()
        link = self._link
        assert link is not None  # noqa: S101  # started above
        if not self._free:
            raise FamilyLost("as many families are open as there are users for")
        number = self._free.popleft()
        group, self.group_missing = cgroups.open_group(f"{owners.name(self._config.slot)}-{number}")
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        first = None if self._users.program is None else self._users.program + number * USERS
        family = SessionFamily(
            control, group, first, number, self._settings.default_limits.disk_bytes
        )
        self._families.add(family)
        family.on_lost.add(lambda: self.give_back(family))
        ends = Ends()
        try:
            message = b"K" + marshal.dumps(self._family_settings(number))
            doors = group.doors() if group is not None else []
            descriptors = [theirs.fileno(), *ends.theirs, *doors]
            socket.send_fds(link.control, [message], descriptors)
            theirs.close()
            for door in doors:
                os.close(door)
            entering = None if doors else group
            branch = await family.begin(ends, lambda pid: _join(entering, pid), waits=not doors)
            if group is not None:
                group.settle()
            return family, branch
        except BaseException:
            ends.close()
            self.give_back(family)
            raise
        finally:
            theirs.close()

    def _family_settings(self, number: int) -> dict[str, Any]:
        return {
            "first_user": 1000 + number * USERS if self.copies else 1000,
            "users": USERS if self.copies else 1,
            "copies": self.copies,
            "disk_bytes": self._settings.default_limits.disk_bytes,
            "inodes": _INODES,
            "landlock": syscalls.landlock_abi() > 0,
        }

    def _start(self) -> None:
        link = ZygoteLink(self._config.interpreter, self._zygote_settings(), self._users)
        link.start()
        for lack in link.missing:
            if lack.startswith("private-proc"):
                link.close()
                raise LaunchError(
                    f"sessions need a /proc of their own ({lack}); in a container: "
                    "systempaths=unconfined"
                )
        self._link, self.missing = link, link.missing
        asyncio.get_running_loop().add_reader(link.control, self._hear, link)

    def _zygote_settings(self) -> dict[str, Any]:
        config = self._config
        return {
            "namespaces": True,
            "sessions": True,
            "user": 1000 if self.copies else None,
            "readable": config.readable(self._packages.paths),
            "packages": list(self._packages.folders),
            "users": USERS if self.copies else 1,
            "commands": dict.fromkeys(("python", "python3"), config.interpreter),
            "modules": [*COMMON_MODULES, *self._packages.modules],
        }

    def _hear(self, link: ZygoteLink) -> None:
        try:
            message = link.control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if message[:1] == b"E":
            _log.warning("no keeper could be forked: %s", message[1:].decode(errors="replace"))
            return
        _log.error("the sessions' zygote is gone: %s", link.last_words())
        asyncio.get_running_loop().remove_reader(link.control)
        link.close()
        if self._link is link:
            self._link = None
        for family in list(self._families):
            family.lose("the process from which sessions are forked died")


def _join(group: cgroups.ControlGroup | None, pid: int) -> None:
    if group is not None:
        group.add(pid)
    try:
        # What a family spends is taken from its branches, never from its keeper.
        Path(f"/proc/{pid}/oom_score_adj").write_text("-1000")
    except OSError:
        return  # an ordinary user may not say so


def _users(families: int) -> UserMap:
    count = families * USERS
    room = max(0x0E00_0000 // _RANGES, count)
    first = _FIRST_HOST_USER + os.getpid() % _RANGES * room
    return UserMap(first, first + 1, count)
