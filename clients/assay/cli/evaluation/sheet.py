"""The questions of a file, and whether a service can answer them. Pure."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.cli.evaluation.rows import BestBy, JudgeQuestion, Kind, kind_of_row, questions_of
from assay.clients.judging import JudgeServerInfo
from assay.clients.rows.items import RowError
from assay.clients.rows.preferences import Styles
from assay.clients.rows.published import RowFormat, as_plain, format_of
from assay.kit.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RowReading:
    """How rows become questions.

    Attributes:
        kind: None: by the first row.
        form: the benchmark whose rows they are; None: by the first row.
        styles: how responses in several styles are paired.
        with_truth: see `questions_of`.
        limit: how many rows, evenly spread over the file; 0 for all.
        skip_bad: rows that make no question are left out and counted.
        best_by: how several responses are asked about.
    """

    kind: Kind | None = None
    form: RowFormat | None = None
    styles: Styles = "same"
    with_truth: bool | None = None
    limit: int = 0
    skip_bad: bool = False
    best_by: BestBy = "ratings"


@dataclass(frozen=True, slots=True)
class Sheet:
    """The questions of a file, in the rows' order.

    Attributes:
        skipped: rows that were left out, by reason.
        sha256: of the rows.
    """

    kind: Kind
    form: RowFormat
    reading: RowReading
    questions: list[JudgeQuestion]
    skipped: Counter[str]
    sha256: str


Rows = list[tuple[int, dict[str, Any]]]


def make_sheet(path: Path, rows: Rows, reading: RowReading) -> Sheet:
    """Makes the questions of a file's rows.

    Raises:
        ConfigError: there are no rows, or one makes no question; the text names file and line.
    """
    if not rows:
        raise ConfigError(f"{path} holds no rows; write one JSON object on each line")
    form = reading.form or format_of(rows[0][1])
    kind = reading.kind or _kind_of(rows[0][1], form)
    if 0 < reading.limit < len(rows):
        rows = [rows[i * len(rows) // reading.limit] for i in range(reading.limit)]
    questions: list[JudgeQuestion] = []
    skipped: Counter[str] = Counter()
    digest = hashlib.sha256()
    for line, row in rows:
        digest.update(json.dumps(row, sort_keys=True).encode())
        try:
            questions += questions_of(
                as_plain(row, form),
                line,
                kind,
                reading.styles,
                with_truth=reading.with_truth,
                best_by=reading.best_by,
            )
        except RowError as error:
            if not reading.skip_bad:
                remedy = "correct it, or leave such rows out with --skip-bad"
                raise ConfigError(f"{path}:{line}: {error}; {remedy}") from error
            skipped[str(error).partition(";")[0]] += 1
    if not questions:
        raise ConfigError(f"{path} holds no row that asks for {kind}: {next(iter(skipped))}")
    settled = dataclasses.replace(reading, kind=kind, form=form)
    return Sheet(kind, form, settled, questions, skipped, digest.hexdigest())


def _kind_of(row: dict[str, Any], form: RowFormat) -> Kind:
    """The kind that the first row asks for; a bad one is named when all are read."""
    try:
        return kind_of_row(as_plain(row, form))
    except RowError:
        return kind_of_row(row)


def check_names(info: JudgeServerInfo, kind: Kind, model: str, template: str) -> None:
    """Checks that the service has the model and the template.

    Raises:
        ConfigError: it has not.
    """
    served = info.process_models if kind == "steps" else info.models
    names = [one.name for one in served]
    if not names or (model and model not in names):
        what = "scores steps" if kind == "steps" else "judges"
        listed = ", ".join(names) or "none"
        raise ConfigError(f"no model {model!r} {what} at this service; it has: {listed}")
    known = [one.name for one in info.templates]
    if template and template not in (*known, *(name.partition("@")[0] for name in known)):
        raise ConfigError(
            f"no template is named {template!r}; this service has: {', '.join(known)}"
        )


def only_rates(info: JudgeServerInfo, model: str) -> bool:
    """Whether the judge is a scalar reward model, which reads one response at a time."""
    found = info.find(model)
    return found is not None and found.scoring_modes[:1] == ("scalar-head",)
