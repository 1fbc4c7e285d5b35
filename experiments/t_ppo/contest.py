"""What truncated rollouts save: T-PPO (arXiv 2506.15050), in theory and in miniature.

    python -m experiments t_ppo --parts simulation
    python -m experiments t_ppo --parts toy --out DIR --seeds 0,1,2 --jobs 1 --rate 5e-4

    simulation  slots and log-normal lengths, no model: tokens for each decode step, where a step
                is a window and a free slot is refilled, relative to rollouts of whole responses. A
                derivation: a decode step costs the same however many slots are alive, as it does
                where reading the weights is what takes time, and reading a prefix again is free
    toy         configs/t_ppo.toml on `errands`, at most 96 tokens and a window of 32,
                beside itself with the part switched off: the same critic, the same pre-training,
                and as many responses finished

Both arms of the toy are `assay train`, each run in a process of its own. Tokens for each decode
step are counted; seconds are the machine's.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.claim import Runs, column
from experiments.errands import LIMIT, drawn_number, errands, errands_right
from experiments.miniature import (
    Service,
    as_data,
    begin,
    finished,
    job_of,
    keep,
    options,
    over_seeds,
    told,
    train,
)
from experiments.report import change

CONFIG = Path(__file__).parents[2] / "configs" / "t_ppo.toml"
WINDOW = LIMIT // 3
SLOTS = 64
SMALL = (
    "model.gradient_checkpointing=false",
    "model.precision=float32",
    "reward.verifier=miniature",
    "data.template={question}",
    "optim.warmup_steps=0",
    "optim.mini_batches=2",
    "optim.micro_batch=0",
    "method.critic.learning_rate=1e-3",
    "method.critic.warmup_steps=0",
    "method.critic.pretrain_steps=10",
    f"method.truncation.window={WINDOW}",
    "method.truncation.min_finished=1",
    f"rollout.prompts_per_step={SLOTS}",
    "rollout.group_size=1",
    f"rollout.max_new_tokens={LIMIT}",
    "eval.prompts=32",
    "eval.samples=8",
    "eval.top_p=1.0",
    "run.checkpoint_every=0",
    "run.samples_every=1",
    "run.report_to=[]",
)
ARMS: Mapping[str, tuple[str, ...]] = {"whole": ("ablate=truncation",), "windows": ()}
FIGURES = {
    "tokens_per_decode_step": "tokens for each decode step",
    "decode_steps": "decode steps",
    "generated_tokens": "tokens generated",
    "generate_s": "seconds generating",
    "train_s": "seconds training, in all",
    "step_s": "seconds a step",
    "reward_late": "reward of the last five steps",
    "accuracy": "held-out accuracy",
    "length_late": "response length of the last five steps",
    "explained_late": "explained variance of the last five steps",
}
RATIOS = ("tokens_per_decode_step", "generate_s", "train_s")


# The simulation.


@dataclass(frozen=True, slots=True)
class Lengths:
    """Log-normal lengths, cut at a limit.

    Attributes:
        mean: of the law, before it is cut; tokens.
        sigma: of the logarithm.
        limit: most tokens of a response.
    """

    mean: float
    sigma: float
    limit: int


PUBLISHED = 24_576
"""Most tokens of a response at the paper's scale, as third-party notes have it; 8,192 slots."""
LAWS = tuple(Lengths(m, s, PUBLISHED) for m, s in ((4e3, 0.8), (6e3, 0.8), (8e3, 0.8), (1e4, 0.7)))
WINDOWS = (2048, 4096, 8192, 16384)


def simulated(
    lengths: Lengths, window: int, *, slots: int = 8192, steps: int = 60, settle: int = 20
) -> float:
    """Tokens for each decode step in windows, over that of whole responses.

    Args:
        lengths: of the responses.
        window: most tokens of a slot in a step.
        slots: responses at a time, in both.
        steps: that are counted.
        settle: steps before that: at first every slot is at its response's beginning.
    """
    import numpy as np  # noqa: PLC0415

    dice = np.random.default_rng(0)
    centre = np.log(lengths.mean) - lengths.sigma**2 / 2

    def draw(count: int) -> Any:
        drawn = np.rint(dice.lognormal(centre, lengths.sigma, count))
        return drawn.clip(1, lengths.limit).astype(np.int64)

    whole = [draw(slots) for _ in range(steps)]
    synchronous = sum(int(one.sum()) for one in whole) / sum(int(one.max()) for one in whole)
    left, tokens, passes = draw(slots), 0, 0
    for step in range(settle + steps):
        drawn = np.minimum(left, window)
        if step >= settle:
            tokens, passes = tokens + int(drawn.sum()), passes + int(drawn.max())
        left = left - drawn
        free = left == 0
        left[free] = draw(int(free.sum()))
    return tokens / passes / synchronous


def _simulation() -> list[dict[str, float]]:
    print(f"\ntokens for each decode step, relative to whole responses of at most {PUBLISHED:,}")
    print(f"{'mean length':>12}{'sigma':>7}" + "".join(f"{f'W = {w:,}':>12}" for w in WINDOWS))
    rows = []
    for law in LAWS:
        found = {str(window): simulated(law, window) for window in WINDOWS}
        rows.append({"mean": law.mean, "sigma": law.sigma, **found})
        cells = "".join(f"{found[str(window)]:>11.2f}x" for window in WINDOWS)
        print(f"{law.mean:>12,.0f}{law.sigma:>7.1f}{cells}")
    return rows


# The toy: one run, in its own process.


