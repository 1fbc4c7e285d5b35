"""Laws of chances of winning: pairs, what becomes of their faults, and the symmetric advantage."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.clients import Component, Fault, Judgement, Result
from assay.trainer.algos.advantages import group_advantages, symmetric_advantages
from assay.trainer.algos.shaping import win_reward
from assay.trainer.rollouts.pairs import Pair, as_win, fold, order_gap, pairs_of

TEXTS = st.lists(st.sampled_from(["", " ", "a", "b", "c", "d ", "d"]), min_size=2, max_size=7)
WINS = st.floats(0, 1)
GAP = Fault("ORDER_GAP", "the orders differ", "FAILED_PRECONDITION")


def won(win: float, gap: float = 0.25) -> Result:
    parts = (Component("win-probability", win, 1.0), Component("order-gap", gap, 0.0))
    verdict = "better" if win >= 0.5 else "worse"
    return Result("", Judgement(win, verdict, parts, verifier="judge-pairwise", version="1"))


@st.composite
def judged_groups(draw: st.DrawFn, *, faults: bool) -> tuple[int, dict[Pair, Result], list[Pair]]:
    texts = draw(TEXTS)
    asked, equal = pairs_of(texts)
    said = {
        pair: Result("", GAP) if faults and draw(st.booleans()) else won(draw(WINS))
        for pair in asked
    }
    return len(texts), said, equal


def rewards(results: list[Result]) -> torch.Tensor:
    values = [math.nan if result.reward is None else result.reward for result in results]
    return torch.tensor([values], dtype=torch.float64)


@given(TEXTS)
def test_every_two_samples_are_a_pair_once_and_a_blank_one_is_never_to_be_beaten(
    texts: list[str],
) -> None:
    asked, equal = pairs_of(texts)
    places = sorted(tuple(sorted(pair)) for pair in [*asked, *equal])
    assert places == [(i, j) for i in range(len(texts)) for j in range(i + 1, len(texts))]
    assert all(texts[two].strip() for _, two in asked)
    assert all(texts[one].strip() == texts[two].strip() for one, two in equal)


@given(judged_groups(faults=False))
def test_the_symmetric_form_is_zero_mean_without_a_mean_taken(group: Any) -> None:
    results = fold(*group)
    advantages = symmetric_advantages(rewards(results))
    assert float(advantages.sum()) == pytest.approx(0, abs=1e-12)
    assert float(advantages.abs().max()) <= 0.5
    centred = group_advantages(rewards(results), scale="none")
    assert torch.allclose(advantages, centred, atol=1e-12), "then it is the group's own mean"


@given(judged_groups(faults=True))
def test_pairs_without_a_judgement_leave_the_mean_and_a_sample_without_any_is_a_fault(
    group: Any,
) -> None:
    count, said, equal = group
    results = fold(count, said, equal)
    total = 0.0
    for place, result in enumerate(results):
        own = [0.5 for pair in equal if place in pair]
        own += [
            judged.judgement.reward if pair[0] == place else 1 - judged.judgement.reward
            for pair, judged in said.items()
            if place in pair and judged.judgement is not None
        ]
        if not own:
            assert result.fault is not None
            assert result.fault.reason == "ORDER_GAP"
            continue
        assert result.reward == pytest.approx(sum(own) / len(own), abs=1e-12)
        total += len(own) * (result.reward - 0.5)  # type: ignore[operator]
        [pairs] = [c for c in result.judgement.components if c.name == "pairs"]  # type: ignore[union-attr]
        assert pairs.score == len(own)
    assert total == pytest.approx(0, abs=1e-12), "zero-mean, each weighed by its pairs"


@given(judged_groups(faults=True), st.data())
def test_the_judgement_of_an_unjudged_pair_changes_nothing(group: Any, data: st.DataObject) -> None:
    count, said, equal = group
    dropped = [pair for pair, result in said.items() if result.fault is not None]
    assume(dropped)
    kept = {pair: result for pair, result in said.items() if pair not in dropped}
    other = Result("", Fault("UNREACHABLE", "gone"))
    again = fold(count, {**kept, **dict.fromkeys(dropped, other)}, equal)
    before = fold(count, said, equal)
    assert [r.reward for r in again] == [r.reward for r in before]


@given(st.lists(st.one_of(WINS, st.just(math.nan)), min_size=2, max_size=8))
def test_a_fault_has_no_symmetric_advantage_and_moves_no_other(wins: list[float]) -> None:
    values = torch.tensor([wins], dtype=torch.float64)
    advantages = symmetric_advantages(values)
    for n, win in enumerate(wins):
        assert float(advantages[0, n]) == (0.0 if math.isnan(win) else win - 0.5)


@given(WINS, st.floats(0.5, 20))
def test_forms_of_a_win_are_odd_about_parity_and_keep_the_order(win: float, clip: float) -> None:
    other = 1 - win
    assume(1 - other == win)
    for form in ("centred", "log-odds"):
        assert win_reward(win, form, clip=clip) == pytest.approx(  # type: ignore[arg-type]
            -win_reward(other, form, clip=clip),
            abs=1e-9,  # type: ignore[arg-type]
        )
    assert win_reward(win) == win
    assert -clip <= win_reward(win, "log-odds", clip=clip) <= clip
    assert (win_reward(win, "log-odds", clip=clip) > 0) == (win > other)


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_log_odds_of_a_bradley_terry_judge_are_the_difference_of_its_scores(
    one: float, two: float
) -> None:
    win = 1 / (1 + math.exp(two - one))
    assert win_reward(win, "log-odds", clip=100) == pytest.approx(one - two, abs=1e-9)


def test_certainty_is_clipped() -> None:
    assert (win_reward(0.0, "log-odds"), win_reward(1.0, "log-odds")) == (-5.0, 5.0)
    with pytest.raises(ValueError, match="lies in"):
        win_reward(1.5)
    with pytest.raises(ValueError, match="unknown form"):
        win_reward(0.5, "logit")  # type: ignore[arg-type]


def test_what_is_no_chance_of_winning_is_a_fault() -> None:
    assert as_win(won(0.75)) == won(0.75)
    fault = Result("1", GAP)
    assert as_win(fault) is fault
    abstained = Result("2", Judgement(0.5, "abstained", explanation="too far apart"))
    assert as_win(abstained).fault is not None
    assert as_win(abstained).fault.reason == "ORDER_GAP"  # type: ignore[union-attr]
    offset = as_win(Result("3", Judgement(-0.25, "worse", verifier="a-profile")))
    assert offset.fault is not None
    assert offset.fault.reason == "INTERNAL"
    assert "no chance of winning" in offset.fault.message


def test_a_group_tells_its_gap_and_who_judged() -> None:
    results = fold(3, {(0, 1): won(1.0, 0.5), (0, 2): won(0.5, 0.0), (2, 1): Result("", GAP)}, [])
    assert [result.reward for result in results] == [0.75, 0.0, 0.5]
    first = results[0].judgement
    assert first is not None
    assert (first.verdict, first.verifier) == ("better", "judge-pairwise")
    assert order_gap(first) == 0.25
    assert "1 more were not judged" in results[2].judgement.explanation  # type: ignore[union-attr]
