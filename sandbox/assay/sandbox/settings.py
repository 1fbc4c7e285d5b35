"""What a supervisor is told at its start, as data: the server writes it, the process reads it."""

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
        backend: its name.
        level: how programs are isolated, as the back end found.
        image: the container image; empty for the back end's default.
        toolchains: what was found on this machine, as `Toolchains.to_json` writes it.
        cache_dir: folder of compiled programs; empty for none.
        cache_bytes: bytes that it may hold.
        max_limits: the greatest limits that a job may ask for.
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
