"""Faces plug in: none takes a path of another, opens what a token does not, or breaks the rest."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from assay.compat.sandbox_fusion.face import FACE as SANDBOX_FUSION
from assay.kit.errors import StartupError
from assay.kit.http import app as http_app
from assay.kit.http import installed, probes
from assay.kit.http.app import document_of
from assay.kit.http.config import HttpConfig
from assay.kit.http.faces import Face, load_faces, routes_of
from assay.kit.serving import ServeConfig
from assay.reward_server.http.site import SITE as REWARD
from assay.sandbox.http import SITE as SANDBOX
from assay.sandbox.http import SandboxFront
from http_support import item, serving


async def here(_: Request) -> Response:
    return JSONResponse("here")


def face(*paths: str, name: str = "mine", make: Callable[..., Any] = Route, **more: Any) -> Face:
    return Face(name, lambda _: [make(path, here, **more) for path in paths])


def front() -> SandboxFront:
    admission: Any = SimpleNamespace(collectors=())
    runner: Any = SimpleNamespace(
        execute=None, run_tests=None, stream_run_tests=None, list_languages=None
    )
    return SandboxFront(runner, admission, HttpConfig())


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/metrics", "/{name}", "/{below:path}", "/{a}z", "/health{z}"]
)
def test_no_face_answers_where_callers_are_let_in_without_a_token(path: str) -> None:
    for methods in (["GET"], ["POST"]):
        with pytest.raises(StartupError, match=r"probes and mine both serve"):
            routes_of(front(), [probes.FACE, face(path, methods=methods)])


def test_no_face_takes_a_path_of_another() -> None:
    with pytest.raises(StartupError, match="SandboxFusion and mine both serve /run_code"):
        routes_of(front(), [SANDBOX_FUSION, face("/run_code", methods=["GET"])])
    with pytest.raises(StartupError, match="both serve"):
        routes_of(front(), [face("/a/{b}"), face("/a/b", name="other")])
    mine = face("/a", "/a", "/b/{c}")  # as Piston's two routes of a path
    assert len(routes_of(front(), [mine, face("/b", "/a/b", name="other")])) == 5


def test_what_is_no_plain_route_is_refused() -> None:
    class Wide(Route):
        def matches(self, _: Any) -> Any:
            raise AssertionError

    for brings in (Mount("/healthz", routes=[]), Wide("/x", here), here):
        mine = Face("mine", lambda _, brings=brings: [cast("Route", brings)])
        with pytest.raises(StartupError, match="mine brings"):
            routes_of(front(), [mine])


def test_a_face_that_cannot_be_loaded_harms_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    group = f"{installed.GROUP}.sandbox"
    values = {
        "absent": "no_such_module:FACE",
        "nothing": "assay.kit.http.faces:NO_SUCH",
        "other": "assay.kit.http.installed:GROUP",  # a text
        "right": "assay.compat.piston.face:FACE",
    }
    points = [EntryPoint(name, value, group) for name, value in values.items()]
    monkeypatch.setattr(installed, "entry_points", lambda group: points)
    assert [one.name for one in load_faces("sandbox")] == ["Piston"]
    assert caplog.text.count("is left out") == 3


FORMATS = ["E2B", "Jupyter", "Piston", "SandboxFusion"]


def test_each_service_has_its_own_faces() -> None:
    assert [one.name for one in load_faces("sandbox")] == FORMATS
    names = ["OpenAI graders", "NeMo Gym", "OpenRLHF", "slime"]
    assert [one.name for one in load_faces("reward")] == names
    assert load_faces("no-such-service") == []


def test_the_sandboxs_document_has_every_path_of_its_faces() -> None:
    plugged = load_faces("sandbox")
    document = document_of(front(), SANDBOX, plugged)
    served = {route.path for route in routes_of(front(), [probes.FACE, *plugged])}
    assert served == set(document["paths"])
    assert "RunCodeResponse" in document["components"]["schemas"]


async def test_a_face_is_behind_the_token_of_its_service(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ("/mine", "/healthz/mine", "/healthz%2f", "/Healthz")
    monkeypatch.setattr(http_app, "load_faces", lambda _: [face(*paths, methods=["GET", "POST"])])
    async with serving(serve=ServeConfig(token="right")) as facade:
        for path in (*paths, "//healthz", "/./healthz", "/healthz/", "/healthz;", "/mine?/healthz"):
            for ask in (facade.get, facade.post):
                assert (await ask(path)).status == 401, path
        assert (await facade.get("/mine", authorization="Bearer right")).json == "here"
        # Probes are read by everybody, and are no way to send anything.
        assert [(await facade.get(path)).status for path in ("/healthz", "/readyz")] == [200, 200]
        assert (await facade.post("/healthz", {})).status == 401


async def test_a_face_that_claims_a_path_keeps_the_service_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_app, "load_faces", lambda _: [face("/v1/{verb}", methods=["POST"])])
    with pytest.raises(StartupError, match="contract and mine both serve /v1/"):
        async with serving():
            pass


@pytest.mark.slow
async def test_who_asks_at_the_old_place_is_told_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as facade:
        for path in ("/run_code", "/submit", "/api/v2/execute"):
            answer = await facade.post(path, {})
            assert (answer.status, answer.json["reason"]) == (404, "UNKNOWN_METHOD")
            assert "served by the sandbox" in answer.json["detail"]
            assert "--http-port" in answer.json["detail"]
        assert "sandbox" not in (await facade.post("/run_codes", {})).json["detail"]
    monkeypatch.setattr(http_app, "load_faces", lambda _: [])
    async with serving() as facade:
        answer = await facade.post("/get_reward", {})
        assert answer.status == 404
        assert "assay-rl-compat" in answer.json["detail"]
        assert (await facade.post("/v1/score", {"items": [item("42")]})).status == 200
    once_here = [one for one in load_faces("sandbox") if one.name not in ("E2B", "Jupyter")]
    moved = {path for one in once_here for path in one.operations}
    added = {path for one in load_faces("reward") for path in one.operations}
    assert set(REWARD.absent) == moved | added, "each path of a plug-in is known"
