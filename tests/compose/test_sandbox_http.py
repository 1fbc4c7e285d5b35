"""The sandbox's HTTP by compose.sandbox-http.yaml: a relay, a token, and its walls as before."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compose_support import START_S, Stack, answers, envoy_image, free_port, until
from envoy_support import binary

FILE = "compose.sandbox-http.yaml"
RELAY = "sandbox_http"


@pytest.fixture
def url(stack: Stack, tmp_path: Path) -> Iterator[str]:
    """Of the relay; afterwards the sandbox is as compose.yaml has it."""
    port = free_port()
    settings = {
        "ASSAY_HTTP_PORT_SANDBOX": str(port),
        "ASSAY_ENVOY_IMAGE": envoy_image(tmp_path / "image", binary()),
    }
    try:
        stack.renew("sandbox", FILE, **settings)
        up = ("up", "-d", "--no-build", "--no-deps", RELAY)
        stack.compose(*up, files=[FILE], limit_s=START_S, **settings)
        until(lambda: answers(("127.0.0.1", port)), 60.0)
        yield f"http://127.0.0.1:{port}"
    finally:
        stack.compose("rm", "-s", "-f", RELAY, files=[FILE], **settings)
        stack.renew("sandbox")


def asked(url: str, token: str) -> dict[str, Any]:
    body = json.dumps({"language": "python", "code": "print(6 * 7)"}).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(f"{url}/run_code", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def test_programs_run_through_the_relay_and_a_token_is_asked_for(stack: Stack, url: str) -> None:
    found = asked(url, stack.sandbox_token)
    assert found["run_result"]["stdout"] == "42\n"
    with pytest.raises(urllib.error.HTTPError) as caught:
        asked(url, "wrong")
    with caught.value as error:
        assert error.code == 401
    networks = stack.inspect("sandbox")["NetworkSettings"]["Networks"]
    assert [name.removeprefix(f"{stack.project}_") for name in networks] == ["back"]
    assert not any(stack.inspect("sandbox")["NetworkSettings"]["Ports"].values())
    host = stack.inspect(RELAY)["HostConfig"]
    assert (host["Privileged"], host["ReadonlyRootfs"], host["CapDrop"]) == (False, True, ["ALL"])
