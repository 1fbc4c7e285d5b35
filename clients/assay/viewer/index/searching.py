"""Finds texts in the sources themselves, a piece at a time, and keeps which items hold them.

What was searched of a source is a stretch of numbers below its newest item; what comes later is
looked at when it is there.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.kit.runs.rollouts import FOLDER, path_for
from assay.viewer.index import copying
from assay.viewer.index.lines import lines_of
from assay.viewer.index.schema import open_index, place_parts, source_range
from assay.viewer.journals.reader import Filter
from assay.viewer.sources import JOURNAL, ViewedSource

MOST_KEPT = 8
_ENTRIES = 20_000
_ROWS = 2_000


def wanted(path: Path, what: str) -> int:
    """The number of a search, which is begun where there is none; the oldest of many goes."""
    with contextlib.closing(open_index(path)) as database:
        database.execute("BEGIN IMMEDIATE")
        database.execute(
            "INSERT INTO searches (what, used_s) VALUES (?, ?) "
            "ON CONFLICT DO UPDATE SET used_s = excluded.used_s",
            (what, time.time()),
        )
        found = database.execute("SELECT id FROM searches WHERE what = ?", (what,)).fetchone()[0]
        for (old,) in database.execute(
            f"SELECT id FROM searches ORDER BY used_s DESC, id LIMIT -1 OFFSET {MOST_KEPT}"  # noqa: S608
        ).fetchall():
            for table, column in (("hits", "search"), ("searched", "search"), ("searches", "id")):
                database.execute(f"DELETE FROM {table} WHERE {column} = ?", (old,))  # noqa: S608
        database.execute("COMMIT")
    return int(found)


def progress(database: sqlite3.Connection, search: int, slugs: Mapping[int, str]) -> float:
    """The share of the items of sources that was looked at."""
    seen = total = 0
    for number in slugs:
        bounds = source_range(number)
        total += _count(database, *bounds)
        for low, high in database.execute(
            "SELECT low, high FROM searched WHERE search = ? AND source = ?", (search, number)
        ).fetchall():
            seen += _count(database, low, high)
    return 1.0 if total == 0 else min(1.0, seen / total)


def _count(database: sqlite3.Connection, low: int, high: int) -> int:
    query = "SELECT count(*) FROM items WHERE number >= ? AND number < ?"
    return int(database.execute(query, (low, high)).fetchone()[0])


def piece(database: sqlite3.Connection, sources: Mapping[int, ViewedSource]) -> bool:
    """Looks through some items for the newest search that is not through; whether there is one."""
    searches = database.execute("SELECT id, what FROM searches ORDER BY used_s DESC").fetchall()
    for search, what in searches:
        for number, source in sources.items():
            stretch = _next(database, search, number, _ENTRIES if source.kind == JOURNAL else _ROWS)
            if stretch is not None:
                text, request, item = json.loads(what)
                hits = _hits(database, source, number, stretch, Filter(
                    text=text, request_id=request, item_id=item,
                ))  # fmt: skip
                _keep(database, search, number, stretch, hits)
                return True
    return False


def _next(
    database: sqlite3.Connection, search: int, number: int, most: int
) -> tuple[int, int] | None:
    """The newest numbers that were not looked at, the last one excluded."""
    low, high = source_range(number)
    seen = database.execute(
        "SELECT low, high FROM searched WHERE search = ? AND source = ? ORDER BY high DESC",
        (search, number),
    ).fetchall()
    for begin, end in [*seen, (low, low)]:
        found = database.execute(
            "SELECT min(number), max(number) FROM (SELECT number FROM items WHERE number >= ? "
            "AND number < ? ORDER BY number DESC LIMIT ?)",
            (max(low, end), high, most),
        ).fetchone()
        if found[0] is not None:
            return found[0], found[1] + 1
        high = begin
    return None


def _hits(
    database: sqlite3.Connection,
    source: ViewedSource,
    number: int,
    stretch: tuple[int, int],
    chosen: Filter,
) -> list[int]:
    first, _ = source_range(number)
    low, high = stretch[0] - first, stretch[1] - first
    if source.kind == JOURNAL:
        where, values = chosen.where()
        try:
            with copying.attached(database, source.path):
                database.execute("DROP VIEW IF EXISTS temp.entries")
                database.execute("CREATE TEMP VIEW entries AS SELECT * FROM journal.entries")
                rows = database.execute(
                    f"SELECT id FROM temp.entries WHERE id >= ? AND id < ? AND ({where})",  # noqa: S608
                    (low, high, *values),
                ).fetchall()
                database.execute("DROP VIEW temp.entries")
        except sqlite3.Error:
            return []
        return [first | row[0] for row in rows]
    if chosen.request_id or chosen.item_id:
        return []
    return _in_rollouts(database, source, first, stretch, chosen.text)


def _in_rollouts(
    database: sqlite3.Connection,
    source: ViewedSource,
    first: int,
    stretch: tuple[int, int],
    text: str,
) -> list[int]:
    query = "SELECT number FROM items WHERE number >= ? AND number < ? ORDER BY number DESC"
    files: dict[Path, dict[int, int]] = {}
    for (number,) in database.execute(query, stretch).fetchall():
        step, phase, process, line = place_parts(number - first)
        path = path_for(source.path / FOLDER, step, phase, process)
        files.setdefault(path, {})[line] = number
    needle = lowered(text)
    return [
        those[line]
        for path, those in files.items()
        for line, row in lines_of(path)
        if line in those and holds(row, needle)
    ]


def lowered(text: str) -> str:
    """With ASCII's capitals as small letters, as SQLite's LIKE compares."""
    return "".join(chr(ord(one) + 32) if "A" <= one <= "Z" else one for one in text)


def holds(row: Any, needle: str) -> bool:
    """Whether a text of a rollout's row holds a needle, which is lowered."""
    return any(needle in lowered(one) for one in _texts(row, 12))


def _texts(value: Any, levels: int) -> list[str]:
    if isinstance(value, str):
        return [value.encode("utf-8", "replace").decode()]
    if not levels:
        return []
    parts: list[Any] = []
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, list) and value and not isinstance(value[0], int | float):
        parts = value
    return [one for part in parts for one in _texts(part, levels - 1)]


def _keep(
    database: sqlite3.Connection,
    search: int,
    number: int,
    stretch: tuple[int, int],
    hits: list[int],
) -> None:
    low, high = stretch
    database.execute("BEGIN IMMEDIATE")
    database.executemany(
        "INSERT OR IGNORE INTO hits VALUES (?, ?)", [(search, one) for one in hits]
    )
    # stretches between which there is no item are one
    for begin, end in database.execute(
        "SELECT low, high FROM searched WHERE search = ? AND source = ?", (search, number)
    ).fetchall():
        gap = (min(end, high), max(begin, low))
        if _count(database, *gap) == 0:
            database.execute(
                "DELETE FROM searched WHERE search = ? AND source = ? AND low = ?",
                (search, number, begin),
            )
            low, high = min(low, begin), max(high, end)
    database.execute(
        "INSERT OR REPLACE INTO searched VALUES (?, ?, ?, ?)", (search, number, low, high)
    )
    database.execute("UPDATE changes SET version = version + 1")
    database.execute("COMMIT")
