"""What items of one kind, step and minute add up to: most questions need no more."""

from __future__ import annotations

import sqlite3

from assay.viewer.index.schema import NO_STEP, SLOT_S

_MEASURES = (
    ("items", "count(*)"),
    ("judged", "count(reward)"),
    ("rewards", "total(reward)"),
    ("lengths", "coalesce(sum(length), 0)"),
    ("measured", "count(length)"),
    ("trained", "total(trained)"),
    ("learnt", "count(trained)"),
    ("seconds", "total(seconds)"),
    ("timed", "count(seconds)"),
)
_BOUNDS = tuple(
    (f"{column.removesuffix('_s')}_{end}", f"{end}({column})", end)
    for column in ("time_s", "reward", "length")
    for end in ("min", "max")
)
SLOT = f"coalesce(CAST(time_s / {SLOT_S} AS INTEGER), 0)"
STEP = f"coalesce(step, {NO_STEP})"
BARS = {
    "reward": "round(reward, 4)",
    "length": "CASE WHEN length < 1024 THEN length WHEN length < 16384 THEN length / 16 * 16"
    " ELSE length / 256 * 256 END",
}
"""The values that histograms count."""


def _cells(sign: str) -> str:
    names = ", ".join([name for name, _ in _MEASURES] + [name for name, _, _ in _BOUNDS])
    values = ", ".join([value for _, value in _MEASURES] + [value for _, value, _ in _BOUNDS])
    sums = [f"{name} = {name} {sign} excluded.{name}" for name, _ in _MEASURES]
    sums += [
        f"{name} = coalesce({end}({name}, excluded.{name}), {name}, excluded.{name})"
        for name, _, end in _BOUNDS
    ]
    return (
        f"INSERT INTO cells (kind, step, slot, {names}) "  # noqa: S608 - names of ours only
        f"SELECT kind, {STEP}, {SLOT}, {values} FROM items WHERE number >= ? AND number < ? "
        f"GROUP BY 1, 2, 3 ON CONFLICT DO UPDATE SET {', '.join(sums)}"
    )


def _bars(measure: str, sign: str) -> str:
    return (
        "INSERT INTO bars (kind, measure, value, items) "  # noqa: S608 - names of ours only
        f"SELECT kind, '{measure}', {BARS[measure]}, count(*) FROM items "
        f"WHERE number >= ? AND number < ? AND {measure} IS NOT NULL GROUP BY 1, 3 "
        f"ON CONFLICT DO UPDATE SET items = items {sign} excluded.items"
    )


def add(database: sqlite3.Connection, low: int, high: int) -> None:
    """Counts items by number, `high` excluded, which were not counted before."""
    database.execute(_cells("+"), (low, high))
    for measure in BARS:
        database.execute(_bars(measure, "+"), (low, high))


def remove(database: sqlite3.Connection, low: int, high: int) -> None:
    """Removes items by number, `high` excluded, and what they added."""
    if database.execute(
        "SELECT 1 FROM items WHERE number >= ? AND number < ? LIMIT 1", (low, high)
    ).fetchone():
        database.execute(_cells("-"), (low, high))
        for measure in BARS:
            database.execute(_bars(measure, "-"), (low, high))
        database.execute("DELETE FROM cells WHERE items <= 0")
        database.execute("DELETE FROM bars WHERE items <= 0")
        for table in ("items", "texts", "hits"):
            database.execute(
                f"DELETE FROM {table} WHERE number >= ? AND number < ?",  # noqa: S608
                (low, high),
            )
