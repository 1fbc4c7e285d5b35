"""The section `data.selection`: which problem comes next, with a table for each way to choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import Selection
from assay.trainer.settings.reading import only
from assay.trainer.settings.registry import UNIFORM, every
from assay.trainer.settings.tables import with_tables


@dataclass(frozen=True, slots=True)
class _Chosen(Strict):
    name: str = UNIFORM
    """uniform: pass after pass over all. The others have sections of their names."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


if TYPE_CHECKING:
    SelectionConfig = _Chosen
else:
    SelectionConfig = with_tables(
        "SelectionConfig",
        _Chosen,
        ((one.table, one.settings) for one in every(Selection) if one.settings),
        section="data.selection",
        read={one.table: only("data.selection.name", one.name) for one in every(Selection)},
    )
