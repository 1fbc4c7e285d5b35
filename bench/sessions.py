"""Sessions: every figure of their goals, and others who keep state, side by side in one run.

    python -m bench sessions                          everything, five minutes
    python -m bench sessions --parts cells,copies --json FILE
    ASSAY_BENCH_PEER=A ASSAY_BENCH_JUPYTER=B python -m bench sessions

`cells`: opening, cells and closing, one call at a time. `copies`: checkpoint, rollback and 16 forks
of states that people have, and what is written first after a checkpoint. `host`: the same behind
the call, by the host's own frames. `compare`: a session of ten cells, contestants by turns
(`bench.sessions_peers` says how each is set up). `throughput`: cells a second of 1 to 16 sessions.
`idle`: 1,000 sessions that wait, and 300 with 10 MB and four checkpoints each.

A figure is a median with its p5 and p95, in milliseconds, over the loopback interface, the client's
own time included. `behind` is what the server says that it took. Of a busy machine read p5 and the
ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.clients.execution import ExecutionClient
from bench.common import print_machine
from bench.sandbox_census import cpu_s, take
from bench.sessions_host import HostBench
from bench.sessions_ours import SETTLE_S, SPARES, Calls, Live, start, timed_ms
from bench.sessions_peers import (
    Contestant,
    Docker,
    Fusion,
    Kernel,
    Library,
    NotHere,
    Ours,
    Replay,
)

PARTS = ("cells", "copies", "host", "compare", "throughput", "idle")
FORKS = 16
CELLS = {
    "cell, x += 1": "x += 1",
    "cell, print": "print(1)",
    "cell, a dict of 1,000": "{n: n for n in range(1000)}",
    "cell, subprocess.run(true)": "subprocess.run('true').returncode",
}
FRESH = "import subprocess\nx = 0"
_ROWS = "[(n, n + 1, n + 2) for n in range(400_000)]"
_FILES = "for n in range({}):\n with open(f'f{{n}}', 'w') as file: file.write('x' * 10_000)"
STATES = {
    "no state": "pass",
    "numpy, 100 MB": "import numpy\nheld = numpy.ones(100 * 2**17)",
    "100 bytearrays of 1 MB": "held = [bytearray(b'x' * 2**20) for _ in range(100)]",
    "400,000 tuples": f"held = {_ROWS}",
    "10 files": _FILES.format(10),
    "1,000 files": _FILES.format(1000),
}
# What goes once over a state, and how many MB that is.
TOUCHES = {
    "numpy, rewritten": ("numpy, 100 MB", "held.fill(2.0)", 100),
    "bytearrays, rewritten": (
        "100 bytearrays of 1 MB",
        "for held_one in held: held_one[:] = b'y' * 2**20",
        100,
    ),
    "tuples, read": ("400,000 tuples", "sum(1 for _ in held)", 0),
}
# Milliseconds that the median may be, of issue 25; `behind` after a bar.
GOALS = {
    "create, cold": 3.0,
    "create, from a spare": 1.0,
    "cell, x += 1": 1.0,
    "cell, x += 1 | behind": 0.4,
    "checkpoint | numpy, 100 MB": 8.0,
    "checkpoint | 100 bytearrays of 1 MB": 8.0,
    "rollback | numpy, 100 MB": 2.0,
    "rollback | 100 bytearrays of 1 MB": 2.0,
    "16 forks | no state": 30.0,
    "16 forks | numpy, 100 MB": 30.0,
    "16 forks | 100 bytearrays of 1 MB": 60.0,
    "16 forks | 400,000 tuples": 60.0,
}


@dataclass
class Figures:
    """What was measured: lists of milliseconds by name, and single values."""

    scale: float = 1.0
    times: dict[str, list[float]] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)

    def add(self, name: str, ms: float) -> None:
        """Keeps a time."""
        self.times.setdefault(name, []).append(ms)

    def repeats(self, count: int) -> range:
        """So many, or fewer in a small run."""
        return range(max(2, int(count * self.scale)))

    def table(self, title: str, names: Sequence[str], of: str = "") -> None:
        """A Markdown table of those that were measured; `behind` beside the call."""
        print(f"\n| {title} | median, ms | p5 | p95 | behind: median | p95 | goal |")
        print("|---|---|---|---|---|---|---|")
        for name in names:
            key = f"{name} | {of}" if of else name
            if key not in self.times:
                continue
            behind = self.times.get(f"{key} | behind", [])
            took = self.times[key]
            row = f"{statistics.median(took):.2f} | {part(took, 0.05):.2f} | {p95(took):.2f}"
            print(f"| {name} | {row} | {_two(behind)} | {self._goal(key)} |")

    def _goal(self, key: str) -> str:
        said = []
        for name, label in ((key, ""), (f"{key} | behind", " behind")):
            if name in GOALS and name in self.times:
                met = statistics.median(self.times[name]) <= GOALS[name]
                said.append(f"{GOALS[name]:g}{label}: {'met' if met else 'MISSED'}")
        return ", ".join(said)


def _two(ms: Sequence[float]) -> str:
    if not ms:
        return " | "
    return f"{statistics.median(ms):.2f} | {p95(ms):.2f}"


def p95(values: Sequence[float]) -> float:
    """The value that 19 of 20 do not exceed."""
    return part(values, 0.95)


def part(values: Sequence[float], share: float) -> float:
    """The value that this share does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def cells(figures: Figures) -> None:
    """Opening, cells and closing; a spare and none, by turns."""
    with ExitStack() as stack:
        by_kind = {
            "cold": start(stack, "--session-spares", "0"),
            "from a spare": start(stack, "--session-spares", str(SPARES)),
        }
        calls = {
            kind: stack.enter_context(Calls(services.address_of("sandbox")))
            for kind, services in by_kind.items()
        }
        for made in calls.values():
            _once(made)
        for _ in figures.repeats(100):
            for kind, made in calls.items():
                time.sleep(SETTLE_S)
                live, took = timed_ms(made.create)
                figures.add(f"create, {kind}", took)
                figures.add(f"create and first cell, {kind}", took + timed_ms(live.run, "x = 1")[1])
                figures.add("close", timed_ms(live.close)[1])
        live = calls["from a spare"].create()
        live.run(FRESH)
        for _ in figures.repeats(200):
            for name, code in CELLS.items():
                result, took = timed_ms(live.run, code)
                figures.add(name, took)
                figures.add(f"{name} | behind", result.usage.wall_time.ToNanoseconds() / 1e6)
        pid = by_kind["from a spare"].pid("sandbox")
        used_s, count = cpu_s(pid), len(figures.repeats(2000))
        for _ in range(count):
            live.run("x += 1")
        figures.values["cell: server CPU, ms"] = (cpu_s(pid) - used_s) / count * 1e3
        live.close()
    names = [f"{what}, {kind}" for what in ("create", "create and first cell") for kind in by_kind]
    figures.table("one call at a time", [*names, *CELLS, "close"])
    print(f"\nserver CPU of a cell x += 1: {figures.values['cell: server CPU, ms']:.2f} ms")


