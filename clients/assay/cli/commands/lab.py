"""`assay lab`: what trainers learn when their reward server fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from assay.cli.scoring.partial import write_json
from assay.kit.console import make_console
from assay.kit.errors import AssayError, ConfigError
from assay.lab.report import MARKS, exit_code, from_plain, page_with, to_plain, with_cells
from assay.lab.running import Trial, chosen, contestant_names, try_apart
from assay.lab.scripts import SCRIPTS

_FILE = click.Path(dir_okay=False, path_type=Path)
_COLOURS = {"green": "green", "yellow": "yellow", "red": "bold red", "grey": "dim"}
_COULD_NOT = 2


@click.command()
@click.argument("trainers", nargs=-1)
@click.option(
    "--only", multiple=True, metavar="TRAINER:SCRIPT", help="This cell alone; repeatable."
)
@click.option("--json", "json_file", type=_FILE, help="Write the trials; others in it stay.")
@click.option("--page", type=_FILE, help="Write the matrix of --json into a page.")
def lab(
    trainers: Sequence[str], only: Sequence[str], json_file: Path | None, page: Path | None
) -> int:
    """Have real trainers take a step while a scripted reward server fails.

    TRAINER is a trainer and a policy for faults; without one, all. Each runs in a process of its
    own, if it can be imported here. A cell is green where the step is that of a run in which the
    rows without a judgement never were, yellow where data is lost and nothing wrong is learned, and
    red where another step is taken.

    Exits with 0 where no default of ours is red, 1 where one is, and 2 where nothing could be run.
    """
    console = make_console()
    try:
        if page is not None and json_file is None:
            raise ConfigError("--page shows what --json keeps; name that file, too")
        kept = _read(json_file)
        trials = []
        for name, scripts in _asked(trainers, only).items():
            console.print(f"{name} ...", highlight=False)
            trials.append(try_apart(name, scripts))
        kept |= {trial.name: with_cells(kept.get(trial.name), trial) for trial in trials}
        if json_file is not None:
            ordered = [kept[name] for name in sorted(kept)]
            write_json(json_file, {"trials": [to_plain(trial) for trial in ordered]})
            if page is not None:
                text = page.read_text(encoding="utf-8")
                page.write_text(page_with(text, ordered), encoding="utf-8")
    except (AssayError, OSError) as error:
        print(f"assay: error: {' '.join(str(error).split())}", file=sys.stderr)
        return _COULD_NOT
    for trial in trials:
        console.print(_table(trial))
    return exit_code(trials)


def _asked(trainers: Sequence[str], only: Sequence[str]) -> dict[str, list[str]]:
    """The scripts of each trainer.

    Raises:
        ConfigError: there is no such trainer or script.
    """
    known = contestant_names()
    if not only:
        return {name: list(SCRIPTS) for name in chosen(trainers, known, "trainer")}
    asked: dict[str, list[str]] = {}
    for cell in only:
        name, colon, script = cell.partition(":")
        if not colon:
            raise ConfigError(f"--only {cell!r} has no ':'; write TRAINER:SCRIPT")
        [name] = chosen([name], known, "trainer")
        asked.setdefault(name, []).extend(chosen([script], list(SCRIPTS), "script"))
    return asked


def _read(path: Path | None) -> dict[str, Trial]:
    if path is None or not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["trials"]
        return {plain["name"]: from_plain(plain) for plain in found}
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} holds no trials of the lab; name another file") from error


def _table(trial: Trial) -> Table:
    kind = "our default" if trial.default else "another policy"
    table = Table(title=f"{trial.title} ({kind}): {trial.version}", title_justify="left")
    for name in ("script", "the server", "", "the step", "cosine", "length", "unjudged"):
        table.add_column(name)
    for name, cell in trial.cells.items():
        found = cell.difference
        numbers = (f"{found.cosine:.4f}", f"{found.length:.3f}") if found else ("", "")
        table.add_row(
            name, SCRIPTS[name].says, Text(MARKS[cell.colour], _COLOURS[cell.colour]), cell.says,
            *numbers, " ".join(cell.unjudged),
        )  # fmt: skip
    return table
