"""How runs are driven: together, once where answers are equal, withdrawn when nobody waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.genrm_memory import INFO, MemoryEngine

from assay.genrm.domain import (
    Run,
)
from assay.genrm.driving import RequestBatcher, drive
from assay.genrm.engines.base import (
    Answer,
    Choose,
    Chosen,
    EngineError,
    Prompt,
    PromptMessage,
    PromptPiece,
    Request,
    TokenCounts,
    Write,
    Written,
)
from assay.kit.faults import Unjudgeable


def choose(text: str) -> Choose:
    return Choose(Prompt((PromptMessage("user", (PromptPiece(text),)),)), ("A", "B"))


def write(text: str, seed: int, temperature: float = 1.0) -> Write:
    prompt = Prompt((PromptMessage("user", (PromptPiece(text),)),))
    return Write(prompt, max_tokens=4, temperature=temperature, seed=seed)


def run_of(*rounds: tuple[Request, ...]) -> Run[list[tuple[Answer, ...]]]:
    """A judge that asks what it was told to ask, and returns what it was answered."""
    answers: list[tuple[Answer, ...]] = []
    for requests in rounds:
        answered = yield requests
        answers += [answered]
    return answers


async def test_what_is_yielded_at_once_is_at_the_engine_at_once() -> None:
    engine = MemoryEngine()
    asks = RequestBatcher(engine)
    runs = [
        asyncio.ensure_future(drive(run_of((choose(f"{i}"), choose(f"{i} again"))), asks))
        for i in range(5)
    ]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(engine.asked) == 10
    engine.go.set()
    assert len(await asyncio.gather(*runs)) == 5


async def test_equal_requests_are_asked_once_and_cost_nothing_again() -> None:
    engine = MemoryEngine()
    engine.go.set()
    asks = RequestBatcher(engine)
    [first] = await drive(run_of((choose("x"), choose("x"), choose("y"))), asks)
    [second] = await drive(run_of((choose("x"),)), asks)
    assert engine.asked == [choose("x"), choose("y")]
    assert [answer.tokens.cached for answer in (*first, *second)] == [0, 7, 0, 7]
    assert {answer.logprobs for answer in first if isinstance(answer, Chosen)} == {(-1.0, -1.0)}


@pytest.mark.parametrize(
    ("requests", "deterministic", "asked"),
    [
        ((write("x", 1), write("x", 2)), True, 2),
        ((write("x", 1), write("x", 1)), True, 1),
        ((write("x", 1), write("x", 1)), False, 2),
        ((write("x", 1, 0.0), write("x", 2, 0.0)), False, 1),
    ],
    ids=["seeds-differ", "equal", "equal-but-not-deterministic", "greedy"],
)
async def test_votes_are_shared_only_where_they_must_be_equal(
    requests: tuple[Request, ...], deterministic: bool, asked: int
) -> None:
    engine = MemoryEngine(
        replace(INFO, deterministic=deterministic),
        lambda request: Written("yes", "stop", TokenCounts(3, 0, 1)),
    )
    engine.go.set()
    [answers] = await drive(run_of(requests), RequestBatcher(engine))
    assert len(engine.asked) == asked
    assert sum(answer.tokens.completion for answer in answers) == asked


async def test_a_failure_withdraws_what_else_the_judge_asked_and_nothing_of_others() -> None:
    def answer(request: Request) -> Answer:
        raise EngineError("CONTEXT_TOO_LONG", "too long")

    engine = MemoryEngine(answer=answer)
    slow = MemoryEngine()

    async def ask(request: Request) -> Answer:
        source = engine if request == choose("bad") else slow
        return await source.ask(request)

    both = MemoryEngine()
    both.ask = ask  # type: ignore[method-assign]
    asks = RequestBatcher(both)
    failing = asyncio.ensure_future(
        drive(run_of((choose("bad"), choose("own"), choose("shared"))), asks)
    )
    waiting = asyncio.ensure_future(drive(run_of((choose("shared"),)), asks))
    await asyncio.sleep(0.01)
    engine.go.set()
    with pytest.raises(EngineError, match="too long"):
        await failing
    await asyncio.sleep(0)
    assert slow.withdrawn == [choose("own")]
    slow.go.set()
    assert len(await waiting) == 1


async def test_a_run_that_is_cancelled_withdraws_its_requests_and_is_closed() -> None:
    closed = []

    def judge() -> Run[None]:
        try:
            yield (choose("x"), choose("y"))
        finally:
            closed.append(True)

    engine = MemoryEngine()
    task = asyncio.ensure_future(drive(judge(), RequestBatcher(engine)))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert closed == [True]
    assert sorted(map(repr, engine.withdrawn)) == sorted(map(repr, (choose("x"), choose("y"))))


async def test_a_request_that_was_withdrawn_is_asked_anew_by_the_next_who_wants_it() -> None:
    engine = MemoryEngine()
    asks = RequestBatcher(engine)
    first = asyncio.ensure_future(drive(run_of((choose("x"),)), asks))
    await asyncio.sleep(0.01)
    first.cancel()
    second = asyncio.ensure_future(drive(run_of((choose("x"),)), asks))
    await asyncio.sleep(0.01)
    engine.go.set()
    assert len(await second) == 1
    assert len(engine.asked) == 2


def test_what_the_judge_raises_comes_through() -> None:
    def judge() -> Run[None]:
        raise Unjudgeable("MISSING_RESPONSE", "empty")
        yield ()

    with pytest.raises(Unjudgeable, match="empty"):
        asyncio.run(drive(judge(), RequestBatcher(MemoryEngine())))
