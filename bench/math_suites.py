r"""Others' test suites of mathematics, pointed at `assay.math`: who agrees, and who is right.

`python -m bench math-suites --suite NAME=FOLDER ...` reads the cases (reference, response,
expected) out of checkouts that are not part of this project, grades each with `grade` and with
math-verify in a child process that is killed when it hangs, and counts the cases on which `grade`
differs from what the suite expects, by kinds. `bench/math_suites.toml` says of each kind who is
right; a case of none is printed as new, and with --show all of them are.

The suites, by NAME, and what FOLDER is:

    math-verify     a checkout of huggingface/Math-Verify; its tables of gold, pred, expected.
                    Its tests also run twice: on math-verify, and with `assay.math.math_verify` in
                    its place
    open-instruct   a checkout of allenai/open-instruct; its number verifier and its normal forms
    latex2sympy     a checkout of OrangeX4/latex2sympy or huggingface/latex2sympy2_extended: LaTeX
                    against the value that it must have, printed by sympy (runs its tests)
    lm-eval         a checkout of EleutherAI/lm-evaluation-harness: Minerva's worked examples, each
                    against the answers of all
    responses       the shared data: responses of models, with the verdicts that they came with
                    (labels, or each project's rule)
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.math import Policy, grade
from bench.math_reward import BEST, ROOT, TURN, Contestant
from bench.math_rows import Row, boxed, read

JUDGED = Path(__file__).with_suffix(".toml")
# What stands in math-verify's place: its names, where its tests look for them.
SHIM = {
    "__init__.py": "from assay.math.math_verify import *\n"
    "from assay.math.math_verify import (ExprExtractionConfig, LatexExtractionConfig,\n"
    "    StringExtractionConfig, parse, verify)\n",
    "parser.py": "from math_verify import *\n",
    "grader.py": "from math_verify import verify\n\n"
    "def sympy_expr_eq(gold, pred, float_rounding=6, numeric_precision=15, *_, **__):\n"
    "    return verify(gold, pred, float_rounding, numeric_precision)\n",
}


@dataclass(frozen=True, slots=True)
class Case:
    """What a suite says of a pair.

    Attributes:
        place: file and function.
        expected: whether the response is right, as the suite says.
        decimals: to how many places the suite compares numbers here, where that is not its default.
        undone_work: `accept` where the suite tests a reading, not an answer: `5!7!` is then right.
    """

    place: str
    gold: str
    response: str
    expected: bool
    decimals: int | None = None
    undone_work: str = "auto"

    def digest(self) -> str:
        """Names the case without its text."""
        return hashlib.sha256(f"{self.gold}\0{self.response}".encode()).hexdigest()[:12]


def tables(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file's literal tables of parameters: the test's name, and value by name.

    It reads `pytest.mark.parametrize(names, rows)` and `parameterized.expand(rows)`, and runs none
    of the file. A row that is not made of literals is left out.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr == "parametrize":
                names = [name.strip() for name in ast.literal_eval(call.args[0]).split(",")]
                rows = call.args[1]
            elif call.func.attr == "expand":
                names, rows = [one.arg for one in node.args.args[1:]], call.args[0]
            else:
                continue
            for row in rows.elts if isinstance(rows, ast.List) else ():
                try:
                    values = ast.literal_eval(row)
                except ValueError:
                    continue
                yield node.name, dict(zip(names, values, strict=True))


def math_verify(folder: Path) -> Iterator[Case]:
    """Its tests of pairs."""
    for path in sorted((folder / "tests").glob("test_*.py")):
        for test, row in tables(path):
            expected = row.get("expected", row.get("result"))
            if {"gold", "pred"} <= row.keys():
                places = row.get("precision", 6)
                yield Case(
                    f"{path.name} {test}",
                    row["gold"],
                    row["pred"],
                    bool(expected),
                    None if places == 6 else places,
                )


def open_instruct(folder: Path) -> Iterator[Case]:
    """Its verifier of numbers, and the pairs that its normal form of LaTeX makes one."""
    for name in ("test_ground_truth_utils.py", "test_math_utils.py"):
        for test, row in tables(folder / "open_instruct" / name):
            if test == "test_signed_number_extraction":
                yield Case(test, row["label"], row["prediction"], row["expected_score"] == 1.0)
            elif test == "test_latex_normalization":
                yield Case(test, row["expected_output"], boxed(row["input_string"]), expected=True)


def latex2sympy(folder: Path) -> Iterator[Case]:
    """Each text that it must read, against sympy's LaTeX of the value, and against another's."""
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "pairs.jsonl"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "bench.math_suites_recorder"]
        command += ["-p", "no:cacheprovider", "-p", "no:randomly", "-o", "addopts="]
        command += ["-o", "python_files=*_test.py"]
        beside = os.pathsep.join((str(folder), str(ROOT)))
        subprocess.run(
            [*command, "--rootdir", str(folder), str(folder / "tests")],
            cwd=folder,
            check=False,
            capture_output=True,
            env=os.environ | {"PYTHONPATH": beside, "ASSAY_BENCH_RECORD": str(found)},
        )
        for line in found.read_text().splitlines():
            said = json.loads(line)
            yield Case(
                said["test"],
                said["gold"],
                boxed(said["latex"]),
                said["expected"],
                undone_work="accept",
            )


def lm_eval(folder: Path) -> Iterator[Case]:
    """Minerva's worked examples in its template: each is right for its own answer alone."""
    path = folder / "lm_eval" / "tasks" / "minerva_math" / "utils.py"
    shots: list[dict[str, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == "list_fewshot_samples":
            returned = next(part for part in node.body if isinstance(part, ast.Return))
            shots = ast.literal_eval(returned.value or "[]")
    texts = [shot["solution"] for shot in shots]
    for one, gold in enumerate(texts):
        for other, response in enumerate(texts):
            yield Case(f"example {other} for {one}", gold, response, expected=one == other)


def responses(folder: Path) -> Iterator[Case]:
    """GSM8K solutions, Rho-1 and MathCoder by their labels; of AIME by equal whole numbers."""
    named = {"gsm8k_model_solutions": "label", "rho1_outputs": "rule_label"}
    for name, key in named.items():
        for row in read(f"{name}.jsonl.gz", folder):
            yield Case(name, str(row["gold"]), str(row["response"]), str(row[key]) == "True")
    for row in read("mathcoder_preds.jsonl.gz", folder):
        right = str(row["rule_label"]) == "True"
        yield Case("mathcoder_preds", str(row["gold"]), boxed(str(row["pred"])), right)
    for row in read("dynamic_cheatsheet_outputs.jsonl.gz", folder):
        gold, found = str(row["gold"]), str(row["extracted"])
        if gold.isdecimal():
            right = found.isdecimal() and int(found) == int(gold)
            yield Case("dynamic_cheatsheet_outputs", gold, str(row["response"]), right)


SUITES: dict[str, Callable[[Path], Iterator[Case]]] = {
    "math-verify": math_verify,
    "open-instruct": open_instruct,
    "latex2sympy": latex2sympy,
    "lm-eval": lm_eval,
    "responses": responses,
}


def ours(case: Case) -> bool | None:
    """What `grade` says; None for a fault."""
    outcome = grade(
        case.response,
        case.gold,
        policy=Policy(decimals=case.decimals),
        undone_work=case.undone_work,
    )
    reward = outcome.reward_or(None)
    return None if reward is None else reward > 0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of disagreement.

    Attributes:
        right: who is right: `us`, `them`, or `convention` where both may be.
        find: a pattern over place, reference and response; None where `cases` names them.
    """

    name: str
    right: str
    expected: bool | None
    find: re.Pattern[str] | None
    cases: frozenset[str]

    def fits(self, case: Case) -> bool:
        """Whether a case on which `grade` differs is of this kind."""
        if self.expected is not None and self.expected is not case.expected:
            return False
        if case.digest() in self.cases:
            return True
        text = f"{case.place} | {case.gold} <- {case.response}"
        return self.find is not None and self.find.search(text) is not None


def kinds() -> list[Kind]:
    """The kinds that were looked at, in the order in which they are tried: named cases first."""
    found = [
        Kind(
            name,
            said["right"],
            said.get("expected"),
            re.compile(said["find"], re.DOTALL) if "find" in said else None,
            frozenset(said.get("cases", ())),
        )
        for name, said in tomllib.loads(JUDGED.read_text(encoding="utf-8")).items()
    ]
    return sorted(found, key=lambda kind: not kind.cases)


def print_suite(name: str, cases: list[Case], *, show: bool) -> None:
    """Agreement with what the suite expects, and each case on which `grade` differs."""
    cases = list(dict.fromkeys(cases))
    theirs = Contestant(BEST, "")
    said = [ours(case) for case in cases]
    rows = [Row(case.gold, case.response, case.expected) for case in cases]
    parts = [rows[start : start + TURN] for start in range(0, len(rows), TURN)]
    present = theirs.start()
    beside = [right for part in parts if present for right, _, _ in theirs.grade(part)]
    theirs.stop()
    theirs.folder.cleanup()
    print(f"\nmath-suites: {name}, {len(cases)} different cases")
    for who, verdicts in (("assay.math grade", said), ("math-verify", beside)):
        agree = [right is case.expected for right, case in zip(verdicts, cases, strict=False)]
        over = [case for right, case in zip(verdicts, cases, strict=False) if right]
        found, wanted = sum(case.expected for case in over), sum(case.expected for case in cases)
        print(
            f"{who:18s} agrees on {sum(agree)} of {len(cases)}"
            f" ({sum(agree) / max(1, len(cases)):.1%}); precision {found / max(1, len(over)):.2%},"
            f" recall {found / max(1, wanted):.2%}; accepts {len(over)},"
            f" of which the suite refuses {len(over) - found}"
        )
    judged, counts = kinds(), Counter[tuple[str, str]]()
    for verdict, case in zip(said, cases, strict=True):
        if verdict is not case.expected:
            fits = (kind for kind in judged if kind.fits(case))
            why = next(((one.right, one.name) for one in fits), ("new", "not looked at"))
            counts[why] += 1
            if show or why[0] == "new":
                print(
                    f"  {case.digest()} {case.place}: expected {case.expected}, grade {verdict}"
                    f"\n    gold {case.gold[-200:]!r}\n    response {case.response[-200:]!r}"
                )
    for (right, kind), count in sorted(counts.items()):
        print(f"  {right:10s} {count:4d} {kind}")


def print_their_tests(tests: Path) -> None:
    """math-verify's own tests, on math-verify and on the drop-in."""
    print(f"\nmath-suites: math-verify's own tests, {tests}")
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "math_verify"
        package.mkdir()
        for name, text in SHIM.items():
            (package / name).write_text(text)
        for who, path in (("math-verify", ""), ("assay.math drop-in", folder)):
            beside = os.pathsep.join(filter(None, (path, str(tests.parent))))
            command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
            command += ["-p", "no:randomly", "--rootdir", str(tests.parent), "-o", "addopts="]
            done = subprocess.run(
                [*command, str(tests)], cwd=tests.parent, capture_output=True, text=True,
                check=False, env=os.environ | {"PYTHONPATH": beside},
            )  # fmt: skip
            counts = re.findall(r"(\d+) (passed|failed|error)", done.stdout)
            print(f"{who:22s} {', '.join(' '.join(count) for count in counts)}")
            for line in done.stdout.splitlines():
                if line.startswith("FAILED"):
                    print(f"  {line.removeprefix('FAILED tests/')[:120]}")


def run(arguments: list[str]) -> None:
    """Prints a table for each suite."""
    parser = argparse.ArgumentParser(
        "bench math-suites", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--suite", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--show", action="store_true", help="print also what was looked at")
    asked = parser.parse_args(arguments)
    if not asked.suite:
        print("\nmath-suites: skipped, no suite is named (--suite NAME=FOLDER)")
    for spec in asked.suite:
        name, _, folder = spec.partition("=")
        if name not in SUITES:
            parser.error(f"no suite is called {name!r}; there are {', '.join(SUITES)}")
        print_suite(name, list(SUITES[name](Path(folder).resolve())), show=asked.show)
        if name == "math-verify":
            print_their_tests(Path(folder).resolve() / "tests")
