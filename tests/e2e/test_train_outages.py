"""A real reward server is killed while a run needs it, and comes back: no step is lost."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assay.clients.services import EmbeddedServices
from assay.trainer.errors import TrainingStoppedError
from trainer_processes_support import BIN, same

MakeConfig = Callable[..., Any]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
LIMIT_S = 120.0
CLOCKED = ("tool_cache_hit_rate", "tool_cache_caught_up", "episodes_cached")
pytestmark = [pytest.mark.usefixtures("loaded"), pytest.mark.timeout(300)]


class Server:
    """A reward server that may be killed, and started again where it was."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._running: EmbeddedServices | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._running = EmbeddedServices(ports={"reward": self.port})
        self._running.start()

    def kill(self) -> None:
        running = self._running  # another one may be started as soon as this one is gone
        assert running is not None
        os.killpg(running.pid(), signal.SIGKILL)
        running.stop()

    def stop(self) -> None:
        assert self._running is not None
        self._running.stop()


@pytest.fixture
def server() -> Iterator[Server]:
    """One that serves."""
    server = Server()
    try:
        yield server
    finally:
        server.stop()


class Screen(io.StringIO):
    """What a run says; acts once on each text, in a thread, as soon as it is said."""

    def __init__(self, acts: dict[str, Callable[[], None]]) -> None:
        super().__init__()
        self._acts = dict(acts)
        self._threads: list[threading.Thread] = []

    def write(self, text: str) -> int:
        written = super().write(text)
        for said in [said for said in self._acts if said in self.getvalue()]:
            thread = threading.Thread(target=self._acts.pop(said))
            thread.start()
            self._threads.append(thread)
        return written

    def done(self) -> None:
        for thread in self._threads:
            thread.join(LIMIT_S)
        assert not self._acts, f"never said: {list(self._acts)}"


class Runs:
    """Runs of one config in folders of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def go(self, config: Any, name: str, acts: dict[str, Callable[[], None]] | None = None) -> str:
        """What was said; `name` may be the folder of an earlier run, which goes on."""
        from rich.console import Console

        from assay.trainer.recipes.train import run
        from assay.trainer.records import folder

        path = self._folder / name
        where = folder.RunFolder(path) if path.is_dir() else folder.create(config, name, path)
        screen = Screen(acts or {})
        try:
            run(config, where, Console(file=screen, width=200))
        finally:
            screen.done()
        return screen.getvalue()

    def rows(self, name: str) -> list[dict[str, Any]]:
        from assay.kit.runs.records import read_rows

        return read_rows(self._folder / name / "metrics.jsonl")

    def weights(self, name: str) -> bytes:
        return (self._folder / name / "model" / "model.safetensors").read_bytes()

    def evaluation(self, name: str) -> str:
        from assay.trainer.records.folder import RunFolder

        return RunFolder(self._folder / name).evaluation("after").read_text(encoding="utf-8")


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Where they are."""
    import torch

    torch.set_num_threads(1)
    return Runs(tmp_path)


def when_written(path: Path, rows: int) -> None:
    """Waits until a step is recorded; the next one is under way then."""
    ends_s = time.monotonic() + LIMIT_S
    while not path.is_file() or len(path.read_text(encoding="utf-8").splitlines()) < rows:
        assert time.monotonic() < ends_s, "the step never came"
        time.sleep(0.002)


@contextmanager
def beside(act: Callable[[], None]) -> Iterator[None]:
    """Does something while the block runs."""
    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def sections(server: Server, **reward: Any) -> dict[str, Any]:
    told = {"target": server.address, "verifier": "exact", "timeout_s": 3.0, "max_outage_s": 120.0}
    return {"reward": told | reward, "run": {"steps": 8, "checkpoint_every": 0}}


