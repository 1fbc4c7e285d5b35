"""The sandbox against SandboxFusion, and against its own targets.

    python -m bench sandbox                          the comparison and everything below
    python -m bench.sandbox --parts compare,latency --json FILE

`compare`: throughput with two clients, each with one call in flight, contestants by turns in one
run. Both get the same programs: `print(1)`, HumanEval's reference solutions with their tests,
`import numpy`. The peer runs solution and tests in one process, for it has no other way; ours
judges outside of the candidate's process, as it always does. Ours is measured with one program in
a call, as the peer is, and with 64 in a call, as a trainer sends them. `latency`: one client, one
program in a call. `saturation`: many callers at once, each with one program in flight. `slots`:
throughput with one slot and with two. `memory`: what an idle service holds. `leaks`: many runs,
and what is left.

The peer's set-up steps stand in `bench.sandbox_peer`; without it ours is measured alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from assay.clients import EmbeddedServices
from assay.clients.execution import (
    AssertTest,
    Execution,
    ExecutionClient,
    ExecutionJob,
    Program,
    TestJob,
    TestReport,
    TestSuite,
)
from bench.common import print_machine
from bench.sandbox_census import cpu_s, left_behind, settle, take
from bench.sandbox_peer import Peer, PeerClient
from bench.sandbox_peer import home as peer_home

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "humaneval.jsonl.gz"
CLIENTS = 2
ROUNDS = 5
SLOTS = 2
BATCH = 64
PROBLEMS = 60
PARTS = ("compare", "latency", "saturation", "slots", "memory", "leaks")
# Runs of one round, so that each contestant's turn takes about as long.
RUNS = {"none": 60, "lite": 12, "ours, 1 a call": 1000, "ours, 64 a call": 2048}
# A box for candidates with packages, and one for testers: a class of tests is not reduced to calls.
_BOXES = (
    ("import numpy\ntime.sleep(0.2)\n\ndef f():\n    return 1\n", "assert f() == 1\n"),
    (
        "time.sleep(0.2)\n\ndef f():\n    return 1\n",
        "import unittest\nclass T(unittest.TestCase):\n def test(self): self.assertEqual(f(), 1)",
    ),
)
RARE = {"none": 20, "lite": 8, "ours, 1 a call": 400, "ours, 64 a call": 1024}


@dataclass(frozen=True, slots=True)
class Work:
    """A program, as each contestant takes it."""

    source: str
    expected: str = ""
    test: AssertTest | None = None

    @property
    def whole(self) -> str:
        """The program and its test in one file, for who knows no other way."""
        if self.test is None:
            return self.source
        return f"{self.source}\n{self.test.code}\ncheck({self.test.entry_point})\n"


@dataclass
class Figures:
    """What was measured, for people (printed at once) and for programs (JSON)."""

    values: dict[str, object] = field(default_factory=dict)

    def note(self, key: str, value: object, text: str) -> None:
        """Keeps a figure and prints its line."""
        self.values[key] = value
        print(text)


def works() -> dict[str, list[Work]]:
    """The programs of each kind."""
    kinds = {"print": [Work("print(1)", "1\n")]}
    if DATA.is_file():
        with gzip.open(DATA, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines][:PROBLEMS]
        kinds["HumanEval with tests"] = [
            Work(
                row["prompt"] + row["canonical_solution"],
                test=AssertTest(row["test"], row["entry_point"]),
            )
            for row in rows
        ]
    kinds["import numpy"] = [Work("import numpy\nprint(numpy.arange(4).sum())", "6\n")]
    return kinds


def send(client: ExecutionClient, chunk: Sequence[Work]) -> None:
    """One call with these programs; every one must do what it should."""
    if chunk[0].test is not None:
        tested = client.run_tests(
            [
                TestJob(Program("python", work.source), TestSuite((work.test,)))
                for work in chunk
                if work.test is not None
            ]
        )
        wrong = [r for r in tested if not (isinstance(r, TestReport) and r.all_passed)]
    else:
        ran = client.execute([ExecutionJob(Program("python", work.source)) for work in chunk])
        wrong = [
            r
            for r, work in zip(ran, chunk, strict=True)
            if not (isinstance(r, Execution) and r.stdout.text == work.expected)
        ]
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {len(chunk)} went wrong, first: {wrong[0]}")


def spread_over(threads: int, calls: Sequence[Callable[[], None]]) -> None:
    """Makes the calls, `threads` at a time; an error of one ends the measurement."""
    waiting, errors = list(calls), []

    def work() -> None:
        while waiting and not errors:
            try:
                waiting.pop()()
            except IndexError:
                return
            except (RuntimeError, OSError) as error:
                errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]


class Contestant:
    """Somebody who runs programs: its clients, and its server's process."""

    def __init__(
        self, name: str, pid: int, runners: Sequence[Callable[[Sequence[Work]], None]]
    ) -> None:
        self.name = name
        self.pid = pid
        self.runners = runners
        self.size = BATCH if name.startswith("ours, 64") else 1

    def turn(self, kind: str, programs: Sequence[Work]) -> tuple[float, float]:
        """Programs a second, and server CPU milliseconds a program, of one round."""
        runs = (RUNS if kind == "print" else RARE)[self.name]
        chosen = [programs[i % len(programs)] for i in range(runs)]
        chunks = [chosen[i : i + self.size] for i in range(0, runs, self.size)]
        shares = [chunks[i :: len(self.runners)] for i in range(len(self.runners))]
        threads = [
            threading.Thread(target=self._drive, args=(runner, share))
            for runner, share in zip(self.runners, shares, strict=True)
        ]
        self._errors: list[BaseException] = []
        used_s, started_s = cpu_s(self.pid), time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took_s = time.perf_counter() - started_s
        if self._errors:
            raise self._errors[0]
        return runs / took_s, (cpu_s(self.pid) - used_s) / runs * 1e3

    def _drive(
        self, runner: Callable[[Sequence[Work]], None], share: Sequence[Sequence[Work]]
    ) -> None:
        try:
            for chunk in share:
                runner(chunk)
        except (RuntimeError, OSError) as error:
            self._errors.append(error)


