"""`assay train-rm`: the command line of the training of judges.

torch and TRL take seconds to import, so they are imported when a run starts and not before: `assay
--help` stays quick, and a mistake in a config is told at once.
"""

from __future__ import annotations

import click

from assay.clients.runs.environment import calm, keep_freed_memory
from assay.clients.runs.folders import forget_if_untouched
from assay.rpc.errors import ConfigError
from assay.trainer import launch
from assay.trainer.recipes.reward_model.config import RUNS, Config
from assay.trainer.recipes.reward_model.data import load_rows
from assay.trainer.records.folder import RunFolder
from assay.trainer.run_options import Asked, run_options

INTERRUPTED = 130


@click.command("train-rm")
@run_options
def train_rm(asked: Asked) -> None:
    """Train a judge: pairwise, Bradley-Terry, or a process reward model.

    CONFIG.toml says everything; KEY=VALUE changes it, such as optim.learning_rate=1e-5. What comes
    out is served by `assay serve genrm --model NAME=RUN_DIR/model`.

    \b
      assay train-rm configs/rm-pairwise.toml data.paths='["pairs.jsonl"]'
      assay train-rm configs/rm-steps.toml data.paths='["steps.jsonl.gz"]' run.steps=500
      assay train-rm --resume runs/rm-pairwise-20260101-120000
    """  # noqa: D301  # click takes the escape itself
    folder, settings = launch.opened(RUNS, lambda: asked.open(RUNS))
    try:
        code = _run(settings, folder)
    except ConfigError:
        if launch.is_main():
            forget_if_untouched(folder)
        raise
    if code:
        raise SystemExit(code)


def _run(settings: Config, folder: RunFolder) -> int:
    rows = load_rows(settings) if settings.data.source == "jsonl" else None
    keep_freed_memory()
    calm()
    from rich.console import Console  # noqa: PLC0415  # after calm(), which libraries read when they are imported

    from assay.trainer.recipes.reward_model.run import run  # noqa: PLC0415
    from assay.trainer.records.full_disk import said_when_full  # noqa: PLC0415

    with said_when_full(folder.path, RUNS.command):
        report = run(settings, folder, Console(), rows=rows)
    return INTERRUPTED if report is None else 0
