"""An audit of contamination: a model loaded, rows answered, scores compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.kit.console import make_console
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.kit.runs.folders import RunPaths
from assay.kit.runs.progress import Display
from assay.trainer.engines.models import load_policy
from assay.trainer.engines.requirements import check_installed
from assay.trainer.recipes.contamination.answering import (
    Respondent,
    SuspectRow,
    answered_rows,
    read_rows,
    respondent,
)
from assay.trainer.recipes.contamination.report import ContaminationReport, ScoredRow
from assay.trainer.recipes.contamination.scores import SCORES, RowAnswers
from assay.trainer.settings import config as configs


def audit_rows(
    model: str,
    overrides: Sequence[str],
    *,
    data: Path,
    against: Path | None,
    by: str,
    recall: bool,
    samples: int,
    max_new_tokens: int,
    most: int,
    engine: str,
) -> ContaminationReport:
    """Audits the rows of `data`; see `assay contamination`.

    Raises:
        ConfigError: the model or the rows cannot be used, or `by` is no score that is asked for.
    """
    _check_score(by, recall=recall, samples=samples)
    config = settings_of(model, overrides, engine)
    check_installed(config)
    rows, digest = read_rows(data, config)
    clean, clean_digest = read_rows(against, config) if against else ([], "")
    rows = rows[: most or None]
    asked = {row.problem.asked for row in rows}
    if shared := [row.id for row in clean if row.problem.asked in asked]:
        raise ConfigError(f"{against}: row {shared[0]} is among the suspect rows too; remove it")
    display = Display(make_console(stderr=True))
    policy = load_policy(config.model, display.note)
    with respondent(config, policy, max_new_tokens) as one:

        def scored(some: Sequence[SuspectRow], what: str) -> list[ScoredRow]:
            return _scored(one, some, what, display, config.eval.batch_size, recall, samples)

        found, known = scored(rows, "suspect rows"), scored(clean, "clean rows")
    origin = {
        "model": config.model.name,
        "data": [str(data), digest],
        "against": [str(against), clean_digest] if against else None,
        "max_new_tokens": max_new_tokens,
        "samples": samples,
        "engine": engine,
        "seed": config.run.seed,
    }
    return ContaminationReport(found, known, by, origin)


def _check_score(by: str, *, recall: bool, samples: int) -> None:
    if by not in SCORES:
        near = did_you_mean(by, SCORES)
        raise ConfigError(f"there is no score {by!r}{near}; there are: {', '.join(SCORES)}")
    needs = {"recall": ("--recall", recall), "cdd": ("--samples", samples)}
    if by in needs and not needs[by][1]:
        raise ConfigError(f"--by {by} needs {needs[by][0]}")


def settings_of(model: str, overrides: Sequence[str], engine: str) -> configs.Config:
    """Those of the run, if `model` is one; else of that model alone."""
    run = RunPaths(Path(model))
    if run.config.is_file():
        own = [f"model.name={run.model}"] if run.model.is_dir() else []
        return configs.load(run.config, [*own, f"rollout.backend={engine}", *overrides])
    tree: dict[str, Any] = {"model": {"name": model}, "rollout": {"backend": engine}}
    return configs.build(tree, overrides, origin="assay contamination")


def _scored(  # noqa: PLR0917  # what an audit is
    one: Respondent,
    rows: Sequence[SuspectRow],
    what: str,
    display: Display,
    at_once: int,
    recall: bool,
    samples: int,
) -> list[ScoredRow]:
    found: list[ScoredRow] = []

    def keep(row: SuspectRow, answers: RowAnswers) -> None:
        scores = {name: score(answers) for name, score in SCORES.items()}
        found.append(ScoredRow(row.id, row.member, scores))

    if not rows:
        return found
    display.begin(what, len(rows))
    try:
        answered_rows(
            one, rows, display, at_once=at_once, perturbed=recall, samples=samples, keep=keep
        )
    finally:
        display.end()
    return found
