"""RoRecomp (arXiv 2509.25958): what trains now, what trains later, and what never does."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.methods.recomposition.recomposition import Recomposition, priority_of, share_at
from assay.trainer.methods.recomposition.settings import RecompositionConfig
from assay.trainer.methods.replay.replay import Replay
from assay.trainer.methods.replay.settings import ReplayConfig
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.types import Collected, Group, place
from rollouts_collecting_support import (
    Outcome,
    bernoulli,
    collector,
    numbers,
    on_ranks,
    response,
    result,
)

VERDICTS = st.sampled_from(["correct", "incorrect", "fault"])


def group(number: int, outcomes: list[Outcome]) -> Group:
    of = collector(lambda _draw, index: outcomes[index], prompts=number + 1,
                   group_size=len(outcomes), enabled=False)  # fmt: skip
    return of.collect(0).groups[number]


@given(outcomes=st.lists(VERDICTS, min_size=1, max_size=8), share=st.floats(0.05, 1.0))
def test_priority_is_the_short_of_the_right_and_the_long_of_the_others(
    outcomes: list[Outcome], share: float
) -> None:
    one = group(0, outcomes)
    chosen = priority_of(one, share)
    for verdict, longer_first in (("correct", False), ("incorrect", True)):
        kind = [r for r in one if r.result.judgement and r.result.judgement.verdict == verdict]
        now = [r.length for r in kind if place(r) in chosen]
        later = [r.length for r in kind if place(r) not in chosen]
        assert len(now) == math.ceil(share * len(kind) - 1e-9)
        if now and later:
            assert min(now) >= max(later) if longer_first else max(now) <= min(later)
    assert all(r.result.judgement for r in one if place(r) in chosen), "no fault"
    if share == 1.0:
        assert len(chosen) == sum(outcome != "fault" for outcome in outcomes)


@given(
    step=st.integers(0, 300), first=st.floats(0, 0.49), last=st.floats(0, 0.49),
    steps=st.integers(1, 200),
)  # fmt: skip
def test_the_share_goes_from_one_value_to_the_other(
    step: int, first: float, last: float, steps: int
) -> None:
    config = RecompositionConfig(groups=1, first=first, last=last, steps=steps)
    found = share_at(step, config)
    assert min(first, last) - 1e-9 <= found <= max(first, last) + 1e-9
    assert abs(share_at(0, config) - first) < 1e-9
    assert abs(share_at(steps, config) - last) < 1e-9
    further = share_at(step + 1, config)
    assert (further - found) * (last - first) >= -1e-9


def trained(collected: Collected) -> list[tuple[int, int]]:
    return [
        place(rollout)
        for one in collected.groups
        for rollout in one
        if rollout.result.judgement is not None and place(rollout) not in collected.left_out
    ]


@settings(max_examples=25, deadline=None)
@given(
    rate=st.floats(0.2, 0.8), faults=st.sampled_from([0.0, 0.3]), seed=st.integers(0, 99),
    part=st.sampled_from([0.0, 0.25, 0.4]), size=st.sampled_from([1, 3, 50]),
)  # fmt: skip
def test_every_response_trains_once_at_most_and_its_group_is_whole(
    rate: float, faults: float, seed: int, part: float, size: int
) -> None:
    config = RecompositionConfig(groups=size, first=part, last=part)
    of = collector(
        bernoulli(rate, fault_rate=faults, seed=seed), enabled=False, group_size=4,
        keepers=[Recomposition(config, 4)],
    )  # fmt: skip
    came: Counter[tuple[int, int]] = Counter()
    for step in range(8):
        collected = of.collect(step)
        assert len(collected.groups) == 4
        assert all(len(one) == 4 for one in collected.groups)
        stale = [one for one in collected.groups if one[0].policy_step < step]
        assert collected.metrics["compensation_groups"] == len(stale)
        assert len(stale) <= math.floor(4 * part + 0.5)
        assert len(collected.judged) == 4 * (4 - len(stale)), "what waits saves a prompt"
        now = trained(collected)
        came.update(now)
        for one in collected.groups:
            priority = priority_of(one, config.share)
            mine = {place(r) for r in one} & set(now)
            assert mine <= priority if one not in stale else not mine & priority
    assert set(came.values()) <= {1}


@settings(max_examples=25, deadline=None)
@given(
    rate=st.floats(0.1, 0.9), faults=st.sampled_from([0.0, 0.3]), seed=st.integers(0, 99),
    size=st.sampled_from([1, 3, 50]), before=st.integers(0, 6),
)  # fmt: skip
def test_beside_a_replay_no_group_comes_twice_and_those_due_train_their_remainder(
    rate: float, faults: float, seed: int, size: int, before: int
) -> None:
    config = RecompositionConfig(groups=size, first=0.4, last=0.4)

    def fresh() -> Collector:
        return collector(
            bernoulli(rate, fault_rate=faults, seed=seed), enabled=False, group_size=4,
            keepers=[Replay(ReplayConfig(groups=6), 3), Recomposition(config, 4)],
        )  # fmt: skip

    of, resumed = fresh(), fresh()
    remainders: set[tuple[int, int]] = set()
    for step in range(8):
        if step == before:
            resumed.load_state_dict(of.state_dict())
        due = numbers(of._keepers[1].due())
        collected = of.collect(step)
        if step >= before:
            again = resumed.collect(step)
            assert again.groups == collected.groups
            assert (again.left_out, again.metrics) == (collected.left_out, collected.metrics)
        came = numbers(collected.groups)
        assert len(set(came)) == len(came)
        stale = {one[0].request.draw.number for one in collected.groups
                 if one[0].policy_step < step}  # fmt: skip
        assert set(due) <= stale, "a remainder gives its place to nothing"
        assert collected.metrics["compensation_groups"] == len(due)
        assert collected.metrics["replayed_groups"] == len(stale) - len(due)
        now = set(trained(collected))
        for one in collected.groups:
            priority = priority_of(one, config.share)
            judged = {place(r) for r in one if r.result.judgement is not None}
            comes_due = one[0].request.draw.number in due
            expected = judged - priority if comes_due else priority
            assert {place(r) for r in one} & now == expected
            assert not (comes_due and expected & remainders), "a remainder trains once"
            remainders |= expected if comes_due else set()


def test_what_waits_longest_comes_first_and_what_says_nothing_does_not_wait() -> None:
    part = Recomposition(RecompositionConfig(groups=2, first=0.25, last=0.25), 4)
    mixed = ["correct", "correct", "incorrect", "incorrect"]
    telling = [group(n, list(mixed)) for n in range(3)]
    part.keep([*telling, group(3, ["correct"] * 4), group(4, ["fault"] * 4)])
    assert numbers(part.due()) == [1], "the oldest made room, and one in four is due"
    part.keep([telling[1]])
    assert numbers(part.due()) == [2]


def test_on_two_processes_and_after_a_resume_it_is_the_same_run() -> None:
    outcome = bernoulli(0.5, fault_rate=0.1)

    def fresh(ranks: object = None) -> object:
        return collector(
            outcome, enabled=False, ranks=ranks,
            keepers=[Recomposition(RecompositionConfig(groups=8, first=0.4, last=0.1), 4)],
        )  # fmt: skip

    whole = fresh()
    found = [whole.collect(step) for step in range(4)]  # type: ignore[attr-defined]
    shares = on_ranks(2, lambda rank: [fresh(rank).collect(0)][0])
    assert shares[0].groups + shares[1].groups == found[0].groups
    assert shares[0].left_out == shares[1].left_out == found[0].left_out
    first = fresh()
    for step in range(2):
        first.collect(step)  # type: ignore[attr-defined]
    resumed = fresh()
    resumed.load_state_dict(first.state_dict())  # type: ignore[attr-defined]
    for step in (2, 3):
        again = resumed.collect(step)  # type: ignore[attr-defined]
        assert numbers(again.groups) == numbers(found[step].groups)
        assert again.left_out == found[step].left_out


def test_a_response_without_a_judgement_is_in_neither_part() -> None:
    request = group(0, ["fault"])[0].request
    faulted = group(0, ["fault", "correct", "incorrect"])
    assert place(faulted[0]) not in priority_of(faulted, 1.0)
    twice = dataclasses.replace(
        faulted[0], result=result(request, "correct"), response=response(request)
    )
    assert place(twice) in priority_of((twice, *faulted[1:]), 1.0)
