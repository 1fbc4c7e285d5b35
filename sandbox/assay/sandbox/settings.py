"""A supervisor's settings, as data: the server writes them, the supervisor's process reads them."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

from assay.sandbox.domain import PYTHON_PACKAGES, RunLimits


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """How one supervisor runs programs.

    Attributes:
        slot: its number, from 0.
        level: the isolation that the back end found.
        image: the container image; empty for the back end's default.
        toolchains: as `Toolchains.to_json` writes them.
        cache_dir: folder of compiled programs; empty for none.
        cache_bytes: bytes that it may hold.
        max_limits: the greatest that a job may ask for.
        python_packages: distributions beside the service that Python programs may import.
    """

    slot: int
    backend: str
    level: str
    image: str
    toolchains: str
    cache_dir: str
    cache_bytes: int
    max_limits: RunLimits
    python_packages: tuple[str, ...] = PYTHON_PACKAGES

    def to_json(self) -> str:
        """As text."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> SupervisorSettings:
        """Reads what `to_json` wrote."""
        data = json.loads(text)
        return SupervisorSettings(
            **{
                **data,
                "max_limits": RunLimits(**data["max_limits"]),
                "python_packages": tuple(data["python_packages"]),
            }
        )
