"""A family as the host sees it: its keeper, its control group, and the branches that run cells.

Belongs to the host's event loop. See `assay.sandbox.zygote.keeper` for the other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import marshal
import math
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any

from assay.kit.reasons import Reason
from assay.sandbox.domain import SandboxFault
from assay.sandbox.jail.cgroups import ControlGroup
from assay.sandbox.sessions.held import LIVE, Ends, FamilyLost, Gone, HeldBranch
from assay.sandbox.zygote.protocol import descriptors_of, sender_of

USERS = 128
"""Users of a family: it has at most so many branches at once."""

_ANSWER_S = 60.0
_GROUP_S, _GROUP_TRIES = 0.05, 8  # until an ended family's group can be removed
_ROOM_BYTES = 2 * 2**20  # that a copy takes besides its files
_SHRINK_S, _SHRINK_TRIES = 1.0, 10  # a branch that was ended gives its memory back by and by
_KILLED_S = 2.0  # several processes may be ended for one lack of memory
_HANDED = 2  # a folder and a process


class CopyRefused(Exception):
    """A branch cannot be copied; `holds` says what stands in the way."""

    def __init__(self, holds: Sequence[str]) -> None:
        super().__init__(", ".join(holds))
        self.holds = list(holds)


class SessionFamily:
    """A keeper and its branches.

    Attributes:
        members: its sessions.
        forks: that were ever asked for.
        on_lost: called when it is lost.
        own_users: each branch has a user of its own, so that it may be copied.

    Args:
        control: the host's end of the keeper's control socket.
        disk_bytes: size of the first branch's folders.
        first_host_user: the host's id behind the family's user 1000; None where there is one user.
    """

    def __init__(
        self,
        control: socket.socket,
        group: ControlGroup | None,
        first_host_user: int | None,
        number: int,
        disk_bytes: int,
    ) -> None:
        self.number = number
        self.disk_bytes = disk_bytes
        self.group = group
        self.members = self.forks = 0
        self.on_lost: set[Callable[[], None]] = set()
        self.own_users = first_host_user is not None
        self.lost = False
        self.why_lost = "it was closed"
        self.branches: dict[int, HeldBranch] = {}
        self._control = control
        self._first_host_user = first_host_user
        self._loop = asyncio.get_running_loop()
        self._keeper, self._base_bytes, self._cpu_s = -1, 0, 0.0
        self._killed_s = -math.inf
        self._limits, self._limit_bytes = (0, 0), 0
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], list[int]]]] = {}
        self._here: asyncio.Future[int] = self._loop.create_future()
        self._up: asyncio.Future[tuple[dict[str, Any], list[int]]] = self._loop.create_future()
        control.setblocking(False)
        control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._loop.add_reader(control, self._hear)

    async def begin(self, ends: Ends, join: Callable[[int], None], *, waits: bool) -> HeldBranch:
        """Waits for the keeper and its first branch.

        Args:
            ends: of that branch.
            join: called with the keeper's process id.
            waits: the keeper has no children before that.

        Raises:
            FamilyLost: it does not come up.
        """
        async with asyncio.timeout(_ANSWER_S):
            pid = await self._here
            self._keeper = os.pidfd_open(pid)
            join(pid)
            if waits:
                self._control.send(b"G")
            facts, given = await self._up
        user = facts["up"]
        ends.hand_over(self._host_user(user))
        branch = self._add(user, given, ends)
        self._base_bytes = branch.base_bytes = branch.memory_bytes()
        branch.weigh(LIVE)
        return branch

    async def copy(self, source: int, count: int, *, runs: bool) -> list[HeldBranch]:
        """Copies of a branch, all or none; `runs`: they will run cells.

        Raises:
            CopyRefused: it cannot be copied.
            FamilyLost: the keeper is gone.
        """
        ends = [Ends() for _ in range(count)] if runs else []
        try:
            handed = [descriptor for each in ends for descriptor in each.theirs]
            facts, given = await self.ask("copy", source, count, descriptors=handed)
            if self.lost:  # it was closed between the answer and now
                for descriptor in given:
                    os.close(descriptor)
                raise FamilyLost(self.why_lost)
            if "holds" in facts:
                raise CopyRefused([str(text) for text in facts["holds"]])
        except BaseException:
            for each in ends:
                each.close()
            raise
        made = []
        for place, user in enumerate(facts["users"]):
            if runs:
                ends[place].hand_over(self._host_user(user))
            mine = ends[place] if runs else None
            made.append(self._add(user, given[2 * place : 2 * place + 2], mine))
        return made

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Sets what all branches together may use; a lower limit of memory comes when it fits."""
        if self.group is None:
            return
        self._limits = memory_bytes, processes
        if memory_bytes < self._limit_bytes:
            self._loop.call_later(_SHRINK_S, self._shrink, _SHRINK_TRIES)
            return
        self._limit_bytes = memory_bytes
        self._begin(memory_bytes, processes)

    def _begin(self, memory_bytes: int, processes: int) -> None:
        if self.group is not None:
            self._cpu_s += self.group.cpu_s()
            self.group.begin(memory_bytes, processes)

    def cpu_s(self) -> float:
        """CPU seconds of all processes that the family ever had; 0 where nobody counts."""
        return 0.0 if self.group is None else self._cpu_s + self.group.cpu_s()

    def _shrink(self, tries: int) -> None:
        memory_bytes, processes = self._limits
        if self.group is None or memory_bytes >= self._limit_bytes:
            return
        if self.group.used_bytes() < memory_bytes:
            # What the kernel cannot free at once is as good as a limit that is a little higher.
            with contextlib.suppress(OSError):
                self._begin(memory_bytes, processes)
                self._limit_bytes = memory_bytes
        elif tries:
            self._loop.call_later(_SHRINK_S, self._shrink, tries - 1)

    def has_room(self, size_bytes: int) -> bool:
        """Whether so much memory more fits within the family's limit."""
        if self.group is None:
            return True
        return self.group.used_bytes() + size_bytes + _ROOM_BYTES <= self._limit_bytes

    def _memory_killed(self) -> bool:
        now_s = self._loop.time()
        if self.group is not None and self.group.memory_kills():
            self._killed_s = now_s
        return now_s - self._killed_s < _KILLED_S

    def end(self, branch: HeldBranch) -> None:
        """Ends a branch's processes; nobody waits for it."""
        self.branches.pop(branch.user, None)
        branch.close()
        self.tell("kill", branch.user)

    async def ask(
        self, *request: Any, descriptors: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        """Asks the keeper; its answer, with what came along.

        Raises:
            FamilyLost: it is gone, or does not answer.
        """
        number = self._send(request, descriptors)
        answer: asyncio.Future[tuple[dict[str, Any], list[int]]] = self._loop.create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await answer
        except TimeoutError:
            self.lose("its keeper does not answer")
            raise FamilyLost(self.why_lost) from None
        finally:
            self._waiting.pop(number, None)

    def tell(self, *request: Any) -> None:
        """Asks the keeper for what needs no answer."""
        with contextlib.suppress(FamilyLost):
            self._send(request, ())

    def _send(self, request: Sequence[Any], descriptors: Sequence[int]) -> int:
        if self.lost:
            raise FamilyLost(self.why_lost)
        self._asked += 1
        message = marshal.dumps((self._asked, *request))
        try:
            socket.send_fds(self._control, [message], list(descriptors))
        except OSError as error:  # also where hundreds of requests wait
            self.lose("its keeper died, or does not answer")
            raise FamilyLost(self.why_lost) from error
        return self._asked

    def lose(self, why: str) -> None:
        """Gives the family up: kills the keeper, and tells everybody who waits."""
        if self.lost:
            return
        self.why_lost = why
        self.close()
        for call in list(self.on_lost):
            call()

    def close(self) -> None:
        """Ends every process of the family."""
        if self.lost:
            return
        self.lost = True
        self._loop.remove_reader(self._control)
        self._control.close()
        if self._keeper >= 0:  # and with it everything in its namespace
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._keeper, signal.SIGKILL)
            os.close(self._keeper)
            self._keeper = -1
        for branch in self.branches.values():
            branch.close()
        self.branches.clear()
        unanswered: list[asyncio.Future[Any]]
        unanswered = [*self._waiting.values(), self._here, self._up]
        for waiting in unanswered:
            if not waiting.done():
                waiting.set_exception(FamilyLost(self.why_lost))
                waiting.exception()  # it may be that nobody waits
        group, self.group = self.group, None
        if group is not None:
            # The kernel takes a moment to empty it.
            self._loop.call_later(_GROUP_S, _remove, group, 0)

    def _host_user(self, user: int) -> int | None:
        return None if self._first_host_user is None else self._first_host_user + user - 1000

    def _add(self, user: int, given: list[int], ends: Ends | None) -> HeldBranch:
        if len(given) < _HANDED:  # the kernel could not hand them over
            for descriptor in given:
                os.close(descriptor)
            if ends is not None:
                ends.close()
            self.tell("kill", user)
            text = "the host has no descriptors left: raise ulimit -n, or lower --max-sessions"
            raise SandboxFault(Reason.WORKER_DIED, text)
        branch = HeldBranch(user, given[0], given[1], ends)
        branch.base_bytes = self._base_bytes
        self.branches[user] = branch
        return branch

    def _hear(self) -> None:
        try:
            message, ancillary, _, _ = self._control.recvmsg(
                1 << 16, socket.CMSG_SPACE(4 * 64) + socket.CMSG_SPACE(12), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            message, ancillary = b"", []
        if not message:
            self.lose("its keeper died")
            return
        given = descriptors_of(ancillary)
        number, facts = json.loads(message)
        if number:
            waiting = self._waiting.get(number)
            if waiting is not None and not waiting.done():
                waiting.set_result((facts, given))
                return
        elif "here" in facts:
            self._here.set_result(sender_of(ancillary))
        elif "up" in facts:
            self._up.set_result((facts, given))
            return
        elif "failed" in facts:
            self.lose(f"its first process could not be confined: {facts['failed']}")
        elif "gone" in facts:
            self._ended(facts)
        for descriptor in given:
            os.close(descriptor)

    def _ended(self, facts: dict[str, Any]) -> None:
        branch = self.branches.get(facts["gone"])
        if branch is not None:
            branch.gone = Gone(
                *(facts["status"], facts["cpu_s"], facts["peak_bytes"]),
                others_computed=not branch.computes
                and any(other.computes for other in self.branches.values()),
                for_memory=self._memory_killed(),
                over=facts["over"],
            )
            branch.drain()
            branch.listener.ended()


def _remove(group: ControlGroup, tries: int) -> None:
    if not group.remove() and tries < _GROUP_TRIES:
        asyncio.get_running_loop().call_later(_GROUP_S * 2**tries, _remove, group, tries + 1)
