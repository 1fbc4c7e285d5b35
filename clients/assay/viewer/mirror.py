"""Copies of other servers' journals: entries are fetched as they come, and kept in files here.

A server shows its entries at HOST/journal/entries to its operator (`read_page` makes the answer).
Each server has a journal of its own in the mirrors' folder, with the ids that entries have there;
so they are read like any journal, beside one another. `dns+http://NAME:PORT/journal` stands for a
server at each address of the name, as of a headless service of Kubernetes; its addresses are asked
for again as time goes on, and what a server said stays when it has gone.

Covered: an answer's redirect is followed nowhere, so that the token goes to the named host alone; a
server may send what it likes, and gets texts and numbers of known columns into a file of mode 0600.
Entries that the server let go, go here too. A server whose journal began anew is fetched anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import socket
import sqlite3
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from assay.kit.errors import ConfigError
from assay.viewer.journals.reader import APPLICATION_ID, FORMAT, FORMATS, JSON_FIELDS, SPAN

COLUMNS = (
    "time_s", "request_id", "item_id", "group_id", "task", "verifier", "version", "verdict",
    "reward", "fault", "explanation", "answer", "components", "spans", "suspicions", "queue_s",
    "execution_s", "from_cache", "is_dialogue", "prompt", "response", "response_chars",
    "reference", "item_key", "labels", "parameters", "reference_kind", "cut", "appeal",
)  # fmt: skip
"""Of an entry, as the reward server's `Entry` names them; a law test holds them equal."""
PAGE_ROWS = 200
PAGE_BYTES = 8 * 2**20
_LOOK_S = 2.0
_LONGEST_S = 60.0
_TIMEOUT_S = 30.0
_MOST_BYTES = 64 * 2**20
_TROUBLE = (OSError, ValueError, RecursionError, http.client.HTTPException, sqlite3.Error)
_SLUG = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ServedJournal:
    """A server whose journal is mirrored.

    Attributes:
        host: as the URL names it; certificates are checked against it.
        address: where it is asked; the host, or one of its addresses.
        path: of the journal, with a slash at its end.
    """

    secure: bool
    host: str
    port: int
    path: str
    address: str

    @property
    def file(self) -> str:
        """Name of its mirror."""
        told = f"{self.host}-{self.address}" if self.address != self.host else self.host
        whole = repr((self.secure, self.host, self.port, self.path, self.address))
        digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
        return f"{_SLUG.sub('-', told)}-{self.port}-{digest}.sqlite"


def is_remote(text: str) -> bool:
    """Whether an argument names a server."""
    return text.partition("://")[0].lower() in ("http", "https", "dns+http", "dns+https")


def remotes_of(url: str) -> list[ServedJournal]:
    """The servers of a URL: one, or one at each address of a name.

    Raises:
        ConfigError: it is no URL of a journal, or the name has no address now.
    """
    parts = urlsplit(url)
    every = parts.scheme.startswith("dns+")
    secure = parts.scheme.endswith("https")
    try:
        port = parts.port or (443 if secure else 80)
    except ValueError:
        port = 0
    if not parts.hostname or not port or parts.username or parts.query or parts.fragment:
        raise ConfigError(
            f"{parts._replace(netloc=parts.hostname or '').geturl()} is no address of a journal: "
            "write https://HOST:PORT/journal, and the token into the file of --token-file"
        )
    path = parts.path.rstrip("/") + "/"
    one = ServedJournal(secure, parts.hostname, port, path, parts.hostname)
    if not every:
        return [one]
    try:
        found = socket.getaddrinfo(one.host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"{one.host} has no address now: {error.strerror}") from error
    addresses = sorted({str(entry[4][0]) for entry in found})
    return [ServedJournal(secure, one.host, port, path, address) for address in addresses]


# -- the server's side ----------------------------------------------------------------------------


