"""The reward function in AReaL's own process pool, and in pools by fork and by spawn.

AReaL's package imports its whole stack; its wrapper is loaded from the installed file instead.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import multiprocessing
import pickle
import sys
import time
import types
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients.testing import FakeRewardServer, Knobs
from assay.clients.trainers import areal
from assay.clients.trainers.common.contact import FirstContactError
from assay.clients.trainers.common.faults import FaultError
from assay.kit.errors import ConfigError

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

ROW = {"answer": "4", "task": "math", "messages": [{"role": "user", "content": "2 + 2?"}]}


@pytest.fixture(scope="module")
def wrapper_class() -> Iterator[Any]:
    try:
        files = importlib.metadata.files("areal") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("areal is not installed")
    root = Path(str(next(f for f in files if str(f) == "areal/__init__.py").locate())).parent
    names = {"areal": root, "areal.utils": root / "utils", "areal.api": root / "api"}
    for name, folder in names.items():
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    from areal.api import reward_api

    yield reward_api.AsyncRewardWrapper
    reward_api.AsyncRewardWrapper._atexit_shutdown_all()
    for name in [name for name in sys.modules if name == "areal" or name.startswith("areal.")]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def nobody_is_away() -> None:
    areal._away.clear()


def ask(response: str, **more: Any) -> Any:
    return partial(areal.reward_fn, "2 + 2?", response, [1], [2, 3], **{**ROW, **more})


async def test_areals_pool_gives_the_servers_rewards(
    wrapper_class: Any, environment: pytest.MonkeyPatch
) -> None:
    assert ask(RIGHT)() == 1.0  # a client in the parent, before the pool forks
    wrapped = wrapper_class(areal.reward_fn, max_workers=7)
    for response, reward in ((RIGHT, 1.0), (WRONG, 0.0), (f"{RIGHT}<|im_end|>\n", 1.0)):
        assert await wrapped("2 + 2?", response, [1], [2], **ROW) == reward


async def test_a_fault_comes_out_of_areals_pool_as_an_exception(
    wrapper_class: Any, troubled: Trouble
) -> None:
    row = {**ROW, "answer": troubled.reference}
    workers = {"UNREACHABLE": 2, "QUOTA_EXCEEDED": 3, "UNUSABLE_REFERENCE": 4}[troubled.reason]
    wrapped = wrapper_class(areal.reward_fn, max_workers=workers, max_retries=1)
    if troubled.reason == "UNREACHABLE":  # a process of the pool never met the server
        with pytest.raises(FirstContactError, match="no reward server answers"):
            await wrapped("2 + 2?", RIGHT, [1], [2], **row)
        return
    with pytest.raises(FaultError, match=troubled.reason):
        await wrapped("2 + 2?", RIGHT, [1], [2], **row)


async def test_a_server_that_is_away_makes_no_zeros_of_those_who_wait(
    wrapper_class: Any, environment: pytest.MonkeyPatch, dead_target: str
) -> None:
    environment.setenv("ASSAY_TARGET", dead_target)
    environment.setenv("ASSAY_TIMEOUT_S", "1")
    wrapped = wrapper_class(areal.reward_fn, 3.0, max_workers=1, max_retries=3)
    asked = [wrapped("2 + 2?", RIGHT, [1], [2], **ROW) for _ in range(24)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {FirstContactError}


def test_a_server_that_goes_away_is_waited_for_by_one_call(
    environment: pytest.MonkeyPatch, dead_target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.setenv("ASSAY_TARGET", dead_target)
    environment.setenv("ASSAY_TIMEOUT_S", "1")
    asked: list[object] = []
    ours = areal.score
    monkeypatch.setattr(areal, "score", lambda *all_of: asked.append(all_of) or ours(*all_of))
    for _ in range(24):
        with pytest.raises(FaultError, match="UNREACHABLE"):
            ask(RIGHT)()
    assert len(asked) < 24


async def test_areals_pool_makes_zero_of_what_waits_too_long(wrapper_class: Any) -> None:
    """The trap for which there is a workflow of ours."""
    assert await wrapper_class(slow, 0.05, max_workers=5, max_retries=1)() == 0


def slow() -> float:
    time.sleep(0.5)
    return 1.0


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_any_pool_will_do(method: str, environment: pytest.MonkeyPatch) -> None:
    assert ask(RIGHT)() == 1.0
    assert pickle.loads(pickle.dumps(areal.reward_fn)) is areal.reward_fn
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(ask(WRONG)).result() == 0.0
        fault = pool.submit(ask(RIGHT, verifier="no-such-verifier")).exception()
    assert isinstance(fault, FaultError)
    assert fault.fault.reason == "UNKNOWN_VERIFIER"


def test_a_time_out_that_areal_makes_zero_of_is_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_TIMEOUT_S", "60")
    with pytest.raises(ConfigError, match="AReaL makes 0 of what takes its pool 15 s"):
        ask(RIGHT)()


async def test_the_awaited_function_has_no_such_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_TIMEOUT_S", "60")
    async with FakeRewardServer(knobs=Knobs(unavailable=1)) as server:
        monkeypatch.setenv("ASSAY_TARGET", server.address)
        assert await areal.async_reward_fn("2 + 2?", "4", [1], [2], answer="4") == 1.0


def test_only_drop_is_possible(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_ON_FAULT", "mask")
    with pytest.raises(ConfigError, match="with AReaL choose one of: drop"):
        ask(RIGHT)()
