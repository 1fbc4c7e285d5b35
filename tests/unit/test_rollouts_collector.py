"""The collector: one step at a time, with a policy and judges that are functions of the draw."""

from __future__ import annotations

import io
import json
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
import torch

from assay.clients import Result
from assay.kit.errors import ConfigError
from assay.trainer.engines.types import Request, Response
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.rollouts.prompts import PromptStream
from rollouts_collecting_support import (
    FakeGenerator,
    FakeRound,
    bernoulli,
    by_group,
    collector,
    encode,
    numbers,
    on_ranks,
    problems,
    stream,
)

MIXED, RIGHT, WRONG, LOST = (
    ("correct", "incorrect"), ("correct",) * 2, ("incorrect",) * 2, ("fault",) * 2,
)  # fmt: skip


def test_without_dynamic_sampling_a_step_is_one_round_and_every_group_stays() -> None:
    of = collector(by_group([LOST, MIXED, RIGHT, WRONG]), group_size=2, enabled=False)
    for step in range(3):
        collected = of.collect(step)
        assert numbers(collected.groups) == [4 * step + n for n in range(4)]
        assert len(collected.judged) == 8
        assert {rollout.policy_step for rollout in collected.judged} == {step}
        assert collected.metrics == {
            "keep_rate": pytest.approx(1 / 3),
            "draws": 4,
            "rounds": 1,
            "groups_all_correct": 1,
            "groups_all_wrong": 1,
            "groups_faulted": 1,
            "surplus": 0,
            "stale_groups": 0,
            "generated_per_used": 1,
        }


def test_of_groups_of_one_only_what_applies_to_them_is_counted() -> None:
    of = collector(by_group([("correct",), ("fault",)]), group_size=1, enabled=False)
    assert of.collect(0).metrics == {
        "draws": 4,
        "rounds": 1,
        "groups_faulted": 2,
        "surplus": 0,
        "stale_groups": 0,
        "generated_per_used": 1,
    }


def test_a_response_stays_with_its_request_and_its_judgement() -> None:
    collected = collector(bernoulli(0.5)).collect(0)
    for group in collected.groups:
        assert [rollout.request.index for rollout in group] == [0, 1, 2, 3]
        for rollout in group:
            name = f"{rollout.request.draw.number}/{rollout.request.index}"
            assert rollout.response.text == rollout.result.id == name


def test_it_draws_until_the_batch_is_whole_and_never_keeps_a_group_that_says_nothing() -> None:
    of = collector(by_group([RIGHT, MIXED, WRONG, LOST]), group_size=2)
    collected = of.collect(0)
    assert numbers(collected.groups) == [1, 5, 9, 13]
    metrics = collected.metrics
    assert metrics["draws"] * 2 == len(collected.judged)
    assert metrics["generated_per_used"] == metrics["draws"] / 4
    assert metrics["keep_rate"] == pytest.approx(1 / 3, abs=0.1)
    assert metrics["rounds"] > 1


def test_the_first_round_draws_what_is_missing_and_the_next_steps_what_the_rate_calls_for() -> None:
    generator = FakeGenerator()
    of = collector(
        by_group([MIXED, WRONG]), prompts=8, group_size=2, oversample=3.0, generator=generator
    )
    of.collect(0)
    assert len(generator.calls[0]) == 8 * 2
    before = len(generator.calls)
    of.collect(1)
    # Half of the groups are kept, and the rate has seen that: about 16 draws at once.
    assert 14 <= len(generator.calls[before]) / 2 <= 18


def test_no_round_is_larger_than_the_limit() -> None:
    generator = FakeGenerator()
    of = collector(bernoulli(0.02), prompts=8, oversample=1.5, generator=generator)
    for step in range(3):
        of.collect(step)
    assert max(map(len, generator.calls)) == 12 * 4


def _rarely_at_first(draw: int, index: int) -> str:
    """One group of four is kept, later all: so much is drawn for a step that some are left."""
    return "correct" if index == 0 and (draw >= 16 or draw % 4 == 0) else "incorrect"


def test_surplus_groups_are_dropped_and_counted() -> None:
    of = collector(_rarely_at_first, oversample=4.0)
    of.collect(0)
    collected = of.collect(1)
    assert collected.metrics["surplus"] > 0
    last = max(rollout.request.draw.number for rollout in collected.judged)
    assert min(numbers(of.collect(2).groups)) > last


