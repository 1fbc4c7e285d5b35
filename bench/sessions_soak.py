"""Sessions opened, used, forked, rolled back and killed at random while others compute.

    python -m bench sessions-soak --minutes 30
    python -m bench sessions-soak --sessions 2000 --minutes 0

Callers at once, each with a session and its model: cells that are right, raise, print, write files;
checkpoints, rollbacks and forks; programs that end themselves, run out of time or memory, leave
processes, or attack. A killer sends SIGKILL from outside to a random session, checkpoint or, more
rarely, keeper. Every answer is compared with what it must be: right, or a fault with the reason of
what was done to it. Anything else is untrue.

A line an interval: what was done, what is untrue, and what the server holds: memory, processes,
descriptors, mounts, control groups. At the end the slopes, as `bench soak` has them.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import sessions_residue as residue
import sessions_wire as wire
from assay.sandbox.jail.monitor import descendants
from bench.soak import slope
from sessions_wire import Refused, Server, Session

CALLERS = 8
MOST_OPEN = 3  # of a caller's family
KILLED = {"SESSION_LOST", "CHECKPOINT_LOST"}
ENDED = {"SESSION_ENDED"}
UNTRUE_SHOWN = 40
_MARK = "import ctypes; ctypes.CDLL(None).prctl(15, b'{}', 0, 0, 0)"
_START = f"""
import os, random, time
x, made = {{x}}, []
random.seed({{x}})
{_MARK.format("soak-live")}
def put():
    with open("x", "w") as file: file.write(str(x))
