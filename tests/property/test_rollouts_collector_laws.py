"""Laws of collecting: order, conservation, and independence of processes and interruptions."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.engines.types import Request
from assay.trainer.errors import OutageError
from assay.trainer.rollouts.dynamic import keeps
from assay.trainer.rollouts.plain import (
    group_from_plain,
    group_to_plain,
    result_from_plain,
    result_to_plain,
)
from assay.trainer.rollouts.types import Collected
from rollouts_collecting_support import (
    FakeGenerator,
    bernoulli,
    collector,
    numbers,
    on_ranks,
    one_run,
    result,
    stream,
)

_SETTINGS = st.fixed_dictionaries(
    {
        "prompts": st.sampled_from([4, 8]),
        "group_size": st.integers(2, 5),
        "oversample": st.sampled_from([1.0, 1.5, 3.0]),
        "keep_surplus": st.booleans(),
        "max_rounds": st.just(500),
        "max_accuracy": st.sampled_from([0.75, 1.0]),
    }
)
_OUTCOMES = st.builds(
    bernoulli,
    st.floats(0.15, 0.85),
    fault_rate=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 1000),
)


def _seen(collected: Collected) -> dict[str, Any]:
    """What does not depend on the process or the clock."""
    return {"judged": collected.judged, "metrics": collected.metrics}


@settings(max_examples=60)
@given(_OUTCOMES, _SETTINGS, st.integers(1, 4))
def test_the_groups_of_a_step_are_the_first_kept_draws_in_order(
    outcome: Any, settings_: dict[str, Any], steps: int
) -> None:
    generator = FakeGenerator()
    of = collector(outcome, generator=generator, **settings_)
    drawn: list[int] = []
    for step in range(steps):
        surplus = list(of._surplus)
        collected = of.collect(step)
        size = settings_["group_size"]
        judged = [
            tuple(collected.judged[n : n + size]) for n in range(0, len(collected.judged), size)
        ]
        kept = surplus + [group for group in judged if keeps(group, of._dynamic)]
        assert collected.groups == kept[: settings_["prompts"]]
        assert len(collected.groups) == settings_["prompts"]
        assert collected.metrics["surplus"] == len(kept) - settings_["prompts"]
        drawn += numbers(judged)
    assert drawn == list(range(of.state_dict()["stream"]["cursor"]))
    generated = [pair for call in generator.calls for pair in call]
    assert generated == [(n, index) for n in drawn for index in range(settings_["group_size"])]


@settings(max_examples=40)
@given(_OUTCOMES, _SETTINGS, st.sampled_from([2, 4]), st.booleans())
def test_on_several_processes_it_is_the_same_run(
    outcome: Any, settings_: dict[str, Any], count: int, enabled: bool
) -> None:
    settings_ = {**settings_, "enabled": enabled}

    def run(ranks: Any) -> tuple[list[Collected], dict[str, Any], list[int]]:
        generator = FakeGenerator()
        of = collector(outcome, ranks=ranks, generator=generator, **settings_)
        return (
            [of.collect(step) for step in range(3)],
            of.state_dict(),
            [*map(len, generator.calls)],
        )

    alone, state, _ = run(None)
    together = on_ranks(count, run)
    for step, collected in enumerate(alone):
        shares = [steps[step].groups for steps, _, _ in together]
        assert [group for share in shares for group in share] == collected.groups
        assert {len(share) for share in shares} == {settings_["prompts"] // count}
        one_run([steps[step] for steps, _, _ in together], collected)
    assert together[0][1] == state, "the first process saves for all"
    # In lockstep: each generates as often, and as much, as the others.
    assert all(calls == together[0][2] for _, _, calls in together)


@settings(max_examples=40)
@given(_OUTCOMES, _SETTINGS, st.integers(0, 3), st.integers(1, 3))
def test_interrupted_and_resumed_it_is_the_same_run(
    outcome: Any, settings_: dict[str, Any], before: int, after: int
) -> None:
    whole = collector(outcome, **settings_)
    expected = [whole.collect(step) for step in range(before + after)]
    first, second = collector(outcome, **settings_), collector(outcome, **settings_)
    for step in range(before):
        first.collect(step)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    for step in range(before, before + after):
        collected = second.collect(step)
        assert collected.groups == expected[step].groups
        assert _seen(collected) == _seen(expected[step])
    assert second.state_dict() == whole.state_dict()


@given(_OUTCOMES, st.integers(1, 6))
def test_a_group_is_the_same_after_it_was_saved(outcome: Any, step: int) -> None:
    source = stream()
    for group in collector(outcome, enabled=False, stream=source).collect(step).groups:
        assert group_from_plain(group_to_plain(group), source.draw) == group


@given(st.sampled_from(["correct", "incorrect", "unparsed", "fault"]), st.integers(0, 9))
def test_a_result_is_the_same_after_it_was_saved(outcome: str, index: int) -> None:
    of = result(Request(stream().draw(0), index), outcome)
    assert result_from_plain(result_to_plain(of)) == of


@pytest.mark.parametrize("enabled", [False, True])
def test_services_that_stay_away_leave_the_step_undone(enabled: bool) -> None:
    """The collector is as it was, and the next call draws what that one drew."""
    calm = bernoulli(0.5)
    away = [True]

    def outcome(number: int, index: int) -> str:
        return "outage" if away[0] and number == 3 else calm(number, index)

    held, whole = collector(outcome, enabled=enabled), collector(calm, enabled=enabled)
    before = held.state_dict()
    with pytest.raises(OutageError, match="gone for too long; 4 responses have no judgement"):
        held.collect(0)
    assert held.state_dict() == before
    away[0] = False
    assert held.collect(0).groups == whole.collect(0).groups


def test_one_process_that_was_held_in_vain_ends_all_of_them() -> None:
    """They agree by what they gather; else the others would wait for it."""

    def outcome(number: int, index: int) -> str:
        return "outage" if number == 3 and index == 0 else "correct"

    def run(ranks: Any) -> str:
        with pytest.raises(OutageError) as told:
            collector(outcome, ranks=ranks, enabled=False).collect(0)
        return str(told.value)

    said = on_ranks(4, run)
    assert said == ["gone for too long; 1 responses have no judgement"] * 4
