"""Two methods on a policy pretrained on the spot: `python -m bench gpu-learning --arms grpo,dapo`.

Made for a GPU that is borrowed for minutes and reaches nothing: a model of 50 to 300 million
weights learns to add up several numbers in a chain of steps, each wrong now and then, and is then
trained by `assay train`'s own recipe with rewards from a real reward service that the run starts.
Arms share problems and weights, and take turns, seed after seed, until the time is up. Prints each
arm's held-out accuracy with a 95 % interval over seeds, and the paired difference.

`--rehearse` does it small, in a minute or two of a CPU. Nothing that it prints then is a result.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from experiments.miniature import Shape, pretrained, write_problems
from rich.console import Console

from assay.kit.runs import environment
from assay.trainer.recipes.ladder.stats import SeedMean, estimate
from assay.trainer.recipes.train import run as train
from assay.trainer.records import folder as folders
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config

WORDS = (*map(str, range(10)), "+", "=", ";", "\n", "\\boxed{", "}")
WRONG = 0.06
"""Share of the pretraining's steps whose sum is off by one to nine."""
PRESETS = {"grpo": "grpo", "dapo": "dapo", "ppo": "ppo", "vc-ppo": "vc_ppo", "vapo": "vapo",
           "t-ppo": "t_ppo", "pag": "pag"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything.

    Attributes:
        shape: of the model.
        terms: of a sum, at most.
        tokens: of a response, at most.
        prompts: of a step.
        samples: of a prompt, where a method has groups.
        steps: of a run.
        held_out: problems.
    """

    shape: Shape
    terms: int
    tokens: int
    prompts: int
    samples: int
    steps: int
    held_out: int


FULL = Size(Shape(1024, 12, 512, 2500, 256, 3e-4), 12, 160, 32, 16, 60, 1000)
SMALL = Size(Shape(64, 2, 96, 300, 64, 5e-3), 4, 40, 8, 8, 3, 40)


def chain(numbers: Sequence[int], dice: random.Random, wrong: float) -> str:
    """The steps and the boxed sum; a step is wrong with a chance of `wrong`."""
    total, steps = numbers[0], []
    for number in numbers[1:]:
        found = total + number + (dice.randint(1, 9) if dice.random() < wrong else 0)
        steps.append(f"{total}+{number}={found}")
        total = found
    return ";".join(steps) + f"\n\\boxed{{{total}}}"


def drawn(dice: random.Random, terms: int) -> list[int]:
    """Numbers to add up."""
    return [dice.randint(10, 99) for _ in range(dice.randint(3, terms))]


def asked(numbers: Sequence[int]) -> str:
    """The prompt."""
    return "+".join(map(str, numbers)) + "=\n"


def prepared(folder: Path, size: Size) -> tuple[Path, Path, Path]:
    """The model, the problems to train on and those held out."""

    def draw(dice: random.Random) -> tuple[str, str]:
        numbers = drawn(dice, size.terms)
        return asked(numbers), chain(numbers, dice, WRONG)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = pretrained(folder / "model", WORDS, draw, size.shape, device=device)
    dice = random.Random(1)
    seen: dict[str, int] = {}
    while len(seen) < 20 * size.held_out:
        numbers = drawn(dice, size.terms)
        seen[asked(numbers)] = sum(numbers)
    rows = [(text, str(total)) for text, total in seen.items()]
    held_out = write_problems(folder / "held_out.jsonl", rows[: size.held_out])
    return model, write_problems(folder / "train.jsonl", rows[size.held_out :]), held_out


def arm_config(arm: str, files: tuple[Path, Path, Path], size: Size, seed: int) -> Config:
    """A preset, with everything that is not its method set to the task."""
    model, problems, held_out = files
    path = Path(__file__).resolve().parent.parent / "configs" / f"{PRESETS[arm]}.toml"
    published = configs.load(path, [f"data={problems}"])
    grouped = published.rollout.group_size > 1
    samples = size.samples if grouped else 1
    own = [
        f"data={problems}",
        f"data.eval_path={held_out}",
        "data.template={question}",
        f"model={model}",
        "reward=math",
        "reward.parameters={}",
        f"rollout.prompts_per_step={size.prompts * size.samples // samples}",
        f"rollout.group_size={samples}",
        f"rollout.max_new_tokens={size.tokens}",
        f"optim.mini_batches={min(2, published.optim.mini_batches)}",
        "optim.learning_rate=2e-5",
        "optim.warmup_steps=0",
        f"run.steps={size.steps}",
        f"run.seed={seed}",
        "run.checkpoint_every=0",
        "run.report_to=[]",
        f"eval.prompts={size.held_out}",
        f"eval.batch_size={size.held_out}",
    ]
    if published.method.critic.pretrain_steps:
        own += ["method.critic.pretrain_steps=5", "method.critic.below_minimum=warn"]
    if published.method.critic.init != "policy":
        own.append("method.critic.init=policy")
    if published.method.truncation.window:
        own += [f"method.truncation.window={size.tokens // 4}", "method.truncation.min_finished=1"]
    if published.method.shaping.overlong == "soft":
        own.append(f"method.shaping.overlong_cache={size.tokens // 4}")
    return configs.load(path, own)


def one_run(config: Config, folder: Path) -> dict[str, float]:
    """Trains; accuracy before and after, and seconds."""
    began = time.perf_counter()
    report = train(config, folders.create(config, folder.name, folder), Console(file=io.StringIO()))
    if not report:
        raise RuntimeError("the run was interrupted")
    return {
        "before": report["before"]["accuracy"],
        "after": report["after"]["accuracy"],
        "seconds": time.perf_counter() - began,
    }


def told(value: SeedMean) -> str:
    """A mean with its 95 % interval, where there is one."""
    if value.low is None or value.high is None:
        return f"{value.mean:.3f}"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def run(words: Sequence[str] = ()) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench gpu-learning", description=__doc__)
    parser.add_argument("--arms", default="grpo,dapo")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args(words)
    arms = chosen.arms.split(",")
    if unknown := [arm for arm in arms if arm not in PRESETS]:
        parser.error(f"no arm is called {unknown[0]!r}; known: {', '.join(PRESETS)}")
    environment.calm()
    size = SMALL if chosen.rehearse else FULL
    end = time.monotonic() + 60 * chosen.minutes
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="gpu-learning-"))
    if torch.cuda.is_available():
        print(f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}")
    files = prepared(folder, size)
    print(f"pretrained; {end - time.monotonic():.0f} s left")
    found: dict[str, list[dict[str, float]]] = {arm: [] for arm in arms}
    longest = 0.0
    seed = 0
    while not seed or time.monotonic() + 1.1 * longest * len(arms) < end:
        for arm in arms:
            made = one_run(arm_config(arm, files, size, seed), folder / f"{arm}-{seed}")
            found[arm].append(made)
            longest = max(longest, made["seconds"])
            print(f"seed {seed} {arm:7s} {json.dumps({k: round(v, 3) for k, v in made.items()})}")
        seed += 1
    for arm in arms:
        after = estimate([one["after"] for one in found[arm]])
        took = statistics.median(one["seconds"] for one in found[arm])
        print(f"{arm:7s} {told(after)}, {took:.0f} s a run, {seed} seeds")
    first, *others = arms
    for arm in others:
        gains = [
            one["after"] - other["after"]
            for one, other in zip(found[arm], found[first], strict=True)
        ]
        print(f"{arm} - {first}: {told(estimate(gains))}")
    if chosen.rehearse:
        print("a rehearsal: no result")
