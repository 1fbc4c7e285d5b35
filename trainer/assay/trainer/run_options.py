"""The command line of everything that trains: CONFIG.toml [KEY=VALUE]... [--resume] [--run-dir]."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from assay.kit.runs.folders import newest
from assay.trainer.records.folder import C, RunFolder, RunKind

_NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Asked:
    """The run that the command line asks for."""

    config: Path | None  # path of a config file
    overrides: tuple[str, ...]  # changed settings, as key=value
    resume: str | None  # folder of a run to continue, or "newest" for that of the config
    run_dir: Path | None  # folder of a new run

    def open(self, kind: RunKind[C]) -> tuple[RunFolder, C]:
        """Folder and settings of the run, new or continued.

        Raises:
            UsageError: options exclude one another, or there is no config.
            ConfigError: a file or folder is not as it should be.
        """
        if self.resume is not None:
            return self._continued(kind, self.resume)
        if self.config is None:
            raise click.UsageError(f"give a CONFIG.toml or a preset, such as {kind.example}")
        settings = kind.load(self.config, self.overrides)
        name = settings.run.name or self.config.stem
        return kind.create(settings, name, self.run_dir), settings

    def _continued(self, kind: RunKind[C], resume: str) -> tuple[RunFolder, C]:
        if self.run_dir is not None:
            raise click.UsageError(
                "--run-dir makes a new run and --resume continues one; give one of them"
            )
        if resume != _NEWEST:
            return kind.reopen(Path(resume), self.overrides)
        if self.config is None:
            raise click.UsageError(
                "--resume needs a RUN_DIR, or a CONFIG.toml whose newest run to continue"
            )
        settings = kind.load(self.config, self.overrides)
        found = newest(Path(settings.run.dir), settings.run.name or self.config.stem)
        return kind.reopen(found, self.overrides)


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the arguments of a run; it is called with `Asked` and its own options."""

    @functools.wraps(command)
    def called(
        config: str | None,
        overrides: tuple[str, ...],
        resume: str | None,
        run_dir: Path | None,
        **own: Any,
    ) -> None:
        if config is not None and "=" in config:  # `--resume RUN_DIR key=value`: all are overrides
            overrides, config = (config, *overrides), None
        path = None if config is None else Path(config)
        command(Asked(path, overrides, resume, run_dir), **own)

    for added in (
        click.option(
            "--run-dir",
            type=click.Path(path_type=Path),
            help="Folder of the new run; by default <run.dir>/<name>-<time>.",
        ),
        click.option(
            "--resume",
            is_flag=False,
            flag_value=_NEWEST,
            metavar="[RUN_DIR]",
            help="Continue a run from its newest checkpoint: the one named, or the newest of "
            "CONFIG. Write it last.",
        ),
        click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]..."),
        click.argument("config", required=False, metavar="CONFIG.toml"),
    ):
        called = added(called)
    return called
