"""Two launchers on this machine, as on two machines: what starts on the first is reached from the
second, and a folder that they do not share is told before anything is loaded.

The first is called 127.0.0.2, at which nothing answers that is bound to 127.0.0.1 alone.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer_processes_support import BIN, rows

MakeConfig = Callable[..., Any]
FIRST = "127.0.0.2"

if sys.platform != "linux":
    pytest.skip("all of 127.0.0.0/8 is loopback on Linux", allow_module_level=True)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((FIRST, 0))
        port: int = listener.getsockname()[1]
        return port


def machines(
    arguments: list[Any], folders: tuple[Path, Path]
) -> list[subprocess.CompletedProcess[str]]:
    """What each launcher says; each runs in a folder of its own."""
    port = free_port()
    begun = [
        subprocess.Popen(
            [
                str(BIN / "torchrun"),
                "--nnodes",
                "2",
                "--nproc-per-node",
                "1",
                "--node-rank",
                str(rank),
                "--master-addr",
                FIRST,
                "--master-port",
                str(port),
                "-m",
                "assay.trainer",
                *map(str, arguments),
            ],
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank, folder in enumerate(folders)
    ]
    done = []
    for process in begun:
        try:
            out, err = process.communicate(timeout=150)
        finally:
            process.kill()
        done.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    return done


@pytest.fixture
def file(tiny_config: MakeConfig, tmp_path: Path) -> Path:
    from assay.trainer.settings import config

    path = tmp_path / "tiny.toml"
    run = {"steps": 2, "dir": "runs", "checkpoint_every": 1, "samples_every": 0}
    path.write_text(config.to_toml(tiny_config(run=run, eval={"prompts": 0})))
    return path


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "one", tmp_path / "two"
    for folder in made:
        folder.mkdir()
    return made


@pytest.mark.slow
def test_services_of_the_first_machine_judge_for_the_second(
    file: Path, folders: tuple[Path, Path]
) -> None:
    done = machines([file, f"run.dir={folders[0] / 'runs'}"], folders)
    assert [one.returncode for one in done] == [0, 0], [one.stderr[-3000:] for one in done]
    (run,) = (folders[0] / "runs").iterdir()
    found = rows(run)
    assert [row["step"] for row in found] == [1, 2]
    assert all(not row["faults"] for row in found)
    assert not list(run.glob(".shared-*"))
    assert len(list((run / "checkpoints").iterdir())) == 2


@pytest.mark.slow
def test_a_folder_that_machines_do_not_share_is_told(
    file: Path, folders: tuple[Path, Path]
) -> None:
    """run.dir is "runs", and each launcher was started in a folder of its own."""
    done = machines([file], folders)
    assert all(one.returncode for one in done)
    said = [
        line for one in done for line in one.stderr.splitlines() if line.startswith("assay: error")
    ]
    assert len(said) == 1, said
    assert "is not seen by process 1, and every process writes its part" in said[0]
    assert "give run.dir (or --run-dir) an absolute path on a file system" in said[0]
