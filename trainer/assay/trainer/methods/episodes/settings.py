"""Settings of episodes: the section `method.episodes` (see config.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from assay.trainer.methods.episodes.lines import episode_lines, episode_reward_lines
from assay.trainer.methods.episodes.parts import GROUPS, METRICS, PARTS
from assay.trainer.settings.kinds import NonNegative, NonNegativeFloat, Positive, Strict
from assay.trainer.settings.method import Lines, RowNeeds, TrainingMethod
from assay.trainer.settings.reading import other_than
from assay.trainer.settings.words import no_pattern

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class EpisodesConfig(Strict):
    """The policy acts in an environment over several turns."""

    environment: str = ""
    """Its name, as installed, or FILE.py:Class; empty for single responses."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the environment, by name."""
    format: str = "auto"
    """How calls of tools are written: a format's name, or auto: the chat template's own, if any."""
    answer: str = ""
    """A regular expression that an answer has: a turn with neither it nor a call is void. Empty:
    any text is an answer."""
    turns: NonNegative = 8
    """Most turns of an episode, of all agents together; 0 for no limit."""
    tokens: NonNegative = 0
    """Most tokens that the policy writes in an episode; 0 for no limit but the context's."""
    seconds: NonNegativeFloat = 300.0
    """Most seconds of an episode, generation included; one that is cut by them does not train.
    0 for no limit."""
    limits: Literal["train", "leave-out"] = "train"
    """What becomes of an episode that a limit of turns or tokens ended."""
    concurrency: Positive = 256
    """Most episodes whose tools run at a time."""
    cache: bool = False
    """Samples of one row share tool results, where the environment is repeatable."""

    @property
    def on(self) -> bool:
        """Whether a response is an episode."""
        return self.environment != ""


def check_episodes(config: Config) -> str:
    """Why settings of episodes do not fit, in a line; empty where they do."""
    episodes = config.method.episodes
    if episodes.on and config.method.turns.on:
        return "method.turns and method.episodes each say what a sample is: leave one of them out"
    return no_pattern("method.episodes.answer", episodes.answer)


def row_needs(config: Config) -> RowNeeds:
    """What the environment needs; raises ConfigError where there is no such environment."""
    from assay.environments.registry import environment_of  # noqa: PLC0415  # runs a file's code

    kind = environment_of(config.method.episodes.environment)
    return RowNeeds(kind.needs, f"the environment {kind.name!r}", keep=True)


METHOD = TrainingMethod(
    name="episodes",
    settings=EpisodesConfig,
    is_on=other_than("method.episodes.environment", ""),
    rank=72,
    hooks="assay.trainer.methods.episodes.method:Acting",
    parts=PARTS,
    metrics=METRICS,
    metric_groups=GROUPS,
    earns=lambda _config, _earned: None,
    lines=(
        Lines("Turns", 10, episode_lines),
        Lines("Reward", 10, episode_reward_lines),
    ),
    check=check_episodes,
    rows=row_needs,
)
