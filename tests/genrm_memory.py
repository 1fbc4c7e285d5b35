"""An engine in memory, for tests of what stands around engines: no model, no process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from assay.genrm.engines.base import (
    Answer,
    Choose,
    Chosen,
    EngineError,
    EngineTally,
    ModelInfo,
    Rated,
    RateDialogue,
    Request,
    StepsRated,
    TokenCounts,
    Write,
    Written,
)

INFO = ModelInfo("m", "memory", "r", frozenset(("choose", "write")), 100, deterministic=True)


def sound(request: Request) -> Answer:
    """An answer of the right kind to any request."""
    if isinstance(request, Choose):
        return Chosen(tuple(-1.0 for _ in request.options), TokenCounts(7))
    if isinstance(request, Write):
        return Written("yes", "stop", TokenCounts(7, 0, 1))
    if isinstance(request, RateDialogue):
        return Rated((0.5,), TokenCounts(7))
    return StepsRated(tuple(0.9 for _ in request.steps), TokenCounts(7))


def failing(_request: Request) -> Answer:
    """An answer that does not come."""
    raise EngineError("SCORE_NOT_FINITE", "not a number")


@dataclass
class MemoryEngine:
    """Keeps requests until it is told to go on; says what it was asked, and what was withdrawn."""

    info: ModelInfo = INFO
    answer: Callable[[Request], Answer] = sound
    asked: list[Request] = field(default_factory=list)
    withdrawn: list[Request] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    loaded: asyncio.Event = field(default_factory=asyncio.Event)
    starting: bool = False
    closed: bool = False
    tally: EngineTally = field(default_factory=EngineTally)

    async def start(self) -> None:
        """Waits for `loaded`."""
        self.starting = True
        await self.loaded.wait()

    async def ask(self, request: Request) -> Answer:
        """Waits for `go`, then answers."""
        self.asked.append(request)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.withdrawn.append(request)
            raise
        return self.answer(request)

    async def close(self) -> None:
        """Takes note."""
        self.closed = True
