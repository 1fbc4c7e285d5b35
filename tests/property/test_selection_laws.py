"""Laws of every way to choose problems: pure orders, exact resumption, faults that teach nothing,
and one run whatever the processes and interruptions."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.core.evaluation import FIRST_DRAW
from assay.trainer.core.survey import Survey
from assay.trainer.methods.hints.hints import failed
from assay.trainer.methods.replay.replay import make_replay
from assay.trainer.methods.replay.settings import ReplayConfig
from assay.trainer.rollouts.dynamic import kind_of
from assay.trainer.rollouts.prompts import FORMS, PromptStream
from assay.trainer.rollouts.types import Collected, OneRank
from assay.trainer.selection.declared import VasConfig
from assay.trainer.selection.types import Seen
from assay.trainer.selection.variance import VarianceAware
from rollouts_collecting_support import (
    FakeGenerator,
    FakeRound,
    bernoulli,
    collector,
    encode,
    numbers,
    on_ranks,
    one_run,
)
from selection_support import HINTED, LEARNING, first, forms, problems, selector, told

_NAMES = st.sampled_from(LEARNING)
_ALL = st.sampled_from((*LEARNING, HINTED))
_SEEDS = st.integers(0, 1000)


def saved(state: Any) -> Any:
    """What a checkpoint gives back."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@given(_NAMES, _SEEDS, st.integers(0, 4), st.integers(1, 40))
def test_an_order_changes_nothing_and_its_beginning_does_not_depend_on_its_length(
    name: str, seed: int, steps: int, count: int
) -> None:
    of = selector(name, seed=seed)
    for step in range(steps):
        of.learn(told(first(of, 5, 5 * step), seed + step, faults=0.3))
    state = saved(of.state_dict())
    whole = first(of, count + 20, 5 * steps)
    assert first(of, count, 5 * steps) == whole[:count]
    assert set(whole) <= set(range(12))
    assert of.state_dict() == state


@given(_NAMES, _SEEDS, st.integers(0, 6), st.integers(1, 4))
def test_a_selector_goes_on_from_its_state_as_if_it_had_not_stopped(
    name: str, seed: int, before: int, after: int
) -> None:
    whole, second = selector(name, seed=seed), selector(name, seed=seed)
    for step in range(before):
        whole.learn(told(first(whole, 5, 5 * step), seed + step, faults=0.2))
    second.load_state_dict(saved(whole.state_dict()))
    for step in range(before, before + after):
        places = first(whole, 5, 5 * step)
        assert first(second, 5, 5 * step) == places
        for of in (whole, second):
            of.learn(told(places, seed + step, faults=0.2))
    assert second.state_dict() == whole.state_dict()
    assert [second.estimate(n) for n in range(12)] == [whole.estimate(n) for n in range(12)]


@given(_NAMES, _SEEDS, st.integers(0, 4))
def test_a_step_of_faults_teaches_what_a_step_of_nothing_teaches(
    name: str, seed: int, steps: int
) -> None:
    faulted, idle = selector(name, seed=seed), selector(name, seed=seed)
    for step in range(steps):
        for of in (faulted, idle):
            of.learn(told(first(of, 6, 6 * step), seed + step))
    faulted.learn([Seen(place) for place in first(faulted, 6, 6 * steps)])
    idle.learn([])
    for place in range(12):
        assert faulted.estimate(place) == idle.estimate(place)
    drawn = {"drawn", "even"}  # how many draws there were, which is no lesson
    left, right = faulted.state_dict(), idle.state_dict()
    assert {k: v for k, v in left.items() if k not in drawn} == {
        k: v for k, v in right.items() if k not in drawn
    }


@given(_NAMES, _SEEDS, st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=3))
def test_a_group_with_a_fault_teaches_what_its_judged_responses_teach(
    name: str, seed: int, rewards: list[float]
) -> None:
    some, alike = selector(name, seed=seed), selector(name, seed=seed)
    group = Seen(4, tuple(rewards), int(sum(rewards)))
    some.learn([group])
    alike.learn([Seen(4, group.rewards, group.correct)])
    assert some.state_dict() == alike.state_dict()


