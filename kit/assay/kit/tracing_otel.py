"""Spans by OpenTelemetry's SDK, sent over OTLP by a thread that nobody waits for.

Loaded by `assay.kit.tracing` where traces are on. The SDK reads the rest of its environment itself:
OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_EXPORTER_OTLP_*, OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
from collections.abc import Mapping
from contextvars import Token
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from assay.kit.errors import CallError, ConfigError
from assay.kit.spans import Headers, TraceSpan, trail_var
from assay.kit.trails import Fact, Stretch, Trail

_CARRIER = TraceContextTextMapPropagator()
_EXPORT_LOGGER = "opentelemetry.exporter.otlp.proto.grpc.exporter"
_QUIET_S = 60.0


class OtelTracer:
    """A tracer with a provider of its own, or of the caller's.

    Args:
        service: `service.name` of the spans, unless the environment sets another.
        provider: of the caller; None for one that sends by OTLP.

    Raises:
        ConfigError: a variable of OpenTelemetry is wrong.
    """

    def __init__(self, service: str, provider: TracerProvider | None = None) -> None:
        self._own: tuple[TracerProvider, OTLPSpanExporter] | None = None
        if provider is None:
            self._own = _provider(service)
            provider = self._own[0]
        self._tracer = provider.get_tracer("assay", _version())

    def span(self, name: str, facts: Mapping[str, Fact]) -> TraceSpan:
        """See `assay.kit.spans.Tracer`."""
        return _LiveSpan(self._tracer.start_span(name, attributes=facts), current=True)

    def calling(self, method: str, facts: Mapping[str, Fact]) -> TraceSpan:
        """See `assay.kit.spans.Tracer`."""
        said = {"rpc.system.name": "grpc", "rpc.method": method, **facts}
        return _LiveSpan(self._tracer.start_span(method, kind=SpanKind.CLIENT, attributes=said))

    def serving(self, method: str, headers: Mapping[str, str], most_items: int) -> TraceSpan:
        """See `assay.kit.spans.Tracer`."""
        parent = _CARRIER.extract(headers, Context())
        span = self._tracer.start_span(
            method, parent, kind=SpanKind.SERVER, attributes={"rpc.method": method}
        )
        trail = Trail(most_items) if span.is_recording() else None
        return _ServingSpan(self._tracer, span, trail)

    def headers(self) -> Headers:
        """See `assay.kit.spans.Tracer`."""
        return _headers(otel_context.get_current())

    def close(self, timeout_s: float) -> None:
        """Sends what waits, for so many seconds; a provider of the caller's stays as it is."""
        if self._own is None:
            return
        provider, exporter = self._own
        ending = threading.Thread(target=provider.shutdown, name="assay-spans-end", daemon=True)
        ending.start()
        ending.join(timeout_s)
        if ending.is_alive():
            exporter.shutdown(0)


class _LiveSpan(TraceSpan):
    """A span that is recorded, or that propagates that it is not."""

    def __init__(self, span: trace.Span, *, current: bool = False) -> None:
        self._span = span
        self._current = current
        self._token: Token[Context] | None = None
        self._failed = False
        self.recording = span.is_recording()

    def note(self, facts: Mapping[str, Fact]) -> None:
        self._span.set_attributes(facts)

    def fail(self, reason: str) -> None:
        if not self._failed:  # the first reason is the nearest to the cause
            self._failed = True
            _fail(self._span, reason)

    def headers(self) -> Headers:
        return _headers(trace.set_span_in_context(self._span, Context()))

    def trace_id(self) -> str:
        if not self.recording:
            return ""
        return trace.format_trace_id(self._span.get_span_context().trace_id)

    def current(self) -> contextlib.AbstractContextManager[object]:
        return trace.use_span(
            self._span, record_exception=False, set_status_on_exception=False, end_on_exit=False
        )

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()

    def __enter__(self) -> Self:
        if self._current:
            self._token = otel_context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            otel_context.detach(self._token)
            self._token = None
        if error is not None:
            self.fail(error.reason if isinstance(error, CallError) else type(error).__name__)
        self.end()


class _ServingSpan(_LiveSpan):
    """A served call; at its end the items of its trail become spans below it."""

    def __init__(self, tracer: trace.Tracer, span: trace.Span, trail: Trail | None) -> None:
        super().__init__(span, current=True)
        self._tracer = tracer
        self._trail = trail
        self._trail_token: Token[Trail | None] | None = None

    def __enter__(self) -> Self:
        self._trail_token = trail_var.set(self._trail)
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._trail_token is not None:
            trail_var.reset(self._trail_token)
            self._trail_token = None
        super().__exit__(kind, error, trace)

    def end(self) -> None:
        trail, self._trail = self._trail, None
        if trail is not None and trail.items:
            kept = trail.kept()
            self.note(
                {
                    "assay.items": trail.items,
                    "assay.faults": trail.faults,
                    "assay.items.shown": len(kept),
                    "assay.queue.max_s": trail.longest_wait_s,
                    "assay.execution.max_s": trail.longest_execution_s,
                    "assay.execution.sum_s": trail.execution_s,
                }
            )
            below = trace.set_span_in_context(self._span, Context())
            since_ns = time.time_ns() - time.monotonic_ns()
            for stretch in kept:
                _record(self._tracer, below, stretch, since_ns)
        super().end()


class _Ids(RandomIdGenerator):
    """Ids by a generator of their own.

    The SDK draws from Python's global generator: traces would change the numbers of a seeded run.
    """

    def __init__(self) -> None:
        self._random = random.Random(os.urandom(32))  # noqa: S311  # ids, not secrets

    def generate_span_id(self) -> int:
        return self._random.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        return self._random.getrandbits(128) or 1


class _AtMostOnce(logging.Filter):
    """Lets one record pass in so many seconds."""

    def __init__(self, quiet_s: float) -> None:
        super().__init__()
        self._quiet_s = quiet_s
        self._next_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + self._quiet_s
        return True


def _provider(service: str) -> tuple[TracerProvider, OTLPSpanExporter]:
    named = os.environ.get("OTEL_SERVICE_NAME", "").strip()
    try:
        resource = Resource.create()
        if not named and "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
            resource = resource.merge(Resource({SERVICE_NAME: service}))
        provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=_Ids())
        exporter = OTLPSpanExporter()
        provider.add_span_processor(BatchSpanProcessor(exporter))
    except (ValueError, RuntimeError, OSError) as error:
        text = " ".join(str(error).split())
        raise ConfigError(f"a variable OTEL_... of traces is wrong: {text}") from error
    logger = logging.getLogger(_EXPORT_LOGGER)
    if not any(isinstance(known, _AtMostOnce) for known in logger.filters):
        logger.addFilter(_AtMostOnce(_QUIET_S))
    return provider, exporter


def _version() -> str:
    with contextlib.suppress(PackageNotFoundError):
        return version("assay-rl-kit")
    return ""


def _headers(context: Context) -> Headers:
    carrier: dict[str, str] = {}
    _CARRIER.inject(carrier, context)
    return tuple(carrier.items())


def _fail(span: trace.Span, reason: str) -> None:
    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR, reason)


def _record(tracer: trace.Tracer, parent: Context, stretch: Stretch, since_ns: int) -> None:
    span = tracer.start_span(
        stretch.name,
        parent,
        attributes=stretch.facts,
        start_time=since_ns + round(stretch.began_s * 1e9),
    )
    if stretch.reason:
        _fail(span, stretch.reason)
    below = trace.set_span_in_context(span, Context())
    for part in stretch.parts:
        _record(tracer, below, part, since_ns)
    span.end(since_ns + round(stretch.ended_s * 1e9))
