"""Workers of the reward server on a real Ray cluster: judged, killed in time, lost, and back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import grpc
import psutil
import pytest

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.kit.errors import reason_of
from assay.kit.limits import channel_options
from assay.kit.serving import ServeConfig, start
from assay.reward_server.config import ScorerConfig
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.service import reward_service
from chaos import install
from ray_support import MARKS, Nodes, cluster, hosts, node_of, service, until

pytestmark = [*MARKS, pytest.mark.timeout(240)]
HOST = "WorkerHost"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A cluster whose nodes have plug-ins that misbehave on demand."""
    folder = str(install(tmp_path_factory.mktemp("plugins")))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]))
        with cluster() as nodes:
            yield nodes


@contextlib.asynccontextmanager
async def serving(
    nodes: Nodes, **settings: object
) -> AsyncIterator[tuple[reward_pb2_grpc.RewardServiceAsyncStub, RewardScorer]]:
    """A real server whose workers are on the cluster, a stub that calls it, and its scorer."""
    nodes.whole()
    place = {"pool": "ray", "ray_address": nodes.address}
    config = ScorerConfig(**{"item_timeout_s": 3.0, **place, **settings})  # type: ignore[arg-type]  # named
    scorer = RewardScorer(config, registry=load_registry())
    async with (
        await start([reward_service(scorer)], ServeConfig()) as server,
        grpc.aio.insecure_channel(server.address, options=channel_options()) as channel,
    ):
        yield reward_pb2_grpc.RewardServiceStub(channel), scorer


def item(text: str, item_id: str = "", verifier: str = "chaos") -> reward_pb2.Item:
    message = reward_pb2.Item(id=item_id or text, verifier=verifier, response=text)
    message.reference.text = "42"
    return message


def batch(items: Iterable[reward_pb2.Item]) -> reward_pb2.BatchScoreRequest:
    return reward_pb2.BatchScoreRequest(items=items)


def reasons(response: reward_pb2.BatchScoreResponse) -> dict[str, str]:
    """The fault's reason of each item; empty for a judgement."""
    return {r.id: reason_of(r.fault) if r.HasField("fault") else "" for r in response.results}


async def soon(condition: Callable[[], object]) -> object:
    """Waits until a condition holds, while the server goes on."""
    return await asyncio.to_thread(until, condition)


async def test_items_are_judged_on_both_nodes_and_misbehaviour_costs_its_own_item(
    nodes: Nodes,
) -> None:
    expected = {
        "fine": "",
        "die": "WORKER_DIED",
        "raise": "VERIFIER_FAILED",
        "exit": "WORKER_DIED",
        "fill": "VERIFIER_FAILED",
        "range": "VERIFIER_FAILED",
        "shape": "VERIFIER_FAILED",
        "flood": "VERIFIER_FAILED",
        "sleep 60": "ITEM_TIMEOUT",
    }
    async with serving(nodes) as (stub, _):
        await soon(lambda: len(hosts(HOST)) == 4)
        items = [item(word) for word in expected]
        symbolic = r"the answer is \boxed{\sqrt{1764}}"
        items += [item(f"pid {i}") for i in range(40)] + [item(symbolic, "m", "math")]
        response = await stub.BatchScore(batch(items), timeout=60)
        assert [r.id for r in response.results] == [i.id for i in items]
        found = reasons(response)
        assert {word: found[word] for word in expected} == expected
        assert all(not found[f"pid {i}"] for i in range(40))
        by_id = {r.id: r for r in response.results}
        assert by_id["m"].judgement.verdict == "correct"
        assert "secret" not in by_id["raise"].fault.message
        assert 3000 <= by_id["sleep 60"].timings.execution.ToMilliseconds() < 2 * 3000
        pids = {int(by_id[f"pid {i}"].judgement.extracted_answer) for i in range(40)}
        places = {node_of(host.pid) for host in hosts(HOST)}
        assert len(places) == 2
        assert {node_of(pid) for pid in pids if psutil.pid_exists(pid)} <= places
    await soon(lambda: not hosts(HOST))


