"""`assay code-prm`: process supervision for code, from a start policy to the dense run."""

from __future__ import annotations

from pathlib import Path

import click

from assay.trainer.recipes.children import INTERRUPTED
from assay.trainer.recipes.code_prm import config as configs
from assay.trainer.recipes.code_prm.stages import Paths


@click.command("code-prm")
@click.argument("config", type=click.Path(path_type=Path), metavar="CONFIG.toml")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/code-prm"),
    show_default=True,
    help="Where everything is kept. A pipeline that is there goes on: stages that are whole stay.",
)
def code_prm(config: Path, overrides: tuple[str, ...], folder: Path) -> None:
    """Process supervision for code: label lines, train a PRM on them, train a policy with it.

    The stages: problems, a run with unit tests alone, samples of its checkpoints, labels for their
    lines, a process reward model, and a run from the start again with its scores of lines and a
    critic that starts from it (arXiv 2410.17621). Services are started for the stages that need
    them. The same command goes on where it was stopped.

    \b
      assay code-prm configs/pipelines/code_prm.toml
      assay code-prm configs/pipelines/code_prm.toml problems.source=jsonl problems.path=rows.jsonl
      assay code-prm configs/pipelines/code_prm.toml guards.span_normalisation=false --dir runs/hack
    """  # noqa: D301  # click takes the escape itself
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.kit.runs.progress import Display  # noqa: PLC0415
    from assay.trainer.recipes.code_prm.running import Pipeline, as_text  # noqa: PLC0415
    from assay.trainer.records.report import write  # noqa: PLC0415

    paths = Paths(folder)
    plan = configs.load(config, overrides, folder)
    display = Display(make_console())
    report = Pipeline(plan, paths, display).run()
    if report is None:
        raise SystemExit(INTERRUPTED)
    text = as_text(report)
    write(folder, report, text)
    display.note(text)
