"""The viewer in Chromium, over journals and what stands beside a run: groups, comparison, gaps."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from assay.reward_server.journal.entries import Entry
from assay.reward_server.journal.store import MIN_LIMIT_BYTES, Store
from viewer_browser_support import (
    NARROW,
    Tab,
    Viewer,
    browsing,
    metric_rows,
    rollout,
    write_step,
)

STEPS = (1, 2, 3, 7, 8)
"""Steps with verdicts; between 3 and 7 nothing was judged."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as found:
        yield found


def entry(number: int, step: int, verifier: str, version: str, **more: Any) -> dict[str, Any]:
    right = number % 2 == 0
    return {
        "time_s": 1.7e9 + 60 * step, "request_id": f"call-{step}", "item_id": str(number),
        "group_id": f"prompt-{number // 4}", "task": "sums", "verifier": verifier,
        "version": version, "verdict": "correct" if right else "incorrect",
        "reward": float(right), "fault": None, "explanation": "", "answer": str(number),
        "components": "[]", "spans": "[]", "suspicions": "[]", "queue_s": 0.0, "execution_s": 0.01,
        "from_cache": False, "prompt": json.dumps([["user", f"What is {number // 4} + 1?"]]),
        "response": f"It is {number}.", "is_dialogue": False, "response_chars": 9 + number,
        "reference": "1", "item_key": f"{step}-{number}".encode().ljust(16, b"-"),
        "labels": json.dumps({"step": str(step), "phase": "train"}), "parameters": None,
        "reference_kind": "text", "cut": "[]", "appeal": None,
    } | more  # fmt: skip


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight items of two prompts in each step, judged by math in two versions and by exact.

    Of two verdicts of one verifier the newer counts, which is version 4's on item 1.
    """
    path = tmp_path_factory.mktemp("journal") / "verdicts.sqlite"
    entries = []
    for step in STEPS:
        for number in range(8):
            odd = {"suspicions": '["undone-work"]'} if number == 6 else {}
            entries.append(entry(number, step, "math", "5", **odd))
            wrong = {"verdict": "incorrect", "reward": 0.0} if number == 0 else {}
            entries.append(entry(number, step, "exact", "1", **wrong))
        late = {"verdict": None, "reward": None, "fault": "TIMEOUT", "explanation": "too slow"}
        hearings = [
            {"verifier": "rule", "version": "1", "verdict": "unparsed", "reward": 0.0},
            {"verifier": "judge", "version": "2", "verdict": "correct", "reward": 1.0},
        ]
        asked = dict(zip(("first", "second"), hearings, strict=True), component="answer")
        told = json.dumps(asked | {"drawn": False, "probability": 1.0})
        entries.append(entry(1, step, "math", "4", verdict="correct", reward=1.0, appeal=told))
        entries.append(entry(9, step, "exact", "1", **late))
    store = Store(path, MIN_LIMIT_BYTES)
    names = [field.name for field in fields(Entry)]
    assert store.append([tuple(one[name] for name in names) for one in entries])
    store.close()
    return path


@pytest.fixture
def viewer(journal: Path, tmp_path: Path) -> Iterator[Viewer]:
    with Viewer([journal], tmp_path / "cache") as found:
        found.settled()
        yield found


@pytest.fixture
def tab(browser: Any) -> Iterator[Tab]:
    found = Tab(browser)
    yield found
    found.close()


SOURCE = "verdicts.sqlite"


def test_a_journal_is_filtered_opened_noted_and_exported(
    viewer: Viewer, tab: Tab, journal: Path
) -> None:
    page = tab.open(viewer.link(view="items", source=SOURCE)).page
    page.locator(".facets a.chip", has_text=re.compile(r"^exact")).click()
    page.wait_for_url("**verifier=exact**")
    tab.whole()
    page.locator(".facets a.chip", has_text=re.compile(r"^TIMEOUT")).click()
    page.wait_for_url("**fault=TIMEOUT**")
    tab.whole()
    assert page.locator("table.items tbody tr").count() == len(STEPS)
    page.locator("table.items a.row").first.click()
    tab.whole()
    assert "too slow" in page.inner_text("section[aria-label=fault]")
    first = page.inner_text("h1")
    page.keyboard.press("]")  # the next of the list, not of the journal
    tab.whole()
    assert page.inner_text("h1") != first
    assert "TIMEOUT" in page.inner_text("section[aria-label=fault]")
    page.keyboard.press("2")
    page.wait_for_selector("section[aria-label=note] [role=status]:has-text('noted')")
    with page.expect_download() as waiting:
        tab.open(viewer.link(view="notes", source=SOURCE))
        page.locator("a", has_text="export labelled set").click()
    row = json.loads(Path(waiting.value.path()).read_text())
    assert (row["label"], row["response"]) == (0, "It is 9.")
    tab.open(viewer.link(view="items", source=SOURCE))
    page.locator(".facets a.chip", has_text=re.compile(r"^changed")).click()
    page.wait_for_url("**appeal=changed**")
    tab.whole()
    assert page.locator(".flag", has_text="changed on appeal").count() == len(STEPS)
    tab.open(viewer.link(view="items", source=SOURCE, verifier="math", version="4"))
    with page.expect_download() as waiting:
        page.locator("a", has_text="export").first.click()
    rows = [json.loads(line) for line in Path(waiting.value.path()).read_text().splitlines()]
    assert len(rows) == len(STEPS)
    assert {row["verifier"] for row in rows} == {"math"}
    page.locator("table.items a.row").first.click()
    tab.whole()
    told = page.inner_text("section[aria-label=verdict]")
    assert "unparsed" in told
    assert "the verdict changed" in told
    journal.with_name(f"{journal.name}.notes.jsonl").unlink()


def test_groups_of_a_journal_stand_side_by_side(viewer: Viewer, tab: Tab) -> None:
    page = tab.open(viewer.link(view="verdicts", source=SOURCE)).page
    page.locator("nav.ways a", has_text="Groups").click()
    tab.whole()
    groups = page.locator("main table tbody tr")
    assert groups.count() == 3 * len(STEPS)
    assert "prompt-" in groups.first.inner_text()
    groups.filter(has_text="prompt-0").first.locator("a.row").click()
    tab.whole()
    assert page.inner_text("h1") == "group prompt-0"
    assert "What is 0 + 1?" in page.inner_text(".question")
    assert page.locator(".card").count() == 8
    page.locator("a", has_text="Show all 9").click()
    tab.whole()
    assert page.locator(".card").count() == 9
    page.locator(".card a.row").first.click()
    tab.whole()
    page.locator("a", has_text="side by side").click()
    tab.whole()
    assert page.inner_text("h1") == "group prompt-0"


@pytest.mark.parametrize(
    "pair",
    [("math", "exact", 40, 30), ("math@4", "math@5", 5, 0)],
    ids=["verifiers", "versions"],
)
def test_two_of_them_are_compared(
    viewer: Viewer, tab: Tab, pair: tuple[str, str, int, int]
) -> None:
    first, second, both, same = pair
    page = tab.open(viewer.link(view="compare", source=SOURCE)).page
    page.select_option("select[aria-label=first]", first)
    page.wait_for_url("**a=math**")
    tab.whole()
    page.select_option("select[aria-label=second]", second)
    page.wait_for_url("**b=**")
    tab.whole()
    facts = page.inner_text("dl.facts").replace("\n", " ")
    assert f"judged by both {both} " in facts
    assert f"same reward {same} (" in facts
    page.locator("table.confusion td.cell:not(.same) a.row").first.click()
    tab.whole()
    shown = page.locator("table.items tbody tr")
    assert shown.count() == both - same
    assert re.match(r"What is 0 \+ 1\?\s+It is [01]\.\s+[01]\s+✓ correct", shown.first.inner_text())
    page.locator("table.items a.row").first.click()
    tab.whole()
    assert "view=item" in tab.state()


def test_a_count_of_suspicions_leads_to_its_items(viewer: Viewer, tab: Tab) -> None:
    page = tab.open(viewer.link(view="verdicts", source=SOURCE)).page
    row = page.locator("section[aria-label=Suspicions] tr[data-row]")
    assert row.inner_text().split()[:2] == ["undone-work", str(len(STEPS))]
    row.locator("a.row").click()
    tab.whole()
    rows = page.locator("table.items tbody tr")
    assert rows.count() == len(STEPS)
    assert rows.locator(".flag.suspicion").all_inner_texts() == ["undone-work"] * len(STEPS)


def test_no_curve_crosses_what_was_not_judged(viewer: Viewer, tab: Tab) -> None:
    page = tab.open(viewer.link(view="verdicts", source=SOURCE, verifier="exact")).page
    chart = page.locator(".chart", has_text="mean of the judgements")
    drawn = chart.locator("path.line").get_attribute("d")
    assert drawn is not None
    assert drawn.count("M") == 2
    assert len(re.findall("[ML]", drawn)) == len(STEPS)
    picture = chart.locator("svg[role=img]")
    assert "without a value" in (picture.get_attribute("aria-label") or "")
    picture.focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert "no value" in chart.locator(".readout").inner_text()


CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const over = (top, under) => {
    const share = top[3] ?? 1;
    return under.map((value, i) => top[i] * share + value * (1 - share));
  };
  const behind = (e) => {
    const layers = [];
    for (let up = e; up; up = up.parentElement) {
      const { backgroundImage, backgroundColor } = getComputedStyle(up);
      if (backgroundImage !== "none" || !backgroundColor.startsWith("rgb")) return null;
      layers.unshift(parse(backgroundColor));
      if ((layers[0][3] ?? 1) === 1) break;
    }
    return layers.reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => [0.2126, 0.7152, 0.0722]
    .reduce((sum, share, i) => sum + share * linear(rgb[i] / 255), 0);
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const { visibility, fill, color } = getComputedStyle(e);
    const shown = e.getClientRects().length && visibility !== "hidden";
    const under = behind(e);
    if (!own || !shown || !under || e.matches("[disabled], .off, option")) continue;
    const ink = over(parse(e instanceof SVGElement ? fill : color), under);
    const [low, high] = [light(ink), light(under)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) poor.push(`${e.getAttribute("class")} ${e.textContent} ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)];
}"""
FOCUS = """() => {
  const e = document.activeElement;
  const { outlineStyle, boxShadow } = getComputedStyle(e);
  const seen = outlineStyle !== "none" || boxShadow !== "none";
  return [e.textContent.slice(0, 30) || e.outerHTML, seen];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(browser: Any, viewer: Viewer, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1, by the colours that Chromium computed."""
    tab = Tab(browser, color_scheme=scheme)
    _, told = viewer.api.answer("api/items", [("source", SOURCE), ("suspicion", "any")])
    for fields_ in (
        {}, {"view": "items"}, {"view": "verdicts", "source": SOURCE}, {"view": "notes"},
        {"view": "compare", "source": SOURCE, "a": "math", "b": "exact"},
        {"view": "step", "source": SOURCE}, {"view": "item", "id": told["items"][0]["id"]},
    ):  # fmt: skip
        page = tab.open(viewer.link(**fields_)).page
        assert page.evaluate(CONTRAST) == [], fields_
    page.keyboard.press("?")
    assert page.evaluate(CONTRAST) == []
    tab.close()


