"""What must hold of rewards that are corrected for a verifier's errors (arXiv 2510.00915)."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.kit.judgements import Appeal, Hearing
from assay.trainer.algos.advantages import TRL_EPS, group_advantages, plain_advantages
from assay.trainer.algos.advantages import rloo_advantages as rloo
from assay.trainer.algos.noise import (
    appealed_reward,
    backward_reward,
    forward_weight,
    weighted_rate,
)
from assay.trainer.core.build import scorer
from assay.trainer.core.hooks import hooks_of, load_states, states_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.noise.method import Noise, Rates, seen_of
from assay.trainer.methods.noise.settings import NoiseConfig
from assay.trainer.rollouts.types import Rollout
from assay.trainer.settings.config import Config, MethodSettings

rates = st.tuples(st.floats(0, 0.9), st.floats(0, 0.9)).filter(lambda pair: sum(pair) < 0.95)
verdicts = st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=4)


def mean(wrong: float, right: float, *, accepted: float) -> float:
    return (1 - accepted) * wrong + accepted * right


def rollout(outcome: Judgement | Fault, task: str = "") -> Rollout:
    request = Request(Draw(0, Problem("p", "q", (), "r", task=task), (1,)), 0)
    return Rollout(request, Response((1,), "t", None, truncated=False), Result("0", outcome), 0)


def verdict(right: bool, *suspicions: str, appeal: Appeal | None = None) -> Judgement:
    said = "correct" if right else "incorrect"
    return Judgement(float(right), said, suspicions=suspicions, appeal=appeal)


def appealed(first: bool, second: bool, probability: float) -> Judgement:
    said = [Hearing("v", "1", "correct" if one else "incorrect", one) for one in (first, second)]
    return verdict(second, appeal=Appeal("c", said[0], said[1], first, probability))


@given(rates)
def test_the_corrected_reward_has_the_truth_as_its_mean(pair: tuple[float, float]) -> None:
    fp, fn = pair
    wrong, right = backward_reward(0, fp, fn), backward_reward(1, fp, fn)
    assert mean(wrong, right, accepted=fp) == pytest.approx(0, abs=1e-9)
    assert mean(wrong, right, accepted=1 - fn) == pytest.approx(1)


@given(rates)
def test_the_mean_weight_is_0_of_right_responses_and_the_same_below_0_of_wrong_ones(
    pair: tuple[float, float],
) -> None:
    fp, fn = pair
    wrong, right = forward_weight(0, fn), forward_weight(1, fn)
    assert (right, wrong) == pytest.approx((fn, fn - 1))
    assert mean(wrong, right, accepted=1 - fn) == pytest.approx(0, abs=1e-12)
    assert mean(wrong, right, accepted=fp) == pytest.approx(-(1 - fp - fn))


@given(st.booleans(), rates)
def test_forward_is_backward_less_one_times_what_the_verdict_tells(
    said: bool, pair: tuple[float, float]
) -> None:
    fp, fn = pair
    told = 1 - fp - fn
    assert forward_weight(said, fn) == pytest.approx(told * (backward_reward(said, fp, fn) - 1))


@given(verdicts, rates)
def test_one_pair_of_rates_in_a_group_changes_nothing_that_its_deviation_divides(
    said: list[list[bool]], pair: tuple[float, float]
) -> None:
    judged_PG = torch.tensor(said, dtype=torch.float64)
    corrected_PG = (judged_PG - pair[0]) / (1 - sum(pair))
    for estimate in (group_advantages, rloo):
        plain_PG, whole_PG = estimate(judged_PG, scale="group"), estimate(judged_PG, scale="none")
        # Equal but for the TRL_EPS beside a deviation, which is at least 1/2 here.
        torch.testing.assert_close(
            estimate(corrected_PG, scale="group"), plain_PG, rtol=4 * TRL_EPS, atol=1e-9
        )
        torch.testing.assert_close(estimate(corrected_PG, scale="none") * (1 - sum(pair)), whole_PG)


@given(verdicts, st.floats(0, 0.9))
def test_a_groups_mean_takes_the_forward_correction_out(said: list[list[bool]], fn: float) -> None:
    judged_PG = torch.tensor(said, dtype=torch.float64)
    torch.testing.assert_close(group_advantages(judged_PG - (1 - fn)), group_advantages(judged_PG))


def test_a_deviation_takes_the_mean_of_0_from_a_rare_class_of_responses() -> None:
    """Of hedges the judge accepts 4 in 5. Among wrong answers one earns 0 in the mean; where the
    deviation divides, the rare large loss shrinks and hedging pays."""
    fp = 0.8
    paid = {"none": 0.0, "group": 0.0}
    for accepted, chance in ((1, fp), (0, 1 - fp)):
        group_PG = torch.tensor([[0.0] * 7 + [backward_reward(accepted, fp, 0)]])
        for scale in ("none", "group"):
            paid[scale] += chance * float(group_advantages(group_PG, scale=scale)[0, -1])
    assert paid["none"] == pytest.approx(0, abs=1e-9)
    assert paid["group"] > 1


@given(st.booleans(), st.booleans(), st.floats(0.01, 1), st.floats(-5, 5))
def test_the_appealed_reward_has_the_second_opinion_as_its_mean(
    first: bool, second: bool, chance: float, reward: float
) -> None:
    del first
    value = mean(reward, appealed_reward(reward, second, chance), accepted=chance)
    assert value == pytest.approx(float(second), abs=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.floats(1, 50)), min_size=1, max_size=60))
def test_a_rate_lies_in_its_interval_and_equal_weights_are_no_weights(
    seen: list[tuple[bool, float]],
) -> None:
    found = weighted_rate([wrong for wrong, _ in seen], [weight for _, weight in seen])
    assert found is not None
    assert -1e-9 <= found.low - 1e-9 <= found.value <= found.high + 1e-9
    wrongs = [wrong for wrong, _ in seen]
    one, other = weighted_rate(wrongs, [1.0] * len(seen)), weighted_rate(wrongs, [7.0] * len(seen))
    assert one is not None
    assert other is not None
    assert (other.value, other.low, other.high) == pytest.approx((one.value, one.low, one.high))


@given(rates)
def test_rates_that_tell_nothing_are_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="sum to 1 or more"):
        backward_reward(1, pair[0], 1 - pair[0])
    assume(sum(pair) > 0.1)
    with pytest.raises(ValueError, match="sum to 1 or more"):
        backward_reward(1, 1 - pair[0] / 2, 1 - pair[1] / 2)


def config(**own: Any) -> Config:
    tables: dict[str, Any] = {"noise": NoiseConfig(**own)}
    return Config(method=MethodSettings(**tables))


@given(st.lists(st.booleans(), min_size=1, max_size=6), rates)
def test_a_fault_has_no_corrected_reward_and_changes_no_other(
    said: list[bool], pair: tuple[float, float]
) -> None:
    chosen = config(correction="backward", false_positive=pair[0], false_negative=pair[1])
    score = scorer(hooks_of(chosen))
    judged = tuple(rollout(verdict(one)) for one in said)
    alone = score([judged])
    beside = score([(*judged, rollout(Fault("INTERNAL", "x")))])
    assert [item.reward for item in beside] == [*(item.reward for item in alone), None]
    assert not beside[-1].trains
    assert [item.reward for item in alone] == [backward_reward(one, *pair) for one in said]


def test_the_rates_of_a_suspicion_go_before_those_of_a_task_and_these_before_all() -> None:
    (hook,) = hooks_of(
        config(
            correction="backward",
            false_negative=0.5,
            by_task={"hard": (0.0, 0.75)},
            by_suspicion={"hedged": (0.8, 0.0)},
        )
    )
    rows = (
        rollout(verdict(True)),
        rollout(verdict(True), "hard"),
        rollout(verdict(True, "other", "hedged"), "hard"),
        rollout(verdict(False, "hedged")),
    )
    scored = scorer([hook])([rows])
    assert [item.reward for item in scored] == pytest.approx([2.0, 4.0, 1.0, -4.0])


@given(st.booleans(), st.booleans(), st.floats(0.05, 1))
def test_an_appeal_counts_by_one_over_its_chance(first: bool, second: bool, chance: float) -> None:
    plain = Rates(NoiseConfig(appeals=True)).corrected(appealed(first, second, chance), "")
    assert plain == pytest.approx(first + (second - first) / chance)
    chosen = NoiseConfig(correction="backward", false_negative=0.3, appeals=True)
    base = backward_reward(first, 0.0, 0.3)
    found = Rates(chosen).corrected(appealed(first, second, chance), "")
    assert found == pytest.approx(base + (second - base) / chance)
    ignored = Rates(replace(chosen, appeals=False)).corrected(appealed(first, second, chance), "")
    assert ignored == pytest.approx(backward_reward(second, 0.0, 0.3))


def test_rates_by_appeals_are_found_and_used() -> None:
    """Of 2,000 right and 2,000 wrong responses, with appeals of half of the refused and a fifth of
    the accepted; rates of 5 % and 30 %."""
    dice = torch.Generator().manual_seed(0)
    found = Rates(NoiseConfig(correction="backward", appeals=True, rates="appeals"))
    draws = torch.rand(4000, 2, generator=dice).double()
    rows = []
    for number, (coin, asked) in enumerate(draws.tolist()):
        truth = number % 2 == 0
        first = coin >= 0.3 if truth else coin < 0.05
        chance = 0.2 if first else 0.5
        rows.append((float(first), float(truth) if asked < chance else -1.0, 1 / chance))
    found.learn(torch.tensor(rows).double().numpy())
    positive, negative = found.estimates()
    assert positive is not None
    assert negative is not None
    assert positive.low <= 0.05 <= positive.high < 0.1
    assert 0.25 < negative.low <= 0.3 <= negative.high
    assert found.of(verdict(True), "any") == (positive.value, negative.value)
    assert math.isfinite(found.corrected(verdict(True), "any"))


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([None, True, False]), st.floats(0.05, 1)),
             min_size=4, max_size=40),
    st.data(),
    st.integers(4, 30),
)  # fmt: skip
def test_what_appeals_said_goes_through_a_checkpoint(
    seen: list[tuple[bool, bool | None, float]], data: st.DataObject, window: int
) -> None:
    """Wherever it is cut, the estimates go on as if it had not been; a checkpoint that has nothing
    of the method begins anew, and a shorter window keeps the latest."""
    chosen = {"correction": "forward", "appeals": True, "rates": "appeals", "least": 3}
    rows = [
        (float(first), -1.0 if second is None else float(second), 0.0 if second is None else 1 / p)
        for first, second, p in [(False, True, 1.0), *seen]
    ]
    cut = data.draw(st.integers(1, len(rows)))
    (whole,) = hooks_of(config(**chosen, window=window))
    (later,), (anew,) = hooks_of(whole.config), hooks_of(whole.config)
    (short,) = hooks_of(config(**chosen, window=3))
    assert isinstance(whole, Noise)
    assert isinstance(later, Noise)
    assert isinstance(anew, Noise)
    assert isinstance(short, Noise)

    def learn(hook: Noise, some: list[tuple[float, float, float]]) -> bool:
        try:
            hook.rates.learn(torch.tensor(some).double().reshape(-1, 3).numpy())
        except TrainingStoppedError:
            return False
        return True

    assume(learn(whole, rows[:cut]))
    file = io.BytesIO()
    torch.save(states_of([whole]), file)
    file.seek(0)
    states = torch.load(file, weights_only=True)
    assert set(states) == {"noise"}
    load_states([later], states)
    load_states([anew], {})
    load_states([short], states)
    assert later.rates.numbers() == whole.rates.numbers()
    assert anew.rates.count == 0
    assert short.rates.count == sum(one[1] >= 0 for one in rows[:cut][-min(3, window) :])
    assert learn(later, rows[cut:]) == learn(whole, rows[cut:])
    assert later.rates.numbers() == whole.rates.numbers()
    assert later.rates.of(verdict(True), "") == whole.rates.of(verdict(True), "")


@given(st.booleans(), st.booleans(), st.floats(0.05, 1))
def test_appeals_count_by_the_reward_whatever_word_a_verifier_has(
    first: bool, second: bool, chance: float
) -> None:
    """A function of one's own says `scored` of all that it judges."""
    word = appealed(first, second, chance)
    assert word.appeal is not None
    said = [replace(one, verdict="scored") for one in (word.appeal.first, word.appeal.second)]
    plain = replace(word, verdict="scored", appeal=Appeal("c", said[0], said[1], first, chance))
    assert seen_of(plain) == seen_of(word) == (float(first), float(second), 1 / chance)
    alone = replace(plain, appeal=None)
    assert seen_of(alone) == (float(second), -1.0, 0.0)


