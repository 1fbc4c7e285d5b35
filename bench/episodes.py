"""1,000 episodes of `python` at once, their sessions killed at random: who is told what.

    python -m bench episodes --episodes 1000

Each episode has a script of a policy that knows what must come: it keeps a number in its session,
changes it from call to call, and answers with what the last call said. One in eight ends its
session itself and begins anew, one in eight answers wrongly on purpose. Meanwhile the processes of
sessions, now and then with the keeper of a whole family, are ended by SIGKILL.

What must hold: every episode that was started is judged or a fault; one that is judged has the
reward of its script; a killed session is a fault and never a zero.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.clients.services import EmbeddedServices
from assay.environments import Episode, EpisodeLimits, Reply, ToolCall
from assay.environments.services import EpisodeSandbox, RewardServices, open_sandbox
from assay.environments.shipped.python import PythonEnvironment, PythonSettings
from assay.sandbox.jail.monitor import descendants

_NAME = "ep-live"
_MARK = f"import ctypes; ctypes.CDLL(None).prctl(15, b'{_NAME}', 0, 0, 0)"
_CALLS = 6
_KEEPER_EVERY = 8


@dataclass(slots=True)
class Book:
    """What became of the episodes.

    Attributes:
        endings: by name; `faults` by reason.
        untrue: sentences on each that was not told the truth.
        killed: processes that were ended.
    """

    started: int = 0
    judged: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    untrue: list[str] = field(default_factory=list)
    killed: int = 0
    open_at_once: int = 0
    call_s: list[float] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Every episode is in the book once, and none was told an untruth."""
        return self.started == self.judged + self.faults.total() and not self.untrue


class Policy:
    """A script that knows what its session must say.

    Attributes:
        reward: that its answer must earn.
    """

    def __init__(self, number: int, rng: random.Random) -> None:
        self.reward = 0.0 if number % 8 == 3 else 1.0
        self._dies_at = rng.randrange(1, _CALLS - 1) if number % 8 == 5 else 0
        self._rng = rng
        self._value = rng.randrange(10**6)
        self._new = True
        self.expected = str(self._value)

    def code(self, turn: int) -> str:
        """The next call; `expected` is what it must be answered."""
        if turn == self._dies_at and turn:
            self._new = True
            self.expected = ""
            return "import os; os._exit(1)"
        add = self._rng.randrange(1, 10**6)
        self._value += add
        self.expected = str(self._value)
        if self._new:
            self._new = False
            return f"x = {self._value - add}\nx += {add}\nx"
        return f"import random\nx += {add}\nx"

    def answer(self, told: str) -> str:
        """What it says in the end: the last call's answer, or on purpose something else."""
        return told if self.reward else f"{told} or so"

    def reference(self, seed: int, number: int) -> str:
        """The number that its calls come to, computed beforehand by a twin."""
        twin = Policy(number, random.Random(seed))
        for turn in range(_CALLS):
            twin.code(turn)
        return twin.expected


async def one(
    number: int,
    seed: int,
    sandbox: EpisodeSandbox,
    rewards: RewardServices,
    book: Book,
    *,
    kind: type[PythonEnvironment] = PythonEnvironment,
) -> None:
    """An episode, from its beginning into the book."""
    policy = Policy(number, random.Random(seed))
    settings = PythonSettings(memory_mb=96, setup=_MARK, cell_s=120.0, cpu_s=240.0, wait_s=1800.0)
    episode = Episode(kind(settings, sandbox, rewards), EpisodeLimits())
    reference = policy.reference(seed, number)
    row = {"prompt": "Add.", "reference": reference, "verifier": "exact"}
    book.started += 1
    observation = await episode.begin(row)
    told, turn, pauses = "", 0, random.Random(-seed)
    while observation is not None:
        if turn < _CALLS:
            call = ToolCall("python", {"code": policy.code(turn)})
            expected = policy.expected
            observation = await episode.take(Reply("", calls=(call,)))
            told = episode.steps[-1].calls[-1].result.text if episode.steps[-1].calls else ""
            if observation is not None and expected and told != expected:
                book.untrue.append(f"episode {number}: a call said {told[:200]!r}, not {expected}")
            turn += 1
            await asyncio.sleep(pauses.random() * 0.2)
        else:
            final = policy.answer(told)
            observation = await episode.take(Reply(final, answer=final))
    book.call_s += [called.seconds for step in episode.steps for called in step.calls]
    outcome = await episode.end()
    book.endings[str(outcome.ending)] += 1
    if outcome.result.fault is not None:
        book.faults[outcome.result.fault.reason] += 1
        if outcome.result.reward is not None or outcome.trains:
            book.untrue.append(f"episode {number}: a fault that trains: {outcome}")
        return
    book.judged += 1
    if outcome.result.reward != policy.reward or not outcome.trains:
        book.untrue.append(
            f"episode {number}: reward {outcome.result.reward}, not {policy.reward}: {outcome}"
        )


