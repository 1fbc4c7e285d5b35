"""A resources server for NeMo Gym (0.7) that serves an environment: an episode a session.

    # resources_servers/sums/app.py; its YAML names `environment`, `settings`, `target`, ...
    from assay.environments.faces.nemo_gym import EnvironmentResourcesServer

    if __name__ == "__main__":
        EnvironmentResourcesServer.run_webserver()

`gym_row` makes the rows. A fault is a failed row or 503; see docs/trainers/nemo-gym.md.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from assay.clients.faults import make_fault
from assay.clients.trainers.common.faults import FaultError, FaultPolicy, read_policy
from assay.clients.trainers.common.gym_rows import unsaid
from assay.clients.trainers.nemo_gym import failed_row, unserved
from assay.clients.types import Fault
from assay.environments.endings import Ending
from assay.environments.episode import EpisodeLimits
from assay.environments.faces.common import (
    EpisodeHandle,
    OpenedEnvironment,
    opened,
    reward_of,
    row_of,
)
from assay.environments.types import EpisodeOutcome
from assay.kit.errors import ConfigError
from assay.kit.reasons import Reason

_REMEMBERED = 100_000  # sessions that were closed: a late seed must not begin one anew
_OPTIONS = ("target", "token", "tls_ca", "verifier", "task", "timeout_s")


class EnvironmentServerConfig(BaseResourcesServerConfig):
    """The server's settings: the environment, an episode's limits, and the reward services.

    Attributes:
        idle_s: an episode that nobody calls for so long is dropped.
    """

    environment: str
    settings: dict[str, Any] = Field(default_factory=dict)
    turns: int = 0
    seconds: float = 0.0
    idle_s: float = 3600.0
    on_fault: str = "raise"
    target: str = ""
    token: str = ""
    tls_ca: str = ""
    verifier: str = ""
    task: str = ""
    timeout_s: float | None = None


class EnvironmentSeedRequest(BaseModel):
    """A row; from an Environment Server, one under `task_data`, with the session's id."""

    model_config = ConfigDict(extra="allow")


class EnvironmentVerifyRequest(BaseVerifyRequest):
    """A rollout with the columns of its row."""

    model_config = ConfigDict(extra="allow")


@dataclass(slots=True)
class _Seated:
    """An episode of a session.

    Attributes:
        fault: that it began with.
    """

    handle: EpisodeHandle
    called_s: float
    fault: Fault | None = None


