"""What ranking a group from some of its comparisons errs by, against all of them.

Simulated judges compare responses of normal quality q: in each order the log-odds of the first are
sharpness * (q_first - q_second) + bias + noise, drawn anew for each order of each pair, and the two
orders are averaged as the service does. Against the round robin's scores, for each way of choosing
the comparisons, over groups of one size (the same tables for all ways):

    tau    Kendall's tau-b of the scores
    error  mean absolute difference of the scores
    truth  tau-b with the qualities; the round robin's own is in the first line of each size

Ways: `swiss R` is the service's, R rounds; `drawn` as many pairs drawn at random, joined by a ring,
and filled in by the same strengths; `merge` merge sort's comparisons (a response is better where
the chance is above 0.5), filled in likewise; `share` the comparisons of `swiss`, each response
scored by the mean of its own.

With `--model` a real one fills the tables: programs of `codet_humaneval_codegen16b_samples`, each
against each, by the template `preference@1` and the embedded engine, whatever their verdict mass.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import itertools
import json
import math
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from assay.genrm.domain import CandidatePair, ChatMessage, ResolvedJudgeSettings
from assay.genrm.driving import RequestBatcher, drive
from assay.genrm.engines import load_engine
from assay.genrm.engines.config import EngineConfig
from assay.genrm.judges import judge_pair
from assay.genrm.judges.numbers import sigmoid
from assay.genrm.judges.strengths import Pair, shares, strengths
from assay.genrm.judges.swiss import default_rounds, most_comparisons, swiss
from assay.genrm.templates import load_templates

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
PROGRAMS = "codet_humaneval_codegen16b_samples.jsonl.gz"
LONGEST_CHARS = 250
SIZES = (4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class SimulatedJudge:
    """How far a judge's log-odds follow quality; noise is a standard deviation."""

    name: str
    sharpness: float
    noise: float
    bias: float


JUDGES = (
    SimulatedJudge("clear", 3.0, 0.5, 0.5),
    SimulatedJudge("soft", 1.0, 0.5, 0.0),
    SimulatedJudge("soft, goes by the place", 1.0, 0.5, 1.5),
    SimulatedJudge("noisy", 3.0, 2.0, 1.5),
    SimulatedJudge("faint", 0.3, 0.3, 0.5),
)


@dataclass(frozen=True, slots=True)
class Table:
    """Every comparison of a group: the chance that the first wins; quality where it is known."""

    wins: Mapping[Pair, float]
    quality: Sequence[float] = ()


def simulated(judge: SimulatedJudge, size: int, dice: random.Random) -> Table:
    """A group that this judge has compared each with each."""
    quality = [dice.gauss(0, 1) for _ in range(size)]
    wins = {}
    for one, two in itertools.combinations(range(size), 2):
        margin = judge.sharpness * (quality[one] - quality[two])
        forward = sigmoid(margin + judge.bias + dice.gauss(0, judge.noise))
        reverse = 1 - sigmoid(-margin + judge.bias + dice.gauss(0, judge.noise))
        wins[one, two] = (forward + reverse) / 2
    return Table(wins, quality)


Schedule = Generator[list[Pair], Mapping[Pair, float], Mapping[Pair, float]]


def asked(schedule: Schedule, table: Table) -> dict[Pair, float]:
    """The comparisons that a schedule asks for."""
    pairs = next(schedule)
    try:
        while True:
            pairs = schedule.send({pair: table.wins[pair] for pair in pairs})
    except StopIteration as end:
        return dict(end.value)


def drawn(size: int, count: int, dice: random.Random) -> list[Pair]:
    """A ring and pairs drawn at random, `count` in all."""
    ring = {tuple(sorted((one, (one + 1) % size))) for one in range(size)}
    rest = [pair for pair in itertools.combinations(range(size), 2) if pair not in ring]
    return [*ring, *dice.sample(rest, count - len(ring))]  # type: ignore[list-item]  # of two


