"""What a batch is made of and who gets the credit, in miniature: four things, each by itself.

    python -m experiments composition --parts spo,updates,recomposition,length,void --out DIR
    python -m experiments composition --parts difficulty --seeds 0,1,2,3,4

    spo            segment advantages (arXiv 2505.23564) beside those of groups, at equal numbers of
                   generated tokens, the continuations' counted; on `tasks`' counting
    updates        the same two at equal numbers of steps, of as many responses, whatever the
                   continuations cost
    recomposition  RoRecomp (arXiv 2509.25958) beside the same without: correctness and length, on
                   counting, where a response may needlessly begin again
    length         the same where right is a coin of the judge, the same chance for whatever was
                   written: correctness cannot change, and length alone is left
    void           SimpleTIR's filter beside the same without, on counting by a policy of which a
                   part of the responses state no answer
    difficulty     GoLongRL's normalisation by task and its weights (arXiv 2605.19577): how much
                   prompts of two tasks, one with rewards ten times those of the other, push, by how
                   hard they are. No model: draws of rewards, and the trainer's own functions

The runs are `assay train`, one after the other in this process. The judge gives 1 and -1.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import random
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.kit.runs import environment
from assay.kit.runs.records import Row, read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.recipes.ladder.stats import difference
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.miniature import (
    IsRight,
    Item,
    Service,
    as_data,
    keep,
    over_seeds,
    pretrained,
    read,
    told,
    train,
)
from experiments.tasks import (
    COUNTING_SHAPE,
    COUNTING_WORDS,
    NEAR,
    Counting,
    counting,
    counts_right,
)

BASE: tuple[str, ...] = (
    "data.source=jsonl",
    "data.template={question}",
    "model.precision=float32",
    "reward.verifier=miniature",
    "method.loss.aggregation=token-mean",
    "optim.learning_rate=4e-4",
    "rollout.prompts_per_step=16",
    "rollout.group_size=8",
    "eval.prompts=0",
    "run.checkpoint_every=0",
    "run.samples_every=0",
    "run.report_to=[]",
)
SMALL = ("rollout.prompts_per_step=8", "rollout.group_size=4")
SPO = (
    *SMALL,
    "method.advantage.estimator=segments",
    "method.advantage.scale=none",
    "method.segments.unsure_per_segment=2",
    "method.segments.continuations=4",
)
RECOMPOSED = ("method.recomposition.groups=64",)
NO_REMAINDER = ("method.recomposition.first=0.0", "method.recomposition.last=0.0")
VOID = ("method.filter.void=text", r"method.filter.void_answer==\d")
ARMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "spo": {
        "groups, 16 x 8": (),
        "groups, 8 x 4": SMALL,
        "segments, 8 x 4": SPO,
        "segments, no mask": (*SPO, "method.segments.mask_sure=false"),
    },
    "updates": {"groups, 8 x 4": SMALL, "segments, 8 x 4": SPO},
    "recomposition": {
        "all at once": (),
        "recomposed": RECOMPOSED,
        "priority alone": (*RECOMPOSED, *NO_REMAINDER),
    },
    "length": {
        "all at once": (),
        "recomposed": RECOMPOSED,
        "priority alone": (*RECOMPOSED, *NO_REMAINDER),
    },
    "void": {
        "all": ("run.samples_every=1",),
        "filtered": ("run.samples_every=1", *VOID),
    },
}
FIGURES: Mapping[str, Mapping[str, str]] = {
    "spo": {
        "correct_half": "correct, about half of the tokens",
        "correct_late": "correct, the last tenth",
        "steps": "steps",
        "extra": "of the tokens, continuations",
    },
    "updates": {
        "correct_half": "correct, about half of the steps",
        "correct_late": "correct, the last tenth",
        "generated_tokens": "tokens generated",
    },
    "recomposition": {
        "correct_late": "correct, the last tenth",
        "length_late": "response length, the same",
        "generated_tokens": "tokens generated",
        "left_out": "judged responses left out of the loss",
    },
    "length": {
        "length_first": "response length, the first tenth",
        "length_late": "response length, the last tenth",
        "correct_late": "correct, the same",
        "generated_tokens": "tokens generated",
    },
    "void": {
        "correct_late": "correct, the last tenth",
        "void_late": "without an answer, the same",
        "grad_norm": "gradient norm, mean",
        "left_out": "judged responses left out of the loss",
    },
}
STATES_NO_ANSWER = 0.3
STEP_TOKENS = 1100
"""What a step of 16 x 8 responses is taken to generate; the budget is so many times its steps."""
STEPS = {"groups, 8 x 4": 4.2, "segments, 8 x 4": 0.6, "segments, no mask": 0.6}
"""Steps that are enough for the budget, over those of the first arm."""


# The runs.


def void_count(dice: random.Random) -> tuple[str, str]:
    """As counting, but a part of the responses ends before it states an answer."""
    prompt, response = NEAR.draw(dice)
    if dice.random() < STATES_NO_ANSWER:
        response = response.partition("=")[0]
    return prompt, response


def coin(seed: int) -> IsRight:
    """Right with a chance of one half, of the seed, the draw and the response."""

    def right(item: Item) -> bool:
        text = f"{seed}/{item.group_id}/{item.response}/{item.id}"
        return hashlib.sha256(text.encode()).digest()[0] < 128

    return right


def run_config(
    part: str, arm: str, models: Path, steps: int, seed: int, *, kind: Counting = NEAR
) -> Config:
    """The settings of one run."""
    model, problems, held_out = counting(models, kind)
    if part == "void":
        model = pretrained(models / "counting-void", COUNTING_WORDS, void_count, COUNTING_SHAPE)
    own = (
        f"model.name={model}",
        f"data.path={problems}",
        f"data.eval_path={held_out}",
        f"run.steps={steps}",
        f"run.seed={seed}",
        f"data.seed={seed}",
        f"rollout.max_new_tokens={kind.limit}",
    )
    return configs.build({}, (*BASE, *own, *ARMS[part][arm]), origin="bench")


def tokens_of(row: Row) -> int:
    """All that a step generated."""
    return int(row["generated_tokens"] + (row["continuation_tokens"] or 0))


def within(rows: Sequence[Row], budget: int) -> list[Row]:
    """The steps that so many tokens paid for."""
    spent, kept = 0, []
    for row in rows:
        spent += tokens_of(row)
        if spent > budget:
            break
        kept.append(row)
    return kept


def mean(rows: Sequence[Row], key: str) -> float | None:
    """Of what is known, each response counting alike."""
    known = [(row[key], row["responses"]) for row in rows if row[key] is not None]
    total = sum(count for _, count in known)
    return sum(value * count for value, count in known) / total if total else None


def figures(part: str, folder: RunFolder, budget: int) -> dict[str, Any]:
    """What one run came to."""
    rows = read_rows(folder.metrics)
    rows = within(rows, budget) if part == "spo" else rows
    late = rows[-max(1, len(rows) // 10) :]
    middle = rows[round(0.45 * len(rows)) : max(1, round(0.55 * len(rows)))]
    extra = sum(row["continuation_tokens"] or 0 for row in rows)
    found = {
        "steps": len(rows),
        "generated_tokens": sum(map(tokens_of, rows)),
        "extra": extra / sum(map(tokens_of, rows)),
        "correct_half": mean(middle, "correct"),
        "correct_late": mean(late, "correct"),
        "length_first": mean(rows[: len(late)], "response_length"),
        "length_late": mean(late, "response_length"),
        "grad_norm": mean(rows, "grad_norm"),
        "left_out": mean(rows, "left_out_ratio"),
        "curve": [[tokens_of(row), row["correct"], row["response_length"]] for row in rows],
    }
    if part == "void":
        last = {row["step"] for row in late}
        told_late = [r["response"] for r in read_rows(folder.samples) if r["step"] in last]
        silent = [re.search(r"=\d", text) is None for text in told_late]
        found["void_late"] = statistics.fmean(silent)
    return found


def _trained(part: str, chosen: argparse.Namespace) -> dict[str, Any]:
    seeds, arms = plan.read_seeds(chosen.seeds), ARMS[part]
    runs: dict[str, dict[int, dict[str, Any]]] = {arm: {} for arm in arms}
    for seed in seeds:
        for number, arm in enumerate(arms):
            result = chosen.out / part / f"{number}-{seed}.json"
            if not result.is_file():
                steps = round(chosen.steps * (2.0 if part == "updates" else STEPS.get(arm, 1.0)))
                folder = chosen.out / part / f"{number}-{seed}"
                config = run_config(part, arm, chosen.out / "models", steps, seed)
                right = coin(seed) if part == "length" else counts_right
                train(config, folder, functools.partial(Service, right))
                keep(result, figures(part, RunFolder(folder), STEP_TOKENS * chosen.steps))
            runs[arm][seed] = read(result)
    return _table(part, runs)


def _table(part: str, runs: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """Means over seeds, and changes from the first arm, paired by seed."""
    first = next(iter(runs))
    found: dict[str, Any] = {}
    for arm, by_seed in runs.items():
        print(f"\n{part}: {arm}")
        found[arm] = {}
        for key, name in FIGURES[part].items():
            values = {seed: one[key] for seed, one in by_seed.items()}
            others = {seed: one[key] for seed, one in runs[first].items()}
            digits = 0 if key in ("steps", "generated_tokens") else 3
            change = difference(values, others) if None not in values.values() else None
            line = f"  {name:<44}{told(over_seeds(values), digits):<28}"
            print(line + (f"change {told(change, digits)}" if arm != first else ""))
            found[arm][key] = {"value": as_data(over_seeds(values)), "change": as_data(change)}
    return found


# Difficulty and task.

RATES = (0.05, 0.25, 0.5, 0.75, 0.95)
SCALES = {"small": 1.0, "large": 10.0}
WAYS: Mapping[str, dict[str, Any]] = {
    "none": {"scale": "none"},
    "batch": {"scale": "batch"},
    "group": {"scale": "group"},
    "task": {"scale": "task"},
    "task, exp": {"scale": "task", "form": "exp"},
    "task, linear": {"scale": "task", "form": "linear"},
}


def pushes(seed: int, prompts: int = 64, samples: int = 16) -> dict[str, dict[str, list[float]]]:
    """By way, task and side, what right and wrong responses push at each pass rate of `RATES`.

    That is the sum of their |advantages|, over all responses of the prompt.

    Rewards are 0 or the task's scale, correct with the prompt's rate, in batches of `prompts` of
    each rate and task.
    """
    import torch  # noqa: PLC0415

    from assay.trainer.algos.advantages import group_advantages  # noqa: PLC0415
    from assay.trainer.algos.difficulty import weights  # noqa: PLC0415

    torch.manual_seed(seed)
    rates = torch.tensor([rate for _ in SCALES for rate in RATES for _ in range(prompts)])
    tasks = torch.tensor(
        [task for task in range(len(SCALES)) for _ in RATES for _ in range(prompts)]
    )
    scales = torch.tensor(list(SCALES.values()))[tasks]
    correct = torch.rand(len(rates), samples) < rates[:, None]
    rewards = correct * scales[:, None]
    found: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    for way, chosen in WAYS.items():
        advantages = group_advantages(rewards, scale=chosen["scale"], tasks_P=tasks)
        if "form" in chosen:
            advantages = advantages * weights(rewards, correct, tasks, form=chosen["form"])
        for side, chosen_ones in (("right", correct), ("wrong", ~correct)):
            sizes = torch.where(chosen_ones, advantages.abs(), 0.0).mean(dim=1)
            cells = sizes.view(len(SCALES), len(RATES), prompts).mean(dim=2).tolist()
            for task, cell in zip(SCALES, cells, strict=True):
                found[way][f"{task}, {side}"] = cell
    return found


def _difficulty(chosen: argparse.Namespace) -> dict[str, Any]:
    seeds = plan.read_seeds(chosen.seeds)
    by_seed = {seed: pushes(seed) for seed in seeds}
    found: dict[str, Any] = {}
    print(f"\nsum of |advantages| / responses at pass rates {RATES}; share of all")
    for way in WAYS:
        found[way] = {}
        for task in (f"{task}, {side}" for task in SCALES for side in ("right", "wrong")):
            cells = [
                over_seeds({seed: one[way][task][n] for seed, one in by_seed.items()})
                for n in range(len(RATES))
            ]
            shares = {
                seed: sum(one[way][task]) / sum(map(sum, one[way].values()))
                for seed, one in by_seed.items()
            }
            found[way][task] = {
                "rates": [as_data(cell) for cell in cells], "share": as_data(over_seeds(shares))
            }  # fmt: skip
            row = "".join(f"{cell.mean:>8.3f}" for cell in cells if cell is not None)
            print(f"  {way:<14}{task:<14}{row}   share {told(over_seeds(shares))}")
    return found


def run(options: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints all of it."""
    parser = argparse.ArgumentParser(prog="experiments composition")
    parser.add_argument("--out", type=Path, default=Path("runs/experiments/composition"))
    parser.add_argument("--parts", default="spo,recomposition,void,difficulty")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=60, help="of a run with 16 x 8 responses")
    chosen = parser.parse_args(options)
    environment.calm()
    environment.keep_freed_memory()
    for part in chosen.parts.split(","):
        found = _difficulty(chosen) if part == "difficulty" else _trained(part, chosen)
        chosen.out.mkdir(parents=True, exist_ok=True)
        keep(chosen.out / f"{part}.json", found)
