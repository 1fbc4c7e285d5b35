"""An item of the reward server on its way to its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Served:
    """A verifier, as every item that it judges needs it.

    Attributes:
        verifier: the verifier.
        spec: what it says of itself.
        road: who does its work: this process, a worker, another service, or its parts.
        shares: equal items may share a judgement.
    """

    verifier: Verifier
    spec: VerifierSpec
    road: Road
    shares: bool

    @classmethod
    def of(cls, verifier: Verifier) -> Served:
        """What a verifier is to its items."""
        spec = verifier.spec
        road: Road = spec.isolation
        if isinstance(verifier, CompositeVerifier):
            road = "composite"
        elif isinstance(verifier, RemoteVerifier):
            road = "remote"
        return cls(verifier, spec, road, spec.deterministic and spec.cacheable)


@dataclass(eq=False, slots=True)
class PendingScore(PendingItem):
    """One item on its way to its result.

    Attributes:
        served: the verifier, once known.
        item: the item, once it is known to be sound.
        refused: the item as it came, where it was not sound; for the journal.
        parts: those of a composite that were judged, where there is a trace to show them.
    """

    served: Served | None = None
    item: VerifierItem | None = None
    refused: reward_pb2.Item | None = None
    parts: Sequence[PendingScore] = ()

    @property
    def spec(self) -> VerifierSpec | None:
        """What its verifier says of itself; None where none was found."""
        return None if self.served is None else self.served.spec
