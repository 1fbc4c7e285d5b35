"""Queries a journal, while the server writes to it or afterwards.

A reader holds no transaction for longer than one query of bounded size, so that the writer's log
does not grow behind it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.judgements import Appeal

APPLICATION_ID = 0x41535359  # "ASSY"
FORMAT = 3
FORMATS = (1, 2, FORMAT)
JSON_FIELDS = (
    *("components", "spans", "suspicions", "prompt", "labels", "parameters", "cut", "appeal"),
)
TEXT_FIELDS = ("prompt", "response", "reference", "answer", "explanation")
_PAGE_ROWS = 200
_SCAN_ROWS = 10_000

SPAN = "SELECT (SELECT min(id) FROM {0}), (SELECT max(id) FROM {0})"
"""The ends of the ids. Asked for both at once, SQLite reads the whole table."""
Record = dict[str, Any]
"""One entry: the fields of `Entry` as plain data, and `id`."""
_ABSENT = {
    "labels": "{}",
    **dict.fromkeys(("parameters", "reference_kind", "cut", "appeal")),
}
_CHANGED = (
    "(CASE WHEN json_valid(appeal) THEN "
    "json_extract(appeal, '$.first.verdict') <> json_extract(appeal, '$.second.verdict') END)"
)


@dataclass(frozen=True, slots=True)
class Filter:
    """Chooses entries: those that meet all that is set.

    Attributes:
        only: "judgements" or "faults"; empty for both.
        text: occurs in the prompt, response, reference, answer or explanation as they are kept;
            upper and lower case are alike in ASCII.
        request_id: id of the call.
        item_id: the caller's id of the item.
        since_s: not before this time, in seconds since 1970.
        least_reward: judgements with at least this reward.
        most_reward: judgements with at most this reward.
        labels: each name with its value.
        appeal: "any" for those where a second verifier was asked, "changed" for those where it gave
            another verdict; empty for all.
    """

    verifier: str = ""
    verdict: str = ""
    fault: str = ""
    only: str = ""
    text: str = ""
    request_id: str = ""
    item_id: str = ""
    suspicion: str = ""
    since_s: float | None = None
    least_reward: float | None = None
    most_reward: float | None = None
    labels: tuple[tuple[str, str], ...] = ()
    appeal: str = ""

    def where(self) -> tuple[str, list[object]]:
        """The SQL condition, and its values."""
        terms: list[str] = []
        values: list[object] = []
        for column in ("verifier", "verdict", "fault", "request_id", "item_id"):
            if value := getattr(self, column):
                terms.append(f"{column} = ?")
                values.append(value)
        for term, bound in (
            ("time_s >= ?", self.since_s),
            ("reward >= ?", self.least_reward),
            ("reward <= ?", self.most_reward),
        ):
            if bound is not None:
                terms.append(term)
                values.append(bound)
        if self.only:
            terms.append("fault IS NULL" if self.only == "judgements" else "fault IS NOT NULL")
        if self.appeal:
            terms.append(_CHANGED if self.appeal == "changed" else "appeal IS NOT NULL")
        if self.suspicion:
            terms.append("instr(suspicions, ?) > 0")
            values.append(json.dumps(self.suspicion))
        for label in self.labels:
            terms.append(
                "EXISTS (SELECT 1 FROM json_each(entries.labels) AS label "
                "WHERE label.key = ? AND label.value = ?)"
            )
            values += label
        if self.text:
            # Prompts and dialogues are kept as JSON, where some characters look different.
            patterns = {_like(self.text), _like(json.dumps(self.text, ensure_ascii=False)[1:-1])}
            columns = [(column, pattern) for column in TEXT_FIELDS for pattern in sorted(patterns)]
            terms.append(
                "(" + " OR ".join(f"{column} LIKE ? ESCAPE '\\'" for column, _ in columns) + ")"
            )
            values += [pattern for _, pattern in columns]
        return " AND ".join(terms) or "1", values


@dataclass(frozen=True, slots=True)
class Rate:
    """One verifier's judgements by verdict, faults by reason, and mean reward.

    Attributes:
        verifier: its name; empty for items whose verifier was not found.
        verdicts: verdict -> items.
        faults: reason -> items.
        mean_reward: over its judgements; None without one.
    """

    verifier: str
    verdicts: dict[str, int]
    faults: dict[str, int]
    mean_reward: float | None

    @property
    def judgements(self) -> int:
        """Items that were judged."""
        return sum(self.verdicts.values())

    @property
    def faulted(self) -> int:
        """Items with a fault."""
        return sum(self.faults.values())


@dataclass(frozen=True, slots=True)
class Moment:
    """One second: since 1970, items judged and faulted in it, the sum of their rewards."""

    second: int
    judged: int
    faulted: int
    rewards: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A journal as a whole.

    Attributes:
        entries: those in the file.
        dropped: those that did not reach the file, since it was made.
        expired: those deleted for new ones, since it was made.
        first_s: time of the oldest entry, in seconds since 1970; None where there is none.
        last_s: time of the newest.
    """

    entries: int
    dropped: int
    expired: int
    first_s: float | None
    last_s: float | None