def ours(
    stack: ExitStack, slots: int, clients: int
) -> tuple[EmbeddedServices, list[ExecutionClient]]:
    """A service for as long as the stack, and clients of it."""
    arguments = ("--slots", str(slots), "--languages", "python", "--log-level", "ERROR")
    services = stack.enter_context(EmbeddedServices(("sandbox",), arguments={"sandbox": arguments}))
    target = services.address_of("sandbox")
    made = [stack.enter_context(ExecutionClient(target, timeout_s=120)) for _ in range(clients)]
    for client in made:
        for programs in works().values():
            send(client, programs)
    return services, made


def compare(figures: Figures, rounds: int) -> None:
    """Throughput by turns."""
    with ExitStack() as stack:
        contestants = []
        folder = peer_home()
        for mode in ("none", "lite") if folder else ():
            assert folder is not None
            peer = stack.enter_context(Peer(folder, mode))
            links = [PeerClient(peer.port) for _ in range(CLIENTS)]
            runners = [_peer_runner(link) for link in links]
            contestants.append(Contestant(mode, peer.pid, runners))
        services, clients = ours(stack, SLOTS, CLIENTS)
        for name in ("ours, 1 a call", "ours, 64 a call"):
            pid = services.pid("sandbox")
            contestants.append(Contestant(name, pid, [_our_runner(c) for c in clients]))
        print(f"\ncompare: {CLIENTS} clients, {SLOTS} slots, {rounds} rounds by turns")
        if folder is None:
            print("(no peer: see bench/sandbox_peer.py)")
        for kind, programs in works().items():
            _compare_kind(figures, rounds, kind, programs, contestants)


def _peer_runner(link: PeerClient) -> Callable[[Sequence[Work]], None]:
    def run(chunk: Sequence[Work]) -> None:
        for work in chunk:
            if (said := link.run(work.whole)) != work.expected:
                raise RuntimeError(f"the peer printed {said!r}")

    return run


def _our_runner(client: ExecutionClient) -> Callable[[Sequence[Work]], None]:
    return lambda chunk: send(client, chunk)


