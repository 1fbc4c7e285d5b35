"""TensorBoard, W&B and trackio: what arrives there is read back."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.records.metrics import reported, step_row
from assay.trainer.records.reporting import attach, check_reporters
from assay.trainer.records.samples import sample_rows
from assay.trainer.rollouts.types import Collected
from trainer_records_support import bad, good, rollout

ROLLOUTS = [rollout(good(), text="<b>4</b>\n\n# title"), rollout(bad(), index=1)]
installed = {name: importlib.util.find_spec(name) is not None for name in ("wandb", "trackio")}


def test_what_is_not_installed_is_said_at_the_start() -> None:
    check_reporters(["tensorboard"])
    check_reporters([])
    for name in [name for name, there in installed.items() if not there]:
        with pytest.raises(ConfigError, match=f"not installed: pip install {name}"):
            check_reporters(["tensorboard", name])


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Any]:
    """transformers' own trainer of one weight, with the reporting that TRL would give it."""
    import torch
    from transformers import Trainer, TrainingArguments

    class OneWeight(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": (self.weight * x).mean()}

    def make(names: list[str], steps: int = 3) -> Any:
        arguments = TrainingArguments(
            output_dir=str(tmp_path / "out"), max_steps=steps, logging_steps=1, report_to=names,
            use_cpu=True, save_strategy="no", disable_tqdm=True, run_name="a run",
            per_device_train_batch_size=1, dataloader_pin_memory=False,
        )  # fmt: skip
        made = Trainer(OneWeight(), arguments, train_dataset=[{"x": 1.0}] * 3)
        from transformers import PrinterCallback

        made.remove_callback(PrinterCallback)
        return made

    return make  # type: ignore[return-value]


def train(
    trainer: Any,
    reporters: list[Any],
    first_step: int = 1,
    look: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Trains, reports each step and an evaluation after the training, and closes."""
    from transformers import TrainerCallback

    row = step_row(1, {"loss": 0.5}, Collected([], ROLLOUTS, {}, 2.0, 0.1), step_s=3.0)

    class Recorder(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            for reporter in reporters if "loss" in logs else []:
                reporter.report(reported(row), first_step + state.global_step - 1)

    trainer.add_callback(Recorder())
    trainer.train()
    for reporter in reporters:
        reporter.report_samples(list(sample_rows(3, ROLLOUTS)), 3)
        reporter.report({"eval/accuracy": 0.75}, 3)
        look()
        reporter.close()
    return reported(row)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_tensorboard_has_each_number_once(tmp_path: Path, trainer: Any) -> None:
    made = trainer(["tensorboard"])
    kept = attach(made, ["tensorboard"], folder=tmp_path, run_name="a run", config={}, first_step=1)
    values = train(made, kept)
    seen = scalars(tmp_path)
    assert set(seen) == {*values, "eval/accuracy"}
    for name, value in values.items():
        assert [step for step, _ in seen[name]] == [1, 2, 3]
        assert seen[name][0][1] == pytest.approx(value)
    assert seen["eval/accuracy"] == [(3, 0.75)]
    assert not list((tmp_path / "out").rglob("events*")), "transformers wrote files of its own"


@pytest.mark.slow
def test_a_resumed_run_replaces_what_came_after_its_checkpoint(
    tmp_path: Path, trainer: Any
) -> None:
    for first_step in (1, 3):
        made = trainer(["tensorboard"])
        kept = attach(
            made, ["tensorboard"], folder=tmp_path, run_name="a run", config={},
            first_step=first_step,
        )  # fmt: skip
        train(made, kept, first_step)
    assert [step for step, _ in scalars(tmp_path)["reward/mean"]] == [1, 2, 3, 4, 5]


def test_rollouts_are_texts_that_break_nothing(tmp_path: Path, trainer: Any) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    made = trainer(["tensorboard"])
    kept = attach(made, ["tensorboard"], folder=tmp_path, run_name="a run", config={}, first_step=1)
    train(made, kept)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    [event] = events.Tensors("rollouts/text_summary")
    text = event.tensor_proto.string_val[0].decode()
    assert "    # title" in text
    assert "**WORKER_DIED**" in text


def test_only_the_first_process_reports(tmp_path: Path, trainer: Any) -> None:
    made = trainer(["tensorboard"])
    made.is_world_process_zero = lambda: False
    assert (
        attach(made, ["tensorboard"], folder=tmp_path, run_name="r", config={}, first_step=1) == []
    )
    assert not (tmp_path / "tensorboard").exists()
    assert not [c for c in made.callback_handler.callbacks if "TensorBoard" in type(c).__name__]


@pytest.mark.skipif(not installed["wandb"], reason="wandb is an option and not installed")
def test_wandb_offline(tmp_path: Path, trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    made = trainer(["wandb"])
    kept = attach(
        made, ["wandb"], folder=tmp_path, run_name="a run", config={"run": {"seed": 3}},
        first_step=1,
    )  # fmt: skip
    import wandb

    assert wandb.run is not None
    summary: dict[str, Any] = {}
    assert wandb.run.config["run"] == {"seed": 3}
    assert wandb.run.id == (tmp_path / "wandb_id").read_text()
    values = train(made, kept, look=lambda: summary.update(wandb.run.summary))
    for name, value in values.items():
        assert summary[name] == pytest.approx(value)
    assert summary["eval/accuracy"] == 0.75
    assert not {"train/loss", "train/epoch"} & set(summary)
    assert "rollouts" in summary
    assert list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))


@pytest.mark.skipif(not installed["trackio"], reason="trackio is an option and not installed")
def test_trackio(tmp_path: Path, trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    made = trainer(["trackio"])
    kept = attach(
        made, ["trackio"], folder=tmp_path, run_name="a run", config={"seed": 3}, first_step=1
    )
    values = train(made, kept)
    assert values
    assert list((tmp_path / "trackio").rglob("*.db"))
