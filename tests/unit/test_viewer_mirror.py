"""Mirrors of other servers' journals: the same entries, and what else a server may send."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.errors import ConfigError
from assay.reward_server.domain import Appeal, Hearing
from assay.reward_server.journal.entries import Entry
from assay.viewer.app import dumped
from assay.viewer.journals.reader import JSON_FIELDS, Reader
from assay.viewer.mirror import (
    COLUMNS,
    PAGE_ROWS,
    Mirror,
    Mirrors,
    is_remote,
    read_page,
    remotes_of,
)
from journal_support import LATE, filled, judgement, settled

(ONE,) = remotes_of("http://127.0.0.1:9/journal")


def test_the_columns_are_those_of_an_entry() -> None:
    assert set(COLUMNS) == {field.name for field in fields(Entry)}


def page(path: Path, after: int) -> list[Mapping[str, Any]]:
    """As it comes over the wire."""
    found: list[Mapping[str, Any]] = [json.loads(dumped(row)) for row in read_page(path, after)]
    return found


def fill(path: Path, given: list[Any]) -> None:
    asyncio.run(filled(path, given))


def records(path: Path) -> list[dict[str, Any]]:
    with Reader(path) as reader:
        return list(reader.each())


def caught_up(mirror: Mirror, path: Path) -> int:
    """Takes pages until nothing comes; how many entries did."""
    total = 0
    while came := mirror.take(page(path, mirror.last()[0])):
        total += max(0, came)
    return total


def offers(count: int, name: str = "a") -> list[Any]:
    made = [settled(f"{name}{n}", response=f"\u2028 {n} <b>", prompt="p") for n in range(count)]
    return [
        made,
        [settled("late", LATE, response="slow"), settled("x", judgement(0.0, "incorrect"))],
    ]


def test_a_mirror_has_what_the_journal_has(tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    fill(journal, offers(PAGE_ROWS + 30))
    with closing(Mirror(tmp_path, ONE)) as mirror:
        assert caught_up(mirror, journal) == PAGE_ROWS + 32
        assert caught_up(mirror, journal) == 0
        assert records(mirror.path) == records(journal)
        assert stat.S_IMODE(mirror.path.stat().st_mode) == 0o600
        with Reader(mirror.path) as reader:
            assert [rate.judgements for rate in reader.rates()] == [PAGE_ROWS + 31]
    with closing(Mirror(tmp_path, ONE)) as again:  # it goes on where it was
        fill(journal, offers(3, "b"))
        assert caught_up(again, journal) == 5
        assert records(again.path) == records(journal)


def test_a_mirror_of_before_appeals_goes_on(tmp_path: Path) -> None:
    journal, said = tmp_path / "journal.sqlite", Hearing("exact", "1", "correct", 1.0)
    fill(journal, offers(3))
    with closing(Mirror(tmp_path, ONE)) as mirror:
        caught_up(mirror, journal)
    with closing(sqlite3.connect(mirror.path)) as database:
        database.executescript("ALTER TABLE entries DROP COLUMN appeal; PRAGMA user_version = 2;")
    appeal = Appeal("answer", said, said, drawn=True, probability=0.5)
    fill(journal, [[settled("new", judgement(appeal=appeal))]])
    with closing(Mirror(tmp_path, ONE)) as again:
        assert caught_up(again, journal) == 1
        assert records(again.path) == records(journal)
    assert records(again.path)[-1]["appeal"]["probability"] == 0.5


def test_what_a_server_let_go_goes_here_too(tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    fill(journal, offers(10))
    with closing(Mirror(tmp_path, ONE)) as mirror:
        caught_up(mirror, journal)
        with closing(sqlite3.connect(journal)) as db, db:
            db.execute("DELETE FROM entries WHERE id <= 4")
            db.execute("UPDATE totals SET expired = 4")
        fill(journal, offers(1, "b"))
        assert caught_up(mirror, journal) == 3
        assert records(mirror.path) == records(journal)
        with Reader(mirror.path) as reader:
            assert reader.summary().expired == 4


@pytest.mark.parametrize("count", [2, 40])
def test_a_journal_that_began_anew_is_fetched_anew(tmp_path: Path, count: int) -> None:
    first, second = tmp_path / "first.sqlite", tmp_path / "second.sqlite"
    fill(first, offers(10))
    fill(second, offers(count, "new"))
    with closing(Mirror(tmp_path, ONE)) as mirror:
        caught_up(mirror, first)
        assert mirror.take(page(second, mirror.last()[0])) == -1
        assert caught_up(mirror, second) == count + 2
        assert records(mirror.path) == records(second)


HEAD = {"format": 2, "first": 1, "last": 9, "seen_s": None, "dropped": 0, "expired": 0}


def entry(**changes: Any) -> dict[str, Any]:
    made = dict.fromkeys(COLUMNS, "")
    made |= dict.fromkeys(JSON_FIELDS, "{}") | {"id": 1, "time_s": 1.0, "item_key": None}
    return made | changes


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{"format": 99}],
        [{}],
        [{**HEAD, "last": "9"}, entry()],
        [{**HEAD, "first": -1}, entry()],
        [HEAD, entry(id=0)],
        [HEAD, entry(id="1; DROP TABLE entries")],
        [HEAD, entry(id=2**64)],
        [HEAD, entry(id=True), entry(id=1)],
        [HEAD, entry(response=["a"])],
        [HEAD, entry(components="{")],
        [HEAD, entry(labels="[" * 50_000)],
        [HEAD, entry(item_key="zz")],
        [HEAD, entry(response_chars=2**70)],
    ],
)
def test_what_is_no_page_changes_nothing(tmp_path: Path, lines: list[Any]) -> None:
    with closing(Mirror(tmp_path, ONE)) as mirror:
        with pytest.raises((ValueError, RecursionError, sqlite3.Error)):
            mirror.take(lines)
        assert mirror.last() == (0, None)
        assert (
            mirror.take([HEAD, entry(unknown="; --", response="\ud800'; DROP TABLE entries")]) == 1
        )
        assert mirror.last() == (1, 1.0)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("id"), inner),
    max_leaves=6,
))  # fmt: skip
def test_any_value_is_refused_or_kept(value: Any) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name, closing(Mirror(Path(name), ONE)) as mirror:
        for changes in ({"response": value}, {"id": value}, {"spans": value}):
            try:
                mirror.take([HEAD, entry(**changes)])
            except (ValueError, sqlite3.Error):
                continue
        assert mirror.last()[0] >= 0


@pytest.mark.parametrize(
    "url",
    ["http:///journal", "https://user:secret@host/journal", "https://host:99999/j", "https://host/j?a=b",
     "https://host/j#x", "https://"],
)  # fmt: skip
def test_what_is_no_address_is_said_without_its_secrets(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        remotes_of(url)
    assert "secret" not in str(caught.value)


def test_addresses_of_a_name_are_servers_of_their_own() -> None:
    found = remotes_of("dns+http://localhost:8080/journal/")
    assert {one.address for one in found} <= {"127.0.0.1", "::1"}
    assert all((one.host, one.port, one.path) == ("localhost", 8080, "/journal/") for one in found)
    assert len({one.file for one in found}) == len(found)
    (secure,) = remotes_of("https://a.example/x/journal")
    assert (secure.port, secure.path, secure.secure) == (443, "/x/journal/", True)
    assert is_remote("https://a")
    assert is_remote("dns+http://a")
    assert not any(map(is_remote, ("runs/a", "C:/x", "file:///etc/passwd", "ftp://a")))


class Answering(BaseHTTPRequestHandler):
    """A server of an attacker's choice."""

    asked: list[tuple[str, str | None]]
    reply: Any

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))  # type: ignore[attr-defined]
        status, headers, body = self.server.reply(self.path)  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    made: Any = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    made.asked = []
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def mirrors(server: Any, folder: Path, said: list[str]) -> Mirrors:
    return Mirrors(
        [f"http://127.0.0.1:{server.server_port}/journal"], folder, "tok", say=said.append
    )


