"""Spans, and the tracer that makes them; see `assay.kit.tracing`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol, Self

from assay.kit.trails import Fact, Trail

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
Headers = tuple[tuple[str, str], ...]
trail_var: ContextVar[Trail | None] = ContextVar("assay_trail", default=None)


class TraceSpan:
    """A piece of work; this class, for traces that are off, records nothing.

    As a context manager it ends with its block; an exception marks it as failed.

    Attributes:
        recording: somebody will see it.
    """

    recording = False

    def note(self, facts: Mapping[str, Fact]) -> None:
        """Adds facts."""

    def fail(self, reason: str) -> None:
        """Marks it as failed, for a reason of the lexicon or the name of an exception."""

    def headers(self) -> Headers:
        """Metadata or headers that continue the trace."""
        return ()

    def trace_id(self) -> str:
        """In hex; empty where nobody will see it."""
        return ""

    def current(self) -> AbstractContextManager[object]:
        """Makes it current for a block, and does not end it there."""
        return nullcontext()

    def end(self) -> None:
        """Ends it. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends it."""


class Tracer(Protocol):
    """Makes spans, and sends those that are sampled."""

    def span(self, name: str, facts: Mapping[str, Fact]) -> TraceSpan:
        """Work in this process, current in its block."""

    def calling(self, method: str, facts: Mapping[str, Fact]) -> TraceSpan:
        """A call to another process; not current, so that it may end in another task."""

    def serving(self, method: str, headers: Mapping[str, str], most_items: int) -> TraceSpan:
        """A call from another process, current in its block, with a trail of its items."""

    def headers(self) -> Headers:
        """Continues the current span."""

    def close(self, timeout_s: float) -> None:
        """Sends what waits, for so many seconds at most."""
