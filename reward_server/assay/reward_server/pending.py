"""An item of the reward server from its arrival to its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from assay.api.reward.v1 import reward_pb2
from assay.kit.batch.items import PendingItem
from assay.reward_server.domain import (
    CompositeVerifier,
    RemoteVerifier,
    Verifier,
    VerifierItem,
    VerifierSpec,
)

Road = Literal["inline", "process", "remote", "composite"]
Origin = Literal["caller", "server", "canary"]


@dataclass(frozen=True, slots=True)
class Served:
    """A verifier with what every item needs of it.

    Attributes:
        verifier: the verifier.
        spec: its description.
        road: who does its work: this process, a worker, another service, or its parts.
        shares: equal items may share a judgement.
    """

    verifier: Verifier
    spec: VerifierSpec
    road: Road
    shares: bool

    @classmethod
    def of(cls, verifier: Verifier) -> Served:
        """Works it out for a verifier."""
        spec = verifier.spec
        road: Road = spec.isolation
        if isinstance(verifier, CompositeVerifier):
            road = "composite"
        elif isinstance(verifier, RemoteVerifier):
            road = "remote"
        return cls(verifier, spec, road, spec.deterministic and spec.cacheable)


@dataclass(eq=False, slots=True)
class PendingScore(PendingItem):
    """One item from its arrival to its result.

    Attributes:
        served: the verifier, once known.
        item: the item, once it is known to be sound.
        refused: an unsound item as it came; for the journal.
        labels: the caller's, within their bounds; nothing here judges by them.
        parts: judged parts of a composite, of a canary and where there is a trace to show them.
        alone: a parcel with it was lost, so a worker judges it by itself.
        origin: who sent it: a caller; this server, as an example or a part; or it is a canary or a
            part of one, which is judged anew each time.
    """

    served: Served | None = None
    item: VerifierItem | None = None
    refused: reward_pb2.Item | None = None
    labels: dict[str, str] = field(default_factory=dict)
    parts: Sequence[PendingScore] = ()
    alone: bool = False
    origin: Origin = "server"

    @property
    def spec(self) -> VerifierSpec | None:
        """The description of its verifier; None where none was found."""
        return None if self.served is None else self.served.spec