put()
"""
ENDS = {
    "import os; os._exit(3)": {"died"},
    "import ctypes; ctypes.string_at(0)": {"died"},
    "while True: pass": {"wall_time_limit", "cpu_time_limit"},
    "held = []\nwhile True: held.append(bytearray(1 << 20))": {"memory_limit", "wall_time_limit"},
    "while True: print('x' * 100000)": {"output_limit", "wall_time_limit"},
    "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)": {"security_violation"},
    "import os; os.closerange(3, 5000); time.sleep(9)": {
        "died", "protocol_violation", "wall_time_limit",
    },
    "import subprocess\nfor _ in range(3): subprocess.Popen(['sleep', '60'])": {"completed"},
    "import os\nfor _ in range(20):\n    if os.fork() == 0: time.sleep(60)": {
        "completed", "raised",
    },
    "import os\nos.kill(-1, 9)": {"raised", "completed"},
}  # fmt: skip


@dataclass
class Felt:
    """What the callers saw."""

    done: Counter[str] = field(default_factory=Counter)
    untrue: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass
class Member:
    """A session, what it must hold, and whether something was done to it."""

    session: Session
    x: int
    points: dict[str, int] = field(default_factory=dict)
    over: bool = False
    busy: bool = False  # has threads or processes: no copies


class Caller:
    """Plays with a family until it is over."""

    def __init__(self, server: Server, seed: int, felt: Felt, killed: threading.Event) -> None:
        self._server, self._felt, self._killed = server, felt, killed
        self._rng = random.Random(seed)
        self._members: list[Member] = []
        self._moves: list[tuple[int, Callable[[Member], None]]] = [
            (30, self._count), (8, self._look), (4, self._raise), (8, self._checkpoint),
            (8, self._rollback), (4, self._fork), (4, self._close), (3, self._end), (2, self._drop),
        ]  # fmt: skip

    def step(self) -> None:
        """One move; a fault is booked, and is right only where a killer is about."""
        if not self._members:
            self._open()
            return
        member = self._rng.choice(self._members)
        moves = [move for weight, move in self._moves for _ in range(weight)]
        move = self._rng.choice(moves)
        began_s = time.perf_counter()
        try:
            move(member)
            self._felt.done[move.__name__.strip("_")] += 1
            self._felt.seconds.append(time.perf_counter() - began_s)
        except Refused as refused:
            self._felt.done[refused.reason or refused.code] += 1
            fine = KILLED if self._killed.is_set() else set()
            if self._killed.is_set() and "memory-limit" in refused.metadata.get("end", ""):
                fine = fine | ENDED  # killed while a sibling had used up their memory
            if member.over:
                fine = fine | ENDED | KILLED  # it died of itself, its checkpoints perhaps too
            if member.busy:
                fine = fine | {"CANNOT_FORK"}
            if refused.reason == "TOO_MANY_COPIES":
                fine = fine | {"TOO_MANY_COPIES"}
            if refused.reason not in fine:
                self._untrue(move.__name__, str(refused))
            if refused.reason in KILLED | ENDED:
                self._forget(member)

    def close(self) -> None:
        self._server.close_all([member.session for member in self._members])
        self._members.clear()

    def _untrue(self, what: str, text: str) -> None:
        self._felt.untrue.append(f"{what}: {text[:300]}")

    def _forget(self, member: Member) -> None:
        self._members.remove(member)
        self._server.close_all([member.session])

    def _open(self) -> None:
        x = self._rng.randrange(10**6)
        try:
            session = self._server.one(memory_bytes=256 << 20, cell_wall_time=2)
            started = session.execute(_START.replace("{x}", str(x)))
        except Refused as refused:
            self._felt.done[refused.reason] += 1
            if refused.reason not in KILLED | {"SESSIONS_FULL", "WORKER_DIED"}:
                self._untrue("open", str(refused))
            return
        self._felt.done["open"] += 1
        if started.end != "completed":
            self._untrue("open", started.texts)
        self._members.append(Member(session, x))

    def _ask(self, member: Member, code: str, wanted: str) -> None:
        cell = member.session.execute(code)
        if (cell.end, cell.value) != ("completed", wanted):
            self._untrue(code, f"{cell.end} {cell.value} instead of {wanted}: {cell.texts}")
        if member.over:
            self._untrue(code, "a session that had ended answered")

    def _count(self, member: Member) -> None:
        n = self._rng.randrange(1, 100)
        self._ask(member, f"x += {n}; put(); x", str(member.x + n))
        member.x += n

    def _look(self, member: Member) -> None:
        self._ask(member, "(x, open('x').read())", repr((member.x, str(member.x))))

    def _raise(self, member: Member) -> None:
        cell = member.session.execute("x, 1 / 0")
        if cell.end != "raised" or cell.error[0] != "ZeroDivisionError":
            self._untrue("raise", f"{cell.end} {cell.texts}")

    def _checkpoint(self, member: Member) -> None:
        if len(member.points) < 4:
            member.points[member.session.checkpoint()] = member.x

    def _rollback(self, member: Member) -> None:
        if member.points:
            point = self._rng.choice(list(member.points))
            member.session.rollback(point)
            member.x, member.over, member.busy = member.points[point], False, False
            self._look(member)

    def _drop(self, member: Member) -> None:
        if member.points:
            point = self._rng.choice(list(member.points))
            del member.points[point]
            member.session.drop(point)

    def _fork(self, member: Member) -> None:
        if len(self._members) < MOST_OPEN:
            point = self._rng.choice(["", *member.points])
            [made] = member.session.fork(checkpoint=point)
            self._members.append(Member(made, member.points.get(point, member.x)))
            self._look(self._members[-1])

    def _close(self, member: Member) -> None:
        self._forget(member)

    def _end(self, member: Member) -> None:
        code, ends = self._rng.choice(list(ENDS.items()))
        cell = member.session.execute(code, wall_s=0.5 if "while True: pass" in code else 0)
        if cell.end not in ends:
            self._untrue(code, f"{cell.end} {cell.raw.detail} {cell.texts}")
        self._felt.done[cell.end] += 1
        member.over = cell.over
        member.busy = member.busy or "Popen" in code or "fork" in code


class Killer:
    """Kills what belongs to sessions, from outside."""

    def __init__(self, server: Server, seed: int) -> None:
        self._server, self._rng = server, random.Random(seed)

    def strike(self) -> str:
        """Kills a marked process, one time in eight its keeper; says which."""
        marked = []
        for process in descendants(self._server.pid):
            try:
                if Path(f"/proc/{process}/comm").read_text() == "soak-live\n":
                    marked.append(process)
            except OSError:
                continue
        if not marked:
            return "nothing"
        pid, what = self._rng.choice(marked), "session or checkpoint"
        try:
            if self._rng.randrange(8) == 0:
                stat = Path(f"/proc/{pid}/stat").read_text()
                parent = int(stat.rpartition(")")[2].split()[1])
                if Path(f"/proc/{parent}/comm").read_text() != "soak-live\n":
                    pid, what = parent, "keeper"
            os.kill(pid, signal.SIGKILL)
        except OSError:
            return "nothing"
        return what


@dataclass(frozen=True)
class Holding:
    """What the server holds of the machine."""

    mib: float
    processes: int
    descriptors: int
    mounts: int
    groups: int


def _pss(folder: Path) -> int:
    """Memory of a process, shared pages divided by who shares them, in bytes."""
    for line in (folder / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def holding(pid: int) -> Holding:
    """Counted over the server's whole tree."""
    total: Counter[str] = Counter()
    spaces: dict[str, int] = {}
    for process in (pid, *descendants(pid)):
        folder = Path(f"/proc/{process}")
        try:
            total["pss"] += _pss(folder)
            total["files"] += len(list((folder / "fd").iterdir()))
            total["processes"] += 1
            space = os.readlink(folder / "ns/mnt")  # noqa: PTH115  # no real path
            if space not in spaces:
                spaces[space] = (folder / "mountinfo").read_text().count("\n")
        except OSError:
            continue
    groups = residue.count(pid).groups
    return Holding(
        total["pss"] / 2**20, total["processes"], total["files"], sum(spaces.values()), groups
    )


