"""What an item costs more when its worker is on Ray: both pools on this machine, by turns.

A Ray cluster of two nodes with one CPU each beside a head without, all on this machine, against two
local workers; batches of 256, nothing cached. What is judged:

    short      a comparison of short texts (`chrf`, always in a worker): the way there and back
    long       the same of some 4 kB
    program    `print` of a number, in the sandbox

Clock and CPU are of the service with its workers and, with Ray, of the cluster's own processes.
Needs Ray: run it in the environment of `make test-ray`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import statistics
import time
from collections.abc import Awaitable, Callable

import psutil

from assay.api.execution.v1 import execution_pb2
from assay.api.reward.v1 import reward_pb2
from assay.reward_server.config import ScorerConfig
from assay.reward_server.scorer import RewardScorer
from assay.sandbox.config import SandboxConfig
from assay.sandbox.runner import ProgramRunner
from assay.sandbox.workers.place import Supervisors
from bench.common import spread

ITEMS = 256
ROUNDS = 7
WORKERS = 2
IDLE_S = 10.0

Batch = Callable[[int], Awaitable[None]]


def _texts(number: int) -> tuple[str, str]:
    return f"the quick fox number {number} jumps", f"a quick fox, number {number}, jumped"


def _long_texts(number: int) -> tuple[str, str]:
    response, reference = _texts(number)
    return f"{response}, and then " * 100, f"{reference}, and so " * 100


def _scoring(scorer: RewardScorer, text: Callable[[int], tuple[str, str]]) -> Batch:
    async def run(first: int) -> None:
        request = reward_pb2.BatchScoreRequest()
        for number in range(first, first + ITEMS):
            response, reference = text(number)
            item = request.items.add(id=str(number), verifier="chrf", response=response)
            item.reference.text = reference
        answer = await scorer.batch_score(request, timeout_s=600)
        assert all(result.HasField("judgement") for result in answer.results)

    return run


def _running(runner: ProgramRunner) -> Batch:
    async def run(first: int) -> None:
        request = execution_pb2.ExecuteRequest()
        for number in range(first, first + ITEMS):
            job = request.jobs.add(id=str(number))
            job.program.language, job.program.source = "python", f"print({number})"
        answer = await runner.execute(request, timeout_s=600)
        assert all(result.execution.exit_code == 0 for result in answer.results)

    return run


def _cpu_s() -> float:
    """CPU seconds of this process and of all below it, those that have ended included."""
    own = psutil.Process()
    total = 0.0
    for process in [own, *own.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _is_host(process: psutil.Process) -> bool:
    return " ".join(process.cmdline()).startswith("ray::WorkerHost")


def _pss_mib(tops: list[psutil.Process]) -> float:
    """Memory of processes and all below them, what is shared divided among those that share it."""
    below = [child for top in tops for child in top.children(recursive=True)]
    return float(sum(p.memory_full_info().pss for p in [*tops, *below]) / 2**20)


async def _measure(name: str, contestants: dict[str, Batch]) -> None:
    clock: dict[str, list[float]] = {pool: [] for pool in contestants}
    cpu: dict[str, list[float]] = {pool: [] for pool in contestants}
    for run in contestants.values():
        await run(0)  # libraries and caches warm
    for round_number in range(1, ROUNDS + 1):
        for pool, run in contestants.items():
            cpu_s, started_s = _cpu_s(), time.perf_counter()
            await run(round_number * ITEMS)
            clock[pool].append((time.perf_counter() - started_s) / ITEMS * 1e3)
            cpu[pool].append((_cpu_s() - cpu_s) / ITEMS * 1e3)
    for pool in contestants:
        rate = 1e3 / statistics.median(clock[pool])
        print(
            f"{name:8} {pool:6} {spread(clock[pool])} ms by the clock, {spread(cpu[pool])} ms CPU "
            f"an item, {rate:6.0f} items a second"
        )


async def _main(address: str) -> None:
    started_s = _cpu_s()
    await asyncio.sleep(IDLE_S)
    print(f"the cluster alone, idle: {(_cpu_s() - started_s) / IDLE_S:.3f} cores")
    pools = {"local": {}, "ray": {"pool": "ray", "ray_address": address}}
    scorers: dict[str, RewardScorer] = {}
    for pool, place in pools.items():
        began_s = time.perf_counter()
        scorers[pool] = RewardScorer(ScorerConfig(workers=WORKERS, cache_entries=0, **place))
        await scorers[pool].start()
        print(f"reward server, {pool}: up in {time.perf_counter() - began_s:.1f} s")
    await asyncio.sleep(10)  # the second worker too
    for name, text in (("short", _texts), ("long", _long_texts)):
        runs = {pool: _scoring(scorer, text) for pool, scorer in scorers.items()}
        await _measure(name, runs)
    local = psutil.Process(scorers["local"].workers.server_pid)
    print(f"memory of {WORKERS} workers: local {_pss_mib([local]):.0f} MiB", end=", ")
    hosts = [p for p in psutil.Process().children(recursive=True) if _is_host(p)]
    print(f"ray {_pss_mib(hosts):.0f} MiB, of which the actors themselves ", end="")
    print(f"{sum(p.memory_full_info().pss for p in hosts) / 2**20:.0f}")
    for scorer in scorers.values():
        await scorer.close()
    runners: dict[str, ProgramRunner] = {}
    for pool, place in pools.items():
        config = SandboxConfig(
            slots=WORKERS, languages=("python",), isolation_floor="confined", **place
        )
        began_s = time.perf_counter()
        runners[pool] = ProgramRunner(config, Supervisors(config))
        await runners[pool].start()
        print(f"sandbox, {pool}: up in {time.perf_counter() - began_s:.1f} s")
    await asyncio.sleep(10)
    await _measure("program", {pool: _running(runner) for pool, runner in runners.items()})
    for runner in runners.values():
        await runner.close()


def run() -> None:
    """Measures and prints."""
    if importlib.util.find_spec("ray") is None:
        print("ray: left out, Ray is not installed here; see `make test-ray`")
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - an extra

    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(WORKERS):
        cluster.add_node(num_cpus=1)
    try:
        asyncio.run(_main(cluster.address))
    finally:
        cluster.shutdown()
