"""Laws of the service of sessions, over a scripted host: whatever callers and the host do, every
call is answered, sessions opened are sessions open and ended, and no place or turn is lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.session.v1 import session_pb2
from assay.kit.calls import tenant_var
from assay.kit.durations import duration
from assay.kit.errors import CallError
from assay.sandbox.sessions.service import Sessions
from sessions_support import counted, scripted, settings
from waiting_support import until

PLACES, CELLS, CALLERS, STEPS = 6, 2, 5, 14
CODES = ("echo x", "echo y", "sleep 0.01", "wait", "over DIED", "lost")
KNOWN = {
    *("SESSION_NOT_FOUND", "SESSION_ENDED", "SESSION_LOST", "SESSION_BUSY", "SESSIONS_FULL"),
    *("LEASE_EXPIRED", "DEADLINE_EXCEEDED", "QUOTA_EXCEEDED", "QUEUE_FULL", "WORKER_DIED"),
    "STARTING",
}


class Chaos:
    """Callers who open, use, copy and close sessions of one another, and go away in mid-call."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sessions = Sessions(
            settings(places=PLACES, cells=CELLS, per_tenant=4, waiting_cells=3), scripted()
        )
        self.ids: list[str] = []
        self.reasons: Counter[str] = Counter()

    async def one(self, session_id: str) -> None:
        pick = self.random.random()
        service, timeout_s = self.sessions, self.random.choice((0.02, 0.2, 5.0))
        if pick < 0.25 or not session_id:
            lease = duration(self.random.choice((0.05, 60.0)))
            create = session_pb2.CreateRequest(count=self.random.randint(1, 2), lease=lease)
            response: Any = await service.create(create, timeout_s=timeout_s)
            self.ids += [made.id for made in response.sessions]
        elif pick < 0.35:
            fork = session_pb2.ForkRequest(session_id=session_id, count=2)
            response = await service.fork(fork, timeout_s=timeout_s)
            self.ids += [made.id for made in response.sessions]
        elif pick < 0.5:
            await service.close(session_pb2.CloseRequest(session_ids=[session_id]), timeout_s=5.0)
        elif pick < 0.6:
            checkpoint = session_pb2.CheckpointRequest(session_id=session_id)
            await service.checkpoint(checkpoint, timeout_s=timeout_s)
        else:
            code = self.random.choice(CODES)
            limit_s = 0.05 if code == "wait" else timeout_s
            request = session_pb2.ExecuteRequest(session_id=session_id, code=code)
            events = [event async for event in service.execute(request, timeout_s=limit_s)]
            assert events[-1].HasField("result")

    async def caller(self, number: int) -> None:
        tenant_var.set("ab"[number % 2])
        for _ in range(STEPS):
            task = asyncio.create_task(self.one(self.random.choice(self.ids) if self.ids else ""))
            if self.random.random() < 0.2:
                await asyncio.sleep(self.random.random() * 0.01)
                task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(outcome, CallError):
                self.reasons[outcome.reason] += 1
            elif isinstance(outcome, BaseException):
                assert isinstance(outcome, asyncio.CancelledError), outcome

    async def killer(self) -> None:
        await asyncio.sleep(self.random.random() * 0.2)
        if self.sessions.host_pid is not None:
            os.kill(self.sessions.host_pid, signal.SIGKILL)

    async def run(self) -> None:
        await self.sessions.start()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for number in range(CALLERS):
                group.create_task(self.caller(number))
            if self.random.random() < 0.5:
                group.create_task(self.killer())
        assert set(self.reasons) <= KNOWN, self.reasons
        for tenant in "ab":
            tenant_var.set(tenant)
            close = session_pb2.CloseRequest(session_ids=self.ids)
            await self.sessions.close(close, timeout_s=5.0)
        await until(lambda: counted(self.sessions)["_cells_running"] == 0)
        await until(lambda: self.sessions.taken == 0)
        shown = counted(self.sessions)
        assert shown["s_open"] == 0
        assert shown["s_opened_total"] == shown["s_ended_total"]
        full = session_pb2.CreateRequest(count=4)  # all that a tenant may have
        for tenant in "a":
            tenant_var.set(tenant)
            made = await self.sessions.create(full, timeout_s=9.0)
            assert len(made.sessions) == 4
        await self.sessions.close()


@pytest.mark.slow
@hypothesis.settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_no_place_no_turn_and_no_answer_is_lost(seed: int) -> None:
    async def run() -> None:
        await Chaos(seed).run()

    asyncio.run(run())