class Reader:
    """A journal, open for reading. Belongs to the thread that made it. A context manager.

    Raises:
        ConfigError: there is no such file, or it is no journal that this version reads.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ConfigError(f"{path}: no such file; name what reward_server has as --journal")
        try:
            self._db = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0, isolation_level=None
            )
            self._db.row_factory = sqlite3.Row
        except sqlite3.Error as error:
            raise ConfigError(f"{path} cannot be read as a journal: {error}") from error
        self._db.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            kind, form = (self._number(f"PRAGMA {n}") for n in ("application_id", "user_version"))
        except sqlite3.Error as error:
            self._db.close()
            raise ConfigError(f"{path} cannot be read as a journal: {error}") from error
        if kind != APPLICATION_ID or form not in FORMATS:
            self._db.close()
            what = "is no journal" if kind != APPLICATION_ID else f"has format {form}"
            raise ConfigError(f"{path} {what}; this version reads journals of format 1 to {FORMAT}")
        self._format = form

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def last(self, count: int, chosen: Filter | None = None, *, before: int = 0) -> list[Record]:
        """The newest entries that meet a filter, oldest first.

        Args:
            count: most entries.
            chosen: which; None for all.
            before: entries with a smaller id only; 0 for any.
        """
        where, values = self._where(chosen)
        found: list[Record] = []
        for low, high in reversed(list(self._ranges(before=before))):
            page = self._db.execute(
                f"SELECT * FROM entries WHERE id > ? AND id <= ? AND ({where}) "  # noqa: S608 - names of ours only
                "ORDER BY id DESC LIMIT ?",
                (low, high, *values, count - len(found)),
            ).fetchall()
            found += map(_record, page)
            if len(found) >= count:
                break
        return found[::-1]

    def each(self, chosen: Filter | None = None, *, after: int = 0) -> Iterator[Record]:
        """Entries that meet a filter, oldest first, read a page at a time.

        Args:
            chosen: which; None for all.
            after: entries with a greater id only.
        """
        where, values = self._where(chosen)
        for low, high in self._ranges(after=after, step=_PAGE_ROWS):
            page = self._db.execute(
                f"SELECT * FROM entries WHERE id > ? AND id <= ? AND ({where}) ORDER BY id",  # noqa: S608 - names of ours only
                (low, high, *values),
            ).fetchall()
            yield from map(_record, page)

    def _where(self, chosen: Filter | None) -> tuple[str, list[object]]:
        chosen = chosen or Filter()
        # A file of format 1 has no labels, and one of format 2 no appeals.
        if (chosen.labels and self._format < 2) or (chosen.appeal and self._format < 3):
            return "0", []
        return chosen.where()

    def _ranges(
        self, *, after: int = 0, before: int = 0, step: int = 0
    ) -> Iterator[tuple[int, int]]:
        """Ranges of ids, low excluded and high included: each query reads one of them."""
        first = self._number("SELECT coalesce(min(id), 1) FROM entries")
        last = min(self.last_id(), before - 1) if before else self.last_id()
        low, step = max(after, first - 1), step or _SCAN_ROWS
        while low < last:
            yield low, min(low + step, last)
            low += step

    def last_id(self) -> int:
        """The newest entry's id; 0 where there is none. Ids count from 1, in order of arrival."""
        return self._number("SELECT coalesce(max(id), 0) FROM entries")

    def get(self, entry_id: int) -> Record | None:
        """One entry."""
        row = self._db.execute("SELECT * FROM entries WHERE id = ?", (entry_id,)).fetchone()
        return None if row is None else _record(row)

    def summary(self) -> Summary:
        """The journal as a whole."""
        # Ids have no gaps: the oldest go, and a batch that fails gives its ids back.
        first, last = self._db.execute(SPAN.format("entries")).fetchone()
        dropped, expired = self._db.execute("SELECT dropped, expired FROM totals").fetchone()
        if first is None:
            return Summary(0, dropped, expired, None, None)
        times = [
            None if record is None else float(record["time_s"])
            for record in (self.get(first), self.get(last))
        ]
        return Summary(last - first + 1, dropped, expired, times[0], times[1])

    def rates(self, chosen: Filter | None = None, *, after: int = 0) -> list[Rate]:
        """The rates of each verifier, the busiest first.

        Args:
            chosen: of which entries; None for all.
            after: entries with a greater id only.
        """
        where, values = self._where(chosen)
        found: dict[str, tuple[Counter[str], Counter[str], list[float]]] = {}
        for low, high in self._ranges(after=after):
            rows = self._db.execute(
                "SELECT verifier, verdict, fault, count(*), total(reward) FROM entries "  # noqa: S608 - names of ours only
                f"WHERE id > ? AND id <= ? AND ({where}) GROUP BY verifier, verdict, fault",
                (low, high, *values),
            ).fetchall()
            for verifier, verdict, fault, items, total in rows:
                verdicts, faults, totals = found.setdefault(verifier, (Counter(), Counter(), []))
                if fault is None:
                    verdicts[verdict] += items
                    totals.append(total)
                else:
                    faults[fault] += items
        rates = [
            Rate(name, _ordered(v), _ordered(f), sum(t) / v.total() if v else None)
            for name, (v, f, t) in found.items()
        ]
        return sorted(rates, key=lambda rate: (-rate.judgements - rate.faulted, rate.verifier))

    def pairs(self, first: str, second: str) -> Iterator[tuple[Record, Record]]:
        """Entries of two verifiers on the same item: prompt, response and reference are equal.

        Of a verifier's several entries on an item its newest counts. In the order of the first's.
        """
        newest: dict[str, dict[bytes, int]] = {first: {}, second: {}}
        for low, high in self._ranges():
            rows = self._db.execute(
                "SELECT verifier, item_key, id FROM entries WHERE id > ? AND id <= ? "
                "AND verifier IN (?, ?) AND item_key IS NOT NULL ORDER BY id",
                (low, high, first, second),
            ).fetchall()
            for verifier, key, entry_id in rows:
                newest[verifier][key] = entry_id
        shared = newest[first].keys() & newest[second].keys()
        for key in sorted(shared, key=newest[first].__getitem__):
            a, b = self.get(newest[first][key]), self.get(newest[second][key])
            if a is not None and b is not None:
                yield a, b

    def series(self, chosen: Filter | None = None, *, after: int = 0) -> list[Moment]:
        """Judgements, faults and rewards by the second, oldest first; empty seconds are left out.

        Args:
            chosen: of which entries; None for all.
            after: entries with a greater id only.
        """
        where, values = self._where(chosen)
        found: dict[int, Moment] = {}
        for low, high in self._ranges(after=after):
            rows = self._db.execute(
                "SELECT CAST(time_s AS INTEGER), count(verdict), count(fault), total(reward) "  # noqa: S608 - names of ours only
                f"FROM entries WHERE id > ? AND id <= ? AND ({where}) GROUP BY 1",
                (low, high, *values),
            ).fetchall()
            for second, judged, faulted, total in rows:
                old = found.get(second, Moment(second, 0, 0, 0.0))
                found[second] = Moment(
                    second, old.judged + judged, old.faulted + faulted, old.rewards + total
                )
        return [found[second] for second in sorted(found)]

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _like(text: str) -> str:
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