def read_page(path: Path, after: int) -> Iterator[dict[str, Any]]:
    """Rows of a page: first what the journal is, then its entries with a greater id.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    with contextlib.closing(
        sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0)
    ) as database:
        database.row_factory = sqlite3.Row
        form = database.execute("PRAGMA user_version").fetchone()[0]
        first, last = database.execute(SPAN.format("entries")).fetchone()
        seen = database.execute("SELECT time_s FROM entries WHERE id = ?", (after,)).fetchone()
        dropped, expired = database.execute("SELECT dropped, expired FROM totals").fetchone()
        yield {
            "format": form, "first": first or 0, "last": last or 0,
            "seen_s": None if seen is None else seen[0], "dropped": dropped, "expired": expired,
        }  # fmt: skip
        rows = database.execute(
            "SELECT * FROM entries WHERE id > ? ORDER BY id LIMIT ?", (after, PAGE_ROWS)
        )
        size = 0
        for row in rows:
            entry = dict(row)
            if entry["item_key"] is not None:
                entry["item_key"] = entry["item_key"].hex()
            yield entry
            size += sum(len(value) for value in entry.values() if isinstance(value, str))
            if size > PAGE_BYTES:
                break


# -- the mirrors' side ----------------------------------------------------------------------------


class Mirror:
    """The copy of one server's journal. Belongs to one thread.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(self, folder: Path, remote: ServedJournal) -> None:
        self.remote = remote
        self.path = folder / remote.file
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(self.path, timeout=5.0, isolation_level=None)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"{self.path} cannot be written: {error}") from error

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def _prepare(self) -> None:
        if self._db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
            there = {row[1] for row in self._db.execute("PRAGMA table_info(entries)")}
            added = [f"ADD COLUMN {one}" for one in COLUMNS if one not in there]
            if added:  # of an older format; what it lacks is empty
                changes = " ".join(f"ALTER TABLE entries {one};" for one in added)
                self._db.executescript(f"BEGIN; {changes} PRAGMA user_version = {FORMAT}; COMMIT;")
            return
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.executescript(
            f"BEGIN; CREATE TABLE entries (id INTEGER PRIMARY KEY, {', '.join(COLUMNS)});"
            "CREATE TABLE totals (dropped INTEGER NOT NULL, expired INTEGER NOT NULL);"
            f"INSERT INTO totals SELECT 0, 0; PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {FORMAT}; COMMIT;"
        )

    def last(self) -> tuple[int, float | None]:
        """The newest entry's id and time; (0, None) where there is none."""
        row = self._db.execute("SELECT id, time_s FROM entries ORDER BY id DESC LIMIT 1").fetchone()
        return (0, None) if row is None else (int(row[0]), row[1])

    def take(self, lines: Sequence[Mapping[str, Any]]) -> int:
        """Keeps a page; how many entries came.

        Raises:
            ValueError: it is no page of a journal.
        """
        if not lines or lines[0].get("format") not in FORMATS:
            raise ValueError("it sent no page of a journal that this version reads")
        head, entries = lines[0], lines[1:]
        after, time_s = self.last()
        newest, seen_s = _whole(head, "last"), head.get("seen_s")
        began_anew = after and (newest < after or seen_s not in (None, time_s))
        if began_anew:
            with self._db:
                self._db.execute("DELETE FROM entries")
            return -1
        rows: list[tuple[Any, ...]] = [
            (_whole(entry, "id"), *(_cell(entry, name) for name in COLUMNS)) for entry in entries
        ]
        if any(row[0] <= after for row in rows):
            raise ValueError("it sent entries that it had sent before")
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            self._db.executemany(f"INSERT INTO entries VALUES ({marks})", rows)  # noqa: S608 - marks only
            self._db.execute("DELETE FROM entries WHERE id < ?", (_whole(head, "first"),))
            totals = _whole(head, "dropped"), _whole(head, "expired")
            self._db.execute("UPDATE totals SET dropped = ?, expired = ?", totals)
        return len(rows)


