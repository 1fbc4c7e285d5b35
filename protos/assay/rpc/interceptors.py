"""The rim of every server: one interceptor through which each call of each kind passes.

In this order: request id, bearer token, gate (starting, draining, full), deadline, the handler,
status mapping, one line in the log. A handler raises `refuse(...)`, or any CallError, to end the
call with that status; anything else that it raises is a defect, which the caller sees as INTERNAL
with the request id and without the exception's text. `asyncio.CancelledError` reaches the handler
when the caller cancels, the deadline passes or the drain runs out.

Not here: limits on the size of incoming messages, which gRPC enforces before any interceptor runs.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias, TypeVar, cast

import grpc
from google.protobuf.message import DecodeError

from assay.rpc.calls import (
    AUTHORIZATION_KEY,
    METADATA_KEY,
    accept_request_id,
    bearer,
    begin_call,
)
from assay.rpc.deadlines import remaining_s
from assay.rpc.errors import STATUS_DETAILS_KEY, CallError, refuse, wire_status
from assay.rpc.gate import Call, Gate
from assay.rpc.limits import MAX_MESSAGE_BYTES
from assay.rpc.logs import call_ended
from assay.rpc.reasons import Reason

HEALTH_PREFIX = "/grpc.health."
REFLECTION_PREFIX = "/grpc.reflection."

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class CallRim(grpc.aio.ServerInterceptor):
    """The interceptor.

    Args:
        gate: admits calls and knows the running ones.
        token: what callers must send as "authorization: Bearer TOKEN"; None lets everybody in.
            Health is exempt.
    """

    def __init__(self, gate: Gate, token: str | None = None) -> None:
        self._gate = gate
        self._expected = None if token is None else bearer(token).encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Wraps the method's handler; a call refused at once gets one that reads nothing."""
        method = handler_call_details.method
        metadata = _as_dict(handler_call_details.invocation_metadata)
        call = Call(
            method=method,
            request_id=accept_request_id(metadata.get(METADATA_KEY)),
            always_open=method.startswith((HEALTH_PREFIX, REFLECTION_PREFIX)),
        )
        if not self._is_authorised(method, metadata.get(AUTHORIZATION_KEY)):
            return self._refusal(
                call, refuse(Reason.UNAUTHENTICATED, "the bearer token is missing or unknown")
            )
        handler = cast("_Handler | None", await continuation(handler_call_details))
        if handler is None:
            return self._refusal(
                call, refuse(Reason.UNKNOWN_METHOD, f"this server has no method {method}")
            )
        return self._wrap(call, handler)

    def _is_authorised(self, method: str, offered: str | bytes | None) -> bool:
        if self._expected is None or method.startswith(HEALTH_PREFIX):
            return True
        given = offered.encode() if isinstance(offered, str) else offered or b""
        return hmac.compare_digest(given, self._expected)

    def _refusal(self, call: Call, error: CallError) -> _Handler:
        async def refuse_call(_requests: object, context: _Context) -> None:
            async def body() -> None:
                raise error

            call.always_open = True
            await self._run(call, context, body)

        return grpc.stream_stream_rpc_method_handler(cast("Any", refuse_call))

    def _wrap(self, call: Call, handler: _Handler) -> _Handler:
        """The same kind of handler, run inside the rim."""
        inner = cast("Callable[[Any, _Context], Any]", _function_of(handler))
        read = _reader(handler.request_deserializer)
        write = _writer(handler.response_serializer)

        async def answer_once(request: Any, context: _Context) -> bytes:
            async def body() -> bytes:
                result = inner(request if handler.request_streaming else read(request), context)
                message = await result if isinstance(result, Awaitable) else result
                return b"" if _has_failed(context) else write(message)

            return await self._run(call, context, body)

        async def answer_many(request: Any, context: _Context) -> None:
            async def body() -> None:
                messages = inner(request if handler.request_streaming else read(request), context)
                if hasattr(messages, "__aiter__"):
                    await _send_all(messages, context)
                else:
                    await messages

            await self._run(call, context, body)

        if handler.request_streaming and handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(cast("Any", answer_many), read, write)
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(cast("Any", answer_once), read, None)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(cast("Any", answer_many), None, write)
        return grpc.unary_unary_rpc_method_handler(cast("Any", answer_once), None, None)

    async def _run(self, call: Call, context: _Context, body: Callable[[], Awaitable[_T]]) -> _T:
        """Runs one call from the gate to its status."""
        started = time.perf_counter()
        call.fields = begin_call(call.request_id)
        try:
            self._gate.enter(call, context)
            if not call.always_open and math.isinf(remaining_s(context)):
                raise refuse(Reason.DEADLINE_REQUIRED, "the call has no deadline: set a time-out")
            result = await body()
        except asyncio.CancelledError:
            error = self._cancelled(call, context, started)
        except CallError as refused:
            error = refused
        except (grpc.aio.AbortError, grpc.aio.InternalError) as ended:
            # The handler ended the call by itself, or the connection is gone: gRPC deals with both.
            code = _code_name(context) if isinstance(ended, grpc.aio.AbortError) else "CANCELLED"
            _log_end(call, context, started, code, "")
            raise
        except Exception as defect:  # noqa: BLE001  # the border: nothing leaves it unmapped
            error = _defect(call, context, defect)
        else:
            trailers = context.trailing_metadata() or ()
            context.set_trailing_metadata((*trailers, (METADATA_KEY, call.request_id)))
            _log_end(call, context, started, _code_name(context), "")
            return result
        finally:
            call.task = None  # from here on the answer is on its way: no eviction breaks it off
        _log_end(call, context, started, error.code.name, error.reason)
        status = wire_status(error)
        trailing: tuple[tuple[str, str | bytes], ...] = (
            (STATUS_DETAILS_KEY, status.SerializeToString()),
            (METADATA_KEY, call.request_id),
        )
        return await context.abort(error.code, status.message, trailing)

    def _cancelled(self, call: Call, context: _Context, started: float) -> CallError:
        """What a cancellation means: our eviction, a defect, or the caller's wish (re-raised)."""
        task = asyncio.current_task()
        cancellations = task.cancelling() if task else 0
        if call.evicted and task is not None and task.uncancel() == 0:
            return refuse(Reason.DRAINING, "the server is shutting down and could not wait longer")
        if cancellations == 0:
            # Some inner task of the handler was cancelled; nobody cancelled the call.
            return _defect(call, context, RuntimeError("a task of the handler was cancelled"))
        late = remaining_s(context) <= 0
        reason = Reason.DEADLINE_EXCEEDED if late else Reason.CANCELLED
        _log_end(call, context, started, reason, reason)
        raise  # noqa: PLE0704  # called from the except clause that holds the CancelledError