def _once(calls: Calls) -> None:
    live = calls.create()
    live.run("x = 1")
    live.close()


def copies(figures: Figures) -> None:
    """Checkpoint, rollback, forks; then the first touch."""
    with ExitStack() as stack:
        services = start(stack, "--session-spares", str(SPARES), "--max-sessions", "64")
        calls = stack.enter_context(Calls(services.address_of("sandbox")))
        for state, code in STATES.items():
            live = calls.create()
            live.run(code)
            _copy(figures, calls, live, state)
            live.close()
            names = ("checkpoint", "rollback", "rollback and cell", "rollback, at once", "16 forks",
                     "16 forks of a checkpoint", "close of 16")  # fmt: skip
            figures.table(state, names, state)
        for touch in TOUCHES:
            _touch(figures, calls, touch)
        _print_touches(figures)


def _copy(figures: Figures, calls: Calls, live: Live, state: str) -> None:
    for _ in figures.repeats(20):
        kept, took = timed_ms(live.checkpoint)
        _note(figures, f"checkpoint | {state}", took, kept)
        live.drop(kept.checkpoint_id)
    kept = live.checkpoint()
    for pause_s, name in ((SETTLE_S, "rollback"), (0.0, "rollback, at once")):
        for _ in figures.repeats(20):
            live.run("y = 1")
            time.sleep(pause_s)
            back, took = timed_ms(live.rollback, kept.checkpoint_id)
            _note(figures, f"{name} | {state}", took, back)
            first_ms = timed_ms(live.run, "y = 2")[1]
            if pause_s:
                figures.add(f"rollback and cell | {state}", took + first_ms)
    for name, chosen in (("16 forks", ""), ("16 forks of a checkpoint", kept.checkpoint_id)):
        for _ in figures.repeats(8):
            forked, took = timed_ms(live.fork, FORKS, chosen)
            _note(figures, f"{name} | {state}", took, forked)
            figures.add(f"close of 16 | {state}", timed_ms(calls.close, calls.adopt(forked))[1])
            time.sleep(SETTLE_S)