def _compare_kind(
    figures: Figures,
    rounds: int,
    kind: str,
    programs: Sequence[Work],
    contestants: Sequence[Contestant],
) -> None:
    rates: dict[str, list[float]] = {c.name: [] for c in contestants}
    cpu_ms: dict[str, list[float]] = {c.name: [] for c in contestants}
    for turn in range(rounds + 1):
        for contestant in contestants:
            rate, ms = contestant.turn(kind, programs)
            if turn:  # the first is a warm-up
                rates[contestant.name].append(rate)
                cpu_ms[contestant.name].append(ms)
    heads = f"{'runs a second [min, max]':>32s} {'CPU ms a run':>13s}"
    print(f"{kind:22s} {heads}   times none, times lite")
    for contestant in contestants:
        name = contestant.name
        ratios = {
            peer: statistics.median(a / b for a, b in zip(rates[name], rates[peer], strict=True))
            for peer in ("none", "lite")
            if peer in rates and name.startswith("ours")
        }
        median, low, high = statistics.median(rates[name]), min(rates[name]), max(rates[name])
        figures.note(
            f"compare/{kind}/{name}",
            {"rates": rates[name], "cpu_ms": cpu_ms[name], "ratios": ratios},
            f"  {name:20s} {median:10.1f} [{low:8.1f}, {high:8.1f}] "
            f"{statistics.median(cpu_ms[name]):13.2f}   "
            + ", ".join(f"{ratio:.1f}" for ratio in ratios.values()),
        )


def latency(figures: Figures, _rounds: int) -> None:
    """One client, one program in a call, one after the other."""
    print("\nlatency of a single call, one client (ms)")
    with ExitStack() as stack:
        _, [client] = ours(stack, SLOTS, 1)
        for kind, programs in works().items():
            took_ms = sorted(_timed_ms(client, [programs[i % len(programs)]]) for i in range(400))
            _percentiles(figures, f"latency/{kind}", kind, took_ms)


def _timed_ms(client: ExecutionClient, chunk: Sequence[Work]) -> float:
    started_s = time.perf_counter()
    send(client, chunk)
    return (time.perf_counter() - started_s) * 1e3


def _percentiles(figures: Figures, key: str, name: str, took_ms: list[float]) -> None:
    at = {p: took_ms[min(len(took_ms) - 1, int(len(took_ms) * p / 100))] for p in (50, 95, 99)}
    figures.note(
        key,
        at,
        f"  {name:22s} median {at[50]:7.2f}  p95 {at[95]:7.2f}  p99 {at[99]:7.2f}  "
        f"p99/median {at[99] / at[50]:.2f}",
    )


def saturation(figures: Figures, _rounds: int) -> None:
    """Many callers, each with one program in flight: how long a call takes, the queue included."""
    for callers in (4, 16, 64):
        print(f"\nsaturation: {callers} callers, one program each in flight (ms)")
        with ExitStack() as stack:
            _, clients = ours(stack, SLOTS, 2)
            for kind, programs in works().items():
                took_ms = _crowd(clients, programs, callers, max(40 * callers, 600))
                _percentiles(figures, f"saturation/{callers}/{kind}", kind, sorted(took_ms))


def _crowd(
    clients: Sequence[ExecutionClient], programs: Sequence[Work], callers: int, calls: int
) -> list[float]:
    """Milliseconds of each call, those left out that began or ended without the crowd."""
    took_ms: list[float] = []

    def call(number: int) -> None:
        work = programs[number % len(programs)]
        took_ms.append(_timed_ms(clients[number % len(clients)], [work]))

    spread_over(callers, [partial(call, number) for number in range(calls)])
    return took_ms[callers:-callers]


def slots(figures: Figures, rounds: int) -> None:
    """Throughput with one slot and with two, by turns."""
    print(f"\nslots: 1 and 2, {CLIENTS} clients, {BATCH} programs a call, {rounds} rounds by turns")
    with ExitStack() as stack:
        by_count = {}
        for count in (1, 2):
            services, clients = ours(stack, count, CLIENTS)
            runners = [_our_runner(client) for client in clients]
            by_count[count] = Contestant("ours, 64 a call", services.pid("sandbox"), runners)
        for kind, programs in works().items():
            rates: dict[int, list[float]] = {1: [], 2: []}
            for turn in range(rounds + 1):
                for count, contestant in by_count.items():
                    rate, _ = contestant.turn(kind, programs)
                    if turn:
                        rates[count].append(rate)
            medians = {count: statistics.median(found) for count, found in rates.items()}
            figures.note(
                f"slots/{kind}",
                rates,
                f"  {kind:22s} one slot {medians[1]:8.1f} a second, two {medians[2]:8.1f}: "
                f"times {medians[2] / medians[1]:.2f}",
            )


