"""The lab: its scripts on the real wire, what it calls a step, and the page that shows it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.clients import Item, RewardClient
from assay.kit.errors import ConfigError
from assay.lab.report import exit_code, from_plain, page_with, to_plain
from assay.lab.running import Laboratory, Trial, chosen, contestant_names
from assay.lab.scripts import SCRIPTS, ScriptedRewardServer
from assay.lab.steps import BATCH, ROWS, Groups, coefficients, kept, rewarded, tokens_of
from assay.lab.trainers.source import taken
from assay.lab.verdicts import LabCell, Oracles, judge_step

NAMES = [row.name for row in ROWS]
REPOSITORY = Path(__file__).parents[2]
VECTORS = st.lists(st.integers(-8, 8).map(float), min_size=8, max_size=8)


def trials() -> list[Trial]:
    found = json.loads((REPOSITORY / "bench/lab.json").read_text(encoding="utf-8"))["trials"]
    return [from_plain(plain) for plain in found]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_does_what_it_says(name: str) -> None:
    """Judgements and faults are as many as items; whoever is not judged is a fault."""
    with ScriptedRewardServer(knobs=SCRIPTS[name].knobs) as server:
        with RewardClient(server.address, timeout_s=1.5) as client:
            client.wait_ready(5)
            items = [Item(row.response, row.name, "exact", id=row.name) for row in ROWS]
            results = client.score(items)
        faulted = {result.id for result in results if result.fault}
        assert [result.id for result in results] == NAMES
        assert server.judged == set(NAMES) - faulted
    knobs = SCRIPTS[name].knobs
    struck = knobs.fault_ids | knobs.nan_ids | knobs.drop_ids | knobs.duplicate_ids
    struck |= knobs.recant_ids
    lost = name in ("internal", "hang", "gone")
    assert faulted == (set(NAMES) if lost else set(struck))
    rewards = {row.name: row.reward for row in ROWS}
    assert all(one.reward == rewards[one.id] for one in results if one.judgement)


@given(VECTORS, VECTORS, VECTORS)
def test_the_oracles_step_is_green_and_a_shorter_one_yellow(
    never: list[float], lost: list[float], zero: list[float]
) -> None:
    oracles = Oracles(never, lost, zero)
    assert judge_step(never, oracles, ("a3",)).colour == "green"
    half = [value / 2 for value in never]
    assert judge_step(half, oracles, ("a3",)).colour == ("yellow" if any(never) else "green")
    assert judge_step([math.nan, *never[1:]], oracles, ("a3",)).colour == "red"
    against = [-value for value in never]
    assume(any(never) and any(a * b > 0 for a, b in zip(never, lost, strict=True)))
    assume(not judge_step(against, Oracles(never, never, never), ()).difference.parallel)  # type: ignore[union-attr]
    assert judge_step(against, Oracles(never, never, zero), ()).colour == "red"


class Means:
    """A trainer of three lines: a row's advantage is its reward less its group's mean."""

    title, compared, default, read = "means", "advantages", True, ""

    def __init__(self, fault: float | None) -> None:
        self.fault = fault

    def version(self) -> str:
        return "1"

    def step(self, groups: Groups, target: str) -> list[float]:
        with RewardClient(target, timeout_s=1.5) as client:
            rows = [row for group in groups for row in group]
            items = [Item(row.response, row.name, "exact", id=row.name) for row in rows]
            told = {one.id: one.reward for one in client.score(items)}
        advantages: dict[str, float] = {}
        for group in groups:
            rewards = {row.name: told[row.name] for row in group}
            numbers = {
                name: self.fault if reward is None else reward for name, reward in rewards.items()
            }
            judged = {name: value for name, value in numbers.items() if value is not None}
            mean = sum(judged.values()) / max(len(judged), 1)
            advantages |= {name: value - mean for name, value in judged.items()}
        in_step = [row for row in rows if row.name in advantages]
        return coefficients(advantages, tokens_of(in_step))


def test_a_fault_that_becomes_a_number_is_red() -> None:
    sound, taught = Laboratory(Means(None)), Laboratory(Means(0.0))
    for script in ("clean", "fault", "faults", "group", "nan"):
        assert sound.cell(script).colour == "green", script
    for script in ("fault", "faults", "nan"):
        cell = taught.cell(script)
        assert (cell.colour, cell.says) == ("red", "a fault trains as the reward 0"), script
    assert Laboratory(Means(math.nan)).cell("fault").says == "NaN reaches the step"


class Stops(Means):
    """One that raises."""

    def step(self, groups: Groups, target: str) -> list[float]:
        if len([row for group in groups for row in group]) == len(ROWS):
            raise ValueError("no more")
        return super().step(groups, target)


def test_a_trainer_that_stops_has_learned_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    cell = Laboratory(Stops(None)).cell("clean")
    assert (cell.colour, cell.says) == ("yellow", "training stops: ValueError")
    assert "no more" in capsys.readouterr().err


def test_batches_without_rows() -> None:
    assert kept(frozenset(NAMES)) == list(BATCH)
    assert [[row.name for row in group] for group in kept(frozenset({"b2"}))] == [["b2"]]
    assert rewarded(frozenset({"a3"}), 0.0)[0][2].reward == 0.0


def test_names_that_there_are_not() -> None:
    assert {"trl", "verl", "assay"} <= set(contestant_names())
    with pytest.raises(ConfigError, match="no trainer 'vrl'; did you mean 'verl'"):
        chosen(["vrl"], ["trl", "verl"], "trainer")


def test_a_function_is_taken_from_its_file() -> None:
    own = taken("assay.lab", "steps.py", "coefficients", ROWS=ROWS)
    given = {"a1": 1.0, "b1": -1.0}, {"a1": 1, "b1": 3}
    assert own(*given) == coefficients(*given)
    with pytest.raises(ImportError, match="has no such_one; another version"):
        taken("assay.lab", "steps.py", "such_one")
    with pytest.raises(ImportError, match="put a checkout of it on PYTHONPATH"):
        taken("no_such_package", "a.py", "b")


def test_the_page_shows_what_was_run() -> None:
    page = (REPOSITORY / "docs/trainers/lab.md").read_text(encoding="utf-8")
    assert page_with(page, trials()) == page
    with pytest.raises(ConfigError, match="has no lines"):
        page_with("# Another", trials())


def test_no_default_of_ours_teaches_a_fault() -> None:
    found = trials()
    assert {trial.name for trial in found} == set(contestant_names())
    assert not [(trial.name, trial.reds) for trial in found if trial.default and trial.reds]
    assert all(trial.cells.keys() == SCRIPTS.keys() for trial in found)
    assert any(trial.reds for trial in found)  # the lab can see


def test_exit_codes() -> None:
    red, grey = LabCell("red", "wrong"), LabCell("grey", "not run")
    about = ("t", "T", "1", "advantages")
    assert exit_code([Trial(*about, False, "", {"fault": red})]) == 0
    assert exit_code([Trial(*about, True, "", {"fault": red})]) == 1
    assert exit_code([Trial(*about, True, "", {"fault": grey})]) == 2
    [trial] = [one for one in trials() if one.name == "nemo-rl-mask"]
    assert from_plain(to_plain(trial)) == trial
