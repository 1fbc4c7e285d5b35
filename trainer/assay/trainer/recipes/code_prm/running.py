"""Runs the unfinished stages, each by the command that a person would type.

A stage's process ends with this one (assay.kit.child). Services are started for the stages that
need them: the sandbox for the labels; the reward server as well for a run; and genrm with the PRM
for the dense run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from assay.clients.services import EmbeddedServices
from assay.kit.errors import ConfigError
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.progress import Display, duration
from assay.kit.runs.records import JsonLines, read_rows
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.recipes import children
from assay.trainer.recipes.code_prm import stages
from assay.trainer.recipes.code_prm.config import PipelinePlan, to_toml
from assay.trainer.recipes.code_prm.rows import label_summary
from assay.trainer.recipes.code_prm.stages import STAGES, Paths

_SOME_LEFT = 1
_POLL_S = 0.2


class InterruptedStage(Exception):
    """Ctrl-C: the stage ended in order, and the same command continues."""


class Pipeline:
    """One pipeline in one folder."""

    def __init__(self, plan: PipelinePlan, paths: Paths, display: Display) -> None:
        self._plan = plan
        self._paths = paths
        self._display = display

    def run(self) -> dict[str, Any] | None:
        """Runs what is missing, in order.

        Returns:
            The report; None when it was interrupted.

        Raises:
            ConfigError: the folder holds a pipeline of other settings, or a stage has no input.
            StartupError: a service could not start.
            TrainingStoppedError: a stage failed; its output stands above.
        """
        self._claim()
        names = STAGES if self._plan.config.problems.source == "generated" else STAGES[1:]
        for number, name in enumerate(names, start=1):
            where = f"stage {number} of {len(names)}, {name}"
            if self._paths.is_whole(name):
                self._display.note(f"{where}: done before")
                continue
            self._display.note(where)
            started = time.perf_counter()
            try:
                with self._timed(name):
                    getattr(self, f"_{name}")()
            except InterruptedStage:
                self._display.note(f"interrupted in {where}; the same command goes on")
                return None
            self._display.note(f"{where}: {duration(time.perf_counter() - started)}")
        return outcome(self._plan, self._paths)

    def _claim(self) -> None:
        text = to_toml(self._plan)
        self._paths.path.mkdir(parents=True, exist_ok=True)
        kept = self._paths.config
        if kept.is_file() and kept.read_text(encoding="utf-8") != text:
            raise ConfigError(
                f"{self._paths.path} holds a pipeline of other settings, see {kept}; choose "
                "another --dir, or remove it"
            )
        kept.write_text(text, encoding="utf-8")

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Records a stage's time, however it ended."""
        started = time.perf_counter()
        try:
            yield
        finally:
            file = JsonLines(self._paths.times)
            file.write({"stage": name, "seconds": round(time.perf_counter() - started, 1)})
            file.close()

    def _problems(self) -> None:
        stages.make_problems(self._plan, self._paths)

    def _baseline(self) -> None:
        with self._services("sandbox", "reward") as services:
            self._train("baseline", services.address)

    def _samples(self) -> None:
        """Samples each checkpoint in its own process, which frees its memory."""
        plan, paths, wanted = self._plan, self._paths, self._plan.config.samples
        (paths.path / "samples").mkdir(exist_ok=True)
        for number in plan.checkpoints:
            folder = stages.checkpoint_of(paths, number)
            words = [str(paths.run("baseline").config), str(folder), str(paths.samples(number))]
            words += ["--number", str(number), "--per-prompt", str(wanted.per_prompt)]
            words += ["--prompts", str(wanted.prompts), "--batch", str(wanted.batch)]
            words += ["--temperature", str(wanted.temperature)]
            self._child("samples", [__package__ or "", *words])
        found = stages.gather_programs(plan, paths)
        self._display.note(f"{found} different programs to label")

    def _labels(self) -> None:
        plan, paths = self._plan, self._paths
        with self._services("sandbox") as services:
            words = stages.label_arguments(plan, paths, services.address_of("sandbox"))
            code = self._child("labels", [children.ASSAY, *words], allowed=(0, _SOME_LEFT))
        labelled = len(read_rows(paths.labels))
        if code == _SOME_LEFT and not labelled:
            raise TrainingStoppedError("stage labels failed: no program was labelled; see above")
        # Responses without a program were left out by the command; what it told as faults were not.
        asked = len(read_rows(paths.programs)) if code == _SOME_LEFT else labelled
        unlabelled = max(0, asked - labelled)
        kept = stages.gather_steps(plan, paths, unlabelled)
        self._display.note(f"{kept} of {labelled} labelled programs for the PRM")

    def _prm(self) -> None:
        self._child("prm", [children.ASSAY, *stages.train_rm_arguments(self._plan, self._paths)])

    def _dense(self) -> None:
        stages.write_models(self._paths)
        with self._services("sandbox", "genrm", "reward") as services:
            self._train("dense", services.address)

    def _train(self, name: str, target: str) -> None:
        config = self._plan.baseline if name == "baseline" else self._plan.dense
        words = stages.train_arguments(config, self._paths, name, target)
        self._child(name, [children.ASSAY, *words])

    def _services(self, *names: str) -> EmbeddedServices:
        return EmbeddedServices(
            names,
            arguments={
                "sandbox": ["--languages", self._plan.language],
                "genrm": ["--models", str(self._paths.models)],
            },
            log_dir=self._paths.path / "services",
            start_timeout_s=1800.0 if "genrm" in names else 120.0,
        )

    def _child(self, stage: str, command: Sequence[str], allowed: tuple[int, ...] = (0,)) -> int:
        """Waits for a process; passes a first Ctrl-C on.

        Raises:
            InterruptedStage: it ended after an interrupt.
            TrainingStoppedError: it failed.
        """
        process = children.start(command)
        try:
            with Interrupt(lambda _name: children.interrupt(process)) as stop:
                while (code := process.poll()) is None:
                    time.sleep(_POLL_S)
        finally:
            children.end(process)
        if code == children.INTERRUPTED or (stop.requested and code != 0):
            raise InterruptedStage
        if code not in allowed:
            raise TrainingStoppedError(
                f"stage {stage} ended with code {code}, see above; the same command goes on there"
            )
        return code


