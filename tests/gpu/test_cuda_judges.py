"""genrm's embedded engine on CUDA says what transformers says on the CPU."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from pathlib import Path

import pytest

from assay.genrm.engines import load_engine
from assay.genrm.engines.base import (
    Answer,
    Choose,
    Chosen,
    Prompt,
    PromptMessage,
    PromptPiece,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.replicas import ReplicatedEngine
from assay.genrm.engines.transformers import TransformersEngine
from assay.kit.errors import StartupError
from genrm_engine_support import Alone
from genrm_support import make_adapter, make_model

pytestmark = pytest.mark.gpu
FAR = {"float32": 1e-4, "bfloat16": 0.02}
OPTIONS = ("A", "B", " neither")


@pytest.mark.parametrize("precision", FAR)
async def test_probabilities_are_those_of_the_weights(
    device: str, tmp_path: Path, precision: str
) -> None:
    folder = make_model(tmp_path / "model", "causal")
    alone, options = Alone(folder, "generative"), OPTIONS
    made = load_engine("tiny", EngineConfig(str(folder), device=device, precision=precision))  # type: ignore[arg-type]
    await made.start()
    try:
        prompts = [
            Prompt(
                (
                    PromptMessage(
                        "user", (PromptPiece(f"The answer is {n}. {'so ' * n}", trusted=False),)
                    ),
                )
            )
            for n in range(30)
        ]
        answers = await asyncio.gather(*(made.ask(Choose(p, options)) for p in prompts))
        encoder = made._opened.encoder
        for prompt, answer in zip(prompts, answers, strict=True):
            assert isinstance(answer, Chosen)
            ids = encoder.encode(prompt)
            for option, logprob in zip(
                encoder.encode_options(options), answer.logprobs, strict=True
            ):
                want = math.exp(alone.logprob(ids, option))
                assert math.exp(logprob) == pytest.approx(want, abs=FAR[precision])
    finally:
        await made.close()


async def test_two_engines_on_one_device_say_the_same_and_one_is_killed(
    device: str, tmp_path: Path
) -> None:
    """Replicas where there is one GPU; on a machine with more, name each of them."""
    folder = make_model(tmp_path / "model", "causal")
    places = ("cuda:0" if device == "cuda" else device,) * 2
    made = load_engine("tiny", EngineConfig(str(folder), device=places, precision="float32"))
    assert isinstance(made, ReplicatedEngine)
    await made.start()
    try:
        assert made.tally.ready == 2
        first, second = made.engines
        assert isinstance(first, TransformersEngine)
        both = await asyncio.gather(first.ask(choose(1)), second.ask(choose(1)))
        assert logprobs(both[0]) == pytest.approx(logprobs(both[1]), abs=1e-4)
        answers = await asyncio.gather(*(made.ask(choose(n)) for n in range(20)))
        assert all(one.tally.rows for one in made.engines)
        os.kill(first.worker_pid or 0, signal.SIGKILL)
        while first.tally.ready:  # noqa: ASYNC110  # nothing tells when its end is seen
            await asyncio.sleep(0.01)
        again = await asyncio.gather(*(made.ask(choose(n)) for n in range(20)))
        for before, after in zip(answers, again, strict=True):
            assert logprobs(after) == pytest.approx(logprobs(before), abs=1e-3)
        while made.tally.ready < 2:  # noqa: ASYNC110  # nor when it is back
            await asyncio.sleep(0.05)
    finally:
        await made.close()


@pytest.mark.parametrize("precision", FAR)
async def test_adapters_over_one_base_say_what_peft_says(
    device: str, tmp_path: Path, precision: str
) -> None:
    pytest.importorskip("peft", reason="PEFT is not installed")
    folder = make_model(tmp_path / "model", "causal")
    adapter = make_adapter(tmp_path / "adapter", folder)
    made = load_engine("tiny", EngineConfig(str(folder), device=device, precision=precision))  # type: ignore[arg-type]
    assert isinstance(made, TransformersEngine)
    await made.start()
    try:
        await made.load_adapter("k", str(adapter))
        asked = [(key, n) for n in range(10) for key in ("", "k")]
        answers = await asyncio.gather(*(made.ask_with(key, choose(n)) for key, n in asked))
        alone = {"": Alone(folder, "generative"), "k": Alone(folder, "generative", adapter)}
        assert made._opened is not None
        encoder = made._opened.encoder
        for (key, n), answer in zip(asked, answers, strict=True):
            ids = encoder.encode(choose(n).prompt)
            for option, logprob in zip(
                encoder.encode_options(OPTIONS), logprobs(answer), strict=True
            ):
                want = math.exp(alone[key].logprob(ids, option))
                assert math.exp(logprob) == pytest.approx(want, abs=FAR[precision])
    finally:
        await made.close()


async def test_a_device_beyond_the_last_is_named(device: str, tmp_path: Path) -> None:
    if device != "cuda":
        pytest.skip("a CUDA device's number")
    folder = make_model(tmp_path / "model", "causal")
    with pytest.raises(StartupError, match="there is no cuda:99 here; CUDA devices are 0 to"):
        await load_engine("tiny", EngineConfig(str(folder), device="cuda:99")).start()


def choose(number: int) -> Choose:
    text = PromptPiece(f"The answer is {number}. {'so ' * number}")
    return Choose(Prompt((PromptMessage("user", (text,)),)), OPTIONS)


def logprobs(answer: Answer) -> tuple[float, ...]:
    assert isinstance(answer, Chosen)
    return answer.logprobs
