"""Whether the services stay as they are under hours of mixed load: memory, open files, latency.

    python -m bench soak --minutes 60

A reward server with a journal, and a sandbox. Callers of every kind at once: batches of `math`,
streams of which every fourth is broken off, strangers who connect anew for one call and ask for
what is not there, programs that are right, wrong or never end. Each answer is compared with what it
must be: a judgement that should be none, or the other way round, is counted as untrue.

A line an interval. At the end the median slope between intervals (Theil and Sen) after the first
third, in which caches fill, an hour, and the medians of the second and the last third.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import psutil

from assay.clients import AsyncRewardClient, EmbeddedServices, Item, Result
from assay.clients.rows.tests import read_tests

BATCH, STREAM = 64, 32
PAUSE_S = 0.05
JOURNAL_MB = 16
PROGRAMS = {
    "def twice(n):\n    return n * 2": 1.0,
    "def twice(n):\n    return n + 2": 0.0,
    "def twice(n):\n    while True:\n        pass": 0.0,
}
TESTS = read_tests(
    {"tests": [{"args": [3], "expected": 6}], "function": "twice", "limits": {"wall_time_s": 0.5}}
)


@dataclass
class Felt:
    """What the callers saw in one interval.

    Attributes:
        seconds: of each call, by kind of caller.
        results: how many came back.
        untrue: how many were not what they had to be.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)
    results: int = 0
    untrue: int = 0

    def take(
        self, kind: str, began_s: float, results: Sequence[Result], true: list[float | None]
    ) -> None:
        """Books the results of one call; None stands for a fault."""
        self.seconds.setdefault(kind, []).append(time.perf_counter() - began_s)
        self.results += len(results)
        self.untrue += sum(
            result.reward != wanted for result, wanted in zip(results, true, strict=True)
        )

    def latency_ms(self, kind: str) -> tuple[float, float]:
        """Median and 99th percentile."""
        ordered = sorted(self.seconds.get(kind, [float("nan")]))
        return statistics.median(ordered) * 1e3, ordered[int(0.99 * len(ordered))] * 1e3


@dataclass(frozen=True)
class Sizes:
    """A service's processes together."""

    mib: float
    files: int
    processes: int


def sizes(pid: int) -> Sizes:
    """Proportional set size, open files and number of a process and all below it."""
    counted: Counter[str] = Counter()
    root = psutil.Process(pid)
    for process in (root, *root.children(recursive=True)):
        try:
            memory, files = process.memory_full_info().pss, process.num_fds()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # a program of the sandbox that has ended meanwhile
        counted.update(bytes=memory, files=files, processes=1)
    return Sizes(counted["bytes"] / 2**20, counted["files"], counted["processes"])


def _sums(rng: random.Random, count: int) -> tuple[list[Item], list[float | None]]:
    """Answers to `math`, half of them wrong, and what each must get."""
    items: list[Item] = []
    true: list[float | None] = []
    for number in range(count):
        a, b = rng.randrange(10**6), rng.randrange(1, 10**6)
        off = number % 2
        form = rng.choice([r"so it is \boxed{%d}", "#### %d", r"$x = %d$ is \boxed{%d}"])
        text = form % ((a + b + off,) * form.count("%d"))
        items.append(Item(text, reference=str(a + b), verifier="math"))
        true.append(0.0 if off else 1.0)
    return items, true


