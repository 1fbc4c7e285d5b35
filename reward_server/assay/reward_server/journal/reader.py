"""Asks a journal: what was said, of what, by whom. For readers beside the server that writes.

A reader never writes and holds no transaction for longer than one question of bounded size, so that
the writer's log does not grow behind it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from assay.reward_server.journal.store import APPLICATION_ID, FORMAT
from assay.rpc.errors import ConfigError

JSON_FIELDS = ("components", "spans", "suspicions", "prompt")
TEXT_FIELDS = ("prompt", "response", "reference", "answer", "explanation")
_PAGE_ROWS = 200

Record = dict[str, Any]
"""One entry as JSON has it: the fields of `Entry`, and `id`."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries are asked for: those that meet all that is set.

    Attributes:
        verifier: name of the verifier.
        verdict: the verdict.
        fault: the fault's reason.
        only: "judgements" or "faults"; empty for both.
        text: occurs in the prompt, response, reference, answer or explanation as they are kept;
            upper and lower case are alike in ASCII.
        request_id: id of the call.
        item_id: the caller's id of the item.
        suspicion: a sign of gaming that was seen.
        since_s: not before this time, in seconds since 1970.
        least_reward: judgements with at least this reward.
        most_reward: judgements with at most this reward.
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

    def where(self) -> tuple[str, list[object]]:
        """The condition, and its values."""
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
        if self.suspicion:
            terms.append("instr(suspicions, ?) > 0")
            values.append(json.dumps(self.suspicion))
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
    """What a verifier said: judgements by verdict, faults by reason, rewards.

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
        """Items that were not."""
        return sum(self.faults.values())


@dataclass(frozen=True, slots=True)
class Summary:
    """A journal as a whole.

    Attributes:
        entries: that are there.
        dropped: that never came in, since the file was made.
        expired: that went for new ones, since the file was made.
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

    Args:
        path: the file.

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
            found = self._number("PRAGMA application_id"), self._number("PRAGMA user_version")
        except sqlite3.Error as error:
            raise ConfigError(f"{path} cannot be read as a journal: {error}") from error
        if found != (APPLICATION_ID, FORMAT):
            self._db.close()
            what = "is no journal" if found[0] != APPLICATION_ID else f"has format {found[1]}"
            raise ConfigError(f"{path} {what}; this version reads journals of format {FORMAT}")

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
        """Lets go of the file."""
        self._db.close()

    def last(self, count: int, chosen: Filter | None = None, *, before: int = 0) -> list[Record]:
        """The newest entries that meet a filter, oldest first.

        Args:
            count: most entries.
            chosen: which; None for all.
            before: entries with a smaller id than this only; 0 for any.
        """
        where, values = (chosen or Filter()).where()
        if before:
            where, values = f"({where}) AND id < ?", [*values, before]
        found = self._db.execute(
            f"SELECT * FROM entries WHERE {where} ORDER BY id DESC LIMIT ?",  # noqa: S608 - names of ours only
            (*values, count),
        ).fetchall()
        return [_record(row) for row in reversed(found)]

    def each(self, chosen: Filter | None = None, *, after: int = 0) -> Iterator[Record]:
        """Entries that meet a filter, oldest first, read a page at a time.

        Args:
            chosen: which; None for all.
            after: entries with a greater id than this only.
        """
        where, values = (chosen or Filter()).where()
        last = self.last_id()
        while after < last:
            # A bounded range of ids for each question: a rare text must not hold the log for long.
            bound = after + _PAGE_ROWS
            page = self._db.execute(
                f"SELECT * FROM entries WHERE id > ? AND id <= ? AND ({where}) ORDER BY id",  # noqa: S608 - names of ours only
                (after, bound, *values),
            ).fetchall()
            yield from map(_record, page)
            if not page:
                # Over what has expired.
                oldest = self._db.execute("SELECT min(id) FROM entries").fetchone()[0]
                bound = max(bound, (oldest or 0) - 1)
            after = bound

    def last_id(self) -> int:
        """The newest entry's id; 0 where there is none. Ids count from 1, in order of arrival."""
        return self._number("SELECT coalesce(max(id), 0) FROM entries")

    def get(self, entry_id: int) -> Record | None:
        """One entry."""
        row = self._db.execute("SELECT * FROM entries WHERE id = ?", (entry_id,)).fetchone()
        return None if row is None else _record(row)

    def summary(self) -> Summary:
        """The journal as a whole."""
        entries = self._db.execute(
            "SELECT count(*), min(time_s), max(time_s) FROM entries"
        ).fetchone()
        totals = self._db.execute("SELECT dropped, expired FROM totals").fetchone()
        return Summary(entries[0], totals[0], totals[1], entries[1], entries[2])

    def rates(self, chosen: Filter | None = None) -> list[Rate]:
        """What each verifier said, the busiest first."""
        where, values = (chosen or Filter()).where()
        rows = self._db.execute(
            "SELECT verifier, verdict, fault, count(*) AS items, sum(reward) AS total "  # noqa: S608 - names of ours only
            f"FROM entries WHERE {where} GROUP BY verifier, verdict, fault ORDER BY items DESC",
            values,
        ).fetchall()
        found: dict[str, tuple[dict[str, int], dict[str, int], list[float]]] = {}
        for row in rows:
            verdicts, faults, totals = found.setdefault(row["verifier"], ({}, {}, []))
            if row["fault"] is None:
                verdicts[row["verdict"]] = row["items"]
                totals.append(row["total"])
            else:
                faults[row["fault"]] = row["items"]
        rates = [
            Rate(name, verdicts, faults, sum(t) / sum(verdicts.values()) if verdicts else None)
            for name, (verdicts, faults, t) in found.items()
        ]
        return sorted(rates, key=lambda rate: (-rate.judgements - rate.faulted, rate.verifier))

    def pairs(self, first: str, second: str) -> Iterator[tuple[Record, Record]]:
        """Entries of two verifiers on the same item: prompt, response and reference are equal.

        Of a verifier's several entries on an item its newest counts. In the order of the first's.

        Args:
            first: name of a verifier.
            second: name of another.
        """
        ids = self._db.execute(
            "SELECT a.id, b.id FROM "
            "(SELECT max(id) AS id, item_key FROM entries WHERE verifier = ?"
            " AND item_key IS NOT NULL GROUP BY item_key) AS a JOIN "
            "(SELECT max(id) AS id, item_key FROM entries WHERE verifier = ?"
            " AND item_key IS NOT NULL GROUP BY item_key) AS b USING (item_key) ORDER BY a.id",
            (first, second),
        ).fetchall()
        for one, other in ids:
            a, b = self.get(one), self.get(other)
            if a is not None and b is not None:
                yield a, b

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])


def _like(text: str) -> str:
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


def _record(row: sqlite3.Row) -> Record:
    record: Record = dict(zip(row.keys(), tuple(row), strict=True))
    for name in JSON_FIELDS:
        record[name] = json.loads(record[name])
    for name in ("from_cache", "is_dialogue"):
        record[name] = bool(record[name])
    if record["is_dialogue"] and record["response"] is not None:
        record["response"] = json.loads(record["response"])
    if record["item_key"] is not None:
        record["item_key"] = record["item_key"].hex()
    return record
