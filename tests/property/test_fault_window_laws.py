"""The laws of the window over which the adapters count faults."""

from __future__ import annotations

import threading

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.clients.trainers.common import fault_ratio
from assay.clients.trainers.common.fault_ratio import (
    LEAST_CALLS,
    LEAST_ITEMS,
    WINDOW_ITEMS,
    FaultWindow,
    TooManyFaultsError,
    read_ratio,
    settle,
)
from assay.kit.errors import ConfigError

GOOD = Result("a", Judgement(0.5, "partly"))


def call(good: int, bad: int, reason: str = "QUEUE_FULL") -> list[Result]:
    """The results of one call."""
    return [GOOD] * good + [Result("b", Fault(reason, "full"))] * bad


ratios = st.floats(0.0, 1.0)
sizes = st.tuples(st.integers(0, 12), st.integers(0, 12))
windows = st.builds(
    dict, items=st.integers(1, 60), least=st.integers(1, 60), calls=st.integers(1, 6)
)


@given(ratios, windows, st.lists(sizes, max_size=60))
def test_it_is_the_share_of_the_latest_whole_calls(
    ratio: float, shape: dict[str, int], calls: list[tuple[int, int]]
) -> None:
    """Against the definition: the fewest latest calls that hold enough items and are enough."""
    window = FaultWindow(ratio, **shape)
    past: list[tuple[int, int]] = []
    for good, bad in calls:
        said = window.add(call(good, bad))
        if good + bad == 0:
            assert said == ""
            continue
        past.append((good, bad))
        latest: list[tuple[int, int]] = []
        for one in reversed(past):
            if len(latest) >= shape["calls"] and sum(map(sum, latest)) >= shape["items"]:
                break
            latest.append(one)
        seen, faults = sum(map(sum, latest)), sum(bad for _, bad in latest)
        enough = seen >= shape["least"] and len(latest) >= shape["calls"]
        assert bool(said) == (enough and faults / seen > ratio)
        if said:
            assert said.startswith(f"{faults} of the last {seen} samples had no judgement")


@given(ratios, st.lists(st.integers(1, 40), max_size=60), st.data())
def test_it_never_fires_where_no_call_is_past_the_ratio(
    ratio: float, calls: list[int], data: st.DataObject
) -> None:
    window = FaultWindow(ratio)
    for size in calls:
        bad = data.draw(st.integers(0, int(ratio * size)))
        assume(bad / size <= ratio)
        assert window.add(call(size - bad, bad)) == ""


@given(st.integers(1, 100), st.integers(1, 20))
def test_at_the_ratio_it_does_not_fire(percent: int, calls: int) -> None:
    window = FaultWindow(percent / 100)
    for _ in range(calls):
        assert window.add(call(100 - percent, percent)) == ""


@given(st.floats(0.0, 0.999), st.lists(st.integers(1, 700), max_size=8), st.integers(1, 300))
def test_it_fires_within_a_window_of_a_total_outage(
    ratio: float, healthy: list[int], size: int
) -> None:
    window = FaultWindow(ratio)
    for good in healthy:
        assert window.add(call(good, 0)) == ""
    out = calls = 0
    while not window.add(call(0, size)):
        out, calls = out + size, calls + 1
        assert out < WINDOW_ITEMS or calls < LEAST_CALLS


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_one_bad_call_among_healthy_ones_of_its_size_does_not_stop_a_run(
    size: int, before: int
) -> None:
    window = FaultWindow(fault_ratio.MAX_FAULT_RATIO)
    for _ in range(min(before, 5)):
        window.add(call(size, 0))
    if min(before, 5) >= LEAST_CALLS:
        assert window.add(call(0, size)) == ""
        assert window.add(call(size, 0)) == ""


@given(st.integers(1, 100))
def test_a_bad_start_stops_after_the_least_and_no_earlier(size: int) -> None:
    window = FaultWindow(0.5)
    seen = calls = 0
    while True:
        said = window.add(call(0, size))
        seen, calls = seen + size, calls + 1
        if said:
            break
    assert seen >= LEAST_ITEMS
    assert calls >= LEAST_CALLS
    assert seen - size < LEAST_ITEMS or calls - 1 < LEAST_CALLS


@given(st.lists(sizes, max_size=20))
def test_one_turns_it_off(calls: list[tuple[int, int]]) -> None:
    window = FaultWindow(1.0, items=1, least=1, calls=1)
    assert [window.add(call(*one)) for one in calls] == [""] * len(calls)


@pytest.mark.slow
@given(st.integers(2, 8), st.integers(1, 40))
def test_threads_lose_no_count(threads: int, each: int) -> None:
    window = FaultWindow(0.0, items=10**6, least=10**6, calls=1)
    together = threading.Barrier(threads)

    def work() -> None:
        together.wait()
        for _ in range(each):
            window.add(call(1, 2))

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    seen = 3 * threads * each
    said = window.add([GOOD] * (10**6 - seen))
    assert said.startswith(f"{2 * threads * each} of the last {10**6} samples")


@given(st.one_of(st.floats(), st.text(max_size=6), st.none()))
def test_a_ratio_is_from_zero_to_one(value: object) -> None:
    try:
        wanted = float(str(value))
    except ValueError:
        wanted = -1.0
    if 0.0 <= wanted <= 1.0:
        assert read_ratio(value) == wanted
    else:
        with pytest.raises(ConfigError, match="pass a number from 0 to 1"):
            read_ratio(value)


def test_what_it_says_and_that_it_says_it_each_time(caplog: pytest.LogCaptureFixture) -> None:
    fault_ratio.forget()
    results = [*call(0, 40, "POOL_BROKEN"), *call(10, 14)]
    for _ in range(2):
        settle("who", 0.5, results)
    for _ in range(2):
        with pytest.raises(
            TooManyFaultsError,
            match=r"had no judgement \(POOL_BROKEN x\d+, QUEUE_FULL x\d+\), and max_fault_ratio "
            r"allows 0\.5; mend the cause \(the latest: full\), which docs/reference/errors",
        ):
            settle("who", 0.5, results)
    errors = [one for one in caplog.records if one.levelname == "ERROR"]
    assert len(errors) == 2
    settle("another", 0.5, results)
    settle("who", 1.0, results)
    fault_ratio.forget()
    settle("who", 0.5, results)