def _read_turns(record: Record, turns: list[list[Any]]) -> None:
    """Sets the turns, or the response that has tool calls; `calls` has those of each turn."""
    record["calls"] = [_lists(turn[3], 2) if len(turn) > 3 else [] for turn in turns]
    record["response"] = [turn[:3] for turn in turns]
    if len(turns) == 1 and turns[0][0] is None:
        record["is_dialogue"], record["response"] = False, turns[0][1]


_NUMBERS = (float, int)
_LENGTHS = {"components": 3, "spans": 5, "prompt": 2}


def _parsed(name: str, text: str) -> Any:
    """A column of JSON, without what is none of its parts: the file may be anybody's."""
    value = _json(text)
    if name in _LENGTHS:
        return [part[: _LENGTHS[name]] for part in _lists(value, _LENGTHS[name])]
    if name == "appeal":
        return appeal_of(value)
    if name in ("labels", "parameters"):
        return value if isinstance(value, dict) else {}
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []


def appeal_of(value: Any) -> dict[str, Any] | None:
    """An appeal as `Appeal` has it; None for anything else."""
    try:
        appeal = Appeal.from_plain(value)
    except (KeyError, TypeError, AttributeError):
        return None
    said = None if appeal is None or appeal.second is None else (appeal.first, appeal.second)
    texts = [x for one in said or () for x in (one.verifier, one.version, one.verdict)]
    numbers = [one.reward for one in said or ()]
    sound = all(isinstance(x, str) for x in texts) and all(type(x) in _NUMBERS for x in numbers)
    return value if said and sound else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError, TypeError):
        return None


def _lists(value: Any, least: int) -> list[list[Any]]:
    """Its lists of so many parts or more."""
    listed = value if isinstance(value, list) else []
    return [part for part in listed if isinstance(part, list) and len(part) >= least]


def _record(row: sqlite3.Row) -> Record:
    record: Record = {**_ABSENT, **dict(zip(row.keys(), tuple(row), strict=True)), "calls": []}
    for name in JSON_FIELDS:
        record[name] = None if record[name] is None else _parsed(name, record[name])
    for name in ("from_cache", "is_dialogue"):
        record[name] = bool(record[name])
    if record["is_dialogue"] and record["response"] is not None:
        _read_turns(record, _lists(_json(record["response"]), 3))
    if record["item_key"] is not None:
        record["item_key"] = record["item_key"].hex()
    return record
