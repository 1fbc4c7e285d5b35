"""Exceptions, and how they become google.rpc.Status and back. Pure.

    AssayError                      anything that Assay raises on purpose; str() is one line
    |-- ConfigError                 a setting, file or argument is wrong
    |-- StartupError                a service could not start (port in use, self-test failed)
    `-- CallError                   a call as a whole failed
        |-- BadRequestError         INVALID_ARGUMENT and its kin: fix the caller
        |-- UnauthenticatedError    the token is missing, unknown or not allowed
        |-- UnavailableError        nobody answers, or the server starts or drains
        |-- OverloadedError         the queue is full, or the message too large
        |-- DeadlineError           the call's deadline passed
        `-- ServerError             a defect of the server

The fault of one item is a value: google.rpc.Status on the wire, `assay.clients.Fault` in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf import duration_pb2
from google.protobuf.message import DecodeError
from google.rpc import (
    error_details_pb2,
    status_pb2,
)

from assay.kit.reasons import LEXICON, Reason

DOMAIN = "assay"
STATUS_DETAILS_KEY = "grpc-status-details-bin"
_MAX_MESSAGE_CHARS = 1000
# Metadata of 8 KiB is what every gRPC implementation takes. The message is in it twice: in the
# status, and percent-encoded (three bytes for one) as grpc-message.
_MAX_WIRE_MESSAGE_BYTES = 1000
_MAX_WIRE_STATUS_BYTES = 3500
_MAX_RETRY_AFTER_S = 1e9


class AssayError(Exception):
    """Anything that Assay raises on purpose. Its text is one line: the thing and the remedy."""


class ConfigError(AssayError):
    """A setting, a file or an argument is wrong."""


class StartupError(AssayError):
    """A service could not start."""


class CallError(AssayError):
    """A call as a whole failed: no item of it was judged.

    Attributes:
        reason: from the lexicon (or of a later version).
        code: the gRPC code.
        retry_after_s: how long to wait before a retry, if the server sent it.
        metadata: further facts of the server.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        code: grpc.StatusCode | None = None,
        retry_after_s: float | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = str(reason)
        self.code = code or code_of(reason)
        self.retry_after_s = retry_after_s
        self.metadata = dict(metadata or {})

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles by `_rebuild`, because of the keyword arguments."""
        facts = {
            "reason": self.reason,
            "message": str(self),
            "code": self.code,
            "retry_after_s": self.retry_after_s,
            "metadata": self.metadata,
        }
        return _rebuild, (type(self), facts)


def _rebuild(kind: type[CallError], facts: dict[str, Any]) -> CallError:
    return kind(**facts)


class BadRequestError(CallError):
    """The request is wrong: repeating it unchanged will not help."""


class UnauthenticatedError(CallError):
    """The token is missing, unknown or not allowed."""


class UnavailableError(CallError):
    """Nobody answers, or the server is starting or shutting down."""


class OverloadedError(CallError):
    """The server is full, or the message too large for it."""


class DeadlineError(CallError):
    """The call's deadline passed."""


class ServerError(CallError):
    """A defect of the server."""


_BY_CODE: dict[grpc.StatusCode, type[CallError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: BadRequestError,
    grpc.StatusCode.NOT_FOUND: BadRequestError,
    grpc.StatusCode.FAILED_PRECONDITION: BadRequestError,
    grpc.StatusCode.OUT_OF_RANGE: BadRequestError,
    grpc.StatusCode.UNIMPLEMENTED: BadRequestError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: UnauthenticatedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
}
_BY_NUMBER: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}
_BY_REASON: dict[str, grpc.StatusCode] = {str(key): info.code for key, info in LEXICON.items()}


def code_of(reason: str) -> grpc.StatusCode:
    """The gRPC code of a reason; UNKNOWN for one that is not in the lexicon."""
    return _BY_REASON.get(str(reason), grpc.StatusCode.UNKNOWN)


