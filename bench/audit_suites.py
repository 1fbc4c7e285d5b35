"""How many wrong programs test suites let pass: HumanEval, MBPP, and EvalPlus' versions of both.

    python -m bench audit-suites                      60 problems of each, 8 mutants a problem
    python -m bench audit-suites --problems 20 --mutants 4 --seed 1

The audit's own engine of mutation makes the programs: mutants of the reference solution that differ
from it, in the sandbox, on an input of EvalPlus' (base or plus) or on one that is drawn between
theirs. The same mutants are then judged by `code`, in the sandbox, under both suites: the set's own
(HumanEval's check function, MBPP's assertions as MBPP+ has them), and EvalPlus' (its base and plus
inputs against the reference solution, with its tolerance). Left out, and counted: problems whose
reference solution fails one of the two suites, and those without a mutant that is known to be
wrong.

Both suites judge one set of mutants, which inputs of EvalPlus' helped to find wrong: what a suite
of EvalPlus' lets pass is what drawn inputs alone found, so that its rate is the lowest that can be.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import random
import resource
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.audit.answers.truth import read_truth
from assay.audit.engines.mutation import Mutation
from assay.audit.graders import AuditTarget, Reachable, ServerAt, reached
from assay.audit.probes import AuditRow, Probe, Scale, Subject
from assay.kit.runs.stats import Estimate, mean_over_problems
from bench.math_rows import DATA

SETS = {"HumanEval": "humaneval_plus", "MBPP": "mbpp_plus"}
LIMITS = {"wall_time_s": 10.0, "cpu_time_s": 10.0}
AT_ONCE = 32
CHECK = """
import copy, math
_space = {{"__name__": "reference"}}
exec({right!r}, _space)
_right = _space[{name!r}]

def _same(got, want):
    if got == want:
        return True
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
        return len(got) == len(want) and all(map(_same, got, want))
    if isinstance(want, float) and isinstance(got, (int, float)):
        return math.isclose(got, want, rel_tol={relative}, abs_tol={absolute})
    return False

def check(candidate):
    for args in {inputs!r}:
        want = _right(*copy.deepcopy(args))
        assert _same(candidate(*copy.deepcopy(args)), want)
