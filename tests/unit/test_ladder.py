"""`assay ladder`: the file, the table, the picture, and what is run, skipped and refused."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from assay.cli.main import run as assay
from assay.kit.errors import ConfigError
from assay.trainer.recipes import children
from assay.trainer.recipes.ladder import climb, outcome, plan, table
from assay.trainer.recipes.ladder.processes import RungRun
from ladder_support import curve, write_all, write_run

BASE = """
[data]
source = "jsonl"
path = "rows.jsonl"
[method.loss]
clip_high = 0.28
[method.dynamic_sampling]
enabled = true
[run]
steps = 20
"""
LADDER = """
base = "base.toml"
seeds = [0, 1]
threshold = { metric = "correct", value = 0.5 }
overrides = { rollout.max_new_tokens = 32 }

[[rung]]
name = "plain"
ablate = ["clip-higher", "dynamic-sampling"]

[[rung]]
name = "higher"
ablate = ["dynamic-sampling"]
overrides = { rollout.group_size = 8, optim.learning_rate = 1e-5 }

[[rung]]
name = "whole"
"""


@pytest.fixture
def ladder_file(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(BASE)
    path = tmp_path / "steps.toml"
    path.write_text(LADDER)
    return path


def climbed(wanted: plan.LadderPlan, folder: Path, **more: Any) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=100)
    code = climb.climb(wanted, folder, console, **more)
    assert isinstance(console.file, io.StringIO)
    return code, console.file.getvalue()


# --- the file ---


def test_a_ladder_is_the_settings_of_all_its_runs(ladder_file: Path) -> None:
    found = plan.load(ladder_file, ["optim.weight_decay=0.1", "ablate=std-scaling"])
    assert (found.name, found.seeds, found.against) == ("steps", (0, 1), "previous")
    assert found.threshold == plan.Threshold("correct", 0.5)
    plain, higher, whole = found.rungs
    assert plain.ablate == ("std-scaling", "clip-higher", "dynamic-sampling")
    assert set(plain.configs) == {0, 1}
    for rung in found.rungs:
        for seed, config in rung.configs.items():
            assert config.run.seed == seed
            assert config.run.name == f"{rung.name}-{seed}"
            assert config.rollout.max_new_tokens == 32
            assert config.optim.weight_decay == 0.1
            assert config.method.advantage.scale == "none"
    assert higher.configs[0].rollout.group_size == 8
    assert higher.configs[0].optim.learning_rate == 1e-5
    assert whole.configs[0].rollout.group_size == 4
    assert plain.configs[1].method.loss.clip_high == 0.2
    assert higher.configs[1].method.loss.clip_high == 0.28
    assert whole.configs[1].method.dynamic_sampling.enabled


def test_seeds_of_the_command_line(ladder_file: Path) -> None:
    assert plan.load(ladder_file, seeds=(5,)).seeds == (5,)
    assert plan.read_seeds("3, 4") == (3, 4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"clip-higher", "dyn', '"kl", "dyn', r"rung plain: ablate: kl is not on; on here: dynam"),
        ("group_size = 8", "group_size = 1", r"rung higher: rollout\.group_size = 1 leaves noth"),
        ("group_size = 8", "group_sise = 8", r"rung higher: rollout\.group_sise is not a setting"),
        ('"higher"', '"plain"', r"rung plain is there twice"),
        ('"higher"', '"a/b"', r"rung\.1\.name: expected"),
        ("seeds = [0, 1]", "seeds = [1, 1]", r"seed 1 is there twice"),
        ("seeds = [0, 1]", "seeds = []", r"seeds: "),
        ('base = "base.toml"', 'base = "no.toml"', r"no\.toml does not exist"),
        ('base = "base.toml"', "", r"base is missing"),
        ("seeds =", "seads =", r"seads is not a setting; did you mean seeds\?"),
    ],
)
def test_mistakes_are_found_before_anything_runs(
    ladder_file: Path, old: str, new: str, message: str
) -> None:
    ladder_file.write_text(LADDER.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message) as caught:
        plan.load(ladder_file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("override", ["run.seed=3", "run.name=x", "run.dir=x"])
def test_what_a_ladder_sets_itself_is_refused(ladder_file: Path, override: str) -> None:
    with pytest.raises(ConfigError, match="a ladder sets that itself"):
        plan.load(ladder_file, [override])


def test_seeds_are_numbers() -> None:
    with pytest.raises(ConfigError, match="give whole numbers"):
        plan.read_seeds("0,x")


# --- what a run left behind ---


def test_final_figures_are_means_over_the_last_tenth(tmp_path: Path) -> None:
    run = outcome.RunOutcome(tuple(curve(start=0.0, gain=0.1, steps=40)), None)
    assert run.final("reward") == pytest.approx((3.7 + 3.8 + 3.9 + 4.0) / 4)
    assert run.final("kl") is None
    short = outcome.RunOutcome(({"step": 1, "reward": None}, {"step": 2, "reward": 0.5}), None)
    assert short.final("reward") == 0.5
    assert outcome.read(tmp_path / "absent") is None


def test_steps_to_a_threshold_need_ten_steps_in_a_row() -> None:
    rows = tuple({"step": step, "correct": float(step > 15)} for step in range(1, 41))
    run = outcome.RunOutcome(rows, None)
    assert run.steps_to("correct", 0.5) == 20
    assert run.steps_to("correct", 1.0) == 25
    assert run.steps_to("correct", 1.1) is None
    lucky = outcome.RunOutcome(tuple({"step": n, "correct": 1.0} for n in range(1, 10)), None)
    assert lucky.steps_to("correct", 0.5) is None, "nine steps are no trend"


# --- the table ---


@pytest.fixture
def finished(ladder_file: Path, tmp_path: Path) -> tuple[plan.LadderPlan, Path]:
    wanted = plan.load(ladder_file)
    folder = tmp_path / "out"
    write_all(wanted, folder)
    return wanted, folder


def test_the_table(finished: tuple[plan.LadderPlan, Path]) -> None:
    wanted, folder = finished
    code, said = climbed(wanted, folder)
    assert code == 0
    assert "6 of them finished" in said
    found = json.loads((folder / "ladder.json").read_text())
    assert [rung["name"] for rung in found["rungs"]] == ["plain", "higher", "whole"]
    plain, higher, whole = found["rungs"]
    assert plain["estimates"]["accuracy"] == {
        "mean": pytest.approx(0.005),
        "low": pytest.approx(0.005 - 12.706205 * 0.005),
        "high": pytest.approx(0.005 + 12.706205 * 0.005),
        "n": 2,
    }
    assert plain["changes"] == {"accuracy": None, "reward": None}
    for rung in (higher, whole):
        change = rung["changes"]["accuracy"]
        assert change["mean"] == pytest.approx(0.1)
        assert change["low"] == pytest.approx(0.1), "the seeds differ alike in both rungs"
    # The mean of ten steps up to step n is start + 0.02 * (n - 4.5), with start 0.2 and 0.21.
    assert plain["reached"] == {"steps": [], "runs": 2}
    assert whole["reached"] == {"steps": [19, 20], "runs": 2}
    assert set(whole["parts"]) - set(plain["parts"]) == {"dynamic-sampling", "clip-higher"}
    text = (folder / "ladder.md").read_text()
    assert "| rung | seeds | held-out, % | change, points |" in text
    assert "| higher | 2 of 2 | 10.5 [4.1, 16.9] | +10.0 [+10.0, +10.0] |" in text
    assert "| clip-higher |  | x | x |" in text
    assert "![curves](ladder.png)" in text
    shown = said[said.index("ladder steps: each rung") : said.index(f"  {folder}")]
    assert max(map(len, shown.splitlines())) <= 100
    assert (folder / "ladder.png").read_bytes().startswith(b"\x89PNG")


def test_against_the_first(ladder_file: Path, tmp_path: Path) -> None:
    ladder_file.write_text('against = "first"\n' + LADDER)
    wanted = plan.load(ladder_file)
    write_all(wanted, tmp_path / "out")
    climbed(wanted, tmp_path / "out")
    found = json.loads((tmp_path / "out" / "ladder.json").read_text())
    means = [rung["changes"]["reward"] for rung in found["rungs"]]
    assert means[0] is None
    assert [mean["mean"] for mean in means[1:]] == [pytest.approx(0.1), pytest.approx(0.2)]


def test_a_ladder_of_one_seed_without_evaluation_or_threshold(
    ladder_file: Path, tmp_path: Path
) -> None:
    ladder_file.write_text(LADDER.replace("threshold", "# threshold"))
    wanted = plan.load(ladder_file, seeds=(3,))
    for rung in wanted.rungs:
        write_run(tmp_path / "out" / rung.name / "3", rung.configs[3], curve(start=0.2, gain=0.01))
    code, said = climbed(wanted, tmp_path / "out")
    assert code == 0
    assert "steps to" not in said
    text = (tmp_path / "out" / "ladder.md").read_text()
    assert "| plain | 1 of 1 | - | - | 0.395 | - | 0.805 | 29.5 |" in text


def test_the_parts_that_differ_can_be_read_off(finished: tuple[plan.LadderPlan, Path]) -> None:
    wanted, folder = finished
    outcomes = {
        rung.name: {
            seed: found
            for seed in wanted.seeds
            if (found := outcome.read(folder / rung.name / str(seed)))
        }
        for rung in wanted.rungs
    }
    summaries = table.summarise(wanted, outcomes)
    ours = [set(summary.parts) for summary in summaries]
    assert ours[1] - ours[0] == {"clip-higher"}
    assert ours[2] - ours[1] == {"dynamic-sampling"}
    assert [summary.seeds for summary in summaries] == [(0, 1)] * 3


# --- what is run ---


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Runs a program in the place of `assay`, which gets the same arguments."""

    def use(code: str) -> None:
        code = f"import sys\nsys.argv.pop(1)\n{code}"
        monkeypatch.setattr(children, "_CHILD", (sys.executable, "-c", code))

    return use


