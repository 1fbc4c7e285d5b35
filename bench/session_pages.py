"""Do huge pages pay for sessions? glibc's tunables against plain malloc, on states people have.

    python -m bench session-pages
    python -m bench.session_pages --rounds 5 --json FILE

Each state is built in a process of its own, once for each setting, by turns; then the process is
copied by fork, as a checkpoint copies it, and the original goes on. `checkpoint` is until the copy
answers, `16 forks` until all of them do, `end` until a copy is killed and reaped; `read` and
`rewrite` are what going once over the state costs more after a checkpoint than before it. The
kernel splits a huge page that is shared and written to, so `checkpoint` and `16 forks` stand
twice: before the state was ever rewritten, and after. `spike` is what is still held after 200 MB
of buffers were made and dropped. `idle` is the price of a copy that holds next to nothing.
`collapse` asks the kernel for huge pages under what is there already, before the first
checkpoint.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import gc
import io
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import print_machine

HUGE = (
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824"
    ":glibc.malloc.trim_threshold=4294967296"
)
SETTINGS = {
    "plain": {},
    "hugetlb alone": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "three tunables": {"GLIBC_TUNABLES": HUGE},
    "collapse": {},
}
FORKS = 16
ROUNDS, REPEATS = 3, 6
_IDLE_COPIES = 100
_SMALL_CELL = "d = {n: str(n) for n in range(1000)}; t = ['x' * 600 for _ in range(500)]"
_MADV_COLLAPSE = 25
_HUGE_BYTES = 2**21
_WORDS = ("the", "of", "session", "holds", "what", "cells", "have", "made", "until", "closed")


@dataclass(frozen=True, slots=True)
class State:
    """What a session might hold: made, gone over by reading, gone over by writing."""

    make: Callable[[], Any]
    read: Callable[[Any], object]
    write: Callable[[Any], object]


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))


def _buffers() -> list[bytearray]:
    return [bytearray(b"x" * 2**20) for _ in range(100)]


def _write_buffers(buffers: list[bytearray]) -> None:
    fresh = b"y" * 2**20
    for buffer in buffers:
        buffer[:] = fresh


def _one_array() -> list[Any]:
    import numpy as np  # noqa: PLC0415  # only some workers

    return [np.ones(100 * 2**17)]


def _small_arrays() -> list[Any]:
    import numpy as np  # noqa: PLC0415

    return [np.ones(2**16) for _ in range(200)]


def _write_arrays(arrays: list[Any]) -> None:
    for array in arrays:
        array.fill(2.0)


def _rows() -> list[dict[str, Any]]:
    chance = random.Random(1)
    return [
        {"id": n, "name": f"row {n}", "score": chance.random(), "tags": [n % 7, n % 11]}
        for n in range(170_000)
    ]


def _write_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["score"] += 1.0


def _parsed_json() -> Any:
    chance = random.Random(2)
    records = [
        {"key": n, "text": _text(chance, 40), "values": [chance.random() for _ in range(8)]}
        for n in range(110_000)
    ]
    return json.loads(json.dumps(records))


def _write_records(records: list[dict[str, Any]]) -> None:
    for record in records:
        record["key"] += 1


def _table() -> list[list[Any]]:
    """A CSV of 300,000 lines, read into columns."""
    chance = random.Random(3)
    lines = io.StringIO()
    for n in range(300_000):
        lines.write(f"{n},{chance.random()},{_WORDS[n % len(_WORDS)]} {n},{chance.randrange(99)}\n")
    lines.seek(0)
    ids, prices, names, counts = zip(*csv.reader(lines), strict=True)
    return [
        [int(i) for i in ids],
        [float(p) for p in prices],
        list(names),
        [int(c) for c in counts],
    ]


def _read_table(columns: list[list[Any]]) -> int:
    return sum(1 for column in columns for _ in column)


def _write_table(columns: list[list[Any]]) -> None:
    columns[1][:] = [price + 1 for price in columns[1]]


def _texts() -> list[str]:
    chance = random.Random(4)
    return [_text(chance, 170) for _ in range(100_000)]


def _write_texts(texts: list[str]) -> None:
    for place, text in enumerate(texts):
        texts[place] = text + "!"


def _tuples() -> list[tuple[int, ...]]:
    return [(n, n + 1, n + 2) for n in range(400_000)]


def _write_tuples(tuples: list[tuple[int, ...]]) -> None:
    tuples[:] = [(c, b, a) for a, b, c in tuples]


def _iterate(items: Any) -> int:
    return sum(1 for _ in items)


def _sum_arrays(arrays: list[Any]) -> float:
    return float(sum(array.sum() for array in arrays))


STATES = {
    "100 x 1 MB bytearray": State(_buffers, lambda s: [b.find(b"?") for b in s], _write_buffers),
    "numpy, one of 100 MB": State(_one_array, _sum_arrays, _write_arrays),
    "numpy, 200 of 0.5 MB": State(_small_arrays, _sum_arrays, _write_arrays),
    "100,000 texts of 0.8 KB": State(_texts, _iterate, _write_texts),
    "170,000 dicts": State(_rows, _iterate, _write_rows),
    "JSON of 50 MB, parsed": State(_parsed_json, _iterate, _write_records),
    "CSV of 300,000 lines": State(_table, _read_table, _write_table),
    "400,000 tuples": State(_tuples, _iterate, _write_tuples),
}
FIGURES = {
    "build": "ms", "collapse": "ms", "resident": "MB", "huge": "MB", "checkpoint": "ms",
    "16 forks": "ms", "read": "ms", "rewrite": "ms", "end": "ms", "checkpoint, rewritten": "ms",
    "16 forks, rewritten": "ms", "spike": "MB",
}  # fmt: skip


def measure_state(name: str, repeats: int, *, collapse: bool) -> dict[str, list[float]]:
    """In a process of its own: every figure of one state."""
    state = STATES[name]
    found: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    held, took_ms = _timed(state.make)
    found["build"].append(took_ms)
    gc.collect()
    gc.freeze()
    if collapse:
        found["collapse"].append(_timed(_collapse)[1])
    memory = _memory_kb()
    found["resident"].append(memory["Rss"] / 1024)
    found["huge"].append(memory["AnonHugePages"] / 1024)
    _fork_often(found, "", repeats)
    for figure, go in (("read", state.read), ("rewrite", state.write)):
        for _ in range(repeats):
            alone_ms = _timed(go, held)[1]
            copy = _copies(1)
            found[figure].append(_timed(go, held)[1] - alone_ms)
            found["end"].append(_timed(_end, copy)[1])
    _fork_often(found, ", rewritten", repeats)
    before_kb = _memory_kb()["Rss"]
    spike = [bytearray(b"z" * 2**20) for _ in range(200)]
    del spike
    found["spike"].append((_memory_kb()["Rss"] - before_kb) / 1024)
    return found


def _fork_often(found: dict[str, list[float]], when: str, repeats: int) -> None:
    for count, figure in ((1, "checkpoint"), (FORKS, f"{FORKS} forks")):
        for _ in range(repeats):
            copies, took_ms = _timed(_copies, count)
            found[figure + when].append(took_ms)
            _end(copies)


def measure_idle() -> dict[str, list[float]]:
    """In a process of its own: what a copy costs that has run one small cell and sleeps."""
    gc.collect()
    gc.freeze()
    before_kb = _available_kb()
    names: dict[str, Any] = {}
    copies = _copies(_IDLE_COPIES, lambda: exec(_SMALL_CELL, names))
    spent_kb = (before_kb - _available_kb()) / _IDLE_COPIES
    shares = [_memory_kb(pid)["Pss"] for pid in copies]
    _end(copies)
    return {"MemAvailable": [spent_kb / 1024], "PSS": [statistics.mean(shares) / 1024]}


def _timed(go: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    started_s = time.perf_counter()
    value = go(*given)
    return value, (time.perf_counter() - started_s) * 1e3


def _copies(count: int, cell: Callable[[], object] | None = None) -> list[int]:
    """Forks that have all answered and sleep."""
    read, write = os.pipe()
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            if cell is not None:
                cell()
            os.write(write, b"u")
            while True:
                signal.pause()
        pids.append(pid)
    answered = 0
    while answered < count:
        answered += len(os.read(read, count))
    os.close(read)
    os.close(write)
    return pids


def _end(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


def _collapse() -> None:
    """Huge pages under every private anonymous mapping, as far as they fit."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, *_, inode = line.split()[:5]
        start, end = (int(part, 16) for part in span.split("-"))
        start, end = -(-start // _HUGE_BYTES) * _HUGE_BYTES, end // _HUGE_BYTES * _HUGE_BYTES
        if rights == "rw-p" and inode == "0" and start < end:
            madvise(start, end - start, _MADV_COLLAPSE)  # refused in part where pages are shared


def _memory_kb(pid: int | str = "self") -> dict[str, int]:
    found = {}
    for name in ("smaps_rollup", "status"):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            key, _, rest = line.partition(":")
            if rest.endswith("kB"):
                found[key] = int(rest.split()[0])
    return found


def _available_kb() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def _ask(setting: str, name: str, repeats: int) -> dict[str, list[float]]:
    command = [sys.executable, "-m", "bench.session_pages", "--worker", name]
    command += ["--repeats", str(repeats), *(["--collapse"] if setting == "collapse" else [])]
    environment = {**os.environ, "PYTHONHASHSEED": "0", **SETTINGS[setting]}
    answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, list[float]] = json.loads(answer.stdout)
    return found


