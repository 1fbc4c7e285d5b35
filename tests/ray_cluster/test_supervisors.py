"""The sandbox's supervisors on a real Ray cluster: run, lost, back, refused where walls lack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from assay.clients.execution import AsyncExecutionClient, Execution
from assay.kit.errors import StartupError
from assay.sandbox.config import SandboxConfig
from assay.sandbox.runner import ProgramRunner
from assay.sandbox.workers.place import Supervisors
from ray_support import MARKS, Nodes, cluster, hosts, node_without_walls, service, until
from sandbox_service import ANY_FLOOR, python

pytestmark = [*MARKS, pytest.mark.timeout(240)]
HOST = "WorkerHost"
FLAGS = (*ANY_FLOOR, "--languages", "python")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with cluster() as nodes:
        yield nodes


def executions(outcomes: Iterable[object]) -> list[Execution]:
    """What was run; a fault among them is a failure."""
    found = [outcome for outcome in outcomes if isinstance(outcome, Execution)]
    assert found == list(outcomes), outcomes
    return found


async def soon(condition: Callable[[], object]) -> object:
    return await asyncio.to_thread(until, condition)


async def test_a_node_lost_in_mid_batch_loses_nothing_and_its_supervisors_come_back(
    nodes: Nodes,
) -> None:
    with service("assay.sandbox", nodes.address, *FLAGS) as (address, _):
        await soon(lambda: len(hosts(HOST)) == 4)
        async with AsyncExecutionClient(address) as client:
            (served,) = (await client.list_languages()).languages
            assert served.name == "python"
            jobs = [python(f"import time; time.sleep(0.6); print({i})") for i in range(24)]
            call = asyncio.create_task(client.execute(jobs))
            await asyncio.sleep(2)
            assert not call.done()
            nodes.kill(nodes.nodes[0])
            runs = executions(await call)
            # Not a fault: each was run, in one place or the other, and to its end.
            assert [run.stdout.data for run in runs] == [b"%d\n" % i for i in range(24)]
            endless = executions(await client.execute([python("while 1: pass", wall_time_s=1.0)]))
            assert [run.end for run in endless] == ["wall-time-limit"]
            nodes.whole()
            await soon(lambda: len(hosts(HOST)) == 4)
            again = await client.execute([python("print(6 * 7)") for _ in range(8)])
            assert {run.stdout.data for run in executions(again)} == {b"42\n"}
    await soon(lambda: not hosts(HOST))


async def test_a_node_below_the_floor_is_refused_and_the_others_serve(
    nodes: Nodes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes.whole()
    config = SandboxConfig(
        slots=5, languages=("python",), pool="ray", ray_address=nodes.address, isolation_floor="uid"
    )
    with node_without_walls(nodes.address, tmp_path / "log"):
        supervisors = Supervisors(config)
        runner = ProgramRunner(config, supervisors)
        try:
            await runner.start()
            assert supervisors.site.toolchains.found.keys() == {"python"}
            await soon(lambda: "is refused: no isolation works on this machine" in caplog.text)
            # Five slots, room for four where programs may run.
            await soon(lambda: len(hosts(HOST)) == 4)
        finally:
            await runner.close()


async def test_where_every_node_is_refused_the_sandbox_does_not_start(tmp_path: Path) -> None:
    nodes = Nodes()
    try:
        config = SandboxConfig(
            slots=1, languages=("python",), pool="ray", ray_address=nodes.address
        )
        with node_without_walls(nodes.address, tmp_path / "log"):
            runner = ProgramRunner(config, Supervisors(config))
            with pytest.raises(StartupError, match="is refused: no isolation works") as caught:
                await runner.start()
            assert "\n" not in str(caught.value)
            await runner.close()
    finally:
        nodes.close()
