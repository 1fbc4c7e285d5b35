"""What happens around each step: records, the line on the screen, checks, checkpoints."""

from __future__ import annotations

import math
import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from assay.clients.runs import checkpoints
from assay.clients.runs.interrupt import Interrupt
from assay.clients.runs.records import JsonLines, Row
from assay.trainer.config import Config
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.folder import RunFolder
from assay.trainer.grpo import FaultAwareGRPOTrainer
from assay.trainer.metrics import (
    TensorBoard,
    rollout_metrics,
    sample_rows,
    trl_metrics,
)
from assay.trainer.progress import Display
from assay.trainer.rewards import FaultWatch, RewardFunction


class StepRecorder(TrainerCallback):
    """Records steps, and stops the run when it is interrupted or when too much goes unjudged.

    Args:
        config: of the run.
        folder: where the records go.
        rewards: the reward function, which keeps the latest rollouts.
        display: where steps are shown.
        interrupt: says whether to stop.
        first_step: the first step of this session, counted from 1.

    Attributes:
        stopped_by_faults: why the run was stopped, if it was.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        rewards: RewardFunction,
        display: Display,
        *,
        interrupt: Interrupt,
        first_step: int,
    ) -> None:
        self._config = config
        self._folder = folder
        self._rewards = rewards
        self._display = display
        self._interrupt = interrupt
        self._metrics = JsonLines(folder.metrics)
        self._samples = JsonLines(folder.samples)
        self._board = (
            TensorBoard(folder.tensorboard, first_step=first_step)
            if config.run.tensorboard
            else None
        )
        self._watch = FaultWatch(
            max_ratio=config.reward.max_fault_ratio, window=config.reward.fault_window
        )
        self._started = time.perf_counter()
        self._session_started = self._started
        self._first_step = first_step
        self._fresh = False
        self._calls_seen = 0
        self._trainer: FaultAwareGRPOTrainer | None = None
        self.stopped_by_faults: str | None = None

    def watch(self, trainer: FaultAwareGRPOTrainer) -> None:
        """Names the trainer whose rollout times are recorded."""
        self._trainer = trainer

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Starts the step's clock."""
        self._started = time.perf_counter()

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """A step without a single judgement moves nothing, not even by the optimizer's momentum."""
        if self._trainer is not None and self._trainer.judged == 0:
            kwargs["model"].zero_grad(set_to_none=True)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Decides on stopping and saving."""
        self._fresh = self._rewards.calls > self._calls_seen
        self._calls_seen = self._rewards.calls
        if self._fresh:
            self.stopped_by_faults = self._watch.add(
                [rollout.result for rollout in self._rewards.rollouts]
            )
        every = self._config.run.checkpoint_every
        last = state.global_step >= state.max_steps
        stop = self._interrupt.requested or self.stopped_by_faults is not None
        control.should_training_stop = control.should_training_stop or stop
        control.should_save = last or stop or bool(every and state.global_step % every == 0)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the step's row; what TRL logs when training ends has no step in it."""
        if "loss" not in logs:
            return
        if not math.isfinite(logs["loss"]):
            raise TrainingStoppedError(
                f"the loss of step {state.global_step} is {logs['loss']}: the run has diverged; "
                "lower optim.learning_rate, "
                "and resume from the last checkpoint or start anew"
            )
        row = self._row(state.global_step, logs)
        self._metrics.write(row)
        if self._board is not None:
            self._board.write(row)
        every = self._config.run.samples_every
        if (
            self._fresh
            and every
            and (state.global_step % every == 0 or state.global_step == self._first_step)
        ):
            for sample in sample_rows(state.global_step, self._rewards.rollouts):
                self._samples.write(sample)
        done = state.global_step - self._first_step + 1
        elapsed = time.perf_counter() - self._session_started
        left = elapsed / done * (state.max_steps - state.global_step)
        self._display.step({**row, "left_s": left}, state.max_steps)

    def _row(self, step: int, logs: dict[str, Any]) -> Row:
        trainer = self._trainer
        row: Row = {
            "step": step,
            **trl_metrics(logs),
            **rollout_metrics(self._rewards.rollouts if self._fresh else []),
        }
        step_s = time.perf_counter() - self._started
        rollout_s = trainer.rollout_s if trainer is not None and self._fresh else 0.0
        score_s = trainer.score_s if trainer is not None and self._fresh else 0.0
        tokens = sum(rollout.sample.token_count or 0 for rollout in self._rewards.rollouts)
        row["signal_ratio"] = trainer.signal_ratio if trainer is not None and self._fresh else None
        row["tokens_per_s"] = tokens / rollout_s if rollout_s > 0 else None
        times = {
            "step_s": step_s,
            "rollout_s": rollout_s,
            "score_s": score_s,
            "train_s": step_s - rollout_s - score_s,
        }
        return {**row, **{name: round(value, 4) for name, value in times.items()}}

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Keeps the newest checkpoints only."""
        checkpoints.prune(self._folder.checkpoints, self._config.run.keep_checkpoints)

    def close(self) -> None:
        """Ends the files."""
        self._metrics.close()
        self._samples.close()
        if self._board is not None:
            self._board.close()