# -- with the stream and the collector ---------------------------------------------------------

_STEPS = st.fixed_dictionaries(
    {
        "prompts": st.sampled_from([4, 8]),
        "group_size": st.integers(2, 4),
        "oversample": st.sampled_from([1.0, 1.5, 3.0]),
        "keep_surplus": st.booleans(),
        "enabled": st.booleans(),
        "max_rounds": st.just(500),
    }
)
_OUTCOMES = st.builds(
    bernoulli,
    st.floats(0.2, 0.8),
    fault_rate=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 1000),
)
_REPLAYS = st.sampled_from(
    [ReplayConfig(), ReplayConfig(groups=6), ReplayConfig(groups=12, mode="success")]
)


def chosen_stream(name: str, seed: int, shown: str = "") -> PromptStream:
    """Of 30 problems; HINTED is all in turn, with hints."""
    return PromptStream(
        problems(30),
        encode,
        seed=seed,
        selector=None if name == HINTED else selector(name, 30, seed=seed),
        forms=forms(shown or name),
    )


def made(
    outcome: Any, settings_: dict[str, Any], name: str, replayed: ReplayConfig, **parts: Any
) -> Any:
    keepers = [make_replay(replayed, 3)] if replayed.groups else []
    return collector(
        outcome, stream=chosen_stream(name, 1), keepers=keepers, again=failed, **settings_, **parts
    )


def seen(collected: Collected) -> dict[str, Any]:
    """What does not depend on the process or the clock."""
    return {"judged": collected.judged, "metrics": collected.metrics}


@pytest.mark.slow
@settings(max_examples=40)
@given(_OUTCOMES, _STEPS, _ALL, _REPLAYS, st.sampled_from([2, 4]))
def test_on_several_processes_the_same_prompts_are_chosen(
    outcome: Any, settings_: dict[str, Any], name: str, replayed: ReplayConfig, count: int
) -> None:
    def run(ranks: Any) -> tuple[list[Collected], dict[str, Any]]:
        of = made(outcome, settings_, name, replayed, ranks=ranks)
        return [of.collect(step) for step in range(3)], of.state_dict()

    alone, state = run(None)
    together = on_ranks(count, run)
    for step, collected in enumerate(alone):
        shares = [steps[step].groups for steps, _ in together]
        assert [group for share in shares for group in share] == collected.groups
        one_run([steps[step] for steps, _ in together], collected)
    assert together[0][1] == state


@pytest.mark.slow
@settings(max_examples=40)
@given(_OUTCOMES, _STEPS, _ALL, _REPLAYS, st.tuples(st.integers(0, 3), st.integers(1, 3)))
def test_interrupted_and_resumed_the_same_prompts_are_chosen(
    outcome: Any,
    settings_: dict[str, Any],
    name: str,
    replayed: ReplayConfig,
    steps: tuple[int, int],
) -> None:
    before, after = steps
    whole = made(outcome, settings_, name, replayed)
    expected = [whole.collect(step) for step in range(before + after)]
    first_, second = (made(outcome, settings_, name, replayed) for _ in range(2))
    for step in range(before):
        first_.collect(step)
    second.load_state_dict(saved(first_.state_dict()))
    for step in range(before, before + after):
        collected = second.collect(step)
        assert collected.groups == expected[step].groups
        assert seen(collected) == seen(expected[step])
    assert second.state_dict() == whole.state_dict()


# -- surveys -----------------------------------------------------------------------------------


def surveying(outcome: Any, samples: int, ranks: Any = None, count: int = 13) -> Any:
    """A collector whose selector has all problems answered anew every two steps."""
    asked = PromptStream(
        problems(count),
        encode,
        seed=1,
        selector=VarianceAware(VasConfig(refresh_every=2, samples=samples), count, 1),
    )
    survey = Survey(
        asked,
        FakeGenerator,
        lambda _samples: FakeRound(outcome),
        encode,
        ranks=ranks or OneRank(),
    )
    return collector(outcome, stream=asked, survey=survey, ranks=ranks, enabled=False)


