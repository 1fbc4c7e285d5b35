"""Checkpoints, rows that survive a kill, folders, and the watch over faults."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from assay.kit.errors import ConfigError
from assay.kit.runs import checkpoints
from assay.kit.runs.folders import newest
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.records import JsonLines, read_rows, truncate_after
from assay.trainer.core.rewards import FaultWatch
from assay.trainer.records import folder
from assay.trainer.settings.config import Config
from trainer_records_support import bad, good


def publish(path: Path, step: int) -> Path:
    with checkpoints.staged(path, step) as staging:
        made = staging / checkpoints.name_of(step)
        (made / "inner").mkdir(parents=True)
        (made / "weights").write_bytes(b"x" * 100)
        (made / "inner" / "state").write_text(str(step))
    return path / checkpoints.name_of(step)


def test_checkpoints_appear_whole(tmp_path: Path) -> None:
    assert checkpoints.latest(tmp_path) is None
    for step in (5, 10, 100):
        publish(tmp_path, step)
    assert checkpoints.steps(tmp_path) == [5, 10, 100]
    checkpoints.prune(tmp_path, 2)
    assert checkpoints.steps(tmp_path) == [10, 100]
    assert checkpoints.latest(tmp_path) == tmp_path / "checkpoint-100"


def test_a_failed_save_leaves_nothing(tmp_path: Path) -> None:
    publish(tmp_path, 5)

    def fail() -> None:
        with checkpoints.staged(tmp_path, 10) as staging:
            (staging / "checkpoint-10").mkdir()
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-5"]


def test_leftovers_of_a_kill_are_no_checkpoint(tmp_path: Path) -> None:
    publish(tmp_path, 5)
    (tmp_path / ".saving-10-x" / "checkpoint-10").mkdir(parents=True)
    (tmp_path / "checkpoint-7").mkdir()
    (tmp_path / "checkpoint-7" / "weights").write_bytes(b"x")
    assert checkpoints.latest(tmp_path) == tmp_path / "checkpoint-5"
    publish(tmp_path, 5)
    assert not list(tmp_path.glob(".saving-*"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("weights", b"x" * 99, "weights has 99 bytes instead of 100"),
        ("weights", b"y" * 100, "the content of weights has changed"),
        ("inner/state", None, "inner/state is missing"),
        ("manifest.json", b"{", "manifest.json cannot be read"),
        ("manifest.json", b"[]", "manifest.json cannot be read"),
    ],
)
def test_damage_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    publish(tmp_path, 5)
    path = publish(tmp_path, 10) / name
    path.write_bytes(content) if content is not None else path.unlink()
    with pytest.raises(
        ConfigError,
        match=f"checkpoint-10 is damaged: {message}.*remove the folder to resume from checkpoint-5",
    ):
        checkpoints.latest(tmp_path)


def test_the_only_checkpoint_is_damaged(tmp_path: Path) -> None:
    (publish(tmp_path, 5) / "weights").unlink()
    with pytest.raises(ConfigError, match="there is no earlier one"):
        checkpoints.latest(tmp_path)


def test_rows_after_a_step_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read_rows(path) == []
    log = JsonLines(path)
    for step in (1, 2, 3):
        log.write({"step": step, "text": "\u20ac"})
    log.close()
    with path.open("a") as file:
        file.write('{"step": 4, "te')
    truncate_after(path, 2)
    assert read_rows(path) == [{"step": 1, "text": "\u20ac"}, {"step": 2, "text": "\u20ac"}]


def test_the_watch_stops_at_its_limit_and_not_at_it() -> None:
    watch = FaultWatch(max_ratio=0.25, window=2)
    assert watch.add([good(1)] * 4) is None
    assert watch.add([bad(), bad(), good(1), good(1)]) is None
    said = watch.add([bad("ITEM_TIMEOUT"), good(1), good(1), good(1)])
    assert said is not None
    assert said.startswith(
        "3 of the last 8 samples had no judgement (WORKER_DIED x2, ITEM_TIMEOUT x1)"
    )
    assert watch.add([good(1)] * 4) is None


def test_one_bad_first_step_does_not_stop_a_run() -> None:
    watch = FaultWatch(max_ratio=0.2, window=5)
    assert watch.add([bad()] * 10) is None
    assert watch.add([bad()] * 10) is not None
    assert FaultWatch(max_ratio=0, window=3).add([bad(), good(1)]) is not None
    assert FaultWatch(max_ratio=0, window=3).add([good(1)]) is None
    assert FaultWatch(max_ratio=1, window=1).add([bad()]) is None


def test_folders(tmp_path: Path) -> None:
    config = Config()
    made = folder.create(config, "name", tmp_path / "run")
    folder.record(made, config)
    folder.record(made, config)
    assert len(json.loads(made.info.read_text())["sessions"]) == 2
    with pytest.raises(ConfigError, match="is not empty; continue it with --resume"):
        folder.create(config, "name", tmp_path / "run")
    again, longer = folder.reopen(tmp_path / "run", ["run.steps=7"])
    assert (again, longer.run.steps) == (made, 7)
    assert folder.reopen(tmp_path / "run", [])[1].run.steps == 7
    for override in ("optim.learning_rate=1", "run.seed=2"):
        with pytest.raises(ConfigError, match="cannot change in a resumed run"):
            folder.reopen(tmp_path / "run", [override])
    with pytest.raises(ConfigError, match="is no run folder"):
        folder.reopen(tmp_path, [])
    with pytest.raises(ConfigError, match="holds no run of other to resume"):
        newest(tmp_path, "other")
    (tmp_path / "name-20260101-000000").mkdir()
    (tmp_path / "name-20260101-000000" / "config.toml").touch()
    assert newest(tmp_path, "name") == tmp_path / "name-20260101-000000"


def test_the_first_signal_is_noted_and_the_second_acts() -> None:
    said: list[str] = []
    # What a shell starts in the background ignores the signal.
    around = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Interrupt(said.append) as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert interrupt.requested
            assert said == ["SIGINT"]
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, around)
