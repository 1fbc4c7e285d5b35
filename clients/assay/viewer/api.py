"""What the pages ask: a path and a query in, a status and plain data out. No HTTP in it.

    with ViewerApi([Path("runs")]) as api:
        status, found = api.answer("api/items", [("verdict", "incorrect"), ("sort", "-reward")])

Every method may be called from any thread, and blocks. Texts may hold half a surrogate pair: write
them with json.dumps's own `ensure_ascii`.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from assay.kit.runs.rollouts import FOLDER, files_in, thinned
from assay.viewer import items, notes, tokens
from assay.viewer.index import searching
from assay.viewer.index.building import IndexBuilder
from assay.viewer.index.schema import PLACE_BITS, IndexFile, is_broken, open_index
from assay.viewer.queries import comparing, curves, facets, groups, likeness, lists, runs
from assay.viewer.queries.filters import (
    Asking,
    BadQuery,
    ItemFilter,
    Query,
    filter_of,
    identity_of,
    number_of,
)
from assay.viewer.sources import RUN, ViewedSource, about, journal_span, read_lines, state_of

Answer = tuple[int, Any]
_EXPORTED = 200
_MOST_COMPARED = 20
_MOST_SAID = 500


class ViewerApi:
    """Answers over the runs and journals of some paths. A context manager.

    Args:
        paths: of runs, journals, or folders that hold some.
        cache: folder of indexes; by default the user's.
        share: of the time that indexing may take, in (0, 1], where the process has other work.
        background: index in a thread; False: `index_all` does it.

    Raises:
        ConfigError: see `sources_of`.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        cache: Path | None = None,
        *,
        share: float = 1.0,
        background: bool = True,
    ) -> None:
        self._file = IndexFile(paths, cache)
        self._closing, self._wake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._answers: Mapping[str, Callable[[sqlite3.Connection, Query], Any]] = {
            "sources": self._sources,
            "pulse": self._pulse,
            "metrics": self._metrics,
            "steps": self._steps,
            "groups": self._groups,
            "items": self._items,
            "item": self._whole_item,
            "facets": self._facets,
            "curves": self._curves,
            "histogram": self._histogram,
            "compare": self._compare,
            "tokens": self._tokens,
            "timeline": self._timeline,
            "similar": self._similar,
        }
        try:
            self._builder = IndexBuilder(
                self._file.path, paths, share=share, renew=self._file.renew
            )
        except BaseException:
            self._file.close()
            raise
        if background:
            self._thread = threading.Thread(target=self._index, name="viewer-index", daemon=True)
            self._thread.start()

    def __enter__(self) -> ViewerApi:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the indexing; what was indexed stays for the next time."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._builder.close()
        self._file.close()

    def index_all(self) -> None:
        """Indexes all that is there now, without a thread."""
        self._builder.all()

    def answer(self, path: str, query: Query) -> Answer:
        """One question: the status of HTTP, and the answer or {"detail": what to do}."""
        asked = self._answers.get(path.strip("/").removeprefix("api/"))
        if asked is None:
            return 404, {"detail": f"there is no {path[:80]!r}"}
        try:
            with self._reading() as database:
                return 200, asked(database, query)
        except BadQuery as error:
            return 400, {"detail": str(error)}
        except items.GoneError as error:
            return 404, {"detail": str(error)}
        except (sqlite3.Error, OSError) as error:
            if is_broken(error):
                self._builder.broken = True
                self._wake.set()
                return 503, {"detail": f"the index was broken, and is made anew ({error}): wait"}
            return 503, {"detail": f"the index cannot be read: {error}; start the viewer again"}

    def note(self, body: Any) -> Answer:
        """Keeps a note: {"id", "label", "text"}."""
        if not isinstance(body, Mapping) or not all(
            isinstance(body.get(name, ""), str) for name in ("id", "label", "text")
        ):
            return 400, {"detail": "send an object with the texts id, label and text"}
        try:
            number = number_of(body.get("id", ""), self._numbers())
            source = self._source(number)
            place = number & ((1 << PLACE_BITS) - 1)
            row = notes.write(source.notes, place, body.get("label", ""), body.get("text", ""))
        except (BadQuery, ValueError) as error:
            return 400, {"detail": str(error)}
        except OSError as error:
            return 503, {"detail": f"{source.notes.name} cannot be written: {error.strerror}"}
        return 200, {"id": body["id"], **{name: row[name] for name in ("label", "text", "time_s")}}

    def export(self, query: Query) -> Iterator[Mapping[str, Any]]:
        """Rows of a filter's items, oldest first, as their sources have them."""
        for _, _, raw in self._raws(query):
            yield raw

    def labelled(self, query: Query) -> Iterator[dict[str, Any]]:
        """Rows that `assay eval-judge` reads: items of a filter whose notes say right or wrong."""
        said = {number: note for number, note in self._notes().items() if notes.has_label(note)}
        for number, source, raw in self._raws(query, frozenset(said)):
            yield notes.labelled(raw, said[number], self._identity(number, source))

    def events(self, query: Query, after: int) -> tuple[list[dict[str, Any]], int]:
        """Rows of items that came after a mark, at most some, and the next mark; -1 for now.

        Of one source all, by their numbers; of several by time, where one that comes late is left
        out.

        Raises:
            BadQuery: the filter is none.
        """
        with self._reading() as database:
            asking = self._asking(database, query)
            mark = "number" if len(asking.slugs) == 1 else "CAST(time_s * 1e6 AS INTEGER)"
            where, values = asking.where()
            if after < 0:
                kinds = ", ".join(map(str, asking.kinds))
                newest = f"SELECT coalesce(max({mark}), 0) FROM items WHERE kind IN ({kinds})"  # noqa: S608
                return [], int(database.execute(newest).fetchone()[0])
            found = database.execute(
                f"SELECT number, {mark} AS mark FROM items WHERE {where} AND mark > ? "  # noqa: S608
                "ORDER BY mark, number LIMIT ?",
                (*values, after, _EXPORTED),
            ).fetchall()
        rows = []
        for number, mark_of in found:
            after, source = mark_of, self._source(number)
            raw = _kept(source, number)
            if raw is not None:
                rows.append(dict(items.raw_shown(source, raw)))
        return rows, after

    def _identity(self, number: int, source: ViewedSource) -> str:
        return f"{source.slug}:{number & ((1 << PLACE_BITS) - 1)}"

    def _raws(
        self, query: Query, only: frozenset[int] | None = None
    ) -> Iterator[tuple[int, ViewedSource, Mapping[str, Any]]]:
        after = -1
        while True:
            with self._reading() as database:
                asking = self._asking(database, query)
                where, values = asking.where()
                wanted = "" if only is None else f" AND number IN ({_numbers_in(only)})"
                page = database.execute(
                    f"SELECT number FROM items WHERE {where}{wanted} AND number > ? "  # noqa: S608
                    "ORDER BY number LIMIT ?",
                    (*values, after, _EXPORTED),
                ).fetchall()
            for (number,) in page:
                after, source = number, self._source(number)
                with contextlib.suppress(items.GoneError):
                    raw = items.raw_of(source, number & ((1 << PLACE_BITS) - 1))
                    yield number, source, items.raw_shown(source, raw)
            if len(page) < _EXPORTED:
                return

    # -- inside

    def _index(self) -> None:
        self._builder.run(self._closing, self._wake)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """The index as it is now, for one question."""
        database = open_index(self._file.path, write=False)
        try:
            database.execute("BEGIN")
            yield database
        finally:
            database.close()

    def _numbers(self) -> dict[str, int]:
        return {source.slug: number for number, source in self._builder.sources.items()}

    def _source(self, number: int) -> ViewedSource:
        source = self._builder.sources.get(number >> PLACE_BITS)
        if source is None:
            raise BadQuery("its source is gone")
        return source

    def _notes(self) -> dict[int, dict[str, Any]]:
        return {
            (number << PLACE_BITS) | place: note
            for number, source in self._builder.sources.items()
            for place, note in notes.read(source.notes).items()
            if place < 1 << PLACE_BITS
        }

    def _asking(self, database: sqlite3.Connection, query: Query) -> Asking:
        """The question; a run's own journal is asked where it is named."""
        asked = filter_of(query)
        named = asked.chosen.get("source", frozenset())
        slugs = {
            number: source.slug
            for number, source in self._builder.sources.items()
            if source.slug in named or (not named and not source.inside)
        }
        unknown = named - set(slugs.values())
        if unknown:
            raise BadQuery(f"there is no source {min(unknown)[:80]!r}")
        noted = None
        if asked.notes:
            noted = frozenset(
                number
                for number, note in self._notes().items()
                if "any" in asked.notes or note["label"] in asked.notes
            )
        return Asking(database, slugs, asked, self._search(asked), noted)

    def _search(self, asked: ItemFilter) -> int | None:
        if not asked.search:
            return None
        found = searching.wanted(self._file.path, asked.search)
        self._wake.set()
        return found

    def _runs(self, query: Query) -> dict[str, Path]:
        named = {value for name, value in query if name == "source"}
        return {
            source.slug: source.path
            for source in self._builder.sources.values()
            if source.kind == RUN and (not named or source.slug in named)
        }

    def _item(self, query: Query) -> tuple[int, ViewedSource, dict[str, Any]]:
        identity = _first(query, "id")
        number = number_of(identity, self._numbers())
        source = self._source(number)
        return number, source, items.raw_of(source, number & ((1 << PLACE_BITS) - 1))

    # -- answers

    def _sources(self, database: sqlite3.Connection, _query: Query) -> Any:
        version = database.execute("SELECT version FROM changes").fetchone()[0]
        told = {
            row[0]: row[1:]
            for row in database.execute("SELECT id, done, problem FROM sources").fetchall()
        }
        sums = {
            row[0]: row[1:]
            for row in database.execute(
                "SELECT source, sum(items), min(time_min), max(time_max), "
                "max(CASE WHEN step >= 0 THEN step END), group_concat(DISTINCT phase) "
                "FROM cells JOIN kinds ON kinds.id = kind GROUP BY source"
            ).fetchall()
        }
        lost = {
            row[0]: row[1:]
            for row in database.execute(
                "SELECT source, sum(bad), group_concat(nullif(problem, ''), '; ') FROM units "
                "WHERE bad OR problem <> '' GROUP BY source"
            ).fetchall()
        }
        return {
            "sources": [
                _source_told(source, told.get(number, (0.0, "")), sums.get(number),
                             lost.get(number, (0, None)), self._builder.trouble)
                for number, source in self._builder.sources.items()
            ],
            "version": version,
            "kept": self._file.kept,
        }  # fmt: skip

    def _pulse(self, database: sqlite3.Connection, _query: Query) -> Any:
        done = dict(database.execute("SELECT slug, done FROM sources").fetchall())
        version = database.execute("SELECT version FROM changes").fetchone()[0]
        return {"version": version, "indexed": done}

    def _metrics(self, _database: sqlite3.Connection, query: Query) -> Any:
        return runs.metrics(
            self._runs(query), [value for name, value in query if name == "name" and value]
        )

    def _steps(self, database: sqlite3.Connection, query: Query) -> Any:
        return groups.by_step(self._asking(database, query))

    def _groups(self, database: sqlite3.Connection, query: Query) -> Any:
        return groups.by_prompt(self._asking(database, query), _whole(query, "newest", 20_000))

    def _items(self, database: sqlite3.Connection, query: Query) -> Any:
        asking = self._asking(database, query)
        limit = _whole(query, "limit", 50)
        found = lists.page(asking, _first(query, "sort", "-time"), _first(query, "after"), limit)
        said = self._notes()
        numbers = self._numbers()
        for one in found["items"]:
            one["note"] = said.get(number_of(one["id"], numbers))
        if asking.search is not None:
            found["searched"] = searching.progress(database, asking.search, asking.slugs)
        return found

    def _facets(self, database: sqlite3.Connection, query: Query) -> Any:
        asking = self._asking(database, query)
        told = facets.facets(asking)
        said = [
            note for number, note in self._notes().items() if number >> PLACE_BITS in asking.slugs
        ]
        return {**told, "notes": notes.summed(iter(said))}

    def _curves(self, database: sqlite3.Connection, query: Query) -> Any:
        named = (_first(query, name, otherwise) for name, otherwise in
                 (("x", "step"), ("by", "verifier"), ("y", "reward")))  # fmt: skip
        return curves.curves(self._asking(database, query), *named)

    def _histogram(self, database: sqlite3.Connection, query: Query) -> Any:
        of, by = _first(query, "of", "reward"), _first(query, "by", "verifier")
        return curves.histogram(self._asking(database, query), of, by)

    def _compare(self, database: sqlite3.Connection, query: Query) -> Any:
        limit = _whole(query, "limit", _MOST_COMPARED)
        names = (_first(query, "a"), _first(query, "b"))
        cell = (_first(query, "va"), _first(query, "vb"))
        over = _whole(query, "over", comparing.NEWEST)
        return comparing.compare(self._asking(database, query), names, limit, over, cell)

    def _whole_item(self, database: sqlite3.Connection, query: Query) -> Any:
        number, source, raw = self._item(query)
        own = [("source", source.slug)]
        asking = self._asking(database, own)
        rows = lists.rows_of(asking, [number])
        note = self._notes().get(number)
        return {
            "item": rows[0] if rows else {"id": self._identity(number, source)},
            **items.whole(source, raw),
            "labels": rows[0]["labels"] if rows else {},
            "around": lists.around(asking, number),
            "notes": [note] if note else [],
            "raw": items.raw_shown(source, raw),
        }

    def _tokens(self, _database: sqlite3.Connection, query: Query) -> Any:
        _, source, raw = self._item(query)
        if source.kind != RUN:
            raise BadQuery("a journal holds no tokens; ask the run's rollout")
        return tokens.of_rollout(raw, tokens.vocabulary(source.path / FOLDER))

    def _timeline(self, _database: sqlite3.Connection, query: Query) -> Any:
        low, high = (_whole(query, name, otherwise) for name, otherwise in
                     (("from", 0), ("to", 2**53)))  # fmt: skip
        return tokens.timeline(self._runs(query), low, high)

    def _similar(self, database: sqlite3.Connection, query: Query) -> Any:
        number, source, _ = self._item(query)
        newest = database.execute(
            "SELECT number FROM items WHERE number >= ? AND number < ? AND number <> ? "
            "ORDER BY number DESC LIMIT ?",
            (*_range(number), number, likeness.NEWEST),
        ).fetchall()
        texts = {
            one: likeness.response_of(raw)
            for one in (number, *(row[0] for row in newest))
            if (raw := _kept(source, one)) is not None
        }
        alike = dict(likeness.alike(texts, number))
        rows = lists.rows_of(self._asking(database, [("source", source.slug)]), list(alike))
        named = {identity_of(one, {number >> PLACE_BITS: source.slug}): one for one in alike}
        return [{**row, "likeness": round(alike[named[row["id"]]], 4)} for row in rows]


