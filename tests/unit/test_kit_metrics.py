"""The metrics' kit: bounded labels, one path that answers, ports that are taken."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.metrics import disable_created_metrics
from prometheus_client.parser import text_string_to_metric_families
from tests.metrics_support import scrape, total

from assay.kit.build import REVISION, Build
from assay.kit.errors import StartupError
from assay.kit.metrics import (
    OTHER,
    SECONDS,
    FunctionCounter,
    ItemMetrics,
    MetricsEndpoint,
    TableHistogram,
    reason_label,
)
from assay.kit.reasons import Reason
from assay.kit.serving import ServeConfig, start
from assay.reward_server.counts import VALUES, RewardMetrics
from assay.reward_server.domain import Component, Judgement


@given(st.text() | st.sampled_from(sorted(Reason)))
def test_a_reason_outside_the_lexicon_is_no_label(reason: str) -> None:
    label = reason_label(reason)
    assert label == reason if reason in {"", *Reason} else label == OTHER


@given(st.text())
def test_a_fault_counts_whatever_its_reason_says(reason: str) -> None:
    metrics = ItemMetrics("reward", "verifier")
    metrics.fault("", reason, 3)
    [counted] = [
        sample
        for collector in metrics.collectors
        for family in collector.collect()
        for sample in family.samples
        if sample.name == "assay_reward_faults_total"
    ]
    assert counted.value == 3
    assert counted.labels["verifier"] == "unknown"
    assert counted.labels["reason"] in {OTHER, *Reason}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 1e4) | st.sampled_from(SECONDS))))
def test_our_histogram_shows_what_that_of_the_library_shows(times: list[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    mine = TableHistogram("assay_test_seconds", "Times", "kind")
    ours.register(mine)
    reference = Histogram(
        "assay_test_seconds", "Times", ("kind",), buckets=SECONDS, registry=theirs
    )
    for kind, seconds in times:
        mine.observe(seconds, kind)
        reference.labels(kind).observe(seconds)
    disable_created_metrics()
    assert generate_latest(ours) == generate_latest(theirs)


def test_a_wait_is_never_negative_and_what_took_no_time_was_not_executed() -> None:
    metrics = ItemMetrics("reward", "verifier")
    metrics.took("exact", -0.5, 0.0)
    metrics.took("math", 0.2, 0.3)
    registry = CollectorRegistry()
    for collector in metrics.collectors:
        registry.register(collector)
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    assert total(families, "assay_reward_queue_wait_seconds_count") == 2
    assert total(families, "assay_reward_queue_wait_seconds_sum") == pytest.approx(0.2)
    assert total(families, "assay_reward_execution_seconds_count") == 1


@pytest.fixture
def endpoint() -> Iterator[MetricsEndpoint]:
    counter = FunctionCounter("assay_test_things", "Things", "kind")
    counter.by = {"a": lambda: 3.0, "b": lambda: 4.0}
    endpoint = MetricsEndpoint([counter], "127.0.0.1", 0)
    yield endpoint
    endpoint.close()


def test_the_endpoint_shows_metrics_at_one_path_to_get_alone(endpoint: MetricsEndpoint) -> None:
    address = f"127.0.0.1:{endpoint.port}"
    families = scrape(address)
    assert total(families, "assay_test_things_total", kind="b") == 4
    assert total(families, "process_resident_memory_bytes") > 0
    assert not [family for family in families if family.name.endswith("_created")]
    for request, code in (
        (urllib.request.Request(f"http://{address}/"), 404),
        (urllib.request.Request(f"http://{address}/metrics", data=b"x"), 501),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=10)
        assert caught.value.code == code
        caught.value.close()


def test_what_is_no_http_leaves_the_endpoint_alone(endpoint: MetricsEndpoint) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=10) as line:
        line.sendall(b"\x16\x03\x01\x00\xa5PRI * HTTP/2.0\r\n\r\n")
        line.recv(1000)
    assert scrape(f"127.0.0.1:{endpoint.port}")


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "no.such.host.invalid"])
def test_a_port_that_cannot_be_had_is_named(endpoint: MetricsEndpoint, host: str) -> None:
    with pytest.raises(
        StartupError, match=f"{host} port {endpoint.port} for metrics: .*--metrics-"
    ):
        MetricsEndpoint([], host, endpoint.port)


def test_a_closed_endpoint_frees_its_port() -> None:
    first = MetricsEndpoint([], "127.0.0.1", 0)
    first.close()
    second = MetricsEndpoint([], "127.0.0.1", first.port)
    second.close()


async def test_metrics_are_shown_where_a_port_is_given_and_gone_with_the_server() -> None:
    async with await start([], ServeConfig()) as quiet:
        assert quiet.metrics_address is None
    async with await start([], ServeConfig(metrics_port=0)) as server:
        address = server.metrics_address
        assert address is not None
        families = await asyncio.to_thread(scrape, address)
        assert total(families, "assay_rpc_serving") == 1
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(scrape, address)


async def test_a_metrics_port_that_is_taken_ends_the_start(endpoint: MetricsEndpoint) -> None:
    with pytest.raises(StartupError, match="for metrics"):
        await start([], ServeConfig(metrics_port=endpoint.port))


@given(st.lists(st.floats(-3, 3) | st.sampled_from(VALUES)), st.integers(0, 5))
def test_rewards_are_in_their_buckets_and_faults_in_none(rewards: list[float], faults: int) -> None:
    metrics = RewardMetrics()
    for reward in rewards:
        metrics.judged("math", Judgement(reward, "x", (Component("all", reward),)),
                       from_cache=False)  # fmt: skip
    metrics.items.fault("math", Reason.WORKER_DIED, faults)
    registry = CollectorRegistry()
    for collector in metrics.collectors:
        registry.register(collector)
    found = list(text_string_to_metric_families(generate_latest(registry).decode()))
    for bound in VALUES:
        counted = total(found, "assay_reward_value_bucket", le=str(bound))
        assert counted == sum(reward <= bound for reward in rewards)
    assert total(found, "assay_reward_value_bucket", le="+Inf") == len(rewards)
    for sign, part in (("positive", [max(r, 0) for r in rewards]),
                       ("negative", [max(-r, 0) for r in rewards])):  # fmt: skip
        assert total(found, "assay_reward_given_total", sign=sign) == pytest.approx(sum(part))


@pytest.mark.parametrize(
    ("said", "told"),
    [("d1ee4b28", "d1ee4b28"), ("", ""), ("x" * 65, ""), ('a"}\nassay_up 1', "")],
)
def test_a_revision_is_a_word_or_nothing(
    monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    monkeypatch.setenv(REVISION, said)
    assert Build("reward_server", "assay-rl-reward-server").revision == told
    assert Build("nothing", "assay-nothing").version == ""
