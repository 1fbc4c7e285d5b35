"""`assay contamination`: its command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from assay.kit.errors import AssayError

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOUND, _COULD_NOT = 1, 2


@click.command()
@click.argument("model", metavar="MODEL")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--data", required=True, type=_FILE, metavar="ROWS", help="The suspect rows.")
@click.option("--against", type=_FILE, metavar="ROWS", help="Rows that the model cannot have seen.")
@click.option("--json", "json_file", type=_FILE, help="Write scores and figures; resumes.")
@click.option(
    "--by", default="self-critique", show_default=True, metavar="SCORE", help="Which decides."
)
@click.option("--recall", is_flag=True, help="One more answer, for the score `recall`.")
@click.option(
    "--samples", type=click.IntRange(0), default=0, help="More answers, for `cdd`: 10 as published."
)
@click.option("--max-new-tokens", type=click.IntRange(1), default=1024, show_default=True)
@click.option(
    "--rows", "most", type=click.IntRange(0), default=0, help="The first so many; 0: all."
)
@click.option("--show", type=click.IntRange(0), default=5, show_default=True, help="Rows to name.")
@click.option("--engine", default="hf", show_default=True, help="hf, paged or vllm.")
def contamination(
    *, model: str, overrides: tuple[str, ...], json_file: Path | None, show: int, **asked: Any
) -> int:
    """Find out whether a model was trained on rows, by how it answers them.

    MODEL is a folder, a hub name or the folder of a run: then its trained model and its prompts.
    Self-Critique (arXiv 2510.09259): the model answers, is asked for another way with its answer in
    the prompt, and the entropies of the two answers' tokens are compared. Beside it stand
    perplexity, min-k and min-k++, which cost nothing more. A row has a `prompt`, and may say
    whether it is a `member`. KEY=VALUE changes a setting as of `assay train`, such as
    data.system=TEXT: ask as the model was asked in training.

    Exits with 0 where nothing was found, 1 where the rows score above those of --against by the
    whole interval, 2 where it could not be run.

    \b
      assay contamination Qwen/Qwen2.5-7B --data math500.jsonl --against fresh.jsonl
      assay contamination runs/dapo-1 --data eval.jsonl --against fresh.jsonl --json found.json
    """  # noqa: D301  # click takes the escape itself
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.kit.runs.environment import calm  # noqa: PLC0415

    calm()
    try:
        from assay.trainer.recipes.contamination.running import audit_rows  # noqa: PLC0415

        report = audit_rows(model, overrides, json_file=json_file, **asked)
    except (AssayError, OSError) as error:
        print(f"assay: error: {' '.join(str(error).split())}", file=sys.stderr)
        return _COULD_NOT
    console = make_console()
    console.print(report.table())
    for line in report.lines(show):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return _FOUND if report.found else 0
