"""`assay train`, `eval`, `compare`, `mixture`, `ladder` and `stages`: the trainer's command lines.

torch and TRL take seconds to import, so they are imported when a run starts: `assay --help` stays
quick and a mistake in a config shows at once.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import click

from assay.kit.errors import ConfigError
from assay.kit.runs.environment import calm
from assay.trainer import launch
from assay.trainer.records.folder import POLICY_RUNS, RunFolder
from assay.trainer.run_options import Asked, run_options
from assay.trainer.settings import config as configs

_BELOW = 3
"""Exit code where the outcome is there, and is not what one wants."""


@click.command()
@run_options
@click.option(
    "--explain",
    "explained",
    is_flag=True,
    help="Say in words what the settings compose, with the papers, and train nothing.",
)
@click.option(
    "--plan",
    "planned",
    is_flag=True,
    help="Say what each device and process will hold, refuse what does not fit, train nothing.",
)
@click.option("--memory", default="", metavar="SIZE", help="With --plan: of a device, as 80GB.")
@click.option(
    "--accelerate",
    "launcher",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --plan: the launcher's config, which says how weights are sharded.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="With --plan: how many train together; by default those of --accelerate, or one.",
)
@click.option(
    "--prompt-tokens",
    type=click.IntRange(min=1),
    default=512,
    show_default=True,
    help="With --plan: of the longest prompt.",
)
def train(asked: Asked, *, explained: bool, planned: bool, **planning: Any) -> None:
    """Train a model with rewards from Assay services.

    CONFIG.toml is a file or the name of a preset, such as dapo. KEY=VALUE changes a setting, such
    as optim.learning_rate=1e-5, or in short model=NAME, data=FILE.jsonl, reward=VERIFIER,
    ablate=PART,PART, over=FILE.toml. Without reward.target, services are started for the run.

    \b
      assay train configs/quickstart.toml
      assay train dapo data=rows.jsonl model=Qwen/Qwen2.5-7B
      assay train configs/dapo.toml data=rows.jsonl ablate=clip-higher
      assay train --explain configs/dapo.toml data=rows.jsonl
      assay train --plan configs/dapo.toml over=configs/scale/7b.toml data=rows.jsonl
      assay train configs/gsm8k.toml data.path=gsm8k_train.jsonl.gz run.steps=500
      assay train --resume runs/quickstart-20260101-120000
    """  # noqa: D301  # click takes the escape itself
    if explained:
        _explain(asked)
    elif planned:
        _plan(asked, **planning)
    else:
        launch.carry_out(POLICY_RUNS, lambda: asked.open(POLICY_RUNS), _run)


def _explain(asked: Asked) -> None:
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.trainer.explain.explanation import explain  # noqa: PLC0415
    from assay.trainer.explain.show import show  # noqa: PLC0415

    if asked.config is None:
        raise click.UsageError("--explain needs a CONFIG.toml, such as configs/dapo.toml")
    config = configs.load(asked.config, asked.overrides)
    show(explain(config, data=_of_data(config)), make_console())


def _of_data(config: configs.Config) -> list[str]:
    """Lines about the data; what cannot be read says why, since nothing trains here."""
    from assay.trainer.data.problems import load_problems  # noqa: PLC0415
    from assay.trainer.settings.registry import row_needs  # noqa: PLC0415

    try:
        needs = row_needs(config)
        found = load_problems(config.data, eval_prompts=config.eval.prompts, needs=needs).origin
    except ConfigError as error:
        return [f"source {config.data.source}, not to be used yet: {error}"]
    return found.lines if found else []


def _plan(
    asked: Asked, *, memory: str, launcher: Path | None, processes: int, prompt_tokens: int
) -> None:
    calm()
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.trainer.plan.command import plan, setup_of  # noqa: PLC0415

    if asked.config is None:
        raise click.UsageError("--plan needs a CONFIG.toml, such as configs/dapo.toml")
    config = configs.load(asked.config, asked.overrides)
    setup = setup_of(
        config, memory=memory, launcher=launcher, processes=processes, prompt=prompt_tokens
    )
    plan(config, setup, make_console(width=100))


def _run(settings: configs.Config, folder: RunFolder) -> object:
    from assay.kit.console import make_console  # noqa: PLC0415  # when the environment is set
    from assay.trainer.recipes.train import run  # noqa: PLC0415

    return run(settings, folder, make_console())


@click.command()
@click.argument("path", metavar="LADDER.toml", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="Where the runs and the outcome are kept; by default runs/<name of the ladder>. A ladder "
    "that is there goes on: finished runs stay, interrupted ones are resumed.",
)
@click.option("--seeds", metavar="N,N,...", help="Seeds, in place of those of the file.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Runs at a time; more than one only where the machine has room for them.",
)
def ladder(
    path: Path, overrides: tuple[str, ...], folder: Path | None, seeds: str | None, jobs: int
) -> None:
    """Train the same config with parts switched on or off, and compare.

    LADDER.toml names a config and rungs; each rung is trained with each seed. KEY=VALUE changes the
    settings of all runs. The outcome is a table and curves: ladder.md, ladder.json, ladder.png.

    \b
      assay ladder configs/ladders/dapo.toml data=rows.jsonl
      assay ladder configs/ladders/vapo.toml data=rows.jsonl --seeds 0,1 --dir runs/vapo
    """  # noqa: D301  # click takes the escape itself
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.trainer.recipes.ladder import climb, plan  # noqa: PLC0415

    chosen = None if seeds is None else plan.read_seeds(seeds)
    wanted = plan.load(path, overrides, seeds=chosen)
    code = climb.climb(wanted, folder or Path("runs") / path.stem, make_console(), jobs=jobs)
    if code:
        raise SystemExit(code)


@click.command("eval")
@click.argument("model", metavar="MODEL")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--suite",
    "suites",
    multiple=True,
    required=True,
    metavar="NAME[@K]",
    help="A suite, or FILE.toml of your own, with K samples of each item; may be repeated.",
)
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="K.")
@click.option(
    "--max-new-tokens",
    type=click.IntRange(min=1),
    default=2048,
    show_default=True,
    help="Most tokens of a response.",
)
@click.option("--engine", default="hf", show_default=True, help="hf, paged or vllm.")
@click.option("--run-dir", type=click.Path(path_type=Path), help="By default runs/eval-<time>.")
@click.option("--json", "as_json", is_flag=True, help="Print report.json and nothing else.")
def evaluate(
    model: str,
    overrides: tuple[str, ...],
    *,
    suites: tuple[str, ...],
    samples: int,
    max_new_tokens: int,
    engine: str,
    run_dir: Path | None,
    as_json: bool,
) -> int:
    """Evaluate a model on suites: avg@k, pass@k, maj@k, best@k, with intervals.

    MODEL is a folder, a hub name or the folder of a run, whose trained model it is. KEY=VALUE
    changes a setting as of `assay train`, such as eval.temperature=0.6, eval.best_by=reward-model
    or reward.target=HOST:PORT; without reward.target, services are started. Exits with 3 where a
    suite has more faults than reward.max_fault_ratio.

    \b
      assay eval Qwen/Qwen2.5-1.5B-Instruct --suite math500 --suite aime24@32 eval.temperature=0.6
      assay eval runs/dapo-1 --suite gsm8k eval.suite_data=data eval.suite_items=200
    """  # noqa: D301  # click takes the escape itself
    folder = Path(model)
    trained = folder / "model"
    tree: dict[str, Any] = {
        "model": {"name": str(trained) if trained.is_dir() else model},
        "eval": {"suites": list(suites), "samples": samples, "max_new_tokens": max_new_tokens},
        "rollout": {"backend": engine},
        "run": {"name": "eval"},
    }
    config = configs.build(tree, overrides, origin="assay eval")
    told: list[Any] = []

    def run(settings: configs.Config, place: RunFolder) -> object:
        from assay.kit.console import make_console  # noqa: PLC0415  # when the environment is set
        from assay.trainer.recipes import evaluating  # noqa: PLC0415

        console = make_console(file=io.StringIO()) if as_json else make_console()
        outcome = evaluating.run(settings, place, console)
        if outcome:
            told.append(
                (outcome, evaluating.too_many_faults(outcome, config.reward.max_fault_ratio))
            )
        return outcome

    launch.carry_out(
        POLICY_RUNS, lambda: (POLICY_RUNS.create(config, "eval", run_dir), config), run
    )
    for outcome, lost in told:
        if as_json:
            click.echo(json.dumps(outcome, indent=2))
        if lost:
            click.echo(
                f"assay: more faults than reward.max_fault_ratio: {', '.join(lost)}", err=True
            )
            return _BELOW
    return 0


@click.command()
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN")
@click.option("--common", is_flag=True, help="Compare only items of both where the runs differ.")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write the page here.")
@click.option("--json", "as_json", is_flag=True, help="Print data in place of a table.")
def compare(first: str, second: str, *, common: bool, page: Path | None, as_json: bool) -> int:
    """Compare two runs on the same items: paired, with intervals, the second against the first.

    RUN is the folder of `assay train` or `assay eval`, or a file such as RUN/eval_before.json.
    Runs on other items are an error unless --common, which says what it leaves out. Exits with 3
    where a figure of the second is below the first's by its whole interval.

    \b
      assay compare runs/base runs/dapo-1 --html compare.html
      assay compare runs/dapo-1/eval_before.json runs/dapo-1 --json
    """  # noqa: D301  # click takes the escape itself
    calm()
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.trainer.records import comparing  # noqa: PLC0415

    pair = comparing.compare_runs(
        comparing.read_run(first), comparing.read_run(second), common=common
    )
    if page is not None:
        page.write_text(comparing.html_page(pair), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(pair.to_json(), indent=2))
    else:
        console = make_console()
        console.print(pair.table())
        for line in pair.lines:
            console.print(line, markup=False)
    if pair.worse:
        click.echo(f"assay: worse: {', '.join(pair.worse)}", err=True)
    return _BELOW if pair.worse else 0


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="NAME",
    help="Score runs by this suite, or by held-out, their own prompts; may be repeated. By "
    "default all that a run has.",
)
@click.option(
    "--form",
    type=click.Choice(["linear", "quadratic"]),
    help="Of the surrogate; by default quadratic where there are runs enough.",
)
@click.option("--json", "as_json", is_flag=True, help="Print data in place of a table.")
def mixture(runs: tuple[str, ...], suites: tuple[str, ...], form: Any, *, as_json: bool) -> None:
    """Find weights of a data mixture from runs that trained with others (MoDoMoDo).

    RUN is the folder of a finished `assay train` with data.source = "mixture"; all have the same
    sources. A surrogate of the score is fitted to their weights; its maximum is printed.

    \b
      assay mixture runs/pilot-* --suite gsm8k --suite math500
    """  # noqa: D301  # click takes the escape itself
    calm()
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.trainer.recipes import mixture as pilots  # noqa: PLC0415
    from assay.trainer.records.comparing import read_run  # noqa: PLC0415

    advice = pilots.advise([pilots.pilot(read_run(one), suites) for one in runs], form=form)
    if as_json:
        click.echo(json.dumps(advice.to_json(), indent=2))
        return
    console = make_console()
    console.print(advice.table())
    for line in advice.lines:
        console.print(line, markup=False)


@click.command()
@click.argument("path", metavar="STAGES.toml", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="Where the runs are kept; by default runs/<name of the file>. What is there goes on: "
    "finished stages stay, an interrupted one is resumed.",
)
def stages(path: Path, overrides: tuple[str, ...], folder: Path | None) -> None:
    """Train in stages: each run begins with the model, or the rollouts, of one before it.

    STAGES.toml names the settings of each stage, as SFT or DPO on stored rollouts and RL after it.
    KEY=VALUE changes the settings of all stages, STAGE:KEY=VALUE those of one. The same command
    goes on where it was stopped.

    \b
      assay stages configs/pipelines/specs.toml data=rows.jsonl model=Qwen/Qwen2.5-1.5B
      assay stages configs/pipelines/sft_rl.toml data=rows.jsonl --dir runs/sft-rl
      assay stages configs/pipelines/tango.toml data=rows.jsonl sft:method.offline.rows=scored.jsonl
    """  # noqa: D301  # click takes the escape itself
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it
    from assay.trainer.recipes.chain import plan, running  # noqa: PLC0415

    folder = folder or Path("runs") / path.stem
    code = running.run(plan.load(path, overrides, folder), folder, make_console())
    if code:
        raise SystemExit(code)
