"""Environments: worlds in which a policy acts over several turns, with tools and a reward.

One class is one environment (`Environment`); whoever trains with it, the trainer of ours or another
(faces), runs it through `Episode`. Needs no trainer and no torch.
"""

from assay.environments.endings import Ending
from assay.environments.environment import Environment, Proof, Services, ToolError, ToolResult, tool
from assay.environments.episode import Episode, EpisodeLimits
from assay.environments.registry import environment_of, environments
from assay.environments.types import EpisodeMessage, EpisodeOutcome, Observation, Reply, ToolCall

__all__ = [
    "Ending",
    "Environment",
    "Episode",
    "EpisodeLimits",
    "EpisodeMessage",
    "EpisodeOutcome",
    "Observation",
    "Proof",
    "Reply",
    "Services",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "environment_of",
    "environments",
    "tool",
]
