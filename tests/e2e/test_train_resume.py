"""A run that was stopped and taken up again is the run that was never stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.clients import EmbeddedServices
from assay.kit.errors import ConfigError

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]


GAE = {"estimator": "gae", "lam": 0.95}
METHODS: dict[str, dict[str, Any]] = {
    "grpo": {
        "method": {"loss": {"kl_coef": 0.05}},
        "optim": {"micro_batch": 32, "schedule": "linear", "warmup_steps": 2},
    },
    "dapo": {
        "method": {
            "loss": {"clip_high": 0.28},
            "dynamic_sampling": {"enabled": True, "keep_surplus": True},
        },
        "optim": {"mini_batches": 2},
    },
    "choice": {
        "data": {"selection": {"name": "mopps"}},
        "method": {
            "fire": {"enabled": True, "top_k": 3},
            "loss": {"clip_high": 0.28},
            "replay": {"groups": 8},
            "filter": {"min_group_std": 0.05},
        },
        "optim": {"mini_batches": 2},
    },
    "hints": {  # a survey every second step, groups answered again, successes replayed
        "data": {
            "columns": {"solution": "answer"},
            "selection": {"name": "vas", "vas": {"refresh_every": 2, "samples": 2}},
        },
        "method": {
            "hints": {"enabled": True},
            "replay": {"groups": 32, "mode": "success"},
        },
        "rollout": {"prompts_per_step": 16, "group_size": 4},
        "optim": {"mini_batches": 2},
    },
    "ppo": {
        "method": {
            "advantage": GAE,
            "critic": {"loss": "clipped", "learning_rate": 1e-3, "warmup_steps": 10},
            "loss": {"kl_coef": 0.05, "kl_place": "reward", "kl_estimator": "k1"},
        },
        "optim": {"mini_batches": 2, "epochs": 2, "micro_batch": 16},
    },
    "trunk": {"method": {"advantage": GAE, "critic": {"sharing": "trunk", "loss": "two-hot"}}},
    "t_ppo": {
        "method": {
            "advantage": GAE,
            "critic": {"learning_rate": 1e-3, "pretrain_steps": 1},
            "truncation": {"window": 1},
        },
        "optim": {"mini_batches": 2},
    },
    "areal": {  # two batches are in the checkpoint, of two versions
        "method": {
            "asynchrony": {"mode": "bounded", "max_staleness": 2},
            "advantage": {"scale": "none", "normalise": "batch"},
            "loss": {"importance_correction": "decoupled"},
        },
        "optim": {"mini_batches": 2},
    },
    "lora": {  # dropout draws on torch's random state
        "model": {"lora": {"rank": 4, "dropout": 0.2}},
        "method": {"loss": {"kl_coef": 0.05}},
        "optim": {"mini_batches": 2, "learning_rate": 4e-3},
    },
}


def stopped_copy(run: Path, copy: Path, *, update: int) -> Path:
    """The folder of a run as a kill after an update would have left it: later checkpoints and
    results are not there."""
    shutil.copytree(run, copy)
    for checkpoint in (copy / "checkpoints").glob("checkpoint-*"):
        if int(checkpoint.name.partition("-")[2]) > update:
            shutil.rmtree(checkpoint)
    for name in ("report.json", "report.md", "eval_after.json"):
        (copy / name).unlink()
    for name in ("model", "critic", "adapter"):
        shutil.rmtree(copy / name, ignore_errors=True)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_run_matches_an_uninterrupted_one(
    tiny_config: MakeConfig, train: Train, curve: Curve, tmp_path: Path, method: str
) -> None:
    """To the last bit, in all that is written."""
    config = tiny_config(
        run={"steps": 4, "checkpoint_every": 1, "keep_checkpoints": 4, "samples_every": 1},
        **METHODS[method],
    )
    updates = config.updates_per_rollout
    whole = train(config, "whole")
    found = {path.name for path in (tmp_path / "whole" / "checkpoints").iterdir()}
    assert found == {f"checkpoint-{step * updates}" for step in range(1, 5)}
    stopped = stopped_copy(tmp_path / "whole", tmp_path / "stopped", update=2 * updates)
    resumed = train(config, "stopped")
    assert curve(resumed) == curve(whole)
    files = ["eval_before.json", "eval_after.json", "samples.jsonl"]
    weights = (tmp_path / "whole").glob("*/*.safetensors")
    files += [path.relative_to(tmp_path / "whole").as_posix() for path in weights]
    assert "model/model.safetensors" in files
    for name in files:
        assert (stopped / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    found = kept_rollouts(stopped)
    assert found == kept_rollouts(tmp_path / "whole")
    assert {row["step"] for row in found if row["phase"] == "train"} == {1, 2, 3, 4}


ERRING = '''
import zlib

def erring(response, reference):
    """Wrong about a fifth of the pairs of response and reference."""
    text = response.strip()
    return float((text == reference) == (zlib.crc32(f"{text}|{reference}".encode()) % 5 > 0))
'''
APPEALED = """
[[profile]]
name = "erring-appeal"
description = "A verifier that errs; half of its verdicts are asked about anew."
[[profile.component]]
name = "answer"
verifier = "erring"
appeal = { verifier = "exact", share = 0.5 }
"""


@pytest.fixture
def appealed(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose verifier errs, and is appealed under a key that stays."""
    for name, text in (("rewards.py", ERRING), ("p.toml", APPEALED), ("key", "a key that stays")):
        (tmp_path / name).write_text(text)
    flags = ["--verifier", f"{tmp_path / 'rewards.py'}:erring", "--profiles"]
    flags += [str(tmp_path / "p.toml"), "--appeal-key-file", str(tmp_path / "key")]
    with EmbeddedServices(arguments={"reward": flags}) as server:
        yield server.address


