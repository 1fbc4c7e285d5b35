"""Traces: where the time of a call went, over all processes of it.

Off, at no cost, until `set_up` is called where OTEL_TRACES_EXPORTER = otlp. Only then is
OpenTelemetry imported (the extra `tracing` of assay-rl-kit); its own variables set the collector,
the sampling and the buffer. The buffer is bounded: a collector that is slow or gone costs spans and
never a judgement.

The trace travels as W3C `traceparent` in the metadata of a call (www.w3.org/TR/trace-context). A
fact of a span is a name that the operator serves, a number, or an id; never what a caller wrote.

    with tracing.span("score", {"assay.items": 64}):   # here, and current for what is called
        ...
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from importlib.util import find_spec

from assay.kit.errors import ConfigError
from assay.kit.spans import TRACEPARENT, TRACESTATE, Headers, Tracer, TraceSpan, trail_var
from assay.kit.trails import MAX_ITEMS, Fact, Trail

ITEMS_VARIABLE = "ASSAY_TRACE_ITEMS"
NEEDED = "pip install 'assay-rl-kit[tracing]'"

_EXPORTER = "OTEL_TRACES_EXPORTER"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


_NONE = TraceSpan()
_NO_FACTS: Mapping[str, Fact] = {}
_CLOSE_S = 2.0
_tracer: Tracer | None = None
_most_items = MAX_ITEMS


def set_up(service: str) -> bool:
    """Turns traces on for this process if the environment asks for them. May be called again.

    Args:
        service: the name of its spans, unless OTEL_SERVICE_NAME sets another.

    Returns:
        Whether they are on.

    Raises:
        ConfigError: they are asked for and cannot be had.
    """
    if _tracer is None and _wanted():
        _check_protocol()
        most_items = _read_items()
        if any(find_spec(name) is None for name in ("opentelemetry", "opentelemetry.sdk")):
            raise ConfigError(f"{_EXPORTER}=otlp needs OpenTelemetry: {NEEDED}, or leave it out")
        from assay.kit.tracing_otel import OtelTracer  # noqa: PLC0415  # not where traces are off

        use(OtelTracer(service), most_items)
    return on()


def use(tracer: Tracer | None, most_items: int = MAX_ITEMS) -> None:
    """Replaces this process's tracer and closes the old one.

    Args:
        tracer: None turns traces off.
        most_items: of one call, items that get spans because they were slow, and as many faults.
    """
    global _tracer, _most_items  # one of each process
    before, _tracer, _most_items = _tracer, tracer, most_items
    if before is not None:
        atexit.unregister(close)
        before.close(_CLOSE_S)
    if tracer is not None:
        atexit.register(close)


def close() -> None:
    """Sends what waits, for some seconds at most, and turns traces off."""
    use(None)


def on() -> bool:
    """Whether this process has traces."""
    return _tracer is not None


def span(name: str, facts: Mapping[str, Fact] = _NO_FACTS) -> TraceSpan:
    """Work in this process; current in its block. Use few, fixed names."""
    return _NONE if _tracer is None else _tracer.span(name, facts)


def calling(method: str, facts: Mapping[str, Fact] = _NO_FACTS) -> TraceSpan:
    """A call to another process, which is sent the span's `headers`.

    It is not current: in an asynchronous generator its end may come in another context.
    """
    return _NONE if _tracer is None else _tracer.calling(method, facts)


def serving(method: str, headers: Mapping[str, str | bytes]) -> TraceSpan:
    """A call from another process; its items go to the `trail` while it is current.

    `method` is as "package.Service/Method" or "POST /path"; the headers' names are in lower case.
    """
    if _tracer is None:
        return _NONE
    carried = {
        key: value
        for key in (TRACEPARENT, TRACESTATE)
        if isinstance(value := headers.get(key), str)
    }
    return _tracer.serving(method, carried, _most_items)


def headers() -> Headers:
    """Metadata or headers that continue the current span; empty where traces are off."""
    return () if _tracer is None else _tracer.headers()


def trail() -> Trail | None:
    """The items of the call in progress; None where no trace wants them."""
    return trail_var.get() if _tracer is not None else None


def _wanted() -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = os.environ.get(_EXPORTER, "").strip().lower()
    if exporter not in ("", "none", "otlp"):
        raise ConfigError(f"{_EXPORTER} is {exporter!r}: say otlp, or none for no traces")
    return exporter == "otlp"


def _check_protocol() -> None:
    for name in _PROTOCOLS:
        if (protocol := os.environ.get(name, "").strip()) not in ("", "grpc"):
            raise ConfigError(
                f"{name} is {protocol!r}: Assay sends spans by grpc; leave it out, and give the "
                "collector's gRPC port (4317) as OTEL_EXPORTER_OTLP_ENDPOINT"
            )


def _read_items() -> int:
    text = os.environ.get(ITEMS_VARIABLE, "").strip()
    if not text:
        return MAX_ITEMS
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"{ITEMS_VARIABLE} is {text[:80]!r}: give a number of items, 0 for none")
    return int(text)


def _off_in_child() -> None:
    """A forked child has neither the sender's thread nor its connection."""
    global _tracer  # noqa: PLW0603  # one of each process
    if _tracer is not None:
        _of_parents.append(_tracer)
        _tracer = None
        atexit.unregister(close)


_of_parents: list[Tracer] = []
os.register_at_fork(after_in_child=_off_in_child)
