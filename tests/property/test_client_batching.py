"""Laws of splitting and of the retry schedule."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.clients.config import RetryPolicy
from assay.clients.core.batching import framed_bytes, plan_calls
from assay.clients.core.retry import next_delay_s

ITEMS = st.lists(
    st.tuples(st.integers(1, 300), st.sampled_from(["", "", "a", "b", "c"]), st.booleans()),
    max_size=60,
)


@given(ITEMS, st.integers(1, 12), st.integers(10, 600), st.integers(1, 400))
def test_splitting_keeps_every_item_once_and_every_limit(
    items: list[tuple[int, str, bool]], max_items: int, max_message: int, max_item: int
) -> None:
    sizes = [size for size, _, _ in items]
    groups = [group for _, group, _ in items]
    whole = [flag and bool(group) for _, group, flag in items]
    plan = plan_calls(
        sizes,
        groups,
        whole,
        max_items=max_items,
        max_message_bytes=max_message,
        max_item_bytes=max_item,
    )
    sent = [index for batch in plan.batches for index in batch]
    assert sorted(sent + plan.too_large + plan.groups_too_large) == list(range(len(items)))
    for batch in plan.batches:
        assert 1 <= len(batch) <= max_items
        assert sum(framed_bytes(sizes[index]) for index in batch) <= max_message
    for index in plan.too_large:
        assert sizes[index] > max_item or framed_bytes(sizes[index]) > max_message
    assert all(groups[index] for index in plan.groups_too_large)


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 12), st.integers(310, 900))
def test_items_without_groups_stay_in_order(
    sizes: list[int], max_items: int, max_message: int
) -> None:
    plan = plan_calls(
        sizes,
        [""] * len(sizes),
        [False] * len(sizes),
        max_items=max_items,
        max_message_bytes=max_message,
        max_item_bytes=max_message,
    )
    assert [index for batch in plan.batches for index in batch] == list(range(len(sizes)))


@given(ITEMS, st.integers(1, 12))
def test_a_group_is_in_one_call_or_too_large(
    items: list[tuple[int, str, bool]], max_items: int
) -> None:
    groups = [group for _, group, _ in items]
    whole = [flag and bool(group) for _, group, flag in items]
    plan = plan_calls(
        [size for size, _, _ in items],
        groups,
        whole,
        max_items=max_items,
        max_message_bytes=10**6,
        max_item_bytes=10**6,
    )
    for group in {group for group in groups if group}:
        members = {index for index, name in enumerate(groups) if name == group}
        homes = [batch for batch in plan.batches if members & set(batch)]
        if len(members) <= max_items:
            assert len(homes) == 1
            assert members <= set(homes[0])
        elif any(whole[index] for index in members):
            assert members <= set(plan.groups_too_large)
            assert not homes


@given(st.lists(st.binary(max_size=400), max_size=8))
def test_framed_bytes_is_what_the_wire_takes(blobs: list[bytes]) -> None:
    request = reward_pb2.BatchScoreRequest()
    for blob in blobs:
        request.items.add(response=blob.hex() * 60)
    assert request.ByteSize() == sum(framed_bytes(item.ByteSize()) for item in request.items)


POLICIES = st.builds(
    lambda attempts, base, more: RetryPolicy(attempts, base, base + more),
    st.integers(1, 100),
    st.floats(0, 10),
    st.floats(0, 10),
)


@given(
    POLICIES,
    st.integers(1, 10_000),
    st.floats(-10, 1000),
    st.floats(0, 1, exclude_max=True),
    st.none() | st.floats(0, 100),
)
def test_a_wait_ends_inside_the_deadline_and_honours_the_server(
    policy: RetryPolicy, failures: int, remaining: float, draw: float, retry_after: float | None
) -> None:
    delay = next_delay_s(policy, failures, remaining, draw, retry_after)
    if delay is None:
        return
    assert policy.max_attempts is not None
    assert failures < policy.max_attempts
    assert (retry_after or 0.0) <= delay < remaining
    assert delay <= policy.cap_s + (retry_after or 0.0)
    assert math.isfinite(delay)


@given(POLICIES, st.floats(0, 1, exclude_max=True), st.floats(0.1, 100))
def test_a_schedule_ends(policy: RetryPolicy, draw: float, timeout: float) -> None:
    waited, failures = 0.0, 0
    while True:
        failures += 1
        delay = next_delay_s(policy, failures, timeout - waited, draw)
        if delay is None:
            break
        waited += delay
    assert policy.max_attempts is not None
    assert failures <= policy.max_attempts
    assert waited < timeout


@given(
    st.integers(1, 10_000),
    st.floats(-10, 1000),
    st.floats(0, 1, exclude_max=True),
    st.none() | st.floats(0, 100),
)
def test_by_default_the_deadline_alone_ends_it(
    failures: int, remaining: float, draw: float, retry_after: float | None
) -> None:
    policy = RetryPolicy()
    delay = next_delay_s(policy, failures, remaining, draw, retry_after)
    longest = policy.cap_s + (retry_after or 0.0)
    assert (delay is not None) or remaining <= longest
    assert delay is None or delay < remaining


@given(POLICIES)
def test_a_server_is_met_in_a_bounded_number_of_calls(policy: RetryPolicy) -> None:
    assert policy.to_be_met() is policy
    assert next_delay_s(RetryPolicy().to_be_met(), 8, 1e9, 0.5) is None


@given(POLICIES, st.integers(1, 98), st.floats(0, 1, exclude_max=True))
def test_caps_never_shrink(policy: RetryPolicy, failures: int, draw: float) -> None:
    patient = RetryPolicy(100, policy.base_s, policy.cap_s)
    sooner = next_delay_s(patient, failures, 1e9, draw)
    later = next_delay_s(patient, failures + 1, 1e9, draw)
    assert sooner is not None
    assert later is not None
    assert sooner <= later
