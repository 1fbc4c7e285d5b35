"""E2B's sandboxes as they are kept here: each a few sessions, its contexts.

Each context has files of its own; those that are read and written, and commands, are those of the
default Python context. All leases begin anew with every call about the sandbox.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.api.session.v1 import session_pb2
from assay.compat.e2b import code
from assay.compat.sessions import LocalSessions
from assay.kit.calls import tenant_var
from assay.kit.durations import duration, seconds_of
from assay.kit.errors import refuse
from assay.kit.reasons import Reason

PYTHON = "python"
_LANGUAGES = frozenset({PYTHON, "bash"})
_GRACE_S = 60.0


@dataclass(slots=True)
class Context:
    """An interpreter of a sandbox.

    Attributes:
        session_id: the session that it is; another after a restart.
        turn: held while something runs in it.
        runs: how many cells callers have run in it.
    """

    id: str
    language: str
    folder: str
    session_id: str
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    runs: int = 0


@dataclass(slots=True)
class E2bSandbox:
    """A sandbox.

    Attributes:
        defaults: the context of each language that was used without one.
        lease_s: how long it lives without a call.
        started_s: when it began, in seconds of the epoch.
        touched_s: when the last call about it was, by the monotonic clock.
    """

    id: str
    tenant: str
    template: str
    metadata: dict[str, str]
    environment: dict[str, str]
    lease_s: float
    limits: session_pb2.SessionLimits
    contexts: dict[str, Context] = field(default_factory=dict)
    defaults: dict[str, Context] = field(default_factory=dict)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    started_s: float = field(default_factory=time.time)
    touched_s: float = field(default_factory=time.monotonic)

    @property
    def session_ids(self) -> list[str]:
        """Its sessions."""
        return [context.session_id for context in self.contexts.values()]

    @property
    def left_s(self) -> float:
        """How long it lives yet without a call."""
        return self.touched_s + self.lease_s - time.monotonic()


class E2bSandboxes:
    """The sandboxes of this process, of all tenants."""

    def __init__(self, sessions: LocalSessions) -> None:
        self.sessions = sessions
        self._boxes: dict[str, E2bSandbox] = {}

    def mine(self) -> list[E2bSandbox]:
        """The caller's, the oldest first; those whose lease has run out are forgotten."""
        for box in [box for box in self._boxes.values() if box.left_s < -_GRACE_S]:
            del self._boxes[box.id]
        return [box for box in self._boxes.values() if box.tenant == tenant_var.get()]

    def find(self, box_id: str) -> E2bSandbox:
        """One of the caller's.

        Raises:
            NotFoundError: SESSION_NOT_FOUND.
        """
        box = self._boxes.get(box_id)
        if box is None or box.tenant != tenant_var.get():
            raise refuse(Reason.SESSION_NOT_FOUND, f"The sandbox {box_id[:60]!r} was not found")
        return box

    async def touch(self, box_id: str, due_s: float, *, lease_s: float | None = None) -> E2bSandbox:
        """One of the caller's, whose leases begin anew."""
        box = self.find(box_id)
        if lease_s is not None:
            box.lease_s = lease_s
        kept = await self.sessions.renew(box.session_ids, due_s, lease_s=box.lease_s)
        box.touched_s = time.monotonic()
        if box.defaults[PYTHON].session_id not in {session.id for session in kept}:
            # Says why, for it is there no more.
            await self.sessions.get(box.defaults[PYTHON].session_id, [], due_s)
        return box

    async def create(self, box: E2bSandbox, due_s: float) -> E2bSandbox:
        """Opens a sandbox with its default interpreter."""
        self.mine()
        await self.default(box, PYTHON, due_s)
        self._boxes[box.id] = box
        return box

    async def fork(
        self, box: E2bSandbox, count: int, lease_s: float, due_s: float
    ) -> list[E2bSandbox]:
        """Copies of a sandbox, of its default Python context."""
        own = box.defaults[PYTHON]
        request = session_pb2.ForkRequest(
            session_id=own.session_id, count=count, lease=duration(lease_s)
        )
        async with own.turn:
            sessions = await self.sessions.fork(request, due_s)
        made = []
        for session in sessions:
            copy = E2bSandbox(new_id(), box.tenant, box.template, dict(box.metadata),
                       dict(box.environment), lease_s, session.limits)  # fmt: skip
            context = Context(new_id(), PYTHON, own.folder, session.id, runs=own.runs)
            copy.contexts[context.id] = copy.defaults[PYTHON] = context
            self._boxes[copy.id] = copy
            made.append(copy)
        return made

    async def kill(self, box_id: str) -> None:
        """Ends a sandbox."""
        box = self.find(box_id)
        del self._boxes[box.id]
        await self.sessions.close(box.session_ids)

    async def default(self, box: E2bSandbox, language: str, due_s: float) -> Context:
        """The context of a language where none is named."""
        async with box.opening:
            if language not in box.defaults:
                box.defaults[language] = await self.open(box, language, "", due_s)
            return box.defaults[language]

    async def open(self, box: E2bSandbox, language: str, folder: str, due_s: float) -> Context:
        """A new context, in a folder of its working directory."""
        session = await self.sessions.create(_request(box, language), due_s)
        box.limits = session.limits
        context = Context(new_id(), language, folder, session.id)
        box.contexts[context.id] = context
        if folder:
            await self.sessions.run(session.id, code.go_to(folder, language), due_s)
        return context

    async def restart(self, box: E2bSandbox, context: Context, due_s: float) -> None:
        """Another interpreter for a context; its files stay."""
        async with context.turn:
            request = _request(box, context.language)
            session = await self.sessions.anew(context.session_id, request, due_s)
            context.session_id, context.runs = session.id, 0
            if context.folder:
                moved = code.go_to(context.folder, context.language)
                await self.sessions.run(session.id, moved, due_s)

    async def remove(self, box: E2bSandbox, context_id: str) -> None:
        """Ends a context.

        Raises:
            CallError: SESSION_NOT_FOUND, or INVALID_PARAMETER for the default one.
        """
        context = context_of(box, context_id)
        if context is box.defaults[PYTHON]:
            raise refuse(Reason.INVALID_PARAMETER, "the default context stays: restart it")
        del box.contexts[context.id]
        box.defaults = {name: kept for name, kept in box.defaults.items() if kept is not context}
        await self.sessions.close([context.session_id])


