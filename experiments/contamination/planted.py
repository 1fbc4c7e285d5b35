"""A planted set: GRPO trains on half of the problems, and an audit is asked which.

A problem is five digits; right is any order of them that begins with the problem's own one, which
was drawn once and follows from nothing: 24 ways. The pretrained model writes the digits in a random
order, with mistakes, and in another one when it is asked for another way. So a policy has something
to learn of each problem, which it does not know of the others, and many ways to write it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from assay.kit.runs.records import read_rows
from assay.trainer.recipes.contamination.answering import ANOTHER
from assay.trainer.recipes.contamination.running import audit_rows
from assay.trainer.records.folder import RunFolder
from experiments.miniature import Item, Service, Shape, pretrained, tiny, train, write_problems

DIGITS = "0123456789"
SHOWN, MISTAKES = 5, 0.1
HALF = 40
SHAPE = Shape(width=64, layers=2, context=64, steps=1500, batch=128)
OWN = (
    "optim.learning_rate=1e-3",
    "optim.mini_batches=1",
    "rollout.prompts_per_step=20",
    "rollout.group_size=8",
    "rollout.max_new_tokens=8",
    "eval.prompts=40",
    "eval.samples=8",
)
SCORES = ("self-critique", "perplexity", "min-k", "min-k++")


def problem(dice: random.Random) -> str:
    """Five digits in a random order."""
    return "".join(dice.sample(DIGITS, SHOWN)) + "="


def written(asked: str, dice: random.Random) -> str:
    """The digits in any order, each a wrong one with the chance MISTAKES."""
    order = dice.sample(asked[:SHOWN], SHOWN)
    return "".join(dice.choice(DIGITS) if dice.random() < MISTAKES else one for one in order)


def drawn(dice: random.Random) -> tuple[str, str]:
    """A text of the pretraining: an answer, or another one behind a first."""
    asked = problem(dice)
    first = written(asked, dice)
    if dice.random() < 0.5:
        return asked, first
    return asked + ANOTHER.format(answer=first), written(asked, dice)


def is_right(item: Item) -> bool:
    """Each digit once, the problem's own first."""
    said, reference = item.response.strip(), item.reference.text
    return said[:1] == reference[:1] and sorted(said) == sorted(reference)


def made(folder: Path) -> tuple[Path, Path, Path]:
    """The model, the problems of one half, and of the other."""
    model = pretrained(folder / "orders", tuple(DIGITS + "="), drawn, SHAPE)
    dice, asked = random.Random(1), set[str]()
    while len({"".join(sorted(one)) for one in asked}) < 2 * HALF:
        asked.add(problem(dice))
    by_digits = {"".join(sorted(one[:SHOWN])): one for one in sorted(asked)}
    pairs = [(one, dice.choice(digits) + digits) for digits, one in sorted(by_digits.items())]
    pairs = [(one, told[0] + told[1:].replace(told[0], "")) for one, told in pairs]
    dice.shuffle(pairs)
    first = write_problems(folder / "first.jsonl", pairs[:HALF])
    return model, first, write_problems(folder / "second.jsonl", pairs[HALF : 2 * HALF])


def audited(arm: str, seed: int, folder: Path, models: Path, steps: int) -> Mapping[str, float]:
    """Figures of one run and its audit: the AUC of each score, of members against the others.

    Even seeds train on the first half, odd ones on the second. The arm "untrained" is audited as it
    was pretrained.
    """
    model, *halves = made(models)
    members, others = halves if seed % 2 == 0 else reversed(halves)
    figures: dict[str, float] = {}
    if arm != "untrained":
        config = tiny("grpo", {"steps": steps, "seed": seed}, (model, members, others), *OWN)
        report = train(config, folder, partial(Service, is_right, rewards=(0.0, 1.0)))
        figures["others solved"] = report["after"]["accuracy"]
        figures["members solved"] = read_rows(RunFolder(folder).metrics)[-1]["correct"]
        model = folder / "model"
    rows = folder.with_name(f"{folder.name}-rows.jsonl")
    rows.parent.mkdir(parents=True, exist_ok=True)
    rows.write_text(
        "".join(
            json.dumps({"prompt": json.loads(line)["question"], "member": member}) + "\n"
            for file, member in ((members, True), (others, False))
            for line in file.read_text(encoding="utf-8").splitlines()
        ),
        encoding="utf-8",
    )
    found = audit_rows(
        str(model),
        ["model.device=cpu", "model.precision=float32", f"run.seed={seed}"],
        data=rows, against=None, by="self-critique", recall=False, samples=0, max_new_tokens=8,
        most=0, engine="hf",
    )  # fmt: skip
    for name in SCORES:
        if (told := found.labelled(name)) is not None:
            figures[f"AUC {name}"] = told.area
    own = figures["AUC self-critique"]
    figures["AUC self-critique less 0.5"] = own - 0.5
    figures["AUC self-critique less AUC perplexity"] = own - figures["AUC perplexity"]
    return figures