def outcome(plan: PipelinePlan, paths: Paths) -> dict[str, Any]:
    """The report: the runs' results, the PRM's quality, and the cost."""
    seconds: dict[str, float] = {}
    for row in read_rows(paths.times):
        seconds[row["stage"]] = seconds.get(row["stage"], 0.0) + row["seconds"]
    runs = {name: _json(paths, name) for name in ("baseline", "prm", "dense")}
    return {
        "policy": plan.config.start.policy,
        "guards": asdict(plan.config.guards),
        "value_init": plan.config.start.value_init,
        "accuracy": {
            "start": _accuracy(runs["baseline"], "before"),
            "baseline": _accuracy(runs["baseline"], "after"),
            "dense": _accuracy(runs["dense"], "after"),
        },
        "samples": sum(len(read_rows(paths.samples(n))) for n in plan.checkpoints),
        "labels": label_summary(read_rows(paths.labels)),
        "prm_rows": len(read_rows(paths.steps)),
        "prm": runs["prm"].get("after"),
        "seconds": seconds,
    }


def _json(paths: Paths, name: str) -> dict[str, Any]:
    text = (paths.run(name).path / "report.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _accuracy(report: Mapping[str, Any], when: str) -> float | None:
    found = report.get(when)
    return None if found is None else found["accuracy"]


def as_text(report: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    labels, prm = report["labels"], report["prm"] or {}
    lines = ["# Process supervision for code", "", "| policy | held-out accuracy |", "|---|---|"]
    for name, value in report["accuracy"].items():
        lines.append(f"| {name} | {'-' if value is None else format(value, '.3f')} |")
    made = (
        f"{report['samples']} samples, {labels['programs']} programs labelled, {labels['passed']} "
        f"of them passed as they are; lines: {labels['right']} right, {labels['wrong']} wrong, "
        f"{labels['neutral']} neutral"
    )
    cost = (
        f"cost of the labels: {labels['calls']} prefixes asked about, {labels['completions']} "
        f"completions, {labels['executions']} programs run, {labels['tokens']} tokens written"
    )
    learnt = f"the PRM learnt from {report['prm_rows']} of them"
    for name, figure in prm.get("figures", {}).items():
        learnt += f"; {name} {figure['value']:.3f}"
    guards = ", ".join(name for name, on in report["guards"].items() if on) or "none"
    origin = "the PRM" if report["value_init"] else "the policy"
    started = f"guards: {guards}; the critic starts from {origin}"
    lines += [
        "",
        *(f"- {line}" for line in (made, cost, learnt, started)),
        "",
        "| stage | time |",
        "|---|---|",
        *(f"| {name} | {duration(value)} |" for name, value in report["seconds"].items()),
    ]
    return "\n".join(lines)
