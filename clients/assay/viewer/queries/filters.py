"""Which items: the filter of an address, and its SQL over the index."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from assay.viewer.index import narrow
from assay.viewer.index.schema import PLACE_BITS, source_range

FACETS = (
    "source", "phase", "verifier", "version", "verdict", "fault", "suspicion", "environment",
    "ending", "truncated", "appeal", "label",
)  # fmt: skip
RANGES = ("step", "time", "reward", "length")
_COLUMNS = {"time": "time_s"}
_ANY, _NONE = "any", "none"


class BadQuery(ValueError):
    """An address asks for what there is not; the text says what to write."""


@dataclass(frozen=True, slots=True)
class KindRow:
    """A row of `kinds`, read.

    Attributes:
        source: the slug.
        labels: None where they are looked up item by item.
    """

    number: int
    source: str
    phase: str
    verifier: str
    version: str
    verdict: str
    fault: str
    suspicions: tuple[str, ...]
    environment: str
    ending: str
    truncated: str
    labels: Mapping[str, str] | None
    appeal: str

    def values(self, facet: str) -> tuple[str, ...]:
        """What it has of a facet."""
        if facet == "suspicion":
            return self.suspicions
        if facet == "label":
            return tuple(f"{name}={value}" for name, value in (self.labels or {}).items())
        value: str = getattr(self, facet)
        return (value,) if value else ()


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Chooses items: those that meet all that is set; of several values of one name any.

    Attributes:
        chosen: values by name, of FACETS; "any" and "none" for faults, suspicions and appeals.
        ranges: (least, most) by name, of RANGES, both included; None for open.
        problems: names of problems.
        draws: numbers.
        text: occurs in a text of the item, in upper or lower case of ASCII.
        request: id of a call.
        item: the caller's id.
        notes: labels of notes; "any".
    """

    chosen: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    draws: tuple[int, ...] = ()
    text: str = ""
    request: str = ""
    item: str = ""
    notes: frozenset[str] = frozenset()

    def admits(self, kind: KindRow, *, but: str = "") -> bool:
        """Whether items of a kind may meet it; `but` is the facet that is not looked at."""
        return all(
            _meets(kind, facet, values) for facet, values in self.chosen.items() if facet != but
        )

    @property
    def search(self) -> str:
        """What is to be searched in the sources; empty for nothing."""
        if not (self.text or self.request or self.item):
            return ""
        return json.dumps([self.text, self.request, self.item])


def _meets(kind: KindRow, facet: str, values: frozenset[str]) -> bool:
    if facet == "label":
        if kind.labels is None:
            return True
        wanted: dict[str, set[str]] = {}
        for one in values:
            name, _, value = one.partition("=")
            wanted.setdefault(name, set()).add(value)
        return all(kind.labels.get(name) in those for name, those in wanted.items())
    found = kind.values(facet)
    if not values.isdisjoint(found):
        return True
    if facet in ("fault", "suspicion", "appeal"):
        return (_ANY in values and bool(found)) or (_NONE in values and not found)
    return "" in values and not found


Query = Sequence[tuple[str, str]]


def filter_of(query: Query) -> ItemFilter:
    """The filter of an address; names that are none of a filter are passed over.

    Raises:
        BadQuery: a value has not the form of its name.
    """
    chosen: dict[str, set[str]] = {}
    bounds: dict[str, list[float | None]] = {}
    more: dict[str, list[str]] = {}
    for name, value in query:
        stem, _, end = name.rpartition("_")
        if name == "step":
            number = _number(name, value)
            bounds["step"] = [number, number]
        elif name in FACETS:
            if value or name not in ("source", "label"):
                chosen.setdefault(name, set()).add(_sound(name, value))
        elif stem in RANGES and end in ("from", "to"):
            if value:
                bounds.setdefault(stem, [None, None])[end == "to"] = _number(name, value)
        elif value and name in ("problem", "draw", "text", "request", "item", "note"):
            more.setdefault(name, []).append(value)
    return ItemFilter(
        {name: frozenset(values) for name, values in chosen.items() if values != {""}},
        {name: (low, high) for name, (low, high) in bounds.items()},
        tuple(more.get("problem", ())),
        tuple(int(_number("draw", one)) for one in more.get("draw", ())),
        more.get("text", [""])[-1],
        more.get("request", [""])[-1],
        more.get("item", [""])[-1],
        frozenset(more.get("note", ())),
    )


