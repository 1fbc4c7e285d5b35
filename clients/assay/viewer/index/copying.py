"""Narrow rows of a journal's entries, made in SQL: the interpreter is free meanwhile."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from assay.viewer.index import sums
from assay.viewer.index.schema import PLACE_BITS, PREVIEW
from assay.viewer.sources import address

MOST_LABELS = 500
"""Sets of labels that a source's kinds tell apart; further ones are looked up item by item."""
_NAME = 200
_KIND = (
    "phase, verifier, version, verdict, fault, suspicions, environment, ending, truncated, labels, "
    "appeal"
)


def _text(column: str, most: int = _NAME) -> str:
    return f"replace(substr(CAST({column} AS TEXT), 1, {most}), char(0), char(65533))"


def _preview(column: str) -> str:
    flat = f"substr(CAST({column} AS TEXT), 1, {4 * PREVIEW})"
    for code in (0, 9, 10, 13):
        flat = f"replace({flat}, char({code}), ' ')"
    return f"substr(trim({flat}), 1, {PREVIEW})"


def _safe(column: str, empty: str) -> str:
    return f"CASE WHEN json_valid({column}) THEN {column} ELSE '{empty}' END"


def _last(column: str, part: int) -> str:
    """The text of the last message of a list."""
    return (
        f"CASE WHEN json_valid({column}) AND json_type({column}) = 'array' "
        f"THEN coalesce(json_extract({column}, '$[#-1][{part}]'), '') ELSE '' END"
    )


def _slice(form: int) -> str:
    labels = _safe("labels", "{}") if form > 1 else "'{}'"
    appeal = _safe("appeal", "{}") if form > 2 else "'{}'"
    step = "CAST(json_extract(l, '$.step') AS TEXT)"
    return f"""
    INSERT INTO temp.slice
    SELECT (:source << {PLACE_BITS}) | id,
        coalesce({_text("json_extract(l, '$.phase')")}, ''), {_text("verifier")},
        {_text("version")}, coalesce({_text("verdict")}, ''), coalesce({_text("fault")}, ''),
        coalesce({_safe("suspicions", "[]")}, '[]'), '', '', 0,
        json_remove(l, '$.step', '$.phase'),
        CASE json_extract({appeal}, '$.first.verdict') = json_extract({appeal}, '$.second.verdict')
            WHEN 1 THEN 'kept' WHEN 0 THEN 'changed' ELSE '' END,
        CASE WHEN {step} GLOB '[0-9]*' AND NOT {step} GLOB '*[^0-9]*' AND length({step}) < 10
            THEN CAST({step} AS INTEGER) END,
        CASE WHEN typeof(time_s) IN ('real', 'integer') THEN time_s END,
        CASE WHEN typeof(reward) IN ('real', 'integer') AND abs(reward) < 9e999 THEN reward END,
        CAST(response_chars AS INTEGER), nullif({_text("group_id")}, ''),
        CASE WHEN is_dialogue AND json_valid(response) AND json_type(response) = 'array'
            THEN json_array_length(response) ELSE 1 END,
        CASE WHEN typeof(execution_s) IN ('real', 'integer') THEN execution_s END,
        substr(item_key, 1, 8),
        coalesce(CASE WHEN is_dialogue THEN {_preview(_last("response", 1))}
            ELSE {_preview("response")} END, ''),
        {_preview("answer")}, coalesce({_preview(_last("prompt", 1))}, ''), l
    FROM (SELECT *, {labels} AS l FROM journal.entries WHERE id > :low AND id <= :high)
    """  # noqa: S608 - names of ours only


_TEMP = """
CREATE TEMP TABLE IF NOT EXISTS slice (
    number INTEGER PRIMARY KEY, phase TEXT, verifier TEXT, version TEXT, verdict TEXT, fault TEXT,
    suspicions TEXT, environment TEXT, ending TEXT, truncated INTEGER, labels TEXT, appeal TEXT,
    step INTEGER,
    time_s REAL, reward REAL, length INTEGER, problem TEXT, turns INTEGER, seconds REAL, item BLOB,
    response TEXT, answer TEXT, prompt TEXT, all_labels TEXT
)
"""


class JournalError(sqlite3.Error):
    """A journal, not the index, cannot be read."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """What fails within is the journal's fault.

    Raises:
        JournalError: in place of sqlite3.Error.
    """
    try:
        yield
    except sqlite3.Error as error:
        told = JournalError(str(error))
        told.sqlite_errorcode = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        raise told from error


@contextlib.contextmanager
def attached(database: sqlite3.Connection, path: Path) -> Iterator[int]:
    """The journal beside the index, as `journal`; gives its format.

    Raises:
        JournalError: it cannot be read.
    """
    with reading():
        database.execute("ATTACH ? AS journal", (address(path),))
    try:
        with reading():
            form = int(database.execute("PRAGMA journal.user_version").fetchone()[0])
        yield form
    finally:
        database.execute("DETACH journal")


def read(database: sqlite3.Connection, source: int, form: int, low: int, high: int) -> None:
    """Takes entries of the attached journal with ids above `low` up to `high`, for `copy`.

    Raises:
        JournalError: the journal cannot be read; nothing is taken.
    """
    database.execute(_TEMP)
    database.execute("DELETE FROM temp.slice")
    with reading():
        database.execute(_slice(form), {"source": source, "low": low, "high": high})


def copy(database: sqlite3.Connection, source: int, low: int, high: int) -> None:
    """Indexes the entries that `read` took; once. Within a transaction of the caller's.

    Raises:
        sqlite3.Error: the index cannot be written.
    """
    _bound_labels(database, source)
    database.execute(
        f"INSERT OR IGNORE INTO kinds (source, {_KIND}) SELECT DISTINCT ?, {_KIND} FROM temp.slice",  # noqa: S608
        (source,),
    )
    database.execute(
        "INSERT OR IGNORE INTO names (text) SELECT DISTINCT problem FROM temp.slice "
        "WHERE problem IS NOT NULL"
    )
    same = " AND ".join(f"k.{name} = s.{name}" for name in _KIND.split(", "))
    database.execute(
        "INSERT INTO items (number, kind, step, time_s, reward, length, problem, turns, calls, "  # noqa: S608
        "seconds, item) SELECT s.number, k.id, s.step, s.time_s, s.reward, s.length, n.id, s.turns,"
        f" 0, s.seconds, s.item FROM temp.slice s JOIN kinds k ON k.source = ? AND {same} "
        "LEFT JOIN names n ON n.text = s.problem ORDER BY s.number",
        (source,),
    )
    database.execute(
        "INSERT INTO texts SELECT number, response, answer, prompt, all_labels FROM temp.slice"
    )
    first = source << PLACE_BITS
    sums.add(database, first | (low + 1), (first | high) + 1)


def _bound_labels(database: sqlite3.Connection, source: int) -> None:
    known = "SELECT labels FROM kinds WHERE source = ?"
    new, old = database.execute(
        f"SELECT (SELECT count(DISTINCT labels) FROM temp.slice WHERE labels NOT IN ({known})), "  # noqa: S608
        f"(SELECT count(DISTINCT labels) FROM kinds WHERE source = ?)",
        (source, source),
    ).fetchone()
    if new and new + old > MOST_LABELS:
        database.execute(
            f"UPDATE temp.slice SET labels = '' WHERE labels NOT IN ({known})",  # noqa: S608
            (source,),
        )
