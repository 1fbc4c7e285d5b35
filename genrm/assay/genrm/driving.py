"""Drives runs: hands a judge's requests to the engine, and the answers back.

What a judge yields at once reaches the engine in one turn of the event loop, so it is batched.
Equal requests whose answers would be equal are asked once: of one call always, of several as far as
the model's `SharedAnswers` go.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from assay.genrm.domain import Asked, Attempt, Reply, Run
from assay.genrm.engines.base import Answer, EngineError, JudgeEngine, Request, TokenCounts, Write
from assay.genrm.sharing import AskedRequest, SharedAnswers
from assay.kit.faults import ItemFault, Unjudgeable
from assay.kit.trails import Stretch

R = TypeVar("R")


class Bill(Protocol):
    """Who pays for the answers of one call."""

    def require(self) -> None:
        """Lets a request be asked; raises Unjudgeable where the budget is spent."""

    def begin(self) -> float:
        """A request is at the engine; returns its mark for `settle`."""

    def settle(self, mark: float, tokens: TokenCounts | None) -> tuple[float, float]:
        """It is not any more; None tokens where it has no answer. Returns seconds and cost."""


class RequestBatcher:
    """The requests of one call to one engine, None for runs that ask nothing.

    `answered` is called once with every answer of the engine. `fit` returns where the engine may be
    asked, and raises Unjudgeable where it may not. `others` gives the requests of the same call to
    another model, by its name, for attempts that name one. `shared` has what other calls ask and
    asked, what hangs on the seed only where it is the caller's (`seeded`).
    """

    def __init__(
        self,
        engine: JudgeEngine | None,
        answered: Callable[[Answer], None] = lambda _: None,
        fit: Callable[[Request], Awaitable[None]] | None = None,
        others: Callable[[str], RequestBatcher] | None = None,
        *,
        bill: Bill | None = None,
        shared: SharedAnswers | None = None,
        seeded: bool = False,
    ) -> None:
        self._engine = engine
        self._others = others
        self._answered = answered
        self._fit = fit
        self._bill = bill
        self._known = shared
        self._seeded = seeded
        self._shared: dict[Request, AskedRequest] = {}

    async def reply(self, asked: Sequence[Asked]) -> tuple[Reply, ...]:
        """Answers a round's requests, all at the same time; an attempt that fails, by its fault.

        Raises:
            EngineError: of the first request that is no attempt and has no answer.
            Unjudgeable: the engine may not be asked.
        """
        plain = [one for one in asked if not isinstance(one, Attempt)]
        if len(plain) == len(asked):
            return await self.ask(plain)
        return tuple(await asyncio.gather(*map(self._reply, asked)))

    async def _reply(self, asked: Asked) -> Reply:
        if not isinstance(asked, Attempt):
            return (await self.ask((asked,)))[0]
        try:
            batcher = self if self._others is None or not asked.model else self._others(asked.model)
            return (await batcher.ask((asked.request,)))[0]
        except (EngineError, Unjudgeable) as error:
            return ItemFault(error.reason, error.message, error.metadata)

    async def ask(self, requests: Sequence[Request]) -> tuple[Answer, ...]:
        """Answers requests, all at the same time.

        A shared answer is not paid for again: its prompt counts as cached, and nothing as written.

        Raises:
            EngineError: of the first that has no answer; the others are withdrawn.
            Unjudgeable: the engine may not be asked, or the budget is spent.
        """
        if self._fit is not None:
            for request in requests:
                await self._fit(request)
        joined: list[tuple[AskedRequest, bool]] = []
        try:
            for request in requests:
                joined.append(self._join(request))  # noqa: PERF401  # those before a refusal leave
            tasks = [asked.task for asked, _ in joined]
            if tasks:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                if task.done():
                    task.result()
            return tuple(
                asked.task.result() if first else _again(asked.task.result())
                for asked, first in joined
            )
        finally:
            for asked, _ in joined:
                asked.leave()

    def _join(self, request: Request) -> tuple[AskedRequest, bool]:
        """The request at the engine, and whether this put it there."""
        key = self._key(request)
        asked = None if key is None else self._shared.get(key)
        first = False
        if asked is None or not asked.open:
            asked, first = self._found(key) or self._begun(request, key)
            if key is not None:
                self._shared[key] = asked
        asked.waiters += 1
        return asked, first

    def _found(self, key: Request | None) -> tuple[AskedRequest, bool] | None:
        """What another call asks or asked, if it may be shared."""
        wide = self._wide_key(key)
        asked = None if wide is None or self._known is None else self._known.find(wide)
        return None if asked is None else (asked, False)

    def _begun(self, request: Request, key: Request | None) -> tuple[AskedRequest, bool]:
        if self._bill is not None:
            self._bill.require()
        asked = AskedRequest(asyncio.ensure_future(self._answer(request)))
        asked.task.add_done_callback(self._look)
        wide = self._wide_key(key)
        if key is not None and wide is not None and self._known is not None:
            self._known.note(wide, key, asked)
        return asked, True

    async def _answer(self, request: Request) -> Answer:
        """The engine's answer, with what it took and cost."""
        if self._engine is None:
            raise ValueError("a run without an engine has asked")
        if self._bill is None:
            return await self._engine.ask(request)
        mark, tokens = self._bill.begin(), None
        try:
            answer = await self._engine.ask(request)
            tokens = answer.tokens
        finally:
            engine_s, cost = self._bill.settle(mark, tokens)
        return replace(answer, tokens=replace(tokens, engine_s=engine_s, cost=cost))

    def _look(self, task: asyncio.Future[Answer]) -> None:
        """Retrieves the exception, so that asyncio reports none as overlooked."""
        if not task.cancelled() and task.exception() is None:
            self._answered(task.result())

    def _wide_key(self, key: Request | None) -> bytes | None:
        """Equal for equal requests of all calls; None where this one keeps its to itself."""
        if key is None or self._known is None:
            return None
        sampled = isinstance(key, Write) and key.temperature > 0
        by_seed = sampled or key.prompt.drawn
        return None if by_seed and not self._seeded else self._known.key(key)

    def _key(self, request: Request) -> Request | None:
        """Equal for requests with equal answers; None where each draws its own."""
        if not isinstance(request, Write):
            return request
        if request.temperature == 0:
            return replace(request, seed=0, top_p=1.0)
        return request if self._engine and self._engine.info.deterministic else None


