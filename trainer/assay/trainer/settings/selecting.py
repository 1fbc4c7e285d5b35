"""The section `data.selection`: which problem comes next, with a table for each way to choose."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING, Any

from assay.clients.toml_config import STRICT
from assay.trainer.settings.registry import selections


@dataclass(frozen=True, slots=True)
class _Chosen:
    __pydantic_config__ = STRICT

    name: str = "uniform"
    """uniform: pass after pass over all. Each of the others has a section of its name."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


if TYPE_CHECKING:
    SelectionConfig = _Chosen
else:
    SelectionConfig = make_dataclass(
        "SelectionConfig",
        [
            (one.table, one.settings, field(default_factory=one.settings))
            for one in selections()
            if one.settings
        ],
        bases=(_Chosen,),
        namespace={"__pydantic_config__": STRICT, "__module__": __name__},
        frozen=True,
        slots=True,
    )
