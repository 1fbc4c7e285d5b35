"""Drives judges without an engine: a table or a function of the test's answers what they ask."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import TypeVar

import pytest

from assay.genrm.domain import (
    Asked,
    Attempt,
    ChatMessage,
    Reply,
    Run,
)
from assay.genrm.engines.base import (
    Answer,
    Capability,
    Choose,
    Chosen,
    EngineError,
    ModelInfo,
    Prompt,
    Rated,
    RateDialogue,
    Request,
    TokenCounts,
    Write,
    Written,
)
from assay.kit.faults import ItemFault, Unjudgeable

R = TypeVar("R")
QUESTION = (ChatMessage("user", "What is two and two?"),)
TOKENS = TokenCounts(10, 4, 2)


def model(*capabilities: Capability, name: str = "m") -> ModelInfo:
    return ModelInfo(name, "transformers", "r", frozenset(capabilities), 4096, deterministic=True)


GENERATIVE = model("choose", "write")
WRITER = model("write")
SCALAR = model("rate")


def drive(run: Run[R], answer: Callable[[Request], Answer]) -> tuple[R, list[tuple[Request, ...]]]:
    """What the run returns, and its rounds of requests."""
    found, rounds = drive_by(run, lambda request, _: answer(request))
    return found, rounds


def drive_by(
    run: Run[R], answer: Callable[[Request, str], Answer]
) -> tuple[R, list[tuple[Request, ...]]]:
    """The same with several models, each by its name; an answer that raises fails an attempt."""

    def reply(one: Asked) -> Reply:
        if not isinstance(one, Attempt):
            return answer(one, "")
        try:
            return answer(one.request, one.model)
        except (Unjudgeable, EngineError) as error:
            return ItemFault(error.reason, error.message, error.metadata)

    rounds = []
    try:
        asked = next(run)
        while True:
            rounds.append(tuple(one.request if isinstance(one, Attempt) else one for one in asked))
            asked = run.send(tuple(map(reply, asked)))
    except StopIteration as end:
        return end.value, rounds


def text_of(prompt: Prompt) -> str:
    """Everything that the model reads, in order."""
    parts = [message.text for message in prompt.messages]
    return "\n".join([*parts, "".join(piece.text for piece in prompt.lead) + prompt.prefill])


def choosing(logits: Callable[[str], tuple[float, ...]]) -> Callable[[Request], Answer]:
    """Answers Choose with the log-softmax of logits that depend on the text."""

    def answer(request: Request) -> Answer:
        assert isinstance(request, Choose)
        raw = logits(text_of(request.prompt))[: len(request.options)]
        top = max(raw)
        total = top + math.log(sum(math.exp(value - top) for value in raw))
        return Chosen(tuple(value - total for value in raw), TOKENS)

    return answer


def moody(seed: int) -> Callable[[str], tuple[float, ...]]:
    """A judge of no principles: its logits are a hash of all that it reads."""

    def logits(text: str) -> tuple[float, ...]:
        digest = hashlib.sha256(f"{seed}{text}".encode()).digest()
        return tuple((byte - 128) / 16 for byte in digest)

    return logits


def writing(texts: Callable[[Write], str]) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        return Written(texts(request), "stop", TOKENS)

    return answer


def rating(logit: Callable[[str], float]) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        assert isinstance(request, RateDialogue)
        return Rated((logit(request.prompt.messages[-1].text),), TOKENS)

    return answer


EVEN = choosing(lambda text: (0.0,) * 9)


def refused(run: Run[object], answer: Callable[[Request], Answer] = EVEN) -> Unjudgeable:
    with pytest.raises(Unjudgeable) as caught:
        drive(run, answer)
    return caught.value
