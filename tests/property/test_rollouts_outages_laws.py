"""Outages wait: whoever is away is asked again, in time, and nobody else is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Item, Judgement, Result
from assay.clients.faults import make_fault
from assay.kit.errors import CallError, refuse
from assay.kit.reasons import Reason
from assay.trainer.core.rewards import FaultWatch
from assay.trainer.errors import OutageError
from assay.trainer.rollouts.outages import AWAY, Patience, given_up, refuse_given_up

AWAY_FOR = st.floats(0.0, 100.0)
KINDS = st.sampled_from(["judged", "away", "starting", "late", "died"])
_FAULTS = {
    "away": make_fault(Reason.UNREACHABLE, "nobody answers"),
    "starting": make_fault(Reason.STARTING, "not yet"),
    "late": make_fault(Reason.DEADLINE_EXCEEDED, "not in time"),
    "died": make_fault(Reason.WORKER_DIED, "told to"),
}


class Service:
    """Away until a time of its clock; then it judges each item by its name."""

    def __init__(self, back_s: float, *, hangs: bool = False) -> None:
        self.now = 0.0
        self.asked: list[list[str]] = []
        self._back_s = back_s
        self._hangs = hangs

    def pass_by(self, seconds: float) -> None:
        self.now += seconds

    def submit(self, items: Iterable[Item], *, timeout_s: float) -> Future[list[Result]]:
        assert timeout_s > 0
        names = [item.response for item in items]
        self.asked.append(names)
        answer: Future[list[Result]] = Future()
        if self.now >= self._back_s:
            self.now += 0.01
            answer.set_result([judged(name) for name in names])
        else:
            self.now += min(timeout_s, 1.0)
            kind = "late" if self._hangs else "away"
            answer.set_result([Result("x", _FAULTS[kind]) for _ in names])
        return answer

    def submit_ready(self, timeout_s: float) -> Future[object]:
        assert timeout_s > 0
        answer: Future[object] = Future()
        if self.now >= self._back_s:
            answer.set_result(None)
        else:
            answer.set_exception(refuse(Reason.DEADLINE_EXCEEDED, "no answer"))
        return answer


def judged(name: str) -> Result:
    return Result("x", Judgement(float(len(name)), "correct", verifier=name))


def patience(service: Service, max_s: float = 60.0) -> Patience:
    return Patience(max_s, 10.0, clock=lambda: service.now, sleep=service.pass_by)


def first_asked(kinds: Sequence[str], groups: Sequence[int]) -> tuple[list[Item], list[Result]]:
    items = [
        Item(response=f"r{n}", id=str(n), group_id=str(group)) for n, group in enumerate(groups)
    ]
    results = [
        judged(f"r{n}") if kind == "judged" else Result(str(n), _FAULTS[kind])
        for n, kind in enumerate(kinds)
    ]
    return items, results


def late(kinds: Sequence[str]) -> list[int]:
    return [n for n, kind in enumerate(kinds) if kind == "late"]


@given(st.lists(st.tuples(KINDS, st.integers(0, 3)), max_size=8), AWAY_FOR, st.booleans())
def test_what_an_outage_left_is_asked_again_and_nothing_else(
    told: list[tuple[str, int]], back_s: float, whole_groups: bool
) -> None:
    """Judgements are those of a service that was never away; other faults stay what they are."""
    kinds = [kind for kind, _ in told]
    items, results = first_asked(kinds, [group for _, group in told])
    service = Service(back_s)
    waiting = patience(service, max_s=60.0)
    settled = waiting.settle(service, items, results, late=late(kinds), whole_groups=whole_groups)
    gone = {"away", "starting"}
    outage = any(kind in gone for kind in kinds) or ("late" in kinds and service.now > 0.02)
    victims = {n for n, kind in enumerate(kinds) if kind in gone or (outage and kind == "late")}
    if whole_groups:
        groups = {items[n].group_id for n in victims}
        victims = {n for n, item in enumerate(items) if item.group_id in groups}
    over = given_up(settled)
    assert len(settled) == len(items)
    for n, result in enumerate(settled):
        if n not in victims:
            assert result == results[n]
        elif over is None:
            assert result.judgement == judged(f"r{n}").judgement
        else:
            assert result.fault is not None
            assert result.fault.reason in AWAY
            assert "reward.max_outage_s = 60" in result.fault.message
    if victims:
        assert over is None or back_s > 50
        assert over is not None or back_s < 80
        names = {name for asked in service.asked for name in asked}
        assert names <= {f"r{n}" for n in victims} | {f"r{n}" for n in late(kinds)}
    assert waiting.held_s <= service.now


def test_while_it_is_away_one_asks_and_then_all_do() -> None:
    items, results = first_asked(["away"] * 5, range(5))
    service = Service(20.0)
    lines: list[str] = []
    waiting = patience(service)
    waiting.say = lines.append
    settled = waiting.settle(service, items, results)
    assert [len(names) for names in service.asked[:-1]] == [1] * (len(service.asked) - 1)
    assert len(service.asked[-1]) == 4
    assert all(result.judgement for result in settled)
    assert [result.id for result in settled] == [item.id for item in items]
    assert lines[0] == (
        "the reward services are away: nobody answers; the step is held with its 5 unjudged "
        "responses, for at most 1:00 (reward.max_outage_s)"
    )
    assert lines[-1].endswith(" s; 5 responses asked again")
    assert waiting.held_s == pytest.approx(service.now)


def test_an_item_that_stays_away_does_not_keep_the_others() -> None:
    """Its judge is gone for good, theirs is back."""

    class Half(Service):
        def submit(self, items: Iterable[Item], *, timeout_s: float) -> Future[list[Result]]:
            listed = list(items)
            answer = super().submit(listed, timeout_s=timeout_s)
            told = [
                Result("x", _FAULTS["away"]) if item.response == "r0" else result
                for item, result in zip(listed, answer.result(), strict=True)
            ]
            changed: Future[list[Result]] = Future()
            changed.set_result(told)
            return changed

    items, results = first_asked(["away"] * 3, range(3))
    service = Half(5.0)
    settled = patience(service).settle(service, items, results)
    assert [result.fault is None for result in settled] == [False, True, True]
    assert given_up(settled) is not None


def test_a_service_that_hangs_is_away_and_one_that_is_slow_is_not() -> None:
    items, results = first_asked(["late", "judged"], range(2))
    hanging = Service(30.0, hangs=True)
    assert patience(hanging).settle(hanging, items, results, late=[0])[0].judgement is not None

    class Slow(Service):
        def submit_ready(self, timeout_s: float) -> Future[object]:
            answer: Future[object] = Future()
            answer.set_result(None)
            return answer

    slow = Slow(1e9, hangs=True)
    assert patience(slow).settle(slow, items, results, late=[0]) == results
    assert len(slow.asked) == 1


def test_after_a_hold_that_was_given_up_the_next_is_not_begun_anew() -> None:
    items, results = first_asked(["away"], [0])
    service = Service(1e9)
    waiting = patience(service, max_s=30.0)
    assert given_up(waiting.settle(service, items, results)) is not None
    ended = service.now
    assert given_up(waiting.settle(service, items, results)) is not None
    assert service.now == ended
    calm_items, calm = first_asked(["judged"], [0])
    waiting.settle(service, calm_items, calm)  # it was back meanwhile
    waiting.settle(service, items, results)
    assert service.now >= ended + 30.0


def test_an_interrupt_gives_it_up_and_a_limit_of_nothing_begins_none() -> None:
    items, results = first_asked(["away", "judged"], range(2))
    service = Service(1e9)
    waiting = patience(service)
    waiting.interrupted = lambda: service.now > 5
    settled = waiting.settle(service, items, results)
    with pytest.raises(OutageError, match="the run was interrupted while it waited") as told:
        refuse_given_up(settled)
    assert told.value.interrupted
    assert service.now < 15
    assert settled[1] == results[1]
    assert FaultWatch(max_ratio=1.0, window=5).add(settled) is None, "the interrupt stops the run"
    never = patience(service, max_s=0.0)
    assert never.settle(service, items, results) == results
    refuse_given_up(results)


def test_one_that_was_held_in_vain_stops_a_run_whatever_the_ratio() -> None:
    items, results = first_asked(["away", *["judged"] * 99], range(100))
    service = Service(1e9)
    settled = patience(service).settle(service, items, results)
    said = FaultWatch(max_ratio=1.0, window=5).add(settled)
    assert said is not None
    assert "longer than reward.max_outage_s = 60 allows; 1 responses have no judgement" in said
    assert FaultWatch(max_ratio=1.0, window=5).add(results) is None


@pytest.mark.parametrize("error", [refuse(Reason.INTERNAL, "told to"), ValueError("a defect")])
def test_a_defect_is_no_outage(error: Exception) -> None:
    class Broken(Service):
        def submit(self, items: Iterable[Item], *, timeout_s: float) -> Future[list[Result]]:
            answer: Future[list[Result]] = Future()
            answer.set_exception(error)
            return answer

    items, results = first_asked(["away"], [0])
    service = Broken(0.0)
    with pytest.raises(type(error)):
        patience(service).settle(service, items, results)
    assert isinstance(error, CallError | ValueError)
