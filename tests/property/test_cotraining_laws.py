"""What must hold of a verifier that learns beside its generator, whatever the settings."""

from __future__ import annotations

import itertools
import json

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.clients.judging.fencing import code_of
from assay.trainer.core.batch import group_advantages
from assay.trainer.methods.cotraining.measures import (
    RIGHT,
    WRONG,
    ClassWeights,
    Verified,
    balanced,
    inverse_root_weights,
    reward_of,
    verifier_metrics,
)
from assay.trainer.methods.cotraining.protocol import Verification, asked, read, steps_of
from assay.trainer.methods.cotraining.schedule import Schedule, State
from assay.trainer.methods.cotraining.settings import CotrainingConfig
from assay.trainer.methods.dense.settings import DenseConfig
from assay.trainer.settings.objective import AdvantageConfig
from golden.batches import batch_of, hooks, plain_rows, tensor

schedules = st.builds(
    Schedule, st.integers(1, 12), st.integers(1, 4), st.integers(0, 3), st.integers(0, 4)
)
texts = st.text(alphabet="ab \n\t[]0f1c.:", max_size=40)


# The order of steps.


@given(schedules)
def test_a_warm_up_then_so_many_steps_of_each_and_the_generator_last(schedule: Schedule) -> None:
    turns = list(schedule.turns())
    assert turns[: schedule.warmup] == ["verifier"] * schedule.warmup
    assert turns.count("generator") == schedule.steps
    assert turns.count("verifier") == schedule.verifier_total
    assert turns[-1] == "generator"
    runs = [(role, len(list(run))) for role, run in itertools.groupby(turns[schedule.warmup :])]
    assert all(size == schedule.verifier_steps for role, size in runs if role == "verifier")
    if schedule.verifier_steps:
        generators = [size for role, size in runs if role == "generator"]
        assert all(size == schedule.generator_steps for size in generators[:-1])
        assert generators[-1] <= schedule.generator_steps


def test_three_steps_to_one() -> None:
    turns = "".join(role[0] for role in Schedule(8, 3, 1, 2).turns())
    assert turns == "vvgggvgggvgg"


@given(schedules, st.data())
def test_a_run_goes_on_where_both_roles_have_a_checkpoint(
    schedule: Schedule, data: st.DataObject
) -> None:
    states = list(schedule.states())
    place = data.draw(st.integers(0, len(states) - 1))
    state = states[place]
    assert list(schedule.after(state)) == list(schedule.turns())[place:]
    kept = data.draw(st.lists(st.sampled_from(states), max_size=4))
    found = schedule.latest({one.generator for one in kept}, {one.verifier for one in kept})
    assert found in states
    assert not kept or states.index(found) >= max(map(states.index, kept))
    assert not found.generator or found.generator in {one.generator for one in kept}
    assert not found.verifier or found.verifier in {one.verifier for one in kept}


def test_a_state_of_another_order_is_refused() -> None:
    with pytest.raises(ValueError, match="no order of"):
        Schedule(3, 1, 1, 0).after(State(0, 1))


# What classes weigh.


@given(st.integers(1, 500), st.integers(1, 500))
def test_the_weights_have_a_mean_of_1_and_fall_with_the_root_of_the_count(
    right: int, wrong: int
) -> None:
    weights = inverse_root_weights(right, wrong)
    mean = (right * weights[RIGHT] + wrong * weights[WRONG]) / (right + wrong)
    assert mean == pytest.approx(1)
    assert weights[RIGHT] / weights[WRONG] == pytest.approx((wrong / right) ** 0.5)
    if right == wrong:
        assert list(weights.values()) == pytest.approx([1, 1])


@given(st.lists(st.lists(st.booleans(), max_size=6), max_size=5))
def test_class_counts_are_a_moving_average_that_a_checkpoint_keeps(
    steps: list[list[bool]],
) -> None:
    classes, again = ClassWeights(0.9), ClassWeights(0.9)
    off = ClassWeights(0.9, enabled=False)
    seen = [step for step in steps if step]
    for step in steps:
        again.load_state_dict(json.loads(json.dumps(classes.state_dict())))
        for one in (classes, again, off):
            one.see(step)
        assert again.weights == classes.weights
        assert off.weights == {RIGHT: 1, WRONG: 1}
    expected = None
    for step in seen:
        now = float(sum(step))
        expected = now if expected is None else 0.9 * expected + 0.1 * now
    counts = classes.state_dict()
    assert counts.get(RIGHT) == (None if expected is None else pytest.approx(expected))
    if not seen:
        assert classes.weights == {RIGHT: 1, WRONG: 1}