class Load:
    """The callers.

    Attributes:
        felt: what they saw since it was last taken.
    """

    def __init__(self, target: str) -> None:
        self.felt = Felt()
        self._target = target
        self._rng = random.Random(8)

    async def run(self, over: asyncio.Event) -> None:
        """Calls until it is over.

        Args:
            over: set when it is.
        """
        async with AsyncRewardClient(self._target) as client:

            async def again(call: Callable[[AsyncRewardClient], Awaitable[None]]) -> None:
                while not over.is_set():
                    await call(client)
                    await asyncio.sleep(PAUSE_S)

            calls = (self._batch, self._batch, self._stream, self._program, self._stranger)
            await asyncio.gather(*map(again, calls))

    async def _batch(self, client: AsyncRewardClient) -> None:
        items, true = _sums(self._rng, BATCH)
        began_s = time.perf_counter()
        self.felt.take("batch", began_s, await client.score(items), true)

    async def _stream(self, client: AsyncRewardClient) -> None:
        """A stream; every fourth is left after its first result."""
        items, true = _sums(self._rng, STREAM)
        left = self._rng.randrange(4) == 0

        async def come():  # type: ignore[no-untyped-def]
            for item in items:
                yield item

        began_s = time.perf_counter()
        found: dict[str, Result] = {}
        results = client.stream(come())
        async for result in results:
            found[result.id] = result
            if left:
                await results.aclose()  # type: ignore[attr-defined]
                break
        order = sorted(found, key=int)
        self.felt.take(
            "stream", began_s, [found[id_] for id_ in order], [true[int(id_)] for id_ in order]
        )

    async def _program(self, client: AsyncRewardClient) -> None:
        source, reward = self._rng.choice(list(PROGRAMS.items()))
        item = Item(f"```python\n{source}\n```", reference=TESTS, verifier="code")
        began_s = time.perf_counter()
        self.felt.take("program", began_s, await client.score([item]), [reward])

    async def _stranger(self, _client: AsyncRewardClient) -> None:
        """A connection of its own; what it asks for is there once, and once not."""
        began_s = time.perf_counter()
        items = [
            Item("42", reference="42", verifier="exact"),
            Item("42", reference="42", verifier="nobody"),
        ]
        async with AsyncRewardClient(self._target) as fresh:
            self.felt.take("stranger", began_s, await fresh.score(items), [1.0, None])


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median slope between any two points (Theil 1950, Sen 1968)."""
    return statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2))


def run(options: list[str]) -> None:
    """Prints a line an interval, then the slopes."""
    parser = argparse.ArgumentParser(prog="python -m bench soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--interval-s", type=float, default=30.0)
    chosen = parser.parse_args(options)
    intervals = int(chosen.minutes * 60 / chosen.interval_s)
    if intervals < 6:
        parser.error("name at least six intervals: fewer minutes need a shorter --interval-s")
    with tempfile.TemporaryDirectory() as folder:
        journal = ("--journal", str(Path(folder) / "j.sqlite"), "--journal-max-mb", str(JOURNAL_MB))
        arguments = {"reward": ("--workers", "1", *journal), "sandbox": ("--slots", "2")}
        with EmbeddedServices(("reward", "sandbox"), arguments=arguments) as services:
            asyncio.run(_soak(services, intervals, chosen.interval_s))


async def _soak(services: EmbeddedServices, intervals: int, interval_s: float) -> None:
    kinds = ("batch", "stream", "program", "stranger")
    print(f"\nsoak: {intervals} intervals of {interval_s:g} s; median and p99 of a call in ms")
    head = "".join(f"{kind:>18s}" for kind in kinds)
    print(f"min    reward MiB files procs   sandbox MiB files procs  results untrue{head}")
    load, over = Load(services.address), asyncio.Event()
    running = asyncio.create_task(load.run(over))
    series: dict[str, list[tuple[float, float]]] = {}
    untrue, began_s = 0, time.monotonic()
    for _ in range(intervals):
        await asyncio.wait([running], timeout=interval_s)
        if running.done():
            break  # a defect, which gather below raises
        felt, load.felt = load.felt, Felt()
        untrue += felt.untrue
        hours = (time.monotonic() - began_s) / 3600
        columns = [f"{hours * 60:4.1f}"]
        for name in ("reward", "sandbox"):
            now = await asyncio.to_thread(sizes, services.pid(name))
            columns.append(f"  {now.mib:10.1f} {now.files:5d} {now.processes:5d}")
            series.setdefault(f"{name} MiB", []).append((hours, now.mib))
            series.setdefault(f"{name} files", []).append((hours, now.files))
        columns.append(f"  {felt.results:7d} {felt.untrue:6d}")
        for kind in kinds:
            median, p99 = felt.latency_ms(kind)
            columns.append(f"{median:9.1f} {p99:8.1f}")
            series.setdefault(f"{kind} ms", []).append((hours, median))
        print("".join(columns), flush=True)
    over.set()
    await running
    print("\n                  slope an hour   second third   last third")
    for name, points in series.items():
        third = len(points) // 3
        before, after = (
            statistics.median(value for _, value in part)
            for part in (points[third : 2 * third], points[2 * third :])
        )
        print(f"{name:16s} {slope(points[third:]):14.2f} {before:14.1f} {after:12.1f}")
    print(f"untrue results: {untrue}")