@pytest.mark.slow
def test_rates_by_appeals_go_on_where_the_run_was_stopped(
    tiny_config: MakeConfig, train: Train, curve: Curve, tmp_path: Path, appealed: str
) -> None:
    """The estimate of each later step is the uninterrupted run's, and so are the weights."""
    noise = {"correction": "backward", "rates": "appeals", "appeals": True, "least": 20}
    config = tiny_config(
        reward={"target": appealed, "verifier": "erring-appeal"},
        method={"noise": {**noise, "window": 150}, "advantage": {"scale": "none"}},
        run={"steps": 4, "checkpoint_every": 1, "keep_checkpoints": 4},
    )
    whole = train(config, "whole", transport=None)
    assert [row["noise_appeals"] > 20 for row in whole] == [True] * 4
    assert whole[3]["noise_appealed_fp"] > 0
    assert whole[3]["noise_false_positive"] > 0
    names = [name for name in whole[0] if name.startswith("noise_")]
    assert len(names) == 10

    stopped_copy(tmp_path / "whole", tmp_path / "stopped", update=2)
    resumed = train(config, "stopped", transport=None)
    assert [[row[name] for name in names] for row in resumed] == [
        [row[name] for name in names] for row in whole
    ]
    assert curve(resumed) == curve(whole)
    weights = "model/model.safetensors"
    assert (tmp_path / "stopped" / weights).read_bytes() == (
        tmp_path / "whole" / weights
    ).read_bytes()


def kept_rollouts(folder: Path) -> list[dict[str, Any]]:
    """All but how long it took."""
    from assay.kit.runs.rollouts import read_rollouts

    return [{**row, "judge_s": 0, "queue_s": 0} for row in read_rollouts(folder)]


