"""What papers on choosing prompts say, held against prompts in turn, with a model that learns."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from pathlib import Path

from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.miniature import Service, pretrained, tiny, train, write_rows
from experiments.tasks import COUNTING_WORDS, Counting, counts_right

STEPS, EVERY = 40, 5
KIND = Counting("counting-unevenly", (2, 16), 40, 0.85, 0.005, begins_again=0.1, starts=100)
TASKS = ("solved", "one", "two", "three or more")
"""Of a problem, by how many miscounts it invites."""
TRAIN, HELD_OUT = (144, 36, 24, 36), 10
"""Training problems of each task, and held-out ones."""
SETUP = (
    f"Count on from a number by {KIND.steps[0]} to {KIND.steps[1]} steps, in the last digit alone,"
    f" in up to {KIND.limit} tokens. The pretrained model miscounts 17 times in 20 after 3 or 7;"
    f" the task of a problem is how often that comes up: never (solved), once, twice, or more, and"
    f" {TRAIN[0]} of {sum(TRAIN)} training problems are solved. GRPO, {STEPS} steps of 16 x 8"
    f" responses, problems by the selector or in turn; held-out accuracy, tasks alike, every"
    f" {EVERY} steps, averaged over the run"
)
WHY = (
    "Three groups in four teach nothing in turn: all of it is right, or nothing. Which these are"
    " changes as the model learns. All arms generate as many responses."
)
ARMS: Mapping[str, tuple[str, ...]] = {
    "in turn": (),
    "mopps": ("data.selection.name=mopps", "data.selection.mopps.decay=0.7"),
    "vade": ("data.selection.name=vade",),
    "dump": ("data.selection.name=dump",),
    "dads": ("data.selection.name=dads",),
    "replay": ("method.replay.groups=64",),
    "medium": ("method.advantage.difficulty=medium",),
}


def _better(name: str, says: str, source: str, ours: str, effect: float) -> Claim:
    """Differences of three pilots deviated by about the effect that would count."""
    setup = SETUP + "."
    return Claim(name, says, source, setup, WHY, "over the run", ours, "in turn", effect, effect)


CLAIMS = (
    _better(
        "mopps-faster",
        "Choosing prompts by a posterior of their difficulty accelerates training.",
        "MoPPS, arXiv 2507.04632, abstract", "mopps", 0.12,
    ),
    _better(
        "vade-faster",
        "Sampling by the variance of a prompt's estimated correctness is more sample-efficient.",
        "VADE, arXiv 2511.18902, abstract", "vade", 0.12,
    ),
    _better(
        "dump-faster",
        "Choosing distributions by their advantages' magnitude improves speed and performance.",
        "DUMP, arXiv 2504.09710, abstract", "dump", 0.12,
    ),
    _better(
        "dads-faster",
        "Weighing domains by what they lack in reward needs fewer samples.",
        "RuleReasoner, arXiv 2506.08672, abstract", "dads", 0.1,
    ),
    _better(
        "ssr-faster",
        "Earlier groups in place of those without an advantage keep training from stopping early.",
        "VL-Rethinker, arXiv 2504.08837, vanishing advantages", "replay", 0.06,
    ),
    _better(
        "medium-weights-faster",
        "Weights that favour problems of medium difficulty give informative ones more effect.",
        "Observe-R1, arXiv 2505.12432, abstract", "medium", 0.08,
    ),
)  # fmt: skip


def prepare(models: Path) -> None:
    """The model, and problems with the task of each."""
    pretrained(models / KIND.name, COUNTING_WORDS, KIND.draw, KIND.shape)
    of_task: dict[str, list[dict[str, str]]] = {task: [] for task in TASKS}
    for a, b in random.Random(0).sample(KIND.problems, len(KIND.problems)):
        task = _task(a, b)
        of_task[task].append({"question": f"{a}+{b}=", "answer": str((a + b) % 10), "task": task})
    train_rows = [row for n, task in zip(TRAIN, TASKS, strict=True) for row in of_task[task][:n]]
    held_out = [row for rows in of_task.values() for row in rows[-HELD_OUT:]]
    write_rows(_problems(models, "train"), train_rows)
    write_rows(_problems(models, "test"), held_out)


def _problems(models: Path, name: str) -> Path:
    return models / f"{KIND.name}-{name}.jsonl"


def _task(a: int, b: int) -> str:
    invited = sum((a + n) % 10 in {3, 7} for n in range(b))
    return TASKS[min(invited, len(TASKS) - 1)]


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Held-out accuracies before and after the run, and over it."""
    own = (
        f"rollout.max_new_tokens={KIND.limit}", "rollout.prompts_per_step=16",
        "optim.learning_rate=3e-4", "optim.mini_batches=1", "method.loss.kl_coef=0",
        f"eval.prompts={HELD_OUT * len(TASKS)}", "eval.samples=8", f"eval.every={EVERY}",
    )  # fmt: skip
    made = (models / KIND.name, _problems(models, "train"), _problems(models, "test"))
    report = train(
        tiny("grpo", {"seed": seed, "steps": STEPS}, made, *own, *ARMS[arm]),
        folder,
        lambda: Service(counts_right, rewards=(0.0, 1.0)),
    )
    after = report["after"]["accuracy"]
    evals = [row["accuracy"] for row in read_rows(RunFolder(folder).evals)]
    return {
        "before": report["before"]["accuracy"],
        "after": after,
        "over the run": statistics.fmean([*evals, after]),
    }