def _note(figures: Figures, name: str, took_ms: float, answer: Any) -> None:
    figures.add(name, took_ms)
    figures.add(f"{name} | behind", answer.took.ToNanoseconds() / 1e6)


def _touch(figures: Figures, calls: Calls, touch: str) -> None:
    state, code, _ = TOUCHES[touch]
    live = calls.create()
    live.run(STATES[state])
    for _ in figures.repeats(8):
        live.run(code)
        figures.add(f"{touch} | alone", timed_ms(live.run, code)[1])
        kept, took = timed_ms(live.checkpoint)
        figures.add(f"{touch} | checkpoint", took)
        figures.add(f"{touch} | first", timed_ms(live.run, code)[1])
        live.drop(kept.checkpoint_id)
    live.close()


def _print_touches(figures: Figures) -> None:
    print("\n| first touch after a checkpoint | alone, ms | first | more | a MB | the checkpoint |")
    print("|---|---|---|---|---|---|")
    for touch, (_, _, size) in TOUCHES.items():
        alone, first, kept = (
            statistics.median(figures.times[f"{touch} | {which}"])
            for which in ("alone", "first", "checkpoint")
        )
        each = f"{(first - alone) / size:.2f}" if size else ""
        print(
            f"| {touch} | {alone:.1f} | {first:.1f} | {first - alone:.1f} | {each} | {kept:.1f} |"
        )
        figures.values[f"first touch, ms more: {touch}"] = first - alone


def host(figures: Figures) -> None:
    """Behind the call: times, and the CPU time that they take, which other work hardly changes."""
    chosen = ("no state", "numpy, 100 MB", "100 bytearrays of 1 MB")
    spent: dict[str, float] = {}
    bench = HostBench(
        lambda name, ms: figures.add(f"host: {name}", ms), spent.__setitem__, figures.repeats
    )
    bench.measure(CELLS, {state: STATES[state] for state in chosen})
    figures.table("by the host's frames", [n for n in figures.times if n.startswith("host: ")])
    print("\n| behind the call | CPU time of host, keepers and branches, ms |\n|---|---|")
    for name, ms in spent.items():
        print(f"| {name} | {ms:.2f} |")
    figures.values["host: CPU, ms"] = spent


def compare(figures: Figures) -> None:
    """A session of ten cells of each contestant, by turns."""
    with ExitStack() as stack:
        contestants = dict(_contestants(stack, figures))
        slow = {"SandboxFusion, Jupyter mode"}
        for turn in figures.repeats(6):
            for name, contestant in contestants.items():
                if name in slow and turn > 2:  # half a minute each
                    continue
                _session(figures, name, contestant)
    _print_compared(figures, list(contestants))


