"""TensorBoard, Weights & Biases and trackio: the integrations of transformers, with our numbers.

transformers' callbacks begin and end the reporting, with the settings and the model. Their logging
is replaced: the trainer's log holds every number twice, once per update, all in one section
"train/". Here the row of metrics.jsonl is sent once a step under the grouped names of
`metrics.reported`.

1. Written against transformers 5.19; tests/unit/test_trainer_reporting.py pins the classes.
2. They stay open after the training, for the last evaluation; `close` ends them.
3. A resumed run goes on in the same event files (what came after the checkpoint is purged) and in
   the same run of Weights & Biases and trackio (where it is seen twice).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch.utils.tensorboard import SummaryWriter
from transformers.integrations.integration_utils import (
    TensorBoardCallback,
    TrackioCallback,
    WandbCallback,
)

from assay.kit.errors import ConfigError
from assay.kit.runs.records import Row
from assay.trainer.records.samples import describe

PROJECT = "assay"
_STEP = "train/global_step"  # the x axis that transformers' callback defines


class RunReporter(Protocol):
    """A destination of numbers."""

    def report(self, values: Mapping[str, float], step: int) -> None:
        """Shows numbers by grouped name."""
        ...

    def report_samples(self, rows: Sequence[Row], step: int) -> None:
        """Shows rows of samples.jsonl as a table."""
        ...

    def close(self) -> None:
        """Sends what is left, and ends."""
        ...


def check_reporters(names: Iterable[str]) -> None:
    """Checks that the reporters are installed.

    Raises:
        ConfigError: with the command that installs it.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise ConfigError(
                f'run.report_to names "{name}", which is not installed: pip install {name}, or '
                "leave it out"
            )


class _Quiet:
    """Suppresses the logging of transformers' callbacks, and postpones their ends."""

    def on_log(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing: see the module."""

    def on_train_end(self, *_args: Any, **_kwargs: Any) -> None:
        """Stays open."""


class TensorBoard(_Quiet, TensorBoardCallback):
    """Event files in the run's folder."""

    def __init__(self, folder: Path, *, first_step: int) -> None:
        super().__init__(SummaryWriter(str(folder / "tensorboard"), purge_step=first_step))

    def report(self, values: Mapping[str, float], step: int) -> None:
        """Scalars."""
        for name, value in values.items():
            self.tb_writer.add_scalar(name, value, step)
        self.tb_writer.flush()

    def report_samples(self, rows: Sequence[Row], step: int) -> None:
        """A text of tables."""
        texts = (
            f"**{row['verdict'] or row['fault']}**, reward {row['reward']}, "
            f"{row['tokens']} tokens\n\n"
            f"{_indented(row['question'])}\n\n{_indented(row['response'])}"
            for row in rows
        )
        self.tb_writer.add_text("rollouts", "\n\n---\n\n".join(texts), step)

    def close(self) -> None:
        """Ends the files."""
        self.tb_writer.close()


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines() or [""])


class Wandb(_Quiet, WandbCallback):
    """A run of Weights & Biases; WANDB_PROJECT, WANDB_MODE and its other variables are obeyed."""

    def __init__(self, folder: Path, name: str, config: Mapping[str, Any]) -> None:
        super().__init__()
        try:
            self._wandb.init(
                project=os.environ.get("WANDB_PROJECT") or PROJECT,
                name=name,
                id=_kept_id(folder / "wandb_id"),
                resume="allow",
                dir=str(folder),
                config=dict(config),
            )
        except self._wandb.Error as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ConfigError(
                f"run.report_to: wandb: {reason}; log in with `wandb login`, or set "
                "WANDB_MODE=offline"
            ) from error
        self._wandb.define_metric(_STEP)
        self._wandb.define_metric("*", step_metric=_STEP, step_sync=True)

    def report(self, values: Mapping[str, float], step: int) -> None:
        """One entry of the history."""
        self._wandb.log({**values, _STEP: step})

    def report_samples(self, rows: Sequence[Row], step: int) -> None:
        """A table."""
        cells = [describe(row) for row in rows]
        columns = list(cells[0])
        table = self._wandb.Table(
            columns=columns, data=[[row[name] for name in columns] for row in cells]
        )
        self._wandb.log({"rollouts": table, _STEP: step})

    def close(self) -> None:
        """Uploads the rest."""
        self._wandb.finish()


class Trackio(_Quiet, TrackioCallback):
    """A run of trackio, on this machine unless TRACKIO_SPACE_ID says otherwise."""

    def __init__(self, folder: Path, name: str, config: Mapping[str, Any]) -> None:
        super().__init__()
        self._trackio.init(
            project=os.environ.get("TRACKIO_PROJECT") or PROJECT,
            name=f"{name}-{_kept_id(folder / 'trackio_id')}",  # it resumes by name
            resume="allow",
            config=dict(config),
        )
        self._initialized = True  # transformers' own set-up is done by this

    def report(self, values: Mapping[str, float], step: int) -> None:
        """One entry of the history."""
        self._trackio.log(dict(values), step=step)

    def report_samples(self, rows: Sequence[Row], step: int) -> None:
        """A table."""
        pandas: Any = importlib.import_module("pandas")  # comes with trackio, and has no types
        frame = pandas.DataFrame([describe(row) for row in rows])
        self._trackio.log({"rollouts": self._trackio.Table(dataframe=frame)}, step=step)

    def close(self) -> None:
        """Writes the rest."""
        self._trackio.finish()


def _kept_id(path: Path) -> str:
    if not path.is_file():
        path.write_text(secrets.token_hex(4), encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()


def attach(
    trainer: Any,
    names: Sequence[str],
    *,
    folder: Path,
    run_name: str,
    config: Mapping[str, Any],
    first_step: int,
) -> list[RunReporter]:
    """Replaces the reporters of a trainer's `args.report_to` by ours.

    Event files lose what they hold from `first_step` on.

    Returns:
        The reporters on the first process; none on others.

    Raises:
        ConfigError: one is not installed, or refuses.
    """
    for theirs in (TensorBoardCallback, WandbCallback, TrackioCallback):
        trainer.remove_callback(theirs)
    if not trainer.is_world_process_zero():
        return []
    check_reporters(names)
    makers: dict[str, Callable[[], Any]] = {
        "tensorboard": lambda: TensorBoard(folder, first_step=first_step),
        "wandb": lambda: Wandb(folder, run_name, config),
        "trackio": lambda: Trackio(folder, run_name, config),
    }
    reporters = [makers[name]() for name in names]
    for reporter in reporters:
        trainer.add_callback(reporter)
    return reporters
