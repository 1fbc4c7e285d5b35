"""The parts of responses of several turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.part import Part, Switches, to

if TYPE_CHECKING:
    from assay.trainer.settings import Config

_PAG = "PAG, arXiv 2506.10406"


def _verifies(config: Config) -> bool:
    return config.algorithm.turns.mode == "verify"


def _earns_by_turns(config: Config) -> bool:
    return config.algorithm.turns.on and config.algorithm.turns.reward == "turns"


def _without_turns(config: Config) -> Switches:
    """One response; roles that are not there cannot be normalised."""
    switches: dict[str, object] = {"algorithm.turns.mode": "off"}
    if config.algorithm.advantage.normalise == "role":
        switches["algorithm.advantage.normalise"] = "none"
    return switches


TURN_PARTS: tuple[Part, ...] = (
    Part(
        "self-verification",
        "sampling",
        "The policy verifies its answer in a second turn and revises it in a third.",
        _PAG,
        _verifies,
        _without_turns,
    ),
    Part(
        "second-attempt",
        "sampling",
        "The policy is always asked for a second attempt, without a verification.",
        "SCoRe, arXiv 2409.12917; PAG's baselines, arXiv 2506.10406",
        lambda c: c.algorithm.turns.mode == "reconsider",
        _without_turns,
    ),
    Part(
        "selective-revision",
        "sampling",
        "A revision is asked for only where the verification says that the answer is wrong.",
        _PAG,
        lambda c: _verifies(c) and c.algorithm.turns.revise == "selective",
        to("algorithm.turns.revise", "always"),
    ),
    Part(
        "turn-rewards",
        "reward",
        "Every turn earns a reward of its own, not the last attempt for all of them.",
        _PAG,
        _earns_by_turns,
        to("algorithm.turns.reward", "final"),
    ),
    Part(
        "first-attempt-reward",
        "reward",
        "The first attempt earns its correctness.",
        _PAG,
        lambda c: _earns_by_turns(c) and c.algorithm.turns.first_reward == "accuracy",
        lambda c: {"algorithm.turns.first_reward": "verification" if _verifies(c) else "none"},
    ),
    Part(
        "verifier-reward",
        "reward",
        "A verification earns 1 where its verdict is true.",
        _PAG,
        lambda c: _verifies(c) and _earns_by_turns(c) and c.algorithm.turns.verifier_reward,
        to("algorithm.turns.verifier_reward", False),
    ),
    Part(
        "turn-shaping",
        "reward",
        "A second attempt also earns what it gained over the first.",
        f"{_PAG}; SCoRe, arXiv 2409.12917",
        lambda c: _earns_by_turns(c) and c.algorithm.turns.shaping > 0,
        to("algorithm.turns.shaping", 0.0),
    ),
    Part(
        "turn-independence",
        "advantage",
        "A turn is credited with its own reward alone, a turn-level discount of 0.",
        _PAG,
        lambda c: c.algorithm.turns.on and c.algorithm.turns.independent,
        to("algorithm.turns.independent", False),
    ),
    Part(
        "role-normalisation",
        "advantage",
        "The advantages of attempts and of verifications are whitened by themselves.",
        _PAG,
        lambda c: c.algorithm.turns.on and c.algorithm.advantage.normalise == "role",
        to("algorithm.advantage.normalise", "none"),
    ),
)
