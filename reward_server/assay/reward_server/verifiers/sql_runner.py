"""What runs in the sandbox for `sql`: two queries on fresh databases, and whether they agree.

The server never imports this module; it sends its text as a program, with the task as JSON on
stdin. It needs Python and its sqlite3, and for the engine duckdb the package of that name. It
writes one JSON object per line: `{"gold": ...}` when the databases are set up and the gold query
has run on all of them, then `{"candidate": ...}`. A line that is missing was cut off by a limit of
the sandbox.

Both queries may only read: an authorizer refuses every action but SELECT, READ, RECURSIVE and
harmless functions, so that a query cannot attach a file, load code, change a setting or a table.
Each has a time of its own, kept by SQLite's progress handler. Rows are compared here, by code that
no query can reach.

DuckDB's connection is made without external access, extensions and scans of Python's variables, and
is locked before the setup runs. A query is one SELECT by DuckDB's own parser, in a transaction that
can only read, and is interrupted from a thread.
"""

from __future__ import annotations

import json
import math
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

MAX_CELL_BYTES = 10_000_000
MAX_RESULT_BYTES = 50_000_000
MATCHED_ROWS = 200
MAX_COMPARISONS = 4_000_000
MAX_COLUMN_ORDERS = 720
_STEPS_BETWEEN_CHECKS = 10_000
_REFUSED_FUNCTIONS = frozenset(
    {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
)
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})

Row = tuple[Any, ...]


class QueryTrouble(Exception):
    """A query failed; says why."""


class QueryResult:
    """The columns' names and the rows of a query."""

    def __init__(self, columns: Sequence[str], rows: list[Row]) -> None:
        self.columns = [name.casefold() for name in columns]
        self.rows = rows


class Database(Protocol):
    """A database that is set up, and can only be read from now on."""

    def run(self, query: str, seconds: float, max_rows: int) -> QueryResult:
        """Runs one query that reads; raises QueryTrouble when it fails or is beyond a bound."""
        ...


class SqliteDatabase:
    """SQLite's, in memory, as the setup makes it; raises QueryTrouble when that fails."""

    def __init__(self, setup: str) -> None:
        self._connection = open_database(setup)

    def run(self, query: str, seconds: float, max_rows: int) -> QueryResult:
        """See `Database.run`."""
        return run_query(self._connection, query, seconds, max_rows)


_LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "temp_directory": "",
    "threads": "1",
    "memory_limit": "256MB",
    "lock_configuration": "true",
}


class DuckDatabase:
    """DuckDB's, in memory, as the setup makes it.

    Raises:
        ImportError: duckdb is not there.
        QueryTrouble: the setup fails.
    """

    def __init__(self, setup: str) -> None:
        import duckdb  # noqa: PLC0415 - only this engine needs it

        self._errors = (
            duckdb.Error,
            TypeError,
            ValueError,
            OverflowError,
            MemoryError,
            RuntimeError,
        )
        self._select = duckdb.StatementType.SELECT
        self._connection = duckdb.connect(":memory:", config=dict(_LOCKED))
        try:
            self._connection.execute(setup)
        except self._errors as error:
            raise QueryTrouble(str(error)) from error

    def run(self, query: str, seconds: float, max_rows: int) -> QueryResult:
        """See `Database.run`."""
        deadline_s = time.monotonic() + seconds
        timer = threading.Timer(seconds, self._connection.interrupt)
        timer.daemon = True
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != self._select:
                raise QueryTrouble("it is not one query that reads")
            self._connection.execute("BEGIN TRANSACTION READ ONLY")
            timer.start()
            return self._rows(query, max_rows)
        except self._errors as error:
            late = time.monotonic() >= deadline_s
            text = f"it takes more than {seconds:g} s" if late else str(error) or "it fails"
            raise QueryTrouble(text) from error
        finally:
            timer.cancel()
            self._end()

    def _rows(self, query: str, max_rows: int) -> QueryResult:
        cursor = self._connection.execute(query)
        columns = [column[0] for column in cursor.description or ()]
        rows: list[Row] = []
        size = 0
        while part := cursor.fetchmany(1_000):
            rows += [tuple(map(_comparable, row)) for row in part]
            size += sum(len(repr(cell)) for row in part for cell in row)
            if len(rows) > max_rows:
                raise QueryTrouble(f"it returns more than {max_rows} rows")
            if size > MAX_RESULT_BYTES:
                raise QueryTrouble(f"it returns more than {MAX_RESULT_BYTES} bytes")
        return QueryResult(columns, rows)

    def _end(self) -> None:
        """Ends the transaction; one that was never begun, or is broken, is none."""
        try:
            self._connection.execute("ROLLBACK")
        except self._errors:
            return


