"""A run that was stopped and taken up again is the run that was never stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.rpc.errors import ConfigError

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]


def stopped_copy(run: Path, copy: Path, *, step: int) -> Path:
    """The folder of a run as a kill after `step` would have left it: later checkpoints and results
    are not there."""
    shutil.copytree(run, copy)
    for checkpoint in (copy / "checkpoints").glob("checkpoint-*"):
        if int(checkpoint.name.partition("-")[2]) > step:
            shutil.rmtree(checkpoint)
    for name in ("report.json", "report.md", "curves.png", "eval_after.json"):
        (copy / name).unlink()
    shutil.rmtree(copy / "model")
    return copy


@pytest.mark.parametrize(("updates", "step"), [(1, 4), (2, 3)])
def test_a_resumed_run_matches_an_uninterrupted_one(
    tiny_config: MakeConfig, train: Train, curve: Curve, tmp_path: Path, *, updates: int, step: int
) -> None:
    """With two updates per rollout, step 3 lies inside a rollout: what TRL holds between steps must
    come back too."""
    config = tiny_config(
        run={"steps": 6, "checkpoint_every": 1, "keep_checkpoints": 6, "samples_every": 1},
        algorithm={"updates_per_rollout": updates},
        optim={"micro_batch": 32, "schedule": "linear"},
    )
    whole = train(config, "whole")
    stopped = stopped_copy(tmp_path / "whole", tmp_path / "stopped", step=step)
    resumed = train(config, "stopped")
    assert curve(resumed) == curve(whole)
    for name in ("eval_before.json", "eval_after.json", "samples.jsonl", "model/model.safetensors"):
        assert (stopped / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_finished_run_resumes_for_longer(
    tiny_config: MakeConfig, train: Train, curve: Curve
) -> None:
    long = train(tiny_config(run={"steps": 5}), "long")
    train(tiny_config(run={"steps": 3}), "grown")
    grown = train(tiny_config(run={"steps": 5}), "grown")
    assert curve(grown) == curve(long)


def test_a_damaged_checkpoint_is_named_with_the_one_before(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    config = tiny_config(run={"steps": 4, "checkpoint_every": 2}, eval={"prompts": 0})
    train(config)
    weights = tmp_path / "run" / "checkpoints" / "checkpoint-4" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(
        ConfigError,
        match=r"checkpoint-4 is damaged: model\.safetensors has .* resume from checkpoint-2",
    ):
        train(config)
    shutil.rmtree(weights.parent)
    assert len(train(config)) == 4


def start(config: Path, folder: Path) -> subprocess.Popen[str]:
    command = [
        str(Path(sys.executable).with_name("assay")),
        "train",
        str(config),
        "--run-dir",
        str(folder),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    for _ in range(1000):
        if condition():
            return
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    raise AssertionError("it did not come to pass in 50 s")


def rows_in(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.is_file() else 0


@pytest.mark.slow
def test_ctrl_c_saves_a_checkpoint_and_says_how_to_go_on(
    tiny_config: MakeConfig, tmp_path: Path, train: Train
) -> None:
    from assay.trainer import config as configs

    config = tiny_config(run={"steps": 500}, eval={"prompts": 0})
    file = tmp_path / "tiny.toml"
    file.write_text(configs.to_toml(config))
    folder = tmp_path / "run"
    process = start(file, folder)
    wait_for(lambda: rows_in(folder / "metrics.jsonl") >= 3, process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert "a checkpoint is saved; continue with `assay train --resume" in out
    assert "Traceback" not in out
    done = rows_in(folder / "metrics.jsonl")
    assert (folder / "checkpoints" / f"checkpoint-{done}" / "manifest.json").is_file()
    rows = train(tiny_config(run={"steps": done + 1}, eval={"prompts": 0}))
    assert [row["step"] for row in rows] == list(range(1, done + 2))


@pytest.mark.slow
def test_a_kill_in_mid_save_leaves_no_broken_checkpoint(
    tiny_config: MakeConfig, tmp_path: Path, train: Train
) -> None:
    """Saves after every step and is killed while one is being written."""
    from assay.clients.runs import checkpoints
    from assay.trainer import config as configs

    config = tiny_config(run={"steps": 500, "checkpoint_every": 1}, eval={"prompts": 0})
    file = tmp_path / "tiny.toml"
    file.write_text(configs.to_toml(config))
    folder = tmp_path / "run"
    process = start(file, folder)
    saved = folder / "checkpoints"
    wait_for(
        lambda: len(checkpoints.steps(saved)) >= 1 and bool(list(saved.glob(".saving-*"))), process
    )
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    latest = checkpoints.latest(saved)
    assert latest is not None
    done = int(latest.name.partition("-")[2])
    rows = train(tiny_config(run={"steps": done + 1}, eval={"prompts": 0}))
    assert [row["step"] for row in rows] == list(range(1, done + 2))
    assert not list(saved.glob(".saving-*"))
