"""The gRPC rim: takes the deadline from the call and hands everything else to the runner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from assay.api.execution.v1 import execution_pb2, execution_pb2_grpc
from assay.rpc.calls import add_faults, add_log_fields
from assay.rpc.deadlines import remaining_s
from assay.rpc.serving import Service
from assay.sandbox.runner import Runner

SERVICE_NAME: str = execution_pb2.DESCRIPTOR.services_by_name["ExecutionService"].full_name
Context = grpc.aio.ServicerContext[Any, Any]


class ExecutionServicer(execution_pb2_grpc.ExecutionServiceServicer):
    """Serves assay.api.execution.v1.ExecutionService.

    Args:
        runner: does the work.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def Execute(  # noqa: N802 - gRPC's name
        self, request: execution_pb2.ExecuteRequest, context: Context
    ) -> execution_pb2.ExecuteResponse:
        """Runs programs."""
        add_log_fields(items=len(request.jobs))
        response = await self._runner.execute(request, timeout_s=remaining_s(context))
        add_faults(response.results)
        return response

    async def RunTests(  # noqa: N802 - gRPC's name
        self, request: execution_pb2.RunTestsRequest, context: Context
    ) -> execution_pb2.RunTestsResponse:
        """Holds programs against tests."""
        add_log_fields(items=len(request.jobs))
        response = await self._runner.run_tests(request, timeout_s=remaining_s(context))
        add_faults(response.results)
        return response

    async def StreamRunTests(  # noqa: N802 - gRPC's name
        self,
        request_iterator: AsyncIterator[execution_pb2.StreamRunTestsRequest],
        context: Context,
    ) -> AsyncIterator[execution_pb2.StreamRunTestsResponse]:
        """Holds a stream of programs against tests."""
        results = self._runner.stream_run_tests(request_iterator, timeout_s=remaining_s(context))
        items = 0
        async for response in results:
            items += len(response.results)
            add_log_fields(items=items)
            add_faults(response.results)
            yield response

    async def ListLanguages(  # noqa: N802 - gRPC's name
        self, request: execution_pb2.ListLanguagesRequest, context: Context
    ) -> execution_pb2.ListLanguagesResponse:
        """Says what is run here."""
        return await self._runner.list_languages(request, timeout_s=remaining_s(context))


def execution_service(runner: Runner) -> Service:
    """The service to serve. The runner is started by its self-test and closed with the server."""
    servicer = ExecutionServicer(runner)
    return Service(
        name=SERVICE_NAME,
        add_to_server=lambda server: execution_pb2_grpc.add_ExecutionServiceServicer_to_server(
            servicer, server
        ),
        self_test=runner.start,
        close=runner.close,
        collectors=runner.metrics.collectors,
    )
