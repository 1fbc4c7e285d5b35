"""What traces cost: CPU of the server and wall time, off, one call in a hundred sampled, and all.

Two servers, one with traces and one without, take turns on the same items, and so does the client;
the collector is a process of its own that throws away what it gets. `exact` is the worst case: its
own work is next to nothing. CPU is that of the server's threads, the one that sends spans included.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from assay.clients import EmbeddedServices, Item, RewardClient
from assay.kit import tracing
from assay.kit.spans import TRACEPARENT
from assay.kit.tracing_otel import OtelTracer
from assay.kit.trails import item_stretch
from bench.common import interleaved, spread

ROUNDS = 7
SHARES = {"off": None, "1 in 100": 0.01, "all": 1.0}
SIZES = {1: 512, 64: 8192, 512: 16384}
COLLECTOR = """
import sys
from concurrent.futures import ThreadPoolExecutor
import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc
class Sink(rpc.TraceServiceServicer):
    def Export(self, request, context):
        return pb.ExportTraceServiceResponse()
server = grpc.server(ThreadPoolExecutor(1))
rpc.add_TraceServiceServicer_to_server(Sink(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
"""


def cpu_s(pid: int) -> float:
    """CPU seconds of a process's threads that live, to the nanosecond."""
    stats = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(stat.read_text().split()[0]) for stat in stats) / 1e9


@contextmanager
def collector() -> Iterator[str]:
    """A collector that keeps nothing; its address."""
    command = [sys.executable, "-c", COLLECTOR]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.kill()


def tracer(address: str, share: float | None) -> OtelTracer | None:
    """The client's, with a share of its calls sampled; None for none."""
    if share is None:
        return None
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(share)), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
    return OtelTracer("bench", provider)


def _alone() -> None:
    """Prints what the parts cost by themselves: CPU of this thread, the least of five times."""
    began_s = time.monotonic()
    item = item_stretch("exact", began_s, began_s + 1, 1.0, {"assay.item": 1, "assay.fault": ""})

    def serve(sampled: int, items: int) -> None:
        headers = {TRACEPARENT: f"00-{'1' * 32}-{'2' * 16}-0{sampled}"}
        with tracing.serving("package.Service/Method", headers):
            trail = tracing.trail()
            for _ in range(items if trail else 0):
                trail.add(began_s, began_s + 1, 1.0, fault=False, describe=lambda _: item)

    def ask() -> None:
        with tracing.calling("package.Service/Method") as span:
            span.headers()

    for name, one in (
        ("a call that is served and not sampled", partial(serve, 0, 0)),
        ("one that is", partial(serve, 1, 0)),
        ("the same with 64 items", partial(serve, 1, 64)),
        ("a client's call that is sampled", ask),
    ):
        times = []
        for _ in range(5):
            before = time.thread_time()
            for _ in range(200):
                one()
            times.append((time.thread_time() - before) / 200 * 1e6)
        print(f"{name:>38}   {min(times):7.1f} us")


def run() -> None:
    """Prints a line for each size of call and share of calls."""
    print(f"\ntracing: `exact`, {ROUNDS} rounds, the three take turns; medians, paired ratios")
    common = {"reward": ("--cache-entries", "0", "--log-level", "ERROR", "--workers", "1")}
    with collector() as address, EmbeddedServices(arguments=common) as off:
        asked = {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        os.environ.update(asked)
        tracing.use(tracer(address, 1.0))
        _alone()
        try:
            with EmbeddedServices(arguments=common) as on:
                for name in asked:
                    del os.environ[name]
                _compare(off, on, address)
        finally:
            tracing.close()


def _compare(off: EmbeddedServices, on: EmbeddedServices, address: str) -> None:
    print("items a call   sampled    server CPU us an item          wall s a round   CPU to off")
    tracers = {name: tracer(address, share) for name, share in SHARES.items()}
    items = [Item(f"answer {i}", reference=f"answer {i}", verifier="exact") for i in range(512)]
    with RewardClient(off.address) as plain, RewardClient(on.address) as traced:
        for size, count in SIZES.items():
            used: dict[str, list[float]] = {name: [] for name in SHARES}

            def send(
                name: str,
                size: int = size,
                count: int = count,
                used: dict[str, list[float]] = used,
            ) -> None:
                tracing.use(tracers[name])
                services, client = (off, plain) if name == "off" else (on, traced)
                before = cpu_s(services.pid())
                for _ in range(count // size):
                    client.score(items[:size])
                used[name].append((cpu_s(services.pid()) - before) / count * 1e6)

            for name in SHARES:
                send(name)
                used[name].clear()
            time.sleep(0.5)
            walls = interleaved({name: partial(send, name) for name in SHARES}, ROUNDS)
            for name in SHARES:
                pairs = zip(used[name], used["off"], strict=True)
                ratio = statistics.median(one / other for one, other in pairs)
                print(
                    f"{size:12d}   {name:>8}   {spread(used[name]):>30}   {spread(walls[name])}"
                    f"   {ratio:.2f}",
                    flush=True,
                )
