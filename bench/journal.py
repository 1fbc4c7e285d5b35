"""What the verdict journal costs: items a second with it and without, by what is judged.

Two servers, one with a journal, take turns on the same items; the cache is off. `exact` is the
worst case: its own work is next to nothing. `math` has the lengths of real answers. CPU is that of
the server's process over all rounds, the journal's thread included, until everything is written.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.viewer.journals.reader import Reader
from bench.common import interleaved, spread
from bench.wire import cpu_s

ROUNDS = 15
BATCH = 512


def _short(count: int) -> list[Item]:
    return [Item(f"answer {i}", reference=f"answer {i}", verifier="exact") for i in range(count)]


def _long(count: int) -> list[Item]:
    words = "so the next step follows from the one before it, and we go on "
    return [
        Item(
            f"{words * 30}\n#### {i if i % 2 else i + 1}",
            reference=str(i),
            verifier="math",
            prompt=f"{words * 5} What is {i}?",
        )
        for i in range(count)
    ]


def run() -> None:
    """Prints a table: for each kind of item the two servers, and their ratio."""
    print(f"\njournal: batches of {BATCH} items, {ROUNDS} rounds, the two take turns; medians")
    print("items                        journal   items/s   server CPU us an item   wall s a round")
    for name, items in (
        ("exact, 10 characters", _short(16 * BATCH)),
        ("math, 1,900 characters", _long(6 * BATCH)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            _compare(name, items, Path(folder, "journal"))


def _compare(name: str, items: list[Item], path: Path) -> None:
    common = ("--cache-entries", "0", "--log-level", "ERROR", "--workers", "1")
    with (
        EmbeddedServices(arguments={"reward": common}) as off,
        EmbeddedServices(arguments={"reward": (*common, "--journal", str(path))}) as on,
        RewardClient(off.address) as client_off,
        RewardClient(on.address) as client_on,
    ):
        sides = {"off": (off, client_off), "on": (on, client_on)}

        def go(side: str) -> None:
            for start in range(0, len(items), BATCH):
                sides[side][1].score(items[start : start + BATCH])

        for side in sides:
            go(side)
        time.sleep(2.0)
        before = {side: cpu_s(services.pid()) for side, (services, _) in sides.items()}
        walls = interleaved({side: partial(go, side) for side in sides}, ROUNDS)
        offered = len(items) * (ROUNDS + 1)
        kept = _settled(path, offered)
        for side in sides:
            rate = len(items) / statistics.median(walls[side])
            seconds = cpu_s(sides[side][0].pid()) - before[side]
            used = seconds / (len(items) * ROUNDS) * 1e6
            print(f"{name:28} {side:8} {rate:8.0f} {used:23.0f}   {spread(walls[side])}")
        ratios = [b / a for a, b in zip(walls["off"], walls["on"], strict=True)]
        size = path.stat().st_size
        print(f"{'':28} on/off, wall of the same round: {spread(ratios)}")
        print(f"{'':28} {kept} of {offered} entries kept, {size / max(1, kept):.0f} bytes each")


def _settled(path: Path, offered: int) -> int:
    """Entries in the file once nothing more comes."""
    kept = -1
    for _ in range(60):
        with Reader(path) as reader:
            now = reader.summary().entries
        if now in {kept, offered}:
            return now
        kept = now
        time.sleep(1.0)
    return kept
