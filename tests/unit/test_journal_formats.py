"""A journal of an older format: it is read as it is, and goes on in today's."""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import sqlite3
import threading
from pathlib import Path

import pytest

from assay.kit.errors import ConfigError
from assay.reward_server.domain import Appeal, Hearing
from assay.reward_server.journal.store import FORMAT, MIN_LIMIT_BYTES, Store
from assay.viewer.journals.reader import Filter, Reader, Record
from assay.viewer.journals.rows import row_of
from journal_support import filled, judgement, settled


@pytest.fixture
def old(tmp_path: Path, repository: Path) -> Path:
    path = tmp_path / "old.sqlite"
    database = sqlite3.connect(path)
    script = repository / "tests" / "unit" / "journal_format_1.sql"
    database.executescript(script.read_text(encoding="utf-8"))
    database.close()
    return path


def read(path: Path, chosen: Filter | None = None) -> list[Record]:
    with Reader(path) as reader:
        found = list(reader.each(chosen))
        assert reader.last(100, chosen) == found
        assert sum(r.judgements + r.faulted for r in reader.rates(chosen)) == len(found)
    return found


def test_it_is_read_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    found = read(old)
    assert [record["id"] for record in found] == list(range(1, 9))
    assert all(record["labels"] == {} for record in found)
    assert {record["parameters"] for record in found} == {None}
    assert read(old, Filter(labels=(("run", "a"),))) == []
    assert old.read_bytes() == before


def test_it_goes_on_in_todays_format(old: Path) -> None:
    before = read(old)
    asyncio.run(filled(old, [[settled("new", labels={"run": "a"})]]))
    found = read(old)
    assert found[:-1] == before, "the entries of before are as they were"
    assert (found[-1]["id"], found[-1]["item_id"], found[-1]["labels"]) == (9, "new", {"run": "a"})
    assert read(old, Filter(labels=(("run", "a"),))) == found[-1:]
    database = sqlite3.connect(old)
    assert database.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    Store(old, MIN_LIMIT_BYTES).close()
    assert read(old) == found, "a second start changes nothing"


def test_a_reader_of_before_goes_on_while_it_changes(old: Path) -> None:
    with Reader(old) as reader:
        first = reader.get(1)
        asyncio.run(filled(old, [[settled("new", labels={"run": "a"})]]))
        assert reader.get(1) == first
        assert [record["item_id"] for record in reader.each(after=8)] == ["new"]


def test_what_may_not_be_whole_is_said(old: Path) -> None:
    rows = {record["item_id"]: row_of(record) for record in read(old)}
    assert {name: row.get("journal_cut") for name, row in rows.items()} == {
        "right": None, "wrong": None, "late": None, "talk": None, "unknown": None,
        "several": ["reference"], "data": ["reference"], "long": ["response"],
    }  # fmt: skip
    assert rows["talk"]["turns"][0] == {"role": "assistant", "content": "41", "from_policy": True}
    assert "verifier" not in rows["unknown"]


def test_a_server_waits_for_one_that_ends(tmp_path: Path) -> None:
    """As a run that is resumed right after it was killed."""
    path = tmp_path / "journal"
    first = Store(path, MIN_LIMIT_BYTES)
    release = threading.Timer(0.5, fcntl.flock, [first._lock, fcntl.LOCK_UN])
    release.start()
    try:
        Store(path, MIN_LIMIT_BYTES).close()
    finally:
        release.join()
        first.close()


@pytest.mark.parametrize("version", [0, 4, 99])
def test_another_format_is_refused(old: Path, version: int) -> None:
    database = sqlite3.connect(old)
    database.execute(f"PRAGMA user_version = {version}")
    database.close()
    with pytest.raises(ConfigError, match=f"has format {version}"):
        Reader(old)
    with pytest.raises(ConfigError, match=f"has format {version}"):
        Store(old, MIN_LIMIT_BYTES)


APPEALED = Appeal(
    "answer",
    Hearing("match", "1", "incorrect", 0.0),
    Hearing("judge", "3", "correct", 1.0),
    drawn=False,
    probability=1.0,
)
UPHELD = dataclasses.replace(APPEALED, second=Hearing("judge", "3", "incorrect", 0.0), drawn=True)
UNASKED = dataclasses.replace(APPEALED, second=None)


@pytest.mark.parametrize("version", [1, 2])
def test_appeals_go_into_a_journal_of_before_them(old: Path, tmp_path: Path, version: int) -> None:
    path = old
    if version == 2:
        path = tmp_path / "two.sqlite"
        asyncio.run(filled(path, [[settled("before")]]))
        database = sqlite3.connect(path)
        database.executescript("ALTER TABLE entries DROP COLUMN appeal; PRAGMA user_version = 2;")
        database.close()
    before = read(path)
    assert {record["appeal"] for record in before} == {None}
    assert read(path, Filter(appeal="any")) == []
    outcomes = [judgement(appeal=one) for one in (APPEALED, UPHELD, UNASKED, None)]
    new = [settled(name, outcome) for name, outcome in zip("abcd", outcomes, strict=True)]
    asyncio.run(filled(path, [new]))
    found = read(path)
    assert found[:-4] == before
    kept = [record["appeal"] for record in found[-4:]]
    assert kept == [dataclasses.asdict(APPEALED), dataclasses.asdict(UPHELD), None, None]
    assert [row_of(record)["appeal"] for record in found[-4:]] == kept
    assert [record["item_id"] for record in read(path, Filter(appeal="any"))] == ["a", "b"]
    assert [record["item_id"] for record in read(path, Filter(appeal="changed"))] == ["a"]


@pytest.mark.parametrize(
    "broken", ["no JSON", "[]", "7", '{"component": 1}', '{"first": {}, "second": null}']
)
def test_an_appeal_that_is_none_is_not_shown(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "broken.sqlite"
    asyncio.run(filled(path, [[settled("a", judgement(appeal=APPEALED))]]))
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE entries SET appeal = ?", (broken,))
    database.close()
    [record] = read(path)
    assert record["appeal"] is None
    assert read(path, Filter(appeal="changed")) == []
