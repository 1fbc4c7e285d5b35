"""The rewards of an OpenEnv environment behind our reward server, from its package."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv.core", reason="see `make test-adapters`")

from assay.cli.main import run
from assay.clients import EmbeddedServices, Item, RewardClient
from assay.clients.types import Turn

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

FILE = Path(__file__).with_name("hosted_openenv.py")
NAMES = ("guessing", "guessing_strictly", "guessing_remote")


@pytest.fixture(scope="module")
def remote() -> Iterator[str]:
    """The URL of the environment as OpenEnv serves it."""
    import uvicorn
    from openenv.core.env_server import create_app

    from adapters.hosted_openenv import Guess, Guessing, Told

    app = create_app(Guessing, Guess, Told, env_name="guessing")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        serving.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def client(remote: str) -> Iterator[RewardClient]:
    os.environ["GUESSING_URL"] = remote
    given = [word for name in NAMES for word in ("--verifier", f"{name}={FILE}:{name}")]
    given += ["--workers", "1", "--worker-memory-mb", "8192"]
    with (
        EmbeddedServices(arguments={"reward": given}) as services,
        RewardClient(services.address, timeout_s=60) as client,
    ):
        yield client


def turns(*texts: str) -> list[Turn]:
    return [Turn("assistant", text, True) for text in texts]


def asked(client: RewardClient, verifier: str, response: Any, **fields: Any) -> Any:
    given = {"response": response} if isinstance(response, str) else {"turns": response}
    return client.score_one(Item(verifier=verifier, **given, **fields))


@pytest.mark.parametrize("name", ["guessing", "guessing_remote"])
def test_an_openenv_environments_rewards_over_turns(client: RewardClient, name: str) -> None:
    row = {"number": 3}
    assert asked(client, name, "3", reference=row).reward == 1.0
    result = asked(client, name, turns("1", "2", "3", "4"), reference=row)
    assert result.reward == pytest.approx(0.8)  # what follows the end is not played
    assert asked(client, name, "666").fault.reason == "VERIFIER_FAILED"
    assert asked(client, name, "0").fault.reason == "UNSUPPORTED_INPUT"  # no reward at all


def test_what_is_no_action_has_the_reward_that_the_operator_says(client: RewardClient) -> None:
    assert asked(client, "guessing", "who knows").reward == -1.0
    assert asked(client, "guessing_strictly", "who knows").fault.reason == "UNSUPPORTED_INPUT"


def test_an_audit_of_an_environment(tmp_path: Path) -> None:
    rows = [
        {"reference": {"number": n}, "right": str(n), "wrong": [str(n + 1), "?"]} for n in (3, 5)
    ]
    data, out = tmp_path / "rows.jsonl", tmp_path / "report.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["audit", f"{FILE}:guessing", "--data", str(data), "--json", str(out)]
    assert run(given) == 0
    said = {one["measured"].get("class"): one for one in json.loads(out.read_text())["results"]}
    assert said["given-right"]["measured"]["asked"] == 2
    assert said["given-wrong"]["measured"]["asked"] == 4
    assert said["given-wrong"]["measured"]["unwanted"] == 0
