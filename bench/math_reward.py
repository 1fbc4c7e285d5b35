r"""Mathematics as a reward: Assay's `math` beside the graders that others train with.

All get the same rows in the same run. Each runs in a child process (see `math_peers`) and they take
turns: every 100 labelled rows, or a whole problem set, handed over at once. A pair that takes
longer than 10 s is a hang: the child is killed and the pair counts as not accepted. The mean and
the throughput are CPU time of the process that grades, read around each turn; the median, the 99th
percentile and the worst are of the time that each pair took, itself the median over the rounds.
Every round starts new children, so that no one meets a gold answer for the second time, except that
a problem set asks about each gold answer twice, as samples of one problem would.

The pairs by class (`math_pairs`) are asked about once, in the first round, for accuracy alone;
`--pairs` prints their table and nothing else, of the graders that `--graders` names.

Then the whole path: a server, a client, calls of 64 items; CPU of the server and of its workers.

`ASSAY_BENCH_ROUNDS` sets the rounds (3), `ASSAY_BENCH_PEERS` a folder with the peers from PyPI.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from assay.clients import EmbeddedServices, Item, RewardClient
from bench.math_pairs import PARTS, print_table
from bench.math_peers import GRADERS, LIBRARY
from bench.math_rows import (
    DATA,
    ENDLESS,
    MARKER,
    PAYLOADS,
    PROBLEM_SETS,
    Row,
    all_sets,
    boxed,
    pairs,
)
from bench.wire import cpu_s

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = int(os.environ.get("ASSAY_BENCH_ROUNDS", "3"))
TURN = 100
HANG_S = 10.0
TURN_S = 60.0
START_S = 120.0
BATCH = 64
ABREAST = 4
"""Contestants in one table by class."""
PEER_PACKAGES = ("verl==0.9.1", "pylatexenc==2.10")
PAIRS = "pairs by class"
ONCE = (PAIRS,)
OURS, FAST, BEST = "Assay math", "Assay math, fast tiers", "math-verify, best"


class Contestant:
    """A grader in a child process, which is started again after a hang."""

    def __init__(self, name: str, peers: str) -> None:
        self.name = name
        self.cpu_ms = 0.0
        self.folder = tempfile.TemporaryDirectory()
        self._environment = os.environ | {"ASSAY_BENCH_PEERS": peers, "PYTHONPATH": str(ROOT)}
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = b""

    def start(self) -> bool:
        """Starts the child; False when it does not come up, as where a package is absent."""
        self._child = subprocess.Popen(
            [sys.executable, "-m", "bench.math_peers", self.name],
            cwd=self.folder.name,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._buffer = b""
        return self._read(START_S) == "ready"

    def stop(self) -> None:
        """Kills the child and what it started."""
        if self._child is not None:
            with self._child:
                os.killpg(self._child.pid, 9)
            self._child = None

    def grade(self, rows: Sequence[Row]) -> list[tuple[bool | None, float, bool]]:
        """For each row: right or not (None: not judged), ms that it took, and whether it hung.

        All rows are handed over at once, and again one by one when that takes too long.
        """
        said = self._ask(rows, HANG_S if len(rows) == 1 else TURN_S)
        if said is not None:
            self.cpu_ms += said["cpu_ms"]
            return [(answer["right"], float(answer["ms"]), False) for answer in said["rows"]]
        if len(rows) == 1:
            return [(None, HANG_S * 1e3, True)]
        return [self.grade([row])[0] for row in rows]

    def _ask(self, rows: Sequence[Row], timeout_s: float) -> dict[str, Any] | None:
        """What the child says of rows; None, and it is killed, when that takes too long."""
        if self._child is None and not self.start():
            raise RuntimeError(f"{self.name} does not start again")
        assert self._child is not None
        assert self._child.stdin is not None
        pairs = [
            {"gold": row.gold, "response": row.response, "question": row.question} for row in rows
        ]
        self._child.stdin.write(json.dumps(pairs).encode() + b"\n")
        self._child.stdin.flush()
        said = self._read(timeout_s)
        if isinstance(said, dict):
            return said
        self.stop()
        return None

    def _read(self, timeout_s: float) -> object:
        """The next line of the child; None after the time, or when it is dead."""
        assert self._child is not None
        assert self._child.stdout is not None
        while b"\n" not in self._buffer:
            if not select.select([self._child.stdout], [], [], timeout_s)[0]:
                return None
            data = os.read(self._child.stdout.fileno(), 2**16)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: object = json.loads(line)
        return answer


@dataclass(slots=True)
class Tally:
    """What one contestant made of one set.

    Attributes:
        right: the verdict on each row.
        ms: how long each row took, by round.
        hung: whether it hung.
        cpu_ms: CPU of all rows that ended, by round.
    """

    right: list[bool | None]
    ms: list[list[float]]
    hung: list[bool]
    cpu_ms: list[float]

    @classmethod
    def empty(cls, size: int) -> Tally:
        """Nothing yet."""
        return cls([None] * size, [[] for _ in range(size)], [False] * size, [])

    def mean_ms(self) -> float:
        """CPU of a row that ended: the mean over the rows, the median over the rounds."""
        return statistics.median(self.cpu_ms) / max(1, self.hung.count(False))

    def times(self) -> list[float]:
        """A row's median over the rounds, of those rows that ended, sorted."""
        rows = zip(self.ms, self.hung, strict=True)
        return sorted(statistics.median(ms) for ms, hung in rows if ms and not hung)


