"""When two items are equal for a verifier, and which judgements are kept for equal items."""

from __future__ import annotations

import hashlib
import json

from assay.reward_server.domain import Judgement, VerifierItem, VerifierSpec
from assay.reward_server.workers import wire

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_MAX_CACHED_CHARS = 10_000
_MAX_CACHED_SPANS = 1_000


def item_key(spec: VerifierSpec, item: VerifierItem) -> bytes:
    """What makes two items equal: the verifier, its version, and all that it sees of them."""
    body = wire.item_to_json(item)
    if not spec.needs_group:
        del body["group_id"]
    text = _ENCODER.encode([spec.name, spec.version, body])
    return hashlib.blake2b(text.encode("ascii"), digest_size=32).digest()


def is_small(judgement: Judgement) -> bool:
    """Whether a judgement is small enough to be kept."""
    answer = judgement.extracted_answer or ""
    return len(answer) <= _MAX_CACHED_CHARS and len(judgement.spans) <= _MAX_CACHED_SPANS
