"""Rows of several conversations, and the same conversations as rows of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Row = tuple[int, Sequence[int]]
"""Tokens of a prompt, and of each context behind it."""


def rows_of(rows: Sequence[Row], *, seed: int = 0, first: int = 5, vocabulary: int = 24) -> Any:
    """A batch of random tokens with the column `context`; later contexts mask their first token."""
    width = max(sum(parts) for _, parts in rows) + 1
    asked = max(prompt for prompt, _ in rows) + 1
    generator = torch.Generator().manual_seed(seed)

    def ids(columns: int) -> Tensor:
        return torch.randint(first, vocabulary, (len(rows), columns), generator=generator)

    prompts = torch.tensor([prompt for prompt, _ in rows]).unsqueeze(1)
    lengths = torch.tensor([sum(parts) for _, parts in rows]).unsqueeze(1)
    prompt_mask = (torch.arange(asked).flip(0) < prompts).long()
    completion_mask = (torch.arange(width) < lengths).long()
    context = torch.full((len(rows), width), 7)  # anything on padding
    for number, (_, parts) in enumerate(rows):
        numbers = [place for place, size in enumerate(parts) for _ in range(size)]
        context[number, : len(numbers)] = torch.tensor(numbers)
    return {
        "prompt_ids": ids(asked) * prompt_mask,
        "prompt_mask": prompt_mask,
        "completion_ids": ids(width) * completion_mask,
        "completion_mask": completion_mask,
        "context": context,
    }


def apart(batch: Any, rows: Sequence[Row]) -> tuple[Any, list[tuple[int, slice]]]:
    """Each context as a row of one, and where its tokens lie in the batch.

    A later context's first token is the prompt of its row: it has no predecessor.
    """
    prompts, responses, places = [], [], []
    for number, (prompt, parts) in enumerate(rows):
        start = 0
        for place, size in enumerate(parts):
            ids = batch["completion_ids"][number, start : start + size].tolist()
            if place == 0:
                prompts.append(batch["prompt_ids"][number, -prompt:].tolist())
                responses.append(ids)
                places.append((number, slice(start, start + size)))
            else:
                prompts.append(ids[:1])
                responses.append(ids[1:])
                places.append((number, slice(start + 1, start + size)))
            start += size
    asked, width = max(map(len, prompts)), max(1, *map(len, responses))
    found = {
        "prompt_ids": torch.tensor([[0] * (asked - len(ids)) + ids for ids in prompts]),
        "prompt_mask": torch.tensor([[0] * (asked - len(i)) + [1] * len(i) for i in prompts]),
        "completion_ids": torch.tensor([ids + [0] * (width - len(ids)) for ids in responses]),
        "completion_mask": torch.tensor(
            [[1] * len(ids) + [0] * (width - len(ids)) for ids in responses]
        ),
    }
    return found, places


def gathered(values: Tensor, places: Sequence[tuple[int, slice]], like: Tensor) -> Tensor:
    """Numbers of the rows apart, at their places in the batch; 0 elsewhere."""
    found = torch.zeros(like.shape, dtype=values.dtype)
    for row, (number, where) in enumerate(places):
        found[number, where] = values[row, : where.stop - where.start]
    return found
