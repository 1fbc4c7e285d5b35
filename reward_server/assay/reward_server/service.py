"""The gRPC service of the scorer."""

from __future__ import annotations

from assay.api.reward.v1 import reward_pb2
from assay.kit.batch.servicer import service_of
from assay.kit.serving import Service
from assay.reward_server.renewal import Renewal
from assay.reward_server.scorer import RewardScorer

_REWARD = reward_pb2.DESCRIPTOR.services_by_name["RewardService"]
SERVICE_NAME: str = _REWARD.full_name


def reward_service(scorer: RewardScorer, renewal: Renewal | None = None) -> Service:
    """The service to serve. The scorer is started by its self-test and closed with the server."""
    return service_of(
        _REWARD,
        scorer,
        self_test=scorer.start,
        close=scorer.close,
        collectors=scorer.counts.collectors,
        reloadables=[*scorer.reloadables, *([renewal.reloadable] if renewal else [])],
    )