class Mirrors:
    """Keeps copies of servers' journals up to date in a folder, by one thread. A context manager.

    Args:
        urls: of servers; see `remotes_of`.
        folder: made, for this user alone.
        token: of the operator; None for servers that ask for none.
        authorities: file of certificates that servers' are checked against; None for the system's.
        say: gets a line where a server is not reached, and where it is again.

    Raises:
        ConfigError: a URL is none, or a file cannot be used.
    """

    def __init__(
        self,
        urls: Sequence[str],
        folder: Path,
        token: str | None,
        *,
        authorities: Path | None = None,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._urls = urls
        self.folder = folder
        self._token = token
        self._say = say
        self._state: dict[str, str] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="mirrors", daemon=True)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._tls = ssl.create_default_context(
                cafile=None if authorities is None else str(authorities)
            )
        except OSError as error:
            raise ConfigError(f"{authorities or folder} cannot be used: {error}") from error
        for url in urls:
            for remote in remotes_of(url):
                Mirror(folder, remote).close()  # so that there is something to show

    def __enter__(self) -> Mirrors:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(_TIMEOUT_S)

    def _follow(self) -> None:
        wait_s = 0.0
        while not self._ends.wait(wait_s):
            came = self.fetch()
            wait_s = 0.0 if came > 0 else min(max(_LOOK_S, 1.5 * wait_s), _LONGEST_S)
            if came == 0:
                wait_s = _LOOK_S

    def fetch(self) -> int:
        """Takes a page of each server; how many entries came, -1 where no server was reached."""
        came = reached = 0
        for url in self._urls:
            try:
                remotes = remotes_of(url)
            except ConfigError as error:
                self._tell(url, str(error))
                continue
            self._tell(url, "")
            for remote in remotes:
                try:
                    came += max(0, self._page(remote))
                    reached += 1
                    self._tell(remote.file, "")
                except _TROUBLE as error:
                    where = f"{remote.host}:{remote.port}"
                    at = f" at {remote.address}" if remote.address != remote.host else ""
                    self._tell(remote.file, f"{where}{at}: {str(error) or type(error).__name__}")
                if self._ends.is_set():
                    break
        return came if reached else -1

    def _tell(self, what: str, problem: str) -> None:
        """Says a problem once, and that it is over."""
        before = self._state.get(what, "")
        if problem and problem != before:
            self._say(f"{problem}; asked again until it answers")
        elif before and not problem:
            self._say(f"{before.partition(': ')[0]} answers again")
        self._state[what] = problem

    def _page(self, remote: ServedJournal) -> int:
        with contextlib.closing(Mirror(self.folder, remote)) as mirror:
            after, _ = mirror.last()
            came = mirror.take(self._asked(remote, after))
            return mirror.take(self._asked(remote, 0)) if came < 0 else came

    def _asked(self, remote: ServedJournal, after: int) -> list[Mapping[str, Any]]:
        with contextlib.closing(_Connection(remote, self._tls)) as connection:
            headers = {"Host": f"{remote.host}:{remote.port}", "Accept": "application/jsonl"}
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token}"
            connection.request("GET", f"{remote.path}entries?after={after}", headers=headers)
            answer = connection.getresponse()
            if answer.status in (401, 403):
                raise ValueError("it asks for the operator's token: name its file, --token-file")
            if answer.status != 200:
                raise ValueError(f"it answered {answer.status}; is a journal there (--journal)?")
            body = answer.read(_MOST_BYTES + 1)
        if len(body) > _MOST_BYTES:
            raise ValueError(f"its answer has more than {_MOST_BYTES} bytes")
        lines = [json.loads(line) for line in body.split(b"\n") if line]
        if not all(isinstance(line, dict) for line in lines):
            raise ValueError("its answer is no page of a journal")
        return lines


class _Connection(http.client.HTTPConnection):
    """To a server's address, by the name that its certificate has."""

    def __init__(self, remote: ServedJournal, tls: ssl.SSLContext) -> None:
        super().__init__(remote.address, remote.port, timeout=_TIMEOUT_S)
        self._remote, self._tls = remote, tls

    def connect(self) -> None:
        super().connect()
        if self._remote.secure:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._remote.host)


def _whole(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name)
    if not isinstance(value, int) or not 0 <= value < 2**62:
        raise ValueError(f"its {name} is no number of an entry")
    return value


def _cell(row: Mapping[str, Any], name: str) -> str | float | bytes | None:
    value = row.get(name)
    if name == "item_key" and value is not None:
        return bytes.fromhex(str(value))
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError(f"its {name} is no number of an entry")
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"its {name} is neither text nor number")
    if name in JSON_FIELDS and value is not None:
        json.loads(str(value))  # whoever reads the mirror does the same
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
