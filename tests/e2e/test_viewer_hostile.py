"""Hostile texts in every field of a run and a journal, walked through in Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from viewer_browser_support import NARROW, WIDE, Tab, Viewer, browsing, program
from viewer_hostile import LINES, MEGABYTE, TEXTS, hostile_journal, hostile_run

pytestmark = pytest.mark.slow

WATCH = """
window.broken = [];
document.addEventListener("securitypolicyviolation",
  (e) => broken.push(`${e.violatedDirective} ${e.blockedURI}`));
"""
UNHARMED = """() => {
  const odd = [];
  const all = (where) => [...document.querySelectorAll(where)];
  if ("pwned" in window) odd.push("a script ran");
  if (Object.keys(Object.prototype).length || ({}).polluted || ({}).items) odd.push("polluted");
  odd.push(...broken);
  const held = (e) => {
    for (let up = e.parentElement; up; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX !== "visible" || style.contain.includes("paint")) return true;
    }
    return false;
  };
  if (document.documentElement.scrollWidth > innerWidth) {
    const wide = all("main *, #trail *, #top *")
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !held(e));
    odd.push("scrolls sideways", ...wide.slice(0, 4).map((e) => `${e.tagName}.${e.className}`));
  }
  const markup = "iframe, script:not([src]), style, base, embed, object, form[action]";
  odd.push(...all(markup).map((e) => e.outerHTML));
  for (const e of all("link, script[src]")) {
    if (new URL(e.href || e.src).origin !== location.origin) odd.push(e.outerHTML);
  }
  for (const e of all("*")) {
    odd.push(...e.getAttributeNames().filter((name) => name.startsWith("on")));
    const to = e.getAttribute("href");
    if (to !== null && !["A", "LINK"].includes(e.tagName)) odd.push(e.outerHTML);
    if (to !== null && !/^(\\.\\/|#main$)/.test(to)) odd.push(`leads to ${to}`);
  }
  if (all("#top, #tabs, #trail, main, dialog").length !== 5) odd.push("another shell");
  return odd;
}"""
WRITES = """async ([address, id]) => {
  const tries = [
    { mode: "cors", headers: { "Content-Type": "application/json", "X-Assay": "1" } },
    { mode: "no-cors", headers: { "Content-Type": "text/plain" } },
  ];
  const body = JSON.stringify({ id, label: "right", text: "" });
  const told = [];
  for (const each of tries) {
    try {
      told.push((await fetch(`${address}api/notes`, { method: "POST", body, ...each })).ok);
    } catch {
      told.push(false);
    }
  }
  return told;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    program()
    folder = tmp_path_factory.mktemp("hostile")
    hostile_run(folder)
    hostile_journal(folder)
    with Viewer([folder], tmp_path_factory.mktemp("cache")) as found:
        found.settled()
        yield found


def watched(browser: Any, size: tuple[int, int] = WIDE, **options: Any) -> Tab:
    tab = Tab(browser, size, **options)
    tab.page.add_init_script(WATCH)
    return tab


def unharmed(tab: Tab, where: str) -> None:
    """Nothing ran, nothing was asked elsewhere, and the page answers to a key."""
    assert tab.page.evaluate(UNHARMED) == [], where
    tab.page.keyboard.press("?")
    tab.page.wait_for_selector("dialog[open]")
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector("dialog:not([open])", state="attached")


def ask(viewer: Viewer, path: str, **fields: str) -> Any:
    status, found = viewer.api.answer(path, list(fields.items()))
    assert status == 200, found
    return found


def sources(viewer: Viewer) -> dict[str, str]:
    return {str(one["kind"]): str(one["id"]) for one in ask(viewer, "api/sources")["sources"]}


def every_item(viewer: Viewer, source: str) -> list[dict[str, Any]]:
    return list(ask(viewer, "api/items", source=source, limit="500")["items"])


def views(viewer: Viewer) -> list[str]:
    of = sources(viewer)
    run, journal = of["run"], of["journal"]
    link = viewer.link
    told = ask(viewer, "api/facets", source=journal)
    named = [value for value, _ in told["verifiers"] if value]
    groups = ask(viewer, "api/groups", source=journal)
    return [
        link(), link(tick=run, metric=["reward", "correct", *TEXTS[:9], "__proto__"]),
        link(view="run", source=run), link(view="run", source=journal),
        *(link(view="step", source=run, step=n, phase=phase)
          for n in (1, 2) for phase in ("train", "eval")),
        link(view="step", source=journal),
        *(link(view="group", source=run, step=1, phase="train", draw=n) for n in (0, 3, 4, 7)),
        *(link(view="group", source=journal, problem=one["problem"]) for one in groups[:5]),
        link(view="timeline", source=run), link(view="items", sort="-length"),
        *(link(view="verdicts", source=source, by=by, x=x) for source in (run, journal)
          for by, x in (("verifier", "step"), ("version", "time"), ("phase", "step"))),
        *(link(view="compare", source=journal, a=name, b="math") for name in named[:3]),
        link(view="notes"),
        *(link(view="items", source=source, verdict=text) for source in (run, journal)
          for text in TEXTS[:2]),
        *(link(view="items", text=text) for text in TEXTS[:1]),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_no_view_runs_asks_or_breaks_what_it_shows(
    browser: Any, viewer: Viewer, size: tuple[int, int]
) -> None:
    tab = watched(browser, size)
    for link in views(viewer):
        tab.open(link)
        assert tab.page.locator("main .problem").count() == 0, (link, tab.text()[:400])
        for each in tab.page.locator("main details:not([open]) > summary").all()[:20]:
            if each.is_visible():
                each.click()
        tab.whole()
        unharmed(tab, link)
    tab.close()


def test_every_item_is_shown_as_text(browser: Any, viewer: Viewer) -> None:
    tab = watched(browser)
    for kind, source in sources(viewer).items():
        for item in every_item(viewer, source):
            more = {"tokens": "logprob"} if kind == "run" else {}
            tab.open(viewer.link(view="item", id=item["id"], **more))
            assert tab.page.inner_text("h1") != "Not shown", item["id"]
            tab.page.evaluate("document.querySelectorAll('details').forEach((e) => e.open = true)")
            tab.whole()
            unharmed(tab, item["id"])
    tab.close()


def test_a_response_is_there_to_the_letter(browser: Any, viewer: Viewer) -> None:
    tab = watched(browser)
    run = sources(viewer)["run"]
    texts = [*TEXTS, MEGABYTE, LINES]
    for item in every_item(viewer, run):
        if item["step"] != 1 or item["phase"] != "train":
            continue
        text = texts[item["draw"] * 4 + item["sample"]]
        if not text:
            continue
        page = tab.open(viewer.link(view="item", id=item["id"])).page
        while page.locator(".turn.policy > .body > div > .rest").count():
            page.locator(".turn.policy > .body > div > .rest").first.click()
        same = page.evaluate(
            "(text) => document.querySelector('.turn.policy pre').textContent === JSON.parse(text)",
            json.dumps(text.encode("utf-8", "replace").decode()),
        )
        assert same, (item["id"], text[:80])
    tab.close()


def test_what_turns_letters_around_stays_in_its_place(browser: Any, viewer: Viewer) -> None:
    """A label with an override is marked, and no neighbour is turned around with it."""
    tab = watched(browser)
    run = sources(viewer)["run"]
    label = next(text for text in TEXTS if "\u202e" in text)
    page = tab.open(viewer.link(view="items", source=run, verdict=label)).page
    cell = page.locator("table.items .verdict").first
    assert cell.locator(".unseen").count() == 4
    drawn = "e => getComputedStyle(e, '::before').content"
    assert "U+202E" in cell.locator(".unseen").first.evaluate(drawn)
    # In one piece: the page may draw itself anew between two questions.
    placed = page.locator("table.items td, .verdict, .unseen").evaluate_all(
        "all => all.map(e => getComputedStyle(e).unicodeBidi)"
    )
    assert placed
    assert all(one.startswith("isolate") for one in placed)
    assert "\u202e" not in page.title()
    assert page.evaluate(
        "[...document.querySelectorAll('[title], [aria-label]')].every((e) =>"
        " !/[\\u202a-\\u202e\\u2066-\\u2069]/.test(e.title + (e.getAttribute('aria-label') || '')))"
    )
    tab.close()


def test_states_that_somebody_made_up(browser: Any, viewer: Viewer) -> None:
    """An address is text too: no name of one reaches a prototype, a script or another host."""
    tab = watched(browser)
    of = sources(viewer)
    item = every_item(viewer, of["run"])[0]["id"]
    names = ["view", "source", "id", "step", "phase", "draw", "sort", "after", "by", "x", "a", "b",
             "va", "vb", "tokens", "from", "to", "metric", "tick", "note", "problem", "text",
             "label", "samples", "reward_from", "time_from", "length_to", "fault"]  # fmt: skip
    values = ["constructor", "__proto__", "hasOwnProperty", TEXTS[0], TEXTS[2], TEXTS[4],
              "//evil.example/", "../../..", "1e999", "-1", "\x00", TEXTS[16]]  # fmt: skip
    own = {"id", "tokens", "from", "view", "samples"}
    for number, name in enumerate(names):
        state = {"view": "item", "id": item} if name in own else {"view": "items"}
        fields = {**state, name: values[number % len(values)]}
        tab.open(viewer.link(**fields))
        unharmed(tab, str(fields))
    for name in ("view", "tokens", "sort", "by", "from"):
        for value in values[:3]:
            tab.open(viewer.link(**{"view": "item", "id": item, name: value}))
            unharmed(tab, f"{name}={value}")
            tab.page.keyboard.press("Escape")
            tab.whole()
            assert tab.page.url.startswith(f"http://127.0.0.1:{viewer.port}/?")
    tab.open(viewer.link() + "&__proto__=a&__proto__[polluted]=1&constructor.prototype.polluted=1")
    unharmed(tab, "query")
    # what the server refuses is said on the page, and by the browser in its console
    tab.wrong = [each for each in tab.wrong if "status of 40" not in each]
    tab.close()


def test_keys_typed_into_a_note_are_its_text(browser: Any, viewer: Viewer) -> None:
    tab = watched(browser)
    item = every_item(viewer, sources(viewer)["run"])[1]["id"]
    page = tab.open(viewer.link(view="item", id=item)).page
    before = page.url
    page.keyboard.press("n")
    page.keyboard.type("1234 gr jk t[]/? <script>pwned=1</script>")
    page.keyboard.press("Backspace")
    assert page.url == before
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("section[aria-label=note] [role=status]:has-text('noted')")
    page.reload()
    tab.whole()
    assert page.input_value("textarea").endswith("pwned=1</script")
    unharmed(tab, "note")
    tab.close()


def test_no_other_page_frames_it_or_writes_a_note(browser: Any, viewer: Viewer) -> None:
    """Clickjacking, and a note from another origin: a page of another port is one."""
    item = every_item(viewer, sources(viewer)["run"])[2]["id"]
    before = ask(viewer, "api/item", id=item)["notes"]
    context = browser.new_context()
    page = context.new_page()
    page.route("http://other.localhost/**", lambda route: route.fulfill(
        body=f"<iframe src='{viewer.link()}'></iframe>", content_type="text/html"))  # fmt: skip
    page.goto("http://other.localhost/")
    page.wait_for_timeout(300)
    assert all("Runs" not in frame.content() for frame in page.frames if frame.parent_frame)
    wrote = page.evaluate(
        WRITES,
        [f"http://127.0.0.1:{viewer.port}/", item],
    )
    assert wrote == [False, False]
    assert ask(viewer, "api/item", id=item)["notes"] == before
    context.close()


def test_what_is_exported_is_rows_whatever_is_in_them(viewer: Viewer, browser: Any) -> None:
    tab = watched(browser)
    page = tab.open(viewer.link(view="items")).page
    with page.expect_download() as waiting:
        page.locator("a", has_text="export").first.click()
    lines = Path(waiting.value.path()).read_bytes().splitlines()
    total = sum(len(every_item(viewer, one)) for one in sources(viewer).values())
    assert len([json.loads(line) for line in lines]) == total
    tab.close()
