"""Callbacks of a reward model's steps: records, the line on the screen, stopping."""

from __future__ import annotations

import math
import time
from typing import Any

from transformers import TrainerState

from assay.kit.runs.records import Row
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.records.progress import LEFT, seconds
from assay.trainer.records.recorder import RunRecorder
from assay.trainer.settings.metric import Column

COLUMNS = (
    Column("loss", ("loss",), 9, 0, "mean since the line before", lambda v: f"{v:.4f}"),
    Column("grad", ("grad_norm",), 8, 3, "its gradient's norm", lambda v: f"{v:.2f}"),
    Column("rate", ("learning_rate",), 10, 4, "learning rate", lambda v: f"{v:.1e}"),
    Column("time", ("step_s",), 7, 2, "of one step", seconds),
    LEFT,
)


class LossRecorder(RunRecorder):
    """Writes a row every few steps; a loss that is no number ends the run."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._since = time.perf_counter()
        self._last_step = self._first_step - 1

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
        """Starts the clocks."""
        super().on_train_begin(*args, **kwargs)
        self._since = time.perf_counter()

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Decides on stopping and saving."""
        self.decide(state.global_step, state, control)
        last = state.global_step >= state.max_steps
        control.should_log = control.should_log or last or control.should_training_stop
        self._display.advance(state.global_step)

    def on_log(
        self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any
    ) -> None:
        """Writes a row; the log at the end of training has no step."""
        if "loss" not in logs:
            return
        if not math.isfinite(logs["loss"]):
            raise TrainingStoppedError(
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
        self.write(row, {f"train/{name}": value for name, value in row.items() if name != "step"})