def test_few_appeals_correct_nothing_and_those_of_refused_ones_alone_give_no_false_positives() -> (
    None
):
    found = Rates(NoiseConfig(correction="backward", appeals=True, rates="appeals", least=4))
    rows = torch.tensor([[0.0, 1.0, 1.0]] * 3 + [[1.0, -1.0, 0.0]] * 6).double().numpy()
    found.learn(rows)
    assert found.of(verdict(True), "") is None
    assert found.corrected(verdict(True), "") == 1.0
    positive, negative = found.estimates()
    assert positive is None
    assert negative is not None
    assert negative.value == pytest.approx(3 / 9)
    with pytest.raises(TrainingStoppedError, match="draw a share of all"):
        found.learn(rows)
    forward = Rates(NoiseConfig(correction="forward", appeals=True, rates="appeals", least=4))
    forward.learn(rows)
    forward.learn(rows)
    assert forward.corrected(verdict(True), "") == pytest.approx(1 / 3)


def test_an_appeal_without_a_chance_stops_the_run() -> None:
    found = Rates(NoiseConfig(appeals=True))
    with pytest.raises(TrainingStoppedError, match="report it to whoever runs the server"):
        found.corrected(appealed(True, False, 0.0), "")


def test_appeals_that_turn_every_verdict_stop_the_run() -> None:
    found = Rates(NoiseConfig(correction="backward", appeals=True, rates="appeals", least=4))
    rows = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]] * 40).double().numpy()
    with pytest.raises(TrainingStoppedError, match="take another verifier"):
        found.learn(rows)


@given(st.lists(st.one_of(st.none(), st.floats(-5, 5)), min_size=1, max_size=6))
def test_without_a_baseline_the_reward_is_the_advantage(rewards: list[float | None]) -> None:
    given_PG = torch.tensor(
        [[math.nan if one is None else one for one in rewards]], dtype=torch.float64
    )
    found = plain_advantages(given_PG)
    assert found[0].tolist() == [0.0 if one is None else one for one in rewards]


def test_a_reward_that_is_neither_0_nor_1_stops_the_run() -> None:
    found = Rates(NoiseConfig(correction="backward", false_negative=0.3))
    with pytest.raises(TrainingStoppedError, match=r"rewards of 0 and 1, and .* gave 0\.5"):
        found.corrected(Judgement(0.5, "partial", verifier="half"), "")
