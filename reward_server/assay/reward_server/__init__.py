"""The reward server: routing and rule-based verifiers behind assay.api.reward.v1.RewardService.

What is named here is what a verifier is written with: docs/extend/write-a-verifier.md.
"""

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    MISSING_REFERENCE,
    UNSUPPORTED_INPUT,
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Span,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import OneOf, Range, verifier

__all__ = [
    "INVALID_PARAMETER",
    "MISSING_REFERENCE",
    "UNSUPPORTED_INPUT",
    "UNUSABLE_REFERENCE",
    "Component",
    "JsonValue",
    "Judgement",
    "OneOf",
    "Range",
    "Span",
    "Unjudgeable",
    "VerifierItem",
    "verifier",
]
