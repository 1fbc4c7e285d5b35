"""What the viewer takes: first paint, indexing, each question of a page; what it costs scoring.

20,000 rollouts and two million judgements, made by the writers of real ones, in `assay view`, a
process of its own that is asked over HTTP. Beside it what one has without a viewer: the journal's
columns read into memory once, and DuckDB over them.

    python -m bench viewer --parts first,questions,peer,scoring --judgements 2000000
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.common import interleaved, spread
from bench.viewer_data import BEGAN_S, SPAN_S, make_journal, make_run
from bench.wire import cpu_s

PARTS = ("first", "questions", "peer", "scoring")
FIRST = (
    "", "viewer.css", "main.js", "api/sources", "api/pulse",
    "api/metrics?source=run&name=reward&name=correct&name=fault_ratio&name=response_length",
    "api/metrics?source=run&name=reward&name=entropy&name=kl", "api/steps?source=run",
)  # fmt: skip
"""What the first page and a run's page ask."""
_ALL = "source=run&source=verdicts.sqlite"
_TIMES = f"time_from={BEGAN_S + SPAN_S / 4}&time_to={BEGAN_S + SPAN_S / 3}"
QUESTIONS = {
    "items, the newest": "api/items?",
    "items, a page on": "api/items?after={after}",
    "items by reward": "api/items?sort=-reward",
    "items by length": "api/items?sort=-length",
    "items by length, one verifier": "api/items?sort=length&verifier=exact",
    "one verifier and fault": "api/items?verifier=math&fault=ITEM_TIMEOUT",
    "a suspicion": "api/items?suspicion=FORGED_EQUALITY",
    "a range of time": f"api/items?{_TIMES}",
    "a range of reward and length": "api/items?reward_from=0.5&length_from=800",
    "a problem": "api/items?problem=77",
    "facets": "api/facets?",
    "facets, one verifier": "api/facets?verifier=math",
    "facets, a range of time": f"api/facets?{_TIMES}",
    "facets, a range of reward": "api/facets?reward_from=0.5",
    "curve over time": "api/curves?x=time&by=verifier",
    "curve over steps": "api/curves?x=step&by=verifier",
    "curve of faults by version": "api/curves?x=step&by=version&y=faults",
    "curve, a range of time": f"api/curves?x=time&by=verifier&{_TIMES}",
    "histogram of rewards": "api/histogram?of=reward&by=verifier",
    "histogram of lengths": "api/histogram?of=length&by=verifier",
    "histogram, a range of time": f"api/histogram?of=length&by=verifier&{_TIMES}",
    "groups of a step": "api/groups?source=run&step=100&phase=train",
    "steps of a journal": "api/steps?source=verdicts.sqlite",
    "two verifiers compared": "api/compare?a=math&b=exact",
    "two versions compared": "api/compare?a=math@1&b=math@2",
    "compared, a range of time": f"api/compare?a=math&b=judge&{_TIMES}",
    "an entry": "api/item?id={entry}",
    "a rollout": "api/item?id={rollout}",
    "tokens of a rollout": "api/tokens?id={rollout}",
    "like an entry": "api/similar?id={entry}",
    "like a rollout": "api/similar?id={rollout}",
    "sources": "api/sources",
    "pulse": "api/pulse",
}
PEER = {
    "items by reward": "SELECT id FROM t ORDER BY reward DESC NULLS LAST LIMIT 50",
    "one verifier and fault": "SELECT id FROM t WHERE verifier = 'math' AND fault = 'ITEM_TIMEOUT' "
    "ORDER BY time_s DESC LIMIT 50",
    "a suspicion": "SELECT id FROM t WHERE suspicions LIKE '%FORGED_EQUALITY%' "
    "ORDER BY time_s DESC LIMIT 50",
    "facets": "SELECT verifier, version, verdict, fault, count(*) FROM t GROUP BY ALL",
    "curve over time": "SELECT CAST(time_s / 1800 AS BIGINT), verifier, avg(reward) FROM t "
    "GROUP BY ALL",
    "histogram of lengths": "SELECT CAST(response_chars / 16 AS BIGINT), verifier, count(*) FROM t "
    "GROUP BY ALL",
    "two verifiers compared": "SELECT a.verdict, b.verdict, count(*), avg(a.reward), avg(b.reward) "
    "FROM (SELECT item_key, arg_max(verdict, id) AS verdict, arg_max(reward, id) AS reward FROM t "
    "WHERE verifier = 'math' GROUP BY 1) a JOIN (SELECT item_key, arg_max(verdict, id) AS verdict, "
    "arg_max(reward, id) AS reward FROM t WHERE verifier = 'exact' GROUP BY 1) b "
    "USING (item_key) GROUP BY 1, 2",
}
_PEER_PROGRAM = """
import json, resource, sqlite3, sys, time
import duckdb, pandas
path, rounds, asked = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
began = time.perf_counter()
with sqlite3.connect(path) as database:
    t = pandas.read_sql("SELECT id, time_s, verifier, version, verdict, reward, fault, suspicions, "
        "response_chars, hex(item_key) AS item_key FROM entries", database)
connection = duckdb.connect()
connection.execute("SET threads = 1")
connection.execute("CREATE TABLE t AS SELECT * FROM t")
del t
told = {"load": [time.perf_counter() - began]}
for _ in range(rounds):
    for name, query in asked.items():
        began = time.perf_counter()
        connection.execute(query).fetchall()
        told.setdefault(name, []).append(time.perf_counter() - began)
print(json.dumps([told, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


class Viewed:
    """`assay view` over some paths, with an index in a folder."""

    def __init__(self, paths: list[Path], cache: Path) -> None:
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        command = [sys.executable, "-m", "assay.cli", "view", "--port", "0", *map(str, paths)]
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().split()[-1]
        self.started_s = time.perf_counter() - self.began
        host = self.address.removeprefix("http://").rstrip("/")
        self._connection = http.client.HTTPConnection(host, timeout=600)

    def __enter__(self) -> Viewed:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)

    def ask(self, path: str) -> Any:
        """The answer, read whole.

        Raises:
            SystemExit: it is none.
        """
        self._connection.request("GET", f"/{path}")
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
        return json.loads(body) if path.startswith("api/") else body

    def indexed(self) -> float:
        """The share of all sources."""
        return float(min(self.ask("api/pulse")["indexed"].values()))

    def cpu_s(self) -> float:
        """Seconds of CPU that its process took."""
        return cpu_s(self._process.pid)

    def peak_mib(self) -> float:
        """Most memory that its process had."""
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        line = next(one for one in text.splitlines() if one.startswith("VmHWM"))
        return int(line.split()[1]) / 1024


def run(options: list[str]) -> None:
    """Prints a table for each part."""
    parser = argparse.ArgumentParser(prog="python -m bench viewer", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--judgements", type=int, default=2_000_000)
    parser.add_argument("--rollouts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the data are kept for the next time")
    parser.add_argument("--only", default="", help="questions whose name holds this")
    given = parser.parse_args(options)
    parts = given.parts.split(",")
    with tempfile.TemporaryDirectory(prefix="assay-bench-viewer-") as temporary:
        folder = given.folder or Path(temporary, "data")
        began = time.perf_counter()
        paths = _made(folder, given.rollouts, given.judgements)
        print(
            f"\nviewer: {given.rollouts} rollouts, {given.judgements} judgements of "
            f"{paths[1].stat().st_size / 2**20:.0f} MiB, in {time.perf_counter() - began:.0f} s"
        )
        if "first" in parts:
            _first(paths, Path(temporary), given.rounds)
        if "questions" in parts:
            _questions(paths, Path(temporary, "kept"), given.rounds, given.only)
        if "peer" in parts:
            _peer(paths[1], given.rounds)
        if "scoring" in parts:
            from bench import viewer_scoring  # noqa: PLC0415 - with servers, where it is asked for

            viewer_scoring.measure(given.rounds)


def _made(folder: Path, rollouts: int, judgements: int) -> list[Path]:
    paths = [folder / "run", folder / "verdicts.sqlite"]
    if not paths[0].exists():
        make_run(folder, rollouts)
    if not paths[1].exists():
        make_journal(paths[1], judgements)
    return paths


def _first(paths: list[Path], temporary: Path, rounds: int) -> None:
    """What is there before anything is indexed."""
    print(f"\nfirst paint, {rounds} cold starts, seconds: median [least, most]")
    started: list[float] = []
    answers: list[float] = []
    painted: dict[str, list[float]] = {}
    for number in range(rounds):
        with Viewed(paths, temporary / f"cold-{number}") as viewed:
            started.append(viewed.started_s)
            began = time.perf_counter()
            for path in FIRST:
                viewed.ask(path)
            answers.append(time.perf_counter() - began)
    for number in range(rounds):
        with Viewed(paths, temporary / f"painted-{number}") as viewed:
            for name, seconds in _paint(viewed.address).items():
                painted.setdefault(name, []).append(seconds)
    print(f"  the command until it serves              {spread(started)}")
    print(f"  all answers of the first two pages       {spread(answers)}")
    for name, those in painted.items():
        print(f"  Chromium: {name:30} {spread(those)}")


def _paint(address: str) -> dict[str, float]:
    """Seconds from the request of a page; nothing where no browser is."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not everywhere there
    except ImportError:
        return {}
    where = Path("/usr/bin/chromium")
    if not where.exists():
        return {}
    ready = (
        "document.querySelector('main').children.length && "
        "!document.querySelector('main').hasAttribute('aria-busy') && "
        "!document.querySelector('.later[aria-busy]')"
    )
    told = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=where, args=["--no-sandbox", "--disable-gpu"]
        )
        for name, query in (("runs", ""), ("a run", "?view=run&source=run")):
            page = browser.new_page(
                bypass_csp=True
            )  # what is evaluated below is the policy's only guest
            page.goto(f"{address.rstrip('/')}/{query}", wait_until="commit")
            page.wait_for_function(ready, timeout=60_000)
            told[f"{name}, whole"] = page.evaluate("performance.now()") / 1000
            told[f"{name}, first paint"] = (
                page.evaluate(
                    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
                )
                / 1000
            )
            page.close()
        browser.close()
    return told


