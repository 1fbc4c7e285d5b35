"""What the settings of every kind of training have in common: types of numbers, and sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from assay.clients.toml_config import STRICT

Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class OptimSection:
    """How it is optimised."""

    __pydantic_config__ = STRICT

    learning_rate: PositiveFloat = 1e-6
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: NonNegative = 0
    """Steps of the optimizer."""
    weight_decay: NonNegativeFloat = 0.0
    max_grad_norm: NonNegativeFloat = 1.0


@dataclass(frozen=True, slots=True)
class RunSection:
    """The run itself."""

    __pydantic_config__ = STRICT

    name: str = ""
    """Empty takes the name of the config file."""
    dir: str = "runs"
    """A folder <name>-<time> is made in it."""
    steps: Positive = 100
    seed: NonNegative = 0
    checkpoint_every: NonNegative = 50
    """Steps between checkpoints; 0 saves only at the end or when the run is stopped."""
    keep_checkpoints: Positive = 2
    report_to: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ("tensorboard",)
