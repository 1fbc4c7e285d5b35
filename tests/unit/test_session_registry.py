"""Sessions by id, their leases, room and turns: no process is started here."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.kit.calls import tenant_var
from assay.kit.durations import fill_duration
from assay.kit.errors import CallError
from assay.kit.queue import QueueFull
from assay.sandbox.sessions import requests
from assay.sandbox.sessions.place import fitting
from assay.sandbox.sessions.registry import CLOSED, Ended, OpenSession, OpenSessions
from assay.sandbox.sessions.requests import SessionRules
from assay.sandbox.sessions.rooms import FairRoom, SessionRoom
from assay.sandbox.sessions.settings import Allowance, HostSettings
from waiting_support import until

LIMITS = Allowance()
SHORT_S, LONG_S = 0.05, 60.0


def registry(name: str = "here:1") -> tuple[OpenSessions, list[OpenSession]]:
    expired: list[OpenSession] = []
    made = OpenSessions(name, expired.append)
    return made, expired


def add(registry: OpenSessions, tenant: str = "", lease_s: float = LONG_S) -> OpenSession:
    return registry.add(registry.key(), tenant, "python", LIMITS, lease_s)


def reason_of(registry: OpenSessions, session_id: str, tenant: str = "") -> str:
    with pytest.raises(CallError) as caught:
        registry.find(session_id, tenant)
    return caught.value.reason


async def test_a_session_is_its_tenants_alone() -> None:
    found, _ = registry()
    session = add(found, "one")
    assert found.find(session.id, "one") is session
    assert reason_of(found, session.id, "two") == "SESSION_NOT_FOUND"
    assert reason_of(found, session.id) == "SESSION_NOT_FOUND"
    found.end(session, Ended("lost", "gone", "host-died"))
    assert reason_of(found, session.id, "one") == "SESSION_LOST"
    assert reason_of(found, session.id, "two") == "SESSION_NOT_FOUND"


async def test_keys_and_ids_are_never_used_twice() -> None:
    found, _ = registry()
    sessions = [add(found) for _ in range(500)]
    for session in sessions[::2]:
        found.end(session, CLOSED)
    sessions += [add(found) for _ in range(500)]
    assert len({one.key for one in sessions}) == len({one.id for one in sessions}) == 1000
    assert len(found) == 750


async def test_an_end_is_told_by_its_own_reason_and_once() -> None:
    found, _ = registry()
    ends = {
        "SESSION_NOT_FOUND": CLOSED,
        "LEASE_EXPIRED": Ended("lease-expired", "late"),
        "SESSION_LOST": Ended("lost", "gone", "host-died"),
    }
    for reason, ended in ends.items():
        session = add(found)
        assert found.end(session, ended)
        assert not found.end(session, CLOSED)
        assert reason_of(found, session.id) == reason
    with pytest.raises(CallError) as caught:
        found.find(session.id, "")
    assert caught.value.metadata["cause"] == "host-died"


async def test_ids_of_other_replicas_and_of_an_earlier_run_are_told_apart() -> None:
    here, there, again = registry("here:1")[0], registry("there.b:2")[0], registry("here:1")[0]
    with pytest.raises(CallError) as caught:
        here.find(add(there).id, "")
    assert caught.value.reason == "WRONG_REPLICA"
    assert caught.value.metadata == {"replica": "there.b:2", "here": "here:1"}
    with pytest.raises(CallError) as caught:
        again.find(add(here).id, "")
    assert caught.value.reason == "SESSION_LOST"
    assert caught.value.metadata["cause"] == "server-restarted"


@given(st.text(max_size=200) | st.from_regex(r"[a-z:.0-9]{0,90}\.[-\w]{28,32}", fullmatch=True))
def test_whatever_is_no_id_of_ours_is_refused(text: str) -> None:
    async def find() -> str:
        found, _ = registry()
        add(found)
        return reason_of(found, text)

    assert asyncio.run(find()) in {"SESSION_NOT_FOUND", "WRONG_REPLICA", "SESSION_LOST"}


async def test_a_lease_that_nobody_renews_runs_out_and_others_do_not() -> None:
    found, expired = registry()
    idle, kept = add(found, lease_s=SHORT_S), add(found, lease_s=LONG_S)
    await until(lambda: expired)
    assert expired == [idle]
    assert found.find(kept.id, "") is kept


async def test_a_call_begins_the_lease_anew_and_a_busy_session_keeps_it() -> None:
    found, expired = registry()
    busy, shorter = add(found, lease_s=SHORT_S), add(found)
    busy.doing = "a cell runs"
    before_s = busy.expires_s
    await asyncio.sleep(4 * SHORT_S)
    assert not expired
    assert busy.expires_s > before_s
    shorter.lease_s = SHORT_S  # as Renew does
    found.touch(shorter)
    await until(lambda: expired)
    assert expired == [shorter]


async def test_a_pause_of_the_loop_expires_nothing_that_was_renewed_meanwhile() -> None:
    found, expired = registry()
    session = add(found, lease_s=SHORT_S)
    loop = asyncio.get_running_loop()
    # As a renewal that lay in a socket while the process stood still.
    loop.call_later(2 * SHORT_S, lambda: found.find(session.id, ""))
    time.sleep(3 * SHORT_S)  # noqa: ASYNC251 - the pause
    await asyncio.sleep(0.02)
    assert not expired


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4)), min_size=1, max_size=40),
    st.integers(4, 6),
)
def test_no_more_places_are_taken_than_there_are_and_everybody_is_served(
    asked: list[tuple[str, int]], places: int
) -> None:
    async def run() -> None:
        room = FairRoom(places, 100)
        held = most = 0

        async def visit(tenant: str, count: int) -> None:
            nonlocal held, most
            tenant_var.set(tenant)
            await room.take(count, LONG_S)
            held += count
            most = max(most, held)
            await asyncio.sleep(0)
            held -= count
            room.give_back(count)

        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for tenant, count in asked:
                group.create_task(visit(tenant, count))
        assert most <= places
        assert room.taken == room.waiting == 0

    asyncio.run(run())


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_who_gives_up_while_waiting_leaves_nothing_taken(gives_up: list[bool]) -> None:
    async def run() -> None:
        room = FairRoom(1, 100)
        await room.take(1, LONG_S)

        async def visit() -> None:
            await room.take(1, LONG_S)
            room.give_back()

        tasks = [asyncio.create_task(visit()) for _ in gives_up]
        await asyncio.sleep(0)
        room.give_back()  # granted to the first, which may go away in the same round
        for task, leaves in zip(tasks, gives_up, strict=True):
            if leaves:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert room.taken == room.waiting == 0

    asyncio.run(run())


async def test_tenants_take_turns() -> None:
    room, order = FairRoom(1, 100), []
    await room.take(1, LONG_S)

    async def visit(tenant: str) -> None:
        tenant_var.set(tenant)
        await room.take(1, LONG_S)
        order.append(tenant)
        room.give_back()

    visits = [asyncio.create_task(visit("many")) for _ in range(5)]
    await asyncio.sleep(0)
    visits.append(asyncio.create_task(visit("one")))
    await asyncio.sleep(0)
    room.give_back()
    await asyncio.gather(*visits)
    assert order.index("one") == 1
    assert Counter(order) == {"many": 5, "one": 1}


async def test_the_queue_and_the_wait_are_bounded() -> None:
    room = FairRoom(1, 1)
    await room.take(1, LONG_S)
    waiting = asyncio.create_task(room.take(1, LONG_S))
    await asyncio.sleep(0)
    with pytest.raises(QueueFull):
        await room.take(1, LONG_S)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    with pytest.raises(TimeoutError):
        await room.take(1, SHORT_S)
    assert room.taken == 1


async def test_a_tenant_has_its_most_and_others_have_theirs() -> None:
    room = SessionRoom(5, 2)
    await room.take("a", 2, LONG_S)
    with pytest.raises(CallError) as caught:
        await room.take("a", 1, LONG_S)
    assert caught.value.reason == "QUOTA_EXCEEDED"
    assert caught.value.retry_after_s
    await room.take("b", 2, LONG_S)
    with pytest.raises(CallError) as caught:
        await room.take("c", 2, SHORT_S)
    assert caught.value.reason == "SESSIONS_FULL"
    assert caught.value.retry_after_s
    room.give_back("a")
    await room.take("c", 2, SHORT_S)
    assert (room.taken, room.most) == (5, 2)


RULES = SessionRules(LIMITS, Allowance(cpu_s=1000, memory_bytes=2**31), 60.0, 600.0)
DURATIONS = {"cpu_time": "cpu_s", "cell_cpu_time": "cell_cpu_s", "cell_wall_time": "cell_wall_s"}
SIZES = (
    *("memory_bytes", "disk_bytes", "processes", "output_bytes"),
    *("max_output_bytes", "checkpoints"),
)


@given(st.sampled_from([*DURATIONS, *SIZES]), st.integers(-(2**40), 2**40))
def test_a_limit_is_taken_or_refused_and_never_clipped(name: str, value: int) -> None:
    asked = session_pb2.SessionLimits()
    if name in DURATIONS:
        getattr(asked, name).seconds = value
    elif name in {"processes", "checkpoints"}:
        value = max(-(2**31), min(value, 2**31 - 1))
        setattr(asked, name, value)
    else:
        setattr(asked, name, value)
    field = DURATIONS.get(name, name)
    most = getattr(RULES.most, field)
    if value < 0 or value > most:
        with pytest.raises(CallError) as caught:
            RULES.limits(asked)
        assert caught.value.reason == "INVALID_LIMIT"
        assert caught.value.metadata["limit"] == name
    else:
        found = RULES.limits(asked)
        assert getattr(found, field) == (value or getattr(LIMITS, field))
        assert all(
            getattr(found, other) == getattr(LIMITS, other)
            for other in HostSettings(0, "").max_limits.__slots__
            if other != field
        )


def test_a_cells_limits_are_the_sessions_or_lower() -> None:
    asked = session_pb2.ExecuteRequest(session_id="x", code="1")
    told = requests.cell(asked, LIMITS)
    assert (told.wall_time.seconds, told.cpu_time.seconds) == (120, 20)
    assert (told.session_id, told.code) == ("", "1")
    fill_duration(asked.wall_time, 1.5)
    assert requests.cell(asked, LIMITS).wall_time.ToNanoseconds() == 1_500_000_000
    fill_duration(asked.wall_time, 121)
    with pytest.raises(CallError, match="wall_time"):
        requests.cell(asked, LIMITS)


@pytest.mark.parametrize("asked", [-1, 5, 2**31 - 1])
def test_a_count_that_can_never_be_had_is_a_mistake(asked: int) -> None:
    assert requests.count(0, 4) == 1
    assert requests.count(4, 4) == 4
    with pytest.raises(CallError) as caught:
        requests.count(asked, 4)
    assert caught.value.reason == "INVALID_PARAMETER"


def test_paths_and_variables_are_checked() -> None:
    files = [execution_pb2.SourceFile(path=path) for path in ("a", "b/c", "a")]
    requests.check_files(files[:2])
    for wrong in (files, [execution_pb2.SourceFile(path="../x")]):
        with pytest.raises(CallError) as caught:
            requests.check_files(wrong)
        assert caught.value.reason == "INVALID_PROGRAM"
    requests.check_environment({"A": "b"})
    for variables in ({"A=B": "c"}, {"": "c"}, {"A": "\0"}):
        with pytest.raises(CallError) as caught:
            requests.check_environment(variables)
        assert caught.value.reason == "INVALID_PROGRAM"


@given(st.integers(0, 2**45), st.integers(0, 2**45), st.integers(0, 2**30))
def test_more_memory_and_descriptors_hold_no_fewer_sessions(a: int, b: int, files: int) -> None:
    less, more = sorted((a, b))
    assert 8 <= fitting(less, files) <= fitting(more, files) <= fitting(more, 2 * files) <= 4096


def test_the_hosts_settings_survive_the_way() -> None:
    told = HostSettings(3, "namespaces", ("/opt/x",), ("numpy",), 5, 1, LIMITS, RULES.most)
    assert HostSettings.from_json(told.to_json()) == told