def test_the_operators_token_opens_it_from_elsewhere_and_out_is_out(
    browser: Any, journal: Path, tmp_path: Path
) -> None:
    with Viewer([journal], tmp_path / "cache", bind="0.0.0.0", token="secret") as viewer:
        viewer.settled()
        nobody = browser.new_context()
        assert nobody.request.get(viewer.link()).status == 401
        nobody.close()
        credentials = {"username": "anybody", "password": "secret"}
        tab = Tab(browser, http_credentials=credentials)
        page = tab.open(viewer.link(view="items")).page
        assert page.locator("table.items tbody tr").count() > 0
        page.locator("table.items a.row").first.click()
        tab.whole()
        page.keyboard.press("4")
        page.wait_for_selector("section[aria-label=note] [role=status]:has-text('noted')")
        tab.close()
        wrong = browser.new_context(http_credentials=credentials | {"password": "guess"})
        assert wrong.request.get(viewer.link()).status == 401
        wrong.close()
        out = browser.new_context(http_credentials=credentials)
        assert out.request.get(viewer.link()).status == 200
        answer = out.request.get(viewer.link().replace("/?", "/logout"))
        assert answer.status == 401
        assert "Basic" in answer.headers["www-authenticate"]
        out.close()
    journal.with_name(f"{journal.name}.notes.jsonl").unlink()