def test_a_class_that_was_hardly_seen_does_not_outweigh_everything() -> None:
    assert inverse_root_weights(64, 0) == inverse_root_weights(64, 1)
    assert inverse_root_weights(64, 0)[WRONG] < 8


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=40), st.data())
def test_as_many_right_as_wrong_solutions_are_verified_as_the_drawn_ones_allow(
    truths: list[bool | None], data: st.DataObject
) -> None:
    wanted = data.draw(st.integers(1, len(truths)))
    places = balanced(truths, wanted)
    assert len(places) == wanted
    assert places == sorted(set(places))
    taken = [truths[place] for place in places]
    assert abs(taken.count(None) - wanted * truths.count(None) / len(truths)) <= 0.5
    fewer, more = sorted((True, False), key=taken.count)
    assert taken.count(more) - taken.count(fewer) <= 1 or taken.count(fewer) == truths.count(
        fewer
    ), "one class is more only where the other has run out"
    for kind in (True, False):
        drawn = [place for place, truth in enumerate(truths) if truth is kind]
        assert [place for place in places if truths[place] is kind] == drawn[: taken.count(kind)]


@given(
    st.lists(st.floats(0.2, 4.0), min_size=2, max_size=2),
    st.lists(st.lists(st.floats(0, 1.8), min_size=4, max_size=4), min_size=2, max_size=2),
)
def test_a_weight_on_the_reward_is_one_on_the_advantage_or_none(
    weights: list[float], rewards: list[list[float]]
) -> None:
    """A group is of one class. What divides by its deviation, and 1e-4, divides by the weight."""
    rows, weights_B = plain_rows(8, 2), tensor([one for one in weights for _ in range(4)])
    rewards_B = tensor([one for group in rewards for one in group])
    batch, weighed = (batch_of(rows, rewards=some) for some in (rewards_B, weights_B * rewards_B))
    undivided = AdvantageConfig(scale="none")
    on_reward_BT = group_advantages(weighed, undivided, 4)
    on_advantage_BT = group_advantages({**batch, "weights": weights_B}, undivided, 4)
    assert torch.allclose(on_reward_BT, on_advantage_BT, atol=1e-9)
    assume(all(max(group) - min(group) > 0.2 for group in rewards))
    divided = AdvantageConfig(scale="group")
    plain_BT = group_advantages(batch, divided, 4)
    assert torch.allclose(group_advantages(weighed, divided, 4), plain_BT, atol=0.02)


# What is shown, and what is read.


@given(texts, st.sampled_from(["\n\n", "\n", ".", "ab"]))
def test_steps_cover_a_solution(solution: str, separator: str) -> None:
    steps = steps_of(solution, separator)
    assert "".join(solution[start:end] for start, end in steps) == solution
    if solution.strip():
        assert all(solution[start:end].strip() for start, end in steps)
    else:
        assert steps == ((0, len(solution)),)
    for start, end in steps[:-1]:
        assert solution[start:end].rstrip(" \t\n").endswith(separator.rstrip(" \t\n"))


verdicts = st.lists(st.booleans(), min_size=1, max_size=6)


def said(steps: list[bool], final: bool) -> list[str]:
    lines = [f"Step {k}: {'correct' if one else 'wrong'}" for k, one in enumerate(steps, start=1)]
    return [*lines, f"The answer is {'correct' if final else 'wrong'}."]


@given(verdicts, st.booleans(), st.lists(st.sampled_from(["Seven is right.", "Hm: 3"]), max_size=3))
def test_verdicts_are_read_as_they_were_said(
    steps: list[bool], final: bool, reasons: list[str]
) -> None:
    text = "\n".join([*reasons, *said(steps, final)])
    expected = Verification(tuple(steps), "correct" if final else "wrong", 1.0)
    assert read(text, len(steps), "strict") == expected
    assert read(text, len(steps), "tolerant") == expected


@given(verdicts, st.booleans(), st.data())
def test_what_is_missing_twice_or_out_of_order_costs_form_and_is_not_made_up(
    steps: list[bool], final: bool, data: st.DataObject
) -> None:
    lines = said(steps, final)
    place = data.draw(st.integers(0, len(steps) - 1))
    without = read("\n".join(lines[:place] + lines[place + 1 :]), len(steps), "strict")
    assert without.steps is None
    assert without.form < 1
    twice = read("\n".join(lines[: place + 1] + lines[place:]), len(steps), "strict")
    assert twice.steps is None
    assert twice.form < 1
    open_end = read("\n".join(lines[:-1]), len(steps), "strict")
    assert (open_end.steps, open_end.final) == (tuple(steps), "unparsed")
    assert open_end.form == pytest.approx(len(steps) / (len(steps) + 1))
    more = read("\n".join(lines), len(steps) + 1, "strict")
    assert more.steps is None
    assert 0 <= more.form < 1


