"""What process supervision for code (arXiv 2410.17621) says of dense rewards and of the critic."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.code_prm.contest import (
    Lines,
    Writer,
    label,
    learn_prm,
    settings,
    step_rows,
    written,
)
from experiments.code_prm.programs import LONG, programs
from experiments.miniature import train

STEPS = 40
_SETUP = (
    "Programs of 16 to 24 lines, right one time in five before the training, 50 to 80 tokens: a PRM"
    " from labels by binary search with 20 completions of the pretrained model, made once;"
    f" configs/code_prm.toml without KL, 16 x 4 programs a step, {STEPS} steps. The figure is the"
    " share of programs that pass, over all steps."
)
_WHY = (
    "Twenty lines share one verdict, and the PRM says which of them went wrong: credit is what is"
    " missing. In programs of six lines, an earlier miniature, tests said as much."
)
CLAIMS = (
    Claim(
        "code-prm-dense",
        "Dense rewards from a PRM learn faster than unit tests alone.",
        "Process supervision-guided policy optimisation, arXiv 2410.17621, DenseReward",
        _SETUP,
        _WHY,
        "correct",
        "dense",
        "sparse",
        0.05,
        0.045,
    ),
    Claim(
        "code-prm-both",
        "Dense rewards and a critic that starts from the PRM are the best of the four.",
        "Process supervision-guided policy optimisation, arXiv 2410.17621, both beside DenseReward",
        _SETUP
        + " The critic has ten steps of value pre-training, as a PRM's scores are no returns.",
        _WHY,
        "correct",
        "dense+value-init+pre-trained",
        "dense",
        0.06,
        0.05,
    ),
)


def prepare(models: Path) -> None:
    """The model, its problems, and the PRM."""
    import torch  # noqa: PLC0415

    model, problems, _ = programs(models, LONG)
    if _prm(models).is_dir():
        return
    torch.manual_seed(0)
    writer = Writer(model, LONG.limit)
    rows, _ = label(writer, written(writer, problems))
    learn_prm(models / "prm-long", model, step_rows(rows, comments=False), 0)


def _prm(models: Path) -> Path:
    return models / "prm-long" / "model"


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """The share of right programs over all steps, and in the last five."""
    data = programs(models, LONG)
    own = (f"rollout.max_new_tokens={LONG.limit}", "optim.learning_rate=4e-4", "eval.prompts=0")
    config = settings(arm, seed, STEPS, data, _prm(models), *own)
    dense = config.method.dense.weight > 0
    train(config, folder, partial(Lines, _prm(models) if dense else None, "code-line"))
    right = [row["correct"] for row in read_rows(RunFolder(folder).metrics)]
    return {"correct": statistics.fmean(right), "late": statistics.fmean(right[-5:])}