async def test_a_node_lost_in_mid_batch_loses_nothing_and_its_workers_come_back(
    nodes: Nodes,
) -> None:
    async with serving(nodes, workers=4, item_timeout_s=30.0) as (stub, scorer):
        await soon(lambda: len(hosts(HOST)) == 4)
        items = [item(f"sleep 0.5 {i}", f"{i}") for i in range(40)]
        call = stub.BatchScore(batch(items), timeout=120)
        await soon(lambda: scorer.pool.busy == 4)
        lost = nodes.nodes[0]
        gone = hosts(HOST)
        nodes.kill(lost)
        await soon(lambda: sum(host.is_running() for host in gone) == 2)
        response = await call
        assert [r.id for r in response.results] == [i.id for i in items]
        # Not a fault, and above all no reward of 0: each was judged, in one place or the other.
        assert set(reasons(response).values()) == {""}
        assert {r.judgement.reward for r in response.results} == {1.0}
        nodes.whole()
        await soon(lambda: len(hosts(HOST)) == 4)
        await soon(lambda: scorer.pool.restarts >= 2)
        again = await stub.BatchScore(batch([item("fine")]), timeout=30)
        assert reasons(again) == {"fine": ""}


async def test_a_node_that_falls_silent_is_held_for_lost(nodes: Nodes) -> None:
    async with serving(nodes, workers=4, item_timeout_s=60.0) as (stub, scorer):
        await soon(lambda: len(hosts(HOST)) == 4)
        items = [item(f"sleep 1 {i}", f"{i}") for i in range(16)]
        call = stub.BatchScore(batch(items), timeout=150)
        await soon(lambda: scorer.pool.busy == 4)
        silent = nodes.nodes[0]
        nodes.freeze(silent)
        assert set(reasons(await call).values()) == {""}
        nodes.thaw_and_kill(silent)


async def test_an_item_is_judged_once_more_after_a_loss_and_no_oftener(nodes: Nodes) -> None:
    async with serving(nodes, workers=1, item_timeout_s=60.0) as (stub, scorer):
        call = stub.BatchScore(batch([item("sleep 50"), item("fine")]), timeout=110)
        for _ in range(2):
            await soon(lambda: scorer.pool.busy == 1 and len(hosts(HOST)) == 1)
            (host,) = hosts(HOST)
            host.kill()
            await soon(lambda host=host: not host.is_running())
        assert reasons(await call) == {"sleep 50": "WORKER_DIED", "fine": ""}


async def test_a_call_that_is_gone_leaves_nothing_running_on_the_nodes(nodes: Nodes) -> None:
    async with serving(nodes, workers=1, item_timeout_s=60.0) as (stub, scorer):
        (host,) = await soon(lambda: hosts(HOST))  # type: ignore[misc]
        call = stub.BatchScore(batch([item("sleep 50"), item("sleep 51")]), timeout=100)
        await soon(lambda: scorer.pool.busy == 1 and scorer.pool.queued == 1)
        (nursery,) = host.children()
        (worker,) = nursery.children()
        call.cancel()
        await soon(lambda: not worker.is_running())
        response = await stub.BatchScore(batch([item("fine")]), timeout=30)
        assert reasons(response) == {"fine": ""}
        assert hosts(HOST) == [host]


async def test_more_workers_than_room_serve_with_what_there_is(nodes: Nodes) -> None:
    async with serving(nodes, workers=5) as (stub, scorer):
        response = await stub.BatchScore(batch(item(f"{i}") for i in range(50)), timeout=60)
        assert set(reasons(response).values()) == {""}
        await soon(lambda: len(hosts(HOST)) == 4)
        nodes.whole(3)
        await soon(lambda: len(hosts(HOST)) == 5)
        assert not scorer.pool.worker_pids()


def below() -> list[psutil.Process]:
    """What the hosts have started."""
    return [child for host in hosts(HOST) for child in host.children(recursive=True)]


def test_a_server_that_is_killed_takes_its_workers_along(nodes: Nodes) -> None:
    nodes.whole()
    with service("assay.reward_server", nodes.address, "--workers", "2") as (_, process):
        # A nursery and a worker each.
        until(lambda: len(below()) == 4)
        gone = below()
        process.send_signal(signal.SIGKILL)
        until(lambda: not hosts(HOST) and not any(child.is_running() for child in gone))


def test_where_no_cluster_answers_one_line_says_so() -> None:
    command = [sys.executable, "-m", "assay.reward_server", "--port", "0", "--pool", "ray"]
    done = subprocess.run(
        [*command, "--ray-address", "127.0.0.1:9", "--log-level", "ERROR"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("assay reward_server: no Ray cluster answers at 127.0.0.1:9")
    assert "ray start --head" in last