def _sound(name: str, value: str) -> str:
    if name == "truncated":
        value = {"true": "1", "false": "0"}.get(value, value)
    return value


def _number(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise BadQuery(f"{name}={text[:40]!r} is no number")
    return found


@dataclass(frozen=True)
class Asking:
    """A question to the index: the filter with the kinds that it admits.

    Attributes:
        database: the index.
        slugs: of the sources that are asked, by their numbers.
        asked: the filter.
        search: number of its search in the index; None without one.
        noted: numbers of the items whose notes it asks for; None without.
    """

    database: sqlite3.Connection
    slugs: Mapping[int, str]
    asked: ItemFilter
    search: int | None = None
    noted: frozenset[int] | None = None

    @cached_property
    def kinds(self) -> dict[int, KindRow]:
        """The kinds of the sources, by number."""
        rows = self.database.execute("SELECT * FROM kinds").fetchall()
        return {row[0]: _kind(row, self.slugs) for row in rows if row[1] in self.slugs}

    @cached_property
    def admitted(self) -> dict[int, KindRow]:
        """Those that the filter admits."""
        return self.admitted_but("")

    def admitted_but(self, facet: str) -> dict[int, KindRow]:
        """Those that it admits for all values of a facet."""
        return {
            number: kind
            for number, kind in self.kinds.items()
            if self.asked.admits(kind, but=facet)
        }

    @property
    def by_cells(self) -> bool:
        """Whether sums by kind, step and minute answer it."""
        asked = self.asked
        return (
            set(asked.ranges) <= {"step"}
            and not asked.problems
            and not asked.draws
            and self.search is None
            and self.noted is None
            and not self._looked_up
        )

    @property
    def by_bars(self) -> bool:
        """Whether counts by kind answer it."""
        return self.by_cells and not self.asked.ranges

    @property
    def items_by_time(self) -> str:
        """The table for a question after the newest items; kinds stand in the index by time."""
        return "items INDEXED BY by_time" if self.by_bars else "items"

    @cached_property
    def _looked_up(self) -> bool:
        """Whether labels are looked up item by item."""
        return "label" in self.asked.chosen and any(
            kind.labels is None for kind in self.admitted.values()
        )

    def where(self, kinds: Iterable[int] | None = None) -> tuple[str, list[Any]]:
        """The condition on `items`, and its values.

        Args:
            kinds: which; None for those that the filter admits.
        """
        numbers = sorted(self.admitted if kinds is None else kinds)
        terms, values = self.of_steps()
        if not numbers or len(numbers) < self._all_kinds:
            terms.insert(0, f"kind IN ({', '.join(map(str, numbers))})")
        for name, (low, high) in self.asked.ranges.items():
            if name != "step":
                column = _COLUMNS.get(name, name)
                terms += [
                    f"{column} {sign} ?"
                    for sign, bound in ((">=", low), ("<=", high))
                    if bound is not None
                ]
                values += [bound for bound in (low, high) if bound is not None]
        if self.asked.problems:
            marks = ", ".join("?" * len(self.asked.problems))
            terms.append(f"problem IN (SELECT id FROM names WHERE text IN ({marks}))")  # noqa: S608
            values += self.asked.problems
        if self.asked.draws:
            terms.append(f"draw IN ({', '.join('?' * len(self.asked.draws))})")
            values += self.asked.draws
        if self.search is not None:
            terms.append("number IN (SELECT number FROM hits WHERE search = ?)")
            values.append(self.search)
        if self.noted is not None:
            terms.append(f"number IN ({', '.join(map(str, sorted(self.noted)))})")
        if self._looked_up:
            self._where_labels(terms, values)
        return " AND ".join(terms) or "1", values

    def _where_labels(self, terms: list[str], values: list[Any]) -> None:
        wanted: dict[str, list[str]] = {}
        for one in self.asked.chosen["label"]:
            name, _, value = one.partition("=")
            wanted.setdefault(name, []).append(value)
        for name, those in wanted.items():
            marks = ", ".join("?" * len(those))
            terms.append(
                "number IN (SELECT texts.number FROM texts, json_each(texts.labels) AS label "  # noqa: S608
                f"WHERE label.key = ? AND label.value IN ({marks}))"
            )
            values += [name, *those]

    def of_steps(self) -> tuple[list[str], list[Any]]:
        """Conditions on the step alone, which `cells` have as well."""
        low, high = self.asked.ranges.get("step", (None, None))
        terms, values = [], []
        if low is not None or high is not None:
            terms = ["step >= ?"]
            values = [0.0 if low is None else low]
        if high is not None:
            terms.append("step <= ?")
            values.append(high)
        return terms, values

    @cached_property
    def _all_kinds(self) -> int:
        return int(self.database.execute("SELECT count(*) FROM kinds").fetchone()[0])

    def of_cells(self, kinds: Iterable[int] | None = None) -> tuple[str, list[Any]]:
        """The condition on `cells`, and its values."""
        numbers = sorted(self.admitted if kinds is None else kinds)
        terms, values = self.of_steps()
        terms.insert(0, f"kind IN ({', '.join(map(str, numbers))})")
        return " AND ".join(terms), values

    def counts(self, *, every_kind: bool = False) -> dict[int, int]:
        """Items by kind, under all of the filter but what kinds decide where `every_kind`."""
        kinds = self.kinds if every_kind else self.admitted
        if self.by_cells:
            where, values = self.of_cells(kinds)
            sql = f"SELECT kind, sum(items) FROM cells WHERE {where} GROUP BY kind"  # noqa: S608
        else:
            where, values = self.where(kinds)
            sql = f"SELECT kind, count(*) FROM items WHERE {where} GROUP BY kind"  # noqa: S608
        return dict(self.database.execute(sql, values).fetchall())


def _kind(row: tuple[Any, ...], slugs: Mapping[int, str]) -> KindRow:
    number, source, phase, verifier, version, verdict, fault, suspicions = row[:8]
    environment, ending, truncated, labels, appeal = row[8:]
    return KindRow(
        number,
        slugs[source],
        phase,
        verifier,
        version,
        verdict,
        fault,
        tuple(_texts(suspicions)),
        environment,
        ending,
        str(truncated),
        _labels(labels),
        appeal,
    )


def _texts(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [one for one in narrow.listed(found) if isinstance(one, str)]


def _labels(text: str) -> dict[str, str] | None:
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {name: narrow.name(value) for name, value in narrow.mapping(found).items()}


def number_of(identity: str, numbers: Mapping[str, int]) -> int:
    """The number of an item by its id, SLUG:PLACE.

    Raises:
        BadQuery: it is no id, or of no source.
    """
    slug, _, place = identity.rpartition(":")
    if not (place.isdecimal() and place.isascii() and len(place) < 17 and slug in numbers):
        raise BadQuery(f"{identity[:80]!r} is no item of these sources")
    first, end = source_range(numbers[slug])
    if first + int(place) >= end:
        raise BadQuery(f"{identity[:80]!r} is no item of these sources")
    return first + int(place)


def identity_of(number: int, slugs: Mapping[int, str]) -> str:
    """The id of an item, by its number."""
    return f"{slugs[number >> PLACE_BITS]}:{number & ((1 << PLACE_BITS) - 1)}"