# Writes what a finished run leaves; a run of the rung "higher" fails.
_TRAINS = """
import json, pathlib, sys
arguments = sys.argv[1:]
print("arguments:", *arguments)
resumed = "--resume" in arguments
folder = pathlib.Path(arguments[-1])
if folder.parent.name == FAILS:
    sys.exit("assay: error: told to fail")
if not resumed:
    folder.mkdir(parents=True)
    text = pathlib.Path(arguments[1]).read_text()
    (folder / "config.toml").write_text(text)
rows = ({"step": n, "reward": 0.5, "correct": 0.5} for n in range(1, 21))
(folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
(folder / "report.json").write_text(json.dumps({"after": {"accuracy": 0.5}}))
"""


def trains(fails: str = "nobody") -> str:
    return f"FAILS = {fails!r}\n{_TRAINS}"


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 3])
def test_every_rung_and_seed_is_run_once(
    ladder_file: Path, tmp_path: Path, stand_in: Any, jobs: int
) -> None:
    stand_in(trains())
    wanted, folder = plan.load(ladder_file), tmp_path / "out"
    code, said = climbed(wanted, folder, jobs=jobs)
    assert code == 0, said
    assert "3 rungs x 2 seeds = 6 runs, 0 of them finished" in said
    for name in ("plain", "higher", "whole"):
        for seed in (0, 1):
            log = (folder / name / f"{seed}.log").read_text()
            settings = folder / name / f"{seed}.toml"
            assert log == f"arguments: train {settings} --run-dir {folder / name / str(seed)}\n"
            assert f"{name}, seed {seed}: finished" in said
    again, text = climbed(wanted, folder)
    assert (again, "6 of them finished" in text) == (0, True)
    assert "begins" not in text


