"""The viewer over HTTP, attacked: other sites, paths, lengths, tokens, readers that stall."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.kit.errors import ConfigError
from assay.viewer import app
from assay.viewer.app import HEADERS, MOST_NOTE, MOST_QUERY, STATIC, Pages, Query
from assay.viewer.serve import ViewerServer
from viewer_support import ask, serving

HOSTILE = "</script><img src=x onerror=alert(1)>\r\nSet-Cookie: a=b\r\n\u2028\ud800\x00"
NOTE = {"Content_Type": "application/json", "X_Assay": "1"}


class Told:
    """What the app asks, with texts of an attacker everywhere; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Query]] = []
        self.notes: list[Mapping[str, Any]] = []
        self.rows = 250
        self.closed = threading.Event()

    def answer(self, path: str, query: Query) -> tuple[int, Any]:
        self.asked.append((path, query))
        if path == "api/missing":
            return 404, {"detail": f"no {HOSTILE}"}
        return 200, {HOSTILE: [HOSTILE, float("nan"), float("inf")], "query": [*query]}

    def note(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        self.notes.append(body)
        return 200, {}

    def export(self, query: Query) -> Iterator[dict[str, Any]]:
        if ("bad", "1") in query:
            raise ValueError("bad is no filter")
        try:
            for number in range(self.rows):
                yield {"number": number, "text": HOSTILE * 100}
        finally:
            self.closed.set()

    def labelled(self, query: Query) -> Iterator[dict[str, Any]]:
        del query
        yield {"label": HOSTILE}

    def events(self, query: Query, after: int) -> tuple[list[dict[str, Any]], int]:
        del query
        return ([{"text": HOSTILE}], 7) if after < 7 else ([], after)


@pytest.fixture(scope="module")
def told() -> Told:
    return Told()


@pytest.fixture(scope="module")
def port(told: Told) -> Iterator[int]:
    with serving(told) as (_, port):
        yield port


def test_every_answer_has_the_headers(port: int) -> None:
    for path in ("/", "/api/sources", "/nothing", "/api/missing", "/export", "/export?bad=1"):
        _, body, headers = ask(port, path)
        assert {name: headers[name] for name in HEADERS} == HEADERS, path
        assert "Set-Cookie" not in headers
        assert "Server" not in headers
        assert b"<img" not in body or not headers["Content-Type"].startswith("text/html")
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_an_answer_is_json_whatever_the_texts(port: int) -> None:
    status, body, headers = ask(port, "/api/sources?a=1&a=%ff&b=")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    data = json.loads(body)
    assert data[HOSTILE] == [HOSTILE, None, None]
    assert data["query"] == [["a", "1"], ["a", "\ufffd"], ["b", ""]]
    assert body.isascii()
    status, body, headers = ask(port, "/api/missing")
    assert (status, headers["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "127.0.0.1", "", "localhost:1", "[::2]:{port}",
     "evil@127.0.0.1:{port}", "127.0.0.1:{port}/", "0.0.0.0:{port}"]
)  # fmt: skip
def test_another_name_is_refused(port: int, host: str) -> None:
    """A site that points a name of its own here (DNS rebinding)."""
    for path in ("/", "/api/sources", "/export", "/events"):
        status, body, _ = ask(port, path, Host=host.format(port=port))
        assert status == 403
        assert b"number" not in body


def test_our_names_are_served(port: int) -> None:
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert ask(port, "/api/sources", Host=host)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://["},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
    ],
)
def test_a_page_of_another_site_is_refused(port: int, told: Told, headers: dict[str, str]) -> None:
    told.notes.clear()
    for method, path in (("GET", "/api/sources"), ("GET", "/export"), ("POST", "/api/notes")):
        body = b"{}" if method == "POST" else None
        status, _, answered = ask(port, path, method, body, **NOTE, **headers)
        assert status == 403
        assert not any(name.lower().startswith("access-control") for name in answered)
    assert told.notes == []


