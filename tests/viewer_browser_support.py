"""A browser that watches what a page does, and the viewer's server for it to look at."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
WIDE, NARROW = (1280, 850), (390, 844)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def program() -> str:
    """Chromium's path; the test is skipped where there is none, or no playwright."""
    pytest.importorskip("playwright.sync_api", reason="needs playwright (a development package)")
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        pytest.skip(f"needs Chromium: none of {', '.join(PROGRAMS)} is on the PATH")
    return found


@contextlib.contextmanager
def browsing() -> Iterator[Any]:
    """One browser."""
    where = program()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where, args=list(ARGUMENTS))
        yield browser
        browser.close()


class Viewer:
    """The viewer's own server over real sources, on a free port, in a thread."""

    def __init__(self, paths: Sequence[Path], cache: Path, **settings: Any) -> None:
        from assay.viewer.api import ViewerApi
        from assay.viewer.app import Pages
        from assay.viewer.serve import ViewerServer

        self.api = ViewerApi(paths, cache)
        self._server = ViewerServer(Pages(self.api), port=0, **settings)
        self.port = urlsplit(self._server.address).port
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> Viewer:
        self.api.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *about: Any) -> None:
        self._server.stop()
        self._thread.join()
        self.api.__exit__(*about)

    def link(self, **fields: object) -> str:
        """The address of a state."""
        return f"http://127.0.0.1:{self.port}/?{urlencode(fields, doseq=True)}"

    def settled(self, patience_s: float = 60.0) -> None:
        """Returns when all is indexed."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            _, told = self.api.answer("api/pulse", [])
            if told["indexed"] and min(told["indexed"].values()) >= 1:
                return
            time.sleep(0.02)
        raise TimeoutError("the index did not end")


class Tab:
    """A page, with all that went wrong on it, and all hosts that it asked."""

    def __init__(self, browser: Any, size: tuple[int, int] = WIDE, **options: Any) -> None:
        viewport = {"width": size[0], "height": size[1]}
        self.context = browser.new_context(viewport=viewport, accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.wrong: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("console", self._said)
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda asked: self.hosts.add(urlsplit(asked.url).netloc))

    def _said(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.wrong.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"a script opened a dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, address: str) -> Tab:
        """Goes there, and returns when all parts are on the page."""
        self.page.goto(address)
        return self.whole()

    def whole(self) -> Tab:
        """Returns when all parts are on the page."""
        try:
            self.page.wait_for_selector("main:not([aria-busy])")
        except Exception as error:
            raise AssertionError(f"{self.page.url} is not whole: {self.wrong}") from error
        self.page.wait_for_selector("main .later[aria-busy]", state="detached")
        return self

    def text(self) -> str:
        """What a person reads in the content."""
        return str(self.page.inner_text("main"))

    def state(self) -> str:
        """The query string."""
        return urlsplit(self.page.url).query

    def close(self) -> None:
        """Closes it; nothing may have gone wrong on it, and nobody else may have been asked."""
        self.context.close()
        assert self.wrong == [], self.wrong
        assert len(self.hosts) <= 1, self.hosts


def write_step(run: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """A file of rollouts, as the trainer writes it: whole, or not there."""
    folder = run / "rollouts"
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{name}.partial"
    with gzip.open(beside, "wt", encoding="utf-8", compresslevel=1) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    beside.rename(folder / f"{name}.jsonl.gz")


def rollout(step: int, draw: int, sample: int, **more: Any) -> dict[str, Any]:
    """A row of docs/reference/rollouts.md."""
    right = sample % 2 == 0
    verdict = {
        "reward": float(right), "verdict": "correct" if right else "incorrect",
        "components": [{"name": "correctness", "score": float(right), "weight": 1.0}],
        "spans": [], "extracted_answer": "42" if right else "41", "explanation": "",
        "verifier": "math", "version": "5", "suspicions": [],
    }  # fmt: skip
    row = {
        "version": 1, "step": step, "phase": "train", "process": 0, "policy_step": step,
        "draw": draw, "sample": sample, "hint": 0, "problem": f"problem-{draw}", "task": "",
        "question": f"What is {draw} + 1?", "reference": str(draw + 1),
        "prompt": [{"role": "user", "content": f"What is {draw} + 1?"}], "prompt_ids": [1, 2],
        "response": f"It is {sample}. " * 20, "ids": [5, 6, 7, 8], "tokens": 4,
        "truncated": False, "finished": True, "own": [[0, 4, 0, 0, "policy"]],
        "logprobs": [-0.1, -2.0, -0.5, -0.01], "old_logprobs": None, "trained": [[0, 3]],
        "advantages": [[0, 3, 0.5 if right else -0.5]], "reward": float(right),
        "shaped_reward": float(right), "judgement": verdict, "fault": None,
        "judge_s": 0.01, "queue_s": 0.001,
    }  # fmt: skip
    return row | more


def metric_rows(steps: Sequence[int], **more: Any) -> str:
    """Lines of metrics.jsonl."""
    rows = ({"step": step, "reward": 0.1 * step, "fault_ratio": 0.0, **more} for step in steps)
    return "".join(json.dumps(row) + "\n" for row in rows)