@dataclass(slots=True)
class Measured:
    """All tallies of a run by set and contestant, who was asked, and who was absent."""

    sets: dict[str, list[Row]]
    names: tuple[str, ...] = tuple(GRADERS)
    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)


@contextmanager
def peer_folder() -> Iterator[str]:
    """The folder with the peers that are not installed: the user's, or a temporary one."""
    named = os.environ.get("ASSAY_BENCH_PEERS", "")
    if named:
        yield named
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        command += [folder, "--disable-pip-version-check", *PEER_PACKAGES]
        subprocess.run(command, check=False, capture_output=True)
        yield folder


def take_turns(measured: Measured, peers: str) -> None:
    """Every contestant over every row, once; a row that hung is not tried again."""
    names = [name for name in measured.names if name not in measured.absent]
    contestants = [Contestant(name, peers) for name in names]
    present = []
    for contestant in contestants:
        if contestant.start():
            present.append(contestant)
        else:
            contestant.stop()
            measured.absent.append(contestant.name)
    for name, rows in measured.sets.items():
        if name in ONCE and name in measured.tallies:
            continue
        tallies = measured.tallies.setdefault(name, {})
        for contestant in present:
            tallies.setdefault(contestant.name, Tally.empty(len(rows))).cpu_ms.append(0.0)
        turn = len(rows) if name in PROBLEM_SETS else TURN
        for start in range(0, len(rows), turn):
            for contestant in present:
                tally = tallies[contestant.name]
                grade_part(contestant, rows, tally, range(start, min(start + turn, len(rows))))
    for contestant in present:
        contestant.stop()
        contestant.folder.cleanup()


def grade_part(contestant: Contestant, rows: list[Row], tally: Tally, part: range) -> None:
    """A contestant's turn."""
    todo = [i for i in part if not tally.hung[i]]
    before_ms = contestant.cpu_ms
    for i, (right, ms, hung) in zip(todo, contestant.grade([rows[i] for i in todo]), strict=True):
        tally.right[i], tally.hung[i] = right, hung
        tally.ms[i].append(ms)
    tally.cpu_ms[-1] += contestant.cpu_ms - before_ms


def accuracy_line(name: str, rows: list[Row], tally: Tally, against: Tally | None) -> str:
    """One line of the table of labelled rows."""
    said = [bool(right) for right in tally.right]
    pairs = list(zip(said, rows, strict=True))
    accepted = [row for yes, row in pairs if yes]
    wrong = sum(not row.right for row in accepted)
    found, hard = len(accepted) - wrong, [yes for yes, row in pairs if row.right and row.hard]
    agree = sum(yes == row.right for yes, row in pairs) / len(rows)
    return (
        f"{name:24s} {agree:7.1%} {(found / max(1, len(accepted))):7.2%} "
        f"{found / max(1, sum(row.right for row in rows)):7.1%} "
        f"{sum(hard) / max(1, len(hard)):7.1%} {wrong:4d} {sum(tally.hung):5d} "
        f"{time_columns(tally, against)}"
    )