async def _send_all(messages: Any, context: _Context) -> None:
    """Writes what a streaming handler yields, and closes it at once when the call ends early."""
    if hasattr(messages, "aclose"):
        async with aclosing(messages):
            async for message in messages:
                await context.write(message)
    else:
        async for message in messages:
            await context.write(message)


def _defect(call: Call, context: _Context, defect: Exception) -> CallError:
    """Logs an exception that no service should let out; gives what the caller may know of it."""
    if context.code() is grpc.StatusCode.UNIMPLEMENTED:
        return refuse(Reason.UNKNOWN_METHOD, f"this server does not implement {call.method}")
    _log.error("defect in %s", call.method, exc_info=defect)
    return refuse(
        Reason.INTERNAL,
        f"the server failed ({type(defect).__name__}); its log says more under "
        f"request id {call.request_id}",
        request_id=call.request_id,
    )


def _log_end(call: Call, context: _Context, started: float, code: str, reason: str) -> None:
    call_ended(
        method=call.method,
        code=code,
        reason=str(reason),
        duration_ms=(time.perf_counter() - started) * 1000,
        peer_kind=context.peer().partition(":")[0],
        fields=call.fields,
        quiet=call.method.startswith(HEALTH_PREFIX),
    )


def _as_dict(metadata: Any) -> Mapping[str, str | bytes]:
    return dict(metadata or ())


def _function_of(handler: _Handler) -> object:
    return (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )


def _has_failed(context: _Context) -> bool:
    """The handler set a code other than OK: gRPC then sends no message."""
    return _code_name(context) != "OK"


def _code_name(context: _Context) -> str:
    """The name of the code that the handler set; OK if it set none."""
    code: object = context.code()
    if not code:
        return "OK"
    return code.name if isinstance(code, grpc.StatusCode) else str(code)


def _reader(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    def read(raw: bytes) -> Any:
        try:
            return deserialize(raw) if deserialize else raw
        except DecodeError as error:
            raise refuse(
                Reason.MALFORMED_REQUEST, "the request is not a message of this method"
            ) from error

    return read


def _writer(serialize: Callable[[Any], bytes] | None) -> Callable[[Any], bytes]:
    def write(message: Any) -> bytes:
        raw: bytes = serialize(message) if serialize else message
        if len(raw) > MAX_MESSAGE_BYTES:
            raise refuse(
                Reason.MESSAGE_TOO_LARGE,
                f"the answer has {len(raw)} bytes, and a message may have {MAX_MESSAGE_BYTES}: "
                "ask for less at a time",
            )
        return raw

    return write
