"""`assay eval`: a model answers suites, without training; the outcome is a run's folder.

config.toml, run.json, journal.sqlite, rollouts/   as of a training run
eval_after.json                                    every answer
report.json, report.md                             the figures
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from rich.console import Console
from transformers import set_seed

from assay.clients import Transport
from assay.kit.console import make_console
from assay.kit.runs import rollouts as files
from assay.kit.runs.progress import duration
from assay.trainer.core.answering import evaluation_sampling, standing_engine
from assay.trainer.core.build import encoder
from assay.trainer.core.evaluation import Evaluation
from assay.trainer.core.suites import check_suites, evaluate_suite
from assay.trainer.core.world import join
from assay.trainer.data.suites import load_suites
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import device_of, load_policy
from assay.trainer.engines.requirements import check_installed
from assay.trainer.recipes.train import judging
from assay.trainer.records import report
from assay.trainer.records.folder import RunFolder, record
from assay.trainer.records.progress import StepDisplay
from assay.trainer.records.rollouts import rollout_rows
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import OneRank, Ranks, Rollout
from assay.trainer.settings.config import Config


def run(
    config: Config,
    folder: RunFolder,
    console: Console,
    *,
    transport: Callable[[], Transport] | None = None,
) -> dict[str, Any]:
    """Has config.model answer config.eval.suites, by the configured engine.

    `transport` replaces the network to the reward service.

    Returns:
        On the first process report.json: `run`, and a summary of each suite; empty on the others.

    Raises:
        ConfigError: something that the settings name is missing or unusable.
        StartupError: the run's own services could not start.
        OutageError: the reward services were away for too long.
    """
    started = time.perf_counter()
    on_cuda = device_of(config.model).type == "cuda"
    world = join(on_cuda=on_cuda, max_outage_s=config.reward.max_outage_s)
    display = StepDisplay(console if world.main else make_console(file=io.StringIO()))
    check_installed(config)
    suites = load_suites(config.eval)
    ranks: Ranks = AccelerateRanks(Accelerator(cpu=not on_cuda)) if world.count > 1 else OneRank()
    set_seed(config.run.seed)
    policy = load_policy(config.model, display.note)
    policy.model.eval()
    found: dict[str, Evaluation] = {}
    kept: list[Rollout] = []
    try:
        with judging(config, folder, world, transport, display.note, suites=suites) as judge:
            check_suites(config, suites, judge, policy)
            if world.main:
                record(folder, config, data={one.suite.name: dict(one.origin) for one in suites})
            with standing_engine(config, policy) as engine:
                for items in suites:
                    display.begin(items.suite.name, len(items.problems))
                    found[items.suite.name] = evaluate_suite(
                        config,
                        items,
                        judge,
                        Sampler(engine, evaluation_sampling(config, items.samples)),
                        encoder(policy),
                        ranks=ranks,
                        on_progress=display.advance,
                        on_rollouts=kept.extend,
                    )
                    display.end()
    finally:
        display.end()
    _keep_rollouts(config, folder, kept, world.index)
    if not world.main:
        return {}
    evaluation = Evaluation((), suites=found)
    folder.keep_evaluation("after", evaluation.to_json())
    outcome = {
        "run": {
            "name": config.run.name or folder.path.name,
            "folder": str(folder.path),
            "model": config.model.name,
            "engine": config.rollout.backend,
            "seed": config.run.seed,
            "took_s": round(time.perf_counter() - started, 1),
        },
        "suites": {
            name: {"origin": dict(one.origin), **one.summary()} for name, one in found.items()
        },
    }
    report.write(folder.path, outcome, _markdown(outcome, evaluation))
    console.print(report.grid("", report.SUITE_COLUMNS, report.suite_rows(evaluation), _NOTE))
    for line in said_of(outcome):
        display.note(line)
    display.note(f"took {duration(time.perf_counter() - started)}; {folder.path / 'report.md'}")
    return outcome


_NOTE = "95 % intervals over items; faults are in no figure"


def _keep_rollouts(
    config: Config, folder: RunFolder, rollouts: Sequence[Rollout], process: int
) -> None:
    if config.run.rollouts != "none":
        path: Path = files.path_for(folder.rollouts, 0, files.EVAL, process)
        files.write_rollouts(path, rollout_rows(0, rollouts, phase=files.EVAL, process=process))


def said_of(outcome: Mapping[str, Any]) -> list[str]:
    """A line for each suite with faults: how many, and which items have no judgement at all."""
    lines = []
    for name, told in outcome["suites"].items():
        if told["faults"]:
            lost = told["unjudged"]
            whole = f"; without any judgement: {', '.join(lost)}" if lost else ""
            asked = told["faults"] + told["judged"]
            lines.append(f"{name}: {told['faults']} of {asked} samples are faults{whole}")
        if told.get("score_faults"):
            lines.append(f"{name}: {told['score_faults']} samples have no score for best@k")
    return lines


def too_many_faults(outcome: Mapping[str, Any], most: float) -> list[str]:
    """Suites with a larger share of faults than `most`."""
    return [
        name
        for name, told in outcome["suites"].items()
        if told["faults"] > most * (told["faults"] + told["judged"])
    ]


def _markdown(outcome: Mapping[str, Any], evaluation: Evaluation) -> str:
    run = outcome["run"]
    rows = report.markdown_table(["suite", *report.SUITE_COLUMNS], report.suite_rows(evaluation))
    origins = [
        f"- {name}: {one.origin['source']}, {one.origin['items']} of {one.origin['of']} items, "
        f"{one.origin['digest']}, judged by {one.origin['verifier']}"
        for name, one in evaluation.suites.items()
    ]
    parts = [
        f"# {run['name']}: {run['model']}",
        f"Engine {run['engine']}, seed {run['seed']}. {_NOTE[0].upper()}{_NOTE[1:]}.",
        "\n".join(rows),
        "\n".join(f"- {line}" for line in said_of(outcome)),
        "## Suites",
        "\n".join(origins),
    ]
    return "\n\n".join(part for part in parts if part)
