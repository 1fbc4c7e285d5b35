"""NeMo Gym's Python tools, each rollout with a session of its own.

The cookie names the session. Every answer sets it, and an agent hands the last one on, also to
/verify, as it does with Gym's own; so any replica of the server knows a rollout. Once a call has
failed by no doing of the policy's, the cookie says why instead: later calls fail alike, and /verify
makes a failed row, whatever the response. A session that nobody verifies ends with its lease.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from assay.clients.sessions import (
    AsyncSession,
    AsyncSessionClient,
    CellEnd,
    CellResult,
    SessionEnded,
)
from assay.kit.calls import request_id_var
from assay.kit.errors import CallError, refuse
from assay.kit.http.codec import malformed, read_object
from assay.kit.http.problems import problem_response
from assay.kit.reasons import Reason
from assay.reward_server.http.front import RewardFront

COOKIE = "assay_session"
CELL_S = 10.0
"""Time on the clock of a call, as in Gym's own environment."""

_HELD = 4096


@dataclass(frozen=True, slots=True)
class Seat:
    """What a cookie says of a rollout.

    Attributes:
        session_id, replica: its session; empty before the first call, and after one was over.
        fault, why: the reason of the call that failed, and its message.
    """

    session_id: str = ""
    replica: str = ""
    fault: str = ""
    why: str = ""

    @property
    def error(self) -> CallError | None:
        """The call that failed."""
        if not self.fault:
            return None
        known = Reason(self.fault) if self.fault in set(Reason) else Reason.SESSION_LOST
        return refuse(known, self.why or "an earlier call of this rollout failed")

    def to_cookie(self) -> str:
        """As a cookie's value."""
        said = [self.session_id, self.replica, self.fault, self.why[:200]]
        return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")


def read_seat(cookies: Mapping[str, str]) -> Seat:
    """The rollout of a call; a new one where the cookie is missing or not ours."""
    given = cookies.get(COOKIE, "")
    try:
        said = json.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
    except (ValueError, RecursionError):
        return Seat()
    if not isinstance(said, list) or [type(one) for one in said] != [str] * 4:
        return Seat()
    return Seat(*said)


