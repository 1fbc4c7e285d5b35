"""Fills the index in a thread: a bounded piece at a time, the newest first, taken up again."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import EVAL, FOLDER, RolloutFile, files_in
from assay.viewer.index import copying, narrow, searching, sums
from assay.viewer.index.lines import lines_of
from assay.viewer.index.schema import (
    LATER,
    MOST_PROCESSES,
    PLACE_BITS,
    is_broken,
    open_index,
    place_of,
    source_range,
    unit_range,
)
from assay.viewer.journals.reader import SPAN
from assay.viewer.sources import JOURNAL, ViewedSource, read_lines, sources_of

SLICE = 4_000
_NEARLY = 0.99
_LOOK_S = 1.0
_DISCOVER_S = 10.0

Unit = tuple[int, str]


class IndexBuilder:
    """Indexes sources; one thread uses it.

    Args:
        path: of the index.
        paths: what is viewed.
        slice_ids: most entries of a journal in one transaction.
        share: of the time that pieces may take, in (0, 1], for a process that has other work.
        renew: empties an index that is broken.

    Attributes:
        sources: by their numbers in the index.
        broken: the index is to be made anew.
        trouble: why the index cannot be written; empty where it can.

    Raises:
        ConfigError: see `sources_of`.
    """

    def __init__(
        self,
        path: Path,
        paths: Sequence[Path],
        *,
        slice_ids: int = SLICE,
        share: float = 1.0,
        renew: Callable[[], None] = lambda: None,
    ) -> None:
        self._path, self._renew = path, renew
        self._paths = list(paths)
        self._slice = slice_ids
        self._share = share
        self._db = open_index(path)
        self._todo: dict[int, list[Unit]] = {}
        self._looked: dict[int, float] = {}
        self._ends: dict[int, dict[int, float]] = {}
        self._discovered_s = 0.0
        self._settled = False
        self._slices: dict[int, int] = {}
        self._gaps: dict[int, int] = {}
        self.broken = False
        self.sources: dict[int, ViewedSource] = {}
        self.trouble = ""
        try:
            self.discover()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the index."""
        self._db.close()

    def run(self, closing: threading.Event, wake: threading.Event) -> None:
        """Works until `closing` is set; `wake` ends a wait."""
        while not closing.is_set():
            began = time.monotonic()
            try:
                if self.broken:
                    self._begin_anew()
                busy = self.piece()
                self.trouble = ""
            except (sqlite3.Error, OSError) as error:
                self.broken |= is_broken(error)
                self.trouble = f"the index cannot be written: {error}"
                busy = False
            if busy:
                closing.wait((time.monotonic() - began) * (1 / self._share - 1))
            else:
                wake.wait(_LOOK_S)
                wake.clear()

    def _begin_anew(self) -> None:
        self._db.close()
        self._renew()
        self._db = open_index(self._path)
        self._todo.clear()
        self._looked.clear()
        self._settled = False
        self.discover()
        self.broken = False

    def all(self) -> None:
        """Works until nothing is left to do, now."""
        self._looked.clear()
        while self.piece():
            pass

    def discover(self) -> None:
        """Looks for sources; those that are gone leave the index.

        Raises:
            ConfigError: see `sources_of`.
        """
        self._discovered_s = time.monotonic()
        found = sources_of(self._paths)
        known = {row[1]: row[0] for row in self._db.execute("SELECT id, path FROM sources")}
        if {str(one.path) for one in found} == known.keys() and self.sources:
            return
        with self._writing():
            for path, number in known.items():
                if path not in {str(one.path) for one in found}:
                    self._forget(number)
                    self._db.execute("DELETE FROM sources WHERE id = ?", (number,))
            for one in found:
                self._db.execute(
                    "INSERT INTO sources (path, kind, slug) VALUES (?, ?, ?) ON CONFLICT (path) "
                    "DO UPDATE SET slug = excluded.slug, kind = excluded.kind",
                    (str(one.path), one.kind, one.slug),
                )
        numbers = {row[1]: row[0] for row in self._db.execute("SELECT id, path FROM sources")}
        self.sources = {numbers[str(one.path)]: one for one in found}

    def piece(self) -> bool:
        """Does one bounded piece for each source that has some; whether anything was done."""
        if time.monotonic() - self._discovered_s > _DISCOVER_S:
            with contextlib.suppress(ConfigError):
                self.discover()
        busy = searching.piece(self._db, self.sources)
        for number, source in self.sources.items():
            try:
                if source.kind == JOURNAL:
                    busy |= self._journal_piece(number, source)
                else:
                    busy |= self._run_piece(number, source)
            except (OSError, copying.JournalError) as error:
                self._say(number, f"{source.path.name} cannot be read: {error}")
        if not busy and not self._settled:
            for statement in LATER:
                self._db.execute(statement)
            self._settled = busy = True
            self._looked.clear()
        return busy

    # -- journals

    def _journal_piece(self, number: int, source: ViewedSource) -> bool:
        with copying.attached(self._db, source.path) as form:
            identity, low, high = self._db.execute(
                "SELECT identity, low, high FROM sources WHERE id = ?", (number,)
            ).fetchone()
            with copying.reading():
                first, last = self._db.execute(SPAN.format("journal.entries")).fetchone()
                mark = self._mark(high)
            first, last = (0, -1) if first is None else (first, last)
            changed = False
            if high >= 0 and (last < high or (first <= high and mark != identity)):
                with self._writing():
                    self._forget(number)
                low, high, changed = 0, -1, True
            if high >= 0 and first - 1 > low:
                start = source_range(number)[0]
                with self._writing():
                    sums.remove(self._db, start, start | min(first, high + 1))
                    low = first - 1
                    self._db.execute("UPDATE sources SET low = ? WHERE id = ?", (low, number))
            return self._copy_some(number, form, (first, last), (low, high)) or changed

    def _copy_some(
        self, number: int, form: int, there: tuple[int, int], have: tuple[int, int]
    ) -> bool:
        """Indexes the next slice: what is newer than what is there, then what is older."""
        (first, last), (low, high) = there, have
        most = self._slices.get(number, self._slice)
        if high < 0:
            if last < 0:
                self._tell(number, 1.0)
                return False
            begin, end = max(first - 1, last - most), last
            low, high = begin, last
        elif last > high:
            begin, end = high, min(last, high + most)
            high = end
        elif first - 1 < self._low(number):
            end = self._low(number)
            begin = max(first - 1, end - most)
            low = begin
        else:
            self._tell(number, 1.0)
            return False
        if not self._read(number, form, begin, end):
            return True
        with self._writing():
            copying.copy(self._db, number, begin, end)
            if have[1] < 0:
                self._db.execute("UPDATE sources SET low = ? WHERE id = ?", (begin, number))
            elif end <= have[0]:
                self._db.execute("UPDATE sources SET low = ? WHERE id = ?", (low, number))
            done = (high - max(low, first - 1)) / max(1, last - first + 1)
            self._db.execute(
                "UPDATE sources SET high = ?, identity = ?, done = ?, problem = '' WHERE id = ?",
                (high, self._mark(high), min(1.0, done), number),
            )
        return True

    def _read(self, number: int, form: int, begin: int, end: int) -> bool:
        """Whether a slice is read; a damaged one is narrowed down, then passed over."""
        size = end - begin
        try:
            copying.read(self._db, number, form, begin, end)
        except copying.JournalError as error:
            if not is_broken(error):
                raise
            passed = self._gaps.get(number, 0)
            least = 1 + passed // 16  # of a long stretch a little beside it is lost too
            if size > least:
                self._slices[number] = max(least, size // 8)
                return False
            with self._writing():
                self._db.execute(
                    "INSERT OR REPLACE INTO units VALUES (?, ?, 'gap', '', ?, ?)",
                    (number, begin, size, f"the journal is damaged: {error}"),
                )
            self._gaps[number] = passed + size
            self._slices[number] = least
        else:
            self._gaps.pop(number, None)
            self._slices[number] = min(self._slice, max(2 * size, self._slices.get(number, 1)))
        return True

    def _low(self, number: int) -> int:
        return int(
            self._db.execute("SELECT low FROM sources WHERE id = ?", (number,)).fetchone()[0]
        )

    def _mark(self, entry: int) -> str:
        """What tells an entry from another one with its id."""
        try:
            row = self._db.execute(
                "SELECT time_s, request_id, item_id, hex(item_key) FROM journal.entries "
                "WHERE id = ?",
                (entry,),
            ).fetchone()
        except sqlite3.Error as error:
            if not is_broken(error):
                raise
            return "damaged"
        return "" if row is None else repr(row)

    # -- runs

    def _run_piece(self, number: int, source: ViewedSource) -> bool:
        todo = self._todo.get(number)
        if not todo:
            if time.monotonic() - self._looked.get(number, -1e9) < _LOOK_S:
                return False
            self._looked[number] = time.monotonic()
            if not source.path.is_dir():
                raise FileNotFoundError("its folder is gone")
            todo = self._todo[number] = self._units_to_do(number, source)
            if not todo:
                self._tell(number, 1.0)
                return False
        unit = todo.pop()
        files = files_in_unit(source.path / FOLDER, unit)
        self._index_unit(number, unit, files)
        total = self._db.execute(
            "SELECT count(*) FROM units WHERE source = ?", (number,)
        ).fetchone()[0]
        self._tell(number, total / (total + len(todo)))
        return True

    def _units_to_do(self, number: int, source: ViewedSource) -> list[Unit]:
        """Steps that are new, changed or gone; the newest last."""
        there: dict[Unit, str] = {}
        for one in files_in(source.path / FOLDER):
            unit = (one.step, one.phase)
            there[unit] = there.get(unit, "") + _file_mark(one.path)
        have = {
            (step, phase): mark
            for step, phase, mark in self._db.execute(
                "SELECT step, phase, mark FROM units WHERE source = ?", (number,)
            )
        }
        self._ends[number] = _ends_of_steps(source.path / FOLDER)
        changed = {unit for unit, mark in there.items() if have.get(unit) != mark}
        return sorted(changed | (have.keys() - there.keys()))

    def _index_unit(self, number: int, unit: Unit, files: list[RolloutFile]) -> None:
        step, phase = unit
        mark, bad = "", 0
        problems: list[str] = []
        rows: dict[Any, tuple[int, Any, Any, Any]] = {}
        ends = self._ends.get(number, {})
        for file in files:
            mark += _file_mark(file.path)
            time_s = None if phase == EVAL else ends.get(step)
            if time_s is None:
                with contextlib.suppress(OSError):
                    time_s = file.path.stat().st_mtime
            lines = lines_of(file.path, problems.append)
            for line, row in lines:
                place = place_of(step, phase, min(file.process, MOST_PROCESSES - 1), line)
                try:
                    kind, item, texts = narrow.narrowed(row, number, step, phase, time_s)
                except narrow.Unusable:
                    bad += 1
                    continue
                key: tuple[Any, Any] = (item.draw, item.sample)
                if None in key:
                    key = ("line", place)
                before = rows.get(key)
                if before is None or (item.trained is not None and before[2].trained is None):
                    rows[key] = (place, kind, item, texts)
        first = number << PLACE_BITS
        with self._writing():
            sums.remove(self._db, *unit_range(number, step, phase))
            if not files or not mark:
                self._db.execute(
                    "DELETE FROM units WHERE source = ? AND step = ? AND phase = ?",
                    (number, step, phase),
                )
                return
            for place, kind, item, texts in rows.values():
                self._put(first + place, kind, item, texts)
            sums.add(self._db, *unit_range(number, step, phase))
            self._db.execute(
                "INSERT OR REPLACE INTO units VALUES (?, ?, ?, ?, ?, ?)",
                (number, step, phase, mark, bad, "; ".join(problems)[:500]),
            )

    def _put(
        self,
        number: int,
        kind: narrow.KindFields,
        item: narrow.ItemFields,
        texts: narrow.TextFields,
    ) -> None:
        problem = None if item.problem is None else self._named(item.problem)
        values = item._replace(problem=problem)  # type: ignore[arg-type]  # its number now
        self._db.execute(
            f"INSERT OR REPLACE INTO items VALUES (?, ?{', ?' * len(values)})",  # noqa: S608
            (number, self._kind(kind), *values),
        )
        self._db.execute("INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?, ?)", (number, *texts))

    def _kind(self, kind: narrow.KindFields) -> int:
        names = ", ".join(kind._fields)
        where = " AND ".join(f"{name} = ?" for name in kind._fields)
        row = self._db.execute(f"SELECT id FROM kinds WHERE {where}", kind).fetchone()  # noqa: S608
        if row is None:
            marks = ", ".join("?" * len(kind))
            row = self._db.execute(
                f"INSERT INTO kinds ({names}) VALUES ({marks}) RETURNING id",  # noqa: S608
                kind,
            ).fetchone()
        return int(row[0])

    def _named(self, name: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO names (text) VALUES (?)", (name,))
        return int(self._db.execute("SELECT id FROM names WHERE text = ?", (name,)).fetchone()[0])

    # -- both

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("UPDATE changes SET version = version + 1")
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _forget(self, number: int) -> None:
        sums.remove(self._db, *source_range(number))
        for table, column in (("units", "source"), ("kinds", "source"), ("searched", "source")):
            self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))  # noqa: S608
        self._db.execute(
            "UPDATE sources SET low = 0, high = -1, identity = '', done = 0 WHERE id = ?", (number,)
        )

    def _tell(self, number: int, done: float) -> None:
        done = done if self._settled else min(done, _NEARLY)
        before = self._db.execute(
            "SELECT done, problem FROM sources WHERE id = ?", (number,)
        ).fetchone()
        if before != (done, ""):
            with self._writing():
                self._db.execute(
                    "UPDATE sources SET done = ?, problem = '' WHERE id = ?", (done, number)
                )

    def _say(self, number: int, problem: str) -> None:
        before = self._db.execute("SELECT problem FROM sources WHERE id = ?", (number,)).fetchone()
        if before != (problem,):
            with self._writing():
                self._db.execute("UPDATE sources SET problem = ? WHERE id = ?", (problem, number))


