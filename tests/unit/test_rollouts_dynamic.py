"""Dynamic sampling's decisions, case by case."""

from __future__ import annotations

import pytest

from assay.trainer.engines.types import Request
from assay.trainer.methods.dynamic_sampling.settings import DynamicSamplingConfig
from assay.trainer.rollouts.dynamic import (
    KeepRate,
    Tally,
    draws_needed,
    give_up_message,
    keeps,
    kind_of,
    round_limit,
)
from assay.trainer.rollouts.types import Group, Rollout
from rollouts_collecting_support import response, result, stream


def group(*outcomes: str) -> Group:
    draw = stream().draw(0)
    requests = [Request(draw, index) for index in range(len(outcomes))]
    return tuple(
        Rollout(request, response(request), result(request, outcome), 0)
        for request, outcome in zip(requests, outcomes, strict=True)
    )


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ("correct incorrect", "mixed"),
        ("correct unparsed partial", "mixed"),
        ("correct correct correct", "all_correct"),
        ("incorrect unparsed", "all_wrong"),
        ("graded graded partial", "all_wrong"),
        ("fault fault", "faulted"),
        ("fault correct", "faulted"),
        ("fault incorrect", "faulted"),
        ("fault correct correct", "all_correct"),
        ("fault incorrect incorrect", "all_wrong"),
        ("fault correct incorrect fault", "mixed"),
    ],
)
def test_a_group_is_known_by_the_verdicts_of_its_judged_rollouts(outcomes: str, kind: str) -> None:
    of = group(*outcomes.split())
    assert kind_of(of) == kind
    assert keeps(of) == (kind == "mixed")


@pytest.mark.parametrize(
    ("right", "wrong", "kept"),
    [(1, 9, True), (9, 1, True), (1, 10, False), (10, 1, False), (10, 0, False), (0, 10, False)],
)
def test_an_accuracy_beyond_the_bounds_goes(right: int, wrong: int, kept: bool) -> None:
    """SimpleTIR's 0.1 and 0.9, bounds included; a fault is no response."""
    limits = DynamicSamplingConfig(enabled=True, min_accuracy=0.1, max_accuracy=0.9)
    of = group(*["correct"] * right, *["incorrect"] * wrong, "fault")
    assert keeps(of, limits) == kept
    counted = Tally(limits)
    counted.add([of])
    assert (counted.kept, counted.judged) == (kept, 1)


def test_giving_up_names_bounds_that_are_too_narrow() -> None:
    of = Tally(DynamicSamplingConfig(enabled=True, min_accuracy=0.6))
    of.add([group("correct", "incorrect")] * 9 + [group("correct", "incorrect", "correct")])
    message = give_up_message(of, wanted=8, rounds=10)
    assert message.startswith("dynamic sampling found 1 of 8 groups")
    assert "10 held both right and wrong responses and 1 of these an accuracy within" in message
    assert "widen these" in message


def test_the_first_round_draws_what_is_missing() -> None:
    assert draws_needed(8, KeepRate(8).value, most=100) == 8


@pytest.mark.parametrize(
    ("missing", "rate", "most", "drawn"),
    [(8, 0.5, 100, 16), (8, 0.5, 12, 12), (1, 0.3, 100, 4), (0.2, 1.0, 9, 1), (3, 0.1, 100, 30)],
)
def test_what_is_drawn_is_what_the_rate_calls_for_within_the_limit(
    missing: float, rate: float, most: int, drawn: int
) -> None:
    assert draws_needed(missing, rate, most=most) == drawn


def test_a_round_is_limited_to_so_many_batches() -> None:
    assert round_limit(8, 1.5) == 12
    assert round_limit(3, 1.5) == 5
    assert round_limit(8, 1.0) == 8


def tally(**groups: int) -> Tally:
    of = Tally()
    kinds = {
        "mixed": ("correct", "incorrect"),
        "right": ("correct", "correct"),
        "wrong": ("incorrect", "unparsed"),
        "faulted": ("fault", "fault"),
    }
    for kind, count in groups.items():
        of.add([group(*kinds[kind])] * count)
    return of


def test_the_counts_by_kind() -> None:
    of = tally(mixed=3, right=2, wrong=1, faulted=4)
    assert of.metrics(2) == {
        "keep_rate": 0.5,
        "draws": 10,
        "groups_all_correct": 2,
        "groups_all_wrong": 1,
        "groups_faulted": 4,
    }
    assert (of.drawn, of.judged, of.kept) == (10, 6, 3)
    assert of.verdicts == {"correct": 7, "incorrect": 4, "unparsed": 1}
    assert of.reasons == {"SANDBOX_LOST": 8}


def test_without_judged_groups_the_rate_is_a_number() -> None:
    assert tally(faulted=2).keep_rate == 0


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"mixed": 1, "right": 8, "wrong": 1}, "too easy for the policy: take harder ones"),
        ({"mixed": 1, "right": 1, "wrong": 8}, "too hard for the policy: take easier ones"),
        (
            {"wrong": 9, "faulted": 1},
            'no response was judged "correct" (incorrect x9, unparsed x9)',
        ),
        (
            {"mixed": 1, "faulted": 9},
            "reward services fail, not the prompts (SANDBOX_LOST x18)",
        ),
    ],
)
def test_giving_up_says_how_far_it_came_why_and_what_to_do(
    groups: dict[str, int], said: str
) -> None:
    message = give_up_message(tally(**groups), wanted=8, rounds=10)
    assert message.startswith(
        f"dynamic sampling found {groups.get('mixed', 0)} of 8 groups in 10 rounds"
    )
    assert "of 10 groups drawn" in message
    assert said in message
    assert "\n" not in message
    assert ("enabled=false" in message) == ("services" not in message)
