"""`python -m assay.trainer` under torchrun and accelerate: what is said, when it ends, what stays.

With services of the run's own. On CPUs, over gloo.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trainer_processes_support import BIN, DDP, rows, same

MakeConfig = Callable[..., Any]
Train = Callable[..., list[dict[str, Any]]]
TORCHRUN = [BIN / "torchrun", "--nproc-per-node", "2"]
ACCELERATE = [
    *(BIN / "accelerate", "launch", "--config_file", DDP),
    *("--num_processes", "2", "--main_process_port", "0"),
]


class Launched:
    """A launcher with its processes; whatever is left of them at the end is killed, each by its
    id."""

    def __init__(self, launcher: list[Any], *arguments: Any) -> None:
        command = [*launcher, "-m", "assay.trainer", *arguments]
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.seen: set[int] = set()

    def family(self) -> list[int]:
        """Ids of all processes beneath the launcher, each before its own children."""
        found = [self.process.pid]
        for pid in found:
            listed = Path(f"/proc/{pid}/task/{pid}/children")
            found += [int(child) for child in listed.read_text().split()] if listed.exists() else []
        self.seen.update(found)
        return found[1:]

    def rank(self, number: int) -> int:
        """The id of a process."""
        wanted = f"RANK={number}".encode()
        return next(
            pid
            for pid in self.family()
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        )

    def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(1500):
            if condition():
                self.family()
                return
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)
        raise AssertionError("it did not come to pass in 75 s")

    def end(self) -> tuple[int, str, str]:
        """Exit code, stdout, stderr; all that it started is gone."""
        out, err = self.process.communicate(timeout=60)
        for _ in range(300):
            if not self.alive():
                return self.process.returncode, out, err
            time.sleep(0.05)
        raise AssertionError(f"{self.alive()} live on 15 s after the launcher")

    def alive(self) -> list[int]:
        return [pid for pid in self.seen - {self.process.pid} if running(pid)]

    def kill(self) -> None:
        for pid in [*self.seen, *self.family()]:
            if pid == self.process.pid or running(pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self.process.communicate(timeout=30)


def running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def launched() -> Iterator[Callable[..., Launched]]:
    made: list[Launched] = []

    def launch(launcher: list[Any], *arguments: Any) -> Launched:
        made.append(Launched(launcher, *arguments))
        return made[-1]

    yield launch
    for one in made:
        one.kill()


@pytest.fixture
def file(tiny_config: MakeConfig, tmp_path: Path) -> Path:
    from assay.trainer.settings import config

    path = tmp_path / "tiny.toml"
    run = {"steps": 500, "dir": str(tmp_path / "runs"), "checkpoint_every": 1, "samples_every": 0}
    path.write_text(
        config.to_toml(
            tiny_config(run=run, eval={"prompts": 0}, method={"loss": {"kl_coef": 0.05}})
        )
    )
    return path


def lines_of(folder: Path) -> int:
    path = folder / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.is_file() else 0


@pytest.mark.exhaustive
def test_an_error_of_all_is_said_once(
    launched: Callable[..., Launched], file: Path, tmp_path: Path
) -> None:
    one = launched(TORCHRUN, file, "rollout.prompts_per_step=7")
    code, out, err = one.end()
    assert code == 1
    said = [line for line in err.splitlines() if line.startswith("assay: error")]
    message = "rollout.prompts_per_step = 7 cannot be dealt to 2 processes; make it a multiple"
    assert said == [f"assay: error: {message}"]
    assert err.index(said[0]) < err.index("Traceback")  # torchrun's own, that a process failed
    assert out == ""
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.exhaustive
@pytest.mark.timeout(200)
@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_a_run_of_two_processes_goes_on_in_one(
    launched: Callable[..., Launched],
    file: Path,
    tmp_path: Path,
    tiny_config: MakeConfig,
    train: Train,
    *,
    how: str,
) -> None:
    """Ctrl-C at the launcher saves a checkpoint. A process that is killed in mid-step ends the
    others, and the services with them. Either way the run goes on as if nothing had happened, even
    without a launcher."""
    one = launched(ACCELERATE if how == "interrupt" else TORCHRUN, file)
    runs = tmp_path / "runs"
    one.until(lambda: any(lines_of(folder) >= 2 for folder in runs.glob("*")))
    (folder,) = runs.iterdir()
    if how == "interrupt":
        one.process.send_signal(signal.SIGINT)
    else:
        os.kill(one.rank(1), signal.SIGKILL)
    code, out, err = one.end()
    assert code != 0
    said = [line for line in err.splitlines() if line.startswith("assay: error")]
    # the launcher tells who was killed, and may end the others before they can say what they miss
    assert [line[:48] for line in said] in (
        [],
        ["assay: error: another process of this run is gon"],
    )
    assert not said or how == "kill"
    assert out.count(f"run {folder}: grpo") == 1
    assert out.count(", 2 processes") == 1
    assert ("a checkpoint is saved; continue with `assay train --resume" in out) == (
        how == "interrupt"
    )
    done = lines_of(folder)
    steps = sorted(int(path.name.partition("-")[2]) for path in (folder / "checkpoints").glob("c*"))
    assert steps[-1] >= done - 1
    if how == "interrupt":
        assert steps[-1] == done
    sections = {"eval": {"prompts": 0}, "method": {"loss": {"kl_coef": 0.05}}}
    config = tiny_config(run={"steps": done + 1, "samples_every": 0}, **sections)
    folder.rename(tmp_path / "resumed")
    train(config, "resumed")
    train(config, "whole")
    same(rows(tmp_path / "resumed"), rows(tmp_path / "whole"))


if sys.platform != "linux":
    pytest.skip("reads /proc", allow_module_level=True)
