"""What `assay audit` says of graders: holes, recall, faults and seconds, on rows of GSM8K.

    python -m bench audits                          the graders of this file, ours, and public ones
    python -m bench audits --file graders.py        every function of a file
    python -m bench audits --data rows.jsonl
    python -m bench audits --public --rows 10       those of bench/public_graders.py, with examples
    python -m bench audits --public --falsepass VENV/bin/python     and what falsepass says of them

The graders of this file read one answer and compare it as a whole: what is accepted of them that
must not be is a false alarm. Each audit is a process of its own, one after another; public
graders are asked in one process.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from assay.audit import AuditPlan, AuditRow, ProbeAsker, Ruling, as_rfc, carry_out, make_report
from assay.audit.answers.truth import read_truth
from assay.audit.engines import engines
from assay.audit.probes import Probe
from bench import public_graders
from bench.audit_detection import within
from bench.audit_falsepass import probed, version_at
from bench.math_rows import DATA, read

ROWS = 200
OURS = ("math", "math-verify", "exact", "match")
PUBLIC = ("trl.rewards:accuracy_reward",)


def exact(response: str, reference: str) -> float:
    """The whole response is the answer."""
    return float(response.strip() == reference.strip())


def whole_number(response: str, reference: str) -> float:
    """The whole response is the number."""
    try:
        return float(Fraction(response.strip().replace(",", "")) == Fraction(reference))
    except (ValueError, ZeroDivisionError):
        return 0.0


def last_box(response: str, reference: str) -> float:
    """What stands in the last box is the answer."""
    found = re.findall(r"\\boxed\{([^{}]*)\}", response)
    return float(bool(found) and found[-1].strip() == reference)


def last_hashes(response: str, reference: str) -> float:
    """What follows the last #### is the answer."""
    _, found, answer = response.rpartition("####")
    return float(bool(found) and answer.strip().replace(",", "") == reference)


def last_number(response: str, reference: str) -> float:
    """The last number of the response is the answer."""
    found = re.findall(r"-?\d[\d,]*(?:\.\d+)?", response)
    return float(bool(found) and found[-1].replace(",", "") == reference)


def last_tag(response: str, reference: str) -> float:
    """What stands in the last <answer> is the answer."""
    found = re.findall(r"<answer>([^<]*)</answer>", response)
    return float(bool(found) and found[-1].strip() == reference)


SOUND = (exact, whole_number, last_box, last_hashes, last_number, last_tag)