def merged(table: Table, size: int) -> dict[Pair, float]:
    """The comparisons of a merge sort."""
    made: dict[Pair, float] = {}

    def beats(one: int, two: int) -> bool:
        pair = (min(one, two), max(one, two))
        made[pair] = table.wins[pair]
        return (table.wins[pair] > 0.5) == (one < two)

    def ordered(some: list[int]) -> list[int]:
        if len(some) < 2:
            return some
        left, right = ordered(some[: len(some) // 2]), ordered(some[len(some) // 2 :])
        out = []
        while left and right:
            out.append(left.pop(0) if beats(left[0], right[0]) else right.pop(0))
        return [*out, *left, *right]

    ordered(list(range(size)))
    return made


def filled(size: int, wins: Mapping[Pair, float]) -> list[float]:
    """The service's scores from some comparisons."""
    return shares([1] * size, wins, strengths(size, wins))


def own_shares(size: int, wins: Mapping[Pair, float]) -> list[float]:
    """The mean of each response's own comparisons."""
    own: list[list[float]] = [[] for _ in range(size)]
    for (one, two), win in wins.items():
        own[one].append(win)
        own[two].append(1 - win)
    return [statistics.fmean(some) if some else 0.5 for some in own]


def kendall(a: Sequence[float], b: Sequence[float]) -> float:
    """Tau-b; 0 where one of them is all ties."""
    agree = alone_a = alone_b = 0
    for one, two in itertools.combinations(range(len(a)), 2):
        x, y = (a[one] > a[two]) - (a[one] < a[two]), (b[one] > b[two]) - (b[one] < b[two])
        agree, alone_a, alone_b = agree + x * y, alone_a + x * x, alone_b + y * y
    return agree / math.sqrt(alone_a * alone_b) if alone_a and alone_b else 0.0


def ways(size: int) -> dict[str, Callable[[Table, random.Random], tuple[list[float], int]]]:
    """Scores and number of comparisons of a table, by way."""
    found: dict[str, Callable[[Table, random.Random], tuple[list[float], int]]] = {}

    def by_swiss(rounds: int, table: Table, dice: random.Random) -> tuple[list[float], int]:
        wins = asked(swiss(size, rounds), table)
        return filled(size, wins), len(wins)

    usual_rounds = default_rounds(size)
    for rounds in sorted({2, usual_rounds - 1, usual_rounds, 2 * usual_rounds}):
        if rounds >= 2 and most_comparisons(size, rounds) < math.comb(size, 2):
            found[f"swiss {rounds}"] = partial(by_swiss, rounds)
    usual = most_comparisons(size, usual_rounds)
    if usual == math.comb(size, 2):
        usual = most_comparisons(size, usual_rounds - 1)

    def by_draw(table: Table, dice: random.Random) -> tuple[list[float], int]:
        wins = {pair: table.wins[pair] for pair in drawn(size, usual, dice)}
        return filled(size, wins), usual

    def by_merge(table: Table, dice: random.Random) -> tuple[list[float], int]:
        wins = merged(table, size)
        return filled(size, wins), len(wins)

    def by_share(table: Table, dice: random.Random) -> tuple[list[float], int]:
        wins = asked(swiss(size, max(2, usual // (size // 2))), table)
        return own_shares(size, wins), len(wins)

    found |= {"drawn": by_draw, "merge": by_merge, "share": by_share}
    return found


def report(title: str, size: int, tables: Iterable[Table], dice: random.Random) -> None:
    """Prints the errors of each way, means over the tables."""
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for table in tables:
        full = filled(size, table.wins)
        if table.quality:
            figures["round robin"]["truth"].append(kendall(full, table.quality))
        figures["round robin"]["made"].append(len(table.wins))
        for way, score in ways(size).items():
            scores, made = score(table, dice)
            found = figures[way]
            found["made"].append(made)
            found["tau"].append(kendall(scores, full))
            found["error"].append(
                statistics.fmean(abs(a - b) for a, b in zip(scores, full, strict=True))
            )
            if table.quality:
                found["truth"].append(kendall(scores, table.quality))
    print(f"\n{title}, groups of {size}")
    for way, found in figures.items():
        shown = [f"{name} {statistics.fmean(values):.3f}" for name, values in found.items()]
        print(f"  {way:12} " + ", ".join(shown), flush=True)


async def judged(model: str, groups: int, size: int) -> list[Table]:
    """Groups of programs, each compared with each by a model."""
    engine = load_engine("judge", EngineConfig(path=model))
    await engine.start()
    templates = load_templates()
    settings = ResolvedJudgeSettings("preference@1", least_mass=0.0)
    tables = []
    try:
        for prompt, programs in _programs(groups, size):
            asked_ = (ChatMessage("user", prompt),)
            asks = RequestBatcher(engine)
            pairs = list(itertools.combinations(range(size), 2))
            runs = [
                judge_pair(
                    CandidatePair(asked_, programs[a], programs[b]),
                    settings,
                    engine.info,
                    templates,
                )
                for a, b in pairs
            ]
            began_s = time.monotonic()
            found = await asyncio.gather(*(drive(run, asks) for run in runs))
            print(f"  a group of {size} in {time.monotonic() - began_s:.0f} s", flush=True)
            wins = [one.win_probability for one in found]
            tables.append(Table(dict(zip(pairs, wins, strict=True))))
            gaps = statistics.fmean(one.order_gap for one in found)
            print(f"  spread of w {statistics.pstdev(wins):.3f}, mean order gap {gaps:.3f}")
    finally:
        await engine.close()
    return tables


def _programs(groups: int, size: int) -> Iterable[tuple[str, list[str]]]:
    with gzip.open(DATA / PROGRAMS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        if groups == 0:
            return
        programs = sorted({one for one in row["samples"] if one.strip()}, key=lambda t: (len(t), t))
        programs = [one for one in programs if len(one) <= LONGEST_CHARS]
        if len(programs) >= size and len(row["prompt"]) <= LONGEST_CHARS:
            groups -= 1
            yield row["prompt"], programs[:: len(programs) // size][:size]


def run(arguments: Sequence[str]) -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench group-ranking")
    parser.add_argument("--groups", type=int, default=200, help="simulated groups of each kind")
    parser.add_argument("--model", default="", help="a folder, or smollm2-135m-instruct")
    parser.add_argument("--model-groups", type=int, default=4)
    parser.add_argument("--model-size", type=int, default=16)
    options = parser.parse_args(arguments)
    dice = random.Random(0)
    if options.model:
        tables = asyncio.run(judged(options.model, options.model_groups, options.model_size))
        report(options.model, options.model_size, tables, dice)
        return
    for judge in JUDGES:
        for size in SIZES:
            tables = [simulated(judge, size, dice) for _ in range(options.groups)]
            report(judge.name, size, tables, dice)
