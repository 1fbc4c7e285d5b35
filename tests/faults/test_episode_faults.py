"""What a sandbox does to an episode's session is a fault; what the program does is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from assay.clients.testing import FakeSessionServer, SessionKnobs
from assay.clients.types import Item, Judgement, Result
from assay.environments import Ending, EpisodeLimits, EpisodeOutcome
from assay.environments.cache import ToolCache
from assay.environments.services import EpisodeSandbox, open_sandbox
from assay.environments.shipped.python import PythonEnvironment
from assay.kit.errors import ConfigError
from worlds_support import Script, call, play

ROW = {"prompt": "?", "reference": "42"}
SCRIPT: Script = (call("python", code="x = 41"), call("python", code="x + 1"), "42")


class Paying:
    """Services that pay for every answer: a fault that is judged all the same is seen."""

    def __init__(self) -> None:
        self.asked = 0

    async def score(self, item: Item) -> Result:
        self.asked += 1
        return Result("", Judgement(1.0, "correct"))


@contextmanager
def faked(**knobs: float) -> Iterator[tuple[FakeSessionServer, EpisodeSandbox]]:
    server = FakeSessionServer(knobs=SessionKnobs(**knobs))  # type: ignore[arg-type]
    with server, open_sandbox(server.address) as sandbox:
        yield server, sandbox


async def played(
    sandbox: EpisodeSandbox, *, seconds: float = 30.0, wait_s: float = 20.0
) -> tuple[EpisodeOutcome, int]:
    services = Paying()
    outcome, _ = await play(
        PythonEnvironment, ROW, SCRIPT, shared=sandbox, services=services,
        settings={"wait_s": wait_s, "cell_s": 5.0}, limits=EpisodeLimits(seconds=seconds),
    )  # fmt: skip
    return outcome, services.asked


@pytest.mark.parametrize(
    ("knob", "reasons"),
    [
        ("lose", {"SESSION_LOST"}),
        ("expire", {"LEASE_EXPIRED"}),
        ("die", {"SESSION_LOST"}),
        ("cut", {"UNREACHABLE", "UNAVAILABLE", "DRAINING", "INTERNAL"}),
    ],
)
async def test_what_is_done_to_a_session_is_a_fault(knob: str, reasons: set[str]) -> None:
    with faked(**{knob: 1}) as (_, sandbox):
        outcome, asked = await played(sandbox)
    assert outcome.ending is Ending.FAULT
    assert outcome.result.fault is not None
    assert outcome.result.fault.reason in reasons
    assert outcome.result.reward is None
    assert not outcome.trains
    assert not asked


async def test_a_full_sandbox_is_waited_for() -> None:
    with faked(full=3) as (_, sandbox):
        outcome, _ = await played(sandbox)
    assert (outcome.ending, outcome.result.reward) == (Ending.ANSWERED, 1.0)


async def test_a_sandbox_that_stays_full_is_a_fault_and_no_zero() -> None:
    with faked() as (server, sandbox):
        server.capacity = 1
        held = await sandbox.open("python")
        outcome, asked = await played(sandbox, wait_s=0.5)
        assert outcome.ending is Ending.FAULT
        assert outcome.result.fault is not None
        assert outcome.result.fault.reason == "SESSIONS_FULL"
        outcome, _ = await played(sandbox, seconds=0.5)
        assert outcome.ending is Ending.TIME_LIMIT
        assert not outcome.trains
        assert not asked
        await sandbox.ask(held.close)
        outcome, _ = await played(sandbox)
        assert outcome.ending is Ending.ANSWERED


async def test_a_wait_that_is_given_up_leaves_no_session_behind() -> None:
    with faked() as (server, sandbox):
        server.capacity = 1
        held = await sandbox.open("python")
        waiting = asyncio.ensure_future(sandbox.open("python", wait_s=20.0))
        await asyncio.sleep(0.3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await sandbox.ask(held.close)
        for _ in range(100):
            await asyncio.sleep(0.05 if server.living else 0)
        assert not server.living
        outcome, _ = await played(sandbox)
        assert outcome.ending is Ending.ANSWERED


async def test_an_episode_whose_calls_are_all_shared_takes_no_session() -> None:
    cache, services = ToolCache(), Paying()
    with faked() as (server, sandbox):
        for _ in range(2):
            outcome, read = await play(
                PythonEnvironment, ROW, SCRIPT, shared=sandbox, services=services, cache=cache
            )
            assert outcome.ending is Ending.ANSWERED
            assert read[2] == "42"
    assert server.cells == ["x = 41", "x + 1"]
    assert cache.taken().hits == 2


async def test_a_cell_that_hangs_is_cut_by_the_episodes_seconds() -> None:
    with faked(hang=1) as (_, sandbox):
        outcome, asked = await played(sandbox, seconds=1.0)
    assert outcome.ending is Ending.TIME_LIMIT
    assert not asked


async def test_sessions_are_closed_with_their_episodes_and_their_sandbox() -> None:
    with faked() as (server, sandbox):
        await played(sandbox)
        assert not server.living
        await sandbox.open("python")
    assert not server.living


def test_a_sandbox_that_is_not_there_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.environments.services._READY_S", 0.5)
    with (
        pytest.raises(ConfigError, match="no sessions at the sandbox"),
        open_sandbox("127.0.0.1:9"),
    ):
        pass
