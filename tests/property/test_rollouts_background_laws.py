"""Laws of rollouts that are drawn beside the training, with a policy and judges that are none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.kit.errors import ConfigError
from assay.trainer.engines.types import Request, Response
from assay.trainer.errors import OutageError
from assay.trainer.methods.asynchrony.background import BackgroundCollector, DrawSchedule
from assay.trainer.methods.asynchrony.settings import admits
from assay.trainer.rollouts.types import Collected, OneRank
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import (
    FakeGenerator,
    FakeRound,
    bernoulli,
    collector,
    numbers,
    on_ranks,
    stream,
)

OUTCOME = bernoulli(0.5, fault_rate=0.2)


@dataclass
class Versions:
    """Weights that are a number: the steps they have made."""

    now: int = 0
    worn: int = -1
    copies: list[int] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def copied(self) -> int:
        self.copies.append(self.now)
        return self.now

    def wear(self, weights: int) -> None:
        self.worn = weights

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        assert self.stopped.is_set()


@dataclass
class Drawer(FakeGenerator):
    """Notes with which weights each batch is drawn; fails at one of them.

    Attributes:
        weights: what it answers with.
        fails_at: the number of the call that fails, from 0.
        pause: called at the beginning of each call.
    """

    weights: Versions = field(default_factory=Versions)
    fails_at: int = -1
    pause: Callable[[], object] = lambda: None
    versions: list[int] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)

    def generate(
        self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        self.pause()
        self.threads.add(threading.current_thread().name)
        self.versions.append(self.weights.worn)
        if len(self.versions) - 1 == self.fails_at:
            self.calls.append([])
            raise ValueError("the weather")
        return super().generate(requests, on_finished)


def background(
    eta: int,
    *,
    steps: int = 5,
    prompts: int = 4,
    group_size: int = 2,
    updates: int = 1,
    portion: int | None = None,
    drawer: Drawer | None = None,
    ranks: Any = None,
    outcome: Callable[[int, int], str] = OUTCOME,
) -> tuple[BackgroundCollector, Drawer]:
    drawer = drawer or Drawer()
    made = BackgroundCollector(
        stream(),
        drawer,
        lambda: FakeRound(outcome),
        engine=drawer.weights,
        weights=drawer.weights,
        schedule=DrawSchedule(steps, updates, eta, portion or prompts),
        config=RolloutConfig(prompts_per_step=prompts, group_size=group_size),
        ranks=ranks or OneRank(),
    )
    return made, drawer


def train(
    source: BackgroundCollector, drawer: Drawer, steps: range, updates: int = 1
) -> Iterator[Collected]:
    """As a trainer asks: step after step, with weights that move."""
    for step in steps:
        drawer.weights.now = step
        yield source.collect(step * updates)


def told(found: Collected) -> tuple[Any, ...]:
    """What a step trains on, and under which weights it was drawn."""
    return found.groups, {k: v for k, v in found.metrics.items() if not k.endswith("_s")}


SIZES = {
    "eta": st.integers(0, 5),
    "steps": st.integers(1, 7),
    "prompts": st.integers(1, 4),
    "group_size": st.integers(1, 3),
    "updates": st.integers(1, 3),
}


@given(**SIZES)
@settings(deadline=None, max_examples=40)
def test_no_group_is_older_than_eta_and_every_draw_is_used_once_and_in_order(
    eta: int, steps: int, prompts: int, group_size: int, updates: int
) -> None:
    source, drawer = background(
        eta, steps=steps, prompts=prompts, group_size=group_size, updates=updates
    )
    size = prompts * group_size
    used: list[int] = []
    with closing(source):
        for step, found in enumerate(train(source, drawer, range(steps), updates)):
            used += numbers(found.groups)
            [version] = {r.policy_step for group in found.groups for r in group}
            assert version == max(0, step - eta) * updates
            assert found.metrics["staleness"] == min(step, eta) <= eta
            for rollout in range(step * size + 1, (step + 1) * size + 1):
                gate = {"batch": size, "version": version // updates}
                assert admits(rollout, max_staleness=eta, **gate)
                if eta and step >= eta:  # and not a step earlier
                    assert not admits(rollout, max_staleness=eta - 1, **gate)
    assert used == list(range(steps * prompts))
    assert drawer.versions == [max(0, step - eta) for step in range(steps)]
    asked = [number for call in drawer.calls for number, _ in call]
    assert asked == [n for n in range(steps * prompts) for _ in range(group_size)]
    assert len(drawer.threads) == 1
    assert drawer.threads != {threading.current_thread().name}
    assert drawer.weights.copies == sorted(set(drawer.versions)), "a copy for each version"


@given(**SIZES, at=st.integers(1, 6))
@settings(deadline=None, max_examples=40)
def test_a_run_that_was_saved_goes_on_as_if_it_had_not_been(
    eta: int, steps: int, at: int, **sizes: int
) -> None:
    at, updates = min(at, steps), sizes["updates"]
    sizes["steps"] = steps
    whole, drawer = background(eta, **sizes)
    with closing(whole):
        expected = []
        saved: dict[str, Any] = {}
        for step, found in enumerate(train(whole, drawer, range(steps), updates)):
            expected.append(told(found))
            if step + 1 == at:
                saved = whole.state_dict()
    resumed, drawer = background(eta, **sizes)
    with closing(resumed):
        resumed.load_state_dict(saved)
        found = [told(one) for one in train(resumed, drawer, range(at, steps), updates)]
    assert found == expected[at:]


def test_without_staleness_it_collects_as_the_synchronous_collector() -> None:
    source, drawer = background(0)
    plain = collector(OUTCOME, group_size=2, enabled=False)
    with closing(source):
        for step, found in enumerate(train(source, drawer, range(5))):
            expected = plain.collect(step)
            assert found.groups == expected.groups
            assert found.judged == expected.judged
            assert {k: found.metrics[k] for k in expected.metrics} == expected.metrics


@pytest.mark.parametrize("eta", [0, 2])
def test_processes_draw_together_what_one_draws(eta: int) -> None:
    def run(ranks: Any) -> list[list[Any]]:
        source, drawer = background(eta, ranks=ranks)
        with closing(source):
            return [found.groups for found in train(source, drawer, range(5))]

    [alone] = on_ranks(1, run)
    one, two = on_ranks(2, run)
    assert [[*a, *b] for a, b in zip(one, two, strict=True)] == alone


@pytest.mark.parametrize("eta", [0, 1, 3])
def test_a_failure_is_raised_by_the_step_whose_batch_it_was(eta: int) -> None:
    source, drawer = background(eta, drawer=Drawer(fails_at=3))
    with closing(source):
        steps = train(source, drawer, range(5))
        done = [next(steps) for _ in range(3)]
        saved = source.state_dict()
        with pytest.raises(ValueError, match="the weather"):
            next(steps)
    assert [n for found in done for n in numbers(found.groups)] == list(range(12))
    assert len(drawer.calls) == 4, "nothing is drawn behind a failure"
    # nothing is lost: what the failure left undrawn comes next
    again, drawer = background(eta)
    with closing(again):
        again.load_state_dict(saved)
        for step, found in enumerate(train(again, drawer, range(3, 5)), start=3):
            assert numbers(found.groups) == [step * 4 + k for k in range(4)]
            assert found.metrics["staleness"] <= eta


@pytest.mark.parametrize("eta", [0, 2])
def test_services_that_stay_away_leave_the_step_undone(eta: int) -> None:
    """What is saved goes on with the draws of the batch that nobody judged."""
    whole, judge = background(eta)
    with closing(whole):
        expected = [found.groups for found in train(whole, judge, range(3))]
    away = [False]

    def outcome(number: int, index: int) -> str:
        return "outage" if away[0] and number >= 8 else OUTCOME(number, index)

    source, drawer = background(eta, outcome=outcome)
    with closing(source):
        assert [found.groups for found in train(source, drawer, range(2))] == expected[:2]
        away[0] = True
        with pytest.raises(OutageError, match="gone for too long"):
            source.collect(2)
        saved = source.state_dict()
    again, other = background(eta)
    with closing(again):
        again.load_state_dict(saved)
        [found] = train(again, other, range(2, 3))
    drawn = [[(r.request.draw.number, r.result) for r in group] for group in found.groups]
    assert drawn == [[(r.request.draw.number, r.result) for r in group] for group in expected[2]]


def test_a_run_that_is_made_longer_draws_what_is_missing_with_the_weights_it_has() -> None:
    short, drawer = background(2, steps=3)
    with closing(short):
        assert len(list(train(short, drawer, range(3)))) == 3
        saved = short.state_dict()
    assert saved["ahead"] == []
    grown, drawer = background(2, steps=6)
    with closing(grown):
        grown.load_state_dict(saved)
        found = list(train(grown, drawer, range(3, 6)))
    assert [one.metrics["staleness"] for one in found] == [0.0, 1.0, 2.0]
    assert [n for one in found for n in numbers(one.groups)] == list(range(12, 24))


def test_a_checkpoint_of_another_schedule_is_refused() -> None:
    ahead, drawer = background(3)
    with closing(ahead):
        next(train(ahead, drawer, range(1)))
        saved = ahead.state_dict()
    assert len(saved["ahead"]) == 3
    for state in (saved, {"stream": saved["stream"], "surplus": []}):
        other, _ = background(2)
        with closing(other), pytest.raises(ConfigError, match="that it was made with"):
            other.load_state_dict(state)


def test_the_batch_ahead_is_drawn_while_the_step_trains() -> None:
    """And no further: the thread waits for the step to end."""
    begun, go = threading.Semaphore(0), threading.Semaphore(1)

    def pause() -> None:
        begun.release()
        assert go.acquire(timeout=20)

    source, drawer = background(1, drawer=Drawer(pause=pause))
    with closing(source):
        next(train(source, drawer, range(1)))
        assert begun.acquire(timeout=20)
        assert begun.acquire(timeout=20), "the second batch, under the same weights"
        assert not begun.acquire(timeout=0.05)
        go.release(9)


def test_closing_ends_what_is_being_drawn() -> None:
    drawer = Drawer()
    drawer.pause = lambda: drawer.weights.stopped.wait(20)
    source, _ = background(2, drawer=drawer)
    with closing(source):
        source.begin(0)
    assert len(drawer.calls) <= 1, "what waited was never begun"
    source.close()


@dataclass
class InOrder(Drawer):
    """Answers in the order of its requests, and waits before the second half."""

    half: threading.Event = field(default_factory=threading.Event)

    def generate(
        self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        def in_order(place: int, answer: Response) -> None:
            answers[place] = answer

        answers: dict[int, Response] = {}
        responses = super().generate(requests, in_order)
        for place in sorted(answers):
            if place == len(requests) // 2:
                assert self.half.wait(20)
            on_finished(place, answers[place])
        return responses


def test_a_portion_is_there_while_the_rest_is_drawn() -> None:
    drawer = InOrder()
    source, _ = background(0, portion=1, drawer=drawer)
    with closing(source):
        flight = source.begin(0)
        parts = flight.parts()
        assert [numbers(next(parts)) for _ in range(2)] == [[0], [1]]
        assert not flight.drawn.done()
        drawer.half.set()
        assert [numbers(part) for part in parts] == [[2], [3]]
        assert numbers(source.finished(flight, 0).groups) == [0, 1, 2, 3]
        assert numbers(flight.groups()) == [0, 1, 2, 3], "once more"


def test_a_failure_between_two_portions_is_raised_where_the_groups_are_missing() -> None:
    class Breaks(InOrder):
        def generate(
            self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
        ) -> list[Response]:
            def some(place: int, answer: Response) -> None:
                if place >= 4:
                    raise ValueError("the weather")
                on_finished(place, answer)

            self.half.set()
            return super().generate(requests, some)

    source, _ = background(0, portion=1, drawer=Breaks())
    with closing(source):
        parts = source.begin(0).parts()
        assert [numbers(next(parts)) for _ in range(2)] == [[0], [1]]
        with pytest.raises(ValueError, match="the weather"):
            next(parts)


def test_a_slow_judge_is_waited_for_by_the_step_and_not_by_the_thread() -> None:
    """Two batches are drawn while the first is still being judged."""
    drawer = Drawer()
    seen: list[int] = []

    class Slow(FakeRound):
        def results(self) -> list[Any]:
            until = time.monotonic() + 20
            while len(drawer.calls) < 3 and time.monotonic() < until:
                time.sleep(0.001)
            seen.append(len(drawer.calls))
            return super().results()

    source = BackgroundCollector(
        stream(), drawer, lambda: Slow(OUTCOME), engine=drawer.weights, weights=drawer.weights,
        schedule=DrawSchedule(5, 1, 2, 4), ranks=OneRank(),
        config=RolloutConfig(prompts_per_step=4, group_size=2),
    )  # fmt: skip
    with closing(source):
        source.collect(0)
    assert seen == [3]
