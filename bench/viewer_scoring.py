"""What the viewer of a reward server costs its scoring, while it indexes a large journal.

Servers with equal journals take turns under the same load, a process each: one whose viewer nobody
opens, and some whose viewer is opened before the load begins and has an index to make. They differ
in the share of the time that indexing may take.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from assay.clients import Item, RewardClient
from bench.common import spread
from bench.viewer_data import make_journal
from bench.wire import cpu_s

ENTRIES, LOAD_S, CALL_ITEMS = 400_000, 6.0, 32
SHARES = (None, 1.0, 0.5, 0.2, 0.1)
"""None: nobody opens the viewer."""
_SERVER = (
    "import sys; from assay.reward_server.http import journal; journal.INDEX_SHARE = {share}; "
    "from assay.reward_server.__main__ import main; main()"
)
_FLAGS = ("--port", "0", "--http-port", "0", "--cache-entries", "0", "--log-level", "ERROR",
          "--workers", "1")  # fmt: skip


def measure(rounds: int) -> None:
    """Prints for each share: latency of calls, items a second, CPU, how far the index got."""
    print(
        f"\nscoring beside indexing {ENTRIES} entries: calls of {CALL_ITEMS} items of `math` one "
        f"after another for {LOAD_S:g} s, {rounds} rounds by turns"
    )
    found: dict[float | None, list[dict[str, float]]] = {share: [] for share in SHARES}
    with tempfile.TemporaryDirectory(prefix="assay-bench-scoring-") as name:
        folder = Path(name)
        journal = make_journal(folder / "made.sqlite", ENTRIES)
        for number in range(rounds):
            for share in SHARES:
                own = folder / f"round-{number}-{share}"
                found[share].append(_round(journal, own, share))
                shutil.rmtree(own)
    for share, rows in found.items():
        title = "nobody looks" if share is None else f"indexing, share {share:g}"
        print(title)
        for measured in rows[0]:
            ratios = [
                row[measured] / base[measured]
                for row, base in zip(rows, found[None], strict=True)
                if base[measured]
            ]
            line = f"  {measured:34} {spread([row[measured] for row in rows])}"
            beside = f"   / nobody {spread(ratios)}" if ratios and share is not None else ""
            print(line + beside)


def _round(journal: Path, own: Path, share: float | None) -> dict[str, float]:
    own.mkdir()
    shutil.copy(journal, own / "journal.sqlite")
    command = [
        sys.executable, "-c", _SERVER.format(share=share or 1.0), *_FLAGS,
        "--journal", str(own / "journal.sqlite"),
    ]  # fmt: skip
    environment = {**os.environ, "XDG_CACHE_HOME": str(own / "cache")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            grpc, page = [server.stdout.readline().split()[-1] for _ in range(2)]
            return _load(server.pid, grpc, page, looked_at=share is not None)
        finally:
            server.terminate()


def _load(pid: int, address: str, page: str, *, looked_at: bool) -> dict[str, float]:
    items = [
        Item(f"So it is {n}.\n#### {n + n % 2}", reference=str(n), verifier="math", prompt="What?")
        for n in range(CALL_ITEMS)
    ]
    calls: list[float] = []
    with RewardClient(address) as client:
        for _ in range(20):
            client.score(items)
        if looked_at:
            _indexed(page)
        cpu, began = cpu_s(pid), time.perf_counter()
        while time.perf_counter() - began < LOAD_S:
            start = time.perf_counter()
            client.score(items)
            calls.append(time.perf_counter() - start)
        took = time.perf_counter() - began
        used = cpu_s(pid) - cpu
    cuts = statistics.quantiles(calls, n=100)
    return {
        "ms a call, median": cuts[49] * 1e3,
        "ms a call, 99th percentile": cuts[98] * 1e3,
        "items a second": len(calls) * CALL_ITEMS / took,
        "server CPU, share of a core": used / took,
        "indexed at the end": _indexed(page) if looked_at else 0.0,
    }


def _indexed(page: str) -> float:
    with urllib.request.urlopen(f"http://{page}/journal/api/pulse", timeout=60) as answer:
        shares = json.load(answer)["indexed"].values()
    return float(min(shares))
