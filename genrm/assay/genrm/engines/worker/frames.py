"""What travels between an engine and its worker: length-prefixed JSON, never pickle.

    frame     4 bytes, big-endian length, then that many bytes of JSON
    to the worker
        {"settings": {...}}      the first frame, see `Settings`
        {"ask": [job, ...]}      handed over together, see jobs.py
        {"cancel": [id, ...]}    nobody waits for these any more
    from the worker
        {"ready": {...}}         loaded; or {"failed": "one line"}, and it ends
        {"answers": [answer, ...]}

JSON as Python writes it: NaN and infinities travel.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

HEADER = struct.Struct("!I")
MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker is told at its start: `Opened` and `ModelConfig`, as far as it needs them.

    Attributes:
        location: folder or hub name.
        arguments: of `from_pretrained`.
        head: "generative", "scalar" or "step".
        device: "auto", "cpu" or "cuda".
        precision: "auto", "float32", "bfloat16" or "float16".
        good_label: of a step head.
        max_batch_tokens: of one forward pass.
        max_batch_items: rows of one forward pass.
        prefix_cache_tokens: kept between calls.
        step_scores: the one output of a step head is a score from -1 to 1.
    """

    location: str
    arguments: dict[str, Any]
    head: str
    device: str
    precision: str
    good_label: int
    max_batch_tokens: int
    max_batch_items: int
    prefix_cache_tokens: int
    step_scores: bool = False


def pack(body: dict[str, Any]) -> bytes:
    """A frame."""
    data = json.dumps(body, separators=(",", ":")).encode("ascii")
    return HEADER.pack(len(data)) + data
