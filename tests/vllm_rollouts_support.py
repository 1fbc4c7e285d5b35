"""What tests of rollouts by vLLM share: a policy that moves, and what it is held against."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Engine, EngineHost, Id, Sampler
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.types import Draw, FirstToken, Request, Response, Sampling
from rollouts_support import ENDS, NumberTokenizer, ignore

ROUNDING = 1e-3
WAYS = {
    "plain": Sampling(20),
    "filters": Sampling(20, temperature=0.7, top_k=9, top_p=0.8),
    "greedy": Sampling(20, temperature=0.0),
    "fire": Sampling(20, first=FirstToken(30.0, 8)),
}


@dataclass
class World:
    """A policy whose weights move."""

    model: Any
    version: int = 0
    shared: dict[str, Any] = field(default_factory=dict)
    ends: frozenset[int] = ENDS

    def host(self, seed: int = 5, **settings: Any) -> EngineHost:
        return EngineHost(
            lambda: nullcontext(self.model), NumberTokenizer(), seed, self.ends, nullcontext,
            **{"version": lambda: self.version, "shared": self.shared, **settings},
        )  # fmt: skip

    def move(self, by: float = 0.1) -> None:
        noise = torch.Generator().manual_seed(self.version)
        with torch.no_grad():
            for parameter in self.model.parameters():
                if parameter.requires_grad:
                    parameter.add_(by * torch.randn(parameter.shape, generator=noise))
        self.version += 1

    def hf(self, requests: list[Request], sampling: Sampling) -> list[Response]:
        return Sampler(HfEngine(self.host()), sampling).generate(requests, ignore)


def long_requests(count: int = 6, size: int = 70) -> list[Request]:
    """Prompts that share blocks of the prefix cache."""
    start = tuple(3 + n * n % 21 for n in range(size))
    return [Request(Draw(n, Problem("", "", (), ""), (*start, 3 + n)), 0) for n in range(count)]


def same(found: list[Response], wanted: list[Response]) -> None:
    assert [response.ids for response in found] == [response.ids for response in wanted]
    assert [response.text for response in found] == [response.text for response in wanted]
    for one_, other in zip(found, wanted, strict=True):
        assert one_.logprobs == pytest.approx(other.logprobs, abs=ROUNDING)
        assert (one_.truncated, one_.finished) == (other.truncated, other.finished)


def drain(engine: Engine) -> dict[Id, Response]:
    found: dict[Id, Response] = {}
    while engine.busy:
        engine.poll(lambda id_, response: found.update({id_: response}))
    return found
