"""The dashboard's queries, asked of a real Prometheus that reads real services at work.

Debian's package has it: `apt install prometheus`, or `dpkg -x` and the folder on PATH. `promtool`
reads the configuration that is shipped; the one that runs here has the same jobs with addresses in
place of names, because there is no DNS of Compose's.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.clients.execution import CallTest, Limits, TestSuite, suite_to_proto
from assay.clients.sessions import CannotFork, SessionClient
from assay.kit.errors import BadRequestError
from sandbox_service import ANY_FLOOR

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus on this machine"),
]

LIMIT_S = 60.0
WINDOW = "10s"
SHORT = "4s"  # for a service to come to rest in
SHOWN = "1m"
TESTS = suite_to_proto(TestSuite([CallTest("double", (2,), 4)], Limits(wall_time_s=5.0)))
ENDLESS = suite_to_proto(TestSuite([CallTest("double", (2,), 4)], Limits(wall_time_s=1e6)))
PROFILE = """
[[profile]]
name = "mine"
description = "Its file is read again."
[[profile.component]]
name = "answer"
verifier = "exact"
appeal = { verifier = "match", on = "incorrect" }
"""
PROGRAM = "```python\ndef double(x):\n    return x + x\n```"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def ask(port: int, path: str, **query: str) -> Any:
    address = f"http://127.0.0.1:{port}{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)


def shipped(repository: Path) -> dict[str, Any]:
    found = yaml.safe_load((repository / "deploy" / "prometheus.yml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def panels(repository: Path) -> list[tuple[str, str]]:
    """Title and query of every panel."""
    path = repository / "deploy" / "grafana" / "dashboards" / "assay.json"
    return [
        (panel["title"], target["expr"])
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
        for target in panel.get("targets", [])
    ]


def answers(port: int, query: str, window: str) -> list[float]:
    """The values of a query of the dashboard, as Grafana would ask it now."""
    query = query.replace("$__rate_interval", window).replace("$__range", SHOWN)
    query = re.sub(r'"\$(service|instance|verifier|tenant)"', '".*"', query)
    found = ask(port, "/api/v1/query", query=query)
    assert found["status"] == "success", query
    return [float(series["value"][1]) for series in found["data"]["result"]]


@pytest.fixture
def prometheus(repository: Path, tmp_path: Path) -> Iterator[tuple[int, EmbeddedServices]]:
    """A Prometheus that reads a reward server and a sandbox every half second."""
    folder = tmp_path
    metrics = {name: free_port() for name in ("reward", "sandbox")}
    flags = {name: ["--metrics-port", str(port)] for name, port in metrics.items()}
    (folder / "profiles.toml").write_text(PROFILE)
    flags["reward"] += ["--journal", str(folder / "verdicts.sqlite")]
    flags["reward"] += ["--profiles", str(folder / "profiles.toml")]
    flags["sandbox"] += [*ANY_FLOOR, "--languages", "python", "--slots", "1"]
    config = shipped(repository)
    config["rule_files"] = [str(repository / "deploy" / "alerts.yml")]
    config["global"] = dict.fromkeys(
        ("scrape_interval", "scrape_timeout", "evaluation_interval"), "500ms"
    )
    for job in config["scrape_configs"]:
        del job["dns_sd_configs"]
        port = metrics.get(job["job_name"].removesuffix("_server"))
        job["static_configs"] = [{"targets": [f"127.0.0.1:{port}"] if port else []}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    with EmbeddedServices(("reward", "sandbox"), arguments=flags) as services:
        command = [
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ]
        with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
            try:
                yield port, services
            finally:
                process.terminate()


def settled(port: int) -> bool:
    """Whether both jobs have been read four times since each kind of item was answered."""
    found = []
    for metric in (
        *("assay_reward_faults_total", "assay_sandbox_suites_total"),
        "assay_sandbox_session_faults_total",
    ):
        query = f"count_over_time({metric}[{WINDOW}]) >= 4"
        try:
            found.append(ask(port, "/api/v1/query", query=query)["data"]["result"])
        except OSError:
            return False  # it starts
    return all(found)


def work(client: RewardClient, number: int) -> None:
    """One of each: right, wrong, gaming, cached, by the sandbox, and faults."""
    client.score(
        [
            Item(f"\\boxed{{{number}}}", reference=str(number), verifier="math"),
            Item("\\boxed{4}", reference="5", verifier="math"),
            Item("\\boxed{1} or \\boxed{2} or \\boxed{3}", reference="3", verifier="math"),
            Item(PROGRAM, verifier="code", reference=TESTS),
            Item(PROGRAM, verifier="code", reference=ENDLESS),
            Item("a b", reference="a b c", verifier="chrf"),
            Item("x", verifier="nobody"),
            Item("The Answer", reference="answer", verifier="mine"),
        ]
    )


def live(client: SessionClient) -> None:
    """A session's life: cells, a checkpoint, a rollback and forks where copies work, a refusal."""
    with client.create() as session:
        session.execute("x = 1")
        with contextlib.suppress(CannotFork):
            point = session.checkpoint()
            session.rollback(point)
            for fork in session.fork(1):
                fork.close()
    with pytest.raises(BadRequestError):
        client.create("no language")


