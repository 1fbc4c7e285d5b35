"""Rewards of somebody else's behind a real reward server: sound ones, and each way to be bad."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.clients.types import Result, ToolCall, Turn
from assay.environments.hosting import host_function, host_nemo_gym, host_openenv
from assay.environments.hosting.apart import apart
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable

FILE = Path(__file__).with_name("hosted_rewards.py")
BAD = {
    "raises": "VERIFIER_FAILED",
    "exits": "VERIFIER_FAILED",
    "interrupts": "VERIFIER_FAILED",
    "leaves": "VERIFIER_FAILED",
    "os_exit": "VERIFIER_FAILED",
    "killed": "WORKER_DIED",
    "hangs": "ITEM_TIMEOUT",
    "hog": "VERIFIER_FAILED",
    "none": "UNSUPPORTED_INPUT",
    "nothing": "VERIFIER_FAILED",
    "nan": "VERIFIER_FAILED",
    "infinite": "VERIFIER_FAILED",
    "huge": "VERIFIER_FAILED",
    "text": "VERIFIER_FAILED",
    "texts": "VERIFIER_FAILED",
    "two": "VERIFIER_FAILED",
    "empty": "VERIFIER_FAILED",
    "million": "VERIFIER_FAILED",
    "mapping": "VERIFIER_FAILED",
    "weird": "VERIFIER_FAILED",
    "deep": "VERIFIER_FAILED",
    "bare": "VERIFIER_FAILED",
    "stdout": "UNSUPPORTED_INPUT",
}
ODD = {"forks": 0.75, "numpy_number": 0.25, "says_true": 1.0, "awaited": 0.5}
PROFILE = """
[[profile]]
name = "halved"
description = "Half of a hosted reward."
tasks = ["halved"]

[[profile.component]]
name = "theirs"
verifier = "hosted_good"
weight = 0.5

[[profile.example]]
response = "the cat"
reference = "cat"
verdict = "scored"
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardClient]:
    profiles = tmp_path_factory.mktemp("profiles") / "halved.toml"
    profiles.write_text(PROFILE)
    names = ["hosted_good", "hosted_chat", "hosted_strange"]
    given = [word for name in names for word in ("--verifier", f"{name}={FILE}:{name}")]
    given += ["--profiles", str(profiles), "--workers", "2", "--item-timeout-s", "8"]
    with (
        EmbeddedServices(arguments={"reward": [*given, "--worker-memory-mb", "1024"]}) as services,
        RewardClient(services.address, timeout_s=60) as client,
    ):
        yield client


def asked(client: RewardClient, verifier: str, **fields: object) -> Result:
    given: dict[str, object] = {"response": "the cat", "reference": {"answer": "cat"}, **fields}
    return client.score_one(Item(verifier=verifier, **given))  # type: ignore[arg-type]


def test_a_hosted_function_judges_and_a_profile_composes_it(client: RewardClient) -> None:
    assert asked(client, "hosted_good").reward == 1.0
    assert asked(client, "hosted_good", response="a dog").reward == 0.0
    assert asked(client, "hosted_good", reference="cat").reward == 1.0  # its one column
    lacking = asked(client, "hosted_good", reference={"other": 1}).fault
    assert lacking is not None
    assert lacking.reason == "UNUSABLE_REFERENCE"
    assert asked(client, "", task="halved").reward == 0.5
    assert asked(client, "", task="halved", reference={"answer": 4}).fault is not None
    [known] = [one for one in client.list_verifiers().verifiers if one.name == "hosted_good"]
    assert known.description == "The share of the answer's letters that were said."
    assert (known.deterministic, known.cacheable, known.parameters) == (True, True, ())


def test_messages_and_calls_of_tools_arrive(client: RewardClient) -> None:
    call = ToolCall("add", {"a": 1})
    one = asked(client, "hosted_chat", prompt="2 + 2?", tool_calls=[call])
    assert one.reward == pytest.approx(11.1)
    turns = [
        Turn("assistant", "", True, [call]),
        Turn("tool", "2"),
        Turn("assistant", "it is 2", True),
    ]
    assert asked(client, "hosted_chat", response=None, turns=turns).reward == pytest.approx(3.1)


