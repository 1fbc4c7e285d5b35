"""Claims of papers: seeds from an effect, verdicts from intervals, pages from figures."""

from __future__ import annotations

import json
import random
import statistics
from pathlib import Path

import pytest
from experiments import pages, records
from experiments.claim import FIRST_SEED, VERDICTS, Claim, Runs, seeds_for
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.recipes.ladder.stats import estimate


def claim(effect: float = 0.1, *, keeps: bool = False) -> Claim:
    words = ("one", "A is better.", "a paper", "a task", "it can", "score", "a", "b")
    return Claim(*words, effect, 0.1, keeps)


def runs(differences: list[float]) -> Runs:
    seeds = range(FIRST_SEED, FIRST_SEED + len(differences))
    found = dict(zip(seeds, differences, strict=True))
    return {
        "a": {seed: {"score": 0.5 + value} for seed, value in found.items()},
        "b": {seed: {"score": 0.5} for seed in found},
    }


def spread(mean: float, deviation: float, count: int) -> list[float]:
    """Values of that mean and deviation."""
    raw = [(-1) ** n * (1 + n) for n in range(count)]
    middle, wide = statistics.fmean(raw), statistics.stdev(raw)
    return [mean + deviation * (value - middle) / wide for value in raw]


@pytest.mark.parametrize(("effect", "deviation"), [(0.1, 0.1), (0.05, 0.08), (0.3, 0.1)])
def test_so_many_seeds_find_the_effect_four_times_in_five(effect: float, deviation: float) -> None:
    dice = random.Random(0)
    count = seeds_for(effect, deviation)

    def found(seeds: int) -> float:
        rounds = 2000
        hits = 0
        for _ in range(rounds):
            one = estimate([dice.gauss(effect, deviation) for _ in range(seeds)])
            assert one is not None
            assert one.low is not None
            hits += one.low > 0
        return hits / rounds

    assert found(count) > 0.77
    if count > 3:
        assert found(count - 1) < 0.83


def test_no_effect_takes_no_number_of_seeds() -> None:
    with pytest.raises(ValueError, match="above zero"):
        seeds_for(0, 1)


@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_greater_effect_takes_no_more_seeds(effect: float, deviation: float) -> None:
    deviation = min(deviation, 3 * effect)
    assert seeds_for(2 * effect, deviation) <= seeds_for(effect, deviation)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("mean", "deviation", "keeps", "verdict"),
    [
        (0.1, 0.05, False, "shown"),
        (0.0, 0.05, False, "absent"),
        (-0.1, 0.05, False, "reversed"),
        (0.06, 0.3, False, "undecided"),
        (0.0, 0.05, True, "shown"),  # less than the effect is lost
        (-0.08, 0.01, True, "shown"),
        (-0.2, 0.05, True, "reversed"),
        (-0.08, 0.05, True, "undecided"),
    ],
)
def test_the_interval_decides(
    sign: int, mean: float, deviation: float, keeps: bool, verdict: str
) -> None:
    one = claim(0.1 * sign, keeps=keeps)
    values = [sign * value for value in spread(mean, deviation, one.seeds)]
    assert one.verdict(runs(values)) == verdict


@given(st.lists(st.floats(-1, 1), min_size=0, max_size=9))
def test_fewer_seeds_than_the_claim_takes_decide_nothing(values: list[float]) -> None:
    assert claim().seeds == 10
    assert claim().verdict(runs(values)) == "unfinished"


@given(st.lists(st.floats(-1, 1), min_size=10, max_size=12))
def test_a_claim_turned_round_is_the_reverse(values: list[float]) -> None:
    turned = {"shown": "reversed", "reversed": "shown"}
    ours = claim().verdict(runs(values))
    theirs = claim().verdict(runs([-value for value in values]))
    assert theirs == turned.get(ours, theirs)
    assert theirs not in turned or ours == turned[theirs]


def test_seeds_without_a_figure_are_left_out() -> None:
    some = {
        "a": {10: {"score": 1.0}, 11: {"score": None}, 12: {"score": 1.0}},
        "b": {10: {"score": 0.5}, 11: {"score": 0.5}},
    }
    assert claim().differences(some) == {10: 0.5}


def test_claims_are_told_apart_and_say_all_that_a_reader_needs() -> None:
    every = [(name, one) for name in records.methods() for one in records.method(name).CLAIMS]
    names = [one.name for _, one in every]
    assert len(set(names)) == len(names) > 0
    for name, one in every:
        assert all((one.says, one.source, one.setup, one.why, one.figure)), one.name
        assert "|" not in one.says + one.source + one.setup + one.why, one.name
        assert one.seeds >= 3
        known = records.recorded(name)
        for arm in set(known) & set(one.arms):
            assert all(one.figure in figures for figures in known[arm].values()), one.name
            assert min(known[arm]) >= FIRST_SEED, "a pilot is no result"


def test_no_figure_is_of_an_arm_that_no_claim_has() -> None:
    for name in records.methods():
        arms = {arm for one in records.method(name).CLAIMS for arm in one.arms}
        assert set(records.recorded(name)) <= arms, name


def test_figures_are_kept_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "HERE", tmp_path)
    (tmp_path / "one").mkdir()
    records.record("one", runs([0.125, 0.25]))
    records.record("one", {"c": {10: {"score": None}}, "b": {}, "a": {10: {"score": 0.5}}})
    known = records.recorded("one")
    assert known["a"][11] == {"score": 0.75}
    assert known["c"][10] == {"score": None}
    assert len(known["b"]) == 2, "what was not run again is kept"
    assert "torch" in json.loads(records.results_of("one").read_text())["a"]["where"]


def test_pages_say_what_was_not_run() -> None:
    one = pages.Row(claim(), {})
    assert pages.said(one) == "not run"
    assert one.verdict == "unfinished"
    assert set(pages.COLOURS) == set(VERDICTS)


@given(st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=12))
def test_the_picture_has_a_point_for_each_seed_within_its_frame(values: list[float]) -> None:
    drawn = pages.picture([pages.Row(claim(), runs(values))])
    assert drawn.count("r='3'") == len(values)
    for part in drawn.split("cx='")[1:]:
        assert 0 <= float(part.partition("'")[0]) <= 790