class EnvironmentResourcesServer(SimpleResourcesServer):
    """Seeds an episode for each session, calls its tools, and ends it at `/verify`."""

    config: EnvironmentServerConfig

    def model_post_init(self, context: Any) -> None:
        """Opens the environment, so that a wrong setting stops the start.

        Raises:
            ConfigError: it cannot be opened, or a tool has the name of one of Gym's routes.
        """
        super().model_post_init(context)
        given = {name: getattr(self.config, name) for name in _OPTIONS}
        limits = EpisodeLimits(self.config.turns, self.config.seconds)
        options = {name: value for name, value in given.items() if value}
        self._world: OpenedEnvironment = opened(
            self.config.environment, self.config.settings, limits=limits, **options
        )
        self._seats: OrderedDict[str, _Seated] = OrderedDict()
        self._closed: OrderedDict[str, None] = OrderedDict()
        self._policy = read_policy(
            self.config.on_fault, [FaultPolicy.RAISE, FaultPolicy.MASK], "NeMo Gym"
        )

    def setup_webserver(self) -> FastAPI:
        """Gym's app, with a route for each tool.

        Raises:
            ConfigError: a tool has the name of one of Gym's routes.
        """
        app = super().setup_webserver()
        taken = {getattr(route, "path", "") for route in app.routes}
        for name in self._world.tools:
            if f"/{name}" in taken:
                raise ConfigError(f"the tool {name!r} has the name of a route of NeMo Gym")
            app.post(f"/{name}")(self._endpoint(name))
        return app

    async def seed_session(self, request: Request, body: EnvironmentSeedRequest) -> Response:
        """Begins the session's episode; a repeated call finds it."""
        await self._sweep()
        columns = body.model_dump(mode="json")
        named = columns.get("resources_session_id")
        if named is not None:
            request.session[SESSION_ID_KEY] = str(named)
            columns = dict(columns.get("task_data") or {})
        key = request.session[SESSION_ID_KEY]
        if key in self._closed:
            return JSONResponse({"detail": "the session was closed"}, status_code=409)
        if key not in self._seats:
            seat = self._seats[key] = _Seated(self._world.episode(), time.monotonic())
            try:
                await seat.handle.abegin(row_of(columns, _messages(columns)))
            except FaultError as error:  # what was broken is told where Gym can act on it
                seat.fault = error.fault
        return JSONResponse({} if named is None else {"resources_session_id": named})

    async def close_resources_session(self, request: Request, body: EnvironmentSeedRequest) -> Any:
        """Ends a session's episode, if it goes on; a later seed is refused."""
        named = (body.model_extra or {}).get("resources_session_id")
        key = str(named) if named is not None else request.session[SESSION_ID_KEY]
        self._closed[key] = None
        if len(self._closed) > _REMEMBERED:
            self._closed.popitem(last=False)
        seat = self._seats.pop(key, None)
        if seat is not None:
            await seat.handle.aend()
        return JSONResponse({} if named is None else {"resources_session_id": named})

    async def verify(self, request: Request, body: EnvironmentVerifyRequest) -> JSONResponse:
        """Ends the episode with the response's last words: the row with its reward."""
        data = unsaid(body.model_dump(mode="json"))
        seat = self._seats.pop(request.session[SESSION_ID_KEY], None)
        if seat is None:
            lost = make_fault(Reason.SESSION_LOST, "this server holds no episode of the session")
            return self._failed(data, lost)
        try:
            if seat.fault is not None:
                return self._failed(data, seat.fault)
            return JSONResponse({**data, **_row(await _ended(seat.handle, data["response"]))})
        except FaultError as error:
            return self._failed(data, error.fault)
        finally:
            await seat.handle.aend()

    def _failed(self, data: dict[str, Any], fault: Fault) -> JSONResponse:
        if self._policy is FaultPolicy.RAISE:
            return unserved(fault.reason, fault.message)
        return failed_row(data, fault)

    def _endpoint(self, name: str) -> Any:
        async def call(request: Request) -> Response:
            seat = self._seats.get(request.session[SESSION_ID_KEY])
            if seat is None:
                return unserved(Reason.SESSION_LOST, "no episode of the session")
            seat.called_s = time.monotonic()
            try:
                return PlainTextResponse(await seat.handle.acall_tool(name, await _json(request)))
            except FaultError as error:
                return unserved(error.fault.reason, error.fault.message)

        call.__name__ = name
        return call

    async def _sweep(self) -> None:
        latest_s = time.monotonic() - self.config.idle_s
        for key, seat in list(self._seats.items()):
            if seat.called_s < latest_s:
                self._seats.pop(key, None)
                await seat.handle.aend(Ending.ABANDONED)


async def _json(request: Request) -> Any:
    try:
        return await request.json()
    except ValueError:
        return (await request.body()).decode(errors="replace")


async def _ended(handle: EpisodeHandle, response: Mapping[str, Any]) -> EpisodeOutcome:
    """Gives the last words to the environment, unless they were cut off, and ends the episode."""
    if response.get("incomplete_details"):
        return await handle.aend(Ending.TOKEN_LIMIT)
    if handle.observation is not None:
        await handle.asay(_last_words(response["output"]))
    return await handle.aend(Ending.TURN_LIMIT)


def _row(outcome: EpisodeOutcome) -> dict[str, Any]:
    reward = reward_of(outcome)
    judgement = outcome.result.judgement
    return {
        "reward": reward,
        "verdict": judgement.verdict if judgement else "",
        "explanation": judgement.explanation if judgement else "",
        "ending": str(outcome.ending),
        "turns": outcome.turns,
    }


def _last_words(output: list[dict[str, Any]]) -> str:
    """The texts behind the last call and its answer."""
    text: list[str] = []
    for one in output:
        if one.get("type") in {"function_call", "function_call_output"}:
            text = []
        elif one.get("type") == "message":
            text += [part.get("text") or "" for part in one.get("content") or ()
                     if part.get("type") == "output_text"]  # fmt: skip
    return "".join(text)


def _messages(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = (columns.get("responses_create_params") or {}).get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def gym_row(environment: OpenedEnvironment, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an environment as a line of Gym's data: with its prompt and the tools' schemas."""
    tools = [
        {"type": "function", "strict": False, **spec.schema["function"]}
        for spec in environment.tools.values()
    ]
    asked = {"input": [{"role": "user", "content": str(row["prompt"])}], "tools": tools}
    return {**row, "responses_create_params": asked}
