"""A policy whose responses are fixed, and which takes them up where they were left."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.trainer.engines.engine import Follow, Id, Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.methods.truncation.slots import SlotCollector
from assay.trainer.rollouts.types import OneRank
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import result, stream

LIMIT = 8
END = 1
Outcome = Callable[[int, int], str]


def whole(draw: int, index: int) -> tuple[int, ...]:
    """The tokens of a response without a limit: 1 to 11 of them, the last one END."""
    chance = random.Random(f"whole-{draw}-{index}")
    return (*(chance.randrange(2, 90) for _ in range(chance.randrange(11))), END)


class ContinuingGenerator(Sampler):
    """Each token's log-probability is -1 less the step in which it is drawn."""

    def __init__(self, *, fails: bool = False) -> None:
        self.step = 0
        self.calls: list[list[tuple[int, int]]] = []
        self.fails = fails
        super().__init__(ScriptedEngine(self._script, tokenizer=Numbers()), Sampling(LIMIT))

    def serve(
        self, first: Iterable[tuple[Id, Request]], follow: Follow, arrivals: Any = None
    ) -> None:
        asked = list(first)
        assert asked
        if self.fails:
            raise RuntimeError("told to")
        self.calls.append([(request.draw.number, request.index) for _, request in asked])
        super().serve(asked, follow, arrivals)

    def _script(self, request: Request) -> Response:
        ids = whole(request.draw.number, request.index)[:LIMIT]
        assert request.begun is None or request.begun.ids == ids[: len(request.begun.ids)]
        return Response(ids, "", (-1.0 - self.step,) * len(ids), ids[-1] != END)


class Numbers:
    """Tokens are their numbers."""

    pad_token_id = 0

    def batch_decode(self, rows: Sequence[Sequence[int]], **_: object) -> list[str]:
        return [" ".join(map(str, ids)) for ids in rows]


@dataclass
class Round:
    """Judges finished responses, and no others."""

    outcome: Outcome
    requests: list[Request] = field(default_factory=list)

    def submit(self, request: Request, answer: Response) -> None:
        assert answer.finished
        assert answer.text
        assert request == Request(request.draw, request.index), "as if it had been drawn at once"
        self.requests.append(request)

    def results(self) -> list[Any]:
        return [result(r, self.outcome(r.draw.number, r.index)) for r in self.requests]


def slots(
    outcome: Outcome,
    *,
    window: int,
    prompts: int = 4,
    group_size: int = 2,
    limit: int = LIMIT,
    batch: int = 0,
    ranks: Any = None,
    generator: Any = None,
) -> SlotCollector:
    return SlotCollector(
        stream(),
        generator or ContinuingGenerator(),
        lambda: Round(outcome),
        config=RolloutConfig(
            prompts_per_step=prompts, group_size=group_size, max_new_tokens=limit, batch=batch
        ),
        window=window,
        ranks=ranks or OneRank(),
    )
