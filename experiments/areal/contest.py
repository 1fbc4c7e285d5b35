"""Rollouts beside the training: what they save. What staleness costs is in claims.py.

    python -m experiments areal --out DIR --rounds 3

Seconds a step with a judge that takes `--latency` seconds for every response, as many at a time as
there are: in turn with training (eta = 0), drawn ahead by weights one, two and four steps old, and
part by part (periodic). All generate in a process of their own. Arms take turns; a ratio is of
means over the steps of one round. The first and the last steps are left out, in which the queue
fills, and nothing is drawn ahead any more.

The judge waits and does not compute: it stands for a service on other cores.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.own_process import own_process

from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.miniature import CONFIGS, Service, as_data, keep, over_seeds, told, train
from experiments.tasks import LIMIT, counting, counts_right

CONFIG = CONFIGS / "areal.toml"
SMALL = (
    "model.device=cpu",
    "model.precision=float32",
    "model.gradient_checkpointing=false",
    "reward.verifier=miniature",
    "data.template={question}",
    f"rollout.max_new_tokens={LIMIT}",
    "optim.micro_batch=0",
    "eval.prompts=0",
    "run.checkpoint_every=0",
    "run.samples_every=0",
    "run.report_to=[]",
)

WARM_STEPS, LAST_STEPS = 5, 4  # the queue of eta = 4 fills, and empties
SAMPLES = 32
TIMED = (
    "rollout.prompts_per_step=4",
    "rollout.group_size=8",
    "rollout.batch=16",
    "optim.mini_batches=1",
    "optim.micro_batch=16",
    "optim.learning_rate=1e-4",
    "method.advantage.normalise=none",
    "method.advantage.scale=group",
)
ARMS = {
    "in turn, eta = 0": ("method.asynchrony.max_staleness=0",),
    "ahead, eta = 1": ("method.asynchrony.max_staleness=1",),
    "ahead, eta = 2": ("method.asynchrony.max_staleness=2",),
    "ahead, eta = 4": ("method.asynchrony.max_staleness=4",),
    "periodic": ("method.asynchrony.mode=periodic",),
}


def settings(models: Path, overrides: Sequence[str]) -> Config:
    """The preset with the miniature's sizes."""
    model, problems, _ = counting(models)
    own = (f"model.name={model}", f"data.path={problems}")
    return configs.load(CONFIG, (*SMALL, *own, *overrides))


def _timed(chosen: argparse.Namespace, models: Path) -> dict[str, Any]:
    found: dict[str, list[dict[str, float]]] = {arm: [] for arm in ARMS}
    names = list(ARMS)
    for turn in range(chosen.rounds):
        for arm in names[turn % len(names) :] + names[: turn % len(names)]:
            config = settings(models, (*TIMED, *ARMS[arm], f"run.steps={chosen.timed_steps}"))
            folder = chosen.out / "time" / arm.replace(" ", "-")
            began = time.process_time()
            service = partial(Service, counts_right, item_s=chosen.latency, workers=8 * SAMPLES)
            with own_process():
                train(config, folder, service)
            rows = read_rows(RunFolder(folder).metrics)[WARM_STEPS:-LAST_STEPS]
            for row in rows:
                if row["generate_wait_s"] is None:
                    row["generate_wait_s"] = row["generate_s"]
            kept = ("step_s", "generate_s", "generate_wait_s", "score_wait_s", "train_s")
            # steps drawn ahead come in bursts, which a median would not see
            means = {key: statistics.fmean(row[key] for row in rows) for key in kept}
            means["cpu_s"] = (time.process_time() - began) / chosen.timed_steps
            found[arm].append(means)
            print(f"  round {turn + 1}, {arm}: {means['step_s']:.2f} s a step")
    return {"rounds": found, **_time_table(found)}


def _time_table(found: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """Medians over rounds, and the ratio to the first arm within a round."""
    base, told_of = next(iter(found)), {}
    print(f"\n{'':<18}{'s a step':>10}{'waits for':>12}{'waits for':>12}   ratio to {base!r}")
    print(f"{'':<18}{'':>10}{'responses':>12}{'judgements':>12}")
    for arm, rounds in found.items():
        median = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        ratios = [
            one["step_s"] / other["step_s"] for one, other in zip(rounds, found[base], strict=True)
        ]
        ratio = over_seeds(dict(enumerate(ratios)))
        told_of[arm] = {**median, "ratio": as_data(ratio)}
        print(
            f"{arm:<18}{median['step_s']:>10.2f}{median['generate_wait_s']:>12.2f}"
            f"{median['score_wait_s']:>12.2f}   {told(ratio, 2)}"
        )
    return {"medians": told_of}


def run(options: Sequence[str]) -> None:
    """Runs what is asked for; prints what was found."""
    parser = argparse.ArgumentParser(prog="experiments areal")
    parser.add_argument("--out", type=Path, default=Path("runs/experiments/areal"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timed-steps", type=int, default=20)
    parser.add_argument("--latency", type=float, default=1.0, help="of the judge, seconds")
    chosen = parser.parse_args(options)
    environment.keep_freed_memory()
    environment.calm()
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    models = chosen.out / "models"
    counting(models)
    keep(chosen.out / "areal-time.json", _timed(chosen, models))