def test_a_link_from_elsewhere_opens_the_page(port: int) -> None:
    cross = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert ask(port, "/api/sources", **cross)[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (NOTE, 200),
        ({**NOTE, "Content_Type": "application/json; charset=utf-8"}, 200),
        ({"Content_Type": "application/json"}, 403),
        ({**NOTE, "X_Assay": "0"}, 403),
        ({**NOTE, "Content_Type": "text/plain"}, 403),
        ({**NOTE, "Content_Type": "application/x-www-form-urlencoded"}, 403),
        ({}, 403),
    ],
)
def test_a_note_takes_what_no_form_sends(
    port: int, told: Told, headers: dict[str, str], status: int
) -> None:
    told.notes.clear()
    assert ask(port, "/api/notes", "POST", b'{"id": "x"}', **headers)[0] == status
    assert told.notes == ([{"id": "x"}] if status == 200 else [])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[]", 400), (b"", 400), (b"{", 400), (b"[" * 16_000, 400), (b"\xff\xfe", 400),
        (b'{"a": "' + b"x" * MOST_NOTE + b'"}', 413),
    ],
)  # fmt: skip
def test_a_note_that_is_none(port: int, told: Told, body: bytes, status: int) -> None:
    told.notes.clear()
    assert ask(port, "/api/notes", "POST", body, **NOTE)[0] == status
    assert told.notes == []


@pytest.mark.parametrize("path", ["/", "/api/sources", "/export", "/notes/export", "/viewer.css"])
def test_nothing_else_is_posted_to(port: int, told: Told, path: str) -> None:
    told.asked.clear()
    assert ask(port, path, "POST", b"{}", **NOTE)[0] == 405
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
        assert ask(port, path, method)[0] == 405
    assert told.asked == []


@pytest.mark.parametrize(
    "path",
    ["/../app.py", "/..%2fapp.py", "/%2e%2e/app.py", "/%2e%2e%2fapp.py", "/..%5capp.py",
     "/static/../app.py",
     "//etc/passwd", "/%2fetc%2fpasswd", "/app.py", "/index.html%00.js", "/index.html/", "/.html",
     "/%252e%252e%252fapp.py", "/api/../../app.py", "/api/sources/..", "/API/sources",
     "/index.html%0d%0aa:b",
     "/" + "a" * 3000 + ".js"],
)  # fmt: skip
def test_no_path_leads_out(port: int, path: str) -> None:
    status, body, headers = ask(port, path)
    assert status == 404
    assert b"import" not in body
    assert b"root:" not in body
    assert "a" not in headers


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30))
def test_any_path_is_answered(port: int, path: str) -> None:
    status, body, _ = ask(port, "/" + path.replace("#", "").lstrip("/"))
    assert status in (200, 400, 404)
    assert b"import annotations" not in body


