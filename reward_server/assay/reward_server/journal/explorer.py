"""`assay journal serve`: a small web server over a journal, for this machine alone.

Covered: it reads only; it listens on loopback; it answers GET for its own host name alone, so that
another site cannot read it under a name that it points here; pages hold no script, and their
headers forbid any.

Not covered: other users of the machine, who reach loopback too. On a shared machine run it only
where they may read the prompts and responses.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from assay.kit.errors import ConfigError
from assay.reward_server.journal import page
from assay.viewer.journals.comparison import VerifierComparison
from assay.viewer.journals.reader import Filter, Reader
from assay.viewer.journals.rows import row_of

RECENT = 10_000
_SHOWN = 50
_EXAMPLES = 20
_STYLE = Path(__file__).with_name("explorer.css")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Explorer(ThreadingHTTPServer):
    """Serves one journal on loopback. Run `serve_forever`, end with `shutdown`.

    Args:
        path: the journal.
        port: 0 for any free one.

    Raises:
        ConfigError: the file is no journal, or the port is in use.
    """

    daemon_threads = True

    def __init__(self, path: Path, port: int) -> None:
        with Reader(path):
            self.path = path
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"--port {port} cannot be used: {error.strerror}; choose another one, or 0"
            ) from error

    @property
    def address(self) -> str:
        """The URL."""
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Explorer
    timeout = 30.0
    protocol_version = "HTTP/1.1"
    server_version = "assay-journal"
    sys_version = ""

    def do_GET(self) -> None:
        """Answers one request with a reader of its own."""
        names = {f"{host}:{self.server.server_port}" for host in ("127.0.0.1", "localhost")}
        if self.headers.get("Host") not in names:
            self._send(403, page.message("journal", "Ask for 127.0.0.1 or localhost."))
            return
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        title = self.server.path.name
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            try:
                with Reader(self.server.path) as reader:
                    self._answer(reader, url.path, query, title)
            except (ConfigError, sqlite3.Error) as error:
                self._send(503, page.message(title, f"The journal cannot be read: {error}"))

    def log_message(self, *_: object) -> None:
        """Logs nothing: searches may hold private text."""

    def _answer(self, reader: Reader, path: str, query: dict[str, str], title: str) -> None:
        if path == "/export":
            self._export(reader, filter_of(query))
        else:
            self._send(*answer(reader, path, query, title))

    def _export(self, reader: Reader, chosen: Filter) -> None:
        """Streams the entries in chunks, so that a cut export is seen to be cut."""
        records = reader.each(chosen)
        first = next(records, None)
        self._head(200, "application/jsonl", None)
        with contextlib.suppress(ConfigError, sqlite3.Error):  # the head is out: it stays open
            for record in chain(() if first is None else (first,), records):
                text = json.dumps(row_of(record), ensure_ascii=False)
                line = text.encode("utf-8", "replace") + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")

    def _send(self, code: int, text: str, kind: str = "text/html") -> None:
        body = text.encode("utf-8", "replace")
        self._head(code, kind, len(body))
        self.wfile.write(body)

    def _head(self, code: int, kind: str, length: int | None) -> None:
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        if length is not None:
            self.send_header("Content-Length", str(length))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()


def answer(reader: Reader, path: str, query: dict[str, str], title: str) -> tuple[int, str, str]:
    """One page, other than the export: status, text and media type.

    Args:
        reader: of the journal.
        path: below the explorer's own, from "/".
        query: the fields of the address.
        title: name of the journal.
    """
    if path == "/":
        return 200, _overview(reader, query, title), "text/html"
    if path == "/style.css":
        return 200, _STYLE.read_text(encoding="utf-8"), "text/css"
    if path == "/compare":
        return 200, _compare(reader, query, title), "text/html"
    if path.startswith("/entry/") and path[7:].isdecimal() and len(path) < 26:
        record = reader.get(int(path[7:]))
        if record is not None:
            return 200, page.entry(title, record), "text/html"
        text = "There is no such entry: it has expired, or never was."
        return 404, page.message(title, text, of_entry=True), "text/html"
    text = page.message(title, "There is no such page.", of_entry=path.startswith("/entry/"))
    return 404, text, "text/html"


def filter_of(query: dict[str, str]) -> Filter:
    """The search that an address asks for."""
    only = query.get("only", "")
    fields: dict[str, Any] = {name: query.get(name, "") for name, _ in page.FIELDS}
    name, equals, value = fields.pop("label").partition("=")
    labels = ((name.strip(), value.strip()),) if name or equals else ()
    return Filter(**fields, only=only if only in {"judgements", "faults"} else "", labels=labels)


def _overview(reader: Reader, query: dict[str, str], title: str) -> str:
    chosen = filter_of(query)
    known = {*(name for name, _ in page.FIELDS), "only"}
    before = query.get("before", "")
    after = max(0, reader.last_id() - RECENT)
    return page.overview(
        title,
        {name: value for name, value in query.items() if name in known},
        summary=reader.summary(),
        rates=reader.rates(chosen, after=after),
        moments=reader.series(chosen, after=after),
        records=reader.last(_SHOWN, chosen, before=_number(before)),
        recent=RECENT,
        live=query.get("live") == "1",
    )


def _compare(reader: Reader, query: dict[str, str], title: str) -> str:
    names = [rate.verifier for rate in reader.rates() if rate.verifier]
    first, second = query.get("a", ""), query.get("b", "")
    result = None
    if first and second and first != second:
        result = VerifierComparison(first, second, _EXAMPLES).add(reader.pairs(first, second))
    return page.comparison(title, names, result)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else 0
