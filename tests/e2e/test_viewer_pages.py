"""The viewer in Chromium, over a real run and its journal: what a person does with it."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.kit.runs.records import read_rows
from assay.kit.runs.rollouts import read_rollouts
from viewer_browser_support import NARROW, Tab, Viewer, browsing, program

VIEWS = ("sources", "run", "timeline", "items", "verdicts", "compare", "notes")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def run(tiny_model: Path, sums_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four steps that was trained, with its journal."""
    program()
    from rich.console import Console

    from assay.kit.runs.environment import calm
    from assay.trainer.recipes.train import run
    from assay.trainer.records import folder
    from assay.trainer.settings import config

    calm()
    made = config.build(
        {
            "model": {"name": str(tiny_model), "device": "cpu", "precision": "float32"},
            "data": {"source": "jsonl", "path": str(sums_file)},
            "reward": {"verifier": "exact", "timeout_s": 30},
            "optim": {"learning_rate": 4e-4},
            "rollout": {"prompts_per_step": 4, "group_size": 4, "max_new_tokens": 4},
            "eval": {"prompts": 10, "batch_size": 10, "show": 0},
            "run": {"steps": 4, "checkpoint_every": 0, "report_to": []},
        },
        origin="test",
    )
    where = folder.create(made, "tiny", tmp_path_factory.mktemp("runs") / "tiny")
    run(made, where, Console(file=io.StringIO()), transport=None)
    return where.path


@pytest.fixture
def viewer(run: Path, tmp_path: Path) -> Iterator[Viewer]:
    with Viewer([run.parent], tmp_path / "cache") as found:
        found.settled()
        yield found


@pytest.fixture
def tab(browser: Any) -> Iterator[Tab]:
    found = Tab(browser)
    yield found
    found.close()


def source_of(viewer: Viewer) -> str:
    """The id of the run."""
    _, told = viewer.api.answer("api/sources", [])
    return next(str(each["id"]) for each in told["sources"] if each["kind"] == "run")


def test_from_the_runs_down_to_a_sample_and_up_again_by_keys(
    viewer: Viewer, tab: Tab, run: Path
) -> None:
    page = tab.open(viewer.link()).page
    metrics = read_rows(run / "metrics.jsonl")
    assert "tiny" in page.inner_text("table")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    tab.whole()
    assert "view=run" in tab.state()
    rows = page.locator("main table tbody tr")
    assert rows.count() == len({(r["step"], r["phase"]) for r in read_rollouts(run)})
    newest = rows.filter(has_text="train").first
    assert newest.locator("td").first.inner_text() == "4"
    assert f"{metrics[-1]['reward']:.3f}/16" in newest.inner_text().replace(" ", "")
    newest.locator("a.row").click()
    tab.whole()
    assert page.locator(".squares").count() == 4
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    tab.whole()
    assert page.locator(".card").count() == 4
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    tab.whole()
    first = page.inner_text("h1")
    page.keyboard.press("]")
    tab.whole()
    assert page.inner_text("h1") != first
    page.keyboard.press("[")
    tab.whole()
    assert page.inner_text("h1") == first
    for view in ("group", "step", "run"):
        page.keyboard.press("Escape")
        tab.whole()
        assert f"view={view}" in tab.state()
    page.keyboard.press("?")
    assert page.locator("dialog[open]").inner_text().startswith("Keys")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_a_sample_shows_what_was_recorded_and_its_tokens(
    viewer: Viewer, tab: Tab, run: Path
) -> None:
    row = next(r for r in read_rollouts(run, phase="train") if r["step"] == 4 and r["advantages"])
    _, told = viewer.api.answer(
        "api/items",
        [("source", source_of(viewer)), ("step_from", "4"), ("step_to", "4"), ("phase", "train"),
         ("draw", str(row["draw"])), ("sort", "sample")],
    )  # fmt: skip
    item = next(each for each in told["items"] if each["sample"] == row["sample"])
    page = tab.open(viewer.link(view="item", id=item["id"])).page
    assert page.inner_text(".turn.user .body") == row["prompt"][-1]["content"]
    assert page.text_content(".turn.policy pre") == row["response"]
    assert f"{row['reward']:.3f}" in page.inner_text("section[aria-label=verdict]")
    page.keyboard.press("t")
    tab.whole()
    assert page.locator(".tokens .tok").count() == len(row["ids"])
    page.locator(".tokens").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    told_token = page.inner_text(".token-readout").replace("\u2212", "-")
    assert f"{row['logprobs'][1]:.4f}" in told_token
    assert f"{row['advantages'][0][2]:+.4f}" in told_token


def test_filters_are_the_address_and_the_way_back_undoes_them(
    viewer: Viewer, tab: Tab, run: Path, browser: Any
) -> None:
    source = source_of(viewer)
    page = tab.open(viewer.link(view="items", source=source)).page
    right = sum(r["judgement"]["verdict"] == "correct" for r in read_rollouts(run))
    chip = page.locator(".facets a.chip", has_text=re.compile(r"^correct"))
    assert chip.inner_text().replace("\n", " ").split()[-1] == str(right)
    chip.click()
    page.wait_for_url("**verdict=correct**")
    tab.whole()
    assert page.locator("table.items tbody tr").count() == min(right, 100)
    assert set(page.locator("table.items .verdict").all_inner_texts()) == {"✓ correct"}
    page.fill("input[name=step_from]", "3")
    page.keyboard.press("Tab")
    page.wait_for_url("**step_from=3**")
    tab.whole()
    shown = page.locator("table.items").inner_text()
    again = Tab(browser)
    again.open(page.url)
    assert again.page.locator("table.items").inner_text() == shown
    again.close()
    page.go_back()
    tab.whole()
    assert "step_from" not in tab.state()
    page.locator(".chosen a.chip", has_text="verdict").click()
    tab.whole()
    assert "verdict" not in tab.state()