@settings(max_examples=20)
@given(_OUTCOMES, st.integers(1, 5), st.sampled_from([2, 4]), st.integers(0, 4))
def test_a_survey_comes_to_the_same_on_several_processes_and_after_an_interruption(
    outcome: Any, samples: int, count: int, before: int
) -> None:
    def run(ranks: Any) -> tuple[list[Collected], dict[str, Any]]:
        of = surveying(outcome, samples, ranks)
        return [of.collect(step) for step in range(5)], of.state_dict()

    alone, state = run(None)
    surveyed = [collected.metrics.get("surveyed", 0) for collected in alone]
    assert surveyed == [13 * samples, 0, 13 * samples, 0, 13 * samples]
    together = on_ranks(count, run)
    assert together[0][1] == state
    for step, collected in enumerate(alone):
        one_run([steps[step] for steps, _ in together], collected)
    first_, second = surveying(outcome, samples), surveying(outcome, samples)
    for step in range(before):
        first_.collect(step)
    second.load_state_dict(saved(first_.state_dict()))
    for step in range(before, 5):
        assert seen(second.collect(step)) == seen(alone[step])
    assert second.state_dict() == state


@settings(max_examples=20)
@given(_OUTCOMES, st.integers(1, 5))
def test_a_survey_says_of_each_problem_what_came_of_its_responses(
    outcome: Any, samples: int
) -> None:
    of = surveying(outcome, samples)
    of.collect(0)
    selector_ = of._stream.selector  # the one under test
    for place in range(13):
        told_ = [outcome(FIRST_DRAW + place, index) for index in range(samples)]
        judged = [one for one in told_ if one != "fault"]
        expected = judged.count("correct") / len(judged) if judged else None
        assert selector_.estimate(place) == expected


@settings(max_examples=40)
@given(_OUTCOMES, _STEPS, _NAMES)
def test_what_nobody_answered_rightly_is_answered_again_in_the_step_with_more_of_its_solution(
    outcome: Any, settings_: dict[str, Any], name: str
) -> None:
    settings_ = {**settings_, "enabled": False}
    of = collector(outcome, stream=chosen_stream(name, 1, HINTED), again=failed, **settings_)
    plain = collector(outcome, stream=chosen_stream(name, 1), again=failed, **settings_)
    for step in range(3):
        own, hinted = plain.collect(step), of.collect(step)
        answered = {(r.request.draw.number, r.request.index): r.request.draw for r in hinted.judged}
        assert len(answered) == len(hinted.judged)
        again = 0
        for first_, last in zip(own.groups, hinted.groups, strict=True):
            draw = first_[0].request.draw
            level = last[0].request.draw.hint
            again += level
            tries = [bernoulli_group(outcome, draw.number + n * FORMS, first_) for n in range(4)]
            expected = 0
            while tries[expected] == "all_wrong" and draw.problem.solution and expected < 3:
                expected += 1
            assert level == expected
            for n in range(level + 1):
                asked = answered[draw.number + n * FORMS, 0]
                assert (asked.hint, asked.problem.id) == (n, draw.problem.id)
                assert (asked.problem.messages == draw.problem.messages) == (n == 0)
        assert len(hinted.judged) == len(own.judged) + again * settings_["group_size"]
        assert hinted.metrics["hinted_groups"] == again
        assert hinted.metrics["draws"] == own.metrics["draws"] + again
    assert of._stream.state_dict() == plain._stream.state_dict(), "the chooser learns no hints"


def bernoulli_group(outcome: Any, number: int, like: Any) -> str:
    """What kind of group a draw has."""
    said = [outcome(number, index) for index in range(len(like))]
    judged = [one for one in said if one != "fault"]
    if len(judged) < 2:
        return "faulted"
    return "mixed" if "correct" in judged else "all_wrong"


class Failing(FakeGenerator):
    """Fails at the call after so many."""

    good_calls = 10**9

    def generate(self, requests: Any, on_finished: Any) -> Any:
        if len(self.calls) >= self.good_calls:
            raise RuntimeError("gone")
        return super().generate(requests, on_finished)


