"""One viewer over two reward servers, by compose.viewer.yaml, behind the operator's token."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from assay.clients import Item, RewardClient
from compose_support import START_S, Stack, free_port, until

OWN_FOLDERS = """
services:
  reward_server:
    environment:
      - ASSAY_REWARD_JOURNAL=/own/verdicts.sqlite
      - ASSAY_REWARD_JOURNAL_MAX_MB=64
    tmpfs:
      - /own:size=128m,mode=1777
"""
"""As docs/operate/journal.md says it, for more than one server."""


class Viewer:
    """The published viewer, asked as a browser asks: by a password."""

    def __init__(self, port: int, token: str) -> None:
        self._address = f"http://127.0.0.1:{port}/"
        self._token = token

    def get(self, path: str = "", token: str | None = None) -> bytes:
        told = base64.b64encode(f":{self._token if token is None else token}".encode()).decode()
        request = urllib.request.Request(
            self._address + path, headers={"authorization": f"Basic {told}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def json(self, path: str) -> Any:
        return json.loads(self.get(path))


@pytest.fixture(scope="module")
def viewer(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """Two servers and the viewer; afterwards the stack is as it was."""
    port = free_port()
    own = tmp_path_factory.mktemp("viewer") / "own.yaml"
    own.write_text(OWN_FOLDERS)
    files = ("compose.viewer.yaml", str(own))
    settings = {
        "ASSAY_PORT": "0", "ASSAY_VIEW_PORT": str(port), "ASSAY_REWARD_TOKEN": stack.token,
    }  # fmt: skip
    up = ("up", "-d", "--no-build", "--no-deps", "--scale", "reward_server=2")
    try:
        stack.compose(*up, "reward_server", "viewer", files=files, limit_s=START_S, **settings)
        stack.wait_healthy("reward_server")
        yield Viewer(port, stack.token)
    finally:
        stack.compose("rm", "-s", "-f", "viewer", files=files, **settings)
        stack.docker("volume", "rm", f"{stack.project}_viewed")
        stack.renew("reward_server")


def test_the_journals_of_both_are_one_list(stack: Stack, viewer: Viewer) -> None:
    for number, container in enumerate(stack.containers("reward_server")):
        networks = stack.inspect_container(container)["NetworkSettings"]["Networks"]
        address = networks[f"{stack.project}_front"]["IPAddress"]
        with RewardClient(f"{address}:50051", token=stack.token, timeout_s=60.0) as client:
            items = [
                Item(f"\\boxed{{{one}}}", reference=str(number), task="math", id=f"{number}-{one}")
                for one in range(5)
            ]
            assert sum(result.reward or 0.0 for result in client.score(items)) == 1.0

    def shown() -> Any:
        try:
            return viewer.json("api/items?limit=100")["items"]
        except OSError as error:
            return [str(error)]

    def trouble() -> str:
        logs = map(stack.logs, stack.containers("viewer") + stack.containers("reward_server"))
        return "\n".join([str(shown()), str(viewer.json("api/sources")), *logs])

    until(lambda: len(shown()) == 10, 60.0, trouble)
    assert sorted(one["reward"] for one in shown()) == [0.0] * 8 + [1.0] * 2
    sources = viewer.json("api/sources")["sources"]
    assert [(one["kind"], one["items"], one["problems"]) for one in sources] == [
        ("journal", 5, [])
    ] * 2
    whole = viewer.json(f"api/item?id={shown()[0]['id']}")
    assert whole["verdict"]["verifier"] == "math"
    assert b"<html" in viewer.get()


def test_without_the_token_nothing_is_shown(viewer: Viewer) -> None:
    for path in ("", "viewer.css", "api/sources", "export"):
        for token in ("", "wrong"):
            with pytest.raises(urllib.error.HTTPError) as caught:
                viewer.get(path, token)
            with caught.value as error:
                assert error.code == 401
                assert "Basic" in error.headers["www-authenticate"]


def test_what_a_server_said_stays_when_it_is_gone(stack: Stack, viewer: Viewer) -> None:
    until(lambda: len(viewer.json("api/items?limit=100")["items"]) == 10, 60.0)
    stack.docker("rm", "-f", stack.containers("reward_server")[0])
    assert len(viewer.json("api/items?limit=100")["items"]) == 10
    host = stack.inspect("viewer")["HostConfig"]
    assert (host["Privileged"], host["ReadonlyRootfs"], host["CapDrop"]) == (False, True, ["ALL"])
