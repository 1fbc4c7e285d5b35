"""What a worker is told at its start, as data; an argument of its command, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker starts with: `Opened` and `EngineConfig`, as far as it needs them.

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
