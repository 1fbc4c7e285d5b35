"""Prometheus metrics that all services have, and the port they are read at.

The server process alone counts. Labels are known before a call comes: methods of the contract,
codes of gRPC, reasons of the lexicon, names that the operator served (verifiers, languages,
models) or gave tokens to (tenants). All else is "other" or "unknown"; of what callers write, only
the first values of labels that the operator chose (--metric-labels) are told apart.

    items = judged + faults + abandoned + those in progress

holds for each service: an item is counted when its request is accepted, and again when it is
answered, or when its call ends without. A scrape reads the counts one after the other, so it may be
off by what happens meanwhile.
"""

from __future__ import annotations

import collections
import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from socket import AF_INET6
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from assay.kit.calls import tenant_label_var
from assay.kit.errors import StartupError
from assay.kit.gate import CallGate, Phase
from assay.kit.reasons import Reason

UNKNOWN = "unknown"
OTHER = "other"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Upper bounds of the buckets of every histogram, in seconds."""

_PATH = "/metrics"
_PATIENCE_S = 10.0
_REASONS = frozenset(Reason)
_log = logging.getLogger(__name__)


def reason_label(reason: str) -> str:
    """A reason of the lexicon, or "other"; empty stays empty."""
    return str(reason) if not reason or reason in _REASONS else OTHER


class FunctionCounter(Collector):
    """A count that a function looks up at each scrape, in another thread.

    Args:
        name: without "_total".

    Attributes:
        function: gives the count, where there is no label.
        by: functions by label.
    """

    def __init__(self, name: str, documentation: str, label: str = "") -> None:
        self.function: Callable[[], float] = int
        self.by: dict[str, Callable[[], float]] = {}
        self._name = name
        self._documentation = documentation
        self._label = label

    def describe(self) -> list[Metric]:
        """Name and meaning, without a sample."""
        return [self._family()]

    def collect(self) -> list[Metric]:
        """Samples of now."""
        family = self._family()
        if not self._label:
            family.add_metric((), self.function())
        for value, function in tuple(self.by.items()):
            family.add_metric((value,), function())
        return [family]

    def _family(self) -> CounterMetricFamily:
        labels = (self._label,) if self._label else ()
        return CounterMetricFamily(self._name, self._documentation, labels=labels)


class TableCounter(Collector):
    """A count by labels in a plain table: several times cheaper to count in than a `Counter`.

    Args:
        name: without "_total".
        table: counts by the labels' values; only the event loop's thread writes it.
    """

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        table: collections.Counter[tuple[str, ...]] | collections.Counter[tuple[str, str]],
    ) -> None:
        self._name, self._documentation, self._labels = name, documentation, tuple(labels)
        self._table = table

    def describe(self) -> list[Metric]:
        """Name and meaning, without a sample."""
        return [self._family()]

    def collect(self) -> list[Metric]:
        """Samples of now."""
        family = self._family()
        for values, count in tuple(self._table.items()):
            family.add_metric(values, count)
        return [family]

    def _family(self) -> CounterMetricFamily:
        return CounterMetricFamily(self._name, self._documentation, labels=self._labels)


class _FaultCounter(TableCounter):
    def collect(self) -> list[Metric]:
        told: collections.Counter[tuple[str, str]] = collections.Counter()
        for (who, reason), count in tuple(self._table.items()):
            told[who or UNKNOWN, reason_label(reason) or OTHER] += count
        family = self._family()
        for labels, count in told.items():
            family.add_metric(labels, count)
        return [family]


class TableHistogram(Collector):
    """Numbers by one label or none, times unless other buckets are given; written by one thread.

    Where a bucket is below 0, there is no sum: Prometheus takes a sum for what only grows.
    """

    def __init__(
        self, name: str, documentation: str, label: str = "", bounds: Sequence[float] = SECONDS
    ) -> None:
        self._bounds = tuple(bounds)
        self._name, self._documentation = name, documentation
        self._labels = (label,) if label else ()
        self._found: dict[str, list[float]] = {}
        if not label:
            self._fresh("")

    def observe(self, number: float, value: str = "") -> None:
        """Notes one; `value` is the label's."""
        counts = self._found.get(value) or self._fresh(value)
        counts[bisect_left(self._bounds, number)] += 1
        counts[-1] += number

    def describe(self) -> list[Metric]:
        """Name and meaning, without a sample."""
        return [self._family()]

    def collect(self) -> list[Metric]:
        """Samples of now."""
        family = self._family()
        for value, kept in tuple(self._found.items()):
            *counts, added = tuple(kept)
            bounds = [*map(floatToGoString, self._bounds), "+Inf"]
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric((value,) if self._labels else (), buckets, added)
        return [family]

    def _fresh(self, value: str) -> list[float]:
        return self._found.setdefault(value, [0] * (len(self._bounds) + 1) + [0.0])

    def _family(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._name, self._documentation, labels=self._labels)


