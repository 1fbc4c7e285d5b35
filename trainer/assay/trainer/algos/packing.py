"""Rows of a step packed into forward passes, each as wide as its own longest row. Pure.

A pass computes rows * widest positions, prompt and response of a row in one piece. Rows of similar
length share a pass, the longest first, so that a lack of memory shows at once.

A row may hold several conversations (contexts) one after the other, by the column `context`: 0 goes
on from the row's prompt, later ones begin with their own tokens. Each is a sequence of its own in a
pass, and what a model says of a token comes back to its place in the row: 0 for the first token of
a later context, which has no predecessor.

Shapes: B rows, S sequences (S = B where each row has one context), P columns of prompts (padded on
the left), T of responses (padded on the right), L of a pass (padded on the right).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

INPUTS = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
"""Columns of a batch that a forward pass needs."""
CONTEXT = "context"
"""(B, T) long, beside them where some row has several contexts: the number of each token's, from 0,
each in one piece and in order; anything on padding."""

TOGETHER = "together"
"""(B,) long, beside them where rows share a pass: those of one number do."""

PASS = 50
"""One more pass pays where it saves more padding than this part of a full pass."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How a process's rows are packed.

    Attributes:
        rows: of a pass, at most, each of its contexts counted; 0 for any number. Rows that stay
            together may be more.
        positions: sequences * widest of a pass, at most; 0 for any number. A larger row goes alone.
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
        widths_B, counts_B = shapes(batch)
        sizes, counts, held = widths_B.tolist(), counts_B.tolist(), together(batch)
        if held is not None:
            sizes = [max(sizes[row] for row in rows) for rows in held]
            counts = [sum(counts[row] for row in rows) for rows in held]
        found = pack(sizes, counts, rows=self.rows, positions=self.positions)
        found = split(found, sizes, self.most(len(found)), counts)
        if held is not None:
            found = [[row for number in one for row in held[number]] for one in found]
        device = batch["completion_mask"].device
        return [torch.tensor(numbers, device=device) for numbers in found]


def together(batch: Mapping[str, Tensor]) -> list[list[int]] | None:
    """Rows that share a pass, by their number in `TOGETHER`; None where the batch has none."""
    if TOGETHER not in batch:
        return None
    held: dict[int, list[int]] = {}
    for row, number in enumerate(batch[TOGETHER].tolist()):
        held.setdefault(number, []).append(row)
    return list(held.values())