def _live(pid: int) -> list[int]:
    found = []
    for process in descendants(pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{process}/comm").read_text() == f"{_NAME}\n":
                found.append(process)
    return found


def _kill(pid: int, book: Book, over: threading.Event, every_s: float, rng: random.Random) -> None:
    while not over.wait(every_s * (0.5 + rng.random())):
        live = _live(pid)
        book.open_at_once = max(book.open_at_once, len(live))
        if not live:
            continue
        victim = rng.choice(live)
        with contextlib.suppress(OSError, ValueError):
            if rng.randrange(_KEEPER_EVERY) == 0:
                stat = Path(f"/proc/{victim}/stat").read_text()
                parent = int(stat.rpartition(")")[2].split()[1])
                keeps = Path(f"/proc/{parent}/comm").read_text() != f"{_NAME}\n"
                victim = parent if keeps and parent in descendants(pid) else victim
            os.kill(victim, signal.SIGKILL)
            book.killed += 1


def play(
    count: int,
    *,
    kill_every_s: float,
    seed: int = 7,
    places: int = 0,
    kind: type[PythonEnvironment] = PythonEnvironment,
) -> Book:
    """So many episodes at once over services of their own."""
    book, over = Book(), threading.Event()
    flags = ["--languages", "python", "--slots", "2", "--log-level", "ERROR"]
    if places:
        flags += ["--max-sessions", str(places)]
    with (
        EmbeddedServices(("sandbox", "reward"), arguments={"sandbox": flags}) as services,
        open_sandbox(services.address_of("sandbox")) as sandbox,
        RewardServices(services.address, timeout_s=600.0) as rewards,
    ):
        rng = random.Random(seed)
        killing = (services.pid("sandbox"), book, over, kill_every_s, rng)
        killer = threading.Thread(target=_kill, args=killing)
        killer.start()

        async def every() -> None:
            seeds = range(seed * count, (seed + 1) * count)
            await asyncio.gather(
                *(one(n, own, sandbox, rewards, book, kind=kind) for n, own in enumerate(seeds))
            )

        try:
            asyncio.run(every())
        finally:
            over.set()
            killer.join()
    return book


def run(arguments: Sequence[str]) -> None:
    """Plays, and prints the book."""
    parser = argparse.ArgumentParser(prog="python -m bench episodes", description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--kill-every-s", type=float, default=0.5)
    parser.add_argument("--places", type=int, default=0, help="0: as many as fit")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    began_s = time.monotonic()
    book = play(
        options.episodes, kill_every_s=options.kill_every_s, seed=options.seed,
        places=options.places,
    )  # fmt: skip
    print(f"{book.started} episodes started at once, in {time.monotonic() - began_s:.0f} s")
    print(f"{book.killed} processes of sessions killed; at most {book.open_at_once} seen alive")
    print(f"{book.judged} judged + {book.faults.total()} faults {dict(book.faults)}")
    print(f"endings: {dict(book.endings)}")
    ordered = sorted(book.call_s) or [0.0]
    p99 = ordered[int(0.99 * len(ordered))]
    print(f"{len(ordered)} calls: p50 {statistics.median(ordered) * 1e3:.0f} ms, "
          f"p99 {p99 * 1e3:.0f} ms")  # fmt: skip
    print(f"untrue: {len(book.untrue)}")
    for line in book.untrue[:20]:
        print("  ", line)
    if not book.whole:
        raise SystemExit(1)
