"""The HTTP facade on a real port, in this process, and a client of the standard library."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.kit.access import Access
from assay.kit.http.app import http_listener
from assay.kit.http.config import HttpConfig
from assay.kit.serving import Admission, RunningServer, ServeConfig, start
from assay.kit.tls import ServerTls
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import (
    Candidate,
    Component,
    Fault,
    Judgement,
    RemoteOutcome,
    RemoteVerifier,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.http.front import RewardFront
from assay.reward_server.http.site import SITE
from assay.reward_server.journal.writer import Journal
from assay.reward_server.registry import Registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.service import reward_service
from assay.reward_server.verifiers.exact import exact
from assay.reward_server.verifiers.text.choice import choice


class Obedient(RemoteVerifier):
    """Does what the response says: `sleep SECONDS`, `fault REASON`; anything else gets 0.25.

    Attributes:
        asked: responses that it was asked about.
        cancelled: calls of it that were given up.
    """

    spec = VerifierSpec(
        "obedient", "1", "Does what it is told.", ("obedience",), 0.0, 1.0, ("fine",),
        isolation="remote", needs_reference=False, cacheable=False,
    )  # fmt: skip
    examples = (VerifierExample(VerifierItem(Candidate("fine")), "fine"),)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled = 0

    async def judge_all(
        self, items: Sequence[VerifierItem], timeout_s: float
    ) -> list[RemoteOutcome]:
        return [RemoteOutcome(await self._judge(item.response(), timeout_s)) for item in items]

    async def _judge(self, response: str, timeout_s: float) -> Judgement | Fault:
        self.asked.append(response)
        word, _, rest = response.partition(" ")
        if word == "fault":
            return Fault(rest, "as it was told")
        if word == "sleep":
            try:
                await asyncio.sleep(min(float(rest), timeout_s))
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            if float(rest) > timeout_s:
                return Fault("DEADLINE_EXCEEDED", "too late")
        return Judgement(0.25, "fine", (Component("obedience", 0.25),))


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Facade:
    """A running server, and how to ask it."""

    server: RunningServer
    address: str
    obedient: Obedient
    tls: ssl.SSLContext | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def connect(self) -> http.client.HTTPConnection:
        if self.tls is not None:
            return http.client.HTTPSConnection(self.address, timeout=20, context=self.tls)
        return http.client.HTTPConnection(self.address, timeout=20)

    def ask_now(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, sent, {**self.headers, **(headers or {})})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())

    async def get(self, path: str, **headers: str) -> Answer:
        return await asyncio.to_thread(self.ask_now, "GET", path, None, _names(headers))

    async def post(self, path: str, body: object = None, **headers: str) -> Answer:
        return await asyncio.to_thread(self.ask_now, "POST", path, body, _names(headers))


def _names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def basic(token: str, user: str = "assay") -> str:
    """The header of a URL that holds user and token."""
    return "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


def item(response: str, verifier: str = "exact", item_id: str = "a") -> dict[str, Any]:
    """An item of /v1/score with the reference 42."""
    told = {"id": item_id, "verifier": verifier, "response": response}
    return {**told, "reference": {"text": "42"}}


@contextlib.asynccontextmanager
async def serving(
    *verifiers: Verifier,
    config: HttpConfig | None = None,
    serve: ServeConfig | None = None,
    access: Access | None = None,
    tls: ServerTls | None = None,
    journal: Path | None = None,
    **services: Any,
) -> AsyncIterator[Facade]:
    """A server with `exact`, `choice`, an Obedient and further verifiers; one worker."""
    obedient = Obedient()
    registry = Registry([exact, choice, obedient, *verifiers], ours=())
    kept = None if journal is None else Journal(journal, 16 * 2**20)
    if kept is not None:
        await kept.start()
    scorer = RewardScorer(ScorerConfig(workers=1), registry=registry, journal=kept)
    settings = config or HttpConfig(0)
    told = serve or ServeConfig(access=access or Access(), tls=tls)

    def front(admission: Admission) -> RewardFront:
        return RewardFront(scorer, admission, settings, journal=journal, **services)

    listener = http_listener(SITE, front, settings, told.access)
    assert listener is not None
    try:
        async with await start([reward_service(scorer)], told, beside=listener) as server:
            yield Facade(server, listener.address, obedient)
    finally:
        if kept is not None:
            await kept.close()