def test_a_run_says_whether_it_lives_and_a_copy_shows_the_same(
    browser: Any, tab: Tab, tmp_path: Path
) -> None:
    run = tmp_path / "here" / "run"
    for step in (1, 2):
        write_step(run, f"{step:06}", [rollout(step, d, s) for d in (0, 1) for s in range(4)])
    (run / "metrics.jsonl").write_text(metric_rows([1, 2]))
    (run / "config.toml").write_text('[model]\nname = "tiny"\n')
    dead, copy = tmp_path / "here" / "dead", tmp_path / "elsewhere" / "run"
    shutil.copytree(run, dead)
    shutil.copytree(run, copy)
    long_ago = time.time() - 86_400
    for path in (*dead.rglob("*"), *copy.rglob("*")):
        os.utime(path, (long_ago, long_ago))
    with Viewer([run.parent], tmp_path / "cache") as viewer:
        viewer.settled()
        page = tab.open(viewer.link()).page
        rows = page.locator("main tbody tr")
        assert "died" in rows.filter(has_text="dead").inner_text()
        assert "live" in rows.filter(has_text="run").inner_text()
        page.wait_for_selector("#state .live")
        assert "1 live run" in page.inner_text("#state").replace("\u00a0", " ")
        here = tab.open(viewer.link(view="run", source="run")).page.inner_text("table")
        for path in run.rglob("*"):
            os.utime(path, (long_ago, long_ago))
    with Viewer([copy], tmp_path / "other") as viewer:
        viewer.settled()
        page = tab.open(viewer.link(view="run", source="run")).page
        assert page.inner_text("table") == here
        assert "died" in page.inner_text("dl.facts")
    tab.hosts = set(list(tab.hosts)[:1])  # two viewers, two ports


