"""The gRPC rim: takes the deadline from the call and hands everything else to the runner."""

from __future__ import annotations

from typing import Any

import grpc

from assay.api.judge.v1 import judge_pb2, judge_pb2_grpc
from assay.api.process.v1 import process_pb2, process_pb2_grpc
from assay.genrm.runner import Runner
from assay.rpc.calls import add_faults, add_log_fields
from assay.rpc.deadlines import remaining_s
from assay.rpc.serving import Service

JUDGE_NAME: str = judge_pb2.DESCRIPTOR.services_by_name["JudgeService"].full_name
PROCESS_NAME: str = process_pb2.DESCRIPTOR.services_by_name["ProcessRewardService"].full_name
Context = grpc.aio.ServicerContext[Any, Any]


class JudgeServicer(judge_pb2_grpc.JudgeServiceServicer):
    """Serves assay.api.judge.v1.JudgeService.

    Args:
        runner: does the work.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def JudgeResponses(  # noqa: N802 - gRPC's name
        self, request: judge_pb2.JudgeResponsesRequest, context: Context
    ) -> judge_pb2.JudgeResponsesResponse:
        """Judges responses one by one."""
        add_log_fields(items=len(request.items))
        response = await self._runner.judge_responses(request, timeout_s=remaining_s(context))
        add_faults(response.results)
        return response

    async def JudgePairs(  # noqa: N802 - gRPC's name
        self, request: judge_pb2.JudgePairsRequest, context: Context
    ) -> judge_pb2.JudgePairsResponse:
        """Judges pairs in both orders."""
        add_log_fields(items=len(request.items))
        response = await self._runner.judge_pairs(request, timeout_s=remaining_s(context))
        add_faults(response.results)
        return response

    async def JudgeGroups(  # noqa: N802 - gRPC's name
        self, request: judge_pb2.JudgeGroupsRequest, context: Context
    ) -> judge_pb2.JudgeGroupsResponse:
        """Ranks the samples of groups."""
        add_log_fields(items=len(request.items))
        response = await self._runner.judge_groups(request, timeout_s=remaining_s(context))
        add_faults(response.results)
        return response

    async def ListJudgeModels(  # noqa: N802 - gRPC's name
        self, request: judge_pb2.ListJudgeModelsRequest, context: Context
    ) -> judge_pb2.ListJudgeModelsResponse:
        """Says which judges are served."""
        return await self._runner.list_judge_models(request, timeout_s=remaining_s(context))


class ProcessRewardServicer(process_pb2_grpc.ProcessRewardServiceServicer):
    """Serves assay.api.process.v1.ProcessRewardService.

    Args:
        runner: does the work.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def ScoreSteps(  # noqa: N802 - gRPC's name
        self, request: process_pb2.ScoreStepsRequest, context: Context
    ) -> process_pb2.ScoreStepsResponse:
        """Scores the steps of responses."""
        add_log_fields(items=len(request.items))
        response = await self._runner.score_steps(request, timeout_s=remaining_s(context))
        add_faults(response.results)
        return response

    async def ScoreSelfVerification(  # noqa: N802 - gRPC's name
        self, request: process_pb2.ScoreSelfVerificationRequest, context: Context
    ) -> process_pb2.ScoreSelfVerificationResponse:
        """Scores dialogues of a policy that verifies itself."""
        add_log_fields(items=len(request.items))
        response = await self._runner.score_self_verification(
            request, timeout_s=remaining_s(context)
        )
        add_faults(response.results)
        return response

    async def ListProcessModels(  # noqa: N802 - gRPC's name
        self, request: process_pb2.ListProcessModelsRequest, context: Context
    ) -> process_pb2.ListProcessModelsResponse:
        """Says which process reward models are served."""
        return await self._runner.list_process_models(request, timeout_s=remaining_s(context))


def genrm_services(runner: Runner) -> list[Service]:
    """The services to serve, on one port and one runner.

    The runner is started by the self-test of the first, for which the second waits, and closed with
    the server.
    """
    judge, process = JudgeServicer(runner), ProcessRewardServicer(runner)
    return [
        Service(
            name=JUDGE_NAME,
            add_to_server=lambda server: judge_pb2_grpc.add_JudgeServiceServicer_to_server(
                judge, server
            ),
            self_test=runner.start,
            close=runner.close,
            collectors=runner.metrics.collectors,
        ),
        Service(
            name=PROCESS_NAME,
            add_to_server=lambda server: (
                process_pb2_grpc.add_ProcessRewardServiceServicer_to_server(process, server)
            ),
            self_test=runner.started,
        ),
    ]