def test_a_run_that_fails_stops_no_other(ladder_file: Path, tmp_path: Path, stand_in: Any) -> None:
    stand_in(trains(fails="higher"))
    wanted, folder = plan.load(ladder_file), tmp_path / "out"
    code, said = climbed(wanted, folder)
    assert code == 1
    whole = " ".join(said.split())  # a long path breaks the line elsewhere
    assert whole.count("told to fail") == 2, "each failure is told at the end, with its reason"
    assert str(folder / "higher" / "0.log") in said.replace("\n", "")
    found = json.loads((folder / "ladder.json").read_text())
    assert [rung["seeds"] for rung in found["rungs"]] == [[0, 1], [], [0, 1]]
    assert "| higher | 0 of 2 | - | - | - | - | - | - | - |" in (folder / "ladder.md").read_text()
    stand_in(trains())
    assert climbed(wanted, folder)[0] == 0, "only what is missing is run again"
    assert len((folder / "plain" / "0.log").read_text().splitlines()) == 1


def test_an_interrupted_run_is_resumed(ladder_file: Path, tmp_path: Path, stand_in: Any) -> None:
    stand_in(trains())
    wanted, folder = plan.load(ladder_file), tmp_path / "out"
    config = wanted.rungs[0].configs[0]
    begun = folder / "plain" / "0"
    write_run(begun, config, curve(start=0, gain=0, steps=3), done=False)
    job = RungRun("plain", 0, config, begun)
    assert (job.state(), job.steps_done()) == ("interrupted", 3)
    code, said = climbed(wanted, folder)
    assert code == 0
    assert "plain, seed 0: goes on" in said
    assert (folder / "plain" / "0.log").read_text() == f"arguments: train --resume {begun}\n"


