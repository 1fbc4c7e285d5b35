"""What happens around each step: records, the line on the screen, stopping, checkpoints."""

from __future__ import annotations

import math
import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from assay.clients.runs import checkpoints
from assay.clients.runs.interrupt import Interrupt
from assay.clients.runs.records import JsonLines, Row
from assay.genrm.training.config import Config
from assay.genrm.training.folder import RunFolder
from assay.genrm.training.progress import Display
from assay.rpc.errors import AssayError


class DivergedError(AssayError):
    """The loss is no longer a number."""


class StepRecorder(TrainerCallback):
    """Records steps, and ends the run when it is interrupted.

    Args:
        config: of the run.
        folder: where the records go.
        display: where steps are shown.
        interrupt: says whether to stop.
        first_step: the first step of this session, counted from 1.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        display: Display,
        *,
        interrupt: Interrupt,
        first_step: int,
    ) -> None:
        self._config = config
        self._folder = folder
        self._display = display
        self._interrupt = interrupt
        self._first_step = first_step
        self._metrics = JsonLines(folder.metrics)
        self._started = self._since = time.perf_counter()
        self._last_step = first_step - 1

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Decides on stopping and saving."""
        every = self._config.run.checkpoint_every
        last = state.global_step >= state.max_steps
        stop = self._interrupt.requested
        control.should_training_stop = control.should_training_stop or stop
        control.should_save = last or stop or bool(every and state.global_step % every == 0)
        control.should_log = control.should_log or last or stop
        self._display.advance(state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes a row; what is logged when training ends has no step in it."""
        if "loss" not in logs:
            return
        if not math.isfinite(logs["loss"]):
            raise DivergedError(
                f"the loss of step {state.global_step} is {logs['loss']}: the run has diverged; "
                "lower optim.learning_rate, and resume from the last checkpoint or start anew"
            )
        now, step = time.perf_counter(), state.global_step
        row: Row = {
            "step": step,
            **{name: logs.get(name) for name in ("loss", "grad_norm", "learning_rate")},
            "step_s": round((now - self._since) / max(1, step - self._last_step), 4),
        }
        self._since, self._last_step = now, step
        self._metrics.write(row)
        done = step - self._first_step + 1
        left_s = (now - self._started) / done * (state.max_steps - step)
        self._display.step(row, state.max_steps, left_s)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Keeps the newest checkpoints only."""
        checkpoints.prune(self._folder.checkpoints, self._config.run.keep_checkpoints)

    def close(self) -> None:
        """Ends the file."""
        self._metrics.close()
