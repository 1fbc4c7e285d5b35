"""What one item costs on the wire: server and client, by the size of the call.

The verifier is `exact`, whose own work is next to nothing, and the cache is off, so that what is
left is gRPC, protobuf and the scorer. CPU of the server is read from the process's own account
(/proc), so it does not matter what else the machine does.
"""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from pathlib import Path

from assay.clients import EmbeddedServices, Item, RewardClient
from bench.common import interleaved, spread

ITEMS = 4096
ROUNDS = 5
SIZES = (1, 8, 64, 512)


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used, its children left out."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run() -> None:
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
