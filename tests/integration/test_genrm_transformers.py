"""The embedded engine with its process: answers, company, limits, several heads."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from assay.genrm.engines import load_engine
from assay.genrm.engines.base import (
    Choose,
    Chosen,
    EngineError,
    JudgeEngine,
    Prompt,
    PromptMessage,
    PromptPiece,
    Rated,
    RateDialogue,
    RateSteps,
    StepsRated,
    Write,
    Written,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.forms import critique_form
from assay.genrm.engines.transformers import TransformersEngine
from assay.genrm.judges.critique import parse_critique
from genrm_engine_support import Alone, Worker
from genrm_support import make_model

Folders = Callable[[str], Path]
MODULE = pytest.mark.asyncio(loop_scope="module")
SMALL_CONTEXT = 400


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    made: dict[str, Path] = {}

    def folder(kind: Any) -> Path:
        if kind not in made:
            made[kind] = make_model(tmp_path_factory.mktemp(kind) / "model", kind)
        return made[kind]

    return folder


@asynccontextmanager
async def engine(folder: Path, **settings: Any) -> AsyncIterator[TransformersEngine]:
    made: JudgeEngine = load_engine("tiny", EngineConfig(str(folder), **settings))
    assert isinstance(made, TransformersEngine)
    await made.start()
    try:
        yield made
    finally:
        await made.close()
        await made.close()  # twice is harmless


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def causal(folders: Folders) -> AsyncIterator[TransformersEngine]:
    """One engine for several tests, with a context of its own and few requests at a time."""
    settings = {"context_tokens": SMALL_CONTEXT, "max_concurrent": 24, "max_batch_items": 8}
    async with engine(folders("causal"), **settings) as made:
        yield made


def judge(response: str, question: str = "What is two and two? " * 6) -> Prompt:
    pieces = (
        PromptPiece("Judge the response.\n"),
        PromptPiece(question, trusted=False),
        PromptPiece("\n"),
        PromptPiece(response, trusted=False, cuttable=True),
    )
    return Prompt((PromptMessage("user", pieces),), prefill="Verdict:")


@pytest.mark.slow
@MODULE
async def test_a_group_is_answered_together_and_shares_its_beginning(
    causal: TransformersEngine, folders: Folders
) -> None:
    alone = Alone(folders("causal"), "generative")
    assert causal.info.capabilities == {"choose", "write"}
    assert causal.info.context_tokens == SMALL_CONTEXT
    options = ("A", "B", " neither")
    prompts = [judge(f"The answer is {n}. {'so ' * n}") for n in range(30)]
    answers = await asyncio.gather(*(causal.ask(Choose(p, options)) for p in prompts))
    assert causal._opened is not None
    assert not causal._working
    encoder = causal._opened.encoder
    for prompt, answer in zip(prompts, answers, strict=True):
        assert isinstance(answer, Chosen)
        ids = encoder.encode(prompt)
        assert answer.tokens.prompt == len(ids)
        for option, logprob in zip(encoder.encode_options(options), answer.logprobs, strict=True):
            want = math.exp(alone.logprob(ids, option))
            assert math.exp(logprob) == pytest.approx(want, abs=1e-5)
    assert all(answer.tokens.cached > 100 for answer in answers[1:])
    again = await causal.ask(Choose(prompts[0], options))
    assert isinstance(again, Chosen)
    assert again.tokens.cached == again.tokens.prompt - 1
    assert isinstance(answers[0], Chosen)
    assert again.logprobs == pytest.approx(answers[0].logprobs, abs=1e-4)


@MODULE
async def test_writing(causal: TransformersEngine) -> None:
    async def text(**settings: Any) -> Written:
        answer = await causal.ask(Write(judge("four"), **{"max_tokens": 24, **settings}))
        assert isinstance(answer, Written)
        return answer

    chance = {"temperature": 1.0}
    whole, one, same, other = await asyncio.gather(
        text(), text(**chance, seed=1), text(**chance, seed=1), text(**chance, seed=2)
    )
    assert one.text == same.text != other.text
    assert whole.tokens.completion <= 24
    assert whole.finish == ("length" if whole.tokens.completion == 24 else "stop")
    stop = whole.text[3:6]
    stopped = await text(stop=("never there", stop))
    assert stopped.finish == "stop"
    assert stopped.text == whole.text[: whole.text.index(stop)]


@MODULE
async def test_a_text_is_held_to_a_form_and_the_verdicts_share_is_told(
    causal: TransformersEngine,
) -> None:
    assert causal.info.forms == "again"
    held = Write(judge("four"), 80, temperature=1.0, form=critique_form(1))
    first, again = await asyncio.gather(causal.ask(held), causal.ask(held))
    assert isinstance(first, Written)
    assert isinstance(again, Written)
    assert first.text == again.text
    assert parse_critique(first.text, 1) is not None
    assert first.mass is not None
    assert 0.0 <= first.mass < 1.0
    free = await causal.ask(Write(judge("four"), 4))
    assert isinstance(free, Written)
    assert free.mass is None


@MODULE
async def test_a_candidate_over_the_context(causal: TransformersEngine) -> None:
    with pytest.raises(EngineError) as caught:
        await causal.ask(Choose(judge("long " * 400), ("A", "B")))
    assert caught.value.reason == "CONTEXT_TOO_LONG"
    answer = await causal.ask(Choose(judge("long " * 400), ("A", "B"), keep_ends=True))
    assert isinstance(answer, Chosen)
    assert answer.cut
    assert answer.tokens.prompt < SMALL_CONTEXT


@MODULE
async def test_a_request_that_its_kind_of_model_does_not_answer(causal: TransformersEngine) -> None:
    with pytest.raises(EngineError, match="does not answer rate, only choose, write") as caught:
        await causal.ask(RateDialogue(judge("x")))
    assert caught.value.reason == "INVALID_PARAMETER"


@MODULE
async def test_a_request_that_nobody_waits_for_is_withdrawn(causal: TransformersEngine) -> None:
    pid = causal.worker_pid or 0
    os.kill(pid, signal.SIGSTOP)  # so that it does not end before
    try:
        long = asyncio.create_task(causal.ask(Write(judge("a"), 200, temperature=1.5)))
        while not causal._working:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        assert not causal._working
    finally:
        os.kill(pid, signal.SIGCONT)
    assert isinstance(await causal.ask(Write(judge("c"), 3)), Written)


@pytest.mark.slow
def test_a_short_text_does_not_wait_for_a_long_one(folders: Folders) -> None:
    worker = Worker(folders("causal"), "generative")
    plain = {"kind": "write", "temperature": 1.5, "top_p": 1.0, "seed": 0, "stop": ()}
    ids = worker.encoder.encode(judge("a"))
    (whole,) = worker.ask([{"ids": ids, "max_tokens": 3000, **plain}])
    assert whole["completion"] > 50
    worker.fresh()
    (long, gone) = worker.send([{"ids": ids, "max_tokens": 3000, **plain}] * 2)
    for _ in range(5):
        worker.loop.turn()
    (short,) = worker.ask([{"ids": ids, "max_tokens": 3, **plain}])
    assert short["completion"] == 3
    assert not worker.answers.keys() & {long, gone}
    worker.loop.inbox.put({"cancel": [gone]})
    while long not in worker.answers:
        worker.loop.turn()
    assert worker.answers[long]["text"] == whole["text"]
    assert gone not in worker.answers
    assert not worker.loop._begun


@pytest.mark.slow
async def test_a_dialogue_is_rated(folders: Folders) -> None:
    said = PromptMessage("assistant", (PromptPiece("First.\nThen.\n", trusted=False),))
    dialogue = Prompt((*judge("x").messages, said))
    async with engine(folders("scalar")) as made:
        assert made.info.capabilities == {"rate"}
        rated = await made.ask(RateDialogue(dialogue))
        assert isinstance(rated, Rated)
        assert made._opened is not None
        ids = made._opened.encoder.encode(dialogue, closed=True)
        want = Alone(folders("scalar"), "scalar").logits(ids).tolist()
        assert rated.logits == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("layout", ["step-token", pytest.param("step-end", marks=pytest.mark.slow)])
async def test_steps_are_read_where_the_layout_says(folders: Folders, layout: Any) -> None:
    alone = Alone(folders("step"), "step")
    prompt = Prompt(judge("x").messages)
    steps = ("First.\n", "Then.\n", "So four.")
    async with engine(folders("step"), step_layout=layout, good_label=0) as made:
        answer = await made.ask(RateSteps(prompt, steps))
        assert isinstance(answer, StepsRated)
        assert made._opened is not None
        ids, ends = made._opened.encoder.encode_steps(prompt, steps)
        want = alone.logits(ids).softmax(-1)[list(ends), 0].tolist()
        assert answer.probabilities == pytest.approx(want, abs=1e-5)
