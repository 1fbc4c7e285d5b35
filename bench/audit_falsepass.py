"""`assay audit` beside falsepass (https://github.com/Super-Eric/falsepass), on the planted graders.

Both get the same graders and the same rows. falsepass is used as its page says for a reward
function: `falsepass init FILE --dataset ROWS --func NAME`, then its runner (what `falsepass audit`
starts), with all rows and its mutation search (120 calls, "a good value"); it finds a hole where
its false-pass ceiling is above 0.499, which is half of the reward, as here.

    python -m bench audit-falsepass --python VENV/bin/python [--set third] [--sound-too]

The interpreter is one of a virtual environment with falsepass in it: nothing is installed here.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.audit_detection import DEPTHS, GRADERS, SETS, result_of, rows_of, share

_CALLED = """

def falsepass_asks(completions, reference, **kwargs):
    return [float({name}(one, right)) for one, right in zip(completions, reference)]
"""
_GATE = "ceiling>0.499"
_LIMIT_S = 300.0


def version_at(python: Path) -> str:
    """The version of falsepass that an interpreter has; empty for none."""
    asked = "import importlib.metadata as m; print(m.version('falsepass'))"
    try:
        said = subprocess.run(
            [python, "-c", asked], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def probed(python: Path, entry: Mapping[str, Any], rows: Path) -> tuple[str, float]:
    """What falsepass says of a grader (hole, none, or why it could not run), and the seconds."""
    with tempfile.TemporaryDirectory(prefix="assay-falsepass-") as name:
        folder = Path(name)
        text = (GRADERS / entry["file"]).read_text(encoding="utf-8")
        graded = folder / "rewards.py"
        graded.write_text(text + _CALLED.format(name=entry["function"]), encoding="utf-8")
        shutil.copy(rows, folder / "rows.jsonl")
        began = time.perf_counter()
        subprocess.run(
            [
                python.with_name("falsepass"), "init", "rewards.py", "--dataset", "rows.jsonl",
                "--func", "falsepass_asks", "--answer-column", "reference",
                "--prompt-column", "prompt", "--name", "one",
            ],
            cwd=folder, capture_output=True, check=True,
        )  # fmt: skip
        try:
            ended = subprocess.run(
                [
                    python, "-m", "falsepass.runner", "audits/one", "-n", "80", "--search", "120",
                    "--fail-on", _GATE,
                ],
                cwd=folder, capture_output=True, text=True, check=False, timeout=_LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "late", _LIMIT_S
        seconds = time.perf_counter() - began
    if "# Probe summary" not in ended.stdout:
        return "not run", seconds
    if ended.returncode:
        return "hole", seconds
    return "inconclusive" if "inconclusive" in ended.stdout.casefold() else "none", seconds


def table(found: Sequence[tuple[Mapping[str, Any], str, str, float, float]]) -> None:
    """Prints what each found, by set and depth."""
    print("\n| set | graders | assay audit | falsepass | both | neither |")
    print("|---|---|---|---|---|---|")
    for own in SETS:
        for depth in (*DEPTHS, "all", "sound"):
            of = [
                one for one in found
                if one[0].get("set", SETS[0]) == own
                and (one[0].get("depth", "sound") == depth or (depth == "all" and one[0]["defect"]))
            ]  # fmt: skip
            if not of:
                continue
            ours = sum(one[1] == "hole" for one in of)
            theirs = sum(one[2] == "hole" for one in of)
            both = sum(one[1] == one[2] == "hole" for one in of)
            told = "accused of the sound" if depth == "sound" else depth
            print(
                f"| {own} | {told} | {share(ours, len(of))} | {share(theirs, len(of))} | {both} "
                f"| {len(of) - ours - theirs + both} |"
            )
    for name, place in (("assay audit", 3), ("falsepass", 4)):
        times = sorted(float(one[place]) for one in found)
        print(f"{name}: seconds a grader {times[len(times) // 2]:.1f} (median), {times[-1]:.1f}")
    unread = [one for one in found if one[2] in ("late", "not run", "inconclusive")]
    print(f"falsepass could say nothing of {len(unread)}: {[one[0]['function'] for one in unread]}")


def run(options: Sequence[str]) -> None:
    """Audits the planted graders with both."""
    parser = argparse.ArgumentParser(prog="python -m bench audit-falsepass", description=__doc__)
    parser.add_argument("--python", type=Path, help="of an environment with falsepass")
    parser.add_argument("--set", choices=SETS, help="of one author alone")
    parser.add_argument("--out", type=Path, help="writes a line for each grader")
    chosen = parser.parse_args(options)
    version = version_at(chosen.python) if chosen.python else ""
    if not version:
        print("falsepass is not there: --python names no interpreter that has it")
        return
    print(
        f"falsepass {version}, --fail-on '{_GATE}', 80 rows, --search 120; assay audit: all engines"
    )
    manifest = tomllib.loads((GRADERS / "manifest.toml").read_text(encoding="utf-8"))
    kinds = {name: GRADERS / one["file"] for name, one in manifest["rows"].items()}
    found = []
    for entry in manifest["grader"]:
        if chosen.set in (None, entry.get("set", SETS[0])):
            result = result_of(entry, rows_of(manifest["rows"][entry["rows"]]["file"]), _LIMIT_S)
            ours = {0: "none", 1: "hole"}.get(result["exit"], "not run")
            theirs, seconds = probed(chosen.python.absolute(), entry, kinds[entry["rows"]])
            found.append((entry, ours, theirs, result["seconds"], seconds))
            told = {
                "grader": entry["function"], "depth": entry.get("depth", "sound"), "assay": ours,
                "falsepass": theirs, "seconds": [round(result["seconds"], 1), round(seconds, 1)],
            }  # fmt: skip
            print(json.dumps(told), flush=True)
            if chosen.out:
                with chosen.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(told) + "\n")
    if found:
        table(found)
