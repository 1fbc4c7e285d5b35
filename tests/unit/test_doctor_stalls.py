"""`assay doctor --metrics` on what the services export: their own collectors, two looks."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest

from assay.cli.commands.stalls import Line, Look, findings, look_at, scrape
from assay.kit.errors import ConfigError
from assay.kit.gate import CallGate, Phase
from assay.kit.metrics import CallMetrics, MetricsEndpoint
from assay.reward_server.counts import RewardMetrics
from assay.reward_server.journal.writer import Journal
from assay.sandbox.metrics import RunMetrics


class Served:
    """The metrics of a reward server, without the server."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.gate = CallGate(10)
        self.gate.phase = Phase.SERVING
        self.calls = CallMetrics(self.gate)
        self.counts = RewardMetrics()
        if journal is not None:
            self.counts.watch_journal(journal)
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        for collector in [*self.calls.collectors, *self.counts.collectors]:
            self._registry.register(collector)

    def look(self) -> Look:
        return Look.read(generate_latest(self._registry).decode())

    def answered(self, items: int, wait_s: float = 0.01) -> None:
        self.counts.items.accepted(items)
        self.counts.verdicts["math", "correct"] += items
        for _ in range(items):
            self.counts.items.took("math", wait_s, 0.1)


def line(lines: list[Line], what: str) -> tuple[str, bool | None]:
    [found] = [(text, fine) for name, text, fine in lines if name == f"reward_server: {what}"]
    return found


def test_a_server_that_works_is_fine() -> None:
    served = Served()
    before = served.look()
    served.answered(10)
    lines = findings(before, served.look(), 2.0)
    assert not [text for _, text, fine in lines if fine is False]
    assert line(lines, "state") == ("serves; 0 calls in progress", True)
    assert line(lines, "queue") == (
        "0 items wait, 0 workers are busy; 5.0 items a second are answered",
        True,
    )
    assert line(lines, "wait") == ("99 of 100 items waited at most 0.01 s", None)
    assert line(lines, "faults")[0] == "0.0% of 10 items just now"


def test_items_that_wait_while_nothing_is_answered_are_a_stall() -> None:
    served = Served()
    served.answered(3)
    served.counts._queued.set(7)
    before = served.look()
    stalled, fine = line(findings(before, served.look(), 2.0), "queue")
    assert fine is False
    assert stalled.startswith("7 items wait, 0 workers are busy; 0.0 items a second")
    served.answered(1)
    assert line(findings(before, served.look(), 2.0), "queue")[1] is True


def test_faults_and_refusals_of_now_count_and_old_ones_are_told() -> None:
    served = Served()
    served.answered(10)
    served.counts.items.fault("code", "UNREACHABLE", 10)
    served.calls.ended("/a.B/C", "RESOURCE_EXHAUSTED", "QUEUE_FULL", 0.1)
    before = served.look()
    told = findings(before, served.look(), 1.0)
    assert line(told, "faults") == (
        (
            "50.0% of 20 items since the start: UNREACHABLE x10;"
            " docs/reference/errors.md says what to do"
        ),
        False,
    )
    assert line(told, "refused calls") == ("QUEUE_FULL x1 since the start", True)
    served.answered(100)
    served.calls.ended("/a.B/C", "RESOURCE_EXHAUSTED", "QUEUE_FULL", 0.1)
    told = findings(before, served.look(), 1.0)
    assert line(told, "faults") == ("0.0% of 100 items just now", True)
    assert line(told, "refused calls") == (
        "QUEUE_FULL x2 since the start; just now QUEUE_FULL x1",
        False,
    )


def test_workers_that_die_now_and_a_server_that_drains_are_not_fine() -> None:
    served = Served()
    before = served.look()
    served.counts._restarts.function = lambda: 2
    served.gate.phase = Phase.DRAINING
    lines = findings(before, served.look(), 1.0)
    assert line(lines, "workers")[1] is False
    assert line(lines, "state")[1] is False
    assert line(findings(served.look(), served.look(), 1.0), "workers") == (
        "2 restarts since the start",
        None,
    )


async def test_a_journal_that_is_off_is_said(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "verdicts.sqlite", 64 * 2**20)
    await journal.start()
    served = Served(journal)
    before = served.look()
    text, fine = line(findings(before, served.look(), 1.0), "journal")
    assert (text.partition(",")[0], fine) == ("0 written", True)
    await journal.close()
    text, fine = line(findings(before, served.look(), 1.0), "journal")
    assert (text.endswith("it is off: the log says why"), fine) == (True, False)


def test_the_sandbox_is_known_and_a_stranger_is_not() -> None:
    registry = CollectorRegistry()
    for collector in RunMetrics().collectors:
        registry.register(collector)
    look = Look.read(generate_latest(registry).decode())
    assert {name.partition(":")[0] for name, *_ in findings(look, look, 1.0)} == {"sandbox"}
    assert findings(Look(), Look(), 1.0)[0][2] is False


@pytest.fixture
def page() -> Iterator[str]:
    """A web server that shows no metrics."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_ports_without_metrics_are_a_line_each(page: str) -> None:
    endpoint = MetricsEndpoint([], "127.0.0.1", 0)
    none = f"127.0.0.1:{endpoint.port}"
    waits: list[float] = []
    addresses = ["127.0.0.1:1", "nonsense", page, none]
    lines = look_at(addresses, waits.append, 1.0)
    endpoint.close()
    assert [fine for *_, fine in lines] == [False] * 4
    assert waits == []
    assert [text.count("\n") for _, text, _ in lines] == [0] * 4
    with pytest.raises(ConfigError, match="start the service with --metrics-port"):
        scrape("127.0.0.1:1")
