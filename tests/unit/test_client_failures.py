"""What a broken call means to the client that made it."""

from __future__ import annotations

import grpc
import pytest

from assay.clients.core.failures import error_of_call
from assay.clients.core.retry import is_retryable
from assay.kit.errors import (
    STATUS_DETAILS_KEY,
    CallError,
    DeadlineError,
    OverloadedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
    make_status,
)
from assay.kit.reasons import Reason

RESET = "Stream removed (RST_STREAM error code 2 INTERNAL_ERROR)"


def failed(code: grpc.StatusCode, details: str, status: bytes = b"") -> CallError:
    trailing = grpc.aio.Metadata(*([(STATUS_DETAILS_KEY, status)] if status else []))
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details)
    return error_of_call(error, "10.0.0.1:50051", "r1")


@pytest.mark.parametrize("details", [RESET, "Received RST_STREAM with error code 2"])
def test_a_call_that_a_proxy_ended_with_its_replica_is_tried_again(details: str) -> None:
    error = failed(grpc.StatusCode.INTERNAL, details)
    assert (error.reason, error.code) == ("UNREACHABLE", grpc.StatusCode.UNAVAILABLE)
    assert is_retryable(error)


def test_a_defect_of_the_server_is_not() -> None:
    said = make_status(Reason.INTERNAL, f"a defect, with {RESET} in its text")
    for error in (
        failed(grpc.StatusCode.INTERNAL, "Exception deserializing response!"),
        failed(grpc.StatusCode.INTERNAL, RESET, said.SerializeToString()),
    ):
        assert error.reason == "INTERNAL"
        assert not is_retryable(error)


def test_another_service_at_the_address_is_said() -> None:
    told = make_status(Reason.UNKNOWN_METHOD, "this server has no method /x/Y")
    error = failed(grpc.StatusCode.UNIMPLEMENTED, "", told.SerializeToString())
    assert error.reason == "UNKNOWN_METHOD"
    assert "10.0.0.1:50051 is no reward server: this server has no method /x/Y" in str(error)


def test_the_cause_of_a_refused_connection_is_said_without_grpcs_brackets() -> None:
    details = "failed to connect to all addresses; last error: UNKNOWN: [Domain name not found]"
    assert "(Domain name not found);" in str(failed(grpc.StatusCode.UNAVAILABLE, details))


def test_a_token_that_is_missing_is_asked_for_in_the_words_of_the_client() -> None:
    told = make_status(Reason.UNAUTHENTICATED, "the bearer token is missing or unknown")
    error = failed(grpc.StatusCode.UNAUTHENTICATED, "", told.SerializeToString())
    assert error.reason == "UNAUTHENTICATED"
    assert "unknown at 10.0.0.1:50051; give the operator's token (token=," in str(error)


@pytest.mark.parametrize(
    ("code", "details", "kind", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, "refused", UnavailableError, Reason.UNREACHABLE),
        (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "SERVER: Received message larger than max (5 vs. 4)",
            OverloadedError,
            Reason.MESSAGE_TOO_LARGE,
        ),
        (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "too many requests",
            OverloadedError,
            Reason.QUEUE_FULL,
        ),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "", DeadlineError, Reason.DEADLINE_EXCEEDED),
        (grpc.StatusCode.UNAUTHENTICATED, "", UnauthenticatedError, Reason.UNAUTHENTICATED),
        (grpc.StatusCode.DATA_LOSS, "gone", ServerError, "DATA_LOSS"),
    ],
)
def test_what_grpc_finds_by_itself_gets_a_reason(
    code: grpc.StatusCode, details: str, kind: type[Exception], reason: str
) -> None:
    error = failed(code, details)
    assert type(error) is kind
    assert (error.code, error.reason) == (code, reason)
    assert str(error)


def test_the_status_in_trailing_metadata_wins() -> None:
    status = make_status(Reason.QUEUE_FULL, "full", retry_after_s=0.5, metadata={"a": "b"})
    error = failed(grpc.StatusCode.RESOURCE_EXHAUSTED, "?", status.SerializeToString())
    assert (error.reason, error.retry_after_s, error.metadata) == ("QUEUE_FULL", 0.5, {"a": "b"})
    for junk in (b"\xff\xff", make_status(Reason.DRAINING, "other code").SerializeToString()):
        assert failed(grpc.StatusCode.DATA_LOSS, "?", junk).reason == "DATA_LOSS"
