"""The methods of a gRPC service as a table: the contract's names to coroutines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from operator import attrgetter
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from prometheus_client.registry import Collector

from assay.kit.calls import add_faults, add_log_fields, snake_case
from assay.kit.deadlines import remaining_s
from assay.kit.serving import Service
from assay.kit.watching import Reloadable

_ITEMS = ("items", "jobs")  # what the contract calls the items of a request
_Context = grpc.aio.ServicerContext[Any, Any]
Metadata = Mapping[str, str | bytes]


def service_of(
    descriptor: ServiceDescriptor,
    methods: object,
    *,
    self_test: Callable[[], Awaitable[None]],
    close: Callable[[], Awaitable[None]] | None = None,
    collectors: Sequence[Collector] = (),
    reloadables: Sequence[Reloadable] = (),
    linger: Callable[[], Awaitable[None]] | None = None,
    check: Callable[[Metadata], None] | None = None,
) -> Service:
    """A service to serve, answered by the methods of an object.

    `BatchScore` is answered by `batch_score(request, *, timeout_s)`, a coroutine; a stream of
    responses by an asynchronous generator of that signature, whose first argument is the request,
    or the stream of them. All may raise `CallError`, and so may `check`, which is given the
    metadata of each call before it. This function logs the items and faults of a call.

    Raises:
        AttributeError: a method of the contract is not answered.
    """
    handlers = {
        method.name: _handler(method, getattr(methods, snake_case(method.name)), check)
        for method in descriptor.methods
    }
    name: str = descriptor.full_name

    def add(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
        server.add_registered_method_handlers(name, handlers)

    return Service(name, add, self_test, close, collectors, reloadables, linger)


def _handler(
    method: MethodDescriptor,
    answer: Callable[..., Any],
    check: Callable[[Metadata], None] | None,
) -> Any:
    read = message_factory.GetMessageClass(method.input_type).FromString
    write = message_factory.GetMessageClass(method.output_type).SerializeToString
    fields = [name for name in _ITEMS if name in method.input_type.fields_by_name]
    items_of = attrgetter(fields[0]) if fields else None
    has_results = "results" in method.output_type.fields_by_name

    def let_in(context: _Context) -> None:
        if check is not None:
            check(dict(context.invocation_metadata() or ()))

    async def call(request: Any, context: _Context) -> Any:
        let_in(context)
        if items_of is not None:
            add_log_fields(items=len(items_of(request)))
        response = await answer(request, timeout_s=remaining_s(context))
        if items_of is not None:
            add_faults(response.results)
        return response

    async def stream(requests: Any, context: _Context) -> Any:
        let_in(context)
        items = 0
        # Closed with the call, so that a caller who goes away ends what is done for it.
        async with aclosing(answer(requests, timeout_s=remaining_s(context))) as responses:
            async for response in responses:
                if has_results:
                    items += len(response.results)
                    add_log_fields(items=items)
                    add_faults(response.results)
                yield response

    if method.client_streaming and method.server_streaming:
        return grpc.stream_stream_rpc_method_handler(stream, read, write)
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(stream, read, write)
    return grpc.unary_unary_rpc_method_handler(call, read, write)
