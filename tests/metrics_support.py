"""Scrapes, and what every service can export, for tests."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from assay.genrm.metrics import JudgeMetrics
from assay.kit.build import Build
from assay.kit.gate import CallGate
from assay.kit.metrics import CallMetrics
from assay.kit.reloading import Reloader
from assay.reward_server.counts import RewardMetrics
from assay.sandbox.metrics import RunMetrics
from assay.sandbox.sessions.metrics import SessionMetrics

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def scrape(address: str) -> list[Metric]:
    """What a service shows, parsed."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return list(text_string_to_metric_families(answer.read().decode("utf-8")))


def total(families: Iterable[Metric], name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels; 0 where there is none yet."""
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def conserved(families: list[Metric], service: str, *judged: str) -> bool:
    """Items are what was judged, the faults and what was abandoned, with nothing in progress."""
    name = f"assay_{service}"
    told = [*(f"{name}_{kind}_total" for kind in judged), f"{name}_faults_total"]
    answered = sum(total(families, one) for one in [*told, f"{name}_abandoned_items_total"])
    return total(families, f"{name}_items_total") == answered


def collectors() -> dict[str, list[Collector]]:
    """The collectors of each service, and those that all have."""
    return {
        "every service": [
            *CallMetrics(CallGate(1)).collectors,
            *Reloader().collectors,
            *Build("reward_server", "assay-rl-reward-server").collectors,
        ],
        "reward_server": RewardMetrics().collectors,
        "sandbox": [*RunMetrics().collectors, *SessionMetrics().collectors],
        "genrm": JudgeMetrics().collectors,
    }


def label_names(collector: Collector) -> tuple[str, ...]:
    """The labels of a metric."""
    labels = getattr(collector, "_labels", None) or getattr(collector, "_labelnames", ())
    label = getattr(collector, "_label", "")
    return (label,) if label else tuple(labels)


def rows() -> list[tuple[str, str, str, str, str]]:
    """Every metric: its name, kind, labels, whose it is, what it says."""
    found = []
    for service, some in collectors().items():
        for collector in some:
            [family] = collector.describe()  # type: ignore[attr-defined]
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = ", ".join(f"`{label}`" for label in label_names(collector))
            found.append((name, family.type, labels, service, family.documentation))
    return found


def samples() -> set[str]:
    """The names under which Prometheus knows what the services export."""
    names = {"up", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"}
    for some in collectors().values():
        for collector in some:
            [family] = collector.describe()  # type: ignore[attr-defined]
            names |= {family.name + suffix for suffix in SUFFIXES[family.type]}
    return names
