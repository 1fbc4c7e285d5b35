"""`assay starts`: the command line of ReST-RL's choice of starting points."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN_OR_FILE")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FILE.jsonl")
@click.option("--least-std", default=0.05, show_default=True, help="Of a prompt's rewards.")
@click.option("--least-best", default=0.9, show_default=True, help="Reward to start from.")
@click.option("--share", default=0.5, show_default=True, help="Rows for each of its states.")
@click.option("--alpha", default=0.95, show_default=True, help="State i comes alpha^i as often.")
@click.option("--separator", default="\n", help="Ends a state; a line by default.")
@click.option("--seed", default=0, show_default=True)
def starts(
    *,
    source: Path,
    out: Path,
    least_std: float,
    least_best: float,
    share: float,
    alpha: float,
    separator: str,
    seed: int,
) -> None:
    """Choose prompts, and beginnings of good responses, to train from (ReST-RL).

    RUN_OR_FILE is a run with recorded rollouts, or its rows. A prompt whose responses earned
    rewards that deviate by --least-std stays; where the best of them earned --least-best, its
    states (the beginnings that end with a line) are drawn with weights alpha^i, and each is a row
    of its own whose column `begun` every response begins with (arXiv 2508.19576).

    \b
      assay starts runs/RUN --out starts.jsonl
      assay train configs/rest_rl.toml data=starts.jsonl model=runs/RUN/model
    """  # noqa: D301  # click takes the escape itself
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.trainer.recipes.starts.choosing import StartsPlan, write_starts  # noqa: PLC0415

    plan = StartsPlan(source, least_std, least_best, share, alpha, separator, seed)
    make_console().print(f"{write_starts(plan, out)}: {out}", markup=False, soft_wrap=True)
