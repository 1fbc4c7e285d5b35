"""The interceptor that every call of a server passes.

In this order: request id, bearer token, span, gate (starting, draining, full), deadline, the
tenant's quota, the handler, status mapping, one line in the log. A handler raises `refuse(...)`, or
any CallError, to end the call with that status; any other exception is a defect, which the caller
sees as INTERNAL with the request id and without the exception's text. `asyncio.CancelledError`
reaches the handler when the caller cancels, the deadline passes or the drain runs out.

gRPC itself limits the size of incoming messages before any interceptor runs.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, closing, nullcontext
from typing import Any, TypeAlias, TypeVar, cast

import grpc
from google.protobuf.message import DecodeError

from assay.kit import tracing
from assay.kit.access import certified_tenant
from assay.kit.calls import (
    AUTHORIZATION_KEY,
    BY_CERTIFICATE,
    METADATA_KEY,
    accept_request_id,
    begin_call,
)
from assay.kit.deadlines import remaining_s
from assay.kit.errors import STATUS_DETAILS_KEY, CallError, outstayed, refuse, wire_status
from assay.kit.gate import CallGate, ServerCall
from assay.kit.limits import MAX_MESSAGE_BYTES
from assay.kit.logs import call_ended
from assay.kit.quotas import Meter, Quotas
from assay.kit.reasons import Reason
from assay.kit.spans import TraceSpan
from assay.kit.tokens import Doorman

HEALTH_PREFIX = "/grpc.health."
REFLECTION_PREFIX = "/grpc.reflection."

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class CallInterceptor(grpc.aio.ServerInterceptor):
    """The interceptor.

    Args:
        gate: admits calls and knows the running ones.
        doorman: checks "authorization: Bearer TOKEN". Health is exempt.
        quotas: of each tenant.
        ended: called for every ended call but those of health: method (empty for an unknown one, or
            a refused caller), code, reason, seconds, the tenant's label.
        certified: callers have shown a certificate, which names the tenant of one without a token.
    """

    def __init__(
        self,
        gate: CallGate,
        doorman: Doorman,
        quotas: Quotas,
        ended: Callable[[str, str, str, float, str], None] = lambda *_: None,
        certified: bool = False,
    ) -> None:
        self._gate = gate
        self._doorman = doorman
        self._quotas = quotas
        self._ended = ended
        self._certified = certified

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Wraps the method's handler; a refused call gets one that reads nothing."""
        method = handler_call_details.method
        metadata = _as_dict(handler_call_details.invocation_metadata)
        call = ServerCall(
            method=method,
            request_id=accept_request_id(metadata.get(METADATA_KEY)),
            always_open=method.startswith((HEALTH_PREFIX, REFLECTION_PREFIX)),
        )
        offered = metadata.get(AUTHORIZATION_KEY)
        tenant = self._tenant_of(method, offered)
        if tenant is None:
            return self._refusal(
                call, refuse(Reason.UNAUTHENTICATED, "the bearer token is missing or unknown")
            )
        call.tenant = call.label = tenant
        handler = cast("_Handler | None", await continuation(handler_call_details))
        if handler is None:
            return self._refusal(
                call, refuse(Reason.UNKNOWN_METHOD, f"this server has no method {method}")
            )
        call.known = True
        if tracing.on() and not call.always_open:
            call.headers = metadata
        return self._wrap(call, handler, offered)

    def _tenant_of(self, method: str, offered: str | bytes | None) -> str | None:
        return "" if method.startswith(HEALTH_PREFIX) else self._doorman.tenant_of(offered)

    def _refusal(self, call: ServerCall, error: CallError) -> _Handler:
        async def refuse_call(_requests: object, context: _Context) -> None:
            async def body() -> None:
                raise error

            call.always_open = True
            await self._run(call, context, body)

        return grpc.stream_stream_rpc_method_handler(cast("Any", refuse_call))

    async def _while_known(
        self, requests: AsyncIterator[_T], method: str, offered: str | bytes | None
    ) -> AsyncIterator[_T]:
        """The requests of a stream, while its token is valid; UnauthenticatedError afterwards."""
        async for request in requests:
            if self._tenant_of(method, offered) is None:
                raise refuse(
                    Reason.UNAUTHENTICATED, "the bearer token was taken away in mid-stream"
                )
            yield request

    def _wrap(self, call: ServerCall, handler: _Handler, offered: str | bytes | None) -> _Handler:
        inner = cast("Callable[[Any, _Context], Any]", _function_of(handler))
        read = _reader(handler.request_deserializer)
        write = _writer(handler.response_serializer)

        def let_in(meter: Meter, request: Any) -> Any:
            if handler.request_streaming:
                return meter.admit_each(self._while_known(request, call.method, offered))
            message = read(request)
            meter.admit(message)
            return message

        async def answer_once(request: Any, context: _Context) -> bytes:
            async def body() -> bytes:
                with closing(Meter(self._quotas, call.tenant)) as meter:
                    result = inner(let_in(meter, request), context)
                    message = await result if isinstance(result, Awaitable) else result
                    return b"" if _has_failed(context) else write(message)

            return await self._run(call, context, body)

        async def answer_many(request: Any, context: _Context) -> None:
            async def body() -> None:
                with closing(Meter(self._quotas, call.tenant)) as meter:
                    messages = inner(let_in(meter, request), context)
                    if hasattr(messages, "__aiter__"):
                        await _send_all(messages, context, meter)
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

    async def _run(
        self, call: ServerCall, context: _Context, body: Callable[[], Awaitable[_T]]
    ) -> _T:
        if call.headers is None:
            return await self._run_in(TraceSpan(), call, context, body)
        with tracing.serving(call.method.removeprefix("/"), call.headers) as span:
            return await self._run_in(span, call, context, body)

    async def _run_in(
        self,
        span: TraceSpan,
        call: ServerCall,
        context: _Context,
        body: Callable[[], Awaitable[_T]],
    ) -> _T:
        started = time.perf_counter()
        if self._certified and not call.tenant:
            call.tenant = certified_tenant(context.auth_context())
            call.label = BY_CERTIFICATE if call.tenant else ""
        call.span = span
        call.fields = begin_call(call.request_id, call.tenant, call.label)
        if trace_id := span.trace_id():
            call.fields["trace_id"] = trace_id
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
            self._log_end(call, context, started, code, "")
            raise
        except Exception as defect:  # noqa: BLE001  # the border: nothing leaves it unmapped
            error = _defect(call, context, defect)
        else:
            trailers = context.trailing_metadata() or ()
            context.set_trailing_metadata((*trailers, (METADATA_KEY, call.request_id)))
            self._log_end(call, context, started, _code_name(context), "")
            return result
        finally:
            call.task = None  # from here on the answer is on its way: no eviction breaks it off
        self._log_end(call, context, started, error.code.name, error.reason)
        status = wire_status(error)
        trailing: tuple[tuple[str, str | bytes], ...] = (
            (STATUS_DETAILS_KEY, status.SerializeToString()),
            (METADATA_KEY, call.request_id),
        )
        return await context.abort(error.code, status.message, trailing)

    def _cancelled(self, call: ServerCall, context: _Context, started: float) -> CallError:
        """The error of a cancellation: our eviction or a defect; a caller's is re-raised."""
        task = asyncio.current_task()
        cancellations = task.cancelling() if task else 0
        if call.evicted and task is not None and task.uncancel() == 0:
            return outstayed()
        if cancellations == 0:
            # Some inner task of the handler was cancelled; nobody cancelled the call.
            return _defect(call, context, RuntimeError("a task of the handler was cancelled"))
        late = remaining_s(context) <= 0
        reason = Reason.DEADLINE_EXCEEDED if late else Reason.CANCELLED
        self._log_end(call, context, started, reason, reason)
        raise  # noqa: PLE0704  # called from the except clause that holds the CancelledError

    def _log_end(
        self, call: ServerCall, context: _Context, started: float, code: str, reason: str
    ) -> None:
        seconds = time.perf_counter() - started
        quiet = call.method.startswith(HEALTH_PREFIX)
        if call.span.recording:
            call.span.note(_facts(call, code))
            if code != "OK":
                call.span.fail(reason or code)
        if not quiet:
            method = call.method if call.known else ""
            self._ended(method, code, str(reason), seconds, call.label)
        call_ended(
            method=call.method,
            code=code,
            reason=str(reason),
            duration_ms=seconds * 1000,
            peer_kind=context.peer().partition(":")[0],
            fields=call.fields,
            quiet=quiet,
        )


