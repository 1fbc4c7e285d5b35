"""Items of a filter, a page at a time, in any order; one item; those around it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from assay.viewer.index import narrow
from assay.viewer.index.schema import PLACE_BITS
from assay.viewer.queries.filters import Asking, BadQuery, KindRow, identity_of

SORTS = {
    "time": "time_s",
    "step": "step",
    "reward": "reward",
    "length": "length",
    "seconds": "seconds",
    "advantage": "advantage",
    "sample": "sample",
}
_COLUMNS = (
    "items.number, kind, step, time_s, reward, length, draw, sample, names.text, turns, calls, "
    "trained, advantage, seconds, response, answer, prompt, texts.labels"
)
_FROM = "items LEFT JOIN texts ON texts.number = items.number LEFT JOIN names ON names.id = problem"
MOST = 500


def page(asking: Asking, sort: str, after: str, limit: int) -> dict[str, Any]:
    """A page of items; without a value in the column that it is sorted by they come last.

    Raises:
        BadQuery: no such order, or no cursor of ours.
    """
    falling, name = sort.startswith("-"), sort.removeprefix("-")
    if name not in SORTS:
        raise BadQuery(f"sort={sort[:40]!r} is none of {', '.join(SORTS)}, with - before it or not")
    limit = max(1, min(limit, MOST))
    last = "-9e999" if falling else "9e999"
    column = f"coalesce({SORTS[name]}, {last})"
    where, values = asking.where()
    if name == "time" and where == "1":
        column = SORTS[name] if _all_timed(asking) else column
    terms = [where]
    if after:
        value, number = _cursor(after)
        sign = "<" if falling else ">"
        bound = last if value is None else "?"
        terms.append(f"({column}, number) {sign} ({bound}, ?)")
        values += [number] if value is None else [value, number]
    order = "DESC" if falling else "ASC"
    numbers = asking.database.execute(
        f"SELECT number, {SORTS[name]} FROM items WHERE {' AND '.join(terms)} "  # noqa: S608
        f"ORDER BY {column} {order}, number {order} LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    more = None
    if len(numbers) > limit:
        numbers = numbers[:limit]
        number, value = numbers[-1]
        more = f"{'none' if value is None else repr(value)}~{number}"
    found = rows_of(asking, [number for number, _ in numbers])
    return {"total": sum(asking.counts().values()), "more": more, "items": found}


def _all_timed(asking: Asking) -> bool:
    query = "SELECT 1 FROM items WHERE time_s IS NULL LIMIT 1"
    return asking.database.execute(query).fetchone() is None


def _cursor(text: str) -> tuple[float | int | None, int]:
    value, _, number = text.partition("~")
    try:
        if value == "none":
            return None, int(number)
        return (int(value) if value.lstrip("-").isdecimal() else float(value)), int(number)
    except ValueError:
        raise BadQuery(f"after={text[:40]!r} is no cursor of a page; leave it out") from None


def rows_of(asking: Asking, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Index rows as plain data, in the order of their numbers here."""
    if not numbers:
        return []
    marks = ", ".join(map(str, numbers))
    rows = asking.database.execute(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE items.number IN ({marks})"  # noqa: S608
    ).fetchall()
    found = {
        row[0]: _row(row, asking.kinds[row[1]], asking.slugs)
        for row in rows
        if row[1] in asking.kinds
    }
    return [found[number] for number in numbers if number in found]


def _row(row: tuple[Any, ...], kind: KindRow, slugs: Mapping[int, str]) -> dict[str, Any]:
    names = (
        "step", "time_s", "reward", "length", "draw", "sample", "problem", "turns", "calls",
        "trained", "advantage", "seconds", "preview", "answer", "prompt",
    )  # fmt: skip
    told = dict(zip(names, row[2:-1], strict=True))
    try:
        labels = narrow.mapping(json.loads(row[-1] or "{}"))
    except (ValueError, RecursionError):
        labels = {}
    return {
        "id": identity_of(row[0], slugs),
        "source": kind.source,
        "phase": kind.phase,
        **told,
        "verifier": kind.verifier,
        "version": kind.version,
        "verdict": kind.verdict or None,
        "fault": kind.fault or None,
        "suspicions": list(kind.suspicions),
        "appeal": kind.appeal or None,
        "environment": kind.environment or None,
        "ending": kind.ending or None,
        "truncated": kind.truncated == "1",
        "labels": dict(labels),
    }


def around(asking: Asking, number: int) -> dict[str, Any]:
    """The items before and after one in its source, and those of its group."""
    low, high = (number >> PLACE_BITS) << PLACE_BITS, ((number >> PLACE_BITS) + 1) << PLACE_BITS
    previous, following = (
        asking.database.execute(
            f"SELECT {end}(number) FROM items WHERE number >= ? AND number < ?",  # noqa: S608
            bounds,
        ).fetchone()[0]
        for end, bounds in (("max", (low, number)), ("min", (number + 1, high)))
    )
    row = asking.database.execute(
        "SELECT step, draw, problem, phase, items.kind FROM items JOIN kinds ON kinds.id = kind "
        "WHERE number = ?",
        (number,),
    ).fetchone()
    group: list[int] = []
    if row is not None and (row[1] is not None or row[2] is not None):
        by = "draw" if row[1] is not None else "problem"
        kinds = [
            one for one, kind in asking.kinds.items()
            if kind.source == asking.slugs[number >> PLACE_BITS] and kind.phase == row[3]
        ]  # fmt: skip
        group = [
            one
            for (one,) in asking.database.execute(
                f"SELECT number FROM items WHERE kind IN ({', '.join(map(str, kinds))}) "  # noqa: S608
                f"AND step IS ? AND {by} = ? ORDER BY sample, number LIMIT {MOST}",
                (row[0], row[1] if by == "draw" else row[2]),
            )
        ]
    return {
        "previous": None if previous is None else identity_of(previous, asking.slugs),
        "next": None if following is None else identity_of(following, asking.slugs),
        "group": [identity_of(one, asking.slugs) for one in group],
    }