@pytest.mark.parametrize(("name", "reason"), BAD.items())
def test_what_goes_wrong_is_a_fault_and_never_a_number(
    client: RewardClient, name: str, reason: str
) -> None:
    result = asked(client, "hosted_strange", reference={"how": name})
    assert result.reward is None
    assert result.fault is not None
    assert result.fault.reason == reason
    assert "the answer is 4" not in result.fault.message  # an exception may quote the row


@pytest.mark.slow
@pytest.mark.parametrize(("name", "reward"), ODD.items())
def test_odd_numbers_and_habits_are_taken(client: RewardClient, name: str, reward: float) -> None:
    began_s = time.monotonic()
    assert asked(client, "hosted_strange", reference={"how": name}).reward == reward
    assert time.monotonic() - began_s < 8  # children that live on hold nothing up


def test_what_it_patches_and_prints_reaches_nobody_else(client: RewardClient) -> None:
    for _ in range(4):
        for name in ("patches", "prints"):
            result = asked(client, "hosted_strange", reference={"how": name})
            assert result.fault is not None or result.reward in (0.5, 1.0)
        assert asked(client, "hosted_good").reward == 1.0
        assert asked(client, "exact", response="4", reference="4").reward == 1.0
        assert asked(client, "math", response=r"\boxed{4}", reference="5").reward == 0.0


def test_after_all_of_it_the_server_judges_on(client: RewardClient) -> None:
    judges = ("hosted_strange", "hosted_good")
    items = [Item(f"x{n}", {"answer": str(n), "how": "os_exit"}, judges[n % 2]) for n in range(40)]
    results = client.score(items)
    assert [result.reward for result in results] == [1.0 if n % 2 else None for n in range(40)]


def test_no_client_names_what_is_hosted(client: RewardClient) -> None:
    for name in (f"{FILE}:hosted_good", "hosted_rewards:hosted_good", "hosted"):
        fault = asked(client, name).fault
        assert fault is not None
        assert fault.reason == "UNKNOWN_VERIFIER"


@pytest.mark.slow
def test_a_child_leaves_no_process_and_no_file_behind() -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    living = children.read_text()
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for _ in range(20):
        assert apart(lambda: 1, "one", 5.0) == 1.0
        with pytest.raises(Unjudgeable, match="ended its process"):
            apart(lambda: os._exit(3), "leaves", 5.0)
    with pytest.raises(Unjudgeable, match=r"took more than 0\.2 s"):
        apart(lambda: time.sleep(30), "sleeps", 0.2)
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
    assert children.read_text() == living


ORPHANS = """
import os, sys, time
from assay.environments.hosting.apart import apart

def hangs():
    for _ in range(2):
        if os.fork() == 0:
            break
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(120)

apart(hangs, "hangs", 100.0)
"""


def test_where_the_caller_is_killed_nothing_lives_on() -> None:
    command = [sys.executable, "-c", ORPHANS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        started = [int(caller.stdout.readline()) for _ in range(3)]
        caller.kill()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{one}").exists() for one in started):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_what_cannot_be_hosted_is_said() -> None:
    with pytest.raises(ConfigError, match="takes no completions"):
        host_function(lambda response: 1.0)
    with pytest.raises(ConfigError, match="positive number of seconds"):
        host_function(lambda completions: [1.0], timeout_s=0)
    with pytest.raises(ConfigError, match="takes name, timeout_s, deterministic"):
        host_openenv(dict, dict, timeout=3)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="environment's class and a function"):
        host_openenv("echo", None)
    with pytest.raises(ConfigError, match="makes the resources server"):
        host_nemo_gym(None)
    with pytest.raises(ConfigError, match="no URL of a resources server"):
        host_nemo_gym("server")
