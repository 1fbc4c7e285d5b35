"""How soon canaries notice a swapped judge, and how often they alarm for nothing.

The server's own CanaryWatch looks at 200 rows. A simulated judge has an opinion on each row, right
with its accuracy, and errs from it in each look with the chance `noise`. It is watched for
`--before` looks after its reference, then another with an opinion of its own takes its place. Said
before the first run: of a judge of accuracy 0.9 swapped for one of 0.8, at a noise of 0.05, at
least 95 % of runs alarm within 500 canaries; without a swap, at most 1 % ever alarm in 5,000.

Then real ones: what `math` accepts of 200 rows of ../shared/data/math_equiv_dev.jsonl.gz that all
judge, swapped for what another verifier of the same server does. Intervals are Clopper and
Pearson's, 95 %.

    python -m bench canary [--runs 1000] [--before 1000]
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Mapping, Sequence

from assay.clients.reward import RewardClient
from assay.clients.services import EmbeddedServices
from assay.clients.types import Item
from assay.kit.runs.stats import clopper_pearson
from assay.reward_server.canaries import REFERENCE, CanaryWatch
from assay.reward_server.domain import Candidate, VerifierExample, VerifierItem
from assay.reward_server.profiles.model import CanaryRow
from bench.reliability import equivalences

ROWS = 200
WITHIN = 500
QUIET_LOOKS = 5_000
_MOST_AFTER = 5_000
_VERDICTS = ("correct", "incorrect")
_SWAPS = ((0.9, 0.6, 0.05), (0.9, 0.8, 0.05), (0.9, 0.9, 0.05), (0.9, 0.9, 0.0), (0.7, 0.7, 0.05))
_QUIET = ((0.9, 0.0), (0.9, 0.05), (0.7, 0.2))
_OTHERS = ("exact", "match", "math-verify")

Verdicts = Sequence[str]
Judge = Callable[[int], str]


def run(arguments: list[str]) -> None:
    """Runs all of it, and prints a line for each."""
    parser = argparse.ArgumentParser(prog="bench canary", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--before", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(f"{ROWS} rows, reference of {REFERENCE} looks, {options.runs} runs, seed {options.seed}")
    for accuracy, noise in _QUIET:
        alarms = sum(
            not_quiet(accuracy, noise, random.Random(f"{options.seed}-{number}"))
            for number in range(options.runs)
        )
        said = share(alarms, options.runs)
        print(f"no swap, accuracy {accuracy}, noise {noise}: {said} alarm in {QUIET_LOOKS} looks")
    for first, second, noise in _SWAPS:
        delays = [
            swapped(first, second, noise, options.before, random.Random(f"{options.seed}-{number}"))
            for number in range(options.runs)
        ]
        print(f"accuracy {first} -> {second}, noise {noise}: {told(delays)}")
    for name, delays in real_swaps(options.runs, options.before, options.seed).items():
        print(f"math -> {name}: {told(delays)}")


def share(count: int, of: int) -> str:
    """A share in per cent, with its interval."""
    low, high = clopper_pearson(count, of)
    return f"{100 * count / of:.1f} % ({100 * low:.1f} to {100 * high:.1f}) of {of}"


def told(delays: Sequence[int]) -> str:
    """What the delays of runs say; 0 is an alarm before the swap."""
    early = sum(not delay for delay in delays)
    found = sorted(delay for delay in delays if delay)
    soon = sum(delay <= WITHIN for delay in found)
    ninth = found[len(found) * 9 // 10 - 1] if found else 0
    return (
        f"{share(soon, len(found))} noticed within {WITHIN} canaries, median "
        f"{statistics.median(found):.0f}, nine of ten {ninth}; {early} alarmed before"
    )


def judge_of(accuracy: float, noise: float, truth: Verdicts, rng: random.Random) -> Judge:
    """A simulated judge."""
    opinions = [one if rng.random() < accuracy else _other(one) for one in truth]

    def judge(place: int) -> str:
        return _other(opinions[place]) if rng.random() < noise else opinions[place]

    return judge


def _other(verdict: str) -> str:
    return _VERDICTS[verdict == _VERDICTS[0]]


def watch_of(truth: Verdicts, rng: random.Random) -> CanaryWatch:
    """A watch over rows of these known verdicts."""
    nothing = VerifierItem(Candidate(""))
    return CanaryWatch([CanaryRow(VerifierExample(nothing, one)) for one in truth], rng)


def look(watch: CanaryWatch, judge: Judge, looks: int) -> int:
    """Has rows looked at until the alarm; the number of looks, 0 for no alarm."""
    for number in range(1, looks + 1):
        place = watch.draw()
        watch.take(place, judge(place))
        if watch.alarm:
            return number
    return 0


def not_quiet(accuracy: float, noise: float, rng: random.Random) -> bool:
    """Whether a judge that stays the same raises an alarm."""
    truth = [rng.choice(_VERDICTS) for _ in range(ROWS)]
    judge = judge_of(accuracy, noise, truth, rng)
    return bool(look(watch_of(truth, rng), judge, ROWS + REFERENCE + QUIET_LOOKS))


def swapped(first: float, second: float, noise: float, before: int, rng: random.Random) -> int:
    """Looks until a swap is noticed; 0 where the alarm came before it."""
    truth = [rng.choice(_VERDICTS) for _ in range(ROWS)]
    judges = [judge_of(accuracy, noise, truth, rng) for accuracy in (first, second)]
    return delay(watch_of(truth, rng), judges[0], judges[1], before)


def delay(watch: CanaryWatch, first: Judge, second: Judge, before: int) -> int:
    """Looks of the second judge until the alarm; 0 where it came before."""
    if look(watch, first, len(watch.rows) + REFERENCE + before):
        return 0
    return look(watch, second, _MOST_AFTER) or _MOST_AFTER


def real_swaps(runs: int, before: int, seed: int) -> Mapping[str, list[int]]:
    """The delays for each other verifier, from one table of verdicts."""
    rows = random.Random(seed).sample(equivalences(), 3 * ROWS)
    truth = [_VERDICTS[not row.right] for row in rows]
    with EmbeddedServices(["reward"]) as services, RewardClient(services.address) as client:
        table = {
            name: [
                "fault" if result.reward is None else _VERDICTS[result.reward < 0.5]
                for result in client.score(
                    [Item(row.response, row.gold, verifier=name) for row in rows]
                )
            ]
            for name in ("math", *_OTHERS)
        }
    faulted = {n for said in table.values() for n, one in enumerate(said) if one == "fault"}
    judged = [place for place in range(len(rows)) if place not in faulted][:ROWS]
    truth = [truth[place] for place in judged]
    table = {name: [said[place] for place in judged] for name, said in table.items()}
    for name in _OTHERS:
        changed = sum(one != other for one, other in zip(table["math"], table[name], strict=True))
        print(f"math and {name} differ on {share(changed, len(truth))} rows")
    return {
        name: [
            delay(
                watch_of(truth, random.Random(f"{seed}-{number}")),
                table["math"].__getitem__,
                table[name].__getitem__,
                before,
            )
            for number in range(runs)
        ]
        for name in _OTHERS
    }
