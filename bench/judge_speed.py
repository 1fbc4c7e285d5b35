"""How fast a judge is: groups, batches, and tokens written against plain transformers.

Four questions, each with its contestants taking turns in one run, on SmolLM2-135M:

1. What do 16 candidates of one prompt cost against one?  (aim: under 4 times)
2. What do 64 candidates (of one prompt, and of four) in one call cost against 64 calls of one, one
   after the other?  (aim: at most a fifth)  Twice: single calls to an engine that keeps nothing
   between calls, and to ours, which finds the prompt's beginning in its cache from the call before.
3. How many tokens a second does the embedded engine write, against the same model under
   `transformers.generate` on one padded batch of the same prompts?
4. What does its batching take beside transformers' continuous batching?  See `judge_batching`.

The first two go over the wire, through the service and the client. No round sees a prompt that was
there before, so that nothing comes from the engine's cache of earlier rounds.

`python -m bench judge-speed`; ASSAY_BENCH_MODEL names another model (a folder, or a hub's).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import tempfile
from dataclasses import replace
from functools import partial
from typing import IO

from assay.clients import EmbeddedServices, Fault
from assay.clients.judging import JudgeClient, JudgeItem, JudgeSettings, Usage
from assay.genrm.engines import load_engine
from assay.genrm.engines.base import JudgeEngine, Prompt, PromptMessage, PromptPiece, Write, Written
from assay.genrm.engines.config import EngineConfig
from assay.kit import pretrained
from bench import judge_batching
from bench.common import interleaved, spread

ROUNDS = 5
GROUP = 16
BATCH = 64
WRITERS = 32
WRITTEN_TOKENS = 64
# Speed is measured, not judgement: a small model is not fit, and its answers are not looked at.
UNTESTED = ("--no-self-test", "--least-mass", "0")
_SETTINGS = JudgeSettings(scoring="token-probability")
_FACTS = (
    "A train leaves the station at nine and runs at sixty kilometres an hour; a second one leaves "
    "an hour later, runs at ninety, and takes the same line. The line is three hundred kilometres "
    "long, both stop nowhere, and the first waits ten minutes at a signal half-way. "
)
_ANSWERS = (
    "The second train gains thirty kilometres an hour, so it needs two hours and meets it at noon.",
    "They never meet, because the first train is always ahead of the second one on this line.",
    "After some minutes the distance is thirty kilometres; then it shrinks, and they meet.",
    "Let x be the time in hours. Then 60 x = 90 (x - 1), so x = 3, and the place is 180 km.",
)
_fresh = itertools.count(1)


def run() -> None:
    """Prints a table for each question."""
    path = os.environ.get("ASSAY_BENCH_MODEL") or str(pretrained.ensure(pretrained.SMOLLM2, print))
    print(f"\njudge-speed: {path}, {ROUNDS} rounds, contestants take turns")
    with (
        tempfile.NamedTemporaryFile("w", suffix=".toml") as models,
        _serving(models, path) as services,
        JudgeClient(services.addresses["genrm"], timeout_s=600) as client,
    ):
        usage = _check(client, _items(2))
        print(f"prompts of about {usage.prompt} tokens, {usage.cached} of them shared in a group")
        _groups(client)
        _batches(client)
    asyncio.run(_writing(path))
    judge_batching.compare(path)


def _serving(models: IO[str], path: str) -> EmbeddedServices:
    """The service with the model twice: as it is, and keeping nothing between calls."""
    quoted = json.dumps(path)
    models.write(f"[model.judge]\npath = {quoted}\n")
    models.write(f"[model.forgetful]\npath = {quoted}\nprefix_cache_tokens = 0\n")
    models.flush()
    flags = {"genrm": ("--models", models.name, "--log-level", "ERROR", *UNTESTED)}
    return EmbeddedServices(("genrm",), arguments=flags, start_timeout_s=600)


def _question(prompts: int = 1) -> list[str]:
    """Prompts that begin alike with nothing that was there before."""
    return [f"Case {next(_fresh)}. {_FACTS * 8}When do they meet?" for _ in range(prompts)]


def _items(count: int, prompts: int = 1) -> list[JudgeItem]:
    """Candidates; those of one prompt stand together."""
    each = count // prompts
    return [
        JudgeItem(question, f"({i}) {_ANSWERS[i % len(_ANSWERS)]}", ground_truth="At noon.")
        for question in _question(prompts)
        for i in range(each)
    ]


def _judge(client: JudgeClient, count: int, prompts: int = 1) -> None:
    _check(client, _items(count, prompts))


def _check(client: JudgeClient, items: list[JudgeItem], model: str = "judge") -> Usage:
    """Judges items in one call, and says what the last one took; a fault ends the measurement."""
    usage = Usage()
    for result in client.judge_responses(items, replace(_SETTINGS, model=model)):
        if isinstance(result, Fault):
            raise SystemExit(f"bench: an item was not judged: {result.reason}: {result.message}")
        usage = result.usage
    return usage


def _groups(client: JudgeClient) -> None:
    contestants = {f"{count} of one prompt": partial(_judge, client, count) for count in (1, GROUP)}
    seconds = interleaved(contestants, ROUNDS)
    _print_seconds(seconds, f"{GROUP} cost {{ratio:.2f}} times one (aim: under 4)")


def _batches(client: JudgeClient) -> None:
    def one_by_one(model: str, prompts: int) -> None:
        for item in _items(BATCH, prompts):
            _check(client, [item], model)

    for prompts in (1, BATCH // GROUP):
        contestants = {
            f"{BATCH} of {prompts} in one call": partial(_judge, client, BATCH, prompts),
            f"{BATCH} calls, nothing kept": partial(one_by_one, "forgetful", prompts),
            f"{BATCH} calls": partial(one_by_one, "judge", prompts),
        }
        seconds = interleaved(contestants, max(2, ROUNDS // 2))
        _print_seconds(seconds, "one call is {ratio:.2f} times as fast (aim: at least 5)")


def _print_seconds(seconds: dict[str, list[float]], verdict: str) -> None:
    """The medians, and each one's ratio to the first: median of the rounds'."""
    base = next(iter(seconds.values()))
    for name, values in seconds.items():
        ratio = statistics.median(b / a for a, b in zip(base, values, strict=True))
        note = "" if values is base else verdict.format(ratio=ratio)
        print(f"{name:>30s}   {spread(values)} s   {note}")


async def _writing(path: str) -> None:
    """Tokens a second of the engine and of plain transformers, in turns."""
    config = EngineConfig(path=path)
    engine = load_engine("writer", config)
    await engine.start()
    try:
        plain = await asyncio.to_thread(_PlainGenerate, path)
        rates: dict[str, list[float]] = {"embedded engine": [], "transformers.generate": []}
        loop = asyncio.get_running_loop()
        for _ in range(max(2, ROUNDS // 2)):
            prompts = _writing_prompts()
            began = loop.time()
            count = await _write_all(engine, prompts)
            rates["embedded engine"].append(count / (loop.time() - began))
            began = loop.time()
            count = await asyncio.to_thread(plain.write_all, prompts)
            rates["transformers.generate"].append(count / (loop.time() - began))
    finally:
        await engine.close()
    print(f"{WRITERS} prompts, up to {WRITTEN_TOKENS} tokens each, greedy; tokens a second:")
    for name, values in rates.items():
        print(f"{name:>22s}   {spread(values)}")
    ours, theirs = rates.values()
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"{'':>22s}   the engine is {ratio:.2f} times as fast")


def _writing_prompts() -> list[str]:
    """Prompts of different lengths, as judges see them."""
    return [
        f"{question[: 60 + 40 * index]} Explain step by step."
        for index, question in enumerate(_question(WRITERS))
    ]


async def _write_all(engine: JudgeEngine, prompts: list[str]) -> int:
    """Tokens written for all prompts, asked at once."""
    requests = [
        Write(Prompt((PromptMessage("user", (PromptPiece(text),)),)), max_tokens=WRITTEN_TOKENS)
        for text in prompts
    ]
    answers = await asyncio.gather(*map(engine.ask, requests))
    return sum(answer.tokens.completion for answer in answers if isinstance(answer, Written))


class _PlainGenerate:
    """The same model under `transformers.generate`, one left-padded batch."""

    def __init__(self, path: str) -> None:
        import torch  # noqa: PLC0415 - with transformers, seconds that the others do not need
        from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415 - likewise

        self._torch = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        precision = torch.bfloat16 if self._device == "cuda" else torch.float32
        self._tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        model = AutoModelForCausalLM.from_pretrained(path, dtype=precision)
        self._model = model.to(self._device).eval()

    def write_all(self, prompts: list[str]) -> int:
        """Tokens written for all prompts; what follows a sequence's end does not count."""
        texts = [
            self._tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
            for text in prompts
        ]
        batch = self._tokenizer(
            texts, return_tensors="pt", padding=True, add_special_tokens=False
        ).to(self._device)
        with self._torch.inference_mode():
            ids = self._model.generate(
                **batch,
                max_new_tokens=WRITTEN_TOKENS,
                do_sample=False,
                pad_token_id=self._tokenizer.pad_token_id,
            )
        written = ids[:, batch["input_ids"].shape[1] :]
        ends = written == self._tokenizer.eos_token_id
        return int((ends.cumsum(dim=1) - ends.long() == 0).sum())