def _contestants(stack: ExitStack, figures: Figures) -> Iterator[tuple[str, Contestant]]:
    spare = start(stack, "--session-spares", str(SPARES)).address_of("sandbox")
    cold = start(stack, "--session-spares", "0").address_of("sandbox")
    makers: dict[str, Callable[[], Contestant]] = {
        "ours, from a spare": lambda: Ours(stack.enter_context(Calls(spare))),
        "ours, cold": lambda: Ours(stack.enter_context(Calls(cold))),
        "ours, client library": lambda: Library(stack, spare),
        "Jupyter kernel": lambda: Kernel(stack),
        "docker exec, replay": Docker,
        "SandboxFusion, Jupyter mode": lambda: Fusion(stack),
        "ours, one-shot replay": lambda: Replay(stack.enter_context(ExecutionClient(spare))),
    }
    for name, make in makers.items():
        try:
            yield name, make()
        except NotHere as error:
            print(f"{name}: not run: {error}; see bench/sessions_peers.py")
            figures.values[f"not run: {name}"] = str(error)


def _session(figures: Figures, name: str, contestant: Contestant) -> None:
    time.sleep(SETTLE_S)
    started_s = time.perf_counter()
    contestant.open()
    try:
        contestant.cell("x = 0")
        figures.add(f"{name} | open", (time.perf_counter() - started_s) * 1e3)
        for number in range(8):
            took = timed_ms(contestant.cell, "x += 1")[1]
            figures.add(f"{name} | cell", took)
            if number == 7:  # the last
                figures.add(f"{name} | ninth", took)
        printed, took = timed_ms(contestant.cell, "print(x)")
        if printed != "8\n":
            raise RuntimeError(f"{name} printed {printed!r}")
    finally:
        contestant.close()
    figures.add(f"{name} | session", (time.perf_counter() - started_s) * 1e3)


def _print_compared(figures: Figures, names: Sequence[str]) -> None:
    kinds = {"open": "create and first cell", "cell": "cell x += 1", "ninth": "the ninth cell",
             "session": "ten cells and the end"}  # fmt: skip
    print("\n| by turns, ms: median, p95 | " + " | ".join(kinds.values()) + " | times ours |")
    print("|---|" + "---|" * (len(kinds) + 1))
    base = statistics.median(figures.times[f"{names[0]} | session"])
    for name in names:
        found = [figures.times[f"{name} | {kind}"] for kind in kinds]
        row = " | ".join(f"{statistics.median(ms):.2f}, {p95(ms):.2f}" for ms in found)
        print(f"| {name} | {row} | {statistics.median(found[-1]) / base:.1f} |")


def throughput(figures: Figures) -> None:
    """Cells a second: a thread for each session, all in this process."""
    print("\n| sessions at once | cells x += 1 a second | server CPU, ms a cell |\n|---|---|---|")
    with ExitStack() as stack:
        services = start(stack, "--session-spares", str(SPARES))
        target, pid = services.address_of("sandbox"), services.pid("sandbox")
        for count in (1, 2, 4, 16):
            lives = [stack.enter_context(Calls(target)).create() for _ in range(count)]
            used_s = cpu_s(pid)
            done, took_s = _drive(lives, 3.0 * figures.scale)
            cpu_ms = (cpu_s(pid) - used_s) / done * 1e3
            figures.values[f"cells a second, {count}"] = done / took_s
            print(f"| {count} | {done / took_s:.0f} | {cpu_ms:.2f} |")
            for live in lives:
                live.close()


def _drive(lives: Sequence[Live], seconds: float) -> tuple[int, float]:
    done: list[int] = []
    ends_s = time.monotonic() + seconds

    def work(live: Live) -> None:
        count = 0
        live.run("x = 0")
        while time.monotonic() < ends_s:
            live.run("x += 1")
            count += 1
        if (said := live.run("print(x)").stdout.data) != b"%d\n" % count:
            raise RuntimeError(f"{count} cells, and it printed {said!r}")
        done.append(count)

    started_s = time.perf_counter()
    threads = [threading.Thread(target=work, args=(live,)) for live in lives]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(done) != len(lives):
        raise RuntimeError("a session failed")
    return sum(done), time.perf_counter() - started_s


def idle(figures: Figures) -> None:
    """Many that wait."""
    _many(figures, int(1000 * figures.scale), "bare", "x = 1", 0)
    _many(
        figures, int(300 * figures.scale), "10 MB, 4 checkpoints", "x = bytearray(b'x' * 10**7)", 4
    )


