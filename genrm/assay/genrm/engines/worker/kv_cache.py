"""Keys and values of a batch of rows, and the cache that transformers writes into.

A row's token p lies at index p, without padding before it; the mask hides what lies behind a row's
end. So rows of different lengths grow side by side, and a segment is cut out by one operation.

Shape suffixes: L layers, B rows, H key-value heads, T tokens, D width of a head, S tokens added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin


@dataclass(frozen=True, slots=True)
class KvShape:
    """Keys and values of one token."""

    layers: int
    heads: int
    key_width: int
    value_width: int


@dataclass(slots=True)
class KvSegment:
    """Keys and values of consecutive tokens of one row: [L, H, T, D] each."""

    keys: torch.Tensor
    values: torch.Tensor

    def __len__(self) -> int:
        return int(self.keys.shape[2])

    def part(self, start: int, end: int) -> KvSegment:
        """A copy of some of its tokens."""
        return KvSegment(self.keys[:, :, start:end].clone(), self.values[:, :, start:end].clone())


class KvCache:
    """Keys [L, B, H, T, D] and values of B rows with room for T tokens each; zeros at first."""

    def __init__(
        self, shape: KvShape, rows: int, tokens: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        size = (shape.layers, rows, shape.heads, tokens)
        # Zeros, not whatever was in memory: a masked value counts zero times, and 0 * NaN is NaN.
        self.keys = torch.zeros((*size, shape.key_width), dtype=dtype, device=device)
        self.values = torch.zeros((*size, shape.value_width), dtype=dtype, device=device)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.keys.shape[1])

    @property
    def tokens(self) -> int:
        """Tokens per row."""
        return int(self.keys.shape[3])

    def load(self, rows: list[int], start: int, segment: KvSegment) -> None:
        """Writes the same segment into several rows, from token `start` on."""
        index = torch.tensor(rows, device=self.keys.device)
        end = start + len(segment)
        self.keys[:, index, :, start:end] = segment.keys[:, None]
        self.values[:, index, :, start:end] = segment.values[:, None]

    def segment(self, row: int, start: int, end: int) -> KvSegment:
        """A copy of a segment of a row."""
        return KvSegment(
            self.keys[:, row, :, start:end].clone(), self.values[:, row, :, start:end].clone()
        )

    def clear(self, row: int) -> None:
        """Zeroes a row."""
        self.keys[:, row] = 0
        self.values[:, row] = 0

    def copy_into(self, other: KvCache, rows: int) -> None:
        """Copies the first rows into a cache that is no smaller."""
        other.keys[:, :rows, :, : self.tokens] = self.keys[:, :rows]
        other.values[:, :rows, :, : self.tokens] = self.values[:, :rows]

    def move(self, source: int, target: int) -> None:
        """Copies one row over another."""
        self.keys[:, target] = self.keys[:, source]
        self.values[:, target] = self.values[:, source]


class Place:
    """Where new tokens go: token j of row b at `starts[b] + j`."""

    def __init__(self, starts: list[int], added: int, device: torch.device) -> None:
        self.begin = min(starts)
        self.end = max(starts) + added
        self.even = self.begin == max(starts)
        self.added = added
        self.positions_BS = (
            torch.tensor(starts, device=device)[:, None] + torch.arange(added, device=device)[None]
        )
        self._rows_B1 = torch.arange(len(starts), device=device)[:, None]

    def write(self, room_BHTD: torch.Tensor, new_BHSD: torch.Tensor) -> torch.Tensor:
        """Writes the new tokens; returns the tensor up to the longest row's end."""
        if self.even:
            room_BHTD[:, :, self.begin : self.end] = new_BHSD
        else:
            room_BHTD[self._rows_B1, :, self.positions_BS] = new_BHSD.transpose(1, 2)
        return room_BHTD[:, :, : self.end]

    def mask(self, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """[B or 1, 1, S, T]: 0 where a token may look, else the least number."""
        positions = self.positions_BS[:1] if self.even else self.positions_BS
        seen = torch.arange(self.end, device=positions.device)[None, None, None]
        own = positions[:, None, :, None]
        hidden = seen > own
        if window is not None:
            hidden |= seen <= own - window
        mask = torch.zeros(hidden.shape, dtype=dtype, device=positions.device)
        return mask.masked_fill_(hidden, torch.finfo(dtype).min)


class KvCacheLayer(CacheLayerMixin):
    """One layer of the cache, as transformers sees it."""

    is_sliding = False
    is_croppable = False

    def __init__(self, keys_BHTD: torch.Tensor, values_BHTD: torch.Tensor, place: Place) -> None:
        super().__init__()
        self._keys, self._values, self._place = keys_BHTD, values_BHTD, place
        self.keys, self.values = keys_BHTD, values_BHTD
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Stores new keys and values; returns all, up to the longest row's end."""
        return (
            self._place.write(self._keys, key_states),
            self._place.write(self._values, value_states),
        )

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Tokens to look at, and the first one's position."""
        return self._place.end, 0

    def get_seq_length(self) -> int:
        """Tokens before this pass; used where rows are even."""
        return self._place.begin

    def get_max_length(self) -> int:
        """No limit."""
        return -1


def cache_of(kv: KvCache, rows: int, place: Place) -> Cache:
    """The first rows of the cache, for one forward pass."""
    return Cache(
        layers=[
            KvCacheLayer(kv.keys[layer, :rows], kv.values[layer, :rows], place)
            for layer in range(kv.keys.shape[0])
        ]
    )
