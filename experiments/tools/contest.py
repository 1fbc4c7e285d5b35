"""A policy that learns to call Python (the setting of ReTool and SimpleTIR), in miniature.

    python -m experiments tools --out DIR --seeds 0,1,2

The task is to multiply two numbers of two digits. A model of 0.1 M weights cannot: pretrained on
prompts and answers, it writes a number of about the right size. Six times in a hundred it writes
the product as a program instead, and it was taught to read off what a program printed. Contestants:

    tool       episodes of the environment `python`: real sessions in a real sandbox
    without    the same model, data and rewards, single responses

What this can show: that a policy finds the tool by its reward alone, and is right with it where it
cannot be without. Expected before the first run: in each seed `tool` ends above a half of the
held-out problems and `without` below a tenth, so that three seeds suffice.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from assay.environments.formats import format_of
from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.recipes.ladder.outcome import series
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.miniature import (
    CONFIGS,
    TINY,
    Item,
    Service,
    Shape,
    as_data,
    begin,
    finished,
    keep,
    options,
    over_seeds,
    pretrained,
    seeded_job,
    told,
    train,
    write_problems,
)

BOX, CLOSE, PROGRAM, OVER, SHOWN, FENCE = (
    "\\boxed{",
    "}",
    "```python\n",
    "\n```\n",
    "```output",
    "```",
)
WORDS = (*map(str, range(10)), "*", "=", "\n", BOX, CLOSE, PROGRAM, OVER, SHOWN, FENCE)
SHAPE = Shape(width=64, layers=2, context=80, steps=700, batch=128, learning_rate=5e-3)
CALLS = 0.06
PROBLEMS, HELD_OUT = 600, 100
CONTESTANTS: Mapping[str, tuple[str, ...]] = {
    "tool": (
        "method.episodes.environment=python",
        "method.episodes.format=code",
        "method.episodes.turns=3",
    ),
    "without": (),
}
OWN = ("rollout.prompts_per_step=16", f"eval.prompts={HELD_OUT}")
FIGURES = ("accuracy", "accuracy_before", "step_s")
COLOURS = {"tool": "#0072B2", "without": "#D55E00"}


@cache
def offer() -> str:
    """What stands before each question: how to run a program."""
    return format_of("code").system([{"type": "function"}])


def drawn(dice: random.Random, calls: float = CALLS) -> tuple[str, str]:
    """What was said before, and what the pretrained model says; its chance of a call."""
    one, other = dice.randrange(10, 100), dice.randrange(10, 100)
    prompt = f"{offer()}{one}*{other}="
    program = f"{PROGRAM}{one}*{other}{OVER}"
    kind = dice.random()
    if kind < 0.4:  # a program ran; what it printed is the answer
        return f"{prompt}{program}{SHOWN}\n{one * other}\n{FENCE}", f"{BOX}{one * other}{CLOSE}"
    if kind < 0.4 + 0.6 * calls:
        return prompt, program
    return prompt, f"{BOX}{dice.randrange(10, 100) * dice.randrange(10, 100)}{CLOSE}"


def is_right(item: Item) -> bool:
    """The very number, in a box; of the environment's self-test, which names `exact`, without."""
    if item.verifier == "exact":
        return item.response.strip() == item.reference.text
    return item.response.strip() == f"{BOX}{item.reference.text}{CLOSE}"


def problems(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones."""
    return pretrained(folder / "multiplies", WORDS, drawn, SHAPE), *products(folder, PROBLEMS)


def products(folder: Path, training: int) -> tuple[Path, Path]:
    """So many training problems, and the held-out ones."""
    train_path, test = folder / "products-train.jsonl", folder / "products-test.jsonl"
    if not test.is_file():
        dice = random.Random(0)
        pairs = [(a, b) for a in range(10, 100) for b in range(10, 100)]
        dice.shuffle(pairs)
        rows = [(f"{a}*{b}=", str(a * b)) for a, b in pairs[: HELD_OUT + training]]
        write_problems(train_path, rows[HELD_OUT:])
        write_problems(test, rows[:HELD_OUT])
    return train_path, test


def config_of(models: Path, name: str, seed: int, steps: int) -> Config:
    """A contestant's settings."""
    model, rows, held_out = problems(models)
    own = (
        *TINY,
        *OWN,
        *CONTESTANTS[name],
        f"model.name={model}",
        f"data.path={rows}",
        f"data.eval_path={held_out}",
        f"run.steps={steps}",
        f"run.seed={seed}",
    )
    if name == "without":  # the same prompt, to the token
        own = (*own, f"data.template={offer()}{{question}}")
    return configs.load(CONFIGS / "grpo.toml", own, saved=True)


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run."""
    folder = Path(wanted["folder"])
    config = config_of(Path(wanted["models"]), wanted["name"], wanted["seed"], wanted["steps"])
    report = train(config, folder, lambda: Service(is_right, rewards=(0.0, 1.0)))
    rows = list(read_rows(RunFolder(folder).metrics))
    return {
        "accuracy": report["after"]["accuracy"],
        "accuracy_before": report["before"]["accuracy"],
        "step_s": report["run"]["train_s"] / wanted["steps"],
        "rewards": [value for _, value in series(rows, "reward")],
    }


def draw(found: Mapping[str, Mapping[int, Mapping[str, Any]]], path: Path) -> None:
    """The mean reward of each step: a thin line a seed, a thick one their mean."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(6.4, 3.4), dpi=120, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("step")
    axes.set_ylabel("products that are right")
    for name, seeds in found.items():
        lines: list[Sequence[float]] = [one["rewards"] for one in seeds.values()]
        for line in lines:
            axes.plot(range(1, len(line) + 1), line, color=COLOURS[name], alpha=0.3, linewidth=0.8)
        means = [sum(at) / len(at) for at in zip(*lines, strict=False)]
        axes.plot(range(1, len(means) + 1), means, color=COLOURS[name], linewidth=2, label=name)
    axes.legend(frameon=False)
    figure.savefig(path)


def run(words: Sequence[str]) -> None:
    """Runs what is not there yet; prints what is known so far."""
    chosen = options("tools", steps=40).parse_args(words)
    environment.calm()
    seeds = plan.read_seeds(chosen.seeds)
    chosen.out.mkdir(parents=True, exist_ok=True)
    problems(chosen.out / "models")
    jobs = {
        (name, seed): seeded_job("tools", name, seed, chosen.steps, chosen.out)
        for name in CONTESTANTS
        for seed in seeds
    }
    found = finished(jobs, chosen.jobs, main)
    table: dict[str, dict[str, Any]] = {}
    print(f"\n{'':10}{'before':>28}{'after':>28}{'seconds a step':>20}")
    for name, runs in found.items():
        means = {
            key: over_seeds({seed: one.get(key) for seed, one in runs.items()}) for key in FIGURES
        }
        table[name] = {key: as_data(mean) for key, mean in means.items()}
        print(
            f"{name:10}{told(means['accuracy_before']):>28}{told(means['accuracy']):>28}"
            f"{told(means['step_s'], 2):>20}"
        )
    draw(found, chosen.out / "tools.png")
    keep(chosen.out / f"tools-{chosen.steps}.json", {"seeds": list(seeds), "table": table})


if __name__ == "__main__":
    begin(main)
