"""The gRPC services of the sandbox."""

from __future__ import annotations

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.kit.batch.servicer import service_of
from assay.kit.serving import Service
from assay.sandbox.runner import ProgramRunner
from assay.sandbox.sessions.service import Sessions

_EXECUTION = execution_pb2.DESCRIPTOR.services_by_name["ExecutionService"]
_SESSION = session_pb2.DESCRIPTOR.services_by_name["SessionService"]
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


def session_service(sessions: Sessions) -> Service:
    """The service to serve, also where no session can be had: its calls say why."""
    return service_of(
        _SESSION,
        sessions,
        self_test=sessions.start,
        close=sessions.stop,
        collectors=sessions.metrics.collectors,
        linger=sessions.linger,
        check=sessions.check,
    )