class CallMetrics:
    """The calls of one server, whose gate knows the running ones."""

    def __init__(self, gate: CallGate) -> None:
        self._calls = Counter(
            "assay_rpc_calls",
            "Calls that ended, by method, gRPC code, reason (empty: it went well) and tenant",
            ("method", "code", "reason", "tenant"),
            registry=None,
        )
        self._seconds = Histogram(
            "assay_rpc_call_seconds",
            "From the arrival of a call to its status",
            ("method",),
            buckets=SECONDS,
            registry=None,
        )
        self._running = Gauge("assay_rpc_calls_running", "Calls in progress", registry=None)
        self._running.set_function(lambda: gate.running)
        self._serving = Gauge(
            "assay_rpc_serving",
            "1 while the server serves, 0 while it starts or drains",
            registry=None,
        )
        self._serving.set_function(lambda: float(gate.phase is Phase.SERVING))

    @property
    def collectors(self) -> list[Collector]:
        """To be registered."""
        return [self._calls, self._seconds, self._running, self._serving]

    def ended(self, method: str, code: str, reason: str, seconds: float, tenant: str = "") -> None:
        """Counts a call.

        Args:
            method: as "/package.Service/Method"; empty for an unknown one, or a refused caller.
            code: name of the gRPC code.
            reason: of the lexicon; empty for a call that went well.
            seconds: from its arrival to its status.
            tenant: its label; empty where no token is needed, and for a refused caller.
        """
        label = method or UNKNOWN
        self._calls.labels(label, code, reason_label(reason), tenant).inc()
        self._seconds.labels(label).observe(seconds)


class ItemMetrics:
    """Counts the items of one service.

    Args:
        service: "reward", "sandbox" or "genrm"; the metrics begin with "assay_" and it.

    Attributes:
        faults: counts by (who, reason); who is empty for nobody.
    """

    def __init__(self, service: str, by: str) -> None:
        name = f"assay_{service}"
        self.by = by
        self.faults: collections.Counter[tuple[str, str]] = collections.Counter()
        self._items = Counter(
            f"{name}_items", "Items of accepted requests", ("tenant",), registry=None
        )
        self._items.labels("")
        self._faults = _FaultCounter(
            f"{name}_faults", "Items answered with a fault", (by, "reason"), self.faults
        )
        self._abandoned = Counter(
            f"{name}_abandoned_items",
            "Items whose call ended before their answer",
            registry=None,
        )
        self._wait = TableHistogram(
            f"{name}_queue_wait_seconds", "From the arrival of an item to its execution"
        )
        self._execution = TableHistogram(
            f"{name}_execution_seconds",
            "Execution of an item; those that needed none are left out",
            by,
        )

    @property
    def collectors(self) -> list[Collector]:
        """To be registered."""
        return [self._items, self._faults, self._abandoned, self._wait, self._execution]

    def accepted(self, items: int) -> None:
        """Counts the items of an accepted request, for the tenant of the current call."""
        self._items.labels(tenant_label_var.get()).inc(items)

    def abandoned(self, items: int) -> None:
        """Counts accepted items whose call ended without an answer for them."""
        self._abandoned.inc(items)

    def fault(self, who: str, reason: str, items: int = 1) -> None:
        """Counts faults; a reason outside the lexicon counts as "other"."""
        self.faults[who, str(reason)] += items

    def took(self, who: str, wait_s: float, execution_s: float) -> None:
        """Notes an item's wait and execution, in seconds; 0 for one that was not executed."""
        self._wait.observe(max(0.0, wait_s))
        if execution_s > 0:
            self._execution.observe(execution_s, who or UNKNOWN)


class MetricsEndpoint:
    """Answers GET /metrics over HTTP, in threads of its own; without TLS, and to everybody.

    Args:
        collectors: shown beside this process's memory, CPU time and file descriptors.
        port: 0 takes a free one; the attribute is the bound one.

    Raises:
        StartupError: the port is in use, or the host is not ours.
    """

    def __init__(self, collectors: Iterable[Collector], host: str, port: int) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        for collector in collectors:
            registry.register(collector)
        try:
            self._server = _server(registry, host, port)
        except (OSError, OverflowError) as error:
            trouble = error.strerror if isinstance(error, OSError) else str(error)
            raise StartupError(
                f"cannot listen on {host} port {port} for metrics: {trouble}; choose another "
                "--metrics-port (0 takes a free one) or --metrics-host"
            ) from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Frees the port; may block for half a second."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request, client_address
        _log.debug("a scrape failed", exc_info=True)


class _Server6(_Server):
    address_family = AF_INET6


def _server(registry: CollectorRegistry, host: str, port: int) -> _Server:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S
        server_version, sys_version = "assay", ""

        def do_GET(self) -> None:
            if urlsplit(self.path).path != _PATH:
                self.send_error(404, explain=f"metrics are at {_PATH}")
                return
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            body = encode(registry)
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    return (_Server6 if ":" in host else _Server)((host, port), Handler)
