"""A policy whose first token picks a strategy, for FIRE (arXiv 2410.21236).

The pretrained model answers a problem by a strategy, "A" to "H", and the digit that the strategy
leads to. It nearly always takes "A", which is right for half of the problems; for each of the
others one of the other strategies is. Problems come in two writings that mean the same: "x" to
train on, "y" to evaluate.

A policy whose first tokens are out of the loss (mask) does not learn which strategy to begin with,
and only what to do after it; this task has nothing else to learn, so that it shows the mask at its
worst.
"""

from __future__ import annotations

import random
import statistics
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import EngineHost, Sampler
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.types import Draw, FirstToken, Request, Sampling
from assay.trainer.methods.fire.settings import FireConfig
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.miniature import Item, Service, Shape, pretrained, train, write_problems

PROBLEMS, SAMPLES = 48, 16
STRATEGIES = "ABCDEFGH"
USUAL, FAITHFUL = 0.86, 0.95
"""The chance of "A"; and of the digit that a strategy leads to, once it is chosen."""
LETTERS = "abcdefghijklmnopqrstuvw"
NAMES = tuple(f"{LETTERS[n // 8]}{n % 8}" for n in range(PROBLEMS))
WORDS = (*(f"{name}{form}" for name in NAMES for form in "xy"), "=", *STRATEGIES, *"0123456789")
SHAPE = Shape(width=64, layers=2, context=16, steps=900, batch=128)
FIRE = FirstToken(FireConfig().temperature, FireConfig().top_k)
ARMS: dict[str, tuple[str, ...]] = {
    "regular": (),
    **{
        f"fire, {mode}": ("method.fire.enabled=true", f"method.fire.mode={mode}")
        for mode in ("mask", "exact", "parity")
    },
}
SMALL = (
    "data={data}",
    "model.name={model}",
    "model.precision=float32",
    "model.device=cpu",
    "reward=miniature",
    "data.template={question}",
    "rollout.prompts_per_step=16",
    "rollout.group_size=8",
    "rollout.max_new_tokens=3",
    "optim.learning_rate=1e-3",
    "eval.samples=16",
    "run.checkpoint_every=0",
    "run.samples_every=0",
    "run.report_to=[]",
)
SAMPLED = ("pass@1", f"pass@{SAMPLES}", "different answers", "different right ways")


def leads_to(problem: int, strategy: str) -> int:
    """The digit that a strategy comes to."""
    return random.Random(f"{problem}-{strategy}").randrange(10)


def best(problem: int) -> str:
    """The strategy that is right."""
    return "A" if problem % 2 else random.Random(f"best-{problem}").choice(STRATEGIES[1:])


def drawn(dice: random.Random) -> tuple[str, str]:
    """A problem in either writing, and a response of the pretraining."""
    problem = dice.randrange(PROBLEMS)
    strategy = "A" if dice.random() < USUAL else dice.choice(STRATEGIES[1:])
    digit = leads_to(problem, strategy) if dice.random() < FAITHFUL else dice.randrange(10)
    return f"{NAMES[problem]}{dice.choice('xy')}=", f"{strategy}{digit}"


def files(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, the problems to train on, and those to evaluate on."""
    model = pretrained(folder / "strategies", WORDS, drawn, SHAPE)
    paths = [
        write_problems(
            folder / f"strategies-{form}.jsonl",
            [(f"{NAMES[n]}{form}=", str(leads_to(n, best(n)))) for n in range(PROBLEMS)],
        )
        for form in "xy"
    ]
    return model, paths[0], paths[1]


def is_right(item: Item) -> bool:
    """A strategy and the right digit, and nothing else."""
    text = item.response
    return (
        len(text) == 2
        and text[0] in STRATEGIES
        and text[1] == item.reference.text
        and not item.truncated
    )


# What is sampled.


def sampled(folder: Path, first: FirstToken | None, seed: int) -> dict[str, float]:
    """What the pretrained model samples, with FIRE's first tokens or with its own."""
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    path, _, _ = files(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(path)
    model: Any = AutoModelForCausalLM.from_pretrained(path)
    draws = [
        Draw(n, Problem(str(n), "", (), ""), tuple(tokenizer(f"{NAMES[n]}y=")["input_ids"]))
        for n in range(PROBLEMS)
    ]
    requests = [Request(draw, index) for draw in draws for index in range(SAMPLES)]
    host = EngineHost(
        lambda: nullcontext(model),
        tokenizer,
        seed,
        frozenset({tokenizer.eos_token_id}),
        nullcontext,
    )
    sampler = Sampler(HfEngine(host), Sampling(3, first=first))
    responses = sampler.generate(requests, lambda _place, _response: None)
    rows = [responses[n * SAMPLES : (n + 1) * SAMPLES] for n in range(PROBLEMS)]
    figures: dict[str, list[float]] = {name: [] for name in SAMPLED}
    for problem, row in enumerate(rows):
        texts = [r.text for r in row if not r.truncated and r.text[:1] in tuple(STRATEGIES)]
        reference = str(leads_to(problem, best(problem)))
        right = [text for text in texts if text[1:] == reference]
        values = (len(right) / SAMPLES, float(bool(right)), len({t[1:] for t in texts}))
        for name, value in zip(SAMPLED, (*values, len(set(right))), strict=True):
            figures[name].append(value)
    return {name: statistics.fmean(values) for name, values in figures.items()}


# What is trained.


def settings(arm: str, folder: Path, seed: int, steps: int) -> Config:
    """Of one run."""
    model, problems, held_out = files(folder)
    tree = {"data": {"eval_path": str(held_out)}, "eval": {"prompts": PROBLEMS}}
    given = [one.replace("{data}", str(problems)).replace("{model}", str(model)) for one in SMALL]
    return configs.build(
        tree, (*given, *ARMS[arm], f"run.steps={steps}", f"run.seed={seed}"), origin="bench"
    )


def one_run(config: Config, folder: Path) -> dict[str, float]:
    """Trains; how the policy answers in regular decoding, before and after."""
    report = train(config, folder, lambda: Service(is_right))
    found = {}
    for when in ("before", "after"):
        told_ = report[when]
        found[f"pass@1 {when}"] = told_["accuracy"]
        found[f"pass@16 {when}"] = told_["pass_at"]["16"]["value"]
    return found
