"""The index and the page of the interface: HTML without script, from the OpenAPI document.

Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from assay.kit.http.front import Front

CSP = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:#8881;padding:.8rem;"
    "overflow:auto}details{margin:.3rem 0}h3{margin:1.6rem 0 .3rem}table{border-collapse:collapse}"
    "td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;"
    "border-bottom:1px solid #8883}"
)


def docs(document: dict[str, Any]) -> str:
    """The page of an OpenAPI document."""
    info = document["info"]
    parts = [f"<h1>{escape(info['title'])}</h1><p>{escape(info['description'])}</p>"]
    parts.append('<p><a href="openapi.json">openapi.json</a></p>')
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.append(_operation(path, method, operation))
    parts.append("<h2>Schemas</h2>")
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"<h3 id='{escape(name)}'>{escape(name)}</h3>{_schema(schema)}")
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width">'
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style></head><body>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def routes(front: Front, document: dict[str, Any], service: str) -> list[Route]:
    """/, /docs, /openapi.json."""
    written = json.dumps(document, ensure_ascii=False).encode()
    page = docs(document).encode()

    async def index(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("docs")
        return JSONResponse({"service": service, "phase": front.admission.gate.phase.value})

    async def described(_: Request) -> Response:
        return Response(written, media_type="application/json")

    async def shown(_: Request) -> Response:
        return Response(page, headers={"content-security-policy": CSP}, media_type="text/html")

    return [Route("/", index), Route("/openapi.json", described), Route("/docs", shown)]


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    title = f"<h3><code>{method.upper()} {escape(path)}</code></h3>"
    told = [title, f"<p>{escape(operation['summary'])}</p>"]
    for parameter in operation.get("parameters", ()):
        text = escape(f"{parameter['name']} ({parameter['in']}): {parameter['description']}")
        told.append(f"<div><small>{text}</small></div>")
    if "requestBody" in operation:
        told.append("<details><summary>request</summary>")
        told += [_schema(one["schema"]) for one in operation["requestBody"]["content"].values()]
        told.append("</details>")
    answered = operation["responses"]["200"]
    told.append(f"<details><summary>answer</summary><p>{escape(answered['description'])}</p>")
    told += [_schema(one["schema"]) for one in answered["content"].values()]
    told.append("</details>")
    return "".join(told)


def _schema(schema: dict[str, Any]) -> str:
    text = f"<p>{escape(schema['description'])}</p>" if "description" in schema else ""
    if "properties" not in schema:
        return text + f"<p>{_kind(schema)}</p>"
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{_kind(one)}"
        f"<td>{escape(one.get('description', ''))}</tr>"
        for name, one in schema["properties"].items()
    )
    return f"{text}<table>{rows}</table>"


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if "enum" in schema:
        return escape(" | ".join(map(str, schema["enum"])))
    kind = schema.get("type", "any")
    return escape(kind if isinstance(kind, str) else " | ".join(kind))
