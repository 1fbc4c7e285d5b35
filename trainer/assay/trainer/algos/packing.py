"""Rows of a step packed into forward passes, each as wide as its own longest row. Pure.

A pass computes rows * widest positions, prompt and response of a row in one piece. Rows of similar
length share a pass, the longest first, so that a lack of memory shows at once.

Shapes: B rows, P columns of prompts (padded on the left), T of responses (padded on the right), L
of a pass (padded on the right).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

INPUTS = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
"""Columns of a batch that a forward pass needs."""

PASS = 50
"""One more pass pays where it saves more padding than this part of a full pass."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How a process's rows are packed.

    Attributes:
        rows: of a pass, at most; 0 for any number.
        positions: rows * widest of a pass, at most; 0 for any number. A longer row goes alone.
        most: the maximum of a number over processes; all must make equally many passes, because
            each exchanges gradients or shards of weights.
    """

    rows: int = 0
    positions: int = 0
    most: Callable[[int], int] = lambda count: count

    def passes(self, batch: Mapping[str, Tensor]) -> list[Tensor]:
        """Row numbers of each pass; every row is in one, and all processes have as many passes.

        A process that needs fewer passes than another splits its own further, which saves padding.
        Each process must have equally many rows.
        """
        sizes: list[int] = lengths(batch).tolist()
        found = pack(sizes, rows=self.rows, positions=self.positions)
        found = split(found, sizes, self.most(len(found)))
        device = batch["completion_mask"].device
        return [torch.tensor(numbers, device=device) for numbers in found]


def pack(sizes: Sequence[int], *, rows: int = 0, positions: int = 0) -> list[list[int]]:
    """Row numbers of each pass: neighbours by length, the longest first.

    Minimises the positions plus `positions` / `PASS` for each pass; without that limit, the number
    of passes, then positions. Dynamic programming over the rows in order of length: exact, and the
    same on every machine. `sizes` are tokens of prompt and response; the limits are `Packing`'s.
    """
    order = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    sorted_N = np.array([sizes[number] for number in order], dtype=np.int64)
    overhead = max(1, positions // PASS) if positions else int(sorted_N.sum()) * len(order) + 1
    least, cuts = np.zeros(len(order) + 1, dtype=np.int64), [0] * len(order)
    for end in range(1, len(order) + 1):
        start = max(0, end - rows) if rows else 0
        counts = np.arange(end - start, 0, -1)
        taken = counts * sorted_N[start:end]
        allowed = (taken <= positions) | (counts == 1) if positions else counts > 0
        costs = np.where(allowed, least[start:end] + taken, np.iinfo(np.int64).max)
        best = int(costs.argmin())
        least[end], cuts[end - 1] = costs[best] + overhead, start + best
    passes: list[list[int]] = []
    end = len(order)
    while end:
        passes.append(order[cuts[end - 1] : end])
        end = cuts[end - 1]
    return passes[::-1]


def split(passes: Sequence[list[int]], sizes: Sequence[int], count: int) -> list[list[int]]:
    """Splits passes of `pack`, the largest in halves, until there are `count`.

    Raises:
        ValueError: there are fewer rows than that.
    """
    found = list(passes)
    while len(found) < count:
        taken = [(len(one) > 1) * len(one) * sizes[one[0]] for one in found]
        largest = max(range(len(found)), key=taken.__getitem__)
        one = found[largest]
        if len(one) == 1:
            raise ValueError(f"{len(sizes)} rows make no {count} passes")
        half = (len(one) + 1) // 2
        found[largest : largest + 1] = [one[:half], one[half:]]
    return found


def cut(batch: Mapping[str, Tensor], rows_N: Tensor) -> dict[str, Tensor]:
    """Some rows of a batch, as wide as their longest prompt and their longest response.

    The batch has `INPUTS` and other columns (B,) or (B, T); values without dimension stay.
    """
    prompt = int(batch["prompt_mask"][rows_N].sum(1).max())
    response = max(1, int(batch["completion_mask"][rows_N].sum(1).max()))

    def narrow(name: str, values: Tensor) -> Tensor:
        if values.dim() < 2:
            return values[rows_N] if values.dim() else values
        if name.startswith("prompt_"):
            return values[rows_N, values.shape[1] - prompt :]
        return values[rows_N, :response]

    return {name: narrow(name, values) for name, values in batch.items()}


def over_passes(
    batch: Mapping[str, Tensor],
    passes: Sequence[Tensor],
    compute: Callable[[dict[str, Tensor]], Tensor],
) -> Tensor:
    """A model's number for each response token, pass by pass; (B, T), 0 where completion_mask is.

    `compute` gets `INPUTS` of a pass and returns a number for each of its response tokens; its
    gradient is dropped.
    """
    inputs = {name: batch[name] for name in INPUTS}
    whole_BT: Tensor | None = None
    for rows_N in passes:
        part = compute(cut(inputs, rows_N)).detach()
        if whole_BT is None:
            whole_BT = part.new_zeros(batch["completion_mask"].shape)
        whole_BT[rows_N, : part.shape[1]] = part
    if whole_BT is None:
        raise ValueError("there are no rows")
    return whole_BT.masked_fill(~batch["completion_mask"].bool(), 0)


@dataclass(frozen=True, slots=True)
class Laid:
    """Rows as a model takes them: from the first column on, without a gap.

    A token's position depends on its own row alone.

    Attributes:
        ids_BL: prompt, response, then 0.
        mask_BL: 1 for tokens, 0 behind them.
        starts_B: column of a row's first response token.
    """

    ids_BL: Tensor
    mask_BL: Tensor
    starts_B: Tensor


def laid(batch: Mapping[str, Tensor]) -> Laid:
    """The rows of a batch with `INPUTS`."""
    ids_BW = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    starts_B, lengths_B = batch["prompt_mask"].sum(1), lengths(batch)
    columns_L = torch.arange(int(lengths_B.max()), device=ids_BW.device)
    mask_BL = columns_L < lengths_B.unsqueeze(1)
    gaps_B = batch["prompt_ids"].shape[1] - starts_B
    from_BL = (columns_L + gaps_B.unsqueeze(1)).clamp(max=ids_BW.shape[1] - 1)
    return Laid(ids_BW.gather(1, from_BL).masked_fill(~mask_BL, 0), mask_BL.long(), starts_B)


def of_tokens(values_BLX: Tensor, first_B: Tensor, length: int) -> Tensor:
    """`length` neighbouring columns of each row from `first_B` on: (B, length, ...).

    Beyond the last column, the last one is repeated.
    """
    columns_T = torch.arange(length, device=values_BLX.device)
    columns_BT = (first_B.unsqueeze(1) + columns_T).clamp(min=0, max=values_BLX.shape[1] - 1)
    rows_B1 = torch.arange(len(first_B), device=values_BLX.device).unsqueeze(1)
    return values_BLX[rows_B1, columns_BT]


def computed(batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Positions of a pass with the rows of this batch, and how many of them hold tokens."""
    lengths_B = lengths(batch)
    return len(lengths_B) * lengths_B.max(), lengths_B.sum()


def lengths(batch: Mapping[str, Tensor]) -> Tensor:
    """Tokens of each row, prompt and response; (B,)."""
    return batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1)
