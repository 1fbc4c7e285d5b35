"""What there is to filter by: values of each facet, counted under all other filters; bounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from assay.viewer.queries.filters import FACETS, Asking

_MOST = 200
_PROBLEMS = 50
PROBLEMS_OVER = 100_000
"""Newest items whose problems are counted."""
_NAMES = {
    "source": "sources", "phase": "phases", "verifier": "verifiers", "version": "versions",
    "verdict": "verdicts", "fault": "faults", "suspicion": "suspicions",
    "environment": "environments", "ending": "endings", "truncated": "truncated",
    "appeal": "appeals",
}  # fmt: skip


def facets(asking: Asking) -> dict[str, Any]:
    """Values with their items, the commonest first; a facet's own filter does not count for it."""
    counts = asking.counts(every_kind=True)
    told: dict[str, Any] = {}
    found: dict[str, Counter[str]] = {}
    for facet in FACETS:
        seen: Counter[str] = Counter()
        for number, kind in asking.admitted_but(facet).items():
            if items := counts.get(number, 0):
                for value in kind.values(facet):
                    seen[value] += items
        found[facet] = seen
    for facet, name in _NAMES.items():
        told[name] = _ordered(found[facet])
    labels: dict[str, list[list[Any]]] = {}
    for value, items in _ordered(found["label"]):
        name, _, text = value.partition("=")
        labels.setdefault(name, []).append([text, items])
    told["labels"] = labels
    told["labels_whole"] = all(kind.labels is not None for kind in asking.kinds.values())
    told["items"] = sum(counts.get(number, 0) for number in asking.admitted)
    told["judged"] = sum(
        counts.get(number, 0) for number, kind in asking.admitted.items() if kind.verdict
    )
    return {**told, **_bounds(asking), "problems": _problems(asking),
            "problems_over": PROBLEMS_OVER}  # fmt: skip


def _ordered(seen: Counter[str]) -> list[list[Any]]:
    return [[value, items] for value, items in
            sorted(seen.items(), key=lambda one: (-one[1], one[0]))[:_MOST]]  # fmt: skip


def _bounds(asking: Asking) -> dict[str, Any]:
    """Least and greatest step, time, reward and length of what the other filters admit."""
    where, values = asking.of_cells()
    row = asking.database.execute(
        "SELECT min(CASE WHEN step >= 0 THEN step END), max(CASE WHEN step >= 0 THEN step END), "  # noqa: S608
        "min(time_min), max(time_max), min(reward_min), max(reward_max), min(length_min), "
        f"max(length_max) FROM cells WHERE {where}",
        values,
    ).fetchone()
    pairs = zip(("steps", "time", "reward", "length"), range(0, 8, 2), strict=True)
    return {name: list(row[at : at + 2]) for name, at in pairs}


def _problems(asking: Asking) -> list[list[Any]]:
    """The commonest problems of the newest items, under all filters but that of problems."""
    other = replace(asking, asked=replace(asking.asked, problems=()))
    where, values = other.where()
    rows = asking.database.execute(
        f"SELECT problem, count(*) FROM (SELECT problem FROM {other.items_by_time} WHERE {where} "  # noqa: S608
        f"AND problem IS NOT NULL ORDER BY time_s DESC LIMIT {PROBLEMS_OVER}) "
        f"GROUP BY problem ORDER BY 2 DESC, 1 LIMIT {_PROBLEMS}",
        values,
    ).fetchall()
    names = dict(
        asking.database.execute(
            f"SELECT id, text FROM names WHERE id IN ({', '.join(str(row[0]) for row in rows)})"  # noqa: S608
        ).fetchall()
    )
    return [[names.get(number, ""), items] for number, items in rows]
