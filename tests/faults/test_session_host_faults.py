"""The service of sessions over a host that fails on purpose: every end has its own reason."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

import pytest

from assay.api.session.v1 import session_pb2
from assay.kit.access import Access
from assay.kit.channels import open_channel
from assay.kit.durations import duration, seconds_of
from assay.kit.errors import CallError
from assay.kit.serving import ServeConfig
from assay.kit.tokens import hash_token, new_token
from assay.sandbox.sessions.service import Sessions
from sessions_support import (
    RULES,
    Caller,
    comes_true,
    counted,
    refused,
    scripted,
    serving,
    settings,
)
from waiting_support import exists, until

SHORT_S = 0.3
WAITS_S = 3.0  # a deadline that a busy machine still answers before


def named(session_id: str) -> session_pb2.GetFilesRequest:
    return session_pb2.GetFilesRequest(session_id=session_id)


async def free(caller: Caller, session_id: str) -> None:
    """Waits until a session is free."""

    async def is_free() -> bool:
        return not await busy(caller, session_id)

    await comes_true(is_free)


async def busy(caller: Caller, session_id: str) -> bool:
    try:
        await caller.call("GetFiles", named(session_id))
    except CallError as error:
        assert error.reason == "SESSION_BUSY"  # noqa: PT017 - any other is a failure
        return True
    return False


async def host_pid(sessions: Sessions) -> int:
    assert sessions.host_pid is not None
    return sessions.host_pid


async def test_a_cell_streams_and_its_result_comes_last() -> None:
    async with serving(Sessions(settings(), scripted())) as (_, caller):
        (one,) = await caller.open()
        events = await caller.events(caller.begin(one, "echo hello"))
        assert [event.WhichOneof("event") for event in events] == ["output", "result"]
        assert events[0].output.data == events[1].result.stdout.data == b"hello"
        assert events[1].result.usage.HasField("queue_time")
        assert (await caller.run(one, "echo")).number == 2


async def test_every_method_reaches_the_host() -> None:
    async with serving(Sessions(settings(), scripted())) as (_, caller):
        (one,) = await caller.open()
        made = await caller.call("Checkpoint", session_pb2.CheckpointRequest(session_id=one))
        fork = session_pb2.ForkRequest(session_id=one, count=2, lease=duration(7))
        copies = (await caller.call("Fork", fork)).sessions
        assert [round(seconds_of(copy.lease_left)) for copy in copies] == [7, 7]
        assert len({one, *(copy.id for copy in copies)}) == 3
        for copy in copies:
            assert (await caller.run(copy.id, "echo")).number == 1
        back = session_pb2.RollbackRequest(session_id=one, checkpoint_id=made.checkpoint_id)
        await caller.call("Rollback", back)
        await caller.call("PutFiles", session_pb2.PutFilesRequest(session_id=one))
        assert [file.path for file in (await caller.call("GetFiles", named(one))).files] == ["a"]
        drop = session_pb2.DropCheckpointsRequest(session_id=one)
        await caller.call("DropCheckpoints", drop)
        assert (await caller.described()).open == 3
        renew = session_pb2.RenewRequest(session_ids=[one, "x"], lease=duration(9))
        renewed = await caller.call("Renew", renew)
        assert (renewed.sessions[0].id, list(renewed.missing)) == (one, ["x"])
        assert round(seconds_of(renewed.sessions[0].lease_left)) == 9
        await caller.close(one, one, "x", copies[0].id)
        assert (await caller.described()).open == 1
        assert (await refused(caller.run(one, "echo"))).reason == "SESSION_NOT_FOUND"
        assert (await caller.run(copies[1].id, "echo")).number == 2


async def test_a_host_that_dies_loses_its_sessions_and_the_next_one_serves() -> None:
    sessions = Sessions(settings(), scripted())
    async with serving(sessions) as (_, caller):
        one, idle = await caller.open(2)
        killed = await host_pid(sessions)
        error = await refused(caller.run(one, "die"))
        assert error.reason == "SESSION_LOST"
        assert error.metadata["cause"] == "host-died"
        assert "signal 9" in str(error)
        assert (await refused(caller.call("GetFiles", named(idle)))).reason == "SESSION_LOST"
        (again,) = await caller.open()  # waits for the new host
        assert (await caller.run(again, "echo")).number == 1
        assert not exists(killed)
        assert (await caller.described()).open == 1


async def test_a_call_that_the_host_forgets_loses_its_session_alone() -> None:
    sessions = Sessions(settings(patience_s=2.0, cells=1), scripted())
    async with serving(sessions) as (_, caller):
        muted, other = await caller.open(2)
        quick = session_pb2.ExecuteRequest(
            session_id=muted, code="mute", wall_time=duration(SHORT_S)
        )
        cell = asyncio.create_task(refused(caller.events(caller.stub.Execute(quick, timeout=30))))
        await asyncio.sleep(SHORT_S / 2)
        await caller.call("GetFiles", named(other))  # the host lives
        error = await cell
        assert (error.reason, error.metadata["cause"]) == ("SESSION_LOST", "no-answer")
        assert (await caller.run(other, "echo")).number == 1
        assert sessions.host_restarts == 0
        assert (await caller.described()).open == 1


async def test_a_host_that_answers_nothing_is_killed() -> None:
    sessions = Sessions(settings(patience_s=2.0), scripted())
    async with serving(sessions) as (_, caller):
        one, other = await caller.open(2)
        pid = await host_pid(sessions)
        quick = session_pb2.ExecuteRequest(session_id=one, code="deaf", wall_time=duration(SHORT_S))
        error = await refused(caller.events(caller.stub.Execute(quick, timeout=30)))
        assert error.metadata["cause"] == "no-answer"
        (again,) = await caller.open()
        assert (await caller.run(again, "echo")).number == 1
        assert (await refused(caller.run(other, "echo"))).metadata["cause"] == "host-died"
        assert not exists(pid)


async def test_no_place_and_no_turn_is_lost_with_hosts() -> None:
    sessions = Sessions(settings(places=2, cells=1), scripted())
    async with serving(sessions) as (_, caller):
        for _ in range(4):
            one, two = await caller.open(2)
            died, _ = await asyncio.gather(
                refused(caller.run(one, "die")),
                caller.run(two, "echo"),  # answered where it came first
                return_exceptions=True,
            )
            assert isinstance(died, CallError)
            errors = [died, await refused(caller.run(two, "echo"))]
            assert {error.reason for error in errors} == {"SESSION_LOST"}


async def test_a_host_that_cannot_work_here_says_why_and_the_rest_is_served() -> None:
    async with serving(Sessions(settings(), scripted("unready"))) as (_, caller):
        described = await caller.described()
        assert (described.capacity, list(described.languages), described.copies) == (0, [], False)
        assert "no walls here" in described.no_copies_because
        error = await refused(caller.open())
        assert error.reason == "NO_SESSIONS"
        assert "no walls here" in str(error)


async def test_a_host_that_refused_is_tried_again(tmp_path: Path) -> None:
    sign = tmp_path / "ready"
    sessions = Sessions(settings(refused_s=SHORT_S), scripted(f"unready {sign}"))
    async with serving(sessions) as (_, caller):
        assert (await refused(caller.open())).reason == "NO_SESSIONS"
        sign.touch()
        await until(lambda: counted(sessions)["_host_up"])
        (one,) = await caller.open()
        assert (await caller.run(one, "echo")).number == 1


async def test_a_host_that_dies_at_its_start_is_tried_again_and_calls_say_so() -> None:
    sessions = Sessions(settings(), scripted("dies"))
    async with serving(sessions) as (_, caller):
        error = await refused(caller.call("Create", session_pb2.CreateRequest(), WAITS_S))
        assert error.reason == "STARTING"
        assert error.retry_after_s
        await until(lambda: sessions.host_restarts > 1)


async def test_where_none_are_kept_the_answer_says_why() -> None:
    async with serving(Sessions(settings(), "the operator said so")) as (_, caller):
        assert "operator" in str(await refused(caller.open()))
        assert "operator" in (await caller.described()).no_copies_because


async def test_sessions_that_cannot_be_made_take_no_place() -> None:
    async with serving(Sessions(settings(places=1), scripted("nomake"))) as (_, caller):
        for _ in range(3):
            assert (await refused(caller.open())).reason == "WORKER_DIED"
        assert (await caller.described()).open == 0


async def test_what_the_program_did_is_told_apart_from_what_we_did() -> None:
    async with serving(Sessions(settings(), scripted())) as (_, caller):
        ended, lost, odd = await caller.open(3)
        result = await caller.run(ended, "over BUDGET_SPENT")
        assert result.session_over
        error = await refused(caller.run(ended, "echo"))
        assert (error.reason, error.metadata["end"]) == ("SESSION_ENDED", "budget-spent")
        assert len((await caller.call("GetFiles", named(ended))).files) == 1
        checkpoint = session_pb2.CheckpointRequest(session_id=ended)
        assert (await refused(caller.call("Checkpoint", checkpoint))).reason == "SESSION_ENDED"
        back = session_pb2.RollbackRequest(session_id=ended, checkpoint_id="c1")
        await caller.call("Rollback", back)
        assert (await caller.run(ended, "echo")).end == session_pb2.CELL_END_COMPLETED
        error = await refused(caller.run(lost, "lost"))
        assert (error.reason, error.metadata["cause"]) == ("SESSION_LOST", "scripted")
        assert (await refused(caller.run(lost, "echo"))).metadata["cause"] == "scripted"
        assert (await refused(caller.run(odd, "garbage"))).reason == "INTERNAL"


async def test_one_thing_at_a_time_and_nothing_is_done_twice() -> None:
    async with serving(Sessions(settings(), scripted())) as (_, caller):
        (one,) = await caller.open()
        call = caller.begin(one, "wait")
        assert (await call.read()).HasField("output")  # it runs
        assert await busy(caller, one)
        assert (await refused(caller.run(one, "echo"))).reason == "SESSION_BUSY"
        call.cancel()
        await free(caller, one)
        assert (await caller.run(one, "echo")).number == 2


async def test_a_caller_who_goes_away_interrupts_the_cell_and_the_session_goes_on() -> None:
    async with serving(Sessions(settings(cells=1), scripted())) as (_, caller):
        (one,) = await caller.open()
        late = await refused(caller.run(one, "stubborn 2", 1.0))
        assert late.reason == "DEADLINE_EXCEEDED"
        assert (await refused(caller.run(one, "echo"))).reason == "SESSION_BUSY"  # it still ends
        await free(caller, one)
        assert (await caller.run(one, "echo")).number == 2


async def test_waiting_for_a_turn_counts_towards_no_limit_and_is_told() -> None:
    sessions = Sessions(settings(cells=1), scripted())
    async with serving(sessions) as (_, caller):
        slow, quick = await caller.open(2)
        first = caller.begin(slow, "wait")
        await first.read()
        second = asyncio.create_task(caller.run(quick, "echo"))
        await until(lambda: counted(sessions)["_cells_waiting"] == 1)
        await asyncio.sleep(SHORT_S)
        first.cancel()
        result = await second
        assert seconds_of(result.usage.queue_time) >= SHORT_S
        assert result.end == session_pb2.CELL_END_COMPLETED


async def test_too_many_waiting_cells_are_refused_and_may_come_back() -> None:
    sessions = Sessions(settings(cells=1, waiting_cells=1), scripted())
    async with serving(sessions) as (_, caller):
        ids = await caller.open(3)
        calls = [caller.begin(one, "wait") for one in ids[:2]]
        await until(lambda: counted(sessions)["_cells_waiting"] == 1)
        error = await refused(caller.run(ids[2], "echo"))
        assert error.reason == "QUEUE_FULL"
        assert error.retry_after_s
        for call in calls:
            call.cancel()
        for one in ids:
            await free(caller, one)
        assert (await caller.run(ids[2], "echo")).number == 1


async def test_a_create_over_the_capacity_waits_for_a_place() -> None:
    async with serving(Sessions(settings(places=2), scripted())) as (_, caller):
        one, _ = await caller.open(2)
        error = await refused(caller.call("Create", session_pb2.CreateRequest(), WAITS_S))
        assert error.reason == "SESSIONS_FULL"
        assert error.retry_after_s
        waiting = asyncio.create_task(caller.open())
        await asyncio.sleep(SHORT_S)
        assert not waiting.done()
        await caller.close(one)
        assert len(await waiting) == 1
        assert (await caller.described()).open == 2
        fork = session_pb2.ForkRequest(session_id=(await waiting)[0])
        assert (await refused(caller.call("Fork", fork, WAITS_S))).reason == "SESSIONS_FULL"


async def test_sessions_made_for_a_caller_who_has_gone_are_ended() -> None:
    sessions = Sessions(settings(places=3), scripted())
    create = session_pb2.CreateRequest(count=2)
    gone = 0
    async with serving(sessions) as (_, caller):
        (held,) = await caller.open()
        fork = session_pb2.ForkRequest(session_id=held, count=2)
        for turn in range(60):
            work = sessions.create(create, timeout_s=9) if turn % 2 else sessions.fork(
                fork, timeout_s=9
            )  # fmt: skip
            task = asyncio.create_task(work)
            for _ in range(turn // 2):  # rounds of the loop that it has
                await asyncio.sleep(0.0003)
            task.cancel()
            (answer,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(answer, BaseException):
                gone += 1
            else:
                await caller.close(*(one.id for one in answer.sessions))
            await free(caller, held)
        assert gone
        assert len(await caller.open(2)) == 2  # waits for what is still being ended
        assert (await caller.described()).open == 3


async def test_a_lease_that_runs_out_has_its_own_reason_and_frees_the_place() -> None:
    async with serving(Sessions(settings(places=1), scripted())) as (_, caller):
        (one,) = await caller.open(lease=duration(0.1))
        (two,) = await caller.open()  # waits for the place
        assert (await refused(caller.run(one, "echo"))).reason == "LEASE_EXPIRED"
        assert (await caller.run(two, "echo")).number == 1


async def test_a_cell_outlives_the_lease_of_its_session() -> None:
    async with serving(Sessions(settings(), scripted())) as (_, caller):
        (one,) = await caller.open(lease=duration(0.1))
        assert (await caller.run(one, "sleep 0.4")).number == 1
        assert (await caller.run(one, "sleep 0.4")).number == 2


async def test_limits_leases_and_languages_are_checked() -> None:
    async with serving(Sessions(settings(), scripted())) as (_, caller):
        most = RULES.most
        for fields in (
            {"limits": session_pb2.SessionLimits(memory_bytes=most.memory_bytes + 1)},
            {"limits": session_pb2.SessionLimits(processes=-1)},
            {"lease": duration(RULES.max_lease_s + 1)},
        ):
            assert (await refused(caller.open(**fields))).reason == "INVALID_LIMIT"
        assert (await refused(caller.open(language="cobol"))).reason == "UNKNOWN_LANGUAGE"
        assert (await refused(caller.open(9))).reason == "INVALID_PARAMETER"
        (one,) = await caller.open(limits=session_pb2.SessionLimits(processes=3))
        long = session_pb2.ExecuteRequest(session_id=one, wall_time=duration(most.cell_wall_s + 1))
        error = await refused(caller.events(caller.stub.Execute(long, timeout=30)))
        assert error.reason == "INVALID_LIMIT"
        renew = session_pb2.RenewRequest(session_ids=[one], lease=duration(601))
        assert (await refused(caller.call("Renew", renew))).reason == "INVALID_LIMIT"


async def test_a_call_for_another_replica_is_refused_and_nothing_is_done() -> None:
    async with serving(Sessions(settings(), scripted())) as (server, caller):
        (one,) = await caller.open()
        async with open_channel(server.address) as channel:
            there = Caller(channel, replica="there:2")
            error = await refused(there.close(one))
            assert error.reason == "WRONG_REPLICA"
            assert error.metadata["here"] == "here:1"
            assert (await refused(there.run(one, "echo"))).reason == "WRONG_REPLICA"
            here = Caller(channel, replica="here:1")
            assert (await here.run(one, "echo")).number == 1


async def test_tenants_do_not_see_one_another(tmp_path: Path) -> None:
    tokens = {"a": new_token(), "b": new_token()}
    file = tmp_path / "tokens"
    file.write_text("".join(f"{hash_token(*pair).line}\n" for pair in tokens.items()))
    file.chmod(0o600)
    config = ServeConfig(access=Access(tokens_file=file))
    sessions = Sessions(settings(places=3, per_tenant=2), scripted())
    async with serving(sessions, config) as (server, _), open_channel(server.address) as channel:
        a, b = (Caller(channel, token=tokens[name]) for name in "ab")
        (one, _) = await a.open(2)
        assert (await refused(b.run(one, "echo"))).reason == "SESSION_NOT_FOUND"
        await b.close(one)
        assert (await a.run(one, "echo")).number == 1
        assert (await refused(a.open())).reason == "QUOTA_EXCEEDED"
        await b.open()


async def test_open_sessions_may_be_used_and_closed_while_the_server_drains() -> None:
    sessions = Sessions(settings(drain_s=60.0), scripted())
    async with serving(sessions) as (server, caller):
        one, two = await caller.open(2)
        stopping = asyncio.create_task(server.stop(5.0))
        renew = session_pb2.RenewRequest(session_ids=[one])

        async def drains() -> bool:
            answer = await caller.call("Renew", renew)
            return bool(answer.sessions[0].HasField("ends_in"))

        await comes_true(drains)
        assert (await caller.run(one, "echo")).number == 1
        assert (await refused(caller.open())).reason == "DRAINING"
        fork = session_pb2.ForkRequest(session_id=one)
        assert (await refused(caller.call("Fork", fork))).reason == "DRAINING"
        await caller.close(one)
        assert not stopping.done()
        assert (await caller.run(two, "echo")).number == 1
        await caller.close(two)
        async with asyncio.timeout(30):  # the last one's end is the end, long before the 60 s
            await stopping


async def test_what_outstays_the_drain_is_lost_counted_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sessions = Sessions(settings(drain_s=SHORT_S), scripted())
    with caplog.at_level(logging.INFO, "assay.sandbox.sessions"):
        async with serving(sessions) as (server, caller):
            one, _ = await caller.open(2)
            pid = await host_pid(sessions)
            cell = asyncio.create_task(refused(caller.run(one, "wait")))
            await until(lambda: counted(sessions)["_cells_running"] == 1)
            await server.stop(SHORT_S)
            assert (await cell).reason == "DRAINING"
            await until(lambda: not exists(pid))
    assert "2 open sessions were lost with the server" in caplog.text
    ends = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert [entry["end"] for entry in ends] == ["drained", "drained"]
    assert {"session", "tenant", "language", "cells", "cpu_s"} <= set(ends[0])


async def test_without_a_time_of_its_own_the_drain_is_as_for_any_service() -> None:
    sessions = Sessions(settings(), scripted())
    async with serving(sessions) as (server, caller):
        (one,) = await caller.open()
        cell = asyncio.create_task(caller.run(one, "sleep 1"))
        await until(lambda: counted(sessions)["_cells_running"] == 1)
        stopping = asyncio.create_task(server.stop(30.0))
        await asyncio.sleep(SHORT_S / 3)
        assert (await refused(caller.call("GetFiles", named(one)))).reason == "DRAINING"
        assert (await cell).number == 1  # the running call had its time
        await stopping


async def test_the_counts_add_up() -> None:
    sessions = Sessions(settings(places=4), scripted())
    async with serving(sessions) as (_, caller):
        one, two, _ = await caller.open(3)
        await caller.run(one, "echo")
        await caller.run(one, "over DIED")
        await caller.call("Fork", session_pb2.ForkRequest(session_id=two))
        await caller.close(one)
        await refused(caller.run(two, "die"))
        await caller.open()
        shown = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for collector in sessions.metrics.collectors
            for family in collector.collect()
            for sample in family.samples
        }

    def of(name: str, **labels: str) -> float:
        return shown[f"assay_sandbox_session{name}", tuple(sorted(labels.items()))]

    assert of("s_opened_total", language="python", how="created") == 4
    assert of("s_opened_total", language="python", how="forked") == 1
    assert of("s_ended_total", language="python", how="closed") == 1
    assert of("s_ended_total", language="python", how="lost") == 3
    assert of("s_open") == 1
    assert of("_cells_total", language="python", end="completed") == 1
    assert of("_cells_total", language="python", end="died") == 1
    assert of("_faults_total", method="Execute", reason="SESSION_LOST") == 1
    assert of("_host_restarts_total") == 1
    assert of("_cells_running") == of("_cells_waiting") == 0


async def test_a_killed_host_while_many_compute_answers_all_of_them() -> None:
    sessions = Sessions(settings(places=64, cells=8), scripted())
    async with serving(sessions) as (_, caller):
        ids = await caller.open(64)
        pid = await host_pid(sessions)
        cells = [asyncio.create_task(refused(caller.run(one, "wait"))) for one in ids]
        await asyncio.sleep(SHORT_S)
        os.kill(pid, signal.SIGKILL)
        errors = await asyncio.gather(*cells)
        assert {error.reason for error in errors} == {"SESSION_LOST"}
        (again,) = await caller.open()
        assert (await caller.run(again, "echo")).number == 1