def steps_of(arm: str, steps: int) -> int:
    """As many responses finish in both arms: a response takes so many windows on average."""
    if arm == "whole":
        return steps
    dice = random.Random(0)
    drawn = [min(drawn_number(dice) + 1, LIMIT) for _ in range(20_000)]
    return round(steps * statistics.fmean(-(-length // WINDOW) for length in drawn))


def arm_config(arm: str, models: Path, steps: int, seed: int, rate: float) -> Config:
    """The settings of one arm."""
    model, problems, held_out = errands(models)
    own = (
        f"model.name={model}",
        f"data.path={problems}",
        f"data.eval_path={held_out}",
        f"run.steps={steps_of(arm, steps)}",
        f"run.seed={seed}",
        f"optim.learning_rate={rate}",
    )
    return configs.load(CONFIG, (*SMALL, *own, *ARMS[arm]))


def decoding(folder: RunFolder, arm: str) -> tuple[int, int]:
    """Tokens generated in training, and the decode steps that drew them."""
    rows = read_rows(folder.metrics)
    tokens = sum(row["generated_tokens"] for row in rows)
    if arm == "windows":
        drawn = [(row["generated_tokens"], row["tokens_per_decode_step"]) for row in rows]
        return tokens, round(sum(count / rate for count, rate in drawn))
    longest: dict[int, int] = defaultdict(int)
    for sample in read_rows(folder.samples):
        longest[sample["step"]] = max(longest[sample["step"]], sample["tokens"])
    assert len(longest) == len(rows)
    return tokens, sum(longest.values())


def one_run(arm: str, config: Config, folder: Path) -> dict[str, Any]:
    """Trains, and says what it took and what came of it."""
    right, began = errands_right(config.run.seed), time.process_time()
    report = train(config, folder, lambda: Service(right))
    made = RunFolder(folder)
    rows = read_rows(made.metrics)
    tokens, decode_steps = decoding(made, arm)

    def late(key: str) -> float:
        return statistics.fmean(row[key] for row in rows[-5:] if row[key] is not None)

    return {
        "steps": len(rows),
        "generated_tokens": tokens,
        "decode_steps": decode_steps,
        "tokens_per_decode_step": tokens / decode_steps,
        "generate_s": sum(row["generate_s"] for row in rows),
        "step_s": statistics.fmean(row["step_s"] for row in rows),
        "train_s": report["run"]["train_s"],
        "cpu_s": time.process_time() - began,
        "before": report["before"]["accuracy"],
        "accuracy": report["after"]["accuracy"],
        "reward_late": late("reward"),
        "length_late": late("response_length"),
        "explained_late": late("explained_variance"),
        "finished_share": late("finished_share") if arm == "windows" else 1.0,
    }


# All runs.


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("t_ppo", steps=20)
    parser.add_argument("--parts", default="simulation,toy")
    parser.add_argument("--rate", type=float, default=5e-4, help="the policy's learning rate")
    chosen = parser.parse_args(words)
    environment.calm()
    parts = chosen.parts.split(",")
    found: dict[str, Any] = {}
    for part in parts:
        found[part] = _simulation() if part == "simulation" else _toy(chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    keep(chosen.out / f"t_ppo-{'-'.join(parts)}.json", found)


def _toy(chosen: argparse.Namespace) -> dict[str, Any]:
    models = chosen.out / "models"
    errands(models)
    folder = chosen.out / f"toy-{chosen.rate:g}"
    jobs = {
        (arm, seed): job_of(
            "t_ppo", f"{arm}, seed {seed}", folder / f"{arm}-{seed}",
            arm=arm, seed=seed, steps=chosen.steps, rate=chosen.rate, models=str(models),
        )
        for seed in plan.read_seeds(chosen.seeds)
        for arm in ARMS
    }  # fmt: skip
    print(f"\nat most {LIMIT} tokens, a window of {WINDOW}, {SLOTS} slots; seeds {chosen.seeds}")
    return _table(finished(jobs, chosen.jobs, main))


def _table(runs: Runs) -> dict[str, Any]:
    """Means over seeds; ratios and changes are paired by seed."""
    found: dict[str, Any] = {"seeds": {arm: dict(by_seed) for arm, by_seed in runs.items()}}
    print(f"{'':<44}{'whole responses':<28}{'windows':<28}")
    for key, name in FIGURES.items():
        both = [over_seeds(column(runs, arm, key)) for arm in ("whole", "windows")]
        found[key] = [as_data(one) for one in both]
        digits = 0 if key in ("decode_steps", "generated_tokens") else 3
        print(f"{name:<44}{told(both[0], digits):<28}{told(both[1], digits):<28}")
    for key in RATIOS:
        whole, windows = (column(runs, arm, key) for arm in ("whole", "windows"))
        ratio = over_seeds({s: windows[s] / whole[s] for s in whole if s in windows})
        found[f"{key}_ratio"] = as_data(ratio)
        print(f"{FIGURES[key]}, windows over whole: {told(ratio)}")
    for key in ("reward_late", "accuracy"):
        changed = change(runs, "windows", "whole", key)
        found[f"{key}_change"] = as_data(changed)
        print(f"{FIGURES[key]}, windows less whole: {told(changed)}")
    return found


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """One run."""
    arm, models, rate = wanted["arm"], Path(wanted["models"]), wanted["rate"]
    config = arm_config(arm, models, wanted["steps"], wanted["seed"], rate)
    return one_run(arm, config, Path(wanted["folder"]))


if __name__ == "__main__":
    begin(main)
