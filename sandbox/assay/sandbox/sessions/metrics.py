"""Prometheus metrics of sessions, in the server's process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from prometheus_client import Gauge
from prometheus_client.registry import Collector

from assay.api.session.v1 import session_pb2
from assay.kit.metrics import FunctionCounter, TableCounter, TableHistogram, reason_label

CELL_ENDS = {
    number: name.removeprefix("CELL_END_").lower().replace("_", "-")
    for name, number in session_pb2.CellEnd.items()
}
"""The ends of cells in kebab-case."""

_PREFIX = "assay_sandbox_session"


class SessionMetrics:
    """Counts sessions and cells; sessions opened = ended + open."""

    def __init__(self) -> None:
        self._opened: Counter[tuple[str, str]] = Counter()
        self._ended: Counter[tuple[str, str]] = Counter()
        self._cells: Counter[tuple[str, str]] = Counter()
        self._faults: Counter[tuple[str, str]] = Counter()
        self._wait = TableHistogram(
            f"{_PREFIX}_queue_wait_seconds", "From the arrival of a cell to its turn"
        )
        self._cell = TableHistogram(
            f"{_PREFIX}_cell_seconds", "From a cell's turn to its end", "language"
        )
        self._work = TableHistogram(
            f"{_PREFIX}_operation_seconds",
            "Behind the call: create, checkpoint, rollback, fork (all copies of a call)",
            "operation",
        )
        self._open = Gauge(f"{_PREFIX}s_open", "Open sessions, forks included", registry=None)
        self._places = Gauge(f"{_PREFIX}_places", "Sessions that fit", registry=None)
        self._computing = Gauge(f"{_PREFIX}_cells_running", "Cells in progress", registry=None)
        self._waiting = Gauge(f"{_PREFIX}_cells_waiting", "Cells without a turn", registry=None)
        self._up = Gauge(f"{_PREFIX}_host_up", "1 while the host is there, else 0", registry=None)
        self._restarts = FunctionCounter(
            f"{_PREFIX}_host_restarts", "Hosts started in place of one that died"
        )

    @property
    def collectors(self) -> list[Collector]:
        """To be registered."""
        tables = [
            TableCounter(f"{_PREFIX}s_{name}", text, labels, table)
            for name, text, labels, table in (
                ("opened", "Sessions opened: created, forked", ("language", "how"), self._opened),
                (
                    "ended",
                    "Sessions ended: closed, lease-expired, lost, drained",
                    ("language", "how"),
                    self._ended,
                ),
            )
        ]
        cells = TableCounter(
            f"{_PREFIX}_cells", "Cells by how they ended", ("language", "end"), self._cells
        )
        faults = TableCounter(
            f"{_PREFIX}_faults",
            "Calls about sessions that were refused or failed",
            ("method", "reason"),
            self._faults,
        )
        gauges = [self._open, self._places, self._computing, self._waiting, self._up]
        return [
            *(*tables, cells, faults, self._wait, self._cell, self._work),
            *(*gauges, self._restarts),
        ]

    def watch(
        self,
        *,
        is_open: Callable[[], int],
        places: Callable[[], int],
        computing: Callable[[], int],
        waiting: Callable[[], int],
        up: Callable[[], bool],
        restarts: Callable[[], int],
    ) -> None:
        """Adds the service's state."""
        self._open.set_function(is_open)
        self._places.set_function(places)
        self._computing.set_function(computing)
        self._waiting.set_function(waiting)
        self._up.set_function(up)
        self._restarts.function = restarts

    def opened(self, language: str, how: str, count: int) -> None:
        """Counts sessions that were "created" or "forked"."""
        self._opened[language, how] += count

    def ended(self, language: str, how: str) -> None:
        """Counts a session that is no longer open."""
        self._ended[language, how] += 1

    def cell(self, language: str, end: str, wait_s: float, seconds: float) -> None:
        """Counts a cell that has its result."""
        self._cells[language, end] += 1
        self._wait.observe(wait_s)
        self._cell.observe(seconds, language)

    def took(self, operation: str, seconds: float) -> None:
        """Notes how long an operation took."""
        self._work.observe(seconds, operation)

    def fault(self, method: str, reason: str) -> None:
        """Counts a call that was refused or failed."""
        self._faults[method, reason_label(reason)] += 1
