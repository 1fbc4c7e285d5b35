"""Why PPO fails on long responses, and what VC-PPO and VAPO do about it, in miniature.

    python -m experiments vapo --parts toy
    python -m experiments vapo --parts methods --out DIR --seeds 0,1,2 --jobs 2
    python -m experiments vapo --parts vapo --out DIR --seeds 0,1 --jobs 2

    toy       a table for a value function, rewards in expectation: after so many sweeps, what the
              first token's advantage is on the long road (VC-PPO, arXiv 2503.01491, sections on
              value-initialisation bias and reward-signal decay; the toy is a derivation)
    methods   configs/ppo.toml beside configs/vc_ppo.toml: one lambda of 0.95 and a critic that
              starts as a reward model, or value pre-training and a lambda of its own for the critic
    vapo      configs/ladders/vapo.toml: VAPO (arXiv 2504.05118) and VAPO without each of its parts;
              the critic that the whole was pre-trained with serves the others of the same seed

The task of the last two is a way with stops (tasks.py): at each of nine, 32 tokens apart,
the response may end, and it is right the more often the later it does. `--task roads` is another:
the first of some 270 tokens decides. The critic starts from a reward model that has only ever been
asked at the ends of responses. All runs share the sizes of `OWN`; what differs is what the
configs say. Each run is in a process of its own; those that are done are not repeated.

Orderings and intervals are what this can show, and no magnitudes. On a CUDA device the same
commands run there; no figure of one is reported.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import outcome, plan
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.miniature import (
    TINY,
    IsRight,
    Job,
    Service,
    begin,
    finished,
    job_of,
    keep,
    options,
    train,
)
from experiments.report import compare, draw
from experiments.tasks import (
    RIGHT_LONG,
    RIGHT_SHORT,
    ROAD_LIMIT,
    roads,
    roads_right,
    stops,
    stops_right,
)

CONFIGS = Path(__file__).parents[2] / "configs"
OWN = (
    "optim.learning_rate=2e-4",
    "method.critic.warmup_steps=0",
    f"rollout.max_new_tokens={ROAD_LIMIT}",
    "eval.prompts=4",
    "eval.batch_size=50",
    "eval.samples=64",
    "eval.top_p=1.0",
)
PRETRAIN = "method.critic.pretrain_steps=50"
SINGLE = ("rollout.prompts_per_step=64", "rollout.group_size=1")
GROUPS = ("rollout.prompts_per_step=8", "rollout.group_size=8")
METHODS = {"ppo": SINGLE, "vc_ppo": (*SINGLE, PRETRAIN)}
FIGURES = ("accuracy", "goes_long", "response_length", "explained_variance")
GOES_LONG = 250
"""Tokens of a response that went the long road, or passed all stops but the last two."""

Task = tuple[Callable[[Path], tuple[Path, Path, Path, Path]], Callable[[int], IsRight]]
TASKS: dict[str, Task] = {"stops": (stops, stops_right), "roads": (roads, roads_right)}


@dataclass(frozen=True, slots=True)
class Setting:
    """What all contestants of a comparison share.

    Attributes:
        task: one of `TASKS`.
        models: where the pretrained models are.
        steps: of each run.
        critic_rate: the critic's learning rate.
    """

    task: str
    models: str
    steps: int
    critic_rate: float


def arms(part: str, setting: Setting, seed: int) -> dict[str, Config]:
    """The settings of each contestant."""
    model, reward_model, problems, held_out = TASKS[setting.task][0](Path(setting.models))
    own = (
        *TINY,
        *OWN,
        f"model.name={model}",
        f"method.critic.init={reward_model}",
        f"data.path={problems}",
        f"data.eval_path={held_out}",
        f"run.steps={setting.steps}",
        f"method.critic.learning_rate={setting.critic_rate}",
    )
    if part == "methods":
        return {
            name: configs.load(
                CONFIGS / f"{name}.toml", (*own, *sizes, f"run.seed={seed}"), saved=True
            )
            for name, sizes in METHODS.items()
        }
    rungs = plan.load(CONFIGS / "ladders/vapo.toml", (*own, *GROUPS, PRETRAIN), seeds=(seed,))
    return {rung.name: rung.configs[seed] for rung in rungs.rungs}


def with_critic(config: Config, critic: str) -> Config:
    """The same run with a critic that has been pre-trained before."""
    settings = replace(config.method.critic, init=critic, pretrain_steps=0)
    return replace(config, method=replace(config.method, critic=settings))


# One run, in its own process.


def one_run(task: str, config: Config, folder: Path) -> dict[str, Any]:
    """Trains, and says how the policy answers afterwards."""
    right = TASKS[task][1](config.run.seed)
    report = train(config, folder, lambda: Service(right))
    answers = json.loads(RunFolder(folder).evaluation("after").read_text())["answers"]
    rows = read_rows(RunFolder(folder).metrics)
    explained = [v for row in rows[:3] if (v := row["explained_variance"]) is not None]
    return {
        "before": report["before"]["accuracy"],
        "accuracy": report["after"]["accuracy"],
        "goes_long": statistics.fmean(answer["token_count"] > GOES_LONG for answer in answers),
        "response_length": report["after"]["mean_length"],
        "explained_variance": statistics.fmean(explained) if explained else None,
        "train_s": report["run"]["train_s"],
    }


# The toy.


def toy(horizon: int = 256, rate: float = 0.5) -> list[dict[str, float]]:
    """Sweeps of a tabular critic towards its lambda-returns, on both roads, in expectation.

    V starts at -1 on every state but the first of the long road, as a reward model may that takes
    what does not end for bad. The policy stands still; its first token is the decision.

    Returns:
        For each number of sweeps, the policy's advantage of the first token of the long road less
        that of the short one (what moves the decision), by the critic's lambda. The truth is the
        difference of the roads' returns.
    """
    import torch  # noqa: PLC0415

    from assay.trainer.algos.gae import decoupled_gae  # noqa: PLC0415

    lengths = (horizon, 8)
    returns = (2 * RIGHT_LONG - 1, 2 * RIGHT_SHORT - 1)
    mask = torch.zeros(2, horizon, dtype=torch.bool)
    rewards = torch.zeros(2, horizon, dtype=torch.float64)
    for row, (length, reward) in enumerate(zip(lengths, returns, strict=True)):
        mask[row, :length] = True
        rewards[row, length - 1] = reward
    values = {lam: torch.where(mask, -1.0, 0.0).double() for lam in (0.95, 1.0)}
    wanted, rows = (0, 1, 2, 5, 10, 20, 50, 100), []
    for sweep in range(max(wanted) + 1):
        row: dict[str, float] = {"sweeps": sweep}
        for lam, table in values.items():
            advantages, targets = decoupled_gae(
                rewards, table, mask, gamma=1.0, lam_actor=0.95, lam_critic=lam
            )
            row[f"critic_{lam:g}"] = float(advantages[0, 0] - advantages[1, 0])
            values[lam] = table + rate * (targets - table) * mask
            # both roads begin in the same state, which is worth what they are worth on average
            values[lam][:, 0] = values[lam][:, 0].mean()
        if sweep in wanted:
            rows.append(row)
    return rows


def _toy() -> list[dict[str, float]]:
    truth = 2 * (RIGHT_LONG - RIGHT_SHORT)
    print(f"\nadvantage of the first token, long road less short; the roads differ by {truth:.2f}")
    print(f"{'sweeps':>8}{'critic lambda 0.95':>22}{'critic lambda 1':>20}")
    rows = toy()
    for row in rows:
        print(f"{row['sweeps']:>8.0f}{row['critic_0.95']:>22.3f}{row['critic_1']:>20.3f}")
    return rows


# All runs.


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("vapo", steps=40)
    parser.add_argument("--parts", default="toy,methods,vapo")
    parser.add_argument("--task", choices=TASKS, default="stops")
    parser.add_argument("--critic-rate", type=float, default=4e-4, help="twice the policy's, as is")
    chosen = parser.parse_args(words)
    environment.calm()
    parts = chosen.parts.split(",")
    found: dict[str, Any] = {}
    for part in parts:
        found[part] = _toy() if part == "toy" else _compare(part, chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    keep(chosen.out / f"vapo-{'-'.join(parts)}.json", found)


def _compare(part: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """The runs of a part, their table and their picture."""
    seeds = plan.read_seeds(chosen.seeds)
    models = str(chosen.out / "models")
    setting = Setting(chosen.task, models, chosen.steps, chosen.critic_rate)
    names = list(arms(part, setting, seeds[0]))
    folder = chosen.out / chosen.task / part
    jobs = {
        (name, seed): _job(setting, part, name, seed, folder) for seed in seeds for name in names
    }
    print(f"\n{chosen.task}, {part}: {len(names)} contestants, seeds {chosen.seeds}")
    if part == "vapo":  # the others need their critics
        finished({key: made for key, made in jobs.items() if key[0] == names[0]}, chosen.jobs, main)
    runs = finished(jobs, chosen.jobs, main)
    panels = {
        f"{chosen.task}, {part}: {metric.replace('_', ' ')}": {
            name: [_curve(jobs[name, seed], metric) for seed in runs[name]] for name in names
        }
        for metric in ("reward", "response_length")
    }
    draw(folder.with_suffix(".png"), panels)
    found = compare(runs, FIGURES, names[0], ("accuracy",))
    done = [name for name in names if found[name]["accuracy"]]
    order = sorted(done, key=lambda name: found[name]["accuracy"]["mean"])
    print("from the worst: " + ", ".join(order))
    return {"contestants": found, "from_the_worst": order}


def _curve(made: Job, metric: str) -> list[tuple[float, float]]:
    rows = read_rows(RunFolder(made.result.with_suffix("")).metrics)
    return list(outcome.series(rows, metric))


def _job(setting: Setting, part: str, name: str, seed: int, folder: Path) -> Job:
    whole = RunFolder(folder / f"vapo-{seed}").pretrained_critic
    critic = str(whole) if part == "vapo" and name != "vapo" else ""
    return job_of(
        "vapo", f"{name}, seed {seed}", folder / f"{name}-{seed}",
        part=part, name=name, seed=seed, critic=critic, setting=asdict(setting),
    )  # fmt: skip


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """One run."""
    setting = Setting(**wanted["setting"])
    config = arms(wanted["part"], setting, wanted["seed"])[wanted["name"]]
    if wanted["critic"] and config.method.critic.pretrain_steps:
        config = with_critic(config, wanted["critic"])
    return one_run(setting.task, config, Path(wanted["folder"]))


if __name__ == "__main__":
    begin(main)
