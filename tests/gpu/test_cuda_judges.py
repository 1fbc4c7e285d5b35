"""genrm's embedded engine on CUDA says what transformers says on the CPU."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from assay.genrm.engines import load_engine
from assay.genrm.engines.base import Choose, Chosen, Prompt, PromptMessage, PromptPiece
from assay.genrm.engines.config import EngineConfig
from genrm_engine_support import Alone
from genrm_support import make_model

pytestmark = pytest.mark.gpu
FAR = {"float32": 1e-4, "bfloat16": 0.02}


@pytest.mark.parametrize("precision", FAR)
async def test_probabilities_are_those_of_the_weights(
    device: str, tmp_path: Path, precision: str
) -> None:
    folder = make_model(tmp_path / "model", "causal")
    alone, options = Alone(folder, "generative"), ("A", "B", " neither")
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