def test_runs_of_other_settings_are_refused(
    ladder_file: Path, finished: tuple[plan.LadderPlan, Path]
) -> None:
    _, folder = finished
    with pytest.raises(ConfigError, match="holds a run of other settings; choose another --dir"):
        climbed(plan.load(ladder_file, ["optim.learning_rate=3e-4"]), folder)
    same = plan.load(ladder_file, ["reward.target=127.0.0.1:1", "eval.show=2"])
    assert climbed(same, folder)[0] == 0, "services and the evaluation may change, as on resuming"


def test_a_cut_last_row_is_not_a_step(
    tmp_path: Path, finished: tuple[plan.LadderPlan, Path]
) -> None:
    wanted, folder = finished
    path = folder / "plain" / "0" / "metrics.jsonl"
    path.write_text(path.read_text() + '{"step": 21, "rew')
    assert (
        RungRun("plain", 0, wanted.rungs[0].configs[0], folder / "plain" / "0").steps_done() == 20
    )


_WAITS = """
import pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[-1])
folder.mkdir(parents=True)
def end(*_):
    (folder / "stopped").write_text("by a signal")
    sys.exit(130)
signal.signal(signal.SIGINT, end)
(folder.parent / "ready").write_text("")
time.sleep(60)
"""

_CLIMBS = """
import io, sys
from pathlib import Path
from rich.console import Console
from assay.trainer.recipes import children
from assay.trainer.recipes.ladder import climb, plan
children._CHILD = (sys.executable, "-c", sys.argv[3])
sys.exit(climb.climb(plan.load(Path(sys.argv[1])), Path(sys.argv[2]), Console()))
"""


@pytest.mark.slow
def test_ctrl_c_reaches_the_runs_once_and_starts_no_more(ladder_file: Path, tmp_path: Path) -> None:
    import signal
    import time

    folder = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", _CLIMBS, str(ladder_file), str(folder), _WAITS],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (folder / "plain" / "ready").exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == climb.INTERRUPTED, said
    assert (folder / "plain" / "0" / "stopped").read_text() == "by a signal"
    assert "interrupted; the same command continues" in said
    assert not (folder / "higher").exists()


# --- the command ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.toml"], "absent.toml does not exist; presets are code_prm, dapo"),
        (["FILE", "run.seed=1"], "a ladder sets that itself"),
        (["FILE", "--seeds", "one"], "give whole numbers from 0"),
        (["FILE", "ablate=kl"], "rung plain: ablate: kl is not on"),
    ],
)
def test_mistakes_are_one_line(
    ladder_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    real = [str(ladder_file) if word == "FILE" else word for word in arguments]
    assert assay(["ladder", *real, "--dir", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_command_climbs(
    ladder_file: Path, tmp_path: Path, stand_in: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(trains(fails="whole"))
    arguments = ["ladder", str(ladder_file), "--seeds", "7", "--dir", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as caught:
        assay(arguments)
    assert caught.value.code == 1
    assert (tmp_path / "out" / "plain" / "7" / "report.json").is_file()
    assert "failed: whole, seed 7" in capsys.readouterr().out
