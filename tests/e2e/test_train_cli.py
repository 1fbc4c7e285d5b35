"""`assay train` as a user meets it: bad input is one line, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MakeConfig = Callable[..., Any]
ASSAY = Path(sys.executable).with_name("assay")


@pytest.fixture
def tiny_file(tiny_config: MakeConfig, tmp_path: Path) -> Path:
    from assay.trainer.settings import config as configs

    path = tmp_path / "tiny.toml"
    path.write_text(configs.to_toml(tiny_config(run={"dir": str(tmp_path / "runs")})))
    return path


@pytest.fixture
def assay(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command in this process; gives exit code, stdout and stderr."""
    from assay.cli.main import run

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["CONFIG", "optim.learnig_rate=1"],
            1,
            "optim.learnig_rate is not a setting; did you mean optim.learning_rate?",
        ),
        (["CONFIG", "run.steps=many"], 1, 'run.steps: expected integer, got "many"'),
        (["absent.toml"], 1, "config file absent.toml does not exist"),
        (
            ["CONFIG", "model.name=./absent"],
            1,
            "model folder absent does not exist; give a folder, a hub name",
        ),
        (["CONFIG", "model.name=no-such/model"], 1, "model 'no-such/model' cannot be loaded"),
        (["CONFIG", "model.name=TMP"], 1, "holds no config.json"),
        (["CONFIG", "model.device=cuda"], 1, "torch sees no CUDA device"),
        (["CONFIG", "data.path=absent.jsonl"], 1, "data file absent.jsonl does not exist"),
        (
            ["CONFIG", "data.columns.prompt=problem"],
            1,
            "no column 'problem' for the prompt (data.columns.prompt)",
        ),
        (
            ["CONFIG", "eval.prompts=1000"],
            1,
            "gives 100 rows for the evaluation, but eval.prompts = 1000",
        ),
        (
            ["CONFIG", "reward.target=PORT", "reward.timeout_s=1"],
            1,
            "reward.target: no reward server answers at 127.0.0.1:",
        ),
        (["CONFIG", "--resume"], 1, "holds no run of tiny to resume"),
        (["--resume", "TMP"], 1, "is no run folder"),
        (["CONFIG", "--run-dir", "TMP"], 1, "is not empty; continue it with --resume"),
        ([], 2, "give a CONFIG.toml"),
        (["--resume"], 2, "--resume needs a RUN_DIR, or a CONFIG.toml"),
        (["CONFIG", "--run-dir", "x", "--resume", "y"], 2, "give one of them"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    assay: Any, tiny_file: Path, tmp_path: Path, *, arguments: list[str], code: int, message: str
) -> None:
    if "model.device=cuda" in arguments:
        import torch

        if torch.cuda.is_available():
            pytest.skip("this machine has a CUDA device")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers here
        port = f"127.0.0.1:{taken.getsockname()[1]}"
        real = [
            text.replace("CONFIG", str(tiny_file))
            .replace("TMP", str(tmp_path))
            .replace("PORT", port)
            for text in arguments
        ]
        got, out, err = assay("train", *real)
    assert got == code, err
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert message in lines[0]
    assert "Traceback" not in out + err
    assert not list((tmp_path / "runs").glob("*"))


def test_an_unknown_verifier_is_answered_with_the_known(
    assay: Any, tiny_file: Path, tmp_path: Path
) -> None:
    from assay.clients.testing import FakeRewardServer

    with FakeRewardServer() as server:
        code, _, err = assay(
            "train", tiny_file, f"reward.target={server.address}", "reward.verifier=maths"
        )
    assert code == 1
    assert f"reward.verifier = 'maths' is not served at {server.address}; it serves: exact" in err
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.slow
def test_a_run_is_calm_and_resumes_by_its_config(
    assay: Any, tiny_file: Path, tmp_path: Path
) -> None:
    """The whole command in a process of its own, with services of its own: no warnings, no bars,
    nothing on stderr."""
    done = subprocess.run(
        [ASSAY, "train", tiny_file, "run.steps=2", 'run.report_to=["tensorboard"]'],
        capture_output=True, text=True, check=False, timeout=200,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    out = done.stdout
    assert done.returncode == 0, out + done.stderr
    assert done.stderr == ""
    lines = out.splitlines()
    data, ran, before, *_ = lines
    assert data.startswith("data: jsonl ")
    assert ran.startswith(f"run {tmp_path / 'runs' / 'tiny-'}")
    assert before.startswith("before: ")
    header = next(n for n, line in enumerate(lines) if line.split()[:1] == ["step"])
    assert "reward: mean over judged responses" in " ".join(lines[3:header])
    assert [line.split()[0] for line in lines[header + 1 : header + 3]] == ["1/2", "2/2"]
    assert lines[header + 3].startswith("after: ")
    assert "change on the same 20 prompts" in out
    assert [Path(line.strip()).name for line in lines[-3:]] == ["curves.png", "report.md", "model"]
    code, again, err = assay("train", tiny_file, "--resume")
    assert (code, err) == (0, "")
    assert "continuing after step 2" in again.splitlines()[2]
