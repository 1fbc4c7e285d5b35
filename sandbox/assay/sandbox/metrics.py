"""Prometheus metrics of the sandbox, in the server's process."""

from __future__ import annotations

from prometheus_client import Counter, Gauge
from prometheus_client.registry import Collector

from assay.api.execution.v1 import execution_pb2
from assay.kit.metrics import UNKNOWN, FunctionCounter, ItemMetrics
from assay.sandbox.workers.codec import RunPool


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
            "assay_sandbox_worker_restarts", "Supervisors started in place of one that died"
        )

    @property
    def collectors(self) -> list[Collector]:
        """To be registered."""
        own = [self._runs, self._suites, self._tests, self._queued, self._restarts]
        return [*self.items.collectors, *own]

    def watch(self, pool: RunPool) -> None:
        """Adds the pool's state."""
        self._queued.set_function(lambda: pool.queued)
        self._restarts.function = lambda: pool.restarts

    def ran(self, language: str, execution: execution_pb2.Execution) -> None:
        """Counts a program that was run."""
        self._runs.labels(language or UNKNOWN, ENDS[execution.end_kind]).inc()

    def tested(self, language: str, report: execution_pb2.TestReport) -> None:
        """Counts a program that was tested."""
        language = language or UNKNOWN
        failed = report.passed_count < len(report.outcomes)
        result = "compile-failed" if report.compile_failed else "failed" if failed else "passed"
        self._suites.labels(language, result).inc()
        for outcome in report.outcomes:
            end = ENDS[outcome.execution.end_kind] if outcome.HasField("execution") else ""
            self._tests.labels(language, _VERDICTS[outcome.verdict], end).inc()
