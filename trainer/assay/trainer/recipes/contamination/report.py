"""What scores say of rows: against rows known to be clean, and against labels. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from assay.kit.runs.stats import auc, auc_interval
from assay.trainer.recipes.contamination.scores import SCORES

_HALF = 0.5
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row's scores, by name; None where one is not defined."""

    id: str
    member: bool | None
    scores: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Separation:
    """How far one score's suspicious rows are above the others.

    Attributes:
        area: the chance that one of the first scores above one of the second, ties half.
        interval: of it, 95 %.
        counts: of the first and of the second, those with a score.
    """

    area: float
    interval: tuple[float, float]
    counts: tuple[int, int]

    @property
    def above(self) -> bool:
        """Whether the first are above the second by the whole interval."""
        return self.interval[0] > _HALF

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"auc": self.area, "interval": list(self.interval), "counts": list(self.counts)}


def separation(first: Sequence[float | None], second: Sequence[float | None]) -> Separation | None:
    """Of scores, where each side has one; rows without a score are in neither."""
    marked = [(score, True) for score in first if score is not None]
    others = [(score, False) for score in second if score is not None]
    area, interval = auc(marked + others), auc_interval([[one] for one in marked + others])
    if area is None or interval is None:
        return None
    return Separation(area, interval, (len(marked), len(others)))


def chance_of(score: float, clean: Sequence[float]) -> float:
    """The share of clean rows that score as high, the row itself counted with them.

    A conformal p-value (Vovk, Gammerman and Shafer 2005): for a row that is exchangeable with
    `clean` it is at most x with a chance of at most x.
    """
    return (1 + sum(one >= score for one in clean)) / (1 + len(clean))


@dataclass(frozen=True, slots=True)
class ContaminationReport:
    """The outcome of an audit.

    Attributes:
        by: the score that decides.
        clean: rows that the model cannot have been trained on; empty for none.
        origin: model, files and settings.
    """

    rows: Sequence[ScoredRow]
    clean: Sequence[ScoredRow]
    by: str
    origin: Mapping[str, Any]

    @property
    def found(self) -> bool:
        """Whether the rows are above the clean ones, by the score that decides."""
        against = self.against(self.by)
        return against is not None and against.above

    def against(self, name: str) -> Separation | None:
        """The rows against the clean ones."""
        return separation(_column(self.rows, name), _column(self.clean, name))

    def labelled(self, name: str) -> Separation | None:
        """Rows that say that they are members against those that say that they are none."""
        members = [row for row in self.rows if row.member]
        others = [row for row in self.rows if row.member is False]
        return separation(_column(members, name), _column(others, name))

    def chances(self) -> list[float | None]:
        """Each row's `chance_of` by the score that decides; None without clean rows or score."""
        clean = [score for score in _column(self.clean, self.by) if score is not None]
        return [
            chance_of(score, clean) if clean and score is not None else None
            for score in _column(self.rows, self.by)
        ]

    @property
    def names(self) -> list[str]:
        """Scores that some row has."""
        return [n for n in SCORES if any(row.scores[n] is not None for row in self.rows)]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        methods = {
            name: {
                "against": made.to_json() if (made := self.against(name)) else None,
                "labels": told.to_json() if (told := self.labelled(name)) else None,
                "without": sum(row.scores[name] is None for row in self.rows),
            }
            for name in self.names
        }
        rows = [
            {"id": row.id, "member": row.member, "scores": dict(row.scores), "chance": chance}
            for row, chance in zip(self.rows, self.chances(), strict=True)
        ]
        clean = [{"id": row.id, "scores": dict(row.scores)} for row in self.clean]
        return {
            "contaminated": self.found if self.clean else None,
            "by": self.by,
            "origin": dict(self.origin),
            "methods": methods,
            "rows": rows,
            "clean": clean,
        }

    def table(self) -> Table:
        """Each score against the clean rows and against the labels."""
        table = Table()
        for column in ("score", "rows", "against clean rows", "members against others"):
            table.add_column(column, justify="left" if column == "score" else "right")
        for name in self.names:
            scores = _column(self.rows, name)
            table.add_row(
                name,
                str(sum(one is not None for one in scores)),
                _in_words(self.against(name)),
                _in_words(self.labelled(name)),
            )
        return table

    def lines(self, show: int) -> list[str]:
        """What is said beneath the table; `show` rows of the least chance."""
        ranked = sorted(
            (chance, row.id)
            for row, chance in zip(self.rows, self.chances(), strict=True)
            if chance is not None
        )
        said = ["figures are AUC with their 95 % interval; 0.5 tells nothing"]
        lost = sum(row.scores[self.by] is None for row in self.rows)
        if lost:
            said.append(f"{lost} rows have no {self.by}: an answer without any entropy")
        if not ranked:
            return [
                *said,
                "nothing is known of clean rows, so nothing is found: give some with --against",
            ]
        few = sum(chance <= LEVEL for chance, _ in ranked)
        said.append(
            f"{few} of {len(ranked)} rows score as only {LEVEL:.0%} of clean ones do; of clean "
            f"rows {LEVEL * len(ranked):.1f} would"
        )
        worst = ", ".join(f"{id_} ({chance:.3g})" for chance, id_ in ranked[:show])
        if worst:
            said.append(f"least like clean ones: {worst}")
        what = "contaminated: the rows score above" if self.found else "the rows do not score above"
        return [*said, f"{what} the clean ones by {self.by}"]


def _column(rows: Sequence[ScoredRow], name: str) -> list[float | None]:
    return [row.scores[name] for row in rows]


def _in_words(found: Separation | None) -> str:
    if found is None:
        return ""
    low, high = found.interval
    return f"{found.area:.3f} [{low:.3f}, {high:.3f}]"
