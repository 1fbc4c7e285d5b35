"""The labels of an adapter's items: what its trainer tells at no cost. Pure.

`trainer` is the trainer's name, `data` the row's data set, `step` the trainer's own count of steps.
What no trainer tells (the run, the model) comes from ASSAY_LABELS, for every item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.kit.labels import fitting

_DATA_COLUMNS = ("data_source", "dataset")


def labels_of(**known: Any) -> dict[str, str]:
    """Labels of what is known; None and empty texts are left out, long texts are cut."""
    texts = {name: str(value) for name, value in known.items() if value is not None}
    return {name: fitting(text) for name, text in texts.items() if text}


def labels_of_row(columns: Mapping[str, Any], row: int) -> dict[str, str]:
    """The labels that a row's columns tell, and the `trainer_state` that TRL and ms-swift pass."""
    listed = (columns.get(name) for name in _DATA_COLUMNS)
    data = next((column[row] for column in listed if isinstance(column, list)), None)
    step = getattr(columns.get("trainer_state"), "global_step", None)
    return labels_of(data=data if isinstance(data, str) else None, step=step)
