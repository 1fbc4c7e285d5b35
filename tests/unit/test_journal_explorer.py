"""The explorer: what its pages hold, escaped, and its server on a real port."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.errors import ConfigError
from assay.reward_server.domain import Span
from assay.reward_server.http import journal
from assay.reward_server.journal import page
from assay.reward_server.journal.explorer import Explorer
from assay.viewer.journals.reader import Filter, Reader
from journal_support import LATE, filled, judgement, settled

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;"


class Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    path = tmp_path_factory.mktemp("explorer") / "verdicts.sqlite"
    spans = (Span(0, 5, 1.0, "step"), Span(5, 9, -1.0, EVIL))
    evil = judgement(0.5, "partial", spans=spans, explanation=EVIL, extracted_answer=EVIL)
    offers = [
        [settled(f"old {n}", response=f"number {n}") for n in range(70)],
        [
            settled(EVIL, evil, response=f"step one, {EVIL}", prompt=EVIL, reference=EVIL),
            settled("late", LATE, response="slow"),
            settled("x", judgement(0.0, "incorrect"), response="both saw it"),
            settled("x", verifier="math", response="both saw it", labels={"run": "a", "x": EVIL}),
        ],
    ]
    asyncio.run(filled(path, offers))
    with Explorer(path, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(explorer: Explorer, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", explorer.server_port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


@given(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(-1, 1)), max_size=5),
    st.none() | st.text(max_size=3),
)
def test_marks_change_no_character_of_the_text(
    text: str, spans: list[tuple[int, int, float]], answer: str | None
) -> None:
    marked = page.marked(text, [(a, b, reward, "<&>", 0) for a, b, reward in spans], answer)
    bare = re.sub(r"</?mark[^>]*>", "", marked)
    assert unescape(bare) == unescape(page.escape(text)) == text
    assert "<" not in bare
    assert ">" not in bare


def test_spans_are_marked_where_they_are() -> None:
    assert page.marked("one two 2", [(0, 3, 1.0, "step", 0), (4, 7, 0.0, "step", 0)], "2") == (
        '<mark class=up title="step: 1">one</mark> <mark class=none title="step: 0">two</mark> '
        "<mark class=answer title=answer>2</mark>"
    )


@pytest.mark.parametrize("path", ["/", "/?live=1&text=", "/entry/71", "/compare?a=exact&b=math"])
def test_a_page_holds_no_script_and_loads_nothing(explorer: Explorer, path: str) -> None:
    status, text, headers = get(explorer, path)
    assert status == 200
    tags = Tags(text).tags
    assert not {"script", "img", "iframe", "object", "style"} & {tag for tag, _ in tags}
    assert not any(name.startswith("on") for _, attributes in tags for name in attributes)
    for _, attributes in tags:
        for name in ("href", "src", "action"):
            link = urlsplit(urljoin(f"http://here/below{path}", attributes.get(name) or ""))
            assert (link.netloc, link.path[:7]) == ("here", "/below/"), "wherever it is served"
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_the_overview_shows_rates_curves_and_the_newest(explorer: Explorer) -> None:
    text = Tags(get(explorer, "/")[1]).text
    assert "74 entries, 0 expired, 0 dropped" in text
    assert "ITEM_TIMEOUT 1" in text
    assert "both saw it" in text
    assert "number 0" not in text, "50 are shown"
    older = re.search(r"\./(\?before=\d+)", get(explorer, "/")[1])
    assert older
    assert "number 0" in Tags(get(explorer, f"/{older[1]}")[1]).text
    found = Tags(get(explorer, "/?verifier=math")[1]).text
    assert "both saw it" in found
    assert "slow" not in found
    assert "No entry." in get(explorer, "/?text=nowhere")[1]
    found = get(explorer, "/?label=run%3Da")[1]
    assert found.count("both saw it") == 1
    assert 'value="run=a"' in found
    for other in ("run%3Db", "run", "%3D", "a%20b%3Dc%27"):
        assert "No entry." in get(explorer, f"/?label={other}")[1]
    shown = get(explorer, "/entry/74")[1]
    assert f"run=a, x={EVIL}" in Tags(shown).text
    assert "<script" not in shown
    assert "http-equiv=refresh" in get(explorer, "/?live=1")[1]
    assert "http-equiv=refresh" not in get(explorer, "/")[1]


def test_one_entry_shows_everything_of_it(explorer: Explorer) -> None:
    text = get(explorer, "/entry/71")[1]
    page_ = Tags(text)
    for part in ("partial", "0.5", "match", "Prompt, user", "Reference"):
        assert part in page_.text
    assert page_.text.count(EVIL) >= 5, "prompt, response, reference, answer, explanation, item"
    assert ("mark", {"class": "down", "title": f"{EVIL}: -1"}) in page_.tags
    assert get(explorer, "/entry/75")[0] == 404
    assert get(explorer, "/entry/" + "9" * 30)[0] == 404


def test_two_verifiers_are_compared_and_entries_exported(explorer: Explorer) -> None:
    text = Tags(get(explorer, "/compare?a=exact&b=math")[1]).text
    assert "1 items that both judged" in text
    assert "both saw it" in text
    status, lines, headers = get(explorer, "/export?only=faults")
    assert status == 200
    assert headers["Content-Type"].startswith("application/jsonl")
    assert [json.loads(line)["item_id"] for line in lines.splitlines()] == ["late"]


def test_only_its_own_name_is_answered(explorer: Explorer) -> None:
    assert get(explorer, "/", Host="evil.example")[0] == 403
    assert get(explorer, "/", Host=f"localhost:{explorer.server_port}")[0] == 200
    assert get(explorer, "/nowhere")[0] == 404
    assert get(explorer, "/?before=" + "9" * 40)[0] == 200
    assert explorer.server_address[0] == "127.0.0.1"


def test_what_cannot_be_served_is_refused(explorer: Explorer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        Explorer(tmp_path / "none", 0)
    with pytest.raises(ConfigError, match="cannot be used"):
        Explorer(explorer.path, explorer.server_port)


def test_an_export_that_breaks_off_does_not_look_whole(tmp_path: Path) -> None:
    path = tmp_path / "broken.sqlite"
    asyncio.run(filled(path, [[settled(str(n), response="x" * 2000) for n in range(1000)]]))
    with Explorer(path, 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with path.open("r+b") as file:
            file.seek(path.stat().st_size * 3 // 4)
            file.write(b"\xff" * (path.stat().st_size // 8))
        try:
            with pytest.raises(http.client.IncompleteRead) as caught:
                get(server, "/export")
        finally:
            server.shutdown()
    lines = caught.value.partial.splitlines()
    assert [json.loads(line)["item_id"] for line in lines] == [str(n) for n in range(len(lines))]
    assert 0 < len(lines) < 1000


def test_entries_that_come_while_it_looks_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "growing.sqlite"
    asyncio.run(filled(path, [[settled("a")]]))
    last_id, coming = Reader.last_id, ["b", "c"]

    def while_it_grows(reader: Reader) -> int:
        found = last_id(reader)
        if coming:
            asyncio.run(filled(path, [[settled(coming.pop(0))]]))
        return found

    monkeypatch.setattr(Reader, "last_id", while_it_grows)
    told, after = [], 0
    for _ in range(4):
        found, after = journal._some(path, Filter(), after)
        told += [record["item_id"] for record in found]
    assert told == ["a", "b", "c"]


def test_a_browser_shows_it_and_runs_nothing(explorer: Explorer, tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no chromium on this machine")
    done = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}",
            "--dump-dom", f"{explorer.address}entry/71",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    tags = Tags(done.stdout)
    assert not {"script", "img"} & {tag for tag, _ in tags.tags}
    assert sum(tag == "mark" for tag, _ in tags.tags) == 3
    assert EVIL in tags.text
