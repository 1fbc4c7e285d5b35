"""One call: its request id, its span, and the error for its failure."""

from __future__ import annotations

import uuid
from typing import Any

import grpc

from assay.kit import tracing
from assay.kit.calls import request_id_var
from assay.kit.errors import CallError, ServerError, call_error, make_status, refuse, status_sent
from assay.kit.reasons import Reason
from assay.kit.spans import TraceSpan

_NAMES = {"reward": "a reward server", "sandbox": "a sandbox", "genrm": "a judge service"}
_SERVED_BY = {
    "RewardService": "reward",
    "ExecutionService": "sandbox",
    "SessionService": "sandbox",
    "JudgeService": "genrm",
    "ProcessRewardService": "genrm",
}


def new_request_id() -> str:
    """The id of the call being served, if this runs inside one, else a fresh one."""
    return request_id_var.get() or uuid.uuid4().hex


_REASON_OF_CODE = {
    grpc.StatusCode.DEADLINE_EXCEEDED: Reason.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Reason.QUEUE_FULL,  # a proxy's own limit, or gRPC's
    grpc.StatusCode.UNAUTHENTICATED: Reason.UNAUTHENTICATED,
    grpc.StatusCode.UNAVAILABLE: Reason.UNREACHABLE,
}


# gRPC's words on a failed connection, and what they mean; the first match holds.
_NO_CONNECTION = "failed to connect"
_CONNECTION_FAILURES: tuple[tuple[str, str], ...] = (
    (
        "certificate has expired",
        "shows a certificate that has expired: renew it on the server, or set the clock right",
    ),
    (
        "certificate is not yet valid",
        "shows a certificate that is not valid yet: set the clock right",
    ),
    (
        "Hostname Verification",
        "shows a certificate of another name: call it by a name in its certificate, or renew that",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "shows a certificate that the given authority did not sign: give the file of its own one",
    ),
    (
        "WRONG_VERSION_NUMBER",
        "does not speak TLS: leave TLS out here, or start it with --tls-cert and --tls-key",
    ),
    (
        "Tls handshake failed",
        "did not agree on TLS: compare the certificates and authorities of both sides",
    ),
    (
        "Failed parsing HTTP/2",
        "answers, but not in gRPC: another program's port, or one for HTTP; correct the address",
    ),
    (
        "Socket closed",
        "hangs up at once: it may want TLS (--tls-ca, its authority) or a client certificate",
    ),
)


def _connection_failure(details: str) -> str:
    if _NO_CONNECTION not in details:
        return ""
    return next((said for sign, said in _CONNECTION_FAILURES if sign in details), "")


def error_of_call(
    error: grpc.RpcError, target: str, request_id: str, called: str = "RewardService"
) -> CallError:
    """A failed gRPC call as one of the errors of `assay.kit.errors`, with a message of one line.

    Its trailing metadata may hold the server's google.rpc.Status. `called` is the service of the
    contract, "RewardService".
    """
    service = _SERVED_BY[called]
    status = status_sent(error)
    if status is not None:
        found = call_error(status)
        if found.reason == Reason.UNAUTHENTICATED:
            remedy = "give the operator's token (token=, --token-file, ASSAY_TOKEN)"
            return refuse(Reason.UNAUTHENTICATED, f"{found} at {target}; {remedy}")
        if found.reason != Reason.UNKNOWN_METHOD:
            return found
        asked = f"{target} is no {_NAMES[service].partition(' ')[2]}: {found}"
        return refuse(
            Reason.UNKNOWN_METHOD,
            f"{asked}; correct the address (`assay doctor` looks for services)",
        )
    call: Any = error  # at run time a grpc.Call or an AioRpcError, beyond its declared type
    code: grpc.StatusCode = call.code()
    details = " ".join((call.details() or "").split())
    cause = details.rpartition("last error: ")[2]
    reason = str(_REASON_OF_CODE.get(code, code.name))
    if code is grpc.StatusCode.CANCELLED:
        # gRPC's server cancels calls that reach it between the end of its drain and the end of
        # its port.
        code, reason = grpc.StatusCode.UNAVAILABLE, str(Reason.DRAINING)
        message = f"{target} stopped before it took the call; try again"
    elif code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
        reason, message = str(Reason.MESSAGE_TOO_LARGE), f"{target}: {details}; send less at once"
    elif code is grpc.StatusCode.INTERNAL and "RST_STREAM" in details:
        # A servicer's own defect carries a status. So does a proxy end a call that was under way
        # at a replica that died.
        code, reason = grpc.StatusCode.UNAVAILABLE, str(Reason.UNREACHABLE)
        message = f"the server behind {target} ended in the middle of the call; try again"
    elif code is grpc.StatusCode.UNAVAILABLE and (failure := _connection_failure(details)):
        message = f"{target} {failure}"
    elif code is grpc.StatusCode.UNAVAILABLE:
        cause = cause.rpartition(": ")[2].strip("[]")
        message = (
            f"no{_NAMES[service].removeprefix('a')} answers at {target} ({cause}); "
            f"start one with `assay serve {service}`, or correct the address"
        )
    elif code is grpc.StatusCode.UNIMPLEMENTED:
        message = f"{target} does not serve this call ({cause}); is it {_NAMES[service]} of Assay?"
    elif code is grpc.StatusCode.DEADLINE_EXCEEDED:
        message = f"{target} did not answer in time; allow more time or send less"
    else:
        message = f"the call to {target} failed: {cause or code.name} (request id {request_id})"
    metadata = {"request_id": request_id}
    if _NO_CONNECTION in details:
        metadata["sent"] = "no"
    return call_error(make_status(reason, message, code=code, metadata=metadata))


def call_span(path: str, request_id: str) -> TraceSpan:
    """The span of a call of the method "/package.Service/Method"; no span where traces are off."""
    if not tracing.on():
        return TraceSpan()
    return tracing.calling(path.removeprefix("/"), {"assay.request_id": request_id})


def closed_error() -> CallError:
    """The failure of a call that its own client ended by closing."""
    return ServerError(str(Reason.CANCELLED), "the client was closed while the call was running")
