"""Claims of papers, each with the run that could show it.

    python -m experiments                       the contests of all methods
    python -m experiments METHOD --OPTION ...   one of them; `--help` lists its options
    python -m experiments claim                 all claims, and what is recorded of them
    python -m experiments claim NAME ...        runs what they need and is not there yet

What a claim is: experiments/claim.py. Pages are written by `scripts/claims_doc.py`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.common import print_machine

from assay.kit.runs import environment
from experiments import pages, records

HERE = Path(__file__).parent
CONTESTS = tuple(sorted(path.parent.name for path in HERE.glob("*/contest.py")))


def main(arguments: list[str]) -> int:
    """Runs what is named; 2 for what is not known."""
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(__doc__)
        print("Contests:", ", ".join(CONTESTS))
        return 0
    name, *words = arguments
    if name == "claim":
        return claim(words)
    if name not in CONTESTS:
        print(f"experiments: no contest is called {name!r}; known: {', '.join(CONTESTS)}")
        return 2
    if "--help" not in words:
        print_machine()
    importlib.import_module(f"experiments.{name}.contest").run(words)
    return 0


def claim(words: Sequence[str]) -> int:
    """Lists claims, or runs some; 2 for a name that none has."""
    parser = argparse.ArgumentParser(prog="experiments claim")
    parser.add_argument("names", nargs="*", help="of claims, or of methods for all of theirs")
    parser.add_argument("--out", type=Path, default=Path("runs/experiments"))
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, a core each")
    parser.add_argument("--seeds", type=int, default=0, help="fewer than the claim needs")
    parser.add_argument(
        "--record", action="store_true", help="into experiments/METHOD/results.json"
    )
    chosen = parser.parse_args(words)
    known = {
        one.name: (name, one) for name in records.methods() for one in records.method(name).CLAIMS
    }
    if not chosen.names:
        for name, one in known.values():
            row = pages.Row(one, records.recorded(name))
            print(f"{one.name:36}{row.verdict:12}{pages.said(row):32}{one.seeds:4} seeds")
        return 0
    wanted = [
        (name, one)
        for name, one in known.values()
        if name in chosen.names or one.name in chosen.names
    ]
    missing = set(chosen.names) - {name for name, _ in wanted} - {one.name for _, one in wanted}
    if missing:
        print(f"experiments: no claim is called {min(missing)!r}; known: {', '.join(known)}")
        return 2
    print_machine()
    environment.calm()
    for name in dict.fromkeys(name for name, _ in wanted):
        some = [one for of, one in wanted if of == name]
        runs = records.carry_out(name, some, chosen.out / name, chosen.jobs, chosen.seeds)
        for one in some:
            row = pages.Row(one, runs)
            print(f"{one.name}: {pages.said(row)}, {row.verdict}")
        if chosen.record:
            print(f"written: {records.record(name, runs)}")
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a pipe is text too
    sys.exit(main(sys.argv[1:]))