def files_in_unit(folder: Path, unit: Unit) -> list[RolloutFile]:
    """The files of a step and phase, one a process."""
    step, phase = unit
    name = f"{step:06}{'.eval' if phase == EVAL else ''}"
    return sorted(
        one
        for path in folder.glob(f"{name}*.jsonl.gz")
        for one in [_file(path, unit)]
        if one is not None
    )


def _file(path: Path, unit: Unit) -> RolloutFile | None:
    step, phase = unit
    middle = path.name.removeprefix(f"{step:06}{'.eval' if phase == EVAL else ''}")
    process = middle.removesuffix(".jsonl.gz").removeprefix(".p")
    if middle == ".jsonl.gz":
        return RolloutFile(step, phase, 0, path)
    if middle.startswith(".p") and process.isdecimal() and len(process) < 6:
        return RolloutFile(step, phase, int(process), path)
    return None


def _file_mark(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{path.name}:{found.st_size}:{found.st_mtime_ns};"


def _ends_of_steps(folder: Path) -> dict[int, float]:
    """When each step was collected, in seconds since 1970."""
    ends: dict[int, float] = {}
    for path in folder.glob("timeline*.jsonl"):
        for row in read_lines(path)[0]:
            step, end = narrow.whole(row.get("step")), narrow.real(row.get("end"))
            if step is not None and end is not None and row.get("what") == "collect":
                ends[step] = max(end, ends.get(step, end))
    return ends