def test_notes_by_key_are_kept_listed_and_exported(viewer: Viewer, tab: Tab, run: Path) -> None:
    page = tab.open(viewer.link(view="items", source=source_of(viewer))).page
    page.locator("table.items a.row").first.click()
    tab.whole()
    page.keyboard.press("3")
    page.wait_for_selector("text=noted")
    page.keyboard.press("n")
    page.keyboard.type("writes the answer of the example")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("section[aria-label=note] [role=status]:has-text('noted')")
    tab.open(viewer.link(view="notes"))
    page.wait_for_selector("text=writes the answer of the example")
    assert page.locator("tbody tr").count() == 1
    with page.expect_download() as waiting:
        page.locator("a", has_text="export labelled set").click()
    lines = Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1
    assert "writes the answer of the example" in lines[0]
    (run / "notes.jsonl").unlink()


def test_what_is_exported_is_what_is_chosen(viewer: Viewer, tab: Tab, run: Path) -> None:
    source = source_of(viewer)
    page = tab.open(viewer.link(view="items", source=source, step_from=2, step_to=2)).page
    with page.expect_download() as waiting:
        page.locator("a", has_text="export").first.click()
    rows = [json.loads(line) for line in Path(waiting.value.path()).read_text().splitlines()]
    assert len(rows) == sum(r["step"] == 2 for r in read_rollouts(run))


def test_a_live_run_grows_under_the_page(browser: Any, tab: Tab, run: Path, tmp_path: Path) -> None:
    growing = tmp_path / "growing"
    shutil.copytree(run, growing)
    (growing / "report.json").unlink()
    last = growing / "rollouts" / "000004.jsonl.gz"
    kept = last.read_bytes()
    last.unlink()
    lines = (growing / "metrics.jsonl").read_text().splitlines(keepends=True)
    (growing / "metrics.jsonl").write_text("".join(lines[:-1]))
    with Viewer([growing], tmp_path / "cache") as viewer:
        viewer.settled()
        page = tab.open(viewer.link(view="run", source=source_of(viewer), phase="train")).page
        assert page.locator("tbody tr td").first.inner_text() == "3"
        beside = growing / "rollouts" / ".new"
        beside.write_bytes(kept)
        beside.rename(last)
        with (growing / "metrics.jsonl").open("a") as file:
            file.write(lines[-1])
        page.wait_for_selector("tbody tr td:first-child a:text-is('4')")


def test_curves_lead_to_steps_and_bars_narrow_the_list(viewer: Viewer, tab: Tab) -> None:
    source = source_of(viewer)
    page = tab.open(viewer.link(view="run", source=source)).page
    chart = page.locator(".chart svg[role=img]").first
    chart.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert "step 2" in page.locator(".readout").first.inner_text()
    page.keyboard.press("Enter")
    tab.whole()
    assert "view=step" in tab.state()
    assert "step=2" in tab.state()
    tab.open(viewer.link(view="items", source=source))
    page.locator("g.bar.pickable").first.click()
    page.wait_for_url("**reward_from=**")
    tab.whole()


def test_the_journal_of_the_run_is_read_by_itself(viewer: Viewer, tab: Tab, run: Path) -> None:
    _, told = viewer.api.answer("api/sources", [])
    journal = next(each for each in told["sources"] if each["kind"] == "journal")
    page = tab.open(viewer.link(view="verdicts", source=journal["id"])).page
    assert page.locator(".chart .line").count() >= 2
    page.locator("a", has_text="as a list").click()
    tab.whole()
    assert page.locator("table.items tbody tr").count() == min(journal["items"], 100)
    page.locator("table.items a.row").first.click()
    tab.whole()
    assert "exact" in page.inner_text("section[aria-label=verdict]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 850), NARROW], ids=["wide", "narrow"])
def test_no_view_scrolls_sideways(
    browser: Any, viewer: Viewer, size: tuple[int, int], scheme: str
) -> None:
    source = source_of(viewer)
    _, told = viewer.api.answer("api/items", [("source", source), ("phase", "train")])
    item = told["items"][0]
    tab = Tab(browser, size, color_scheme=scheme)
    links = [viewer.link(view=view, source=source) for view in VIEWS]
    where = {"source": source, "step": item["step"], "phase": "train"}
    links += [
        viewer.link(view="step", **where),
        viewer.link(view="group", **where, draw=item["draw"]),
        viewer.link(view="item", id=item["id"], tokens="logprob"),
    ]
    for link in links:
        page = tab.open(link).page
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= size[0], link
        assert page.locator("main .problem").count() == 0, page.inner_text("main .problem")
        named = page.locator("main button, main a, main input, main select, main textarea")
        for each in named.all()[:60]:
            name = each.evaluate(
                "e => (e.textContent || e.getAttribute('aria-label') || e.title || '').trim()"
                " || (e.closest('label') ? e.closest('label').textContent : '')"
            )
            assert name, each.evaluate("e => e.outerHTML")
    tab.close()


def test_a_viewer_that_ended_is_said_on_the_page_and_forgotten_when_it_is_back(
    browser: Any, run: Path, tmp_path: Path
) -> None:
    tab = Tab(browser)
    with Viewer([run.parent], tmp_path / "cache") as viewer:
        page = tab.open(viewer.link()).page
        page.route("**/api/**", lambda route: route.abort())
        page.wait_for_selector("#trouble:not([hidden])")
        assert "assay view" in page.inner_text("#trouble")
        page.unroute("**/api/**")
        page.wait_for_selector("#trouble", state="hidden")
    tab.wrong = [each for each in tab.wrong if "ERR_FAILED" not in each]
    tab.close()