def test_surplus_groups_open_the_next_step_oldest_first() -> None:
    of = collector(_rarely_at_first, oversample=4.0, keep_surplus=True)
    seen: list[int] = []
    carried = 0.0
    for step in range(5):
        collected = of.collect(step)
        assert collected.metrics["stale_groups"] == min(carried, 4)
        assert [group[0].policy_step for group in collected.groups] == sorted(
            group[0].policy_step for group in collected.groups
        )
        assert all(r.policy_step == step for r in collected.judged)
        carried = collected.metrics["surplus"]
        seen += numbers(collected.groups)
    assert seen == [0, 4, 8, 12, *range(16, 1000)][: len(seen)]


def test_a_step_whose_groups_are_all_carried_generates_nothing() -> None:
    of = collector(by_group([MIXED]), prompts=2, group_size=2, keep_surplus=True)
    generator = of._sampler
    collected = of.collect(0)
    of._surplus = [*collected.groups]
    calls = len(generator.calls)
    again = of.collect(1)
    assert again.groups == collected.groups
    assert again.judged == []
    assert len(generator.calls) == calls
    assert (again.metrics["rounds"], again.metrics["draws"]) == (0, 0)
    assert again.metrics["stale_groups"] == 2


def test_at_its_limit_it_stops_with_the_reason_and_is_as_before() -> None:
    of = collector(by_group([RIGHT, RIGHT, WRONG]), group_size=2, max_rounds=3)
    before = of.state_dict()
    with pytest.raises(
        TrainingStoppedError, match=r"found 0 of 4 groups in 3 rounds: .* too easy for the policy"
    ):
        of.collect(0)
    assert of.state_dict() == before


def test_the_last_round_may_still_fill_the_batch() -> None:
    of = collector(by_group([WRONG] * 4 + [MIXED] * 40), group_size=2, max_rounds=2)
    assert numbers(of.collect(0).groups) == [4, 5, 6, 7]


def test_dead_services_stop_it_by_name() -> None:
    of = collector(by_group([LOST]), group_size=2, max_rounds=2)
    with pytest.raises(TrainingStoppedError, match=r"reward services fail.*SANDBOX_LOST"):
        of.collect(0)


def test_a_prompt_that_does_not_fit_leaves_the_collector_as_it_was() -> None:
    of = collector(by_group([MIXED]), stream=stream(12, max_prompt_tokens=10), prompts=12)
    with pytest.raises(ConfigError, match="leaves 10 beside"):
        of.collect(0)
    assert of.state_dict()["stream"]["cursor"] == 0


def test_draws_generated_ahead_serve_the_next_rounds_and_the_rest_comes_again() -> None:
    outcome = by_group([MIXED] * 7 + [WRONG] * 3 + [MIXED] * 40)

    def run(ranks: object) -> tuple[int, list[int], int]:
        generator = FakeGenerator()
        of = collector(outcome, prompts=8, group_size=2, generator=generator, ranks=ranks)
        rounds = of.collect(0).metrics["rounds"]
        return int(rounds), [*map(len, generator.calls)], of.state_dict()["stream"]["cursor"]

    assert run(None) == (3, [16, 4, 4], 12)
    # Two draws were due and each of eight processes got one: the third round is there already.
    assert on_ranks(8, run) == [(3, [2, 2], 12)] * 8


