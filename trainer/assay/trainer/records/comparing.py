"""Two runs on the same items: paired changes with intervals, as data, a table and a page. Pure.

Items are the unit: each figure of an item is one number in [0, 1], and what changes is paired item
by item (`records.report.compare`). One answer an item has McNemar's exact test and the interval of
Agresti and Min (2005); several have sign flips over items (Fisher 1935) and its analogue
(`core.estimates`). The p values of several suites are also given after Holm (1979).

Items are the same where id, question and reference are. Those of one run alone are never dropped
unseen: they are an error, or with `common` said beside the figures, as suites of one run are.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from rich.table import Table

from assay.kit.errors import ConfigError
from assay.kit.page import page
from assay.kit.runs.stats import holm
from assay.trainer.core.evaluation import Answer, Evaluation
from assay.trainer.records import report
from assay.trainer.settings.overrides import flat

HELD_OUT = "held-out"
"""The name of a run's own held-out prompts among its suites."""
_SETTINGS = ("eval.", "rollout.max_new_tokens", "rollout.backend", "model.name", "run.seed")
_NOT_COMPARED = ("eval.show", "eval.every", "eval.batch_size", "eval.prompts", "eval.suites")
_ORIGIN = ("verifier", "parameters", "template", "digest")
_SHOWN_IDS = 20


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """A run's last evaluation, or the one that was named.

    Attributes:
        name: as the command line names it.
        suites: by name, its held-out prompts among them.
        settings: that bear on the figures, dotted.
    """

    name: str
    suites: Mapping[str, Evaluation]
    settings: Mapping[str, Any]