def test_the_shipped_configuration_is_one(repository: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None
    command = [promtool, "check", "config", str(repository / "deploy" / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


def test_every_alert_fires_on_what_it_is_for(repository: Path) -> None:
    command = ["promtool", "test", "rules", str(repository / "deploy" / "alerts_test.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


def busy(port: int, services: EmbeddedServices) -> None:
    """Works until Prometheus has seen every kind of item."""
    number, ends_s = 0, time.monotonic() + LIMIT_S
    sandbox = services.address_of("sandbox")
    with RewardClient(services.address) as client, SessionClient(sandbox) as sessions:
        while not settled(port):
            assert time.monotonic() < ends_s, "Prometheus does not read the services"
            work(client, number)
            live(sessions)
            os.kill(services.pid("reward"), signal.SIGHUP)  # it reads its profiles again
            number += 1


def wait_for(port: int, query: str, expected: list[float]) -> None:
    """Until a query has this answer."""
    ends_s = time.monotonic() + LIMIT_S
    while (found := answers(port, query, SHORT)) != expected:
        assert time.monotonic() < ends_s, (query, found)
        time.sleep(0.2)


@pytest.mark.timeout(300)
def test_every_query_of_the_dashboard_has_an_answer(
    repository: Path, prometheus: tuple[int, EmbeddedServices]
) -> None:
    port, services = prometheus
    busy(port, services)
    known = {query: answers(port, query, WINDOW) for _, query in panels(repository)}
    # Without genrm its queries find nothing; nor is there a refused call. All others have series.
    empty = {query for query, values in known.items() if not values}
    wrong = {query for query in empty if "genrm" not in query and 'code!="OK"' not in query}
    assert wrong == set()
    state = ask(port, "/api/v1/rules")["data"]["groups"]
    assert {rule["health"] for group in state for rule in group["rules"]} == {"ok"}
    serving = [values for query, values in known.items() if "assay_rpc_serving" in query]
    assert serving == [[1.0], [1.0], []]  # reward server, sandbox, and no genrm
    share = next(values for query, values in known.items() if "assay_reward_faults" in query)
    assert all(0 < value < 1 for value in share)
    numbers = [value for query, values in known.items() if "genrm" not in query for value in values]
    assert any(value > 0 for value in numbers)
    assert not [value for value in numbers if math.isinf(value)]


@pytest.mark.timeout(300)
def test_nothing_is_said_of_a_service_at_rest_and_a_dead_one_is_shown(
    repository: Path, prometheus: tuple[int, EmbeddedServices]
) -> None:
    port, services = prometheus
    busy(port, services)
    wait_for(port, "sum(rate(assay_reward_items_total[$__rate_interval]))", [0.0])
    wait_for(port, "sum(rate(assay_sandbox_items_total[$__rate_interval]))", [0.0])
    known = {query: answers(port, query, SHORT) for _, query in panels(repository)}
    # A share of no items, or a quantile of none, is no number.
    assert not [query for query, values in known.items() if any(map(math.isnan, values))]
    [share] = [values for query, values in known.items() if "vector(0)" in query]
    assert share == []

    serves, waits = 'assay_rpc_serving{job="sandbox"', "sum(assay_sandbox_queue_items{"
    [serving] = [query for query in known if serves in query]
    [queue] = [query for query in known if waits in query]
    assert known[serving] == [1.0]
    assert known[queue] == [0.0]
    os.killpg(services.pid("sandbox"), signal.SIGKILL)
    wait_for(port, serving, [0.0])
    wait_for(port, queue, [])