def _comparable(cell: Any) -> Any:
    """A value of DuckDB as `difference` compares it: hashable, and equal to itself."""
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() else float(cell)
    if isinstance(cell, float) and math.isnan(cell):
        return ("nan",)
    if isinstance(cell, list | tuple):
        return ("list", *map(_comparable, cell))
    if isinstance(cell, dict):
        return ("struct", *((str(key), _comparable(value)) for key, value in cell.items()))
    return cell


ENGINES: dict[str, Callable[[str], Database]] = {"sqlite": SqliteDatabase, "duckdb": DuckDatabase}


def open_database(setup: str) -> sqlite3.Connection:
    """A database in memory, as the setup makes it, that can only be read from now on.

    Raises:
        QueryTrouble: the setup fails.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        connection.executescript(setup)
    except sqlite3.Error as error:
        raise QueryTrouble(str(error)) from error
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_may)
    return connection


def _may(action: int, _first: str | None, second: str | None, *_: object) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        refused = (second or "").lower() in _REFUSED_FUNCTIONS
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def run_query(
    connection: sqlite3.Connection, query: str, seconds: float, max_rows: int
) -> QueryResult:
    """Runs one query that reads.

    Raises:
        QueryTrouble: it fails, takes too long, or returns too much.
    """
    deadline_s = time.monotonic() + seconds
    connection.set_progress_handler(
        lambda: int(time.monotonic() > deadline_s), _STEPS_BETWEEN_CHECKS
    )
    rows: list[Row] = []
    size = 0
    try:
        cursor = connection.execute(query)
        if cursor.description is None:
            raise QueryTrouble("it returns no table")
        for row in cursor:
            rows.append(row)
            size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
            if len(rows) > max_rows:
                raise QueryTrouble(f"it returns more than {max_rows} rows")
            if size > MAX_RESULT_BYTES:
                raise QueryTrouble(f"it returns more than {MAX_RESULT_BYTES} bytes")
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        late = time.monotonic() > deadline_s
        text = f"it takes more than {seconds:g} s" if late else str(error) or type(error).__name__
        raise QueryTrouble(text) from error
    return QueryResult([column[0] for column in cursor.description], rows)


def difference(gold: QueryResult, table: QueryResult, rules: dict[str, Any]) -> str:
    """What differs between two results; empty when nothing does.

    Args:
        gold: the right one.
        table: the candidate's.
        rules: "ordered", "ignore_duplicates", "columns" ("position", "names" or "any") and
            "tolerance", relative, of numbers.
    """
    if len(gold.columns) != len(table.columns):
        return f"{len(table.columns)} columns where {len(gold.columns)} are right"
    if not rules["ignore_duplicates"] and len(gold.rows) != len(table.rows):
        return f"{len(table.rows)} rows where {len(gold.rows)} are right"
    orders = _column_orders(gold, table, rules)
    if not orders:
        return "the columns' names differ" if rules["columns"] == "names" else "the values differ"
    for order in orders:
        rows = [tuple(row[index] for index in order) for row in table.rows]
        if _same_rows(gold.rows, rows, rules):
            return ""
    return "the rows differ, or their order" if rules["ordered"] else "the rows differ"


def _column_orders(gold: QueryResult, table: QueryResult, rules: dict[str, Any]) -> list[list[int]]:
    """The orders of the second table's columns in which it may equal the first."""
    width = len(gold.columns)
    if rules["columns"] == "position":
        return [list(range(width))]
    if rules["columns"] == "names":
        if sorted(gold.columns) != sorted(table.columns) or len(set(gold.columns)) != width:
            return []
        return [[table.columns.index(name) for name in gold.columns]]
    fitting = [
        [mine for mine in range(width) if _profile(table.rows, mine) == _profile(gold.rows, theirs)]
        for theirs in range(width)
    ]
    orders: list[list[int]] = [[]]
    for choices in fitting:
        orders = [[*order, choice] for order in orders for choice in choices if choice not in order]
        orders = orders[:MAX_COLUMN_ORDERS]
    return orders


def _profile(rows: list[Row], column: int) -> tuple[Counter[str], int]:
    """Texts of a column and how many numbers it has: equal for columns that may be the same."""
    exact = Counter(repr(row[column]) for row in rows if not _is_number(row[column]))
    return Counter(set(exact)), int(any(_is_number(row[column]) for row in rows))


