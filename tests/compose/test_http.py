"""HTTP beside gRPC, by compose.http.yaml: the same token, the same judgements."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from assay.clients import Item, RewardClient
from compose_support import Stack, free_port

BODY = {
    "items": [
        {
            "id": str(n),
            "task": "math",
            "response": f"\\boxed{{{n}}}",
            "reference": {"text": "1"},
        }
        for n in (1, 2)
    ]
}


@pytest.fixture
def url(stack: Stack) -> Iterator[str]:
    """Of the published port; afterwards the reward server is as compose.yaml has it."""
    port = free_port()
    stack.renew("reward_server", "compose.http.yaml", ASSAY_HTTP_PORT=str(port))
    yield f"http://127.0.0.1:{port}/v1/score"
    stack.renew("reward_server")


def asked(url: str, token: str) -> list[float]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(BODY).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return [result["judgement"]["reward"] for result in json.load(answer)["results"]]


def test_http_is_published_beside_grpc(stack: Stack, client: RewardClient, url: str) -> None:
    assert asked(url, stack.token) == [1.0, 0.0]
    with pytest.raises(urllib.error.HTTPError) as caught:
        asked(url, "wrong")
    with caught.value as error:
        assert error.code == 401
    (result,) = client.score([Item("\\boxed{1}", reference="1", task="math")])
    assert result.reward == 1.0
