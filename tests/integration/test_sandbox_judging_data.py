"""HumanEval, MBPP and their "plus" versions: what is right passes, mutants fare as they run."""

from __future__ import annotations

import ast
import copy
import functools
import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assay.sandbox.domain import RunLimits
from assay.sandbox.harness.codec import decode
from assay.sandbox.jail import detect
from assay.sandbox.judging import assertions
from assay.sandbox.judging.folding import fold
from assay.sandbox.judging.model import (
    AnswerComparison,
    AssertCase,
    CallCase,
    ComparisonKind,
    TestVerdict,
)
from sandbox_support import SOURCES, AnyBoxes, JailedBoxes, ProcessBoxes, judge_python

pytestmark = pytest.mark.data

LIMITS = RunLimits(cpu_s=60.0, wall_s=60.0)
MUTANT_S = 1.5
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or,
    ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """A program, and the assert code that it is held against."""

    name: str
    source: str
    code: str
    entry_point: str = ""

    def direct(self, source: str) -> str:
        """The whole as one file, as it is usually run."""
        call = f"\ncheck({self.entry_point})\n" if self.entry_point else ""
        return f"{source}\n{self.code}\n{call}"


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def humaneval(folder: Path) -> list[Problem]:
    return [
        Problem(
            name=row["id"],
            source=row["prompt"] + row["canonical_solution"],
            code=row["test"],
            entry_point=row["entry_point"],
        )
        for row in rows(folder, "humaneval")
    ]


def mbpp(folder: Path) -> list[Problem]:
    return [
        Problem(
            row["id"],
            f"{row['canonical_solution']}\n{row['test_setup'] or ''}\n",
            "\n".join([*row["tests"], *row["challenge_tests"]]),
        )
        for row in rows(folder, "mbpp")
    ]


SETS = {"humaneval": humaneval, "mbpp": mbpp}
MUTANTS = {"humaneval": 3, "mbpp": 1}  # of each problem
PLUS_INPUTS = 100  # of each problem; some have a thousand


@pytest.fixture(scope="module")
def boxes() -> Iterator[AnyBoxes]:
    """The jail where it can be had, which is also the fastest; else plain processes."""
    made = JailedBoxes() if detect().level == "namespaces" else ProcessBoxes()
    yield made
    made.close()


@pytest.fixture(params=[True, False], ids=["folded", "tested"])
def folding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with folding, and once with a tester process for everything."""
    if not request.param:
        monkeypatch.setattr(assertions, "fold", lambda code, entry_point: None)


def verdict(boxes: AnyBoxes, problem: Problem, source: str, limits: RunLimits) -> TestVerdict:
    test = AssertCase(problem.name, problem.code, problem.entry_point, limits)
    (outcome,) = judge_python(boxes, source, test)
    return outcome.verdict


def canonical_failures(boxes: AnyBoxes, problems: list[Problem]) -> dict[str, str]:
    verdicts = {p.name: verdict(boxes, p, p.source, LIMITS).value for p in problems}
    return {name: value for name, value in verdicts.items() if value != "passed"}


@pytest.mark.parametrize("name", SETS)
def test_most_assert_code_is_folded(shared_data: Path, name: str) -> None:
    problems = SETS[name](shared_data)
    folded = sum(fold(problem.code, problem.entry_point) is not None for problem in problems)
    assert folded >= 0.95 * len(problems)


@pytest.mark.parametrize("name", SETS)
def test_a_sample_of_canonical_solutions_passes(
    boxes: AnyBoxes, shared_data: Path, name: str
) -> None:
    problems = random.Random(f"{name} sample").sample(SETS[name](shared_data), 25)
    assert canonical_failures(boxes, problems) == {}


def test_canonical_solutions_that_do_not_fold_pass(boxes: AnyBoxes, shared_data: Path) -> None:
    problems = [
        problem
        for make in SETS.values()
        for problem in make(shared_data)
        if fold(problem.code, problem.entry_point) is None
    ]
    assert problems
    assert canonical_failures(boxes, problems) == {}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize("name", SETS)
def test_every_canonical_solution_passes(boxes: AnyBoxes, shared_data: Path, name: str) -> None:
    assert canonical_failures(boxes, SETS[name](shared_data)) == {}


def mutants(source: str, seed: str, count: int) -> list[str]:
    """Programs with a changed constant, a swapped operator or a truncated body."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    rng = random.Random(seed)
    places = [i for i, node in enumerate(ast.walk(tree)) if _can_change(node)]
    chosen = rng.sample(places, min(count, len(places)))
    made = []
    for place in chosen:
        changed = copy.deepcopy(tree)
        _change(list(ast.walk(changed))[place], rng)
        made.append(ast.unparse(ast.fix_missing_locations(changed)))
    return made


def _can_change(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) or (
            isinstance(node.value, str) and len(node.value) < 20
        )
    if isinstance(node, ast.FunctionDef):
        return len(node.body) > 1
    return (isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAPS) or (
        isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS
    )


def _change(node: Any, rng: random.Random) -> None:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            node.value = not node.value
        elif isinstance(node.value, str):
            node.value += "x"
        else:
            node.value += rng.choice([1, -1])
    elif isinstance(node, ast.FunctionDef):
        del node.body[rng.randrange(1, len(node.body)) :]
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    else:
        node.op = SWAPS[type(node.op)]()