def test_tolerant_reading_takes_marks_and_the_last_word() -> None:
    text = "Step 1: wrong\n- **Step 1:** Incorrect\n> step 2: correct\nThe solution is correct"
    assert read(text, 2, "tolerant") == Verification((False, True), "correct", 1.0)
    assert read(text, 2, "strict") == Verification(None, "unparsed", pytest.approx(1 / 3))


@given(texts, st.lists(texts, min_size=1, max_size=3))
def test_nothing_that_others_wrote_speaks_for_us(question: str, steps: list[str]) -> None:
    pieces = asked(CotrainingConfig(), question, steps)
    code = code_of("\n".join([question, *steps]))
    theirs = [text for text, ours in pieces if not ours]
    assert theirs == [question, *(step.strip("\r\n") for step in steps)]
    assert not any(code in text for text in theirs)
    ours = "".join(text for text, is_ours in pieces if is_ours)
    for label in ("PROBLEM", "SOLUTION"):
        assert f"[{label} {code} begins]" in ours
        assert f"[{label} {code} ends]" in ours
    assert f"has {len(steps)} steps" in ours


def test_places_within_what_others_wrote_are_not_filled() -> None:
    config = CotrainingConfig(prompt="{question}|{steps}?", step_heading="")
    pieces = asked(config, "{steps}{code}", ["{question}"])
    assert "".join(text for text, _ in pieces) == "{steps}{code}|{question}?"


# What it earns.


@given(st.booleans(), st.sampled_from(["correct", "wrong", "unparsed"]), st.floats(0, 1))
def test_a_verification_earns_the_truth_of_its_verdict_and_its_form(
    right: bool, final: str, form: float
) -> None:
    verified = Verified(right, Verification(None, final, form))  # type: ignore[arg-type]
    true = final == ("correct" if right else "wrong")
    assert reward_of(verified, 0.8) == pytest.approx(true + 0.8 * form)


def test_always_yes_has_no_f1() -> None:
    rows = [Verified(right, Verification(None, "correct", 1.0)) for right in (True, True, False)]
    found = verifier_metrics(rows)
    assert found["verifier_accuracy"] == pytest.approx(2 / 3)
    assert found["verifier_correct_recall"] == 1
    assert found["verifier_wrong_recall"] == found["verifier_f1"] == 0
    assert "verifier_f1" not in verifier_metrics(rows[:2]), "of one class there is none"
    assert verifier_metrics([]) == {}


@given(st.floats(1e-3, 1.0), st.floats(1e-4, 1.0), st.integers(2, 50))
def test_the_weight_of_steps_decays_exponentially(first: float, last: float, steps: int) -> None:
    dense = DenseConfig(weight=first, decay_to=last)
    weights = [dense.weight_at(step, steps) for step in range(steps)]
    assert weights[0] == pytest.approx(first)
    assert weights[-1] == pytest.approx(last)
    assert dense.weight_at(steps + 5, steps) == weights[-1]
    ratios = [after / before for before, after in itertools.pairwise(weights)]
    assert ratios == pytest.approx([ratios[0]] * len(ratios))
    assert DenseConfig(weight=first).weight_at(3, steps) == first


@given(st.lists(st.floats(0.1, 4.0), min_size=4, max_size=4))
def test_the_weight_of_a_class_is_of_the_whole_advantage(weights: list[float]) -> None:
    """Of the outcome's part and of the steps'."""
    rows, weights_B = plain_rows(4, 3), tensor(weights)
    outcomes_B, rewards_BT = tensor([1, 0, 0, 1]), tensor([[0, 1, -1]] * 3 + [[1, 0, 0]])
    batch = batch_of(rows, rewards=outcomes_B, token_rewards=rewards_BT, spans=rewards_BT != 0)
    config, dense = AdvantageConfig(), hooks(4, dense=DenseConfig(weight=0.1, mix="interpolate"))
    plain_BT = group_advantages(batch, config, 4, hooks=dense)
    assert plain_BT.abs().min() > 0
    weighed_BT = group_advantages({**batch, "weights": weights_B}, config, 4, hooks=dense)
    assert torch.allclose(weighed_BT, plain_BT * weights_B.unsqueeze(1))
