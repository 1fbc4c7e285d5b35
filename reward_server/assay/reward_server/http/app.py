"""The application: all routes, inside the rim."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.routing import BaseRoute, Match, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from assay.reward_server.http import (
    graders,
    journal,
    native,
    nemo_gym,
    openrlhf,
    pages,
    piston,
    probes,
    sandbox_fusion,
    slime,
)
from assay.reward_server.http.front import Front
from assay.reward_server.http.rim import HttpRim

FORMATS: tuple[Callable[[Front], Sequence[BaseRoute]], ...] = (
    probes.routes,
    native.routes,
    openrlhf.routes,
    slime.routes,
    nemo_gym.routes,
    graders.routes,
    sandbox_fusion.routes,
    piston.routes,
    pages.routes,
    journal.routes,
)
"""The wire formats, each with its routes."""


def routes_of(front: Front) -> list[BaseRoute]:
    """The routes of all formats."""
    return [route for format_of in FORMATS for route in format_of(front)]


def make_app(front: Front) -> ASGIApp:
    """The ASGI application over a front."""
    routes = routes_of(front)
    router = Router(routes, redirect_slashes=False)

    async def endpoints(scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = router  # what is not found is raised then, and the rim answers
        await router(scope, receive, send)

    return HttpRim(endpoints, front.rim, front.config, _labels(routes), public=front.public)


def _labels(routes: Sequence[BaseRoute]) -> Callable[[Scope], str]:
    """Tells the path of the route that a request gets to, as it was declared."""
    plain = {route.path for route in routes if isinstance(route, Route) and "{" not in route.path}

    def label_of(scope: Scope) -> str:
        if scope["path"] in plain:
            return str(scope["path"])
        for route in routes:
            if isinstance(route, Route | Mount) and route.matches(scope)[0] is not Match.NONE:
                return route.path
        return ""

    return label_of