def make_status(
    reason: str,
    message: str,
    *,
    code: grpc.StatusCode | None = None,
    retry_after_s: float | None = None,
    metadata: Mapping[str, str] | None = None,
) -> status_pb2.Status:
    """Builds the google.rpc.Status of a fault.

    Args:
        reason: from the lexicon or a verifier's own.
        message: for people; cut to 1,000 characters. Lone surrogates become "?", here and in the
            metadata.
        code: the gRPC code; by default that of the reason.
        retry_after_s: sent as RetryInfo, to the nanosecond. Finite; clipped to 0 .. 1e9.
        metadata: sent in ErrorInfo.

    Raises:
        ValueError: retry_after_s is NaN.
    """
    status = status_pb2.Status(
        code=(code or code_of(reason)).value[0], message=_clean(message[:_MAX_MESSAGE_CHARS])
    )
    facts = {_clean(key): _clean(value) for key, value in (metadata or {}).items()}
    info = error_details_pb2.ErrorInfo(reason=_clean(str(reason)), domain=DOMAIN, metadata=facts)
    status.details.add().Pack(info, deterministic=True)
    if retry_after_s is not None:
        delay = duration_pb2.Duration()
        delay.FromNanoseconds(round(min(max(retry_after_s, 0.0), _MAX_RETRY_AFTER_S) * 1e9))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def error_info(status: status_pb2.Status) -> error_details_pb2.ErrorInfo:
    """The status's ErrorInfo; an empty one when it has none."""
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
            break
    return info


def reason_of(status: status_pb2.Status) -> str:
    """The status's reason; the name of its gRPC code when it has none."""
    return error_info(status).reason or status_code(status).name


def status_code(status: status_pb2.Status) -> grpc.StatusCode:
    """The status's gRPC code; UNKNOWN for a number that is none."""
    return _BY_NUMBER.get(status.code, grpc.StatusCode.UNKNOWN)


def retry_after_s(status: status_pb2.Status) -> float | None:
    """Seconds to wait before a retry; None without RetryInfo."""
    info = error_details_pb2.RetryInfo()
    for detail in status.details:
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
            return float(info.retry_delay.ToNanoseconds() / 1e9)
    return None


def call_error(status: status_pb2.Status) -> CallError:
    """The exception of a whole call's status."""
    code = status_code(status)
    kind = _BY_CODE.get(code, ServerError)
    return kind(
        reason_of(status),
        status.message,
        code=code,
        retry_after_s=retry_after_s(status),
        metadata=dict(error_info(status).metadata),
    )


def refuse(
    reason: Reason, message: str, *, retry_after_s: float | None = None, **metadata: str
) -> CallError:
    """The exception by which a service refuses a whole call with a gRPC status."""
    return call_error(make_status(reason, message, retry_after_s=retry_after_s, metadata=metadata))


def outstayed() -> CallError:
    """The end of a call that a drain could not wait for."""
    return refuse(Reason.DRAINING, "the server is shutting down and could not wait longer")


def wire_status(error: CallError) -> status_pb2.Status:
    """The status of a failed call as metadata can carry it.

    The message is cut to 1,000 bytes, and metadata dropped where the whole would be too long: peers
    refuse metadata above 8 KiB.
    """
    message = (
        str(error).encode("utf-8", "replace")[:_MAX_WIRE_MESSAGE_BYTES].decode("utf-8", "ignore")
    )
    code = grpc.StatusCode.UNKNOWN if error.code is grpc.StatusCode.OK else error.code
    status = make_status(
        error.reason,
        message,
        code=code,
        retry_after_s=error.retry_after_s,
        metadata=error.metadata,
    )
    if status.ByteSize() > _MAX_WIRE_STATUS_BYTES:
        status = make_status(error.reason, message, code=code, retry_after_s=error.retry_after_s)
    return status


def status_sent(error: grpc.RpcError) -> status_pb2.Status | None:
    """The google.rpc.Status that the server sent with a failed call.

    Args:
        error: of gRPC, from its asyncio or its blocking channel.

    Returns:
        None where there is none, it cannot be read, or it has another code than the call.
    """
    call: Any = error  # at run time a grpc.Call or an AioRpcError, which its type does not say
    for key, value in call.trailing_metadata() or ():
        if key == STATUS_DETAILS_KEY and isinstance(value, bytes):
            try:
                status = status_pb2.Status.FromString(value)
            except DecodeError:
                return None
            if status_code(status) is call.code():
                return status
    return None