@pytest.mark.slow
def test_a_server_that_is_killed_in_mid_step_and_comes_back_costs_time_only(
    tiny_config: MakeConfig, curve: Curve, server: Server, runs: Runs, tmp_path: Path
) -> None:
    config = tiny_config(**sections(server))
    runs.go(config, "calm")

    def kill() -> None:
        when_written(tmp_path / "troubled" / "metrics.jsonl", 2)
        server.kill()

    with beside(kill):
        said = runs.go(config, "troubled", {"services are away": server.start})
    assert "(reward.max_outage_s)" in said
    assert " responses asked again" in said
    assert curve(runs.rows("troubled")) == curve(runs.rows("calm"))
    assert runs.weights("troubled") == runs.weights("calm")
    assert runs.evaluation("troubled") == runs.evaluation("calm")
    assert sum(row["held_s"] for row in runs.rows("troubled")) > 0
    assert {row["held_s"] for row in runs.rows("calm")} == {0.0}


@pytest.mark.slow
def test_episodes_wait_for_it_as_responses_do(
    adding: MakeConfig, curve: Curve, server: Server, runs: Runs, tmp_path: Path
) -> None:
    """It is away for longer than an episode may take, which does not count as its seconds."""
    from assay.kit.runs.rollouts import read_rollouts

    config = adding({"seconds": 8.0, "cache": True}, **sections(server))
    runs.go(config, "calm")

    def kill() -> None:
        when_written(tmp_path / "troubled" / "metrics.jsonl", 2)
        server.kill()

    def back() -> None:
        time.sleep(8.5)
        server.start()

    with beside(kill):
        said = runs.go(config, "troubled", {"services are away": back})
    assert "episodes wait for at most" in said
    assert "the reward services are back" in said
    rows, calm = runs.rows("troubled"), runs.rows("calm")
    assert all(row["faults"] == {} for row in rows)
    same([*map(timeless, rows)], [*map(timeless, calm)], but=CLOCKED)
    assert sum(row["held_s"] for row in rows) > 8
    ours, others = (list(read_rollouts(tmp_path / name)) for name in ("troubled", "calm"))
    for one, other in zip(ours, others, strict=True):
        for name in ("step", "ids", "reward", "ending", "trained"):
            assert one[name] == other[name]


@pytest.mark.slow
def test_episodes_that_wait_in_vain_end_the_run_which_goes_on(
    adding: MakeConfig, server: Server, runs: Runs, tmp_path: Path
) -> None:
    runs.go(adding(**sections(server)), "calm")
    config = adding(**sections(server, max_outage_s=0.5))

    def kill() -> None:
        when_written(tmp_path / "run" / "metrics.jsonl", 2)
        server.kill()

    with (
        beside(kill),
        pytest.raises(TrainingStoppedError, match=r"longer than reward.max_outage_s = 0.5 allows"),
    ):
        runs.go(config, "run")
    done = len(runs.rows("run"))
    assert (tmp_path / "run" / "checkpoints" / f"checkpoint-{done}").is_dir()
    server.start()
    runs.go(config, "run")
    found, expected = runs.rows("run"), runs.rows("calm")
    same([*map(timeless, found)], [*map(timeless, expected)], but=CLOCKED)


@pytest.mark.slow
def test_one_that_stays_away_ends_the_run_which_goes_on_as_if_nothing_had_been(
    tiny_config: MakeConfig, curve: Curve, server: Server, runs: Runs, tmp_path: Path
) -> None:
    runs.go(tiny_config(**sections(server)), "calm")
    config = tiny_config(**sections(server, max_outage_s=0.5))

    def kill() -> None:
        when_written(tmp_path / "run" / "metrics.jsonl", 2)
        server.kill()

    with (
        beside(kill),
        pytest.raises(
            TrainingStoppedError,
            match=r"stopped after step \d: .* longer than reward.max_outage_s = 0.5 allows; \d+ "
            r"responses have no judgement; a checkpoint is saved, continue with",
        ),
    ):
        runs.go(config, "run")
    done = len(runs.rows("run"))
    assert (tmp_path / "run" / "checkpoints" / f"checkpoint-{done}").is_dir()
    server.start()
    runs.go(config, "run")
    assert curve(runs.rows("run")) == curve(runs.rows("calm"))
    assert runs.weights("run") == runs.weights("calm")


