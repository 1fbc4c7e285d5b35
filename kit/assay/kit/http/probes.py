"""Whether the server lives and serves, and its metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.kit.gate import Phase
from assay.kit.http.faces import Face
from assay.kit.http.front import Front
from assay.kit.http.operations import ANY_OBJECT, TEXT, answers, get


def routes(front: Front) -> list[Route]:
    """/healthz, /readyz, /metrics."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for collector in front.admission.collectors:
        registry.register(collector)

    async def live(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        phase = front.admission.gate.phase
        status = 200 if phase is Phase.SERVING else 503
        return JSONResponse({"status": phase.value}, status)

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return [
        Route("/healthz", live),
        Route("/readyz", ready),
        Route("/metrics", metrics),
    ]


FACE = Face(
    "probes",
    routes,
    {
        "/healthz": get("probes", "The process lives.", answers(ANY_OBJECT, "Always.")),
        "/readyz": get(
            "probes", "The server serves.", answers(ANY_OBJECT, "503 while it does not.")
        ),
        "/metrics": get("probes", "Metrics for Prometheus.", answers(TEXT, "Text.", "text/plain")),
    },
)