@functools.cache
def run_directly(text: str) -> bool | None:
    """Whether a file runs to its end; None where it takes too long to say."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-"], input=text, text=True, capture_output=True,
            timeout=MUTANT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return done.returncode == 0


def disagreements(
    boxes: AnyBoxes, problems: list[Problem], count: int
) -> tuple[list[str], int, int]:
    """Mutants that are judged otherwise than they run, and how many were tried and failed."""
    wrong, tried, failed = [], 0, 0
    for problem in problems:
        for number, source in enumerate(mutants(problem.source, problem.name, count)):
            expected = run_directly(problem.direct(source))
            if expected is None and number:
                continue  # one for each problem is enough of those that do not end
            found = verdict(boxes, problem, source, RunLimits(cpu_s=MUTANT_S, wall_s=MUTANT_S))
            if expected is None or found is TestVerdict.LIMIT_EXCEEDED:
                if expected:
                    wrong.append(f"{problem.name} mutant {number}: passes directly, {found}")
                continue
            tried += 1
            failed += not expected
            if (found is TestVerdict.PASSED) != expected:
                wrong.append(
                    f"{problem.name} mutant {number}: directly {expected}, {found}\n{source}"
                )
    return wrong, tried, failed


@pytest.mark.parametrize("name", SETS)
def test_a_sample_of_mutants_fares_as_in_direct_execution(
    boxes: AnyBoxes, shared_data: Path, name: str
) -> None:
    problems = random.Random(f"{name} mutants").sample(SETS[name](shared_data), 20)
    wrong, tried, failed = disagreements(boxes, problems, 2)
    assert wrong == []
    assert failed > tried // 3


@pytest.mark.exhaustive
@pytest.mark.timeout(3_600)
@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize("name", SETS)
def test_mutants_fare_as_in_direct_execution(boxes: AnyBoxes, shared_data: Path, name: str) -> None:
    problems = SETS[name](shared_data)
    wrong, tried, failed = disagreements(boxes, problems, MUTANTS[name])
    assert wrong == []
    assert failed > tried // 3


ANSWERS = """
import copy, json, sys
sys.path.insert(0, {sources!r})
from assay.sandbox.harness.codec import encode
from assay.sandbox.harness.references import CodecError
namespace = {{"__name__": "__main__"}}
exec(compile({source!r}, "solution", "exec"), namespace)
for inputs in json.loads(sys.stdin.read()):
    try:
        value = encode(namespace[{entry!r}](*copy.deepcopy(inputs)))
    except Exception:
        value = b""
    print(value.decode())
"""


def answers_directly(text: str, inputs: list[object], seed: str) -> list[str]:
    """What the solution returns for each input, encoded; empty where it raises."""
    done = subprocess.run(
        [sys.executable, "-s", "-c", text], input=json.dumps(inputs), text=True,
        capture_output=True, timeout=100, check=True, env={"PYTHONHASHSEED": seed},
    )  # fmt: skip
    return done.stdout.splitlines()[-len(inputs) :]


def plus_tests(row: dict[str, Any], count: int | None) -> tuple[str, list[CallCase]]:
    """The program and its calls; what is expected is what the canonical solution returns."""
    source = row["prompt"] + row["canonical_solution"]
    inputs = [*row["base_input"], *(row["plus_input"] or [])][:count]
    text = ANSWERS.format(sources=str(SOURCES), source=source, entry=row["entry_point"])
    answers = answers_directly(text, inputs, "1")
    steady = answers == answers_directly(text, inputs, "2")
    atol = float(row["atol"])
    if atol:
        rule = AnswerComparison(ComparisonKind.NUMERIC, atol, atol)
    else:
        # Some solutions return the elements of a set in whatever order it has them.
        rule = AnswerComparison(ComparisonKind.DEFAULT if steady else ComparisonKind.UNORDERED)
    tests = [
        CallCase(
            name=str(number),
            function=row["entry_point"],
            arguments=tuple(given),
            expected=decode(answer.encode()),
            comparison=rule,
            limits=LIMITS,
        )
        for number, (given, answer) in enumerate(zip(inputs, answers, strict=True))
        if answer
    ]
    return source, tests


def plus_failures(boxes: AnyBoxes, chosen: list[dict[str, Any]], count: int | None) -> list[str]:
    failures, judged = [], 0
    for row in chosen:
        source, tests = plus_tests(row, count)
        if not tests:
            continue
        for outcome in judge_python(boxes, source, *tests):
            judged += 1
            if outcome.verdict is not TestVerdict.PASSED:
                failures.append(f"{row['entry_point']} {outcome.name}: {outcome.explanation}")
    assert judged >= 10 * len(chosen) // 2
    return failures


@pytest.mark.slow
@pytest.mark.parametrize("name", ["humaneval_plus", "mbpp_plus"])
def test_a_sample_of_plus_solutions_passes_its_calls(
    boxes: AnyBoxes, shared_data: Path, name: str
) -> None:
    chosen = random.Random(f"{name} sample").sample(rows(shared_data, name), 10)
    assert plus_failures(boxes, chosen, 60) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", ["humaneval_plus", "mbpp_plus"])
def test_every_plus_solution_passes_its_calls(
    boxes: AnyBoxes, shared_data: Path, name: str
) -> None:
    assert plus_failures(boxes, rows(shared_data, name), PLUS_INPUTS) == []
