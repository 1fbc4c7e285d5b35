"""Searching episodes over a reward server: the proofs of the environments, and a broken wire."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.search_support import Played, corpus_file, find, play_async

from assay.clients import AsyncRewardClient, EmbeddedServices, Item
from assay.clients.types import Result
from assay.environments.registry import environment_of, settings_of


class Wire:
    """The services of a client."""

    def __init__(self, client: AsyncRewardClient) -> None:
        self._client = client

    async def score(self, item: Item) -> Result:
        [result] = await self._client.score([item])
        return result


async def proved(address: str, name: str, settings: dict[str, Any]) -> list[tuple[Any, Played]]:
    kind = environment_of(name)
    given = settings_of(kind, settings)
    async with AsyncRewardClient(address, timeout_s=30.0) as client:
        with kind.open(given) as shared:
            return [
                (
                    proof,
                    await play_async(kind(given, shared, Wire(client)), proof.row, proof.turns),
                )
                for proof in kind.proofs(given)
            ]


@pytest.mark.slow
def test_searching_environments_prove_themselves_over_a_server(tmp_path: Path) -> None:
    path = corpus_file(tmp_path)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("search", {"corpus": path, "citations": 0.5, "completeness": 0.5}),
        ("search", {"corpus": path, "measure": "subem", "context": "memory"}),
        ("search-self-play", {"corpus": path, "solvers": 2, "distractors": 3}),
    ]
    with EmbeddedServices(["reward"]) as services:
        for name, settings in cases:
            found = asyncio.run(proved(services.address, name, settings))
            assert [played.reward for _, played in found] == [
                pytest.approx(proof.reward) for proof, _ in found
            ]
            assert len(found) >= 3


def test_a_server_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    kind = environment_of("search")
    given = settings_of(kind, {"corpus": corpus_file(tmp_path)})

    async def act() -> Played:
        async with AsyncRewardClient("127.0.0.1:9", timeout_s=0.5) as client:
            with kind.open(given) as shared:
                environment = kind(given, shared, Wire(client))
                row = {"prompt": "Where is Lyon?", "reference": "Rhone"}
                return await play_async(environment, row, [find("Lyon"), "<answer>Rhone</answer>"])

    outcome = asyncio.run(act()).outcome
    assert outcome.result.fault is not None
    assert not outcome.trains