def time_columns(tally: Tally, against: Tally | None) -> str:
    """CPU ms of a pair, pairs a second of one core, and how many times those of math-verify."""
    times = tally.times()
    mean = tally.mean_ms()
    ratio = "" if against is None else f"{against.mean_ms() / mean:8.1f}"
    return (
        f"{mean:8.3f} {statistics.median(times):8.3f} {times[int(len(times) * 0.99)]:8.2f} "
        f"{times[-1]:8.1f} {1e3 / mean:8.0f} {ratio}"
    )


TIME_HEAD = f"{'mean':>8s} {'median':>8s} {'p99':>8s} {'worst':>8s} {'pairs/s':>8s} {'ratio':>8s}"


def print_labelled(measured: Measured) -> None:
    """The table of labelled pairs, with the false positives among the near misses."""
    rows, tallies = measured.sets["labelled"], measured.tallies["labelled"]
    hard = sum(row.hard for row in rows)
    print(
        f"\nmath: {len(rows)} labelled pairs, {hard} of them hard; CPU ms a pair; {ROUNDS} rounds"
    )
    print(
        f"{'':24s} {'accur.':>7s} {'precis.':>7s} {'recall':>7s} {'hard r.':>7s} "
        f"{'FP':>4s} {'hangs':>5s} {TIME_HEAD}"
    )
    for name, tally in tallies.items():
        print(accuracy_line(name, rows, tally, tallies.get(BEST)))
    decided = tallies[FAST].right if FAST in tallies else []
    if decided:
        share = sum(right is not None for right in decided) / len(decided)
        print(f"the fast tiers decide {share:.1%}; the rest goes to a worker")
    near = measured.sets["near misses"]
    print(f"\nmath: {len(near)} near misses, none of them equal: every acceptance is wrong")
    print(f"{'':24s} {'FP':>4s} {'hangs':>5s} {TIME_HEAD}")
    for name, tally in measured.tallies["near misses"].items():
        wrong = sum(bool(right) for right in tally.right)
        against = measured.tallies["near misses"].get(BEST)
        print(f"{name:24s} {wrong:4d} {sum(tally.hung):5d} {time_columns(tally, against)}")


def print_problem_sets(measured: Measured) -> None:
    """Gold answers against themselves and a neighbour."""
    for name in PROBLEM_SETS:
        rows, tallies = measured.sets[name], measured.tallies[name]
        print(f"\nmath: {name}, {len(rows)} pairs of a gold answer with its own or a neighbour's")
        print(f"{'':24s} {'missed':>6s} {'FP':>4s} {'hangs':>5s} {TIME_HEAD}")
        for contestant, tally in tallies.items():
            pairs = list(zip(tally.right, rows, strict=True))
            missed = sum(row.right and not said for said, row in pairs)
            wrong = sum(bool(said) and not row.right for said, row in pairs)
            columns = time_columns(tally, tallies.get(BEST))
            print(f"{contestant:24s} {missed:6d} {wrong:4d} {sum(tally.hung):5d} {columns}")


def print_hostile(absent: list[str], peers: str) -> None:
    """Answers that try to run code, and answers whose value no machine holds."""
    print(f"\nmath: {len(PAYLOADS)} answers that are programs, {len(ENDLESS)} that never end")
    print(f"{'':24s} {'executed':>8s} {'accepted':>8s} {'hangs':>5s}   ms of those that ended")
    for name in GRADERS:
        if name in absent:
            continue
        contestant = Contestant(name, peers)
        executed = accepted = 0
        for gold, answer in PAYLOADS:
            [(said, _, _)] = contestant.grade([Row(gold, boxed(answer), right=False)])
            marker = Path(contestant.folder.name) / MARKER
            executed += marker.exists()
            accepted += bool(said)
            marker.unlink(missing_ok=True)
        endless = [Row(gold, boxed(answer), right=False) for gold, answer in ENDLESS]
        ended = [contestant.grade([row])[0] for row in endless]
        times = " ".join(f"{ms:.1f}" for _, ms, hung in ended if not hung)
        hangs = sum(hung for _, _, hung in ended)
        print(f"{name:24s} {executed:8d} {accepted:8d} {hangs:5d}   {times}")
        contestant.stop()
        contestant.folder.cleanup()