def test_a_giant_question_is_refused(port: int, told: Told) -> None:
    told.asked.clear()
    assert ask(port, "/api/items?text=" + "x" * MOST_QUERY)[0] == 400
    assert told.asked == []
    assert ask(port, "/api/items?text=" + "x" * (MOST_QUERY - 5))[0] == 200
    assert ask(port, "/api/items?" + "a&" * (MOST_QUERY // 2))[0] == 200
    with pytest.raises((ConnectionError, AssertionError)):
        assert ask(port, "/api/items?text=" + "x" * 200_000)[0] == 200


def test_exports_are_rows(port: int, told: Told) -> None:
    told.closed.clear()
    status, body, headers = ask(port, "/export")
    assert (status, headers["Content-Type"]) == (200, "application/jsonl")
    assert [json.loads(line)["number"] for line in body.splitlines()] == [*range(told.rows)]
    assert told.closed.wait(10)
    assert json.loads(ask(port, "/notes/export")[1]) == {"label": HOSTILE}
    assert ask(port, "/export?bad=1")[0] == 400
    assert ask(port, "/export", "HEAD")[1] == b""


def test_who_leaves_an_export_ends_it(port: int, told: Told, monkeypatch: Any) -> None:
    monkeypatch.setattr(told, "rows", 10**9)
    told.closed.clear()
    with socket.create_connection(("127.0.0.1", port)) as leaving:
        leaving.sendall(b"GET /export HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        assert leaving.recv(100).startswith(b"HTTP/1.1 200")
    assert told.closed.wait(20)


def test_a_reader_that_stalls_loses_the_rest(told: Told, monkeypatch: Any) -> None:
    monkeypatch.setattr(app, "_STALL_S", 0.2)
    monkeypatch.setattr(told, "rows", 10**9)
    told.closed.clear()
    with serving(told) as (_, port), socket.create_connection(("127.0.0.1", port)) as stalling:
        stalling.sendall(b"GET /export HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        assert told.closed.wait(20)
        assert ask(port, "/api/sources")[0] == 200


def test_streams_are_bounded(told: Told, monkeypatch: Any) -> None:
    monkeypatch.setattr(app, "_STREAMS", 2)
    with serving(told) as (_, port):
        request = b"GET /events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        for one in held:
            one.sendall(request)
            assert one.recv(100)
        assert ask(port, "/events")[0] == 503
        assert ask(port, "/export")[0] == 503
        assert ask(port, "/api/sources")[0] == 200
        for one in held:
            one.close()


def test_entries_come_as_events(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as reading:
        reading.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        seen = b""
        while b"data: " not in seen or not seen.endswith(b"\n\n\r\n"):
            seen += reading.recv(4096)
    (line,) = [line for line in seen.splitlines() if line.startswith(b"data: ")]
    assert json.loads(line[6:]) == {"text": HOSTILE}
    assert b"id: 7" in seen


def test_elsewhere_the_operators_token_is_asked(told: Told) -> None:
    basic = base64.b64encode(b"anybody:s3cret").decode()
    with serving(told, bind="0.0.0.0", token="s3cret") as (_, port):
        for path in ("/", "/api/sources", "/export", "/events", "/notes/export", "/nothing"):
            status, body, headers = ask(port, path)
            assert status == 401
            assert headers["WWW-Authenticate"].startswith("Basic")
            assert b"number" not in body
        for wrong in (
            "Bearer s3cre",
            "Bearer ",
            "Basic !!",
            "s3cret",
            "Bearer S3CRET",
            "Basic Og==",
        ):
            assert ask(port, "/api/sources", Authorization=wrong)[0] == 401
        for right in ("Bearer s3cret", f"Basic {basic}"):
            status, body, _ = ask(port, "/api/sources", Authorization=right, Host="viewer.example")
            assert status == 200
            assert b"s3cret" not in body
        evil = {"Origin": "https://evil.example", "Authorization": f"Basic {basic}"}
        assert ask(port, "/api/notes", "POST", b"{}", **NOTE, **evil)[0] == 403
        status, _, headers = ask(port, "/logout", Authorization=f"Basic {basic}")
        assert (status, "WWW-Authenticate" in headers) == (401, True)


def test_a_network_needs_a_token(told: Told) -> None:
    with pytest.raises(ConfigError, match="--token-file"):
        ViewerServer(Pages(told), "0.0.0.0", 0)


def test_a_port_that_is_taken(told: Told, port: int) -> None:
    with pytest.raises(ConfigError, match=f"--port {port}"):
        ViewerServer(Pages(told), "127.0.0.1", port)


def test_the_pages_load_nothing_from_elsewhere() -> None:
    files = [path for path in STATIC.glob("*") if path.suffix in (".html", ".css", ".js")]
    for path in files:
        text = Path(path).read_text(encoding="utf-8")
        for foreign in ("innerHTML", "outerHTML", "document.write", "insertAdjacentHTML", "eval("):
            assert foreign not in text, path.name
        loads = ('src="http', 'href="http', "url(http", "@import", 'from "http')
        assert not any(word in text for word in loads), path.name