def _questions(paths: list[Path], cache: Path, rounds: int, only: str) -> None:
    with Viewed(paths, cache) as viewed:
        _wait(viewed)
        took, used_s = time.perf_counter() - viewed.began, viewed.cpu_s()
        size = sum(one.stat().st_size for one in cache.rglob("*") if one.is_file())
        print(
            f"\nindexed in {took:.0f} s, {used_s:.0f} s of CPU; {size / 2**20:.0f} MiB on disk, "
            f"peak memory {viewed.peak_mib():.0f} MiB"
        )
        names = {
            "after": quote(viewed.ask("api/items?")["more"]),
            "entry": quote(
                viewed.ask("api/items?source=verdicts.sqlite&limit=1")["items"][0]["id"]
            ),
            "rollout": quote(viewed.ask("api/items?source=run&limit=1")["items"][0]["id"]),
        }
        used: dict[str, list[float]] = {}
        asked: dict[str, Callable[[], None]] = {
            name: partial(_asked, viewed, path.format(**names), used.setdefault(name, []))
            for name, path in QUESTIONS.items()
            if only in name
        }
        print(f"questions, {rounds} rounds by turns, seconds, and of CPU: median [least, most]")
        for name, seconds in interleaved(asked, rounds).items():
            print(f"  {name:32} {spread(seconds)}   {spread(used[name])}")
        if only in "text":
            _search(viewed)
        print(f"  peak memory {viewed.peak_mib():.0f} MiB")


