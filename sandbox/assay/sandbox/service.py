"""The gRPC service of the runner."""

from __future__ import annotations

from assay.api.execution.v1 import execution_pb2
from assay.kit.batch.servicer import service_of
from assay.kit.serving import Service
from assay.sandbox.runner import ProgramRunner

_EXECUTION = execution_pb2.DESCRIPTOR.services_by_name["ExecutionService"]
SERVICE_NAME: str = _EXECUTION.full_name


def execution_service(runner: ProgramRunner) -> Service:
    """The service to serve. Its self-test starts the runner; its close closes it."""
    return service_of(
        _EXECUTION,
        runner,
        self_test=runner.start,
        close=runner.close,
        collectors=runner.metrics.collectors,
    )
