r"""`assay.math` as a library, beside math-verify and verl's scorer: the same rows, in one run.

Every contestant grades real responses (labelled pairs, GSM8K solutions of models, mathematics of
Rho-1) in a child process of its own (`math_peers`); they take turns every 100 rows, and a pair past
10 s is a hang. Then fresh processes, by turns: how long from the start of Python to the first
verdict, the import included.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from itertools import combinations

from bench.math_reward import ROOT, TURN, Contestant, Tally, grade_part, peer_folder
from bench.math_rows import DATA, Row, labelled, read

NAMES = ("assay.math grade", "assay.math drop-in", "math-verify, best", "verl math_dapo")
COLD = {
    "assay.math grade": "from assay.math import grade\nassert grade(R, G).reward == 1.0",
    "assay.math grade, its worker": (
        "from assay.math import grade\n"
        r"assert grade(r'\boxed{\sum_{k=1}^{n} k}', r'\frac{n(n+1)}{2}', timeout_s=60).reward"
    ),
    "assay.math drop-in": (
        "from assay.math.math_verify import parse, verify\nassert verify(parse(G), parse(R))"
    ),
    "math-verify": "from math_verify import parse, verify\nassert verify(parse(G), parse(R))",
}
PAIR = r"R, G = r'So it is $\boxed{\frac{1}{2}}$.', '$0.5$'"
SAMPLE = 600


def sampled(name: str, label: str) -> list[Row]:
    """Some rows of a file of responses of models."""
    rows = [row for row in read(f"{name}.jsonl.gz") if "gold" in row and label in row]
    picked = random.Random(0).sample(rows, min(SAMPLE, len(rows)))
    return [Row(str(r["gold"]), str(r["response"]), str(r[label]) == "True") for r in picked]


def sets() -> dict[str, list[Row]]:
    """Rows by what they are."""
    return {
        "labelled pairs": random.Random(0).sample(labelled("math_equiv_dev.jsonl.gz"), 2 * SAMPLE),
        "GSM8K, solutions of models": sampled("gsm8k_model_solutions", "label"),
        "Rho-1, responses": sampled("rho1_outputs", "rule_label"),
    }


def take_turns(rows: list[Row], contestants: list[Contestant]) -> dict[str, Tally]:
    """Every contestant over every row, twice: the first time and again."""
    tallies = {one.name: Tally.empty(len(rows)) for one in contestants}
    for _ in range(2):
        for tally in tallies.values():
            tally.cpu_ms.append(0.0)
        for start in range(0, len(rows), TURN):
            part = range(start, min(start + TURN, len(rows)))
            for one in contestants:
                grade_part(one, rows, tallies[one.name], part)
    return tallies


def print_set(name: str, rows: list[Row], tallies: dict[str, Tally]) -> None:
    """Times, agreement with the labels, and of each two with each other."""
    print(f"\nmath-library: {name}, {len(rows)} rows")
    print(
        f"{'':22s} {'as labelled':>11s} {'false +':>7s} {'none':>5s} {'hangs':>5s} "
        f"{'median ms':>9s} {'p99':>8s} {'again':>8s}"
    )
    for who, tally in tallies.items():
        said = [bool(right) for right in tally.right]
        agree = sum(a == row.right for a, row in zip(said, rows, strict=True)) / len(rows)
        wrong = sum(a and not row.right for a, row in zip(said, rows, strict=True))
        none = sum(right is None for right in tally.right)
        first = sorted(ms[0] for ms in tally.ms if ms)
        again = [ms[1] for ms in tally.ms if len(ms) > 1]
        print(
            f"{who:22s} {agree:11.1%} {wrong:7d} {none:5d} {sum(tally.hung):5d} "
            f"{statistics.median(first):9.3f} {first[int(len(first) * 0.99)]:8.2f} "
            f"{statistics.median(again):8.3f}"
        )
    for one, other in combinations(tallies, 2):
        pairs = zip(tallies[one].right, tallies[other].right, strict=True)
        same = sum(bool(a) == bool(b) for a, b in pairs) / len(rows)
        print(f"  {one} and {other} agree on {same:.1%}")


def print_cold(rounds: int) -> None:
    """From the start of a process to its first verdict."""
    seconds: dict[str, list[float]] = {name: [] for name in COLD}
    bare: list[float] = []
    for _ in range(rounds):
        for name, code in COLD.items():
            seconds[name].append(_run(f"{PAIR}\n{code}"))
        bare.append(_run("pass"))
    print(f"\nmath-library: a fresh process to its first verdict, wall s, medians of {rounds}")
    print(f"{'Python alone':30s} {statistics.median(bare):6.3f}")
    for name, found in seconds.items():
        print(f"{name:30s} {statistics.median(found):6.3f}")


def _run(code: str) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-c", code]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return time.perf_counter() - started


def run(arguments: list[str]) -> None:
    """Prints all tables."""
    parser = argparse.ArgumentParser("bench math-library", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of fresh processes")
    asked = parser.parse_args(arguments)
    print_cold(asked.rounds)
    if DATA.is_dir():
        with peer_folder() as peers:
            contestants = [Contestant(name, peers) for name in NAMES]
            present = [one for one in contestants if one.start()]
            absent = [one.name for one in contestants if one not in present]
            print(f"absent: {', '.join(absent) or 'none'}")
            for name, rows in sets().items():
                print_set(name, rows, take_turns(rows, present))
            for one in contestants:
                one.stop()
                one.folder.cleanup()
    else:
        print("\nmath-library: no rows, the benchmark files are absent (expected ../shared/data)")