def pack(
    sizes: Sequence[int],
    counts: Sequence[int] | None = None,
    *,
    rows: int = 0,
    positions: int = 0,
) -> list[list[int]]:
    """Row numbers of each pass: neighbours by length, the longest first.

    Minimises the positions plus `positions` / `PASS` for each pass; without that limit, the number
    of passes, then positions. Dynamic programming over the rows in order of length: exact, and the
    same on every machine. `sizes` are tokens of a row's longest sequence, `counts` its sequences,
    by default 1; the limits are `Packing`'s.
    """
    order = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    sorted_N = np.array([sizes[number] for number in order], dtype=np.int64)
    # sequences before each row
    before_N = np.zeros(len(order) + 1, dtype=np.int64)
    before_N[1:] = np.cumsum([1 if counts is None else counts[number] for number in order])
    overhead = int((sorted_N * np.diff(before_N)).sum()) * len(order) + 1
    if positions:
        overhead = max(1, positions // PASS)
    least, cuts = np.zeros(len(order) + 1, dtype=np.int64), [0] * len(order)
    for end in range(1, len(order) + 1):
        start = max(0, end - rows) if rows else 0
        held = before_N[end] - before_N[start:end]
        taken = held * sorted_N[start:end]
        allowed = np.ones(end - start, dtype=bool)
        if positions:
            allowed &= taken <= positions
        if rows:
            allowed &= held <= rows
        allowed[-1] = True
        costs = np.where(allowed, least[start:end] + taken, np.iinfo(np.int64).max)
        best = int(costs.argmin())
        least[end], cuts[end - 1] = costs[best] + overhead, start + best
    passes: list[list[int]] = []
    end = len(order)
    while end:
        passes.append(order[cuts[end - 1] : end])
        end = cuts[end - 1]
    return passes[::-1]


def split(
    passes: Sequence[list[int]],
    sizes: Sequence[int],
    count: int,
    counts: Sequence[int] | None = None,
) -> list[list[int]]:
    """Splits passes of `pack`, the largest in halves, until there are `count`.

    `sizes` and `counts` are those of `pack`.

    Raises:
        ValueError: there are fewer rows than that.
    """
    found = list(passes)
    while len(found) < count:
        held = [len(one) if counts is None else sum(counts[row] for row in one) for one in found]
        taken = [
            (len(one) > 1) * many * sizes[one[0]] for one, many in zip(found, held, strict=True)
        ]
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

    `compute` gets `inputs_of` a pass and returns a number for each of its response tokens; its
    gradient is dropped.
    """
    inputs = inputs_of(batch)
    whole_BT: Tensor | None = None
    for rows_N in passes:
        part = compute(cut(inputs, rows_N)).detach()
        if whole_BT is None:
            whole_BT = part.new_zeros(batch["completion_mask"].shape)
        whole_BT[rows_N, : part.shape[1]] = part
    if whole_BT is None:
        raise ValueError("there are no rows")
    return whole_BT.masked_fill(~batch["completion_mask"].bool(), 0)


def inputs_of(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The columns that a forward pass needs: `INPUTS`, and `CONTEXT` where the batch has it."""
    return {name: batch[name] for name in (*INPUTS, CONTEXT) if name != CONTEXT or name in batch}


@dataclass(frozen=True, slots=True)
class Laid:
    """Sequences as a model takes them: from the first column on, without a gap.

    A token's position depends on its own sequence alone.

    Attributes:
        ids_SL: of a context 0 prompt and tokens, of a later one its tokens, then 0.
        mask_SL: 1 for tokens, 0 behind them.
        starts_S: column of a sequence's first token with a predecessor that is a response's; 1 in
            later contexts.
        places_BT: for each response token the sequence's number * L + its column; None where row b
            is sequence b.
    """

    ids_SL: Tensor
    mask_SL: Tensor
    starts_S: Tensor
    places_BT: Tensor | None = None


def laid(batch: Mapping[str, Tensor]) -> Laid:
    """The sequences of a batch with `inputs_of`."""
    ids_BW = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    starts_B = batch["prompt_mask"].sum(1)
    if CONTEXT in batch:
        return _laid_by_context(batch, ids_BW, starts_B)
    lengths_B = lengths(batch)
    columns_L = torch.arange(int(lengths_B.max()), device=ids_BW.device)
    mask_BL = columns_L < lengths_B.unsqueeze(1)
    gaps_B = batch["prompt_ids"].shape[1] - starts_B
    from_BL = (columns_L + gaps_B.unsqueeze(1)).clamp(max=ids_BW.shape[1] - 1)
    return Laid(ids_BW.gather(1, from_BL).masked_fill(~mask_BL, 0), mask_BL.long(), starts_B)


def _laid_by_context(batch: Mapping[str, Tensor], ids_BW: Tensor, starts_B: Tensor) -> Laid:
    context_BT, keep_BT = batch[CONTEXT], batch["completion_mask"].bool()
    widths_B, counts_B = shapes(batch)
    width = int(widths_B.max())
    first_B = counts_B.cumsum(0) - counts_B  # the sequence of each row's context 0
    sequence_BT = first_B.unsqueeze(1) + context_BT
    # tokens of the same row before the context's first: their number is its column 0
    before_BT = keep_BT.long().cumsum(1) - 1
    tokens_BC = _tokens_by_context(context_BT, keep_BT)
    begins_BC = tokens_BC.cumsum(1) - tokens_BC
    column_BT = before_BT - begins_BC.gather(1, context_BT.clamp(0, begins_BC.shape[1] - 1))
    column_BT = column_BT + torch.where(context_BT == 0, starts_B.unsqueeze(1), 0)
    places_BT = torch.where(keep_BT, sequence_BT * width + column_BT, 0)
    ids_SL = ids_BW.new_zeros(int(counts_B.sum()), width)
    mask_SL = torch.zeros_like(ids_SL, dtype=torch.long)
    asked_BP = batch["prompt_mask"].bool()
    asked_at_BP = first_B.unsqueeze(1) * width + asked_BP.long().cumsum(1) - 1
    for places, ids in (
        (asked_at_BP[asked_BP], batch["prompt_ids"][asked_BP]),
        (places_BT[keep_BT], batch["completion_ids"][keep_BT]),
    ):
        ids_SL.view(-1)[places] = ids
        mask_SL.view(-1)[places] = 1
    starts_S = torch.ones_like(mask_SL[:, 0])
    starts_S[first_B] = starts_B
    return Laid(ids_SL, mask_SL, starts_S, places_BT)


def of_tokens(values_SLX: Tensor, first_S: Tensor, length: int) -> Tensor:
    """`length` neighbouring columns of each row from `first_S` on: (S, length, ...).

    Beyond the last column, the last one is repeated.
    """
    columns_T = torch.arange(length, device=values_SLX.device)
    columns_ST = (first_S.unsqueeze(1) + columns_T).clamp(min=0, max=values_SLX.shape[1] - 1)
    rows_S1 = torch.arange(len(first_S), device=values_SLX.device).unsqueeze(1)
    return values_SLX[rows_S1, columns_ST]


def of_responses(
    values_SKX: Tensor, found: Laid, batch: Mapping[str, Tensor], before: int
) -> Tensor:
    """A model's number for each response token of a batch that was laid: (B, T, ...).

    `before` is the column of the number less that of its token. Anything on padding.
    """
    length = batch["completion_ids"].shape[1]
    if found.places_BT is None:
        return of_tokens(values_SKX, found.starts_S + before, length)
    width = found.ids_SL.shape[1]
    sequence_BT, column_BT = found.places_BT // width, found.places_BT % width
    values_BTX = values_SKX[sequence_BT, (column_BT + before).clamp(0, values_SKX.shape[1] - 1)]
    alone_BT = column_BT == 0
    return values_BTX.masked_fill(alone_BT.view(*alone_BT.shape, *[1] * (values_SKX.dim() - 2)), 0)


def computed(batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Positions of a pass with the rows of this batch, and how many of them hold tokens."""
    widths_B, counts_B = shapes(batch)
    return counts_B.sum() * widths_B.max(), lengths(batch).sum()


def lengths(batch: Mapping[str, Tensor]) -> Tensor:
    """Tokens of each row, prompt and response; (B,)."""
    return batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1)


def shapes(batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Tokens of each row's longest sequence, and its number of sequences; both (B,)."""
    if CONTEXT not in batch:
        lengths_B = lengths(batch)
        return lengths_B, torch.ones_like(lengths_B)
    tokens_BC = _tokens_by_context(batch[CONTEXT], batch["completion_mask"].bool())
    tokens_BC[:, 0] += batch["prompt_mask"].sum(1)
    numbers_C = torch.arange(1, tokens_BC.shape[1] + 1, device=tokens_BC.device)
    counts_B = ((tokens_BC > 0) * numbers_C).amax(1).clamp(min=1)
    return tokens_BC.amax(1), counts_B


def _tokens_by_context(context_BT: Tensor, keep_BT: Tensor) -> Tensor:
    most = int(torch.where(keep_BT, context_BT, 0).max()) + 1
    tokens_BC = torch.zeros(len(keep_BT), most, dtype=torch.long, device=keep_BT.device)
    return tokens_BC.scatter_add_(1, context_BT.clamp(0, most - 1), keep_BT.long())
