r"""The pairs by class: what a grader makes of each class, and what `grade` may not fall below.

`python -m bench.math_pairs` prints the table of `assay.math.grade`; with `write` it keeps the
figures of this run in tests/golden/math_pairs/floors.json, which tests/golden/test_math_pairs.py
holds. Floors only rise and the list of wrong acceptances only shrinks, unless `--lower` is given.
Of sealed pairs nothing but totals and ids is ever printed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass

from assay.math import grade
from bench.math_rows import PAIRS, Row, pairs

FLOORS = PAIRS / "floors.json"
PARTS = ("open", "sealed")
TIMEOUT_S = 60.0
"""A pair's, wide enough for a machine that is busy."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was made of a set of pairs.

    Attributes:
        precision: share of the accepted pairs that are equal, in 0..1; 1 where none is accepted.
        recall: share of the equal pairs that are accepted, in 0..1.
        hard: the same of the hard ones.
        wrong: how many unequal pairs were accepted.
    """

    precision: float
    recall: float
    hard: float
    wrong: int

    @classmethod
    def of(cls, rows: Sequence[Row], accepted: Sequence[bool]) -> Figures:
        """Of pairs and whether each was accepted; a share of nothing is 1."""
        both = list(zip(rows, accepted, strict=True))
        right = [yes for row, yes in both if row.right]
        hard = [yes for row, yes in both if row.right and row.hard]
        wrong = sum(yes and not row.right for row, yes in both)
        found = sum(right)
        return cls(share(found, found + wrong), share(found, len(right)), mean(hard), wrong)


def share(part: int, whole: int) -> float:
    """A part of a whole; 1 of nothing."""
    return part / whole if whole else 1.0


def mean(values: Sequence[bool]) -> float:
    """The share of those that hold."""
    return share(sum(values), len(values))


def by_class(rows: Sequence[Row], accepted: Sequence[bool]) -> dict[str, Figures]:
    """The figures of each class in the order of the rows, and of `all`."""
    both = list(zip(rows, accepted, strict=True))
    found = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        part = [(row, yes) for row, yes in both if row.kind == kind]
        found[kind] = Figures.of([row for row, _ in part], [yes for _, yes in part])
    return found | {"all": Figures.of(rows, accepted)}


def print_table(rows: Sequence[Row], accepted: dict[str, Sequence[bool]]) -> None:
    """By class, for each grader: precision, recall, recall of the hard ones, wrongly accepted."""
    tables = {name: by_class(rows, said) for name, said in accepted.items()}
    width = 28
    print(f"{'':18s}" + "".join(f"{name:>{width}s}" for name in tables))
    print(f"{'':18s}" + f"{'prec.':>9s}{'recall':>7s}{'hard':>7s}{'FP':>5s}" * len(tables))
    for kind in next(iter(tables.values())):
        line = f"{kind:18s}"
        for table in tables.values():
            one = table[kind]
            line += f"{one.precision:9.2%}{one.recall:7.1%}{one.hard:7.1%}{one.wrong:5d}"
        print(line)


def judged(row: Row) -> bool:
    """Whether `grade` accepts a pair; the question goes along where it has one.

    Raises:
        RuntimeError: there is no judgement, but a fault.
    """
    outcome = grade(row.response, row.gold, timeout_s=TIMEOUT_S, prompt=row.question or None)
    reward = outcome.reward_or(None)
    if reward is None:
        raise RuntimeError(f"{row.name}: no judgement: {outcome}")
    return reward > 0


def measured() -> tuple[list[Row], list[bool]]:
    """All pairs, open and sealed, and whether `grade` accepts them."""
    rows = [row for part in PARTS for row in pairs(part)]
    return rows, [judged(row) for row in rows]


def wrongly_accepted(rows: Sequence[Row], accepted: Sequence[bool]) -> list[str]:
    """The names of the unequal pairs that were accepted, sorted."""
    both = zip(rows, accepted, strict=True)
    return sorted(row.name for row, yes in both if yes and not row.right)


def floors() -> tuple[dict[str, float], list[str]]:
    """The recall by class that is held, and the wrong acceptances that are known."""
    kept = json.loads(FLOORS.read_text())
    return kept["recall"], kept["accepted"]


def write(rows: Sequence[Row], accepted: Sequence[bool], *, lower: bool) -> None:
    """Keeps the figures; without `lower` no floor falls and nothing joins the known ones."""
    recall = {kind: round(one.recall, 4) for kind, one in by_class(rows, accepted).items()}
    wrong = wrongly_accepted(rows, accepted)
    if FLOORS.exists() and not lower:
        before, known = floors()
        recall = {kind: max(value, before.get(kind, 0.0)) for kind, value in recall.items()}
        wrong = sorted(set(wrong) & set(known))
    FLOORS.write_text(json.dumps({"recall": recall, "accepted": wrong}, indent=1) + "\n")


def main() -> None:
    """Prints the table of `grade`; writes the floors when asked to."""
    parser = argparse.ArgumentParser("bench.math_pairs", description=__doc__)
    parser.add_argument("action", nargs="?", choices=["print", "write"], default="print")
    parser.add_argument("--lower", action="store_true", help="floors may fall, and the list grow")
    asked = parser.parse_args()
    rows, accepted = measured()
    print_table(rows, {"assay.math grade": accepted})
    if asked.action == "write":
        write(rows, accepted, lower=asked.lower)


if __name__ == "__main__":
    main()
