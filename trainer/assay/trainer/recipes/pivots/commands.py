"""`assay pivots`: the command line of PivotRL's choice of turns."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN_OR_FILE")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FILE.jsonl")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="CONFIG.toml",
    help="The policy and how it is sampled; by default a run's own, with what it trained.",
)
@click.option("--tau", default=0.75, show_default=True, help="A pivot's mean reward is below it.")
@click.option(
    "--min-reward",
    default=1.0,
    show_default=True,
    help="Of recorded episodes: those that earned less have no turns.",
)
@click.option("--format", "style", default="tagged", show_default=True, help="Of calls in prompts.")
@click.option("--limit", default=0, help="Profile at most so many turns, drawn by run.seed.")
@click.option("--all", "every", is_flag=True, help="Write every profiled turn, pivot or not.")
def pivots(
    *,
    source: Path,
    overrides: tuple[str, ...],
    out: Path,
    config_file: Path | None,
    tau: float,
    min_reward: float,
    style: str,
    limit: int,
    every: bool,
) -> None:
    """Find the turns at which a policy still differs from good trajectories (PivotRL).

    RUN_OR_FILE is a run with recorded episodes, or JSON Lines of conversations {"messages",
    "tools"} or of episodes' records. At every turn that calls a tool the policy is sampled
    (rollout.group_size times) and the verifier `tool-call` compares what it calls with what was
    called; a turn whose samples earn different rewards, of a mean below --tau, is a pivot
    (arXiv 2603.21383). FILE.jsonl has rows for single-turn GRPO: prompt, reference, profile. The
    same command goes on where it was stopped.

    \b
      assay pivots runs/tools-20260101-120000 --out pivots.jsonl
      assay pivots sft.jsonl --config configs/pivot_rl.toml --out pivots.jsonl rollout.group_size=8
      assay train configs/pivot_rl.toml data.source=jsonl data.path=pivots.jsonl
    """  # noqa: D301  # click takes the escape itself
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.kit.errors import ConfigError  # noqa: PLC0415
    from assay.kit.runs.folders import RunPaths  # noqa: PLC0415
    from assay.kit.runs.progress import Display  # noqa: PLC0415
    from assay.trainer.recipes.pivots.running import PivotPlan, find_pivots  # noqa: PLC0415
    from assay.trainer.settings import config as configs  # noqa: PLC0415

    run = RunPaths(source)
    if config_file is not None:
        config = configs.load(config_file, overrides)
    elif run.config.is_file():
        config = configs.load_run(run, overrides)
    else:
        raise ConfigError(f"{source} is no run with a config.toml; name one with --config")
    display = Display(make_console())
    plan = PivotPlan(source, out, tau, min_reward, style, limit, every)
    tally = find_pivots(config, plan, display)
    display.note(f"{tally.report()}: {out}")
