"""`assay train`: the command line of the trainer.

torch and TRL take seconds to import, so they are imported when a run starts and not before: `assay
--help` stays quick, and a mistake in a config is told at once.
"""

from __future__ import annotations

from pathlib import Path

import click

from assay.clients.runs.environment import calm, keep_freed_memory
from assay.clients.runs.folders import forget_if_untouched, newest
from assay.rpc.errors import ConfigError
from assay.trainer import config as configs
from assay.trainer import folder as folders

_NEWEST = "newest"


@click.command()
@click.argument("config", required=False, metavar="CONFIG.toml")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--resume",
    is_flag=False,
    flag_value=_NEWEST,
    metavar="[RUN_DIR]",
    help="Continue a run from its newest checkpoint: the one named, or the newest of CONFIG. "
    "Write it last.",
)
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path),
    help="Folder of the new run; by default <run.dir>/<name>-<time>.",
)
def train(
    config: str | None, overrides: tuple[str, ...], resume: str | None, run_dir: Path | None
) -> None:
    r"""Train a model with rewards from Assay services.

    CONFIG.toml says everything; KEY=VALUE changes it, such as optim.learning_rate=1e-5. Without
    reward.target, services are started for the run.

    \b
      assay train configs/quickstart.toml
      assay train configs/gsm8k.toml data.path=gsm8k_train.jsonl.gz run.steps=500
      assay train --resume runs/quickstart-20260101-120000
    """
    if (
        config is not None and "=" in config
    ):  # `assay train --resume RUN_DIR key=value`: no config, all overrides
        overrides, config = (config, *overrides), None
    folder, settings = _open(config, overrides, resume, run_dir)
    code = _run(settings, folder)
    if code:
        raise SystemExit(code)


def _open(
    config: str | None, overrides: tuple[str, ...], resume: str | None, run_dir: Path | None
) -> tuple[folders.RunFolder, configs.Config]:
    """The folder and settings of the run: a new one, or one to continue."""
    if resume is not None:
        if run_dir is not None:
            raise click.UsageError(
                "--run-dir makes a new run and --resume continues one; give one of them"
            )
        if resume != _NEWEST:
            return folders.reopen(Path(resume), overrides)
        if config is None:
            raise click.UsageError(
                "--resume needs a RUN_DIR, or a CONFIG.toml whose newest run to continue"
            )
        settings = configs.load(Path(config), overrides)
        found = newest(Path(settings.run.dir), settings.run.name or Path(config).stem)
        return folders.reopen(found, overrides)
    if config is None:
        raise click.UsageError("give a CONFIG.toml, such as configs/quickstart.toml")
    settings = configs.load(Path(config), overrides)
    return folders.create(settings, settings.run.name or Path(config).stem, run_dir), settings


def _run(settings: configs.Config, folder: folders.RunFolder) -> int:
    keep_freed_memory()
    calm()
    from rich.console import Console  # noqa: PLC0415  # after calm(), which libraries read when they are imported

    from assay.trainer.run import INTERRUPTED, run  # noqa: PLC0415

    try:
        report = run(settings, folder, Console())
    except ConfigError:
        forget_if_untouched(folder)
        raise
    return INTERRUPTED if report is None else 0
