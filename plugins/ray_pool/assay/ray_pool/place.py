"""What `--pool ray` finds; loading it does not load Ray."""

from __future__ import annotations

from assay.kit.pool.link import Workers
from assay.kit.pool.places import Placement, WorkerPlace
from assay.ray_pool import cluster
from assay.ray_pool.workers import RayWorkers


class RayPlace:
    """A Ray cluster as a place for workers."""

    def check(self, address: str) -> None:
        """Checks --ray-address.

        Raises:
            ConfigError: it is neither "auto" nor a head's address.
        """
        cluster.check_address(address)

    async def join(self, address: str) -> None:
        """Joins the cluster.

        Raises:
            ConfigError: Ray is not installed.
            StartupError: no cluster answers.
        """
        await cluster.connect(address)

    def workers(self, placement: Placement) -> Workers:
        """Workers that Ray places."""
        return RayWorkers(placement)


PLACE: WorkerPlace = RayPlace()