def gsm8k(path: Path, count: int) -> None:
    """Writes the first rows of the test set as rows of an audit."""
    rows = read("gsm8k_test.jsonl.gz", DATA)[:count]
    lines = [
        json.dumps(
            {"prompt": row["problem"], "reference": str(row["answer"]).split("####")[-1].strip()}
        )
        for row in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def mathematics(path: Path, count: int) -> None:
    """Writes rows of GSM8K's test set and of MATH-500, as many of each."""
    gsm8k(path, count)
    rows = [row for row in read("math500.jsonl.gz", DATA) if len(str(row["answer"])) < 40][:count]
    with path.open("a", encoding="utf-8") as file:
        for row in rows:
            told = {"prompt": row["problem"], "reference": str(row["answer"])}
            file.write(json.dumps(told) + "\n")


def names(path: Path, count: int) -> None:
    """Writes rows of ours whose answers are names of people and places, and numbers."""
    folder = Path(__file__).resolve().parents[1] / "tests" / "planted_graders" / "rows"
    lines = [
        line
        for kind in ("fact", "person", "place", "number")
        for line in (folder / f"{kind}.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()[: count // 2]
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def examples(report: dict[str, Any], most: int = 2) -> Iterator[str]:
    """What was accepted, of each class, with the reference."""
    for one in report["results"][1:]:
        if one["status"] == "fail":
            for shown in one["evidence"][:most]:
                yield f"    {one['measured'].get('class', '')}: {json.dumps(shown)[:400]}"


def functions(path: Path) -> Iterator[str]:
    """The functions of a file, in order, without those that begin with an underscore."""
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield f"{path}:{node.name}"


def audited(target: str, data: Path, folder: Path) -> tuple[int, float, dict[str, Any]]:
    """The exit code, the seconds, and the report, empty where there is none."""
    out = folder / "report.json"
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "assay.cli", "audit", target, "--data", str(data)]
    began_s = time.monotonic()
    ended = subprocess.run(
        [*command, "--json", str(out)], capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - began_s
    return ended.returncode, seconds, json.loads(out.read_text()) if out.is_file() else {}


def asked_here(name: str, data: Path) -> tuple[int, float, dict[str, Any]]:
    """The same of a public grader, asked in this process: no server, and 2 s for a call."""
    grade = getattr(public_graders, name)
    lines = data.read_text(encoding="utf-8").splitlines()
    rows = [
        AuditRow(str(number), row["prompt"], read_truth(row["reference"], row["prompt"]), data=row)
        for number, row in enumerate(map(json.loads, lines))
    ]

    def one(probe: Probe) -> Ruling:
        try:
            with within(2.0):
                return Ruling(float(grade(probe.response, rows[probe.row].truth.text)))
        except Exception as error:  # noqa: BLE001 - whatever a grader raises is a fault
            return Ruling(None, "VERIFIER_FAILED", type(error).__name__)

    with contextlib.suppress(Exception):
        grade(rows[0].truth.text, rows[0].truth.text)  # its package is imported, in its own time
    began_s, plan = time.monotonic(), AuditPlan()
    asker = ProbeAsker(lambda probes: [one(probe) for probe in probes], plan)
    found = carry_out(rows, engines(()), asker, plan)
    report = as_rfc(make_report(found, name, ""))
    return found.exit_code, time.monotonic() - began_s, report


def imported(name: str, folder: Path) -> Path:
    """A file with one public grader: of one that names Inspect, falsepass expects a task."""
    path, root = folder / "grader.py", Path(__file__).resolve().parents[1]
    path.write_text(
        f"import sys\n\nsys.path.insert(0, {str(root)!r})\n"
        f"from bench.public_graders import {name}\n",
        encoding="utf-8",
    )
    return path


def line(target: str, code: int, seconds: float, report: dict[str, Any]) -> str:
    """One grader's row of the table."""
    name = target.rpartition(":")[2] if ".py:" in target else target
    if not report:
        return f"| {name} | {code} | not run | | | | | {seconds:.0f} |"
    said = report["results"][0]["measured"]
    kinds = [
        one["measured"].get("class", "") for one in report["results"] if one["status"] == "fail"
    ]
    low, high = (100 * end for end in said["false_positive"]["interval"])
    missed = said["false_negative"]["value"]
    recall = "-" if missed is None else f"{100 * (1 - missed):.0f}"
    faults = sum(said["faults"].values())
    named = ", ".join(filter(None, kinds)) or "none"
    return (
        f"| {name} | {code} | {said['asked']} | {said['holes']} | {low:.2f}-{high:.2f} | {recall} "
        f"| {faults} | {seconds:.0f} | {named} |"
    )


def run(arguments: Sequence[str] = ()) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench audits")
    parser.add_argument("--file", type=Path, help="audit every function of this file")
    parser.add_argument("--data", type=Path, help="rows; default: GSM8K's test set")
    parser.add_argument("--public", action="store_true", help="graders of other packages")
    parser.add_argument("--falsepass", type=Path, help="an interpreter with it and the packages")
    parser.add_argument("--only", default="", help="graders with one of these texts")
    parser.add_argument("--rows", type=int, default=ROWS)
    chosen = parser.parse_args(arguments)
    here = [f"{__file__}:{grade.__name__}" for grade in SOUND]
    targets = [*functions(chosen.file)] if chosen.file else [*here, *OURS, *PUBLIC]
    if chosen.public:
        there = [name for name in public_graders.PACKAGES if public_graders.version_of(name)]
        targets = [f"{public_graders.__file__}:{name}" for name in there]
        print("\n".join(f"{name}: {public_graders.PACKAGES[name]} "
                        f"{public_graders.version_of(name)}" for name in there))  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="assay-audits-") as name:
        folder = Path(name)
        data = chosen.data or folder / "rows.jsonl"
        if chosen.data is None:
            (mathematics if chosen.public else gsm8k)(data, chosen.rows)
        of_names = folder / "names.jsonl"
        names(of_names, chosen.rows)
        print(
            "\n| grader | exit | asked | holes | rate %, 95 % | recall % | faults | s | classes |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for target in targets:
            grader = target.rpartition(":")[2]
            if any(part in grader for part in chosen.only.split(",")):
                rows = of_names if grader in public_graders.OF_NAMES and chosen.public else data
                asked = asked_here(grader, rows) if chosen.public else None
                code, seconds, report = asked or audited(target, rows, folder)
                print(line(target, code, seconds, report), flush=True)
                if chosen.public and chosen.falsepass:
                    python = chosen.falsepass.absolute()
                    said, took_s = probed(python, imported(grader, folder), grader, rows)
                    print(f"    falsepass {version_at(python)}: {said}, {took_s:.0f} s", flush=True)
                if chosen.public and report:
                    print("\n".join(examples(report)), flush=True)
