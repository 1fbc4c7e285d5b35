"""Settings of episodes: the section `method.episodes` (see config.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import TrainingMethod
from assay.trainer.settings.reading import other_than


@dataclass(frozen=True, slots=True)
class EpisodesConfig(Strict):
    """The policy acts in an environment over several turns."""

    environment: str = ""
    """Its name, as installed, or FILE.py:Class; empty for single responses."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the environment, by name."""
    format: str = "auto"
    """How calls of tools are written: a format's name, or auto: the chat template's own, if any."""
    turns: int = 8
    """Most turns of an episode, of all agents together."""
    tokens: int = 0
    """Most tokens that the policy writes in an episode; 0 for no limit but the context's."""
    seconds: float = 300.0
    """Most seconds of an episode, generation included; one that is cut by them does not train."""
    limits: Literal["train", "leave-out"] = "train"
    """What becomes of an episode that a limit of turns or tokens ended."""
    concurrency: int = 256
    """Most episodes whose tools run at a time."""
    cache: bool = False
    """Samples of one row share tool results, where the environment is repeatable."""

    @property
    def on(self) -> bool:
        """Whether a response is an episode."""
        return self.environment != ""


METHOD = TrainingMethod(
    name="episodes",
    settings=EpisodesConfig,
    is_on=other_than("method.episodes.environment", ""),
    rank=72,
)
