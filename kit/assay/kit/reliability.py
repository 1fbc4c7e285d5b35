"""How often a verifier is wrong, as it was measured. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """A share of responses, 0 to 1, with its interval; reward.proto has the fields."""

    value: float
    low: float
    high: float
    confidence: float
    responses: int


@dataclass(frozen=True, slots=True)
class Reliability:
    """How often a verifier was found wrong on one kind of items; None: not measured.

    reward.proto has the fields.
    """

    domain: str
    false_positive: ErrorRate | None
    false_negative: ErrorRate | None
    verifier_version: str
    data_digest: str
    truth: str