def context_of(box: E2bSandbox, context_id: str) -> Context:
    """A context by its name.

    Raises:
        NotFoundError: SESSION_NOT_FOUND.
    """
    if context_id not in box.contexts:
        raise refuse(Reason.SESSION_NOT_FOUND, f"no context {context_id[:60]!r}")
    return box.contexts[context_id]


def new_id() -> str:
    """A name that cannot be guessed, fit for a host name."""
    return secrets.token_hex(10)


def _request(box: E2bSandbox, language: str) -> session_pb2.CreateRequest:
    if language not in _LANGUAGES:
        raise refuse(Reason.UNKNOWN_LANGUAGE, f"{language[:60]!r} is not served: python, bash are")
    return session_pb2.CreateRequest(
        language=language,
        environment=box.environment,
        lease=duration(box.lease_s),
        limits=box.limits,
    )


def usual_limits(most: session_pb2.SessionLimits) -> session_pb2.SessionLimits:
    """As much time as a session may have; else the server's defaults."""
    limits = session_pb2.SessionLimits()
    for name in ("cpu_time", "cell_cpu_time", "cell_wall_time"):
        getattr(limits, name).CopyFrom(getattr(most, name))
    return limits


def text_map(given: Mapping[str, object]) -> dict[str, str]:
    """Environment and metadata, as texts."""
    return {str(name): str(value) for name, value in given.items()}


def cell_s(box: E2bSandbox) -> float:
    """What a cell may take."""
    return seconds_of(box.limits.cell_wall_time)
