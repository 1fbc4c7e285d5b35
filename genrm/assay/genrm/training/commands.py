"""`assay train-rm`: the command line of the training of judges.

torch and TRL take seconds to import, so they are imported when a run starts and not before: `assay
--help` stays quick, and a mistake in a config is told at once.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from assay.clients.runs.environment import calm, keep_freed_memory
from assay.clients.runs.folders import forget_if_untouched, newest
from assay.genrm.training import config as configs
from assay.genrm.training import folder as folders
from assay.genrm.training.data import AnyRows, load_rows
from assay.rpc.errors import ConfigError

INTERRUPTED = 130
_NEWEST = "newest"
_NEEDED = ("trl", "datasets", "accelerate")


@click.command("train-rm")
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
def train_rm(
    config: str | None, overrides: tuple[str, ...], resume: str | None, run_dir: Path | None
) -> None:
    """Train a judge: pairwise, Bradley-Terry, or a process reward model.

    CONFIG.toml says everything; KEY=VALUE changes it, such as optim.learning_rate=1e-5. What comes
    out is served by `assay serve genrm --model NAME=RUN_DIR/model`.

    \b
      assay train-rm configs/rm-pairwise.toml data.paths='["pairs.jsonl"]'
      assay train-rm configs/rm-steps.toml data.paths='["steps.jsonl.gz"]' run.steps=500
      assay train-rm --resume runs/rm-pairwise-20260101-120000
    """  # noqa: D301  # click takes the escape itself
    if config is not None and "=" in config:  # `--resume RUN_DIR key=value`: all are overrides
        overrides, config = (config, *overrides), None
    _check_installed()
    folder, settings = _open(config, overrides, resume, run_dir)
    code = _run(settings, folder)
    if code:
        raise SystemExit(code)


def _check_installed() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"training needs {', '.join(missing)}; install them with "
            "`pip install 'assay-genrm[train]'`"
        )


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
        raise click.UsageError("give a CONFIG.toml, such as configs/rm-pairwise.toml")
    settings = configs.load(Path(config), overrides)
    return folders.create(settings, settings.run.name or Path(config).stem, run_dir), settings


def _run(settings: configs.Config, folder: folders.RunFolder) -> int:
    try:
        rows = load_rows(settings) if settings.data.source == "jsonl" else None
        return _train(settings, folder, rows)
    except ConfigError:
        forget_if_untouched(folder)
        raise


def _train(settings: configs.Config, folder: folders.RunFolder, rows: AnyRows | None) -> int:
    keep_freed_memory()
    calm()
    from rich.console import Console  # noqa: PLC0415  # after calm(), which libraries read when they are imported

    from assay.genrm.training.run import run  # noqa: PLC0415

    report = run(settings, folder, Console(), rows=rows)
    return INTERRUPTED if report is None else 0
