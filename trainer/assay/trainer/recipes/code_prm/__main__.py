"""`python -m assay.trainer.recipes.code_prm CONFIG.toml CHECKPOINT OUT.jsonl`: samples."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from assay.cli.main import report_error
from assay.kit.errors import AssayError
from assay.kit.runs.environment import calm, keep_freed_memory
from assay.trainer.recipes.children import INTERRUPTED
from assay.trainer.settings import config as configs


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--number", type=int, required=True, help="Steps of the optimizer.")
@click.option("--per-prompt", type=click.IntRange(min=1), required=True)
@click.option("--prompts", type=click.IntRange(min=0), default=0, help="The first so many; 0: all.")
@click.option("--batch", type=click.IntRange(min=1), default=64)
@click.option("--temperature", type=float, default=1.0)
def sample(
    config: Path,
    checkpoint: Path,
    out: Path,
    *,
    number: int,
    per_prompt: int,
    prompts: int,
    batch: int,
    temperature: float,
) -> None:
    """Draw responses of a checkpoint to the training problems of a run."""
    keep_freed_memory()
    calm()
    from assay.kit.console import make_console  # noqa: PLC0415  # after calm()
    from assay.kit.runs.progress import Display  # noqa: PLC0415
    from assay.trainer.data.problems import load_problems  # noqa: PLC0415
    from assay.trainer.recipes.code_prm.sampling import draw  # noqa: PLC0415

    settings = configs.load(config)
    problems = load_problems(settings.data, eval_prompts=settings.eval.prompts).train
    chosen = problems[:prompts] if prompts else problems
    display = Display(make_console())
    display.begin(f"samples after {number} updates", len(chosen) * per_prompt)
    try:
        count = draw(
            settings,
            chosen,
            checkpoint,
            out,
            number=number,
            per_prompt=per_prompt,
            temperature=temperature,
            batch=batch,
            advance=display.advance,
        )
    finally:
        display.end()
    display.note(f"{count} responses of {checkpoint} in {out}")


def main() -> int:
    """Runs it; the exit code."""
    try:
        sample.main(standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (AssayError, click.ClickException, OSError) as error:
        return report_error(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
