"""What the sandbox has run so far, for Prometheus: in the server's process, not in the wardens'."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf import duration_pb2
from prometheus_client import Counter, Gauge
from prometheus_client.registry import Collector

from assay.api.execution.v1 import execution_pb2
from assay.rpc.errors import reason_of
from assay.rpc.metrics import UNKNOWN, FunctionCounter, ItemMetrics
from assay.sandbox.slots.pool import Pool
from assay.sandbox.tickets import Ticket


def _kebab(number: int, name: str, prefix: str) -> tuple[int, str]:
    return number, name.removeprefix(prefix).lower().replace("_", "-")


ENDS = dict(_kebab(number, name, "END_KIND_") for name, number in execution_pb2.EndKind.items())
_VERDICTS = dict(
    _kebab(number, name, "TEST_VERDICT_") for name, number in execution_pb2.TestVerdict.items()
)


class RunMetrics:
    """Counts results; items = runs + suites + faults + abandoned + those in progress.

    Attributes:
        items: the part that every service has.
    """

    def __init__(self) -> None:
        self.items = ItemMetrics("sandbox", "language")
        self._runs = Counter(
            "assay_sandbox_runs",
            "Jobs of Execute that were run, by how the program ended",
            ("language", "end"),
            registry=None,
        )
        self._suites = Counter(
            "assay_sandbox_suites",
            "Jobs of RunTests and StreamRunTests that were run: passed, failed, compile-failed",
            ("language", "result"),
            registry=None,
        )
        self._tests = Counter(
            "assay_sandbox_tests",
            "Tests of suites, by verdict and by how the run behind it ended (empty: none was)",
            ("language", "verdict", "end"),
            registry=None,
        )
        self._queued = Gauge(
            "assay_sandbox_queue_items", "Jobs that wait for a slot", registry=None
        )
        self._restarts = FunctionCounter(
            "assay_sandbox_worker_restarts", "Wardens started in place of one that died"
        )

    @property
    def collectors(self) -> list[Collector]:
        """To be registered."""
        own = [self._runs, self._suites, self._tests, self._queued, self._restarts]
        return [*self.items.collectors, *own]

    def watch(self, pool: Pool) -> None:
        """Has the metrics say how the pool is."""
        self._queued.set_function(lambda: pool.queued)
        self._restarts.function = lambda: pool.restarts

    def add(self, tickets: Iterable[Ticket]) -> None:
        """Counts settled tickets, each once."""
        for ticket in tickets:
            result = ticket.result
            if result is None:
                continue
            timings = result.timings
            self.items.took(ticket.language, seconds(timings.queue), seconds(timings.execution))
            language = ticket.language or UNKNOWN
            if result.WhichOneof("outcome") == "fault":
                self.items.fault(language, reason_of(result.fault))
            elif isinstance(result, execution_pb2.ExecutionResult):
                self._runs.labels(language, ENDS[result.execution.end_kind]).inc()
            else:
                self._report(language, result.report)

    def _report(self, language: str, report: execution_pb2.TestReport) -> None:
        failed = report.passed_count < len(report.outcomes)
        result = "compile-failed" if report.compile_failed else "failed" if failed else "passed"
        self._suites.labels(language, result).inc()
        for outcome in report.outcomes:
            end = ENDS[outcome.execution.end_kind] if outcome.HasField("execution") else ""
            self._tests.labels(language, _VERDICTS[outcome.verdict], end).inc()


def seconds(duration: duration_pb2.Duration) -> float:
    """A duration in seconds."""
    return duration.seconds + duration.nanos / 1e9