@settings(max_examples=30)
@given(_OUTCOMES, _STEPS, _ALL, st.integers(0, 1))
def test_a_step_that_fails_leaves_everything_as_it_was(
    outcome: Any, settings_: dict[str, Any], name: str, good: int
) -> None:
    generator = Failing()
    replayed = ReplayConfig(groups=4)
    of = made(outcome, settings_, name, replayed, generator=generator)
    undisturbed = made(outcome, settings_, name, replayed)
    of.collect(0)
    undisturbed.collect(0)
    before = of.state_dict()
    generator.good_calls = len(generator.calls) + good
    try:
        of.collect(1)
    except RuntimeError:
        assert of.state_dict() == before
        generator.good_calls = 10**9
        assert seen(of.collect(1)) == seen(undisturbed.collect(1))
    else:
        assert good, "the first round of a step always fails here"


@given(_ALL, st.integers(0, 20), st.integers(0, 20))
def test_what_is_given_back_comes_again_until_something_is_learned(
    name: str, taken: int, returned: int
) -> None:
    of = chosen_stream(name, 0)
    drawn = of.take(taken)
    returned = min(returned, taken)
    of.give_back(returned)
    assert of.take(returned) == drawn[taken - returned :]
    assert [draw.number for draw in drawn] == list(range(taken))
    assert [of.draw(n) for n in range(taken)] == drawn


@settings(max_examples=30)
@given(_OUTCOMES, _STEPS, _ALL)
def test_a_replayed_group_is_an_earlier_one_with_an_advantage_in_the_place_of_one_without(
    outcome: Any, settings_: dict[str, Any], name: str
) -> None:
    plain, mixing = (
        made(outcome, {**settings_, "enabled": False}, name, ReplayConfig(groups=size))
        for size in (0, 6)
    )
    earlier: list[Any] = []
    for step in range(4):
        own, mixed = plain.collect(step), mixing.collect(step)
        assert own.judged == mixed.judged
        changed = 0
        for one, other in zip(own.groups, mixed.groups, strict=True):
            if one != other:
                changed += 1
                assert spread(one) == 0
                assert spread(other) > 0
                assert other in earlier
                assert other[0].policy_step < step
        assert mixed.metrics["replayed_groups"] == changed
        assert len(set(numbers(mixed.groups))) == len(mixed.groups)
        earlier += [group for group in own.groups if spread(group) > 0]


@settings(max_examples=30)
@given(_OUTCOMES, _STEPS, _ALL)
def test_a_group_in_which_nobody_was_right_takes_one_earlier_success_of_its_own_problem(
    outcome: Any, settings_: dict[str, Any], name: str
) -> None:
    plain, mixing = (
        made(outcome, {**settings_, "enabled": False}, name, replayed)
        for replayed in (ReplayConfig(), ReplayConfig(groups=100, mode="success"))
    )
    latest: dict[Any, Any] = {}
    for step in range(12):
        own, mixed = plain.collect(step), mixing.collect(step)
        assert own.judged == mixed.judged
        changed = 0
        for one, other in zip(own.groups, mixed.groups, strict=True):
            known = latest.get((one[0].request.draw.problem, one[0].request.draw.prompt_ids))
            fails = kind_of(one) == "all_wrong"
            differs = [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
            assert len(differs) == (fails and known is not None)
            if differs:
                changed += 1
                assert other[differs[0]] == known
                assert known.policy_step < step
                faults = [a.result.judgement is None for a in one]
                assert faults[differs[0]] == any(faults), "a judged response stays if it can"
        assert mixed.metrics["replayed_groups"] == mixed.metrics["stale_groups"] == changed
        for group in own.groups:
            for rollout in group:
                judgement = rollout.result.judgement
                if judgement is not None and judgement.verdict == "correct":
                    draw = rollout.request.draw
                    latest[draw.problem, draw.prompt_ids] = rollout


def spread(group: Any) -> float:
    rewards = [r.result.judgement.reward for r in group if r.result.judgement is not None]
    return max(rewards, default=0.0) - min(rewards, default=0.0)
