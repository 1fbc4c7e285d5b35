"""The journal of a run: each verdict in its folder, by run, step and phase; no curve changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.clients import EmbeddedServices
from assay.kit.errors import ConfigError
from assay.viewer.journals.reader import Filter, Reader, Record

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]
SMALL = {
    "rollout": {"prompts_per_step": 2, "group_size": 4},
    "eval": {"prompts": 5, "batch_size": 5},
}


def records(path: Path, **labels: str) -> list[Record]:
    with Reader(path) as reader:
        return list(reader.each(Filter(labels=tuple(labels.items()))))


def by_phase_and_step(found: list[Record]) -> Counter[tuple[str, str]]:
    return Counter((record["labels"]["phase"], record["labels"]["step"]) for record in found)


@pytest.mark.slow
def test_a_runs_own_service_keeps_its_verdicts_and_a_resumed_run_goes_on(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    config = tiny_config(**SMALL, run={"steps": 2, "name": "first", "checkpoint_every": 2})
    rows = train(config, transport=None)
    path = tmp_path / "run" / "journal.sqlite"
    assert path.stat().st_mode & 0o777 == 0o600
    found = records(path)
    assert {record["labels"]["run"] for record in found} == {"first"}
    assert by_phase_and_step(found) == {
        ("eval", "0"): 5, ("train", "1"): 8, ("train", "2"): 8, ("eval", "2"): 5,
    }  # fmt: skip
    for row in rows:
        of_step = records(path, phase="train", step=str(row["step"]))
        assert Counter(record["verdict"] for record in of_step) == row["verdicts"]
        rewards = [record["reward"] for record in of_step]
        assert sum(rewards) / len(rewards) == pytest.approx(row["reward"])
    longer = replace(config, run=replace(config.run, steps=3))
    train(longer, transport=None)
    assert by_phase_and_step(records(path))["train", "3"] == 8
    assert records(path)[: len(found)] == found


@pytest.mark.slow
def test_it_changes_no_curve_and_0_keeps_none(
    tiny_config: MakeConfig, train: Train, curve: Curve, tmp_path: Path
) -> None:
    kept = curve(train(tiny_config(**SMALL), "kept", transport=None))
    bare = tiny_config(**SMALL, reward={"journal_mb": 0})
    assert curve(train(bare, "bare", transport=None)) == kept
    assert (tmp_path / "kept" / "journal.sqlite").is_file()
    assert not list((tmp_path / "bare").glob("journal*"))


@pytest.mark.slow
def test_a_server_elsewhere_gets_the_labels(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    path = tmp_path / "server.sqlite"
    with EmbeddedServices(arguments={"reward": ["--journal", str(path)]}) as server:
        config = tiny_config(
            **SMALL, reward={"target": server.address}, run={"steps": 1, "name": ""}
        )
        train(config, "elsewhere", transport=None)
    assert by_phase_and_step(records(path, run="elsewhere")) == {
        ("eval", "0"): 5, ("train", "1"): 8, ("eval", "1"): 5,
    }  # fmt: skip
    assert not list((tmp_path / "elsewhere").glob("journal*"))


@pytest.mark.slow
def test_a_journal_that_cannot_be_written_stops_no_run(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    from assay.trainer.records import folder

    config = tiny_config(**SMALL, run={"steps": 1})
    made = folder.create(config, "blocked", tmp_path / "blocked")
    made.journal.mkdir()
    rows = train(config, "blocked", transport=None)
    assert [row["fault_ratio"] for row in rows] == [0]


def test_settings_that_make_no_sense_are_said(tiny_config: MakeConfig, train: Train) -> None:
    with pytest.raises(ConfigError, match=r"reward\.journal_mb = 3: a journal takes 8 MiB"):
        train(tiny_config(reward={"journal_mb": 3}), transport=None)
    with pytest.raises(ConfigError, match=r"reward\.journal_mb = 64 is read only where reward\.ta"):
        tiny_config(reward={"journal_mb": 64, "target": "127.0.0.1:1"})


@pytest.mark.slow
def test_a_selectors_answers_are_a_phase_of_their_own(
    tiny_config: MakeConfig, train: Train, tmp_path: Path
) -> None:
    config = tiny_config(
        **SMALL,
        data={"max_rows": 6, "selection": {"name": "vas", "vas": {"samples": 2}}},
        run={"steps": 1},
    )
    train(config, transport=None)
    found = by_phase_and_step(records(tmp_path / "run" / "journal.sqlite"))
    assert found["survey", "1"] == 12, json.dumps(str(found))
