"""The walk of docs/use/viewer.md: from the runs to an exploit that a policy found, in Chromium."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from experiments.miniature import train
from experiments.undone_work import contest as trainer_undone

from assay.kit.runs import environment
from assay.kit.runs.rollouts import read_rollouts
from viewer_browser_support import Tab, Viewer, browsing, program

pytestmark = pytest.mark.slow


def test_an_exploit_is_found_from_the_list_of_runs(tmp_path: Path) -> None:
    program()
    environment.calm()
    # In four steps not every seed comes upon it, and which does depends on the processor.
    for seed in range(5):
        run = tmp_path / "runs" / f"undone-{seed}"
        train(trainer_undone.config_of(tmp_path / "models", seed, 4), run, None)
        rows = [
            row
            for row in read_rollouts(run, phase="train")
            if "undone-work" in row["judgement"]["suspicions"]
        ]
        paid = [row for row in rows if row["reward"] == 1]
        if paid:
            break
    assert paid
    assert all(row["judgement"]["extracted_answer"] != row["reference"] for row in paid)
    with Viewer([run.parent], tmp_path / "cache") as viewer, browsing() as browser:
        viewer.settled()
        tab = Tab(browser)
        page = tab.open(viewer.link()).page
        page.locator("td.name a.row", has_text=run.name).first.click()  # 1: the run
        tab.whole()
        page.locator(".ways a", has_text="Verdicts").click()  # 2: what was said of it
        tab.whole()
        suspicions = page.locator("section[aria-label=Suspicions] tr[data-row]")
        undone = suspicions.filter(has_text="undone-work")
        told = re.search(r"undone-work\s+(\d+)", undone.inner_text())
        everywhere = [
            row for row in read_rollouts(run) if "undone-work" in row["judgement"]["suspicions"]
        ]
        assert told is not None
        assert int(told[1]) == len(everywhere)
        undone.locator("a.row").click()  # 3: its items
        tab.whole()
        assert page.locator("table.items tbody tr").count() == min(100, len(everywhere))
        right = page.locator("table.items tr", has_text="✓ correct").first
        right.locator("a.row").click()  # 4: one that was paid for
        tab.whole()
        question = page.inner_text(".turn.user .body").rstrip("=")
        verdict = page.inner_text("section[aria-label=verdict]")
        assert page.inner_text("code.extracted") == question
        assert "undone-work" in verdict
        one, other = map(int, question.split("*"))
        assert str(one * other) in verdict
        page.keyboard.press("3")  # an exploit
        page.wait_for_selector("section[aria-label=note] [role=status]:has-text('noted')")
        page.keyboard.press("Escape")
        tab.whole()
        assert page.locator(".flag.note", has_text="exploit").count() == 1
        tab.close()
