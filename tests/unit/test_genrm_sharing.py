"""Answers that calls share: equal questions once, faults never, nothing of unknown weights."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.genrm_memory import INFO, MemoryEngine, failing, sound

from assay.genrm.domain import Run
from assay.genrm.driving import RequestBatcher, drive
from assay.genrm.engines.base import (
    Answer,
    Choose,
    EngineError,
    ModelInfo,
    Prompt,
    PromptMessage,
    PromptPiece,
    Request,
    TokenCounts,
    Write,
    Written,
)
from assay.genrm.sharing import MAX_TEXT_CHARS, SharedAnswers
from assay.kit.faults import Unjudgeable


def prompt(text: str, *, trusted: bool = True, template: str = "t@1") -> Prompt:
    piece = PromptPiece(text, trusted=trusted)
    return Prompt((PromptMessage("user", (piece,)),), "Answer:", template=template)


def choose(text: str = "x", **more: bool | str) -> Choose:
    return Choose(prompt(text, **more), ("A", "B"))  # type: ignore[arg-type]  # either is fine


def write(seed: int, temperature: float = 1.0) -> Write:
    return Write(prompt("x"), 4, temperature=temperature, seed=seed)


def run_of(*requests: Request) -> Run[tuple[Answer, ...]]:
    return (yield requests)


class Calls:
    """Calls to one engine, which share."""

    def __init__(self, entries: int = 8, **engine: object) -> None:
        self.engine = MemoryEngine(**engine)  # type: ignore[arg-type]  # fields of it
        self.counted = Counter[str]()
        self.shared = SharedAnswers(lambda: self.engine.info, entries, self.count)

    def count(self, result: str) -> None:
        self.counted[result] += 1

    def call(self, *requests: Request, seeded: bool = False) -> asyncio.Task[tuple[Answer, ...]]:
        asks = RequestBatcher(self.engine, shared=self.shared, seeded=seeded)
        return asyncio.ensure_future(drive(run_of(*requests), asks))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_equal_question_of_a_later_call_is_answered_at_once_for_nothing() -> None:
    calls = Calls()
    calls.engine.go.set()
    [first] = await calls.call(choose())
    [second] = await calls.call(choose())
    assert len(calls.engine.asked) == 1
    assert second == replace(first, tokens=TokenCounts(7, cached=7))
    assert calls.counted == {"miss": 1, "hit": 1}


async def test_equal_questions_in_flight_are_one_and_survive_who_asked_first() -> None:
    calls = Calls()
    first, second = calls.call(choose()), calls.call(choose())
    await settle()
    assert len(calls.engine.asked) == 1
    first.cancel()
    await settle()
    assert calls.engine.withdrawn == []
    calls.engine.go.set()
    assert (await second)[0].tokens == TokenCounts(7, cached=7)
    third = calls.call(choose("another"))
    calls.engine.go.clear()
    third.cancel()
    assert calls.counted == {"miss": 1, "joined": 1}


async def test_the_last_one_to_leave_withdraws_and_the_next_asks_anew() -> None:
    calls = Calls()
    first, second = calls.call(choose()), calls.call(choose())
    await settle()
    first.cancel()
    second.cancel()
    await settle()
    assert len(calls.engine.withdrawn) == 1
    calls.engine.go.set()
    await calls.call(choose())
    assert len(calls.engine.asked) == 2


async def test_a_fault_is_shared_in_flight_and_kept_never() -> None:
    calls = Calls(answer=failing)
    first, second = calls.call(choose()), calls.call(choose())
    await settle()
    calls.engine.go.set()
    for one in (first, second):
        with pytest.raises(EngineError):
            await one
    assert len(calls.engine.asked) == 1
    calls.engine.answer = sound
    await calls.call(choose())
    assert len(calls.engine.asked) == 2


@pytest.mark.parametrize(
    ("info", "requests", "asked"),
    [
        (INFO, (choose(), choose(trusted=False)), 2),
        (INFO, (choose(), choose(template="t@2")), 2),
        (INFO, (choose(), Choose(prompt("x"), ("A", "C"))), 2),
        (INFO, (choose(), replace(choose(), keep_ends=True)), 2),
        (INFO, (write(1), write(2)), 2),
        (INFO, (write(1), write(1)), 1),
        (INFO, (write(1, 0.0), write(2, 0.0)), 1),
        (replace(INFO, revision="unknown"), (choose(), choose()), 2),
        (replace(INFO, revision="unversioned:gpt"), (choose(), choose()), 2),
        (replace(INFO, deterministic=False), (choose(), choose()), 2),
    ],
)
async def test_what_makes_two_questions_equal(
    info: ModelInfo, requests: tuple[Request, Request], asked: int
) -> None:
    calls = Calls(info=info)
    calls.engine.go.set()
    for request in requests:
        await calls.call(request, seeded=True)
    assert len(calls.engine.asked) == asked


async def test_a_seed_that_nobody_chose_fills_no_cache() -> None:
    calls = Calls()
    calls.engine.go.set()
    for _ in range(2):
        await calls.call(write(1))
    assert len(calls.engine.asked) == 2
    assert not calls.counted


async def test_new_weights_have_said_nothing_yet() -> None:
    calls = Calls()
    calls.engine.go.set()
    await calls.call(choose())
    calls.engine.info = replace(INFO, revision="r2")
    await calls.call(choose())
    assert len(calls.engine.asked) == 2
    calls.engine.info = INFO
    await calls.call(choose())
    assert len(calls.engine.asked) == 2


async def test_an_answer_that_came_while_the_weights_changed_is_not_kept() -> None:
    calls = Calls()
    first = calls.call(choose())
    await settle()
    calls.engine.info = replace(INFO, revision="r2")
    calls.engine.go.set()
    await first
    calls.engine.info = INFO
    await calls.call(choose())
    assert len(calls.engine.asked) == 2


async def test_what_is_kept_is_bounded() -> None:
    calls = Calls(entries=2)
    calls.engine.go.set()
    for text in ("a", "b", "a", "c", "a", "b"):
        await calls.call(choose(text))
    assert calls.counted == {"miss": 4, "hit": 2}
    calls.engine.answer = lambda _: Written("x" * (MAX_TEXT_CHARS + 1), "stop", TokenCounts(7))
    for _ in range(2):
        await calls.call(write(1, 0.0))
    assert calls.counted["miss"] == 6
    nothing = Calls(entries=0)
    nothing.engine.go.set()
    for _ in range(2):
        await nothing.call(choose())
    assert len(nothing.engine.asked) == 2
    assert not nothing.counted


class Broke:
    """Pays for one request."""

    def __init__(self) -> None:
        self.left = 1

    def require(self) -> None:
        if not self.left:
            raise Unjudgeable("BUDGET_SPENT", "no more")
        self.left -= 1

    def begin(self) -> float:
        return 0.0

    def settle(self, mark: float, tokens: TokenCounts | None) -> tuple[float, float]:
        return 1.5, 0.25


async def test_a_spent_budget_withdraws_what_its_run_asked_and_not_what_is_kept() -> None:
    calls = Calls()
    bill = Broke()

    def call(*requests: Request) -> asyncio.Task[tuple[Answer, ...]]:
        asks = RequestBatcher(calls.engine, bill=bill, shared=calls.shared)
        return asyncio.ensure_future(drive(run_of(*requests), asks))

    calls.engine.go.set()
    [answer] = await call(choose())
    assert (answer.tokens.engine_s, answer.tokens.cost) == (1.5, 0.25)
    [again] = await call(choose())
    assert (again.tokens.engine_s, again.tokens.cost) == (0.0, 0.0)
    bill.left = 1
    calls.engine.go.clear()
    with pytest.raises(Unjudgeable) as fault:
        await call(choose("a"), choose("b"))
    assert fault.value.reason == "BUDGET_SPENT"
    await settle()
    asked, withdrawn = calls.engine.asked, calls.engine.withdrawn
    assert choose("b") not in asked
    assert (choose("a") in asked) == (choose("a") in withdrawn)


@given(st.text(max_size=20), st.text(max_size=20), st.booleans(), st.booleans())
def test_a_key_knows_where_a_piece_ends(a: str, b: str, one: bool, two: bool) -> None:
    shared = SharedAnswers(lambda: INFO, 1)
    first = Choose(
        Prompt((PromptMessage("user", (PromptPiece(a, one), PromptPiece(b, two))),)), ("A", "B")
    )
    joined = Choose(Prompt((PromptMessage("user", (PromptPiece(a + b, one),)),)), ("A", "B"))
    assert shared.key(first) != shared.key(joined)
    assert shared.key(first) == shared.key(replace(first))
