"""The sessions that are open, by id; their leases; and a memory of how the last ones ended.

An id is NAME.BOOT+SECRET: the replica, the run of its process, and 128 random bits. So one that
another replica made, or this one before it was started again, is told apart from one that never
was. One event loop only.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from assay.kit.errors import CallError, refuse
from assay.kit.reasons import Reason
from assay.sandbox.sessions.settings import Allowance

_BOOT_BYTES = 4
_SECRET_BYTES = 16
_REMEMBERED = 16_384
_SECOND_LOOK_S = 0.05
_MAX_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class Ended:
    """How a session ended: what later calls about it are told.

    Attributes:
        how: "closed", "lease-expired", "lost" or "drained", for metrics and logs.
        cause: of a lost one, e.g. "host-died".
    """

    how: str
    message: str
    cause: str = ""

    def error(self) -> CallError:
        """For a call."""
        if self.how == "closed":
            return refuse(Reason.SESSION_NOT_FOUND, self.message)
        if self.how == "lease-expired":
            return refuse(Reason.LEASE_EXPIRED, self.message)
        return refuse(Reason.SESSION_LOST, self.message, cause=self.cause)


CLOSED = Ended("closed", "the session was closed")


@dataclass(slots=True, eq=False)
class OpenSession:
    """An open session.

    Attributes:
        key: its name at the host.
        lease_s: how long it lives untouched.
        expires_s: when the lease ends, by the loop's clock.
        doing: what it does, "a cell runs"; empty where it is free.
        over: how the program ended it, in kebab-case; empty where it did not.
        ended: set once it is no longer open.
        cells, cpu_s: what it did and used.
        cleared: its place is given back, or will be.
    """

    id: str
    key: int
    tenant: str
    language: str
    limits: Allowance
    lease_s: float
    opened_s: float
    expires_s: float = 0.0
    doing: str = ""
    over: str = ""
    ended: Ended | None = None
    cells: int = 0
    cpu_s: float = 0.0
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)
    late: bool = False
    cleared: bool = False


class OpenSessions:
    """The sessions of a replica.

    Args:
        replica: its name.
        expired: called with a session whose lease has run out.
    """

    def __init__(self, replica: str, expired: Callable[[OpenSession], None]) -> None:
        self.replica = replica
        self._boot = secrets.token_hex(_BOOT_BYTES)
        self._expired = expired
        self._keys = itertools.count(1)
        self._open: dict[str, OpenSession] = {}
        self._ended: OrderedDict[str, tuple[str, Ended]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenSession]:
        return iter(tuple(self._open.values()))

    def key(self) -> int:
        """A key that was never used."""
        return next(self._keys)

    def add(
        self, key: int, tenant: str, language: str, limits: Allowance, lease_s: float
    ) -> OpenSession:
        """Opens a session; its lease begins."""
        loop = asyncio.get_running_loop()
        name = f"{self.replica}.{self._boot}{secrets.token_urlsafe(_SECRET_BYTES)}"
        session = OpenSession(name, key, tenant, language, limits, lease_s, loop.time())
        self._open[name] = session
        self.touch(session)
        return session

    def find(self, session_id: str, tenant: str) -> OpenSession:
        """An open session of a tenant; its lease begins anew.

        Raises:
            CallError: SESSION_NOT_FOUND, LEASE_EXPIRED, SESSION_LOST or WRONG_REPLICA.
        """
        session = self._open.get(session_id)
        if session is None or session.tenant != tenant:
            raise self._missing(session_id, tenant)
        self.touch(session)
        return session

    def touch(self, session: OpenSession) -> None:
        """Begins its lease anew."""
        loop = asyncio.get_running_loop()
        session.expires_s = loop.time() + session.lease_s
        session.late = False
        if session.timer is not None and session.timer.when() > session.expires_s:
            session.timer.cancel()
            session.timer = None
        if session.timer is None:
            session.timer = loop.call_at(session.expires_s, self._look, session)

    def end(self, session: OpenSession, ended: Ended) -> bool:
        """Takes a session out, remembers how it ended; False where it was out already."""
        if session.ended is not None:
            return False
        session.ended = ended
        del self._open[session.id]
        if session.timer is not None:
            session.timer.cancel()
        self._ended[session.id] = session.tenant, ended
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        return True

    def check_replica(self, asked: str) -> None:
        """Checks the replica that a call is meant for.

        Raises:
            CallError: WRONG_REPLICA.
        """
        if asked != self.replica:
            raise refuse(
                Reason.WRONG_REPLICA,
                f"the call is for the replica {asked[:_MAX_NAME_CHARS]!r}, this is "
                f"{self.replica!r}; nothing was done",
                replica=asked[:_MAX_NAME_CHARS],
                here=self.replica,
            )

    def _missing(self, session_id: str, tenant: str) -> CallError:
        whose, ended = self._ended.get(session_id, ("", CLOSED))
        if session_id in self._ended and whose == tenant:
            return ended.error()
        replica, dot, rest = session_id.rpartition(".")
        secret_chars = len(secrets.token_urlsafe(_SECRET_BYTES)) + 2 * _BOOT_BYTES
        if dot and len(rest) == secret_chars and len(replica) <= _MAX_NAME_CHARS:
            if replica != self.replica:
                return refuse(
                    Reason.WRONG_REPLICA,
                    f"the replica {replica!r} made the session, this is {self.replica!r}; "
                    "nothing was done",
                    replica=replica,
                    here=self.replica,
                )
            if not rest.startswith(self._boot):
                return refuse(
                    Reason.SESSION_LOST,
                    "the server was started anew since the session was made",
                    cause="server-restarted",
                )
        return refuse(Reason.SESSION_NOT_FOUND, "no session has this id")

    def _look(self, session: OpenSession) -> None:
        """The lease may have ended.

        After a pause of the loop a renewal may lie in a socket: it looks twice.
        """
        loop = asyncio.get_running_loop()
        session.timer = None
        if session.doing:
            self.touch(session)
        elif loop.time() < session.expires_s:
            session.timer = loop.call_at(session.expires_s, self._look, session)
        elif session.late:
            self._expired(session)
        else:
            session.late = True
            session.timer = loop.call_later(_SECOND_LOOK_S, self._look, session)
