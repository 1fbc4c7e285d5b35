"""What a client feels while replicas of the reward server are restarted and killed.

Three reward servers behind a list of addresses; four callers with calls of 16 `exact` items, 10 ms
apart. The contestants are the default settings and one try a call, by turns:

    rolling   each server in turn is told to stop (SIGTERM), and started again on its port
    killed    one is killed (SIGKILL) and started again

A call that fails is one whose items came back as faults.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from assay.clients import AsyncRewardClient, ClientConfig, EmbeddedServices, Item, RetryPolicy

REPLICAS = 3
CALLERS = 4
ITEMS = 16
PAUSE_S = 0.01
ROUNDS = 3
CONTESTANTS = {
    "default settings": ClientConfig(),
    "one try a call": ClientConfig(retry=RetryPolicy(max_attempts=1)),
}


@dataclass
class Felt:
    """What the callers saw in one round: seconds of each call, and how many calls failed."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _replicas() -> Iterator[list[EmbeddedServices]]:
    with ExitStack() as stack:
        quiet = {"reward": ("--workers", "1", "--log-level", "ERROR")}
        ports = [_free_port() for _ in range(REPLICAS)]
        made = [EmbeddedServices(arguments=quiet, ports={"reward": port}) for port in ports]
        yield [stack.enter_context(services) for services in made]


def _restart(services: EmbeddedServices, kind: signal.Signals) -> None:
    if kind is signal.SIGKILL:
        os.kill(services.pid(), kind)
        while not services.dead():
            time.sleep(0.01)
    services.stop()
    services.start()


async def _round(replicas: list[EmbeddedServices], how: str, config: ClientConfig) -> Felt:
    """Calls from before the first restart to after the last."""
    felt, over = Felt(), asyncio.Event()
    items = [Item(f"answer {n}", reference=f"answer {n}", verifier="exact") for n in range(ITEMS)]

    async def call(client: AsyncRewardClient) -> None:
        while not over.is_set():
            begun = time.perf_counter()
            results = await client.score(items)
            felt.seconds.append(time.perf_counter() - begun)
            felt.failed += any(result.reward != 1.0 for result in results)
            await asyncio.sleep(PAUSE_S)

    target = ",".join(services.address for services in replicas)
    async with AsyncRewardClient(target, config=config) as client:
        await client.wait_ready()
        callers = [asyncio.create_task(call(client)) for _ in range(CALLERS)]
        await asyncio.sleep(1.0)
        ended = replicas if how == "rolling" else replicas[:1]
        for services in ended:
            kind = signal.SIGTERM if how == "rolling" else signal.SIGKILL
            await asyncio.to_thread(_restart, services, kind)
        await asyncio.sleep(1.0)
        over.set()
        await asyncio.gather(*callers)
    return felt


def run() -> None:
    """Prints a line for each round, and one for each kind of restart and contestant."""
    print(
        f"\nreplicas: {REPLICAS} servers, {CALLERS} callers, {ITEMS} items a call, {ROUNDS} rounds"
    )
    print(
        "restart   client             calls   failed   median ms   p99 ms   longest s", flush=True
    )
    felt: dict[tuple[str, str], list[Felt]] = {}
    with _replicas() as replicas:
        for number in range(ROUNDS):
            for how in ("rolling", "killed"):
                for name, config in CONTESTANTS.items():
                    seen = asyncio.run(_round(replicas, how, config))
                    felt.setdefault((how, name), []).append(seen)
                    print(f"{_line(how, name, [seen])}   round {number + 1}", flush=True)
    for (how, name), rounds in felt.items():
        print(_line(how, name, rounds))


def _line(how: str, name: str, rounds: list[Felt]) -> str:
    """What these rounds were like, together."""
    seconds = sorted(second for one in rounds for second in one.seconds)
    failed = sum(one.failed for one in rounds)
    p99 = seconds[int(0.99 * len(seconds))] * 1e3
    return (
        f"{how:9s} {name:17s} {len(seconds):6d} {failed:8d}   "
        f"{statistics.median(seconds) * 1e3:9.1f} {p99:8.1f}   {seconds[-1]:9.2f}"
    )
