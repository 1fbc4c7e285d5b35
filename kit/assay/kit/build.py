"""Which build of a service runs: for the metric that every service has."""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution

from prometheus_client import Gauge
from prometheus_client.registry import Collector

REVISION = "ASSAY_REVISION"
"""The variable in which an image says of what commit it is."""

_SANE = re.compile(r"[0-9A-Za-z.+-]{1,64}")


@dataclass(frozen=True, slots=True)
class Build:
    """A service as it was built.

    Attributes:
        service: as its metrics' job is called, "reward_server".
        package: its distribution, "assay-rl-reward-server".
    """

    service: str
    package: str

    @property
    def version(self) -> str:
        """Of the distribution; empty where it is not installed."""
        try:
            return distribution(self.package).version
        except PackageNotFoundError:
            return ""

    @property
    def revision(self) -> str:
        """The commit, by the image or by what pip noted (PEP 610); empty where nobody knows."""
        found = os.environ.get(REVISION, "")
        if not found:
            try:
                origin = json.loads(distribution(self.package).read_text("direct_url.json") or "{}")
                found = str(origin.get("vcs_info", {}).get("commit_id", ""))
            except (PackageNotFoundError, ValueError, AttributeError):
                found = ""
        return found if _SANE.fullmatch(found) else ""

    @property
    def collectors(self) -> list[Collector]:
        """To be registered."""
        info = Gauge(
            "assay_build_info",
            "1, with the versions of service and Python, and the commit if the build knows it",
            ("service", "version", "python", "revision"),
            registry=None,
        )
        info.labels(self.service, self.version, platform.python_version(), self.revision).set(1)
        return [info]