def test_a_run_goes_on_with_the_rows_that_it_began_with(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    """A run folder of before says nothing of its data, and goes on."""
    config = tiny_config(run={"steps": 2, "checkpoint_every": 1}, eval={"prompts": 0})
    rows = tmp_path / "rows.jsonl"
    shutil.copy(config.data.path, rows)
    config = replace(config, data=replace(config.data, path=str(rows)))
    train(config)
    run = tmp_path / "run" / "run.json"
    with rows.open("a", encoding="utf-8") as file:
        file.write('{"question": "1+1+1=", "answer": "3"}\n')
    longer = replace(config, run=replace(config.run, steps=3))
    with pytest.raises(ConfigError, match="other rows than this run began with: sha256 "):
        train(longer)
    shutil.copy(tiny_config().data.path, rows)
    told = json.loads(run.read_text())
    for session in told["sessions"]:
        del session["data"]
    run.write_text(json.dumps(told))
    assert len(train(longer)) == 3


def test_value_pretraining_goes_on_where_it_was_interrupted(
    tiny_config: MakeConfig, train: Train, curve: Curve, tmp_path: Path
) -> None:
    """Ctrl-C in its third step of four; then the policy's two."""
    from assay.kit.runs.records import read_rows
    from trainer_support import ExactTransport

    class Interrupts(ExactTransport):
        """Presses Ctrl-C when the first sample of the third step comes."""

        pressed = False

        def _judge(self, item: Any, result: Any) -> None:
            if int(item.group_id) == 16 and not self.pressed:
                self.pressed = True
                os.kill(os.getpid(), signal.SIGINT)
            super()._judge(item, result)

    config = tiny_config(
        run={"steps": 2},
        eval={"prompts": 0},
        method={
            "advantage": GAE,
            "critic": {"learning_rate": 1e-2, "pretrain_steps": 4, "pretrain_patience": 4},
        },
    )
    folder = tmp_path / "run"
    train(config, transport=Interrupts)
    assert [row["step"] for row in read_rows(folder / "pretraining.jsonl")] == [1, 2, 3]
    assert not (folder / "critic-pretrained").exists()
    assert not list((folder / "checkpoints").glob("*"))
    found, expected = train(config), train(config, "whole")
    assert curve(found) == curve(expected)
    assert len(found) == 2
    name = "pretraining.jsonl"
    assert read_rows(folder / name) == read_rows(tmp_path / "whole" / name)
    for name in ("critic-pretrained/model.safetensors", "critic/model.safetensors"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


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
    for _ in range(3000):
        if condition():
            return
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    raise AssertionError("it did not come to pass in 150 s")


def rows_in(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.is_file() else 0


@pytest.mark.slow
def test_ctrl_c_saves_a_checkpoint_and_says_how_to_go_on(
    tiny_config: MakeConfig, tmp_path: Path, train: Train
) -> None:
    from assay.trainer.settings import config as configs

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
@pytest.mark.parametrize("when", ["in mid-save", "in mid-step"])
def test_a_killed_run_goes_on_as_if_it_had_not_been(
    tiny_config: MakeConfig, tmp_path: Path, train: Train, curve: Curve, when: str
) -> None:
    """Saves after every other step, and is killed while a checkpoint is being written, or in the
    middle of what comes after it."""
    from assay.kit.runs import checkpoints
    from assay.trainer.settings import config as configs

    def settings(steps: int) -> Any:
        run = {"steps": steps, "checkpoint_every": 2, "samples_every": 1}
        return tiny_config(run=run, eval={"prompts": 0}, **METHODS["ppo"])

    file = tmp_path / "tiny.toml"
    file.write_text(configs.to_toml(settings(500)))
    folder = tmp_path / "run"
    process = start(file, folder)
    saved = folder / "checkpoints"

    def ready() -> bool:
        if when == "in mid-save":
            return bool(checkpoints.steps(saved)) and bool(list(saved.glob(".saving-*")))
        return bool(checkpoints.steps(saved)) and rows_in(folder / "metrics.jsonl") % 2 == 1

    wait_for(ready, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    latest = checkpoints.latest(saved)
    assert latest is not None
    done = int(latest.name.partition("-")[2]) // settings(1).updates_per_rollout
    resumed = train(settings(done + 2))
    assert [row["step"] for row in resumed] == list(range(1, done + 3))
    assert not list(saved.glob(".saving-*"))
    assert curve(resumed) == curve(train(settings(done + 2), "whole"))
