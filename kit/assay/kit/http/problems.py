"""Errors as problem details (RFC 9457), and the HTTP status of each reason. Pure.

A problem carries what a gRPC status does: reason, message, whether the same request may be sent
again, and when. `retryable` follows the contract: UNAVAILABLE, and RESOURCE_EXHAUSTED with a
pushback.
"""

from __future__ import annotations

import json
import math
from typing import Any

import grpc
from starlette.responses import Response

from assay.kit.errors import CallError, call_error, make_status
from assay.kit.reasons import LEXICON, Reason

MEDIA_TYPE = "application/problem+json"
CLIENT_CLOSED_REQUEST = 499

_BY_CODE = {
    grpc.StatusCode.CANCELLED: CLIENT_CLOSED_REQUEST,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.UNIMPLEMENTED: 404,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


def http_status(error: CallError) -> int:
    """The status of a failed call; 500 for a defect of ours."""
    if error.reason == Reason.MESSAGE_TOO_LARGE:
        return 413
    return _BY_CODE.get(error.code, 500)


def is_retryable(error: CallError) -> bool:
    """Whether the same request may be sent again."""
    if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return error.retry_after_s is not None
    return error.code is grpc.StatusCode.UNAVAILABLE


def problem(error: CallError, request_id: str, status: int = 0) -> dict[str, Any]:
    """The body of a failed call's answer; `status` replaces the error's own."""
    known = LEXICON.get(Reason(error.reason)) if error.reason in set(Reason) else None
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": known.meaning if known else "There is no judgement.",
        "status": status or http_status(error),
        "detail": str(error),
        "reason": error.reason,
        "retryable": is_retryable(error),
        "request_id": request_id,
    }
    if error.retry_after_s is not None:
        body["retry_after_s"] = error.retry_after_s
    if error.metadata:
        body["metadata"] = dict(error.metadata)
    return body


def problem_response(error: CallError, request_id: str, status: int = 0) -> Response:
    """The answer to a failed call, with Retry-After where the server knows when."""
    headers: dict[str, str] = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    if error.code is grpc.StatusCode.UNAUTHENTICATED:
        headers["www-authenticate"] = 'Bearer realm="assay", Basic realm="assay", charset="UTF-8"'
    if error.reason in (Reason.DRAINING, Reason.MESSAGE_TOO_LARGE):
        headers["connection"] = "close"
    text = json.dumps(problem(error, request_id, status), ensure_ascii=False)
    body = text.encode("utf-8", "replace")
    return Response(body, status or http_status(error), headers, media_type=MEDIA_TYPE)


def forbidden(text: str) -> CallError:
    """The exception for a known caller without the right; status 403."""
    code = grpc.StatusCode.PERMISSION_DENIED
    return call_error(make_status(Reason.UNAUTHENTICATED, text, code=code))