def memory(figures: Figures, _rounds: int) -> None:
    """What an idle service holds, shared pages counted once, by process."""
    print("\nmemory of an idle service (MiB), every box built")
    totals = {}
    for count in (1, 2):
        with ExitStack() as stack:
            services, _ = ours(stack, count, 2)
            time.sleep(2.0)
            census = take(services.pid("sandbox"))
            totals[count] = census.proportional_bytes
            for process in census.processes.values() if count == 1 else ():
                print(
                    f"  {process.proportional_bytes / 2**20:7.1f} own share, "
                    f"{process.resident_bytes / 2**20:7.1f} resident  {process.name[:60]}"
                )
    worker = totals[2] - totals[1]
    figures.note(
        "memory",
        {"total_bytes": totals, "worker_bytes": worker},
        f"  in all {totals[1] / 2**20:.1f} with one slot, {totals[2] / 2**20:.1f} with two: "
        f"{worker / 2**20:.1f} for another worker",
    )


def leaks(figures: Figures, _rounds: int, runs: int = 20_000) -> None:
    """Many runs, some of them unfriendly, then a comparison of everything the service holds."""
    unfriendly = [
        Work("import os\nif os.fork() == 0:\n    import time; time.sleep(60)\nprint(1)", "1\n"),
        Work("open('/tmp/left', 'w').write('x' * 100000)\nprint(1)", "1\n"),
        Work(
            "import socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\nprint(1)",
            "1\n",
        ),
    ]
    print(f"\nleaks: {runs} runs, one in five unfriendly")
    with ExitStack() as stack:
        services, clients = ours(stack, SLOTS, 2)
        mixed = [work for kind in works().values() for work in kind if work.test is None]
        tested = [work for kind in works().values() for work in kind if work.test is not None]
        plain = [mixed[0], mixed[1], mixed[0], mixed[0]]
        chunk = [work for i in range(12) for work in (*plain, unfriendly[i % 3])]
        each = len(chunk) + len(tested)

        def load(client: ExecutionClient) -> None:
            send(client, chunk)
            if tested:
                send(client, tested)

        slow = [Work(f"import time\n{source}", test=AssertTest(code)) for source, code in _BOXES]
        for work in slow * 3:  # every box of every slot is built before the first census
            send(clients[0], [work] * 4 * SLOTS)
        spread_over(2, [partial(load, clients[i % 2]) for i in range(10)])
        pid = services.pid("sandbox")
        time.sleep(2.0)
        before = take(pid)
        started_s = time.perf_counter()
        spread_over(2, [partial(load, clients[i % 2]) for i in range(runs // each + 1)])
        took_s = time.perf_counter() - started_s
        left = settle(pid, before) or left_behind(before, take(pid))
        grown = take(pid).proportional_bytes - before.proportional_bytes
        figures.note(
            "leaks",
            {"runs": runs, "seconds": took_s, "left": left, "grown_bytes": grown},
            f"  {runs / took_s:.0f} a second; left behind: {left or 'nothing'}; "
            f"memory of all processes {grown / 2**20:+.1f} MiB",
        )


def measure(parts: Sequence[str], rounds: int, json_file: Path | None) -> None:
    """Runs the named parts."""
    figures = Figures()
    known: dict[str, Callable[[Figures, int], None]] = {
        "compare": compare,
        "latency": latency,
        "saturation": saturation,
        "slots": slots,
        "memory": memory,
        "leaks": leaks,
    }
    for part in parts:
        known[part](figures, rounds)
    if json_file is not None:
        json_file.write_text(json.dumps(figures.values, indent=1))


def run() -> None:
    """Everything, for `python -m bench sandbox`."""
    measure(PARTS, ROUNDS, None)


def main() -> None:
    """`python -m bench.sandbox`, with choices."""
    parser = argparse.ArgumentParser(description="The sandbox against its peer and its targets.")
    parser.add_argument("--parts", default=",".join(PARTS), help="which, with commas")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args()
    parts = chosen.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no part is called {unknown[0]!r}; known: {', '.join(PARTS)}")
    print_machine()
    measure(parts, chosen.rounds, chosen.json)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a pipe is text too
    main()
