"""Whether the server lives and serves, its metrics, and a page that says what is here."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.reward_server.http.front import Front
from assay.rpc.gate import Phase


def routes(front: Front) -> list[Route]:
    """/healthz, /readyz, /metrics."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for collector in front.rim.collectors:
        registry.register(collector)

    async def live(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        phase = front.rim.gate.phase
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
