"""Rewards of verifiers, NeMo Gym and TRL behind our reward server, from their packages."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verifiers.v1.envs", reason="see `make test-adapters`")
pytest.importorskip("nemo_gym", reason="see `make test-adapters`")

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.environments.hosting import host_rubric, host_taskset
from assay.kit.errors import ConfigError

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

FILE = Path(__file__).with_name("hosted_peers.py")
NAMES = ("taskset", "equivalence", "masked", "running", "thinking")


@pytest.fixture(scope="module")
def gym() -> Iterator[str]:
    """The URL of a resources server that NeMo Gym ships, as it serves itself."""
    import uvicorn

    from adapters.hosted_peers import server

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = uvicorn.Server(uvicorn.Config(server().setup_webserver(), log_level="error"))
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        serving.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def client(gym: str) -> Iterator[RewardClient]:
    os.environ["GYM_URL"] = gym
    given = [word for name in NAMES for word in ("--verifier", f"{name}={FILE}:{name}")]
    given += ["--workers", "1", "--worker-memory-mb", "8192"]
    with (
        EmbeddedServices(arguments={"reward": given}) as services,
        RewardClient(services.address, timeout_s=60) as client,
    ):
        yield client


def asked(client: RewardClient, verifier: str, response: str, **fields: Any) -> Any:
    return client.score_one(Item(response, verifier=verifier, **fields))


def test_a_tasksets_rewards(client: RewardClient) -> None:
    row = {"answer": "4"}
    assert asked(client, "taskset", "4", prompt="2 + 2?", reference=row).reward == 1.5
    assert asked(client, "taskset", "5", reference=row).reward == 0.5
    assert asked(client, "taskset", "4", reference="4").reward == 1.5  # its one field
    for broken, reason in (("raises", "VERIFIER_FAILED"), ("nan", "VERIFIER_FAILED")):
        result = asked(client, "taskset", "4", reference={**row, "broken": broken})
        assert (result.reward, result.fault.reason) == (None, reason)
    assert asked(client, "taskset", "4", reference={"no": 1}).fault.reason == "VERIFIER_FAILED"


def test_a_resources_servers_verify(client: RewardClient) -> None:
    row = {"expected_answer": "Paris"}
    assert asked(client, "equivalence", "Paris", prompt="Where?", reference=row).reward == 1.0
    assert asked(client, "equivalence", "Rome", prompt="Where?", reference=row).reward == 0.0
    fault = asked(client, "masked", "Paris", prompt="Where?", reference=row).fault
    assert fault.reason == "VERIFIER_FAILED"
    assert "masks this sample: judge_failed" in fault.message
    for name in ("equivalence", "running"):  # a request that lacks its answer
        assert asked(client, name, "Paris").fault.reason == "VERIFIER_FAILED"
    assert asked(client, "running", "Paris", prompt="Where?", reference=row).reward == 1.0
    assert asked(client, "running", "Rome", prompt="Where?", reference=row).reward == 0.0


def test_a_reward_that_trl_ships(client: RewardClient) -> None:
    assert asked(client, "thinking", "<think>\nSo.\n</think>\n4").reward == 1.0
    assert asked(client, "thinking", "4").reward == 0.0


def test_what_cannot_be_judged_here_is_said_before_the_server_starts() -> None:
    import verifiers.v1 as vf

    from adapters.hosted_peers import Boxed, Data

    class Nothing(vf.Task[Data, vf.State, vf.TaskConfig]):
        """Has no reward."""

    with pytest.raises(ConfigError, match="needs the runtime"):
        host_taskset(Boxed)
    with pytest.raises(ConfigError, match="has no reward"):
        host_taskset(Nothing)
    with pytest.raises(ConfigError, match="no Taskset and no Task"):
        host_taskset(dict)
    with pytest.raises(ConfigError, match="no Rubric and no Environment"):
        host_rubric(object())
