"""Takes the pictures of docs/use/viewer.md: each view of the runs in a folder, in Chromium.

    python -m experiments undone_work --out runs/undone --seeds 0
    python scripts/viewer_pictures.py runs docs/assets/viewer

Needs playwright and a Chromium on the PATH. The walk is over the run called `undone-*`, the sample
with tool calls of another run, where there is one. Colours are cut to 160: a picture is some 40 kB.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from assay.viewer.api import ViewerApi
from assay.viewer.app import Pages
from assay.viewer.serve import ViewerServer

WIDE, NARROW = (1280, 800), (390, 844)
COLOURS = 160


def links(api: ViewerApi) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each picture, and the state that it shows."""
    _, told = api.answer("api/sources", [])
    runs = [one for one in told["sources"] if one["kind"] == "run"]
    undone = next((one for one in runs if one["id"].startswith("undone")), runs[0])
    tools = next((one for one in runs if one is not undone), undone)
    of = {"source": undone["id"]}
    last = {"step_from": undone["step"], "step_to": undone["step"], "phase": "train"}
    found = _items(api, {**of, **last, "suspicion": "any", "sort": "length"})
    item = found[0]
    talk = max(
        _items(api, {"source": tools["id"], "sort": "-length"}), key=lambda one: one["calls"]
    )
    yield "runs", {"tick": [one["id"] for one in runs[:2]]}
    yield "run", {"view": "run", **of}
    yield "steps", {"view": "run", **of, "phase": "train"}
    yield "suspicious", {"view": "items", **of, **last, "suspicion": "any"}
    yield "exploit", {"view": "item", "id": item["id"]}
    yield "step", {"view": "step", **of, "step": item["step"], "phase": "train"}
    yield (
        "group",
        {"view": "group", **of, "step": item["step"], "phase": "train", "draw": item["draw"]},
    )
    yield "tools", {"view": "item", "id": talk["id"]}
    yield "tokens", {"view": "item", "id": item["id"], "tokens": "logprob"}
    yield "timeline", {"view": "timeline", "source": tools["id"]}
    yield "items", {"view": "items", **of}
    yield "verdicts", {"view": "verdicts", **of}


def _items(api: ViewerApi, fields: dict[str, Any]) -> list[dict[str, Any]]:
    query = [(name, str(value)) for name, value in fields.items()]
    status, found = api.answer("api/items", query)
    if status != 200 or not found["items"]:
        raise SystemExit(f"nothing to picture: {found}")
    return list(found["items"])


def pictures(api: ViewerApi, address: str, out: Path) -> None:
    """Takes them all: wide and light; some narrow, some dark too."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - a development package

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser: Any = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for size, scheme, only in (
            (WIDE, "light", ()), (WIDE, "dark", ("run",)), (NARROW, "light", ("exploit",)),
        ):  # fmt: skip
            viewport = {"width": size[0], "height": size[1]}
            page = browser.new_page(viewport=viewport, color_scheme=scheme)
            for name, fields in links(api):
                if only and name not in only:
                    continue
                page.goto(f"{address}?{urlencode(fields, doseq=True)}")
                page.wait_for_selector("main:not([aria-busy])")
                page.wait_for_selector("main .later[aria-busy]", state="detached")
                if name == "steps":
                    page.locator("section[aria-label=Steps] h2").scroll_into_view_if_needed()
                    page.mouse.wheel(0, 500)
                    page.wait_for_timeout(200)
                more = {"light": "", "dark": "-dark"}[scheme] + (
                    "-narrow" if size == NARROW else ""
                )
                keep(page.screenshot(), out / f"{name}{more}.png")
        browser.close()


def keep(picture: bytes, path: Path) -> None:
    """Writes a picture in few colours."""
    from PIL import Image  # noqa: PLC0415 - matplotlib brings it

    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    print(f"{path} {path.stat().st_size // 1000} kB")


def main() -> None:
    """Serves the folder's viewer, and takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache, ViewerApi([chosen.runs], Path(cache)) as api:
        server = ViewerServer(Pages(api), port=0)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while min(api.answer("api/pulse", [])[1]["indexed"].values(), default=0) < 1:
                time.sleep(0.1)
            pictures(api, server.address, chosen.out)
        finally:
            server.stop()
            thread.join()


if __name__ == "__main__":
    main()