async def drive(
    run: Run[R],
    asks: RequestBatcher,
    asked: list[Stretch] | None = None,
    *,
    is_large: bool = False,
) -> R:
    """Runs a judge to its end, and closes it; `asked` gets a span of each round, for a trace.

    A large item's judge runs in a thread: it takes a text apart, which must hold up nobody else.

    Raises:
        Unjudgeable: from the judge.
        EngineError: a request has no answer.
    """
    answers: tuple[Reply, ...] | None = None
    try:
        while True:
            if is_large:
                requests, end = await asyncio.to_thread(_advance, run, answers)
            else:
                requests, end = _advance(run, answers)
            if end is not None:
                outcome: R = end.value
                return outcome
            began_s = time.monotonic()
            answers = await asks.reply(requests)
            if asked is not None and answers:
                asked.append(_stretch(began_s, answers))
    finally:
        with contextlib.suppress(ValueError):  # cancelled while a thread is at it, which ends it
            run.close()


def _advance(
    run: Run[R], answers: tuple[Reply, ...] | None
) -> tuple[tuple[Asked, ...], StopIteration | None]:
    """Sends a judge its answers, None at first; what it asks next, or its end."""
    try:
        return (next(run) if answers is None else run.send(answers)), None
    except StopIteration as end:
        return (), end


def _stretch(began_s: float, replies: Sequence[Reply]) -> Stretch:
    answers = [reply for reply in replies if not isinstance(reply, ItemFault)]
    tokens = [answer.tokens for answer in answers]
    facts = {
        "assay.requests": len(replies),
        "assay.tokens.prompt": sum(count.prompt for count in tokens),
        "assay.tokens.cached": sum(count.cached for count in tokens),
        "assay.tokens.completion": sum(count.completion for count in tokens),
    }
    return Stretch("engine", began_s, time.monotonic(), facts)


def _again(answer: Answer) -> Answer:
    """The answer, counted as cached."""
    prompt = answer.tokens.prompt
    return replace(answer, tokens=TokenCounts(prompt=prompt, cached=prompt))