def play(  # noqa: C901  # callers, killer, clock

    server: Server, *, seconds: float, sessions: int, killer_s: float, callers: int = CALLERS,
    seed: int = 7,
) -> Felt:  # fmt: skip
    """Callers at once, until the time is up and so many sessions were opened."""
    felt, over, killed = Felt(), threading.Event(), threading.Event()
    if killer_s:
        killed.set()

    def call(number: int) -> None:
        caller = Caller(server, seed * 1000 + number, felt, killed)
        try:
            while not over.is_set():
                caller.step()
            caller.close()
        except Exception as error:  # noqa: BLE001  # booked as untrue
            felt.untrue.append(f"a caller broke: {error!r}"[:600])

    def kill() -> None:
        killer = Killer(server, seed)
        while not over.wait(killer_s):
            felt.done[f"killed {killer.strike()}"] += 1

    threads = [threading.Thread(target=call, args=(n,)) for n in range(callers)]
    if killer_s:
        threads.append(threading.Thread(target=kill))
    for thread in threads:
        thread.start()
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s or felt.done["open"] + felt.done["fork"] < sessions:
        time.sleep(0.1)
        if not any(thread.is_alive() for thread in threads[:callers]):
            break
    over.set()
    for thread in threads:
        thread.join(120)
        if thread.is_alive():
            felt.untrue.append("a caller hangs")
    return felt


def run(arguments: list[str]) -> None:
    """Plays, interval by interval; prints a line for each, then slopes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--sessions", type=int, default=0)
    parser.add_argument("--interval-s", type=float, default=30.0)
    parser.add_argument("--killer-s", type=float, default=2.0, help="0: nobody kills")
    options = parser.parse_args(arguments)
    intervals = max(1, int(options.minutes * 60 / options.interval_s))
    series: dict[str, list[tuple[float, float]]] = {}
    total, untrue, began_s = Counter[str](), 0, time.monotonic()
    with wire.sandbox() as server:
        print("  min     MiB procs files mounts groups   moves  opened untrue  p50 ms  p99 ms")
        for number in range(intervals):
            felt = play(
                server,
                seconds=min(options.interval_s, options.minutes * 60),
                sessions=options.sessions // intervals,
                killer_s=options.killer_s,
                seed=number,
            )
            time.sleep(2)
            now, hours = holding(server.pid), (time.monotonic() - began_s) / 3600
            for name in ("mib", "processes", "descriptors", "mounts", "groups"):
                series.setdefault(name, []).append((hours, getattr(now, name)))
            ordered = sorted(felt.seconds) or [0.0]
            p50, p99 = statistics.median(ordered), ordered[int(0.99 * len(ordered))]
            series.setdefault("p50 ms", []).append((hours, p50 * 1e3))
            opened = felt.done["open"] + felt.done["fork"]
            print(
                f"{hours * 60:5.1f} {now.mib:7.1f} {now.processes:5d} {now.descriptors:5d} "
                f"{now.mounts:6d} {now.groups:6d} {len(felt.seconds):7d} {opened:7d} "
                f"{len(felt.untrue):6d} {p50 * 1e3:7.2f} {p99 * 1e3:7.1f}",
                flush=True,
            )
            for line in felt.untrue[: max(0, UNTRUE_SHOWN - untrue)]:
                print("   untrue", line, flush=True)
            total.update(felt.done)
            untrue += len(felt.untrue)
    print("\n                  slope an hour   second third   last third")
    for name, points in series.items():
        third = len(points) // 3
        if third:
            before, after = (
                statistics.median(value for _, value in part)
                for part in (points[third : 2 * third], points[2 * third :])
            )
            print(f"{name:16s} {slope(points[third:]):14.2f} {before:14.1f} {after:12.1f}")
    print(f"untrue: {untrue}; done: {dict(total.most_common())}")
