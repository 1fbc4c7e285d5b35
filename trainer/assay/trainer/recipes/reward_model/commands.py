"""`assay train-rm`: the command line of the training of judges.

torch and TRL take seconds to import and are imported when a run starts, so that `assay --help` and
mistakes in a config are fast.
"""

from __future__ import annotations

import click

from assay.trainer import launch
from assay.trainer.recipes.reward_model.config import RUNS, RmConfig
from assay.trainer.recipes.reward_model.data import load_rows
from assay.trainer.records.folder import RunFolder
from assay.trainer.run_options import Asked, run_options


@click.command("train-rm")
@run_options
def train_rm(asked: Asked) -> None:
    """Train a judge: of pairs, single responses or steps, by verdicts, critiques or a head.

    CONFIG.toml says everything; KEY=VALUE changes it, such as optim.learning_rate=1e-5. What comes
    out is served by `assay serve genrm --model NAME=RUN_DIR/model`.

    \b
      assay train-rm configs/rm-pairwise.toml data.paths='["pairs.jsonl"]'
      assay train-rm configs/rm-steps.toml data.paths='["steps.jsonl.gz"]' run.steps=500
      assay train-rm --resume runs/rm-pairwise-20260101-120000
    """  # noqa: D301  # click takes the escape itself
    launch.carry_out(RUNS, lambda: asked.open(RUNS), _run)


def _run(settings: RmConfig, folder: RunFolder) -> object:
    rows = load_rows(settings) if settings.data.source == "jsonl" else None
    from assay.kit.console import make_console  # noqa: PLC0415  # when the environment is set
    from assay.trainer.recipes.reward_model.run import run  # noqa: PLC0415

    return run(settings, folder, make_console(), rows=rows)