@pytest.mark.slow
def test_an_interrupt_ends_the_waiting_and_leaves_the_step_undone(
    tiny_config: MakeConfig, curve: Curve, server: Server, runs: Runs, tmp_path: Path
) -> None:
    config = tiny_config(**sections(server))
    runs.go(config, "calm")

    def kill() -> None:
        when_written(tmp_path / "run" / "metrics.jsonl", 2)
        server.kill()

    around = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with beside(kill):
            said = runs.go(
                config, "run", {"services are away": lambda: os.kill(os.getpid(), signal.SIGINT)}
            )
    finally:
        signal.signal(signal.SIGINT, around)
    assert "a checkpoint is saved; continue with `assay train --resume" in said
    assert len(runs.rows("run")) < 8
    server.start()
    runs.go(config, "run")
    assert curve(runs.rows("run")) == curve(runs.rows("calm"))
    assert runs.weights("run") == runs.weights("calm")


@pytest.mark.slow
def test_an_evaluation_is_held_too(
    tiny_config: MakeConfig, server: Server, runs: Runs, tmp_path: Path
) -> None:
    # long enough that the server is gone before its end
    config = tiny_config(**sections(server), eval={"prompts": 60, "batch_size": 2})
    runs.go(config, "calm")

    def kill() -> None:
        when_written(tmp_path / "troubled" / "metrics.jsonl", 8)
        server.kill()

    with beside(kill):
        said = runs.go(config, "troubled", {"services are away": server.start})
    assert " responses asked again" in said
    assert runs.evaluation("troubled") == runs.evaluation("calm")


def test_an_evaluation_without_judges_ends_the_run_before_it_trains(
    tiny_config: MakeConfig, server: Server, runs: Runs, tmp_path: Path
) -> None:
    """No accuracy is made of the answers that happened to be judged."""
    config = tiny_config(**sections(server, max_outage_s=0.5))

    def kill() -> None:
        when_written(tmp_path / "run" / "run.json", 1)  # written when the judge is there
        server.kill()

    with (
        beside(kill),
        pytest.raises(TrainingStoppedError, match=r"reward\.max_outage_s = 0\.5 allows"),
    ):
        runs.go(config, "run")
    assert not (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8")


@pytest.mark.slow
def test_processes_are_held_together_and_end_together(
    tiny_config: MakeConfig, server: Server, runs: Runs, tmp_path: Path
) -> None:
    """Each holds its own share. One outage that ends the run, and one that ends."""
    from assay.trainer.settings import config as configs

    calm = tiny_config(**sections(server))
    runs.go(calm, "calm")
    path = tmp_path / "config.toml"
    path.write_text(configs.to_toml(calm), encoding="utf-8")
    folder = tmp_path / "two"

    def launched(*arguments: Any) -> subprocess.Popen[str]:
        command = [BIN / "torchrun", "--nproc-per-node", "2", "-m", "assay.trainer", *arguments]
        return subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    with launched(path, "--run-dir", folder, "reward.max_outage_s=0.5") as one:
        when_written(folder / "metrics.jsonl", 1)
        server.kill()
        said, _ = one.communicate(timeout=LIMIT_S)
    assert one.returncode
    assert "longer than reward.max_outage_s = 0.5 allows" in said
    assert "a checkpoint is saved, continue with" in said
    done = len(runs.rows("two"))
    assert (folder / "checkpoints" / f"checkpoint-{done}").is_dir()
    server.start()
    with launched("--resume", folder, "reward.max_outage_s=120") as two:
        when_written(folder / "metrics.jsonl", done + 1)
        server.kill()
        assert two.stdout is not None
        before = ""
        for line in two.stdout:
            before += line
            if "services are away" in line:
                server.start()
        assert two.wait(LIMIT_S) == 0, before
    assert "responses asked again" in before
    found, expected = (runs.rows(name) for name in ("two", "calm"))
    # each process packs the rows that it trains on
    same([*map(timeless, found)], [*map(timeless, expected)], but=("padding_ratio",))


def timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not key.endswith("_s")}
