"""`assay best-actions`: the command line of Digi-Q's choice of actions."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("best-actions")
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FILE.jsonl")
@click.option("--gamma", default=1.0, show_default=True, help="Discount of a step.")
@click.option("--format", "style", default="", help="Of calls in prompts; by default the run's.")
def best_actions(
    *, source: Path, overrides: tuple[str, ...], out: Path, gamma: float, style: str
) -> None:
    """Find actions that are better than those of a run's episodes (Digi-Q).

    On the policy's hidden states, which stay as they are, Q and V learn from every logged step by
    temporal differences. At each state the policy is sampled (rollout.group_size times); the action
    of the highest Q is kept where it is above V (arXiv 2502.15760). FILE.jsonl has rows for
    supervised fine-tuning: prompt, response, q, v, and as reward q - v. Nothing is run or judged.

    \b
      assay best-actions runs/tools-20260101-120000 --out better.jsonl rollout.group_size=16
      assay train offline/sft data=rows.jsonl method.offline.rows=better.jsonl \
        method.offline.keep=all
    """  # noqa: D301  # click takes the escape itself
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.kit.errors import ConfigError  # noqa: PLC0415
    from assay.kit.runs.folders import RunPaths  # noqa: PLC0415
    from assay.kit.runs.progress import Display  # noqa: PLC0415
    from assay.trainer.recipes.best_actions.running import BestPlan, find_best  # noqa: PLC0415
    from assay.trainer.settings import config as configs  # noqa: PLC0415

    run = RunPaths(source)
    if not run.config.is_file():
        raise ConfigError(f"{source} is no run with a config.toml; name a run's folder")
    config = configs.load_run(run, overrides)
    display = Display(make_console())
    tally = find_best(config, BestPlan(source, out, gamma, style), display)
    display.note(f"{tally.report()}: {out}")
