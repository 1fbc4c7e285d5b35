"""The parts and metrics of episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, Switches, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def _single(config: Config) -> Switches:
    """Single responses: nothing that is said of turns and agents stays."""
    switches: dict[str, object] = {"method.episodes.environment": ""}
    if config.method.turn_credit.unit != "off":
        switches["method.turn_credit.unit"] = "off"
    if config.method.filter.void == "turn":
        switches["method.filter.void"] = "none"
    if config.method.advantage.normalise == "role":
        switches["method.advantage.normalise"] = "none"
    return switches


PARTS: tuple[Part, ...] = (
    Part(
        "episodes", "sampling",
        "The policy acts in an environment over several turns; what tools answer is in no loss.",
        "ReTool, arXiv 2504.11536; SimpleTIR, arXiv 2509.02479",
        lambda c: c.method.episodes.on, _single,
        code=("methods.episodes.talk.Episodes", "methods.episodes.columns.tokens_of"),
        takes={
            "one-turn": "a response is an episode of several turns",
            "pausing": "an environment cannot wait for a later step, nor in a checkpoint",
            "spans": "a judgement is of an episode's end, not of its text",
        },
    ),
    Part(
        "limited-episodes-out", "reward",
        "An episode that a limit of turns or tokens ended is in no loss; its reward counts for its "
        "group.",
        "DAPO's overlong filtering, arXiv 2503.14476, for episodes",
        lambda c: c.method.episodes.on and c.method.episodes.limits == "leave-out",
        to("method.episodes.limits", "train"),
        code=("methods.episodes.method.Acting",),
    ),
    Part(
        "shared-tool-results", "sampling",
        "Samples of a row share tool results where the calls before are the same.",
        "TVCache, arXiv 2602.10986",
        lambda c: c.method.episodes.on and c.method.episodes.cache,
        to("method.episodes.cache", False),
        code=("assay.environments.cache.ToolCache",),
    ),
)  # fmt: skip

GROUPS = {
    "episodes": "Episodes (`method.episodes`): how they ended, of all; the rest of those without "
    "a fault; null for single responses"
}

METRICS: tuple[Metric, ...] = metrics("episodes",
    ("episodes_turns", "count", "Turns of an episode.", "turns"),
    ("episodes_calls", "count", "Calls of tools in an episode.", "calls"),
    ("episodes_tokens", "tokens", "Tokens that the policy writes in an episode.", "tokens"),
    ("episodes_contexts", "count", "Conversations of an episode.", "contexts"),
    ("episodes_tool_s", "s", "Seconds of an episode in tools and in its environment.", "tool_s"),
    ("episodes_turn_reward", "reward", "What an episode's turns earned on themselves, in all.",
     "turn_reward"),
    ("episodes_refused", "share", "Calls that a tool refused.", "refused"),
    ("episodes_cached", "share", "Calls that another sample's call answered.", "cached"),
    ("tool_cache_hit_rate", "share",
     ("Calls in repeatable environments that another sample's call answered, in the first process "
      "since the step before (`method.episodes.cache`).")),
    ("tool_cache_caught_up", "count",
     ("Calls answered so that an environment ran later nevertheless, for who reads what they "
     "changed.")),
    ("tool_cache_different", "count",
     ("Of these, those that it answered otherwise: its row is not shared any more. Above 0 the "
      "environment is not repeatable.")),
    ("tool_cache_mb", "MiB", "Kept answers."),
    ("episodes_void", "share", "Turns that are neither a call nor an answer.", "void"),
    ("episodes_with_void", "share", "Episodes with such a turn.", "with_void"),
    ("episodes_answered", "share", "Episodes that ended because they were done.", "answered"),
    ("episodes_turn_limit", "share", "Episodes that a limit of turns ended.", "turn_limit"),
    ("episodes_token_limit", "share", "Episodes that a limit of tokens ended.", "token_limit"),
    ("episodes_budget_spent", "share", "Episodes whose programs used up their session.",
     "budget_spent"),
    ("episodes_time_limit", "share", "Episodes that their seconds cut: none trains.",
     "time_limit"),
    ("episodes_fault", "share", "Episodes in which something of ours broke: none trains.",
     "fault"),
    ("episodes_abandoned", "share", "Episodes that the run left: none trains.", "abandoned"),
)  # fmt: skip
