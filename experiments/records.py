"""Runs the arms of claims, and keeps their figures: `experiments/METHOD/results.json`.

A method's `claims` module has

    CLAIMS                              what is claimed
    prepare(models)                     makes models and problems in a folder, before the first run
    run(arm, seed, folder, models)      one run; its figures by name, None where there is none

Each run is a file under `runs/experiments/METHOD/claims`; what is there is not run again.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from bench.common import print_machine

from experiments.claim import FIRST_SEED, Claim, Runs
from experiments.miniature import Job, begin, in_one_process, keep, read, work_off

HERE = Path(__file__).parent


class Method(Protocol):
    """A method's `claims` module."""

    CLAIMS: Sequence[Claim]

    def prepare(self, models: Path) -> None:
        """Makes what all runs read."""

    def run(self, arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
        """One run."""


def methods() -> list[str]:
    """The folders that have claims."""
    return sorted(path.parent.name for path in HERE.glob("*/claims.py"))


def method(name: str) -> Method:
    """A method's claims."""
    return cast("Method", importlib.import_module(f"experiments.{name}.claims"))


def results_of(name: str) -> Path:
    """The file with a method's figures."""
    return HERE / name / "results.json"


def recorded(name: str) -> Runs:
    """The figures that the file has, by arm and seed."""
    path = results_of(name)
    if not path.is_file():
        return {}
    arms = json.loads(path.read_text(encoding="utf-8"))
    return {
        arm: {int(seed): figures for seed, figures in one["seeds"].items()}
        for arm, one in arms.items()
    }


def carry_out(
    name: str, claims: Iterable[Claim], out: Path, at_a_time: int, seeds: int = 0
) -> Runs:
    """Runs what claims of one method need and is not there yet, contestants by turns.

    Args:
        name: of the method.
        claims: some of its own.
        out: where runs go; models lie beside them.
        at_a_time: processes.
        seeds: at most so many, 0 for as many as each claim needs.
    """
    wanted: dict[str, int] = {}
    for claim in claims:
        for arm in claim.arms:
            own = min(claim.seeds, seeds or claim.seeds)
            wanted[arm] = max(wanted.get(arm, 0), own)
    models = out / "models"
    method(name).prepare(models)
    jobs = {
        (arm, FIRST_SEED + n): _job(name, arm, FIRST_SEED + n, out)
        for n in range(max(wanted.values(), default=0))
        for arm, own in wanted.items()
        if n < own
    }
    work_off(_processes(jobs), at_a_time)
    found: dict[str, dict[int, Mapping[str, float | None]]] = {arm: {} for arm in wanted}
    for (arm, seed), job in jobs.items():
        if job.result.is_file():
            found[arm][seed] = read(job.result)
    return found


def record(name: str, runs: Runs) -> Path:
    """Writes figures into the method's file; what was not run now, it keeps."""
    path = results_of(name)
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    where = _where()
    for arm, by_seed in runs.items():
        if by_seed:
            kept = known.get(arm, {}).get("seeds", {})
            seeds = kept | {str(seed): _rounded(one) for seed, one in by_seed.items()}
            known[arm] = {"where": where, "seeds": dict(sorted(seeds.items(), key=_seed))}
    keep(path, dict(sorted(known.items())))
    return path


_IN_ONE_PROCESS = 5
"""Runs of an arm, one after the other: what a process imports takes as long as a short run."""


def _processes(jobs: Mapping[tuple[str, int], Job]) -> list[Job]:
    """What is to do, in the order of the seeds."""
    waiting: dict[tuple[int, str], list[Job]] = {}
    for (arm, seed), job in jobs.items():
        if not job.result.is_file():
            waiting.setdefault((seed // _IN_ONE_PROCESS, arm), []).append(job)
    return [
        in_one_process(f"{some[0].label} and {len(some) - 1} more", some)
        for _, some in sorted(waiting.items())
    ]


def _job(name: str, arm: str, seed: int, out: Path) -> Job:
    folder = out / "claims" / f"{arm.replace('/', '-').replace(' ', '-')}-{seed}"
    result = folder.with_name(f"{folder.name}.json")
    wanted = {"method": name, "arm": arm, "seed": seed, "folder": str(folder), "out": str(out)}
    words = ("-m", "experiments.records", json.dumps(wanted), str(result))
    return Job(f"{name}: {arm}, seed {seed}", words, result)


def _one(wanted: dict[str, Any]) -> Mapping[str, float | None]:
    own = method(wanted["method"])
    models = Path(wanted["out"]) / "models"
    return own.run(wanted["arm"], wanted["seed"], Path(wanted["folder"]), models)


def _seed(item: tuple[str, Any]) -> int:
    return int(item[0])


def _rounded(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    return {key: None if value is None else float(f"{value:.6g}") for key, value in figures.items()}


def _where() -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        print_machine()
    return "; ".join(said.getvalue().split("\n")).strip("; ")


if __name__ == "__main__":
    begin(_one)
