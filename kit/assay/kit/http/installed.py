"""The installed faces, by their entry points; nothing is imported, Starlette neither."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

GROUP = "assay.http_faces"


def installed_faces(service: str) -> list[EntryPoint]:
    """The faces of this environment for a service, sorted."""
    found = entry_points(group=f"{GROUP}.{service}")
    return sorted(found, key=lambda point: (point.name, point.value))
