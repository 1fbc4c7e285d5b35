"""The gRPC services of the runner."""

from __future__ import annotations

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.genrm.runner import Runner
from assay.kit.batch.servicer import service_of
from assay.kit.serving import Service

_JUDGE = judge_pb2.DESCRIPTOR.services_by_name["JudgeService"]
_PROCESS = process_pb2.DESCRIPTOR.services_by_name["ProcessRewardService"]
JUDGE_NAME: str = _JUDGE.full_name
PROCESS_NAME: str = _PROCESS.full_name


def genrm_services(runner: Runner) -> list[Service]:
    """The services to serve, on one port and one runner.

    The first one's self-test starts the runner, the second waits for it; both close with the
    server.
    """
    judge = service_of(
        _JUDGE,
        runner,
        self_test=runner.start,
        close=runner.close,
        collectors=runner.metrics.collectors,
        reloadables=runner.reloadables,
    )
    return [judge, service_of(_PROCESS, runner, self_test=runner.started)]
