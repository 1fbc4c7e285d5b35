"""RUN/rollouts: what is written is read, torn files cost their rest only, old steps are thinned."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.types import Component, Span
from assay.kit.errors import ConfigError
from assay.kit.runs.records import JsonLines
from assay.kit.runs.rollouts import (
    EVAL,
    TRAIN,
    drop_after,
    files_in,
    is_rollouts,
    path_for,
    read_rollouts,
    read_timeline,
    thin,
    thinned,
    timeline_for,
    write_rollouts,
)
from assay.trainer.records.rollouts import RolloutRecorder, credit_of, rollout_rows, runs
from assay.trainer.rollouts.types import Acted, ActedTurn, Rollout, Unfinished, place
from assay.trainer.settings.sections import RunConfig
from trainer_records_support import bad, good, rollout


def row(step: int, draw: int, sample: int = 0, **more: Any) -> dict[str, Any]:
    return {"version": 1, "step": step, "draw": draw, "sample": sample, **more}


def test_steps_of_all_processes_are_read_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "rollouts"
    write_rollouts(path_for(folder, 2), [row(2, 1), row(2, 0, trained=[])])
    write_rollouts(path_for(folder, 2, process=1), [row(2, 1, trained=[]), row(2, 0)])
    write_rollouts(path_for(folder, 2, EVAL), [row(2, 7)])
    write_rollouts(path_for(folder, 10), [row(10, 3, text="\ud800 \u2028 ü")])
    write_rollouts(path_for(folder, 0, EVAL), [row(0, 0)])
    (folder / "000011.jsonl.gz.new").write_bytes(b"half")
    for given_path in (tmp_path, folder):
        assert is_rollouts(given_path)
        found = list(read_rollouts(given_path))
        assert [(one["step"], one["draw"]) for one in found] == [
            (0, 0), (2, 0), (2, 1), (2, 7), (10, 3),
        ]  # fmt: skip
        assert [one.get("trained") for one in found] == [None, [], [], None, None]
        assert found[-1]["text"] == "\ud800 \u2028 ü"
    assert [one["draw"] for one in read_rollouts(tmp_path, phase=TRAIN)] == [0, 1, 3]
    assert [one["draw"] for one in read_rollouts(tmp_path, steps=lambda step: step > 5)] == [3]
    assert [one["draw"] for one in read_rollouts(path_for(folder, 10))] == [3]
    assert not is_rollouts(folder / "x.jsonl.gz")
    assert not is_rollouts(folder / "nowhere")
    with pytest.raises(ConfigError, match="holds no rollouts"):
        list(read_rollouts(folder / "nowhere"))


@given(st.data())
def test_a_torn_file_gives_whole_rows_and_a_note(data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        randomly = random.Random(data.draw(st.integers(0, 99)))
        rows = [row(1, n, text=randomly.randbytes(40).hex()) for n in range(20)]
        path = path_for(folder, 1)
        write_rollouts(path, rows)
        write_rollouts(path_for(folder, 2), [row(2, 0)])
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole) - 1))
        path.write_bytes(whole[:cut])
        notes: list[str] = []
        found = list(read_rollouts(folder, note=notes.append))
        assert found[-1]["step"] == 2
        assert found[:-1] == rows[: len(found) - 1]
        assert len(notes) == 1 or cut == 0 or len(found) == len(rows) + 1
        spoilt = bytearray(whole)
        spoilt[data.draw(st.integers(10, len(whole) - 9))] ^= 255
        path.write_bytes(bytes(spoilt))
        assert list(read_rollouts(folder))[-1]["step"] == 2


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    write_rollouts(path_for(tmp_path, 1), [{**row(1, 0), "version": 2}])
    with pytest.raises(ConfigError, match="version 2"):
        list(read_rollouts(tmp_path))


def test_old_steps_are_thinned_out_evenly_and_said(tmp_path: Path) -> None:
    text = random.Random(0).randbytes(20_000).hex()
    for step in range(1, 101):
        write_rollouts(path_for(tmp_path, step), [row(step, 0, text=text)])
        write_rollouts(path_for(tmp_path, step, process=1), [row(step, 1)])
        thin(tmp_path, 1.0)
    write_rollouts(path_for(tmp_path, 100, EVAL), [row(100, 0)])
    files = files_in(tmp_path)
    assert sum(one.path.stat().st_size for one in files) <= 1.05 * 2**20
    steps = sorted({one.step for one in files})
    assert steps[0] == 1
    assert steps[-10:] == list(range(91, 101))
    assert all(len([one for one in files if one.step == step]) == 2 for step in steps[:-1])
    middle = steps[1:-10]
    assert len(middle) > 5
    gaps = [b - a for a, b in itertools.pairwise(middle)]
    assert max(gaps) <= 2 * min(gaps) or max(gaps) <= 16
    said = thinned(tmp_path)
    assert said is not None
    assert said["removed"] == 100 - len(steps)
    assert "run.rollouts_mb" in said["why"]


def test_a_resumed_run_writes_no_step_twice(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        write_rollouts(path_for(tmp_path, step), [row(step, 0)])
        write_rollouts(path_for(tmp_path, step, EVAL), [row(step, 0)])
    for process in (0, 1):
        lines = JsonLines(timeline_for(tmp_path, process))
        for step in (1, 2, 3):
            lines.write({"step": step, "start": step + process / 10, "process": process})
        lines.close()
    (tmp_path / "000004.jsonl.gz.new").write_bytes(b"half")
    drop_after(tmp_path, 2)
    assert [(one.step, one.phase) for one in files_in(tmp_path)] == [
        (1, TRAIN), (1, EVAL), (2, TRAIN), (2, EVAL),
    ]  # fmt: skip
    assert [(one["step"], one["process"]) for one in read_timeline(tmp_path)] == [
        (1, 0), (1, 1), (2, 0), (2, 1),
    ]  # fmt: skip
    assert not list(tmp_path.glob("*.new"))
    drop_after(tmp_path / "nowhere", 1)


@given(st.lists(st.sampled_from([0.0, 0.5, -1.0]), max_size=12))
def test_runs_are_the_values(values: list[float]) -> None:
    found = runs(np.array(values))
    assert [value for start, end, value in found for _ in range(start, end)] == values
    assert all(a[2] != b[2] and a[1] == b[0] for a, b in itertools.pairwise(found))


def batch(rows: int, width: int) -> dict[str, torch.Tensor]:
    made = torch.arange(rows * width, dtype=torch.float32).reshape(rows, width)
    rewards = torch.ones(rows)
    rewards[-1] = float("nan")
    return {
        "loss_mask": (made % 2 == 0).float(),
        "advantages": made / 7,
        "rewards": rewards,
        "old_logps": torch.where(made > 3, -made, torch.nan),
    }


def test_a_row_says_what_was_drawn_judged_and_trained_on() -> None:
    judged = good(
        0.5, "partial", components=(Component("a", 0.5),), spans=(Span(0, 1, 0.5),),
        suspicions=("odd",),
    )  # fmt: skip
    first, second = rollout(judged), rollout(bad(), index=1, tokens=2)
    unfinished = Unfinished(
        rollout(bad(), index=2).request, rollout(bad(), index=2).response, policy_step=3
    )
    credit = credit_of([first, second], batch(2, 4))
    told = list(rollout_rows(5, [first, second, unfinished], credit=credit))
    json.dumps(told, allow_nan=False)
    assert told[0]["judgement"]["spans"] == [
        {"start": 0, "end": 1, "reward": 0.5, "label": "", "turn_index": 0}
    ]
    assert told[0]["judgement"]["suspicions"] == ["odd"]
    assert told[0]["trained"] == [[0, 1], [2, 3]]
    assert [one[:2] for one in told[0]["advantages"]] == [[1, 2], [2, 3], [3, 4]]
    assert told[0]["old_logprobs"] is None  # those of the first pass
    assert told[0]["logprobs"] == [-0.5] * 4
    assert told[1]["fault"]["reason"] == "WORKER_DIED"
    assert (told[1]["reward"], told[1]["shaped_reward"]) == (None, None)
    assert told[1]["old_logprobs"] == [-4.0, -5.0]
    assert told[1]["own"] == [[0, 2, 0, 0, "policy"]]
    assert (told[2]["finished"], told[2]["trained"]) == (False, None)


def test_an_episodes_turns_contexts_and_record_are_kept() -> None:
    base = rollout(good(), tokens=10)
    turns = (
        ActedTurn(0, 3, 0, "asker#1", "why", seconds=0.5),
        ActedTurn(6, 9, 1, "solver", "so", seconds=0.25),
    )
    acted = Acted("talk", "answered", turns, (0, 4), record={"version": 1})
    whole = Rollout(base.request, base.response, base.result, 0, acted=acted)
    (told,) = rollout_rows(1, [whole])
    assert told["own"] == [[0, 3, 0, 0, "asker#1"], [6, 9, 1, 1, "solver"]]
    assert (told["contexts"], told["tools_s"], told["ending"]) == ([0, 4], 0.75, "answered")
    assert told["episode"] == {"version": 1}
    assert told["tokens"] == 6


@pytest.mark.parametrize(("which", "steps"), [("all", [1, 2]), ("samples", [2]), ("none", [])])
def test_settings_say_which_are_kept(tmp_path: Path, which: Any, steps: list[int]) -> None:
    folder = tmp_path / "rollouts"
    recorder = RolloutRecorder(RunConfig(rollouts=which), folder, 0)
    one = rollout(good())
    for step in (1, 2):
        recorder.saw([one], batch(1, 4))
        recorder.step(step, [one], sampled=step == 2)
        recorder.times(step, [("step", 1.0, 2.0)])
    recorder.evaluation(2, [one])
    recorder.close()
    found = files_in(folder)
    assert [file.step for file in found if file.phase == TRAIN] == steps
    assert [file.step for file in found if file.phase == EVAL] == ([] if which == "none" else [2])
    assert folder.exists() == (which != "none")
    assert (recorder.seconds > 0) == (which != "none")
    if steps:
        (kept,) = read_rollouts(folder, steps=lambda step: step == 2, phase=TRAIN)
        assert kept["trained"]


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    class Broken:
        def __iter__(self) -> Any:
            yield row(1, 0)
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_rollouts(path_for(tmp_path, 1), Broken())
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_cannot_be_written_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = RolloutRecorder(RunConfig(), tmp_path, 0, said.append)
    path_for(tmp_path, 1).with_suffix(".gz.new").mkdir()
    recorder.step(1, [rollout(good())], sampled=False)
    recorder.step(2, [rollout(good())], sampled=False)
    assert [one.step for one in files_in(tmp_path)] == [2]
    assert len(said) == 1
    assert "step 1 are not kept" in said[0]


def test_places_of_evaluations_start_at_0() -> None:
    from assay.trainer.core.evaluation import FIRST_DRAW

    one = rollout(good(), draw=FIRST_DRAW + 3)
    assert place(one)[0] > 2**62
    (told,) = rollout_rows(1, [one], phase=EVAL)
    assert told["draw"] == 3
