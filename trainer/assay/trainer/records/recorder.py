"""What every run does around its steps: saving, stopping, rows of numbers, the time left.

A kind of run adds its own numbers; see callbacks.py and recipes/reward_model/callbacks.py.
"""

from __future__ import annotations

import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState

from assay.kit.runs import checkpoints
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.records import JsonLines, Row
from assay.trainer.core.world import World
from assay.trainer.records.folder import RunFolder
from assay.trainer.records.progress import StepDisplay
from assay.trainer.records.reporting import RunReporter
from assay.trainer.settings.sections import RunSection


class RunRecorder(TrainerCallback):
    """Records steps, and stops the run when it is interrupted.

    The first process writes. `first_step`, from 1, is the first of this session; `reporters` get
    each row.
    """

    def __init__(
        self,
        run: RunSection,
        folder: RunFolder,
        display: StepDisplay,
        *,
        interrupt: Interrupt,
        world: World,
        first_step: int,
    ) -> None:
        self._run = run
        self._folder = folder
        self._display = display
        self._interrupt = interrupt
        self._world = world
        self._first_step = first_step
        self._metrics = JsonLines(folder.metrics) if world.main else None
        self._session_started = time.perf_counter()
        self.reporters: list[RunReporter] = []

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Starts the session's clock."""
        self._session_started = time.perf_counter()

    def decide(
        self, step: int, state: TrainerState, control: TrainerControl, *, stop: bool = False
    ) -> None:
        """Decides on saving after a step, and on stopping, for `stop` or an interrupt."""
        every = self._run.checkpoint_every
        last = state.global_step >= state.max_steps
        stop = self._world.any(self._interrupt.requested) or stop
        control.should_training_stop = control.should_training_stop or stop
        control.should_save = last or stop or bool(every and step % every == 0)

    def write(self, row: Row, numbers: dict[str, float]) -> None:
        """Writes and shows a step's row on the first process; `numbers` are for reporters."""
        if self._metrics is None:
            return
        step = int(row["step"])
        self._metrics.write(row)
        for reporter in self.reporters:
            reporter.report(numbers, step)
        done = step - self._first_step + 1
        left_s = (time.perf_counter() - self._session_started) / done * (self._run.steps - step)
        self._display.step({**row, "left_s": left_s}, self._run.steps)

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Keeps the newest checkpoints only."""
        if self._world.main:
            checkpoints.prune(self._folder.checkpoints, self._run.keep_checkpoints)

    def close(self) -> None:
        """Ends the files."""
        for file in (self._metrics, *self.reporters):
            if file is not None:
                file.close()
