"""Several engines behind one model: the least loaded one is asked.

What begins alike goes to one of them as long as it is hardly more loaded than the others, so that
the beginning is computed once (as cache-aware routing of SGLang, arXiv 2312.07104). Each engine
lives and dies by itself: what it had at work when it died are faults, what only waited for it is
handed to another, and while it is being started anew the others are asked.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Protocol

from assay.genrm.engines.base import (
    Answer,
    EngineTally,
    JudgeEngine,
    ModelInfo,
    NotBegunError,
    Request,
)
from assay.kit.errors import StartupError

SLACK = 16
"""Requests that an engine may have more than another and still be given what begins alike."""
_REMEMBERED = 4096  # beginnings


class Replica(JudgeEngine, Protocol):
    """An engine that can stand beside others of its kind."""

    async def ask_with(self, adapter: str, request: Request) -> Answer:
        """As `ask`, by an adapter that was loaded; "" for none."""

    async def load_adapter(self, key: str, folder: str) -> None:
        """Loads an adapter, also into every later process of this engine.

        Raises:
            StartupError: it is none for this model.
        """

    async def unload_adapter(self, key: str) -> None:
        """Forgets an adapter; requests at work end."""


class ReplicatedEngine:
    """One model in several engines. See `JudgeEngine`."""

    def __init__(self, name: str, engines: Sequence[Replica]) -> None:
        """`engines` are not started yet, and hand back what they have not begun when they die."""
        self._name = name
        self._engines = tuple(engines)
        self._loads = [0] * len(engines)
        self._homes: OrderedDict[int, int] = OrderedDict()

    @property
    def tally(self) -> EngineTally:
        """The sums over all of them."""
        tallies = [engine.tally for engine in self._engines]
        return EngineTally(
            sum(tally.restarts for tally in tallies),
            sum(tally.batches for tally in tallies),
            sum(tally.rows for tally in tallies),
            sum(tally.ready for tally in tallies),
        )

    @property
    def info(self) -> ModelInfo:
        """The model; known after `start`."""
        return self._engines[0].info

    @property
    def engines(self) -> tuple[Replica, ...]:
        """All of them, for logs and tests."""
        return self._engines

    async def start(self) -> None:
        """Starts all of them at the same time; see `JudgeEngine`."""
        try:
            async with asyncio.TaskGroup() as group:
                for engine in self._engines:
                    group.create_task(engine.start())
        except BaseExceptionGroup as errors:
            await self.close()
            raise errors.exceptions[0] from None
        infos = {engine.info for engine in self._engines}
        if len(infos) > 1:
            await self.close()
            revisions = ", ".join(sorted({info.revision for info in infos}))
            raise StartupError(
                f"model {self._name}: its replicas have loaded different weights ({revisions}), "
                "because the folder changed meanwhile; start again when it is whole"
            )

    async def ask(self, request: Request) -> Answer:
        """Asks one of them; see `JudgeEngine`."""
        return await self.ask_with("", request)

    async def ask_with(self, adapter: str, request: Request) -> Answer:
        """See `Replica`."""
        while True:
            index = self._choose(hash((adapter, *beginning(request))))
            self._loads[index] += 1
            try:
                return await self._engines[index].ask_with(adapter, request)
            except NotBegunError:
                continue
            finally:
                self._loads[index] -= 1

    async def load_adapter(self, key: str, folder: str) -> None:
        """See `Replica`."""
        await asyncio.gather(*(engine.load_adapter(key, folder) for engine in self._engines))

    async def unload_adapter(self, key: str) -> None:
        """See `Replica`."""
        await asyncio.gather(*(engine.unload_adapter(key) for engine in self._engines))

    async def close(self) -> None:
        """Ends all of them; see `JudgeEngine`."""
        await asyncio.gather(*(engine.close() for engine in self._engines))

    def _choose(self, key: int) -> int:
        """Of those that answer, or of all: who knows the beginning, or the least loaded."""
        ready = [n for n, engine in enumerate(self._engines) if engine.tally.ready]
        least = min(ready or range(len(self._engines)), key=lambda n: self._loads[n])
        home = self._homes.get(key, least)
        if home in ready and self._loads[home] - self._loads[least] < SLACK:
            least = home
        self._homes[key] = least
        self._homes.move_to_end(key)
        if len(self._homes) > _REMEMBERED:
            self._homes.popitem(last=False)
        return least


def beginning(request: Request) -> Iterator[str]:
    """The texts of a prompt up to the candidate's: equal for the candidates of one question."""
    for message in request.prompt.messages:
        yield message.role
        for piece in message.pieces:
            if piece.cuttable:
                return
            yield piece.text