def _many(figures: Figures, count: int, what: str, code: str, checkpoints: int) -> None:
    with ExitStack() as stack:
        services = start(stack, "--session-spares", "0", "--max-sessions", str(count + 8))
        calls = stack.enter_context(Calls(services.address_of("sandbox")))
        _once(calls)
        pid = services.pid("sandbox")
        share, free = take(pid).proportional_bytes, _available_bytes()
        lives, made_ms = [], []
        for _ in range(count):
            live, took = timed_ms(calls.create)
            made_ms.append(took + timed_ms(live.run, code)[1])
            lives.append(live)
            for number in range(checkpoints):
                live.run(f"y = {number}")
                figures.add(f"idle, {what} | checkpoint", timed_ms(live.checkpoint)[1])
        time.sleep(1.0)
        free_mb = (free - _available_bytes()) / 2**20
        census = take(pid)
        share_mb = (census.proportional_bytes - share) / 2**20
        turns_ms = [timed_ms(live.run, "z = 1")[1] for live in lives]
        _, closed_ms = timed_ms(_close_all, lives)
        figures.times[f"idle, {what} | create and cell"] = made_ms
        figures.times[f"idle, {what} | cell in turn"] = turns_ms
        figures.values[f"idle, {what}"] = {
            "sessions": count, "MemAvailable MB": free_mb, "PSS MB": share_mb,
            "processes": len(census.processes), "closed ms": closed_ms,
        }  # fmt: skip
    edge = max(2, min(50, count // 4))
    first_ms, last_ms = statistics.median(made_ms[:edge]), statistics.median(made_ms[-edge:])
    print(
        f"\n{count} sessions, {what}: {len(census.processes)} processes; "
        f"MemAvailable {free_mb:.0f} MB less, {free_mb / count:.2f} each; "
        f"PSS {share_mb:.0f} MB, {share_mb / count:.2f} each; "
        f"create and first cell, first {edge}: {first_ms:.2f} ms, last: {last_ms:.2f}; "
        f"a cell in turn {statistics.median(turns_ms):.2f}, p95 {p95(turns_ms):.2f}; "
        f"all closed in {closed_ms:.0f} ms"
    )


def _close_all(lives: Sequence[Live]) -> None:
    for first in range(0, len(lives), 100):
        lives[0].calls.close(lives[first : first + 100])


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024


def measure(parts: Sequence[str], scale: float, json_file: Path | None) -> None:
    """Runs the named parts; `scale` below 1 repeats less."""
    figures = Figures(scale)
    known: dict[str, Callable[[Figures], None]] = {
        "cells": cells,
        "copies": copies,
        "host": host,
        "compare": compare,
        "throughput": throughput,
        "idle": idle,
    }
    started_s = time.monotonic()
    for part in parts:
        print(f"\n## {part} (load {os.getloadavg()[0]:.1f})")
        try:
            known[part](figures)
        except Exception as error:  # noqa: BLE001  # a part that fails leaves the others their run
            print(f"{part}: FAILED: {type(error).__name__}: {str(error)[:500]}")
            figures.values[f"failed: {part}"] = str(error)
    print(f"\n{time.monotonic() - started_s:.0f} s in all")
    if json_file is not None:
        json_file.write_text(json.dumps({"times": figures.times, **figures.values}, indent=1))


def run(options: Sequence[str] = ()) -> None:
    """For `python -m bench sessions`, with choices."""
    parser = argparse.ArgumentParser(prog="bench sessions", description="Sessions and their peers.")
    parser.add_argument("--parts", default=",".join(PARTS), help="which, with commas")
    parser.add_argument("--scale", type=float, default=1.0, help="0.1: a tenth of the repeats")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args(options)
    parts = chosen.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no part is called {unknown[0]!r}; known: {', '.join(PARTS)}")
    measure(parts, chosen.scale, chosen.json)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a pipe is text too
    print_machine()
    run(sys.argv[1:])
