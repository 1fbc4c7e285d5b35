"""A worker's settings; an argument of its command, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker needs of `Opened` and `EngineConfig`, whose words these are.

    `arguments` are of `from_pretrained`; `step_scores`: a step head gives scores from -1 to 1;
    `threads`: of a CPU, 0 for as many as torch takes.
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
    quantization: str = "none"
    threads: int = 0