def _asked(viewed: Viewed, path: str, used: list[float]) -> None:
    before = viewed.cpu_s()
    viewed.ask(path)
    used.append(viewed.cpu_s() - before)


def _wait(viewed: Viewed) -> None:
    """Until all is indexed."""
    while viewed.indexed() < 1:
        time.sleep(0.5)


def _search(viewed: Viewed) -> None:
    """A text that few items hold, and one that many do."""
    for text in ("answer is 77777", "hence"):
        path = f"api/items?text={quote(text)}"
        began = time.perf_counter()
        found = viewed.ask(path)
        first = time.perf_counter() - began
        hit: float | None = None
        while found["searched"] < 1:
            time.sleep(0.2)
            found = viewed.ask(path)
            if found["items"] and hit is None:
                hit = time.perf_counter() - began
        took = time.perf_counter() - began
        print(
            f"  text {text!r}: first answer {first:.3f} s, first item "
            f"{'none' if hit is None else f'{hit:.1f} s'}, all {found['total']} in {took:.1f} s"
        )


def _peer(journal: Path, rounds: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _PEER_PROGRAM, str(journal), str(rounds), json.dumps(PEER)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        print(f"\nno peer: {ended.stderr.strip().splitlines()[-1:]}")
        return
    told, mib = json.loads(ended.stdout.splitlines()[-1])
    print(f"\npandas and DuckDB over the columns, one thread, seconds; peak memory {mib:.0f} MiB")
    for name, seconds in told.items():
        print(f"  {name:40} {spread(seconds)}")
