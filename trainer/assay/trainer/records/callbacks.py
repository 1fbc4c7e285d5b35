"""Callbacks around each step of a policy: records, the line on the screen, checks.

A step is a rollout with all its updates; TRL calls an update a step.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers import TrainerCallback, TrainerState

from assay.kit import tracing
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.records import JsonLines, Row
from assay.kit.spans import TraceSpan
from assay.trainer.core.rewards import FaultWatch
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.core.world import World
from assay.trainer.records import postmortem
from assay.trainer.records.folder import RunFolder
from assay.trainer.records.metrics import reported, reported_evaluation, step_row
from assay.trainer.records.progress import StepDisplay
from assay.trainer.records.recorder import RunRecorder
from assay.trainer.records.reporting import RunReporter
from assay.trainer.records.rollouts import RolloutRecorder, parts_of
from assay.trainer.records.samples import sample_rows, samples_table, telling
from assay.trainer.rollouts.types import place
from assay.trainer.settings.config import Config

# Rows of metrics that a postmortem keeps, and samples that reporters are shown at least.
_REMEMBERED = 20
_TELLING = 8


class StepRecorder(RunRecorder):
    """Records steps, and stops the run when it is interrupted or has too many faults.

    `evaluate` evaluates within the run, given the step, from 1; `held_s` gives the seconds so far
    of waiting for the reward services; `stopped_by_faults` is the reason of a stop.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        display: StepDisplay,
        *,
        interrupt: Interrupt,
        world: World,
        first_step: int,
        evaluate: Callable[[int], None],
        held_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        super().__init__(
            config.run, folder, display, interrupt=interrupt, world=world, first_step=first_step
        )
        self._config = config
        self._samples = JsonLines(folder.samples) if world.main else None
        self.rollouts = RolloutRecorder(config.run, folder.rollouts, world.index, display.note)
        self._watch = FaultWatch(
            max_ratio=config.reward.max_fault_ratio, window=config.reward.fault_window
        )
        self._started, self._began = time.perf_counter(), time.time()
        self._evaluate = evaluate
        self._held_s = held_s
        self._held_before_s = 0.0
        self._trainer: PolicyTrainer | None = None
        self._alarmed = False
        self._recent: deque[Row] = deque(maxlen=_REMEMBERED)
        self.stopped_by_faults: str | None = None

    def watch(self, trainer: PolicyTrainer, reporters: list[RunReporter]) -> None:
        """Sets the trainer whose steps are recorded, and the reporters."""
        self._trainer = trainer
        self.reporters = reporters
        trainer.on_batch = self.rollouts.saw
        trainer.on_entropies = self.rollouts.spread
        self.rollouts.vocabulary(trainer.processing_class)
        trainer.on_evaluated = lambda mine: self.rollouts.evaluation(self._steps_made(), mine)

    def _steps_made(self) -> int:
        made = self._trainer.state.global_step if self._trainer is not None else 0
        return int(made) // self._config.updates_per_rollout

    def broken(self, batch: Mapping[str, torch.Tensor], loss: float) -> str:
        """Saves what led to a loss that is no number; returns the message."""
        trainer = self._trainer
        assert trainer is not None  # noqa: S101  # it is what calls this
        step = trainer.state.global_step // self._config.updates_per_rollout + 1
        return postmortem.save(
            self._folder.path,
            step,
            loss,
            batch=batch,
            rollouts=trainer.collected.held,
            metrics=[*self._recent, {"step": step, **trainer.collected.metrics}],
            rank=self._world.index,
            ranks=self._world.count,
        )

    def on_step_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Starts the step's clock."""
        if state.global_step % self._config.updates_per_rollout == 0:
            self._started, self._began = time.perf_counter(), time.time()
            self._held_before_s = self._held_s()

    def on_pre_optimizer_step(
        self, args: Any, state: TrainerState, control: Any, **kwargs: Any
    ) -> None:
        """Without a judgement nothing moves, even by the optimizer's momentum."""
        if self._trainer is not None and not self._trainer.moves:
            kwargs["model"].zero_grad(set_to_none=True)

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Decides on stopping and saving, when all updates of the rollout are made."""
        step, rest = divmod(state.global_step, self._config.updates_per_rollout)
        control.should_save = False
        if rest or self._trainer is None:
            return
        self.stopped_by_faults = self._watch.add(self._trainer.collected.results)
        self.decide(step, state, control, stop=self.stopped_by_faults is not None)

    def on_log(
        self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any
    ) -> None:
        """Writes the step's row; TRL's log at the end of training has no step in it."""
        if "loss" not in logs or self._trainer is None:
            return
        step = state.global_step // self._config.updates_per_rollout
        self._record(step, logs)
        every = self._config.eval.every
        if every and step % every == 0 and state.global_step < state.max_steps:
            self._evaluate(step)

    def _record(self, step: int, logs: dict[str, Any]) -> None:
        trainer = self._trainer
        if trainer is None:
            return
        every = self._config.run.samples_every
        shows = every and (step % every == 0 or step == self._first_step)
        samples = self._samples_of(step, trainer) if shows else []
        self._keep_rollouts(step, trainer, sampled=bool(shows))
        if self._metrics is None:
            return
        row = step_row(
            step,
            {
                **logs,
                **trainer.timing.taken(trainer.engine),
                "signal_ratio": trainer.signal_ratio,
                "held_s": round(self._held_s() - self._held_before_s, 4),
            },
            trainer.collected,
            step_s=time.perf_counter() - self._started,
        )
        self._recent.append(row)
        self.write(row, reported(row))
        if shows:
            self._write_samples(step, samples)
        if trainer.drift_alarm and not self._alarmed:
            self._display.note(f"warning: {trainer.drift_alarm}")
        self._alarmed = trainer.drift_alarm is not None

    def _keep_rollouts(self, step: int, trainer: PolicyTrainer, *, sampled: bool) -> None:
        collected = trainer.collected
        own = {place(one): one for one in (*collected.rows, *collected.held)}
        self.rollouts.step(step, list(own.values()), sampled=sampled)
        spans = trainer.timing.spans()
        inner = [part for span in spans for part in parts_of(span, collected)]
        self.rollouts.times(step, [*spans, *inner, ("step", self._began, time.time())])

    def report_evaluation(self, row: Row) -> None:
        """Reports a row of evals.jsonl."""
        for reporter in self.reporters:
            reporter.report(reported_evaluation(row), int(row["step"]))

    def _samples_of(self, step: int, trainer: PolicyTrainer) -> list[Row]:
        collected, ranks = trainer.collected, trainer.ranks
        own = list(
            sample_rows(
                step,
                collected.held,
                shaped=trainer.shaped_rewards,
                advantages=trainer.mean_advantages,
            )
        )
        if ranks.count == 1:
            return own
        parcel = json.dumps(own).encode()
        parcels = ranks.exchange([parcel, *[b""] * (ranks.count - 1)])
        order = {place(one): n for n, one in enumerate(collected.judged)}
        rows = [row for part in parcels if part for row in json.loads(part)]
        return sorted(rows, key=lambda row: order[row["draw"], row["sample"]])

    def _write_samples(self, step: int, rows: list[Row]) -> None:
        if self._samples is not None:
            for row in rows:
                self._samples.write(row)
        shown = telling(rows, max(_TELLING, self._config.run.show_samples))
        for reporter in self.reporters:
            reporter.report_samples(shown, step)
        if self._config.run.show_samples and rows:
            few = telling(rows, self._config.run.show_samples)
            self._display.console.print(samples_table(few, width=self._display.width))

    def close(self) -> None:
        """Ends the files."""
        super().close()
        self.rollouts.close()
        if self._samples is not None:
            self._samples.close()


class StepSpans(TrainerCallback):
    """Opens a span when a step begins, and ends it with its last update.

    Rollouts that are drawn ahead are children of the step that ordered them.
    """

    def __init__(self, updates: int) -> None:
        self._updates = updates
        self._span = TraceSpan()

    def on_step_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Opens the span."""
        step, rest = divmod(state.global_step, self._updates)
        if not rest:
            self._span = tracing.span("step", {"assay.step": step + 1})
            self._span.__enter__()

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Ends it."""
        if state.global_step % self._updates == 0:
            span, self._span = self._span, TraceSpan()
            span.__exit__(None, None, None)
