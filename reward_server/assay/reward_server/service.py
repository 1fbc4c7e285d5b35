"""The gRPC rim: takes the deadline from the call and hands everything else to the scorer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.reward_server.scorer import RewardScorer
from assay.rpc.calls import add_faults, add_log_fields
from assay.rpc.deadlines import remaining_s
from assay.rpc.serving import Service

SERVICE_NAME: str = reward_pb2.DESCRIPTOR.services_by_name["RewardService"].full_name


class RewardServicer(reward_pb2_grpc.RewardServiceServicer):
    """Serves assay.api.reward.v1.RewardService.

    Args:
        scorer: does the work.
    """

    def __init__(self, scorer: RewardScorer) -> None:
        self._scorer = scorer

    async def BatchScore(  # noqa: N802 - gRPC's name
        self,
        request: reward_pb2.BatchScoreRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> reward_pb2.BatchScoreResponse:
        """Scores a batch."""
        add_log_fields(items=len(request.items))
        response = await self._scorer.batch_score(request, timeout_s=remaining_s(context))
        add_faults(response.results)
        return response

    async def StreamScore(  # noqa: N802 - gRPC's name
        self,
        request_iterator: AsyncIterator[reward_pb2.StreamScoreRequest],
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        """Scores a stream."""
        results = self._scorer.stream_score(request_iterator, timeout_s=remaining_s(context))
        items = 0
        async for response in results:
            items += len(response.results)
            add_log_fields(items=items)
            add_faults(response.results)
            yield response

    async def ListVerifiers(  # noqa: N802 - gRPC's name
        self,
        request: reward_pb2.ListVerifiersRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> reward_pb2.ListVerifiersResponse:
        """Says what is served."""
        return await self._scorer.list_verifiers(request, timeout_s=remaining_s(context))


def reward_service(scorer: RewardScorer) -> Service:
    """The service to serve. The scorer is started by its self-test and closed with the server."""
    servicer = RewardServicer(scorer)
    return Service(
        name=SERVICE_NAME,
        add_to_server=lambda server: reward_pb2_grpc.add_RewardServiceServicer_to_server(
            servicer, server
        ),
        self_test=scorer.start,
        close=scorer.close,
        collectors=scorer.counts.collectors,
    )
