"""The adapters' functions as trainers call them, without the trainers.

`make test-adapters` runs them in the trainers.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.testing import FakeRewardServer, Knobs
from assay.clients.trainers import openrlhf, slime, verl
from assay.clients.trainers.common.faults import FaultError
from assay.clients.trainers.common.queries import END_TOKENS, response_of
from assay.clients.trainers.common.settings import close_clients
from assay.kit.errors import ConfigError


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRewardServer]:
    """Judges by equality; the item "1" is a fault."""
    with FakeRewardServer(knobs=Knobs(fault_ids=frozenset({"1"}))) as fake:
        monkeypatch.setenv("ASSAY_TARGET", fake.address)
        monkeypatch.setenv("ASSAY_VERIFIER", "exact")
        yield fake
        close_clients()


def test_verl(server: FakeRewardServer) -> None:
    told = verl.compute_score("math", "4", "4", {"question": "2+2?"})
    assert (told["score"], told["verdict"], told["fault"]) == (1.0, "correct", "")
    with pytest.raises(FaultError, match="VERIFIER_FAILED"):  # the client's second item is "1"
        asyncio.run(verl.compute_score_async("math", "5", "4"))
    assert asyncio.run(verl.compute_score_async("math", "5", "4"))["score"] == 0.0
    batch = (["math"] * 2, ["4", "4"], ["4", "4"], [None, None])
    with pytest.raises(FaultError, match="VERIFIER_FAILED"):
        verl.compute_score_batch(*batch)
    masked = verl.compute_score_batch(*batch, on_fault="mask")
    assert [one["fault"] for one in masked] == ["", "VERIFIER_FAILED"]
    assert math.isnan(masked[1]["score"])
    assert server.requests[0][0].prompt[0].content == "2+2?"
    with pytest.raises(ConfigError, match="'verifer'"):
        verl.compute_score("math", "4", "4", verifer="exact")


def test_openrlhf(server: FakeRewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert openrlhf.reward_func(["2+2? 4</s>"], ["2+2? "], ["4"])["rewards"].tolist() == [1.0]
    both: Any = (["q4", "q4"], ["q", "q"], ["4", "4"])
    with pytest.raises(FaultError, match="VERIFIER_FAILED"):
        openrlhf.reward_func(*both)
    monkeypatch.setenv("ASSAY_ON_FAULT", "drop")
    told = openrlhf.reward_func(*both)
    assert told["rewards"].isnan().tolist() == [False, True]
    assert told["extra_logs"]["fault"].tolist() == [0.0, 1.0]


def test_slime(server: FakeRewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def sample() -> Any:
        return SimpleNamespace(
            prompt="2+2?", response="4", response_length=1, label="4", index=0, group_index=7,
            metadata=None, status=None, remove_sample=False,
        )  # fmt: skip

    args = SimpleNamespace(reward_key=None)
    assert asyncio.run(slime.custom_rm(args, sample())) == 1.0
    both = [sample(), sample()]
    with pytest.raises(FaultError, match="VERIFIER_FAILED"):
        asyncio.run(slime.custom_rm(args, both))
    monkeypatch.setenv("ASSAY_ON_FAULT", "mask")
    first, second = asyncio.run(slime.custom_rm(args, both))
    assert first == 1.0
    assert math.isnan(second)
    assert [one.remove_sample for one in both] == [False, True]
    assert server.requests[-1][0].group_id == "7"


@given(st.text(), st.text(alphabet="ab<|>\n "), st.lists(st.sampled_from(END_TOKENS), max_size=3))
def test_a_response_is_what_follows_its_prompt(prompt: str, said: str, ends: list[str]) -> None:
    if any(said.rstrip("\n").endswith(token[:1]) or token in said for token in END_TOKENS):
        said = "x"
    found = response_of(prompt + said + "".join(ends), prompt)
    assert found == said


def test_a_query_without_its_prompt_is_refused() -> None:
    assert response_of("abc", "abd") is None
    assert response_of("abc", "a", after="x") is None
    assert response_of("u a x a y", "cut", after=" a ") == "y"
