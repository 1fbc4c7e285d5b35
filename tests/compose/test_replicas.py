"""Two reward servers behind Envoy, and by their name: restarted by turns under load, and killed."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.clients import Item, RewardClient
from assay.clients.execution import CallTest, Limits, TestSuite, suite_to_proto
from compose_support import START_S, Stack, envoy_image, free_port, until
from envoy_support import binary

SUITE = suite_to_proto(TestSuite([CallTest("double", (3,), 6)], Limits(wall_time_s=30.0)))
PROGRAM = "```python\ndef double(x):\n    return {} * x // {}\n```"
# The same load from inside, by the name that all replicas share. It ends when it finds the file.
INSIDE = """
import asyncio, json, pathlib
from assay.clients import AsyncRewardClient, Item

async def main():
    calls, faults, over = 0, [], pathlib.Path("/tmp/over")
    async with AsyncRewardClient("dns:///reward_server:50051", token="TOKEN") as client:
        while not over.exists():
            numbers = [str(n) for n in range(8 * calls, 8 * calls + 8)]
            items = [Item("The answer is " + n, reference=n, task="math") for n in numbers]
            results = await client.score(items)
            faults += [repr(one) for one in results if one.reward != 1.0]
            calls += 1
            pathlib.Path("/tmp/calls").write_text(str(calls))
            await asyncio.sleep(0.05)
    over.unlink()
    print(json.dumps([calls, faults]))

asyncio.run(main())
"""


class Replicas:
    """Two reward servers and Envoy of one stack."""

    def __init__(self, stack: Stack, port: int) -> None:
        self.stack = stack
        self.target = f"127.0.0.1:{port}"

    @property
    def containers(self) -> list[str]:
        return self.stack.containers("reward_server")

    def stop(self, container: str) -> None:
        self.stack.docker("stop", "-t", "20", container)

    def kill(self, container: str) -> None:
        self.stack.docker("kill", "-s", "KILL", container)

    def start(self, container: str) -> None:
        self.stack.docker("start", container)
        self.stack.wait_container(container)


@pytest.fixture(scope="module")
def replicas(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """As compose.yaml says to do it. Afterwards the stack is as it was."""
    port = free_port()
    settings = {
        "ASSAY_PORT": "0",
        "ASSAY_ENVOY_PORT": str(port),
        "ASSAY_ENVOY_IMAGE": envoy_image(tmp_path_factory.mktemp("envoy") / "image", binary()),
    }
    both = ("reward_server", "envoy")
    up = ("up", "-d", "--no-build", "--no-deps", "--scale", "reward_server=2", *both)
    try:
        stack.compose(*up, profiles=["envoy"], limit_s=START_S, **settings)
        stack.wait_healthy("reward_server")
        yield Replicas(stack, port)
    finally:
        stack.compose("rm", "-s", "-f", "envoy", profiles=["envoy"], **settings)
        stack.renew("reward_server")


@pytest.fixture(scope="module")
def through(replicas: Replicas) -> Iterator[RewardClient]:
    """A client of Envoy's with its default settings."""
    with RewardClient(replicas.target, token=replicas.stack.token) as client:
        client.wait_ready(90.0)
        yield client


def test_envoy_finds_both_and_a_token_is_asked_for(
    replicas: Replicas, through: RewardClient
) -> None:
    def healthy() -> bool:
        shown = replicas.stack.metrics("envoy", "judges")
        [found] = re.findall(
            r'^envoy_cluster_membership_healthy\{.*"reward_server"\} (\d+)', shown, re.MULTILINE
        )
        return int(found) == 2

    until(healthy, 60.0)
    with RewardClient(replicas.target, token="wrong", timeout_s=10.0) as stranger:
        assert {result.reward for result in stranger.score([Item("4", reference="4")])} == {None}
    host = replicas.stack.inspect("envoy")["HostConfig"]
    assert (host["Privileged"], host["ReadonlyRootfs"], host["CapDrop"]) == (False, True, ["ALL"])


class Load:
    """Calls and a stream through Envoy, and calls by name from inside, until it is left."""

    def __init__(self, replicas: Replicas, client: RewardClient) -> None:
        self._stack = replicas.stack
        self._client = client
        self._over = threading.Event()
        self.calls = self.streamed = self.inside = 0
        self.faults: list[str] = []
        self._pool = ThreadPoolExecutor(3)
        self._loops: list[Future[None]] = []

    def __enter__(self) -> Load:
        loops = (self._call, self._stream, self._inside)
        self._loops = [self._pool.submit(loop) for loop in loops]
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._stack.python("genrm", "import pathlib; pathlib.Path('/tmp/over').touch()")
        self._pool.shutdown()
        for loop in self._loops:
            loop.result()

    def goes_on(self) -> None:
        """Waits until more of every kind has come through."""
        calls, streamed, inside = self.calls, self.streamed, self.so_far_inside()
        until(
            lambda: (
                self.calls > calls + 2
                and self.streamed > streamed + 2
                and self.so_far_inside() > inside + 2
            ),
            180.0,
            lambda: (self.faults, self._loops, self.calls, self.streamed, inside),
        )

    def so_far_inside(self) -> int:
        script = (
            "import pathlib; p = pathlib.Path('/tmp/calls'); print(p.exists() and p.read_text())"
        )
        said = self._stack.python("genrm", script).strip()
        return int(said) if said.isdigit() else 0

    def _items(self, first: int) -> list[Item]:
        code = Item(PROGRAM.format(2 * first, first), reference=SUITE, task="code")
        return [code] + [
            Item(f"\\boxed{{{n}}}", reference=str(n), task="math") for n in range(first, first + 8)
        ]

    def _call(self) -> None:
        while not self._over.is_set():
            results = self._client.score(self._items(10 * self.calls + 1))
            self.faults += [repr(result) for result in results if result.reward != 1.0]
            self.calls += 1
            time.sleep(0.05)

    def _stream(self) -> None:
        sent = 0

        def items() -> Iterator[Item]:
            nonlocal sent
            while not self._over.is_set():
                yield Item(f"\\boxed{{{sent}}}", reference=str(sent), task="math", id=str(sent))
                sent += 1
                time.sleep(0.05)

        for result in self._client.stream(items(), timeout_s=900.0):
            self.streamed += 1
            if result.reward != 1.0:
                self.faults.append(repr(result))
        assert self.streamed == sent

    def _inside(self) -> None:
        said = self._stack.docker(
            *("exec", self._stack.container("genrm"), "/opt/assay/bin/python", "-c"),
            INSIDE.replace("TOKEN", self._stack.token),
            limit_s=900.0,
        )
        self.inside, faults = json.loads(said)
        self.faults += faults


def test_replicas_that_end_by_turns_under_load_fail_no_call(
    replicas: Replicas, through: RewardClient
) -> None:
    """Stopped and started one after the other, as one does for a new version; then one killed."""
    first, second = replicas.containers
    with Load(replicas, through) as load:
        load.goes_on()
        for container, end in (
            (first, replicas.stop),
            (second, replicas.stop),
            (first, replicas.kill),
        ):
            end(container)
            load.goes_on()
            replicas.start(container)
            load.goes_on()
    assert load.faults == []
    counts = f"{load.calls} calls, {load.streamed} streamed, {load.inside} calls from inside"
    print(f"\n{counts}: none failed")


def test_the_folder_of_the_configuration_is_read_only(replicas: Replicas) -> None:
    [mount] = replicas.stack.inspect("envoy")["Mounts"]
    assert (Path(mount["Destination"]).name, mount["RW"]) == ("envoy.yaml", False)
