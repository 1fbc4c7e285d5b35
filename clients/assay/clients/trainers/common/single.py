"""One sample at a time: for trainers that ask for a reward rollout by rollout.

A verifier that compares the samples of a group cannot be asked in this way: the trainer does not
show the group.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from assay.clients.trainers.common.rows import Message, RowReader
from assay.clients.trainers.common.settings import Settings
from assay.clients.types import Item


def reader_of(settings: Settings) -> RowReader:
    """How the settings say that rows are read."""
    return RowReader(settings.verifier, settings.task, reference_kind=settings.reference)


def read_item(
    settings: Settings,
    prompt: str | Sequence[Message],
    response: str | Sequence[Message],
    row: Mapping[str, Any],
    *,
    response_token_count: int | None = None,
    truncated: bool = False,
) -> Item:
    """One sample as an item; it is of no group.

    Args:
        settings: say the verifier or the task, where the row does not.
        prompt: what the policy was asked.
        response: what it answered.
        row: the other columns of its row: "reference" or "answer", "verifier", "task",
            "parameters"; others are left alone.
        response_token_count: tokens of the response. None: unknown.
        truncated: the response was cut at the generation limit.

    Raises:
        ConfigError: The row's reference is none.
    """
    reader = reader_of(settings)
    columns = {name: [value] for name, value in row.items()}
    (item,) = reader.items([prompt], [response], None, columns)
    return dataclasses.replace(
        item, id="", group_id="", response_token_count=response_token_count, truncated=truncated
    )