@dataclass
class Careless(FakeGenerator):
    """Reports its first response `reports` times."""

    reports: int = 1

    def generate(
        self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        def first_only(place: int, answer: Response) -> None:
            for _ in range(self.reports if place == 0 else 1):
                on_finished(place, answer)

        return super().generate(requests, first_only)


@pytest.mark.parametrize(
    ("reports", "said"),
    [(0, "15 of 16 requests were answered"), (2, "turn \\(0, 0\\) .* answered twice")],
)
def test_a_generator_that_loses_or_repeats_a_response_is_found_out(reports: int, said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        collector(bernoulli(0.5), generator=Careless(reports=reports)).collect(0)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class TimedGenerator(FakeGenerator):
    clock: Clock = field(default_factory=Clock)
    takes: float = 10.0
    started: list[float] = field(default_factory=list)

    def generate(
        self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        self.started.append(self.clock.now)
        self.clock.now += self.takes
        return super().generate(requests, on_finished)


@dataclass
class TimedRound(FakeRound):
    clock: Clock = field(default_factory=Clock)
    takes: float = 10.0
    done: float = 0.0

    def submit(self, request: Request, answer: Response) -> None:
        super().submit(request, answer)
        self.done = self.clock.now + self.takes

    def results(self) -> list[Result]:
        self.clock.now = max(self.clock.now, self.done)
        return super().results()


def test_a_round_that_will_not_fill_the_batch_is_judged_while_the_next_is_generated() -> None:
    clock = Clock()
    generator = TimedGenerator(clock=clock)
    outcome = by_group([MIXED, WRONG, WRONG])
    of = collector(
        outcome, prompts=6, group_size=2, oversample=1.5, generator=generator, clock=clock,
        open_round=lambda: TimedRound(outcome, clock=clock),
    )  # fmt: skip
    of.collect(0)
    generator.started.clear()
    clock.now = 0.0
    collected = of.collect(1)
    rounds = int(collected.metrics["rounds"])
    # One third is kept and nine are drawn at once, so the second round is sure to be needed.
    assert rounds > 1
    assert generator.started[1] == 10.0
    assert clock.now < rounds * 20.0
    assert clock.now == pytest.approx(collected.generate_s + collected.wait_s)
    assert collected.generate_s == rounds * 10.0


def test_a_round_that_should_fill_the_batch_is_waited_for() -> None:
    generator = FakeGenerator()
    collected = collector(by_group([MIXED]), group_size=2, generator=generator).collect(0)
    assert len(generator.calls) == 1
    assert collected.metrics["draws"] == 4


def test_judges_that_answer_only_once_the_next_round_has_begun_do_not_block() -> None:
    begun = [threading.Event() for _ in range(20)]
    opened: list[int] = []

    @dataclass
    class Late(FakeRound):
        number: int = 0

        def results(self) -> list[Result]:
            if self.number == 2:
                assert begun[3].wait(timeout=0), "the next round was not generated meanwhile"
            return super().results()

    def open_round() -> Late:
        begun[len(opened)].set()
        opened.append(len(opened))
        return Late(by_group([WRONG] * 12 + [MIXED] * 50), number=opened[-1])

    of = collector(by_group([]), open_round=open_round, group_size=2, oversample=1.0)
    assert numbers(of.collect(0).groups) == [12, 13, 14, 15]
    assert len(opened) >= 4


@pytest.mark.slow
@pytest.mark.parametrize(("pass_rate", "group_size"), [(0.5, 4), (0.1, 8), (0.9, 4), (0.05, 16)])
def test_the_cost_of_a_batch_is_one_over_the_probability_to_keep_a_group(
    pass_rate: float, group_size: int
) -> None:
    kept_with = 1 - pass_rate**group_size - (1 - pass_rate) ** group_size
    of = collector(
        bernoulli(pass_rate, seed=3), prompts=16, group_size=group_size, keep_surplus=True,
        stream=stream(1000),
    )  # fmt: skip
    steps = [of.collect(step).metrics for step in range(40)]
    drawn = sum(metrics["draws"] for metrics in steps)
    kept = 40 * 16 + steps[-1]["surplus"]
    # The kept of the drawn are binomial: within four standard deviations.
    assert abs(kept - drawn * kept_with) < 4 * math.sqrt(drawn * kept_with * (1 - kept_with))
    multiplier = sum(metrics["generated_per_used"] for metrics in steps) / len(steps)
    assert multiplier == pytest.approx(1 / kept_with, rel=0.15)
    assert steps[-1]["keep_rate_ema"] == pytest.approx(kept_with, abs=0.3)


def test_a_checkpoint_holds_plain_containers_only() -> None:
    of = collector(bernoulli(0.2, fault_rate=0.2), keep_surplus=True, oversample=3.0)
    for step in range(6):
        of.collect(step)
        if of.state_dict()["surplus"]:
            break
    state = of.state_dict()
    assert state["surplus"]
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    assert torch.load(file, weights_only=True) == state
    assert json.loads(json.dumps(state)) == state


def test_a_checkpoint_of_other_data_is_refused() -> None:
    state = collector(bernoulli(0.5)).state_dict()
    other = PromptStream(problems(7), encode, seed=0)
    with pytest.raises(ConfigError, match="other training data"):
        collector(bernoulli(0.5), stream=other).load_state_dict(state)


def test_a_step_that_cannot_be_shared_out_is_refused() -> None:
    made = partial(collector, by_group([MIXED]), group_size=2, enabled=False)
    with pytest.raises(ValueError, match="4 items cannot be shared equally by 3"):
        on_ranks(3, lambda rank: made(ranks=rank).collect(0))
