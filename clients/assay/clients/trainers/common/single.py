"""One sample at a time, for trainers that ask for a reward rollout by rollout.

A verifier that compares the samples of a group cannot be used in this way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from assay.clients.trainers.common.labels import labels_of
from assay.clients.trainers.common.rows import Message, RowReader
from assay.clients.trainers.common.settings import Settings
from assay.clients.types import Item


def reader_of(settings: Settings, **labels: Any) -> RowReader:
    """The reader of rows for these settings; `labels` are those that are known."""
    return RowReader(
        settings.verifier,
        settings.task,
        reference_kind=settings.reference,
        labels=labels_of(**labels),
    )


def read_item(
    settings: Settings,
    prompt: str | Sequence[Message],
    response: str | Sequence[Message],
    row: Mapping[str, Any],
    *,
    response_token_count: int | None = None,
    truncated: bool = False,
    **labels: Any,
) -> Item:
    """One sample as an item of no group.

    `row` holds "reference" or "answer", "verifier", "task", "parameters"; other columns are
    ignored. The settings apply where it has none. `labels` are those that are known.

    Raises:
        ConfigError: The row's reference is none.
    """
    reader = reader_of(settings, **labels)
    columns = {name: [value] for name, value in row.items()}
    (item,) = reader.items([prompt], [response], None, columns)
    return dataclasses.replace(
        item, id="", group_id="", response_token_count=response_token_count, truncated=truncated
    )
