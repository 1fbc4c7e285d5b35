"""Where the workers of the reward server are: on this machine, or on those of another place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from assay.kit.pool.forked import ForkedWorkers
from assay.kit.pool.link import LinkLimits, Workers
from assay.kit.pool.places import LOCAL, Ask, Placement, find_place
from assay.kit.pool.worker import WorkerLimits
from assay.reward_server.config import ScorerConfig
from assay.reward_server.files import FileSource
from assay.reward_server.workers import wire

_HERE = "assay.reward_server.workers"
_LINK = LinkLimits(start_s=30.0, answer_bytes=wire.MAX_DONE_BYTES)


def place(config: ScorerConfig, files: Iterable[FileSource] = ()) -> Workers:
    """Where a scorer's workers are; they import these files."""
    work = {"preload": config.preload, "files": [source.to_json() for source in files]}
    settings = json.dumps(
        {
            "memory_bytes": config.worker_memory_mb * 2**20,
            "jobs": config.worker_items,
            "growth_bytes": config.worker_growth_mb * 2**20,
            "work": json.dumps(work),
        }
    )
    if config.pool == LOCAL:
        return _local(settings)
    distribution, node = "assay-rl-reward-server", f"{_HERE}.place:open_node"
    placement = Placement(config.ray_address, distribution, "a worker", node, settings)
    return find_place(config.pool).workers(placement)


async def open_node(settings: str) -> ScoringNode:
    """A node of a cluster, for a host on it."""
    return ScoringNode(_local(settings))


class ScoringNode:
    """A fork server for one worker on a node; any node with our version will do."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

    async def about(self, ask: Ask) -> Mapping[str, Any]:
        """Nothing to report."""
        del ask
        return {}


def _local(settings: str) -> ForkedWorkers:
    told = json.loads(settings)
    work = told.pop("work")
    return ForkedWorkers(f"{_HERE}.work:prepare", work, WorkerLimits(**told), _LINK)