def test_pages_are_fetched_with_the_token(server: Any, tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    fill(journal, offers(PAGE_ROWS + 5))

    def reply(path: str) -> tuple[int, dict[str, str], bytes]:
        after = int(parse_qs(urlsplit(path).query)["after"][0])
        return 200, {}, b"\n".join(map(dumped, read_page(journal, after)))

    server.reply = reply
    said: list[str] = []
    followed = mirrors(server, tmp_path / "mirrors", said)
    assert [followed.fetch() for _ in range(3)] == [PAGE_ROWS, 7, 0]
    (path,) = followed.folder.glob("*.sqlite")
    assert records(path) == records(journal)
    assert {token for _, token in server.asked} == {"Bearer tok"}
    assert stat.S_IMODE(followed.folder.stat().st_mode) == 0o700
    assert said == []
    journal.unlink()
    fill(journal, offers(4, "new"))
    assert followed.fetch() == 6
    assert records(path) == records(journal)


@pytest.mark.parametrize(
    "answer",
    [
        (302, {"Location": "http://127.0.0.1:1/steal"}, b"", "answered 302"),
        (401, {}, b"", "--token-file"),
        (403, {}, b"", "--token-file"),
        (404, {}, b"", "--journal"),
        (200, {}, b"<html>", ""),
        (200, {}, b"[1]", "no page"),
        (200, {}, b"[" * 100_000, ""),
        (200, {}, b"", "no page"),
        (200, {"X": "a" * 70_000}, b"{}", ""),
    ],
)
def test_what_is_no_journal_is_said_once(server: Any, tmp_path: Path, answer: Any) -> None:
    said: list[str] = []
    *reply, told = answer
    server.reply = lambda _path: reply
    followed = mirrors(server, tmp_path, said)
    assert [followed.fetch(), followed.fetch()] == [-1, -1]
    (line,) = said
    assert f"127.0.0.1:{server.server_port}" in line
    assert told in line
    assert "tok" not in line.replace("--token-file", "").replace("token", "")
    assert len(server.asked) == 2, "a redirect is followed nowhere"
    server.reply = lambda _path: (200, {}, dumped(HEAD | {"last": 0, "first": 0}))
    assert followed.fetch() == 0
    assert said[1:] == [f"127.0.0.1:{server.server_port} answers again"]


def test_the_thread_goes_on_and_ends(server: Any, tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    fill(journal, offers(2 * PAGE_ROWS))
    server.reply = lambda path: (
        200, {}, b"\n".join(map(dumped, read_page(journal, int(path.partition("after=")[2]))))
    )  # fmt: skip
    with mirrors(server, tmp_path / "mirrors", []) as followed:
        (path,) = followed.folder.glob("*.sqlite")
        waited = threading.Event()
        while len(records(path)) < 2 * PAGE_ROWS + 2:
            waited.wait(0.01)
    assert records(path) == records(journal)