async def _send_all(messages: Any, context: _Context, meter: Meter) -> None:
    async with aclosing(messages) if hasattr(messages, "aclose") else nullcontext():
        async for message in messages:
            await context.write(message)
            meter.answered(message)


def _defect(call: ServerCall, context: _Context, defect: Exception) -> CallError:
    """Logs an unexpected exception; returns what the caller may know of it."""
    if context.code() is grpc.StatusCode.UNIMPLEMENTED:
        return refuse(Reason.UNKNOWN_METHOD, f"this server does not implement {call.method}")
    _log.error("defect in %s", call.method, exc_info=defect)
    return refuse(
        Reason.INTERNAL,
        f"the server failed ({type(defect).__name__}); its log says more under "
        f"request id {call.request_id}",
        request_id=call.request_id,
    )


def _facts(call: ServerCall, code: str) -> dict[str, str]:
    facts = {"rpc.response.status_code": code, "assay.request_id": call.request_id}
    return facts | ({"assay.tenant": call.tenant} if call.tenant else {})


def _as_dict(metadata: Any) -> Mapping[str, str | bytes]:
    return dict(metadata or ())


def _function_of(handler: _Handler) -> object:
    return (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )


def _has_failed(context: _Context) -> bool:
    """Whether the handler set a code other than OK: gRPC then sends no message."""
    return _code_name(context) != "OK"


def _code_name(context: _Context) -> str:
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
