"""How many planted defects `assay audit`'s engines find, and how many sound graders they accuse.

The graders are those of tests/planted_graders, written by somebody who had not seen the engines.
Each is audited in a process of its own, on all of its rows, without a server around it; a call that
takes more than a second, and a process that takes more than --limit seconds, is a fault.

    python -m bench audit-detection [--only NAME] [--missed]
    python -m bench audit-detection --falsepass VENV/bin/python     the same graders by falsepass
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import random
import signal
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from assay.audit import AuditPlan, AuditRow, ProbeAsker, Ruling, carry_out
from assay.audit.answers.truth import read_truth
from assay.audit.engines import engines
from assay.audit.probes import Probe
from assay.audit.sources import read_source
from assay.kit.runs.stats import wilson
from bench.audit_falsepass import OPTIONS, probed, version_at

GRADERS = Path(__file__).resolve().parents[1] / "tests" / "planted_graders"
DEPTHS = ("obvious", "class", "subtle")
SETS = ("first", "second", "third", "fourth", "fifth", "sixth")
_CALL_S = 1.0


class TooLongError(Exception):
    """A call of a grader took too long."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TooLongError in what takes longer."""

    def ring(*_: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def grader_of(entry: Mapping[str, Any]) -> Callable[[str, str], float]:
    """The function of a grader."""
    path = GRADERS / entry["file"]
    spec = importlib.util.spec_from_file_location(f"planted_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, entry["function"])  # type: ignore[no-any-return]


def rows_of(file: str) -> list[AuditRow]:
    """Rows of one kind."""
    lines = (GRADERS / file).read_text(encoding="utf-8").splitlines()
    return [
        AuditRow(str(number), row["prompt"], read_truth(row["reference"], row["prompt"]), data=row)
        for number, row in enumerate(map(json.loads, lines))
    ]


def audited(entry: Mapping[str, Any], rows: Sequence[AuditRow], back: Connection) -> None:
    """Sends what an audit finds: the classes with a hole, an example, seconds, probes, faults."""
    grade = grader_of(entry)

    def one(probe: Probe) -> Ruling:
        try:
            with within(_CALL_S):
                return Ruling(float(grade(probe.response, rows[probe.row].data["reference"])))
        except Exception as error:  # noqa: BLE001 - whatever a grader raises is a fault
            return Ruling(None, "VERIFIER_FAILED", type(error).__name__)

    source = read_source(GRADERS / entry["file"], entry["function"])
    plan = AuditPlan(words=source.words, lengths=source.lengths)
    began = time.perf_counter()
    asker = ProbeAsker(lambda probes: [one(probe) for probe in probes], plan)
    found = carry_out(rows, engines(()), asker, plan)
    holes = found.holes
    examples: dict[str, list[str]] = {}
    for hole in holes:
        told = [hole.probe.response[:200], str(rows[hole.probe.row].data["reference"])]
        examples.setdefault(hole.probe.kind, told)
    back.send({
        "holes": examples, "count": len(holes), "probes": len(found.judged),
        "faults": sum(judged.said.reward is None for judged in found.judged),
        "exit": found.exit_code, "seconds": time.perf_counter() - began,
    })  # fmt: skip


def result_of(entry: Mapping[str, Any], rows: Sequence[AuditRow], limit_s: float) -> dict[str, Any]:
    """The same from a process of its own; "exit" is 2 where it died or took too long."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=audited, args=(entry, rows, theirs)
    )
    process.start()
    theirs.close()
    try:
        if ours.poll(limit_s):
            return dict(ours.recv())
    except EOFError:
        pass
    finally:
        process.kill()
        process.join()
    return {"holes": {}, "count": 0, "probes": 0, "faults": 0, "exit": 2, "seconds": limit_s}


def share(hits: int, of: int) -> str:
    """A share with its interval, in words."""
    low, high = wilson(hits, of)
    return f"{hits} of {of}: {hits / of:.2f} [{low:.2f}, {high:.2f}]"


_Entries = list[Mapping[str, Any]]
_Found = list[tuple[Mapping[str, Any], dict[str, Any]]]


def beside(found: _Found, version: str) -> None:
    """Prints what falsepass found of the same graders, on the same rows."""
    print(f"\nfalsepass {version}, {' '.join(OPTIONS)}")
    print("| set | depth | assay audit | falsepass | found by both | by neither |")
    print("|---|---|---|---|---|---|")
    for own in SETS:
        for depth in (*DEPTHS, "all", "sound"):
            of = [
                (r["exit"] == 1, r["falsepass"] == "hole") for e, r in found
                if e.get("set", SETS[0]) == own
                and (e.get("depth", "sound") == depth or (depth == "all" and e["defect"]))
            ]  # fmt: skip
            if of:
                ours, theirs = (share(sum(one[i] for one in of), len(of)) for i in (0, 1))
                both, none = sum(map(all, of)), sum(not any(one) for one in of)
                print(f"| {own} | {depth} | {ours} | {theirs} | {both} | {none} |")
    times = sorted(result["falsepass_s"] for _, result in found)
    print(f"falsepass: seconds a grader {times[len(times) // 2]:.1f} (median), {times[-1]:.1f}")
    told = [f"{e['function']}: {r['falsepass']}" for e, r in found
            if r["falsepass"] not in ("hole", "none")]  # fmt: skip
    print(f"of {len(told)} it says nothing: {', '.join(told) or '-'}")
    accused = [e["function"] for e, r in found if not e["defect"] and r["falsepass"] == "hole"]
    print(f"sound ones that falsepass accuses: {', '.join(accused) or '-'}")


def _asked(entry: Mapping[str, Any], file: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """What the audit, and falsepass where it is asked, say of one grader; a line is printed."""
    name = f"{entry['file']}:{entry['function']}"
    result = dict(chosen.known.get(name) or result_of(entry, rows_of(file), chosen.limit))
    told = ", ".join(result["holes"]) or "-"
    if chosen.falsepass and "falsepass" not in result:
        python = chosen.falsepass.absolute()
        said = probed(python, GRADERS / entry["file"], entry["function"], GRADERS / file)
        result["falsepass"], result["falsepass_s"] = said
    if chosen.falsepass:
        told = f"{told}; falsepass: {result['falsepass']}"
    if chosen.state and result != chosen.known.get(name):
        with chosen.state.open("a", encoding="utf-8") as file_of_all:
            file_of_all.write(json.dumps({"grader": name, "result": result}) + "\n")
    print(
        f"{name} ({entry.get('depth', 'sound')}): exit "
        f"{result['exit']}, {told}; {result['probes']} probes, {result['faults']} faults, "
        f"{result['seconds']:.1f} s",
        flush=True,
    )
    return result


def by_depth(found: _Found) -> None:
    """Prints what the audit found, by set and depth."""
    print("\n| set | depth | found |\n|---|---|---|")
    for own in SETS:
        for depth in (*DEPTHS, "all", "sound ones accused"):
            of = [
                r["exit"] == 1 for e, r in found
                if e.get("set", SETS[0]) == own
                and depth in ((e["depth"], "all") if e["defect"] else ("sound ones accused",))
            ]  # fmt: skip
            if of:
                print(f"| {own} | {depth} | {share(sum(of), len(of))} |")


def drawn(entries: _Entries, count: int) -> _Entries:
    """So many graders of each set, the same in every run; 0: all of them."""
    if not count:
        return entries
    kept: _Entries = []
    for own in SETS:
        of = [entry for entry in entries if entry.get("set", SETS[0]) == own]
        kept += random.Random(own).sample(of, min(count, len(of)))
    return kept


def run(options: Sequence[str]) -> None:
    """Audits all graders; prints what was found by depth, what was missed, and who was accused."""
    parser = argparse.ArgumentParser(prog="python -m bench audit-detection", description=__doc__)
    parser.add_argument("--only", default="", help="graders whose function holds this text")
    parser.add_argument("--set", choices=SETS, help="of one author alone")
    parser.add_argument("--sound", action="store_true", help="the sound ones alone: false alarms")
    parser.add_argument("--sample", type=int, default=0, help="so many of each set, drawn; 0: all")
    parser.add_argument("--missed", action="store_true", help="say of what was missed what it is")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one grader")
    parser.add_argument("--jobs", type=int, default=1, help="graders at once; seconds suffer")
    parser.add_argument("--falsepass", type=Path, help="an interpreter that has falsepass")
    parser.add_argument("--state", type=Path, help="results so far, which are not asked again")
    chosen = parser.parse_args(options)
    told = chosen.state.read_text().splitlines() if chosen.state and chosen.state.is_file() else []
    chosen.known = {one["grader"]: one["result"] for one in map(json.loads, told)}
    version = version_at(chosen.falsepass) if chosen.falsepass else ""
    if chosen.falsepass and not version:
        print(f"{chosen.falsepass} has no falsepass: that comparison is left out")
        chosen.falsepass = None
    manifest = tomllib.loads((GRADERS / "manifest.toml").read_text(encoding="utf-8"))
    entries = [
        entry for entry in manifest["grader"]
        if chosen.only in entry["function"]
        and chosen.set in (None, entry.get("set", SETS[0]))
        and not (chosen.sound and entry["defect"])
    ]  # fmt: skip
    entries = drawn(entries, chosen.sample)
    files = [manifest["rows"][entry["rows"]]["file"] for entry in entries]
    with ThreadPoolExecutor(chosen.jobs) as threads:
        results = threads.map(partial(_asked, chosen=chosen), entries, files)
        found = list(zip(entries, results, strict=True))
    by_depth(found)
    if version:
        beside(found, version)
    times = sorted(result["seconds"] for _, result in found)
    print(f"\nseconds for a grader: median {times[len(times) // 2]:.1f}, most {times[-1]:.1f}")
    for entry, result in found:
        name = f"{entry['file']}:{entry['function']}"
        if not entry["defect"] and result["exit"] == 1:
            print(f"accused: {name}: {json.dumps(result['holes'])[:600]}")
        if entry["defect"] and result["exit"] != 1 and chosen.missed:
            print(f"missed: {name} ({entry['depth']}): {entry['defect']}")
