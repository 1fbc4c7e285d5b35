"""The application of a service: the routes of its faces, inside the middleware."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.routing import Match, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from assay.kit.access import Access
from assay.kit.http import openapi, pages, probes
from assay.kit.http.config import HttpConfig
from assay.kit.http.faces import Face, FaceRoute, Json, load_faces, routes_of
from assay.kit.http.front import Front
from assay.kit.http.listener import HttpListener
from assay.kit.http.middleware import HttpMiddleware
from assay.kit.serving import Admission

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Site:
    """What a service is over HTTP.

    Attributes:
        service: its name in the entry-point groups, as "reward".
        title: its name for people, as "reward_server".
        own: the service's faces, before those that plug in.
        absent: explanations by path, for what is not served there.
    """

    service: str
    title: str
    summary: str
    description: str
    own: Sequence[Face] = ()
    absent: Mapping[str, str] = field(default_factory=dict)


def http_listener(
    site: Site,
    make_front: Callable[[Admission], Front],
    config: HttpConfig,
    access: Access,
) -> HttpListener | None:
    """Serves a site with its installed faces; None without --http-port.

    `make_front` makes the service as its faces see it.
    """
    if config.port is None:
        return None
    plugged = load_faces(site.service)
    _log.info("HTTP faces: %s", ", ".join(face.name for face in [*site.own, *plugged]) or "none")
    closers: list[Callable[[], None]] = []

    def app(admission: Admission) -> ASGIApp:
        front = make_front(admission)
        made = make_app(front, site, plugged)
        closers.extend(front.closers)
        return made

    return HttpListener(app, config, access, closers)


def document_of(front: Front, site: Site, plugged: Sequence[Face]) -> Json:
    """The OpenAPI document of a site with its installed faces."""
    faces = [probes.FACE, *site.own, *plugged]
    info = {"title": f"Assay {site.title}", "version": "1", "summary": site.summary,
            "description": site.description}  # fmt: skip
    return openapi.document(info, faces, {route.path for route in routes_of(front, faces)})


def make_app(front: Front, site: Site, plugged: Sequence[Face]) -> ASGIApp:
    """The ASGI application over a front.

    Raises:
        StartupError: two faces claim a path.
    """
    document = document_of(front, site, plugged)
    about = Face("pages", lambda front: pages.routes(front, document, f"assay {site.title}"))
    routes = routes_of(front, [probes.FACE, about, *site.own, *plugged])
    router = Router(routes, redirect_slashes=False)

    async def endpoints(scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = router  # what is not found is raised then, and the middleware answers
        await router(scope, receive, send)

    return HttpMiddleware(
        endpoints,
        front.admission,
        front.config,
        _labels(routes),
        public=front.public,
        absent=site.absent,
    )


def _labels(routes: Sequence[FaceRoute]) -> Callable[[Scope], str]:
    plain = {route.path for route in routes if "{" not in route.path}

    def label_of(scope: Scope) -> str:
        if scope["path"] in plain:
            return str(scope["path"])
        for route in routes:
            if route.matches(scope)[0] is not Match.NONE:
                return route.path
        return ""

    return label_of