def _same_rows(gold: list[Row], rows: list[Row], rules: dict[str, Any]) -> bool:
    tolerance = rules["tolerance"]
    if rules["ignore_duplicates"]:
        return _same_sets(set(gold), set(rows), tolerance)
    if len(gold) != len(rows):
        return False
    if rules["ordered"]:
        return all(_near(row, want, tolerance) for row, want in zip(rows, gold, strict=True))
    buckets: dict[Row, tuple[list[Row], list[Row]]] = {}
    for side, table in enumerate((gold, rows)):
        for row in table:
            buckets.setdefault(_exact_part(row), ([], []))[side].append(row)
    return all(_same_bucket(wanted, had, tolerance) for wanted, had in buckets.values())


def _same_sets(gold: set[Row], rows: set[Row], tolerance: float) -> bool:
    """Whether each row of one is near a row of the other; equality where there are many."""
    if gold == rows or len(gold) * len(rows) > MAX_COMPARISONS:
        return gold == rows
    return all(any(_near(row, want, tolerance) for want in gold) for row in rows) and all(
        any(_near(row, want, tolerance) for row in rows) for want in gold
    )


def _exact_part(row: Row) -> Row:
    return tuple((0,) if _is_number(cell) else (type(cell).__name__, cell) for cell in row)


def _same_bucket(wanted: list[Row], had: list[Row], tolerance: float) -> bool:
    """Whether rows that differ in numbers only can be paired within the tolerance."""
    if len(wanted) != len(had):
        return False
    wanted, had = sorted(wanted, key=_numbers), sorted(had, key=_numbers)
    if all(_near(row, want, tolerance) for row, want in zip(had, wanted, strict=True)):
        return True
    return len(wanted) <= MATCHED_ROWS and _paired(wanted, had, tolerance)


def _paired(wanted: list[Row], had: list[Row], tolerance: float) -> bool:
    """Whether there is a perfect matching: augmenting paths (Kuhn's algorithm)."""
    partner: dict[int, int] = {}

    def place(index: int, seen: set[int]) -> bool:
        for other, row in enumerate(had):
            if other in seen or not _near(row, wanted[index], tolerance):
                continue
            seen.add(other)
            if other not in partner or place(partner[other], seen):
                partner[other] = index
                return True
        return False

    return all(place(index, set()) for index in range(len(wanted)))


def _numbers(row: Row) -> list[float]:
    return [cell for cell in row if _is_number(cell)]


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float)


def _near(row: Row, want: Row, tolerance: float) -> bool:
    return all(_near_cell(a, b, tolerance) for a, b in zip(row, want, strict=True))


def _near_cell(a: Any, b: Any, tolerance: float) -> bool:
    if _is_number(a) and _is_number(b):
        # Whole numbers are kept apart exactly: those beyond 2**53 do not survive as floats.
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        return a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
    return type(a) is type(b) and bool(a == b)


class _Budget:
    """The seconds of one query on all databases together."""

    def __init__(self, seconds: float) -> None:
        self._left_s = seconds

    def run(self, database: Database, query: str, max_rows: int) -> QueryResult:
        started_s = time.monotonic()
        table = database.run(query, self._left_s, max_rows)
        self._left_s = max(0.0, self._left_s - (time.monotonic() - started_s))
        return table


def work(task: dict[str, Any], write: Callable[[dict[str, Any]], object]) -> None:
    """Runs a task: both queries on each database.

    Args:
        task: "engine", "setups", "gold", "candidate", "seconds", "max_rows" and "rules".
        write: takes each line that is to be written.
    """
    databases: list[tuple[Database, QueryResult]] = []
    engine = ENGINES[task.get("engine", "sqlite")]
    budget = _Budget(task["seconds"])
    for number, setup in enumerate(task["setups"], start=1):
        step = "setup"
        try:
            database = engine(setup)
            step = "query"
            table = budget.run(database, task["gold"], task["max_rows"])
        except ImportError as trouble:
            write({"gold": {"trouble": str(trouble)[:500], "step": "engine", "database": number}})
            return
        except QueryTrouble as trouble:
            write({"gold": {"trouble": str(trouble)[:500], "step": step, "database": number}})
            return
        databases.append((database, table))
    write({"gold": {"rows": [len(table.rows) for _, table in databases]}})
    budget = _Budget(task["seconds"])
    for number, (database, gold) in enumerate(databases, start=1):
        most = task["max_rows"] if task["rules"]["ignore_duplicates"] else len(gold.rows)
        try:
            table = budget.run(database, task["candidate"], most)
            found, failed = difference(gold, table, task["rules"]), False
        except QueryTrouble as trouble:
            found, failed = str(trouble), True
        if found:
            write({"candidate": {"trouble": found[:500], "failed": failed, "database": number}})
            return
    write({"candidate": {"trouble": ""}})


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work(json.load(sys.stdin), _write)
