"""One sample at a time, and the adapters that need no trainer to be imported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from assay.clients.testing import FakeRewardServer
from assay.clients.trainers import areal, verifiers
from assay.clients.trainers.common.faults import FaultError
from assay.clients.trainers.common.settings import Settings, close_clients
from assay.clients.trainers.common.single import read_item
from assay.kit.errors import ConfigError

SETTINGS = Settings("a:1", task="math")


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeRewardServer]:
    areal._away.clear()
    async with FakeRewardServer() as server:
        monkeypatch.setenv("ASSAY_TARGET", server.address)
        yield server
        close_clients()


def test_a_sample_is_of_no_group_and_has_no_name() -> None:
    row = {"answer": "4", "messages": [], "parameters": {"strict": True}}
    item = read_item(SETTINGS, "2 + 2?", "4", row, response_token_count=3, truncated=True)
    assert (item.id, item.group_id) == ("", "")
    assert (item.reference, item.task, item.parameters) == ("4", "math", {"strict": True})
    assert (item.response_token_count, item.truncated) == (3, True)


def test_a_row_may_name_its_verifier() -> None:
    item = read_item(Settings("a:1"), "", "4", {"verifier": "exact", "task": "math"})
    assert (item.verifier, item.task) == ("exact", "")


def test_a_reference_may_be_json() -> None:
    item = read_item(Settings("a:1", reference="json"), "", "4", {"answer": '["4", "four"]'})
    assert item.reference == ["4", "four"]
    with pytest.raises(ConfigError, match="is no JSON"):
        read_item(Settings("a:1", reference="json"), "", "4", {"answer": "four"})


async def test_areals_reward(server: FakeRewardServer) -> None:
    for said, reward in (("4", 1.0), ("5", 0.0), ("4<|im_end|>", 1.0)):
        assert await areal.async_reward_fn("2 + 2?", said, [1], [2], answer="4") == reward
    with pytest.raises(FaultError, match="MISSING_REFERENCE"):
        await areal.async_reward_fn("2 + 2?", "4", [1], [2])


def test_areal_is_not_imported_for_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Workflow'"):
        _ = areal.Workflow


@pytest.mark.parametrize(("seconds", "refused"), [("14", False), ("14.5", True)])
def test_areals_pool_must_outlast_the_function(
    seconds: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_TARGET", "127.0.0.1:1")
    monkeypatch.setenv("ASSAY_TIMEOUT_S", seconds)
    monkeypatch.setattr(areal, "score", lambda *_: [SimpleNamespace(fault=None, outcome=None)])
    with pytest.raises(ConfigError if refused else AttributeError):
        areal.reward_fn("2 + 2?", "4", [1], [2], answer="4")


class Trace(SimpleNamespace):
    """A trace of verifiers, as far as a reward sees it."""

    def record_metrics(self, values: dict[str, float]) -> None:
        self.metrics = values


class Data(dict[str, Any]):
    """The data of a task of verifiers."""

    prompt_text = "2 + 2?"


async def test_the_reward_of_a_trace(server: FakeRewardServer) -> None:
    trace = Trace(last_reply="4")
    assert await verifiers.reward(Data(answer="4", name=None), trace) == 1.0
    assert trace.metrics == {}
    with pytest.raises(FaultError, match="MISSING_REFERENCE"):
        await verifiers.reward(Data(), trace)
