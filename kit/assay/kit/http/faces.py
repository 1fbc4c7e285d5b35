"""Faces: sets of HTTP routes over a service, its own and those that plug in.

A distribution brings a face for a service by an entry point in the group `assay.http_faces.SERVICE`
(`assay.http_faces.reward`, `assay.http_faces.sandbox`), as `any-name = "module:FACE"`, where FACE
is a `Face`. One that cannot be loaded is logged and left out. One that claims a path of another is
an error; so no face answers where callers are let in without a token.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import Route, WebSocketRoute

from assay.kit.errors import StartupError
from assay.kit.http.front import Front
from assay.kit.http.installed import installed_faces

Json = dict[str, Any]
FaceRoute = Route | WebSocketRoute
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Face:
    """A wire format over a service.

    Attributes:
        routes: its routes, given the service's `Front`; their endpoints take a Starlette request
            and return a response, or raise `refuse(...)` or any CallError, of which the middleware
            makes a problem. A WebSocketRoute is one call for as long as it is open; it needs the
            package wsproto.
        operations: path to path item of OpenAPI; one without a route is left out.
    """

    name: str
    routes: Callable[[Any], Sequence[FaceRoute]]
    operations: Mapping[str, Json] = field(default_factory=dict)
    schemas: Mapping[str, Json] = field(default_factory=dict)


def load_faces(service: str) -> list[Face]:
    """The installed faces for a service that can be loaded."""
    faces: list[Face] = []
    for point in installed_faces(service):
        try:
            face = point.load()
            if not isinstance(face, Face):
                raise TypeError(f"{point.value} is no assay.kit.http.faces.Face")
        except Exception:  # noqa: BLE001 - the isolation border: a plug-in harms nobody else
            _log.exception(
                "the HTTP face %s (%s) is left out: it cannot be loaded", point.name, point.value
            )
            continue
        faces.append(face)
    return faces


def routes_of(front: Front, faces: Iterable[Face]) -> list[FaceRoute]:
    """The routes of some faces, the service's own first.

    Raises:
        StartupError: two faces claim a path, or one brings what is no plain route.
    """
    taken: list[tuple[Face, FaceRoute]] = []
    for face in faces:
        added = list(face.routes(front))
        for route in added:
            if type(route) not in (Route, WebSocketRoute):
                raise StartupError(f"the HTTP face {face.name} brings {route!r}, which is no Route")
            for other, known in taken:
                if _meet(route, known):
                    raise StartupError(
                        f"the HTTP faces {other.name} and {face.name} both serve {route.path}: "
                        "uninstall the distribution of one"
                    )
        taken += [(face, route) for route in added]
    return [route for _, route in taken]


def _meet(one: FaceRoute, other: FaceRoute) -> bool:
    return bool(one.path_regex.match(other.path) or other.path_regex.match(one.path))
