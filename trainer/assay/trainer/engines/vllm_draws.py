"""Assay's own draws inside vLLM, in this process or on a server: a logits processor.

vLLM imports this module: `logits_processors=["assay.trainer.engines.vllm_draws:SeededDraws"]`, on a
server `--logits-processors` with the same text. For a request that asks for it, the processor draws
the token by engines.seeded and leaves it as the only one that greedy decoding can take, its
log-probability in the place of its logit. With `logprobs_mode="processed_logits"` vLLM returns that
number unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, MoveDirectionality

from assay.trainer.engines.seeded import drawn, uniform_rows
from assay.trainer.engines.types import FirstToken, Sampling
from assay.trainer.engines.vllm_requests import EXTRA


@dataclass(slots=True)
class _Row:
    """A request in vLLM's batch.

    Attributes:
        numbers: random numbers of the tokens that it may draw now.
        begun: how many tokens of the response were drawn before.
        ids: those drawn now, a list that vLLM extends.
    """

    sampling: Sampling
    numbers: np.ndarray
    begun: int
    ids: list[int]

    @property
    def number(self) -> float:
        # a step that vLLM prepared before it knew that the row had ended
        return float(self.numbers[min(len(self.ids), len(self.numbers) - 1)])


class SeededDraws(LogitsProcessor):
    """Draws the tokens of requests whose `extra_args` ask for it; others stay as they are."""

    def __init__(self, _config: Any, _device: torch.device, _pinned: bool) -> None:
        self._rows: dict[int, _Row] = {}

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raises ValueError for a request that cannot be read."""
        asked = (sampling_params.extra_args or {}).get(EXTRA)
        if asked is not None:
            _sampling(asked)

    def is_argmax_invariant(self) -> bool:
        """False: it decides what greedy decoding takes."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follows vLLM's batch: rows removed, added and moved."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._rows.pop(index, None)
        for index, params, _, ids in batch_update.added:
            self._rows.pop(index, None)
            asked = (params.extra_args or {}).get(EXTRA)
            if asked is not None:
                self._rows[index] = _row(asked, params.max_tokens, ids)
        for one, other, way in batch_update.moved:
            moved, back = self._rows.pop(one, None), self._rows.pop(other, None)
            if moved is not None:
                self._rows[other] = moved
            if back is not None and way == MoveDirectionality.SWAP:
                self._rows[one] = back

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Draws for its rows of (B, V) logits, in place."""
        groups: dict[Sampling, list[int]] = {}
        for index, row in self._rows.items():
            groups.setdefault(row.sampling, []).append(index)
        for sampling, places in groups.items():
            rows = [self._rows[place] for place in places]
            device = logits.device
            at_B = torch.tensor(places, device=device)
            begins = [row.begun + len(row.ids) == 0 for row in rows]
            tokens_B, logps_B = drawn(
                logits[at_B],
                torch.tensor([row.number for row in rows], dtype=torch.float64, device=device),
                sampling,
                torch.tensor(begins, device=device) if sampling.first and any(begins) else None,
            )
            logits.index_fill_(0, at_B, float("-inf"))
            logits[at_B, tokens_B] = logps_B.to(logits)
        return logits


def _row(asked: Mapping[str, Any], count: int, ids: list[int]) -> _Row:
    place = tuple(map(int, asked["place"]))
    begun = int(asked["position"])
    numbers_T = uniform_rows(int(asked["seed"]), [place], count, firsts=[begun])[0]  # type: ignore[list-item]
    return _Row(_sampling(asked), numbers_T, begun, ids)


def _sampling(asked: Mapping[str, Any]) -> Sampling:
    first = asked["first"]
    return Sampling(
        1,
        temperature=float(asked["temperature"]),
        top_k=int(asked["top_k"]),
        top_p=float(asked["top_p"]),
        first=FirstToken(float(first[0]), int(first[1])) if first else None,
    )