def test_a_telephone_goes_down_to_a_verdict(browser: Any, viewer: Viewer) -> None:
    tab = Tab(browser, NARROW, has_touch=True, is_mobile=True)
    page = tab.open(viewer.link()).page
    page.locator("a.row").first.tap()
    tab.whole()
    page.locator("a", has_text="as a list").tap()
    tab.whole()
    page.locator(".facets > summary").tap()
    page.locator(".facets a.chip", has_text=re.compile(r"^undone-work")).tap()
    page.wait_for_url("**suspicion=**")
    tab.whole()
    page.locator("table.items a.row").first.tap()
    tab.whole()
    page.locator("button", has_text="exploit").tap()
    page.wait_for_selector("section[aria-label=note] [role=status]:has-text('noted')")
    page.locator("button", has_text="exploit").tap()
    page.wait_for_selector("section[aria-label=note] [role=status]:has-text('taken back')")
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    tab.close()


def test_every_view_is_reached_by_keys_and_shows_where_the_focus_is(
    viewer: Viewer, tab: Tab
) -> None:
    page = tab.open(viewer.link()).page
    for key, view in (("i", "items"), ("v", "verdicts"), ("c", "compare"), ("n", "notes"),
                      ("r", "sources")):  # fmt: skip
        page.keyboard.press("g")
        page.keyboard.press(key)
        tab.whole()
        assert f"view={view}" in tab.state()
    tab.open(viewer.link(view="verdicts", source=SOURCE))
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        where, shown = page.evaluate(FOCUS)
        seen.add(where)
        assert shown, where
    assert {"Items", "Groups", "compare two"} <= {one.strip() for one in seen}