"""


@dataclass(frozen=True, slots=True)
class SuiteProblem:
    """A problem, its reference solution, and both suites as `tests` of a row."""

    name: str
    right: str
    function: str
    own: dict[str, Any]
    plus: dict[str, Any]
    inputs: list[list[Any]]

    def row(self, tests: dict[str, Any]) -> AuditRow:
        """The problem with a suite."""
        data = {"prompt": self.name, "tests": tests}
        return AuditRow(self.name, "", read_truth(None, ""), (self.right,), (), tests, data)


def problems(name: str) -> Iterator[SuiteProblem]:
    """Those of a set, in its order."""
    with gzip.open(DATA / f"{SETS[name]}.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            function, inputs = row["entry_point"], [*row["base_input"], *row["plus_input"]]
            right = f"{row['prompt']}{row['canonical_solution']}"
            own = {"code": row.get("test") or row["assertion"], "limits": LIMITS}
            if "test" in row:
                own["entry_point"] = function
            atol = float(row["atol"] or 0)
            code = CHECK.format(
                right=right, name=function, inputs=inputs, absolute=max(atol, 1e-6),
                relative=1e-7 if atol else 0.0,
            )  # fmt: skip
            plus = {"code": code, "entry_point": function, "limits": LIMITS}
            yield SuiteProblem(row["id"], right, function, own, plus, inputs)


def survivors(
    there: Reachable, chosen: Sequence[SuiteProblem], most: int, seed: int
) -> dict[str, list[tuple[bool, bool]]]:
    """By problem, whether each mutant passes the set's own suite, and EvalPlus'.

    `there` knows the rows of the problems under their own suite, then of all under EvalPlus'.
    """
    count, scale = len(chosen), Scale()
    rights = _passed(there, [(row, chosen[row % count].right) for row in range(2 * count)], scale)
    sound = [row for row in range(count) if rights[row] and rights[count + row]]
    told = [
        dataclasses.replace(
            chosen[row].row({
                "tests": [{"args": one, "expected": 0} for one in chosen[row].inputs],
                "function": chosen[row].function,
            })
        )
        for row in sound
    ]  # fmt: skip
    made: dict[int, list[str]] = defaultdict(list)
    for probes in Mutation().ask(Subject(told, (), execute=there.execute, seed=seed)):
        for probe in probes:
            made[sound[probe.row]].append(probe.response)
    mutants = [(row, text) for row in sound for text in sorted(made[row])[:most]]
    own = _passed(there, mutants, scale)
    plus = _passed(there, [(count + row, text) for row, text in mutants], scale)
    found: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for (row, _), passes, passes_plus in zip(mutants, own, plus, strict=True):
        if passes is not None and passes_plus is not None:
            found[chosen[row].name].append((passes, passes_plus))
    print(
        f"left out: {count - len(sound)} problems whose solution fails a suite, "
        f"{len(sound) - len(found)} without a mutant, "
        f"{len(mutants) - sum(map(len, found.values()))} mutants without a verdict"
    )
    return found


def _passed(there: Reachable, asked: Sequence[tuple[int, str]], scale: Scale) -> list[bool | None]:
    """Whether programs pass the suites of their rows; None for a fault."""
    found: list[bool | None] = []
    for start in range(0, len(asked), AT_ONCE):
        some = [
            Probe(row, "mutant", text, "refuse") for row, text in asked[start : start + AT_ONCE]
        ]
        found += [None if one.reward is None else scale.accepts(one) for one in there.ask(some)]
    return found


def share(found: dict[str, list[tuple[bool, bool]]], suite: int) -> Estimate:
    """The share of mutants that a suite lets pass, the mean over problems."""
    rates = [sum(one[suite] for one in seen) / len(seen) for seen in found.values()]
    return mean_over_problems(rates, sum(map(len, found.values())))


def line(name: str, found: dict[str, list[tuple[bool, bool]]]) -> str:
    """A set's row of the table."""
    both = [one for seen in found.values() for one in seen]
    cells = []
    for suite in (0, 1):
        rate = share(found, suite)
        holes = sum(any(one[suite] for one in seen) for seen in found.values())
        value = "-" if rate.value is None else f"{100 * rate.value:.1f}"
        cells.append(f"{value} [{100 * rate.low:.1f}, {100 * rate.high:.1f}] | {holes}")
    passed = sum(own for own, _ in both)
    killed = sum(own and not plus for own, plus in both)
    return f"| {name} | {len(found)} | {len(both)} | {' | '.join(cells)} | {killed} of {passed} |"


def run(arguments: Sequence[str] = ()) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench audit-suites")
    parser.add_argument("--problems", type=int, default=60, help="of each set")
    parser.add_argument("--mutants", type=int, default=8, help="of each problem, at most")
    parser.add_argument("--only", choices=SETS, help="one of the sets")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    lines = []
    for name in SETS if chosen.only is None else (chosen.only,):
        every, began_s = [*problems(name)], time.monotonic()
        some = random.Random(f"{chosen.seed}/{name}").sample(every, chosen.problems)
        rows = [one.row(one.own) for one in some] + [one.row(one.plus) for one in some]
        with reached(AuditTarget("verifier", "code"), rows, ServerAt()) as there:
            lines.append(line(name, survivors(there, some, chosen.mutants, chosen.seed)))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{name}: {time.monotonic() - began_s:.0f} s, so far "
              f"{used.ru_utime + used.ru_stime:.0f} CPU seconds of the services")  # fmt: skip
    print("\n| set | problems | mutants | its own suite lets pass, % | of so many problems "
          "| EvalPlus' lets pass, % | of so many problems | of those that its own lets pass, "
          "EvalPlus' refuses |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(lines))