@dataclass(slots=True)
class _Held:
    """A session in use here; one cell at a time."""

    session: AsyncSession
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Tools:
    """The tools of a reward server that has a sandbox."""

    def __init__(self, front: RewardFront) -> None:
        self._front = front
        self._held: OrderedDict[str, _Held] = OrderedDict()

    @property
    def _client(self) -> AsyncSessionClient:
        client = self._front.sessions
        if client is None:
            raise refuse(
                Reason.UNKNOWN_METHOD,
                "tools need a sandbox: start the reward server with --sandbox-target",
            )
        return client

    async def seed(self, request: Request, body: Mapping[str, Any]) -> Response:
        """Opens a rollout's session, where it has a tool of ours.

        Raises:
            CallError: there is no sandbox, or no room in it.
        """
        seat = Seat()
        if _wants_tools(body):
            held = await self._open(self._front.timeout_s(request))
            seat = _seat_of(held)
        return _with_cookie(JSONResponse({}), seat)

    async def execute_python(self, request: Request) -> Response:
        """`math_with_code`'s tool."""
        return await self._answer(request, lambda result: JSONResponse(_report(result)))

    async def stateful_python(self, request: Request) -> Response:
        """`ns_tools`' tool, whose answer is a text."""
        return await self._answer(request, lambda result: PlainTextResponse(_text(result)))

    async def end_session(self, request: Request) -> Response:
        """Ends a rollout's session early."""
        await self.close(read_seat(request.cookies))
        return _with_cookie(JSONResponse({"success": True, "stdout": "", "stderr": ""}), Seat())

    async def close(self, seat: Seat) -> None:
        """Ends a rollout's session, if it has one; where that fails, its lease does."""
        if seat.session_id and self._front.sessions is not None:
            with contextlib.suppress(CallError):
                held = await self._find(seat)
                del self._held[seat.session_id]
                await held.session.close()

    async def _answer(self, request: Request, shape: Any) -> Response:
        seat = read_seat(request.cookies)
        try:
            code = (await read_object(request)).get("code")
            if not isinstance(code, str):
                raise malformed("code must be a string")
        except CallError as error:  # the policy's doing
            return _with_cookie(problem_response(error, request_id_var.get()), seat)
        try:
            if seat.error is not None:
                raise seat.error
            with self._front.charged(1):
                result, seat = await self._run(seat, code, self._front.timeout_s(request))
        except CallError as error:
            seat = Seat(seat.session_id, seat.replica, error.reason, str(error))
            return _with_cookie(problem_response(error, request_id_var.get()), seat)
        return _with_cookie(shape(result), seat)

    async def _run(self, seat: Seat, code: str, timeout_s: float) -> tuple[CellResult, Seat]:
        """Runs a cell in the rollout's session, a new one where it has none."""
        held = await (self._find(seat) if seat.session_id else self._open(timeout_s))
        async with held.turn:
            try:
                result = await held.session.execute(code, wall_s=CELL_S, timeout_s=timeout_s)
            except SessionEnded as ended:
                result = CellResult(ended.end or CellEnd.DIED, session_over=True)
        if not result.session_over:
            return result, _seat_of(held)
        await self.close(_seat_of(held))
        return result, Seat()

    async def _open(self, timeout_s: float) -> _Held:
        session = await self._client.create("python", timeout_s=timeout_s)
        return self._hold(session)

    async def _find(self, seat: Seat) -> _Held:
        held = self._held.get(seat.session_id)
        if held is None:
            held = self._hold(await self._client.attach(seat.session_id, seat.replica))
        self._held.move_to_end(seat.session_id)
        return held

    def _hold(self, session: AsyncSession) -> _Held:
        """Remembers a session; its lease ends it, for another replica may go on with it."""
        session.detach()
        held = self._held.setdefault(session.id, _Held(session))
        while len(self._held) > _HELD:
            self._held.popitem(last=False)
        return held


_TOOLS = frozenset({"execute_python", "stateful_python_code_exec"})


def _wants_tools(body: Mapping[str, Any]) -> bool:
    asked = body.get("responses_create_params")
    tools = asked.get("tools") if isinstance(asked, dict) else None
    listed = tools if isinstance(tools, list) else []
    named = [tool.get("name") for tool in listed if isinstance(tool, dict)]
    return any(isinstance(name, str) and name in _TOOLS for name in named)


def _seat_of(held: _Held) -> Seat:
    return Seat(held.session.id, held.session.replica)


def _with_cookie(response: Response, seat: Seat) -> Response:
    response.set_cookie(COOKIE, seat.to_cookie(), httponly=True, samesite="lax")
    return response


def _report(result: CellResult) -> dict[str, object]:
    """A cell in the words of `math_with_code`."""
    return {
        "success": result.end == CellEnd.COMPLETED,
        "stdout": result.stdout.text,
        "stderr": result.stderr.text,
        "error_message": _problem(result),
        "result": _value(result),
    }


def _text(result: CellResult) -> str:
    """What a notebook shows below a cell."""
    error = result.error.traceback if result.error else _problem(result)
    parts = (result.stdout.text, result.stderr.text, error, _value(result))
    return "".join(part for part in parts if part)


def _value(result: CellResult) -> str | None:
    """The last expression's value as `str` has it."""
    if result.value is None:
        return None
    return result.plain if isinstance(result.plain, str) else result.value.text


def _problem(result: CellResult) -> str | None:
    """Why a cell did not run to its end; None where it did."""
    if result.end == CellEnd.COMPLETED:
        return None
    if result.error is not None and result.end == CellEnd.RAISED:
        return f"{result.error.name}: {result.error.message}"
    over = "; its variables are gone, and the next call begins anew" if result.session_over else ""
    return f"{result.detail or result.end}{over}"
