"""What the host of sessions is told when it starts, and the limits of a session: plain values."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field

from assay.api.session.v1 import session_pb2
from assay.kit.durations import fill_duration, seconds_of
from assay.sandbox.domain import MIB, PYTHON_PACKAGES

LANGUAGES = ("bash", "python")


@dataclass(frozen=True, slots=True)
class Allowance:
    """`SessionLimits` in seconds and bytes. The values here are the usual ones."""

    cpu_s: float = 600.0
    cell_cpu_s: float = 20.0
    cell_wall_s: float = 120.0
    memory_bytes: int = 1024 * MIB
    disk_bytes: int = 64 * MIB
    processes: int = 64
    output_bytes: int = MIB
    max_output_bytes: int = 64 * MIB
    checkpoints: int = 8

    def capped(self, most: Allowance) -> Allowance:
        """Each at most that of `most`."""
        names = [one.name for one in dataclasses.fields(self)]
        return Allowance(**{name: min(getattr(self, name), getattr(most, name)) for name in names})

    def lowered(self, *, wall_s: float, cpu_s: float) -> Allowance:
        """With lower limits for one cell; 0 for none."""
        return dataclasses.replace(
            self,
            cell_wall_s=min(self.cell_wall_s, wall_s or math.inf),
            cell_cpu_s=min(self.cell_cpu_s, cpu_s or math.inf),
        )

    @staticmethod
    def from_proto(message: session_pb2.SessionLimits) -> Allowance:
        """Those of a message in which every field is set."""
        return Allowance(
            cpu_s=seconds_of(message.cpu_time),
            cell_cpu_s=seconds_of(message.cell_cpu_time),
            cell_wall_s=seconds_of(message.cell_wall_time),
            memory_bytes=message.memory_bytes,
            disk_bytes=message.disk_bytes,
            processes=message.processes,
            output_bytes=message.output_bytes,
            max_output_bytes=message.max_output_bytes,
            checkpoints=message.checkpoints,
        )

    def to_proto(self) -> session_pb2.SessionLimits:
        """Every field set."""
        message = session_pb2.SessionLimits(
            memory_bytes=self.memory_bytes,
            disk_bytes=self.disk_bytes,
            processes=self.processes,
            output_bytes=self.output_bytes,
            max_output_bytes=self.max_output_bytes,
            checkpoints=self.checkpoints,
        )
        fill_duration(message.cpu_time, self.cpu_s)
        fill_duration(message.cell_cpu_time, self.cell_cpu_s)
        fill_duration(message.cell_wall_time, self.cell_wall_s)
        return message


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How the host keeps sessions.

    Attributes:
        slot: its number beside those of the supervisors, for user ids and names of groups.
        level: the isolation that was found on this machine.
        read_only_paths: toolchains' folders, which programs see at the same place.
        python_packages: distributions beside the service that programs may import.
        families: sessions that may be open at once, forks included.
        spares: sessions of the default limits that wait ready to be taken.
        default_limits: in force where a caller states none; of spares.
        max_limits: the greatest that a caller may ask for.
    """

    slot: int
    level: str
    read_only_paths: tuple[str, ...] = ()
    python_packages: tuple[str, ...] = PYTHON_PACKAGES
    families: int = 64
    spares: int = 2
    default_limits: Allowance = field(default_factory=Allowance)
    max_limits: Allowance = field(default_factory=Allowance)

    def to_json(self) -> str:
        """As text."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> HostSettings:
        """Reads what `to_json` wrote."""
        data = json.loads(text)
        return HostSettings(
            **{
                **data,
                "read_only_paths": tuple(data["read_only_paths"]),
                "python_packages": tuple(data["python_packages"]),
                "default_limits": Allowance(**data["default_limits"]),
                "max_limits": Allowance(**data["max_limits"]),
            }
        )
