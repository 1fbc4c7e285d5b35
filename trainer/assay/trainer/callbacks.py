"""What happens around each step: records, the line on the screen, checks, checkpoints.

A step is a rollout with all its updates; TRL calls an update a step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import get_reporting_integration_callbacks

from assay.clients.runs import checkpoints
from assay.clients.runs.interrupt import Interrupt
from assay.clients.runs.records import JsonLines
from assay.trainer.config import Config
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.folder import RunFolder
from assay.trainer.metrics import reported, sample_rows, step_row
from assay.trainer.progress import Display
from assay.trainer.rewards import FaultWatch
from assay.trainer.trainer import PolicyTrainer
from assay.trainer.world import World


class StepRecorder(TrainerCallback):
    """Records steps, and stops the run when it is interrupted or when too much goes unjudged.

    Args:
        config: of the run.
        folder: where the records go.
        display: where steps are shown.
        interrupt: says whether to stop.
        world: the processes; the first one writes.
        first_step: the first step of this session, counted from 1.
        evaluate: evaluates within the run, given the step.

    Attributes:
        stopped_by_faults: why the run was stopped, if it was.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        display: Display,
        *,
        interrupt: Interrupt,
        world: World,
        first_step: int,
        evaluate: Callable[[int], None],
    ) -> None:
        self._config = config
        self._folder = folder
        self._display = display
        self._interrupt = interrupt
        self._world = world
        self._metrics = JsonLines(folder.metrics) if world.main else None
        self._samples = JsonLines(folder.samples) if world.main else None
        self._watch = FaultWatch(
            max_ratio=config.reward.max_fault_ratio, window=config.reward.fault_window
        )
        self._started = time.perf_counter()
        self._session_started = self._started
        self._first_step = first_step
        self._evaluate = evaluate
        self._trainer: PolicyTrainer | None = None
        self._alarmed = False
        self._reporters: list[TrainerCallback] = [
            made() for made in get_reporting_integration_callbacks(list(config.run.report_to))
        ]
        self.stopped_by_faults: str | None = None

    def watch(self, trainer: PolicyTrainer) -> None:
        """Names the trainer whose steps are recorded."""
        self._trainer = trainer

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Opens what reports go to."""
        args.logging_dir = str(self._folder.tensorboard)
        for reporter in self._reporters:
            reporter.on_train_begin(args, state, control, **kwargs)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Closes what reports go to."""
        for reporter in self._reporters:
            reporter.on_train_end(args, state, control, **kwargs)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Starts the step's clock."""
        if state.global_step % self._config.updates_per_rollout == 0:
            self._started = time.perf_counter()

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """An update without a single judgement moves nothing, not even by the optimizer's
        momentum."""
        if self._trainer is not None and not self._trainer.moves:
            kwargs["model"].zero_grad(set_to_none=True)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Decides on stopping and saving, when all updates of the rollout are made."""
        step, rest = divmod(state.global_step, self._config.updates_per_rollout)
        control.should_save = False
        if rest or self._trainer is None:
            return
        self.stopped_by_faults = self._watch.add(
            [rollout.result for rollout in self._trainer.collected.judged]
        )
        every = self._config.run.checkpoint_every
        last = state.global_step >= state.max_steps
        stop = self._world.any(self._interrupt.requested) or self.stopped_by_faults is not None
        control.should_training_stop = control.should_training_stop or stop
        control.should_save = last or stop or bool(every and step % every == 0)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the step's row; what TRL logs when training ends has no step in it."""
        if "loss" not in logs or self._trainer is None:
            return
        if not math.isfinite(logs["loss"]):
            raise TrainingStoppedError(
                f"the loss of update {state.global_step} is {logs['loss']}: the run has diverged; "
                "lower optim.learning_rate, and resume from the last checkpoint or start anew"
            )
        step = state.global_step // self._config.updates_per_rollout
        self._record(step, logs, args, state, control, kwargs)
        every = self._config.eval.every
        if every and step % every == 0 and state.global_step < state.max_steps:
            self._evaluate(step)

    def _record(
        self,
        step: int,
        logs: dict[str, Any],
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        kwargs: dict[str, Any],
    ) -> None:
        trainer = self._trainer
        if self._metrics is None or self._samples is None or trainer is None:
            return
        collected = trainer.collected
        now = time.perf_counter()
        times = {
            "step_s": now - self._started,
            "generate_s": collected.generate_s,
            "score_wait_s": collected.wait_s,
        }
        row = step_row(step, {**logs, "signal_ratio": trainer.signal_ratio}, collected, times)
        self._metrics.write(row)
        for reporter in self._reporters:
            reporter.on_log(args, state, control, logs=reported(row), **kwargs)
        every = self._config.run.samples_every
        if every and (step % every == 0 or step == self._first_step):
            for sample in sample_rows(step, collected.judged):
                self._samples.write(sample)
            self._display.samples(collected.judged, self._config.run.show_samples)
        done = step - self._first_step + 1
        left = (now - self._session_started) / done * (self._config.run.steps - step)
        self._display.step({**row, "left_s": left}, self._config.run.steps)
        if trainer.drift_alarm and not self._alarmed:
            self._display.note(trainer.drift_alarm)
        self._alarmed = trainer.drift_alarm is not None

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Keeps the newest checkpoints only."""
        if self._world.main:
            checkpoints.prune(self._folder.checkpoints, self._config.run.keep_checkpoints)

    def close(self) -> None:
        """Ends the files."""
        for file in (self._metrics, self._samples):
            if file is not None:
                file.close()