def measure(rounds: int, repeats: int, json_file: Path | None) -> None:
    """Every state and `idle`, each setting by turns; medians."""
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    print(f"\nsession pages: {rounds} rounds by turns, {repeats} repeats in each; medians")
    for name in (*STATES, "idle"):
        settings = [s for s in SETTINGS if name != "idle" or s != "collapse"]
        kept: dict[str, dict[str, list[float]]] = {setting: {} for setting in settings}
        for _ in range(rounds):
            for setting in settings:
                for figure, found in _ask(setting, name, repeats).items():
                    kept[setting].setdefault(figure, []).extend(found)
        values[name] = kept
        _print_state(name, kept)
    if json_file is not None:
        json_file.write_text(json.dumps(values, indent=1))


def _print_state(name: str, kept: dict[str, dict[str, list[float]]]) -> None:
    figures = list(next(iter(kept.values())))
    heads = [f"{figure} ({FIGURES.get(figure, 'MB')})" for figure in figures]
    print(f"\n| {name} | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    for setting, found in kept.items():
        medians = [f"{statistics.median(v):.1f}" if (v := found[f]) else "" for f in figures]
        print(f"| {setting} | " + " | ".join(medians) + " |")


def run() -> None:
    """For `python -m bench session-pages`."""
    measure(ROUNDS, REPEATS, None)


def main() -> None:
    """`python -m bench.session_pages`, with choices."""
    parser = argparse.ArgumentParser(description="Huge pages for sessions: glibc's tunables.")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--collapse", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker == "idle":
        print(json.dumps(measure_idle()))
    elif chosen.worker:
        print(json.dumps(measure_state(chosen.worker, chosen.repeats, collapse=chosen.collapse)))
    else:
        print_machine()
        measure(chosen.rounds, chosen.repeats, chosen.json)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a pipe is text too
    main()
