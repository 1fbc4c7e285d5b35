"""A collector of spans, over OTLP as a real one takes them, and the trees that they make."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2

LIMIT_S = 30.0


@dataclass(frozen=True)
class Seen:
    """A span that arrived.

    Attributes:
        service: whose it is.
        proto: as it came.
    """

    service: str
    proto: trace_pb2.Span

    @property
    def name(self) -> str:
        return self.proto.name

    @property
    def id(self) -> str:
        return self.proto.span_id.hex()

    @property
    def parent(self) -> str:
        return self.proto.parent_span_id.hex()

    @property
    def trace(self) -> str:
        return self.proto.trace_id.hex()

    @property
    def seconds(self) -> float:
        return (self.proto.end_time_unix_nano - self.proto.start_time_unix_nano) / 1e9

    @property
    def failed(self) -> str:
        """The reason of one that failed; empty for one that did not."""
        status = self.proto.status
        return status.message if status.code == trace_pb2.Status.STATUS_CODE_ERROR else ""

    @property
    def facts(self) -> dict[str, Any]:
        return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in self.proto.attributes}


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what is sent to it."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []

    def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            of = {a.key: a.value.string_value for a in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [Seen(of["service.name"], span) for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()

    def of(self, trace: str) -> list[Seen]:
        return [span for span in list(self.spans) if span.trace == trace]

    def until(self, trace: str, whole: Callable[[list[Seen]], bool]) -> Tree:
        """The spans of a trace, once it is whole."""
        ends_s = time.monotonic() + LIMIT_S
        while not whole(found := self.of(trace)) and time.monotonic() < ends_s:
            time.sleep(0.02)
        assert whole(found), [(span.service, span.name) for span in found]
        return Tree(found)


class Tree:
    """The spans of one trace."""

    def __init__(self, spans: list[Seen]) -> None:
        self.spans = spans
        self._by_id = {span.id: span for span in spans}

    def named(self, name: str, service: str = "") -> list[Seen]:
        return [s for s in self.spans if s.name == name and service in ("", s.service)]

    def one(self, name: str, service: str = "") -> Seen:
        [found] = self.named(name, service)
        return found

    def below(self, span: Seen) -> list[Seen]:
        return [other for other in self.spans if other.parent == span.id]

    def above(self, span: Seen) -> list[tuple[str, str]]:
        """Service and name of what a span hangs below, the nearest first."""
        found = []
        while (parent := self._by_id.get(span.parent)) is not None:
            found.append((parent.service, parent.name))
            span = parent
        return found


@contextlib.contextmanager
def collecting() -> Iterator[tuple[Collector, dict[str, str]]]:
    """A collector on a free port, and the environment that sends to it at once."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(4))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield collector, environment(port)
    finally:
        server.stop(None).wait()


def environment(port: int) -> dict[str, str]:
    """What turns traces on, to a collector of this machine."""
    return {
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
