"""One server, ten clients of different greed: calls in flight that are fixed, or that adapt.

A real reward server with `WORKERS` workers and room for `QUEUE_ITEMS` items. An item waits `ITEM_S`
in a worker and computes nothing, so the capacity is known: WORKERS / ITEM_S items a second. Each
client always has more calls to make; what differs is how many it would have in flight at once, its
greed. Contestants, by turns on one server:

    as greedy as they like   max_concurrent_calls is the client's greed: 1, 2, 4, ... 64
    fixed at 8               every client's is 8, the default until now
    adapting                 None, the default

Shares are of the clients that ask for more than an equal share; `jain` is Jain's index of fairness
over all ten, 1 where all get the same (Jain, Chiu, Hawe 1984).
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from assay.clients import AsyncRewardClient, ClientConfig, EmbeddedServices, Item

GREED = (1, 2, 4, 8, 8, 16, 16, 32, 64, 64)
WORKERS, ITEM_S = 8, 0.01
QUEUE_ITEMS = 256
CALL_ITEMS = 4
ROUNDS, ROUND_S, WARM_S = 3, 8.0, 3.0
CONTESTANTS: dict[str, Callable[[int], int | None]] = {
    "as greedy as they like": lambda greed: greed,
    "fixed at 8": lambda _: 8,
    "adapting": lambda _: None,
}
SLEEPER = f'''
import time
from assay.reward_server.domain import *

class Sleeper(Verifier):
    """Waits as a service on other cores does, and finds everything right."""

    spec = VerifierSpec("sleeper", "1", "Waits and computes nothing.", ("sleeper",), 0.0, 1.0,
                        ("correct",), needs_reference=False, cacheable=False)
    examples = (VerifierExample(VerifierItem(Candidate("fine")), "correct"),)

    def judge(self, item):
        time.sleep({ITEM_S})
        return Judgement.composed("correct", (Component("waited", 1.0),))
'''


@dataclass
class Got:
    """What one client had of a round.

    Attributes:
        judged: items that were found right, as all are.
        faults: items without a judgement.
        wrong: items that were judged otherwise, which none is.
        seconds: of each call.
        window: calls that it may have in flight at the end.
        counted_s: how long the round was.
    """

    judged: int = 0
    faults: int = 0
    wrong: int = 0
    seconds: list[float] = field(default_factory=list)
    window: int = 0
    counted_s: float = 0.0


@contextmanager
def sleeping_server(queue_items: int = QUEUE_ITEMS, workers: int = WORKERS) -> Iterator[str]:
    """The address of a reward server that has the verifier `sleeper`."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "assay_sleeper.py").write_text(SLEEPER)
        info = Path(folder) / "assay_sleeper-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: assay-sleeper\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "[assay.verifiers]\nsleeper = assay_sleeper:Sleeper\n"
        )
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, before]))
        try:
            quiet = ("--workers", str(workers), "--queue-items", str(queue_items))
            arguments = {"reward": (*quiet, "--log-level", "ERROR")}
            with EmbeddedServices(arguments=arguments) as services:
                yield services.address
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


class Enough:
    """Sets its event when so many have been added."""

    def __init__(self, least: int) -> None:
        self.event = asyncio.Event()
        self._left = least
        self.add(0)

    def add(self, number: int) -> None:
        """So many more."""
        self._left -= number
        if self._left <= 0:
            self.event.set()


async def compete(
    address: str,
    limit: Callable[[int], int | None],
    greed: tuple[int, ...] = GREED,
    *,
    warm_s: float = WARM_S,
    round_s: float = ROUND_S,
    least_items: int = 0,
) -> list[Got]:
    """Lets clients of this greed call for a while; counts after `warm_s`.

    Both parts go on until `least_items` are judged in each: on a busy machine that takes longer.
    """
    counting, over = asyncio.Event(), asyncio.Event()
    warm, counted = Enough(least_items), Enough(least_items)
    lot: list[Got] = []

    async def one(wanted: int) -> Got:
        config = ClientConfig(max_concurrent_calls=limit(wanted))
        got = Got()
        lot.append(got)
        items = [Item(f"{n}", verifier="sleeper") for n in range(CALL_ITEMS)]

        async def caller(client: AsyncRewardClient) -> None:
            while not over.is_set():
                begun = time.perf_counter()
                results = await client.score(items)
                warm.add(len(results))
                if counting.is_set() and not over.is_set():
                    counted.add(len(results))
                    got.judged += sum(result.reward == 1.0 for result in results)
                    got.faults += sum(result.fault is not None for result in results)
                    got.wrong += sum(result.reward not in (1.0, None) for result in results)
                    got.seconds.append(time.perf_counter() - begun)

        async with AsyncRewardClient(address, config=config) as client:
            await client.wait_ready()
            await asyncio.gather(*(caller(client) for _ in range(wanted)))
            return dataclasses.replace(got, window=client._gate.window.size)  # noqa: SLF001

    async def clock() -> None:
        await asyncio.sleep(warm_s)
        await warm.event.wait()
        counting.set()
        begun = time.perf_counter()
        await asyncio.sleep(round_s)
        await counted.event.wait()
        over.set()
        for got in lot:
            got.counted_s = time.perf_counter() - begun

    *found, _ = await asyncio.gather(*(one(wanted) for wanted in greed), clock())
    return [got for got in found if isinstance(got, Got)]


def jain(shares: list[int]) -> float:
    """Jain's index: 1 where all are equal, 1/n where one has all."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def ratio(found: list[Got], greed: tuple[int, ...] = GREED, least: int = 4) -> float:
    """Most items over fewest, among clients that are at least so greedy."""
    shares = [got.judged for got, wanted in zip(found, greed, strict=True) if wanted >= least]
    return max(shares) / max(1, min(shares))


def run() -> None:
    """Prints a line for each contestant: medians over the rounds."""
    print(
        f"\nclients-adapt: greed {GREED}, {CALL_ITEMS} items a call, {WORKERS} workers, "
        f"{ITEM_S * 1e3:.0f} ms an item, room for {QUEUE_ITEMS}, {ROUNDS} rounds of {ROUND_S:.0f} s"
    )
    print(
        f"capacity {WORKERS / ITEM_S:.0f} items/s\n"
        "limit                    items/s   most/fewest   jain   call p50 ms   p99 ms   faults"
        "   items of each client",
        flush=True,
    )
    rounds: dict[str, list[list[Got]]] = {name: [] for name in CONTESTANTS}
    with sleeping_server() as address:
        for _ in range(ROUNDS):
            for name, limit in CONTESTANTS.items():
                rounds[name].append(asyncio.run(compete(address, limit)))
    for name, found in rounds.items():
        calls = sorted(s for one in found for got in one for s in got.seconds)
        rate = statistics.median(sum(got.judged for got in one) / ROUND_S for one in found)
        each = [round(statistics.median(one[n].judged for one in found)) for n in range(len(GREED))]
        print(
            f"{name:22s}   {rate:7.0f}   {statistics.median(map(ratio, found)):11.1f}   "
            f"{statistics.median(jain([got.judged for got in one]) for one in found):4.2f}   "
            f"{calls[len(calls) // 2] * 1e3:11.0f}   {calls[int(len(calls) * 0.99)] * 1e3:6.0f}   "
            f"{sum(got.faults for one in found for got in one):6d}   {each}",
            flush=True,
        )
