"""Base of all sections, and kinds of values."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from assay.kit.toml_config import STRICT

Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
BelowHalf = Annotated[float, Field(ge=0, lt=0.5)]
Scalar = str | int | float | bool


class Strict:
    """Base of all sections; refuses unknown keys and values of another type."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = STRICT
