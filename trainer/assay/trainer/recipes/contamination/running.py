"""An audit of contamination: a model loaded, rows answered, scores compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console

from assay.cli.commands.work import tell_resume
from assay.cli.scoring.partial import PartialFile
from assay.cli.scoring.rows import dump
from assay.kit.console import make_console
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.kit.runs.folders import RunPaths
from assay.kit.runs.progress import Display
from assay.trainer.engines.models import load_policy
from assay.trainer.engines.requirements import check_installed
from assay.trainer.recipes.contamination.answering import (
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
    json_file: Path | None = None,
) -> ContaminationReport:
    """Audits the rows of `data`; see `assay contamination`.

    With `json_file` an interrupted audit goes on behind the rows that it answered.

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
    console = make_console(stderr=True)
    display = Display(console)
    origin = {
        "model": config.model.name,
        "data": [str(data), digest],
        "against": [str(against), clean_digest] if against else None,
        "max_new_tokens": max_new_tokens,
        "samples": samples,
        "engine": engine,
        "seed": config.run.seed,
    }
    made_from = {**origin, "recall": recall, "rows": most, "settings": list(overrides)}
    found: list[ScoredRow] = []
    count = len(rows) + len(clean)
    with _kept(json_file, made_from, found, count, console) as (keep, finish):

        def take(row: SuspectRow, answers: RowAnswers) -> None:
            keep(ScoredRow(row.id, row.member, {n: one(answers) for n, one in SCORES.items()}))

        if len(found) < count:
            policy = load_policy(config.model, display.note)
            with respondent(config, policy, max_new_tokens) as one:
                for some, before, what in ((rows, 0, "suspect"), (clean, len(rows), "clean")):
                    done = len(found) - before
                    if done >= len(some):
                        continue
                    display.begin(f"{what} rows", len(some), done)
                    try:
                        answered_rows(
                            one,
                            some,
                            done=done,
                            display=display,
                            at_once=config.eval.batch_size,
                            perturbed=recall,
                            samples=samples,
                            keep=take,
                        )
                    finally:
                        display.end()
        report = ContaminationReport(found[: len(rows)], found[len(rows) :], by, origin)
        finish(report)
    return report


@contextmanager
def _kept(
    path: Path | None,
    made_from: Mapping[str, Any],
    found: list[ScoredRow],
    count: int,
    console: Console,
) -> Iterator[tuple[Callable[[ScoredRow], None], Callable[[ContaminationReport], None]]]:
    """Puts into `found` what an interrupted audit left.

    Yields what adds to both, and what ends the file with the report in its place.
    """
    if path is None:
        yield found.append, lambda _report: None
        return

    def left(line: dict[str, Any]) -> None:
        found.append(ScoredRow(line["id"], line["member"], line["scores"]))

    with PartialFile(path, made_from, left) as file:
        tell_resume(file, count, console)

        def keep(row: ScoredRow) -> None:
            found.append(row)
            file.write(dump({"id": row.id, "member": row.member, "scores": dict(row.scores)}))
            file.flush()

        def finish(report: ContaminationReport) -> None:
            text = json.dumps(report.to_json(), indent=2) + "\n"

            def pack(_lines: BinaryIO, packed: Path) -> list[str]:
                packed.write_text(text, encoding="utf-8")
                return []

            file.finish(pack=pack)

        try:
            yield keep, finish
        except KeyboardInterrupt:
            kept = f"interrupted: {len(found)} of {count} rows are kept in {file.partial}"
            console.print(f"{kept}; run the same command again to go on", highlight=False)
            raise


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
        return configs.load_run(run, [f"rollout.backend={engine}", *overrides])
    tree: dict[str, Any] = {"model": {"name": model}, "rollout": {"backend": engine}}
    return configs.build(tree, overrides, origin="assay contamination")