def read_run(name: str) -> EvaluatedRun:
    """Reads RUN, a folder, or RUN/eval_before.json, one of its evaluations.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """
    path = Path(name)
    file = path / "eval_after.json" if path.is_dir() else path
    try:
        evaluation = Evaluation.from_json(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ConfigError(
            f"{name}: there is no evaluation {file}; a run has one at its end, and `assay eval` "
            "makes one"
        ) from None
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise ConfigError(f"{file} is no evaluation of a run: {error}") from error
    own = {HELD_OUT: replace(evaluation, suites={})} if evaluation.answers else {}
    config = file.parent / "config.toml"
    settings = flat(tomllib.loads(config.read_text(encoding="utf-8"))) if config.is_file() else {}
    return EvaluatedRun(name, {**own, **evaluation.suites}, settings)


@dataclass(frozen=True, slots=True)
class SuitePair:
    """One suite of both runs.

    Attributes:
        told: of the items of both; see `report.compare`.
        only: ids of items of the one run alone.
        changed: ids whose question or reference is another.
        items: of both.
    """

    name: str
    told: Mapping[str, Any]
    only: tuple[Sequence[str], Sequence[str]]
    changed: Sequence[str]
    items: int

    @property
    def differs(self) -> str:
        """How the items differ; empty where they do not."""
        parts = [
            f"{len(ids)} of the {which} alone ({_listed(ids)})"
            for which, ids in zip(("first", "second"), self.only, strict=True)
            if ids
        ]
        if self.changed:
            parts.append(f"{len(self.changed)} with another text ({_listed(self.changed)})")
        return f"{self.name}: {self.items} items of both, {', '.join(parts)}" if parts else ""


def _listed(ids: Sequence[str]) -> str:
    more = f", and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
    return ", ".join(ids[:_SHOWN_IDS]) + more


@dataclass(frozen=True, slots=True)
class RunPair:
    """Two runs compared, the second against the first.

    Attributes:
        names: of both.
        suites: those of both.
        alone: suites of one run alone, of the first and of the second.
        settings: that differ, as (key, first, second).
    """

    names: tuple[str, str]
    suites: Sequence[SuitePair]
    alone: tuple[Sequence[str], Sequence[str]]
    settings: Sequence[tuple[str, Any, Any]]

    @property
    def differences(self) -> list[str]:
        """What the runs do not have in common: suites, and items of suites."""
        said = [
            f"{', '.join(names)}: suites of {run} alone"
            for run, names in zip(self.names, self.alone, strict=True)
            if names
        ]
        return said + [one.differs for one in self.suites if one.differs]

    @property
    def worse(self) -> list[str]:
        """Figures of the second run that are below, by their whole interval."""
        return [
            f"{one.name} {name}"
            for one in self.suites
            for name, _, _, change in _figures(one)
            if change is not None and change["high"] < 0
        ]

    def to_json(self) -> dict[str, Any]:
        """As data: `suites` by name, each with `figures` of both runs and their change."""
        adjusted = self._adjusted()
        return {
            "runs": list(self.names),
            "settings": [{"key": key, "a": a, "b": b} for key, a, b in self.settings],
            "suites_of_one": [list(names) for names in self.alone],
            "worse": self.worse,
            "suites": {
                one.name: {
                    "items": one.items,
                    "only_a": list(one.only[0]),
                    "only_b": list(one.only[1]),
                    "changed": list(one.changed),
                    "samples": [one.told[side]["samples"] for side in _SIDES],
                    "faults": [one.told[side]["faults"] for side in _SIDES],
                    "unjudged": [one.told[side]["unjudged"] for side in _SIDES],
                    "gained": one.told["change"]["gained"],
                    "lost": one.told["change"]["lost"],
                    "pairs": one.told["change"]["pairs"],
                    "p": one.told["change"]["p"],
                    "p_holm": adjusted[one.name],
                    "test": one.told["change"]["test"],
                    "figures": {
                        name: {"a": dict(a), "b": dict(b), "change": change and dict(change)}
                        for name, a, b, change in _figures(one)
                    },
                }
                for one in self.suites
            },
        }

    def _adjusted(self) -> dict[str, float]:
        names = [one.name for one in self.suites]
        return dict(zip(names, holm([one.told["change"]["p"] for one in self.suites]), strict=True))

    def rows(self) -> list[tuple[str, ...]]:
        """Cells of a table, a figure each; see COLUMNS."""
        adjusted = self._adjusted()
        rows: list[tuple[str, ...]] = []
        for one in self.suites:
            change = one.told["change"]
            faults = " / ".join(str(one.told[side]["faults"]) for side in _SIDES)
            tail = (
                f"+{change['gained']} -{change['lost']}",
                f"{change['p']:.3g} ({change['test']}), Holm {adjusted[one.name]:.3g}",
                faults,
            )
            for n, (name, a, b, moved) in enumerate(_figures(one)):
                points = (
                    report.points(moved["value"], moved["low"], moved["high"]) if moved else "-"
                )
                pairs = str(moved["pairs"]) if moved else "-"
                cells = (name, report.interval(a, "value"), report.interval(b, "value"), points)
                rows.append(
                    (one.name if not n else "", *cells, pairs, *(tail if not n else ("", "", "")))
                )
        return rows

    def table(self) -> Table:
        """For a terminal; `lines` has the rest."""
        title = f"{self.names[1]} against {self.names[0]}"
        return report.grid(title, COLUMNS[:4], [row[:5] for row in self.rows()], NOTE)

    @property
    def lines(self) -> list[str]:
        """What a table has no room for: tests, faults, and what the runs do not have in common."""
        adjusted = self._adjusted()
        told = [
            f"{one.name}: {report.change_line(one.told)} (Holm {adjusted[one.name]:.3g}); faults "
            f"{one.told['before']['faults']} and {one.told['after']['faults']}"
            for one in self.suites
        ]
        told += [f"left out: {line}" for line in self.differences]
        return told + [f"set differently: {key}: {a!r} and {b!r}" for key, a, b in self.settings]


_SIDES = ("before", "after")
COLUMNS = ("figure", "first", "second", "change, points", "items", "gained, lost", "p", "faults")
NOTE = (
    "95 % intervals over items in brackets; the change is of items judged in both runs; faults are "
    "in no figure"
)
_Shown = tuple[str, Mapping[str, Any], Mapping[str, Any], Mapping[str, Any] | None]


def _figures(one: SuitePair) -> Iterator[_Shown]:
    """Figures that both runs have, with their change."""
    before, after = (dict(report.figures(one.told[side])) for side in _SIDES)
    change = one.told["change"]
    moved = {
        f"{kind}@{n}": found
        for kind in ("pass", "best")
        for n, found in change[f"{kind}_at"].items()
    }
    first = {key: change[f"accuracy{end}"] for key, end in report.ENDS}
    for name in after:
        if name in before:
            own = (
                {**first, "pairs": change["pairs"]}
                if name.startswith(("accuracy", "avg"))
                else None
            )
            own = change["maj"] if name.startswith("maj") else own or moved.get(name)
            yield name, before[name], after[name], own
    (a_name, a), (b_name, b) = (next(iter(side.items())) for side in (before, after))
    if a_name != b_name:  # another number of samples: the share of correct ones is the same figure
        yield f"{a_name} / {b_name}", a, b, {**first, "pairs": change["pairs"]}


def compare_runs(first: EvaluatedRun, second: EvaluatedRun, *, common: bool = False) -> RunPair:
    """Compares the suites of both.

    Raises:
        ConfigError: they have no suite in common, or, without `common`, differ in their items.
    """
    both = [name for name in first.suites if name in second.suites]
    if not both:
        told = " and ".join(f"{one.name} has {', '.join(one.suites)}" for one in (first, second))
        raise ConfigError(f"the runs have no suite in common: {told}")
    found = RunPair(
        (first.name, second.name),
        [_pair(name, first.suites[name], second.suites[name]) for name in both],
        (
            [name for name in first.suites if name not in second.suites],
            [name for name in second.suites if name not in first.suites],
        ),
        [
            *_differing(first.settings, second.settings),
            *(
                (f"{name}: {key}", then.get(key), now.get(key))
                for name in both
                for then, now in [(first.suites[name].origin, second.suites[name].origin)]
                for key in _ORIGIN
                if then.get(key) != now.get(key)
            ),
        ],
    )
    differs = [one.differs for one in found.suites if one.differs]
    if differs and not common:
        raise ConfigError(
            f"the runs have other items: {'; '.join(differs)}; evaluate both on the same, or "
            "compare what they have in common with --common"
        )
    return found


def _pair(name: str, first: Evaluation, second: Evaluation) -> SuitePair:
    sides = [_by_item(one) for one in (first, second)]
    both = [id_ for id_ in sides[0] if id_ in sides[1]]
    changed = [id_ for id_ in both if _text(sides[0][id_][0]) != _text(sides[1][id_][0])]
    same = set(both).difference(changed)
    kept = [
        replace(one, answers=tuple(a for a in one.answers if a.problem in same))
        for one in (first, second)
    ]
    only = tuple([id_ for id_ in side if id_ not in other] for side, other in (sides, sides[::-1]))
    return SuitePair(name, report.compare(*kept), (only[0], only[1]), changed, len(same))


def _by_item(evaluation: Evaluation) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for answer in evaluation.answers:
        found.setdefault(answer.problem, []).append(answer)
    return found


def _text(answer: Answer) -> tuple[str, tuple[str, ...]]:
    reference = answer.reference
    return answer.question, (reference,) if isinstance(reference, str) else tuple(reference)


def _differing(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    for key in sorted({*first, *second}):
        counts = key.startswith(_SETTINGS) and not key.startswith(_NOT_COMPARED)
        if counts and first.get(key) != second.get(key):
            yield key, first.get(key), second.get(key)


def html_page(pair: RunPair) -> str:
    """One page that needs nothing beside it: no script, every text escaped."""
    return page(f"{pair.names[1]} against {pair.names[0]}", "assay compare", _parts(pair))


def _parts(pair: RunPair) -> Iterator[str]:
    for line in pair.differences:
        yield f'<p class="warn">{escape(line)}</p>'
    yield f'<p class="soft">First: {escape(pair.names[0])}. Second: {escape(pair.names[1])}. '
    yield f"{escape(NOTE)}.</p>"
    yield '<div class="wide"><table><thead><tr><th>suite</th>'
    yield "".join(f'<th class="{"n" if n else ""}">{c}</th>' for n, c in enumerate(COLUMNS))
    yield "</tr></thead><tbody>"
    below = set(pair.worse)
    suite = ""
    for row in pair.rows():
        suite = row[0] or suite
        tone = "fail" if f"{suite} {row[1]}" in below else ""
        cells = "".join(
            f'<td class="{"n" if n > 1 else ""}">{escape(c)}</td>' for n, c in enumerate(row)
        )
        yield f'<tr class="{tone}">{cells}</tr>'
    yield "</tbody></table></div>"
    for one in pair.suites:
        for side, which in zip(_SIDES, ("first", "second"), strict=True):
            if lost := one.told[side]["unjudged"]:
                told = f"{one.name}: without any judgement in the {which} run: {_listed(lost)}"
                yield f'<p class="warn">{escape(told)}</p>'
    if pair.settings:
        yield "<h2>Set differently</h2><div class='wide'><table><tbody>"
        for key, a, b in pair.settings:
            cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in (key, a, b))
            yield f"<tr>{cells}</tr>"
        yield "</tbody></table></div>"