def family_cpu_s(pid: int) -> float:
    """CPU seconds of a process and of those of its children that live."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return cpu_s(pid) + sum(family_cpu_s(int(child)) for child in children)


def print_whole_path(sets: dict[str, list[Row]]) -> None:
    """The same rows through a server: CPU an item of the server and of its workers."""
    print(f"\nmath over gRPC: calls of {BATCH}, cache off, {ROUNDS} rounds, medians")
    print(f"{'':24s} {'us server':>9s} {'us workers':>10s} {'items/s':>8s} {'faults':>6s}")
    quiet = {"reward": ("--cache-entries", "0", "--log-level", "ERROR")}
    with (
        EmbeddedServices(arguments=quiet) as services,
        RewardClient(services.address, timeout_s=600) as client,
    ):
        client.score([Item("\\boxed{1}", reference="1", verifier="math")])
        for name, rows in sets.items():
            rounds = [one_round(services.pid(), client, rows) for _ in range(ROUNDS)]
            middle = [statistics.median(column) for column in zip(*rounds, strict=True)]
            print(
                f"{name:24s} {middle[0]:9.0f} {middle[1]:10.0f} {middle[2]:8.0f} {middle[3]:6.0f}"
            )


def one_round(pid: int, client: RewardClient, rows: list[Row]) -> tuple[float, float, float, int]:
    """Server us and worker us of CPU an item, items a second, and faults."""
    server, family, started = cpu_s(pid), family_cpu_s(pid), time.perf_counter()
    faults = 0
    for start in range(0, len(rows), BATCH):
        items = [
            Item(row.response, reference=row.gold, verifier="math", timeout_s=5.0)
            for row in rows[start : start + BATCH]
        ]
        faults += sum(result.reward is None for result in client.score(items))
    wall = time.perf_counter() - started
    own = (cpu_s(pid) - server) / len(rows) * 1e6
    return own, (family_cpu_s(pid) - family) / len(rows) * 1e6 - own, len(rows) / wall, faults


def all_pairs() -> dict[str, list[Row]]:
    """The set of the pairs by class, open and sealed."""
    return {PAIRS: [row for part in PARTS for row in pairs(part)]}


def print_pairs(measured: Measured) -> None:
    """The table by class of every contestant."""
    rows, tallies = measured.sets[PAIRS], measured.tallies[PAIRS]
    print(f"\nmath: {len(rows)} pairs by class, half of them sealed to whoever writes the reader")
    accepted = {name: [bool(said) for said in tally.right] for name, tally in tallies.items()}
    for first in range(0, len(accepted), ABREAST):
        print_table(rows, dict(list(accepted.items())[first : first + ABREAST]))
    for name, tally in tallies.items():
        print(f"{name}: {tally.mean_ms():.3f} ms a pair, {sum(tally.hung)} hangs")


def run(arguments: list[str]) -> None:
    """Prints all tables."""
    parser = argparse.ArgumentParser("bench math", description=__doc__)
    parser.add_argument("--pairs", action="store_true", help="the pairs by class alone")
    parser.add_argument(
        "--graders", nargs="+", choices=[*GRADERS, *LIBRARY], default=[OURS, BEST], metavar="NAME"
    )
    asked = parser.parse_args(arguments)
    if not asked.pairs and not DATA.is_dir():
        print("\nmath: skipped, the benchmark files are absent (expected ../shared/data)")
        return
    if asked.pairs:
        measured = Measured(all_pairs(), tuple(asked.graders))
    else:
        measured = Measured(all_sets() | all_pairs())
    with peer_folder() as peers:
        for _ in range(1 if asked.pairs else ROUNDS):
            take_turns(measured, peers)
        print(f"\nmath-verify {version('math-verify')}, trl {version('trl')}, {PEER_PACKAGES[0]}")
        print(f"absent: {', '.join(measured.absent) or 'none'}")
        if not asked.pairs:
            print_labelled(measured)
            print_problem_sets(measured)
            print_hostile(measured.absent, peers)
        print_pairs(measured)
    if not asked.pairs:
        print_whole_path(all_sets())
