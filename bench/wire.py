"""What one item costs on the wire: server and client, by the size of the call.

The verifier is `exact`, whose own work is next to nothing, and the cache is off, so that what is
left is gRPC, protobuf and the scorer. CPU of the server is read from the process's own account
(/proc), so it does not matter what else the machine does.

Then what more cores are worth, as ratios of one core to all: batches of `math`, whose quick tiers
are spread over the workers, with a small call beside each; and `assay score` as a whole.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from assay.clients import EmbeddedServices, Item, RewardClient
from bench.common import interleaved, spread

ITEMS = 4096
ROUNDS = 5
SIZES = (1, 8, 64, 512)
BATCH = 1024
BATCHES = 8
LINES = {"short, 400 characters": 20, "long, 8,000": 400}
ROWS = int(os.environ.get("ASSAY_BENCH_ROWS", "100000"))


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used, its children left out."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """What is started within may use these cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def solution(number: int, lines: int) -> str:
    """A response that works in so many lines and ends in an answer."""
    work = "".join(f"Step {n}: {number} + {n} = {number + n}.\n" for n in range(lines))
    return f"{work}The answer is {number + lines}."


def small_calls(address: str, stop: threading.Event, seconds: list[float]) -> None:
    """One item a call, 5 ms apart, until it is told to stop."""
    with RewardClient(address) as client:
        item = [Item("\\boxed{4}", reference="4", verifier="math")]
        while not stop.wait(0.005):
            began_s = time.perf_counter()
            client.score(item)
            seconds.append(time.perf_counter() - began_s)


def batches(address: str, items: Sequence[Item], small: list[float]) -> None:
    """Large batches, one after another, with small calls beside them."""
    stop = threading.Event()
    beside = threading.Thread(target=small_calls, args=(address, stop, small))
    beside.start()
    with RewardClient(address, timeout_s=600) as client:
        for _ in range(BATCHES):
            assert all(result.fault is None for result in client.score(items))
    stop.set()
    beside.join()


def print_batches() -> None:
    """Large batches of `math` on a server with one core, and on one with all."""
    cores = os.sched_getaffinity(0)
    places = {"one core": {min(cores)}, f"{len(cores)} cores": cores}
    quiet = {"reward": ("--cache-entries", "0", "--log-level", "ERROR")}
    print(f"\ncores: `math`, {BATCHES} batches of {BATCH}, a small call beside; {ROUNDS} rounds")
    print("responses, server on            s a round                 ratio   small call, median ms")
    with ExitStack() as stack:
        servers = {}
        for name, where in places.items():
            with on_cores(where):
                servers[name] = stack.enter_context(EmbeddedServices(arguments=quiet)).address
        for what, lines in LINES.items():
            items = [
                Item(solution(n, lines), reference=str(n + lines), verifier="math")
                for n in range(BATCH)
            ]
            small: dict[str, list[float]] = {name: [] for name in servers}
            turns = {
                name: partial(batches, address, items, small[name])
                for name, address in servers.items()
            }
            walls = interleaved(turns, ROUNDS)
            first = statistics.median(walls["one core"])
            for name, taken in walls.items():
                ratio = first / statistics.median(taken)
                beside_ms = 1e3 * statistics.median(small[name])
                label = f"{what}, {name}"
                print(f"{label:32s}{spread(taken)}   {ratio:5.2f}   {beside_ms:8.2f}")


def print_command() -> None:
    """`assay score` on one core, and on all."""
    cores = os.sched_getaffinity(0)
    places = {"one core": {min(cores)}, f"{len(cores)} cores": cores}
    cpu: dict[str, list[float]] = {name: [] for name in places}
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        with rows.open("w") as file:
            for n in range(ROWS):
                row = {"response": solution(n % 997, 10), "reference": "7", "prompt": str(n // 8)}
                file.write(json.dumps(row) + "\n")

        def score(name: str) -> None:
            command = [sys.executable, "-m", "assay.cli", "score", str(rows)]
            command += ["-o", f"{folder}/out.jsonl", "--verifier", "math"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            with on_cores(places[name]):
                subprocess.run(command, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

        walls = interleaved({name: partial(score, name) for name in places}, ROUNDS)
    print(f"\ncores: `assay score` of {ROWS} rows with `math`, {ROUNDS} rounds")
    first = statistics.median(walls["one core"])
    for name, taken in walls.items():
        ratio = first / statistics.median(taken)
        used = statistics.median(cpu[name])
        print(f"{name:12s} s {spread(taken)}   ratio {ratio:.2f}   CPU s {used:.1f}")


def run() -> None:
    """Prints all tables."""
    print_sizes()
    print_batches()
    print_command()


def print_sizes() -> None:
    """Prints a line for each size of call."""
    print(f"\nwire: `exact`, {ITEMS} items a round, {ROUNDS} rounds, sizes take turns")
    print(
        "items a call   server CPU us an item (median)   client CPU us an item (median)   "
        "wall s a round (median [min, max])"
    )
    quiet = {"reward": ("--cache-entries", "0", "--log-level", "ERROR")}
    with EmbeddedServices(arguments=quiet) as services, RewardClient(services.address) as client:
        items = [Item(f"answer {i}", reference=f"answer {i}", verifier="exact") for i in range(64)]
        items = items * (ITEMS // len(items))
        used: dict[str, list[float]] = {str(size): [] for size in SIZES}
        own: dict[str, list[float]] = {str(size): [] for size in SIZES}

        def send(size: int) -> None:
            before, mine = cpu_s(services.pid()), time.process_time()
            for start in range(0, ITEMS, size):
                client.score(items[start : start + size])
            used[str(size)].append((cpu_s(services.pid()) - before) / ITEMS * 1e6)
            own[str(size)].append((time.process_time() - mine) / ITEMS * 1e6)

        send(512)
        used["512"].clear()
        own["512"].clear()
        time.sleep(0.5)
        walls = interleaved({str(size): partial(send, size) for size in SIZES}, ROUNDS)
        for size in SIZES:
            name = str(size)
            print(
                f"{size:12d}   {statistics.median(used[name]):30.0f}   "
                f"{statistics.median(own[name]):30.0f}   {spread(walls[name])}"
            )
