"""Runs a ladder and writes its results."""

from __future__ import annotations

import json
import subprocess
import time
from collections import deque
from pathlib import Path

from rich.console import Console

from assay.kit.errors import ConfigError
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.progress import Display, duration
from assay.trainer.recipes.children import INTERRUPTED, end, interrupt
from assay.trainer.recipes.ladder import outcome, table
from assay.trainer.recipes.ladder.plan import LadderPlan
from assay.trainer.recipes.ladder.processes import RungRun, last_line, start

_LOOK_EVERY_S = 0.2


def climb(plan: LadderPlan, folder: Path, console: Console, *, jobs: int = 1) -> int:
    """Runs what is not finished, then writes ladder.json, ladder.md and ladder.png.

    A failed run is reported and left out; the others continue.

    Returns:
        0; 1 if a run failed; 130 if interrupted: the same command continues.

    Raises:
        ConfigError: the folder holds runs of other settings.
    """
    runs = [
        RungRun(rung.name, seed, config, folder / rung.name / str(seed))
        for seed in plan.seeds
        for rung in plan.rungs
        for config in (rung.configs[seed],)
    ]
    waiting = deque(job for job in runs if job.state() != "finished")
    display = Display(console)
    display.note(
        f"ladder {plan.name} in {folder}: {len(plan.rungs)} rungs x {len(plan.seeds)} seeds = "
        f"{len(runs)} runs, {len(runs) - len(waiting)} of them finished"
    )
    folder.mkdir(parents=True, exist_ok=True)
    work = RunQueue(display, runs, waiting, jobs)
    try:
        interrupted = work.run()
    finally:
        work.close()
    _write(plan, runs, folder, display)
    if interrupted:
        display.note("interrupted; the same command continues")
        return INTERRUPTED
    for job in work.failed:
        display.note(f"failed: {job.label}: {last_line(job.log)} (all of it: {job.log})")
    return 1 if work.failed else 0


class RunQueue:
    """The running processes, and the remaining runs.

    Attributes:
        failed: runs that ended otherwise than finished or interrupted.
    """

    def __init__(
        self, display: Display, runs: list[RungRun], waiting: deque[RungRun], jobs: int
    ) -> None:
        self._display = display
        self._runs = runs
        self._waiting = waiting
        self._jobs = jobs
        self._going: dict[RungRun, tuple[subprocess.Popen[bytes], float]] = {}
        self.failed: list[RungRun] = []

    def run(self) -> bool:
        """Works until nothing is left, or an interrupt; whether there was one."""
        total = sum(job.config.run.steps for job in self._runs)
        self._display.begin("steps", total, self._done())
        with Interrupt(self._pass_on) as stop:
            while self._going or (self._waiting and not stop.requested):
                while self._waiting and len(self._going) < self._jobs and not stop.requested:
                    self._start(self._waiting.popleft())
                time.sleep(_LOOK_EVERY_S)
                self._collect(stopping=stop.requested)
                self._display.advance(self._done())
        return stop.requested

    def close(self) -> None:
        """Kills what still runs."""
        self._display.end()
        for process, _ in self._going.values():
            end(process)

    def _done(self) -> int:
        return sum(job.steps_done() for job in self._runs)

    def _pass_on(self, name: str) -> None:
        self._display.note(
            f"{name}: the runs under way end their step and save a checkpoint; again to leave at "
            "once"
        )
        for process, _ in self._going.values():
            interrupt(process)

    def _start(self, job: RungRun) -> None:
        self._display.note(f"{job.label}: {'begins' if job.state() == 'new' else 'goes on'}")
        try:
            self._going[job] = (start(job), time.perf_counter())
        except (OSError, ConfigError) as error:
            job.log.write_text(f"{error}\n", encoding="utf-8")
            self._fail(job)

    def _collect(self, *, stopping: bool) -> None:
        for job, (process, started) in list(self._going.items()):
            code = process.poll()
            if code is None:
                continue
            end(process)
            del self._going[job]
            took = duration(time.perf_counter() - started)
            if outcome.read(job.folder) is not None and code == 0:
                self._display.note(f"{job.label}: finished ({took})")
            elif not stopping:
                self._fail(job)

    def _fail(self, job: RungRun) -> None:
        self.failed.append(job)
        self._display.note(f"{job.label}: failed; the others go on")


def _write(plan: LadderPlan, runs: list[RungRun], folder: Path, display: Display) -> None:
    outcomes: dict[str, dict[int, outcome.RunOutcome]] = {rung.name: {} for rung in plan.rungs}
    for job in runs:
        found = outcome.read(job.folder)
        if found is not None:
            outcomes[job.rung][job.seed] = found
    if not any(outcomes.values()):
        return
    from assay.trainer.recipes.ladder import plot  # noqa: PLC0415  # matplotlib takes a second to import

    summaries = table.summarise(plan, outcomes)
    text = json.dumps(table.to_json(plan, summaries), indent=2)
    (folder / "ladder.json").write_text(text + "\n", encoding="utf-8")
    (folder / "ladder.md").write_text(table.markdown(plan, summaries) + "\n", encoding="utf-8")
    plot.draw(plan, outcomes, folder / "ladder.png")
    display.console.print(table.screen(plan, summaries))
    for name in ("ladder.md", "ladder.json", "ladder.png"):
        display.note(f"  {folder / name}")
