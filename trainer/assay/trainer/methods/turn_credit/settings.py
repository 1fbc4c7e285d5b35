"""Settings of the credit of turns: the section `method.turn_credit` (see config.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import TrainingMethod
from assay.trainer.settings.reading import other_than


@dataclass(frozen=True, slots=True)
class TurnCreditConfig(Strict):
    """What is credited by itself in an episode."""

    unit: Literal["off", "agent", "turn"] = "off"
    """off: the whole response. agent: all that an agent said in an episode, with what it earned.
    turn: each turn, with its own reward and later ones."""


METHOD = TrainingMethod(
    name="turn_credit",
    settings=TurnCreditConfig,
    is_on=other_than("method.turn_credit.unit", "off"),
    rank=74,
)