def _source_told(
    source: ViewedSource,
    told: tuple[float, str],
    sums: tuple[Any, ...] | None,
    lost: tuple[int, str | None],
    trouble: str,
) -> dict[str, Any]:
    total, first, last, step, phases = sums or (0, None, None, None, "")
    problems = [one for one in (told[1], trouble) if one]
    if lost[0]:
        problems.append(f"{lost[0]} rows could not be read and are left out")
    if lost[1]:
        problems.append(lost[1] if len(lost[1]) < _MOST_SAID else f"{lost[1][:_MOST_SAID]} ...")
    known = about(source)
    if source.kind == RUN:
        rows, broken = read_lines(source.path / "metrics.jsonl")
        if broken:
            problems.append(f"{broken} rows of metrics.jsonl could not be read")
        steps = [row["step"] for row in rows if isinstance(row.get("step"), int)]
        files = files_in(source.path / FOLDER)
        step = max([*steps, *(one.step for one in files[-1:])], default=step)
        with contextlib.suppress(OSError, ValueError):
            if gone := thinned(source.path / FOLDER):
                problems.append(f"{gone.get('removed')} steps are gone: {gone.get('why')}")
    else:
        with contextlib.suppress(sqlite3.Error):
            low, high = journal_span(source.path)
            total = max(total, high - low + 1)
    return {
        "id": source.slug,
        "kind": source.kind,
        "name": source.name,
        "inside": source.inside,
        "state": state_of(source),
        "items": total,
        "indexed": told[0],
        "first_s": first,
        "last_s": last,
        "step": step,
        "steps": known.get("steps"),
        "phases": sorted(filter(None, (phases or "").split(","))),
        "about": known,
        "problems": problems,
    }


def _first(query: Query, name: str, otherwise: str = "") -> str:
    return next((value for key, value in query if key == name and value), otherwise)


def _whole(query: Query, name: str, otherwise: int) -> int:
    text = _first(query, name)
    if not text:
        return otherwise
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise BadQuery(f"{name}={text[:40]!r} is no whole number")
    return int(text)


def _numbers_in(numbers: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _range(number: int) -> tuple[int, int]:
    return (number >> PLACE_BITS) << PLACE_BITS, ((number >> PLACE_BITS) + 1) << PLACE_BITS


def _kept(source: ViewedSource, number: int) -> dict[str, Any] | None:
    try:
        return items.raw_of(source, number & ((1 << PLACE_BITS) - 1))
    except items.GoneError:
        return None
