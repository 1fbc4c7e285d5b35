"""The parts of responses of several turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, Switches, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_PAG = "PAG, arXiv 2506.10406"


def _verifies(config: Config) -> bool:
    return config.method.turns.mode == "verify"


def _earns_by_turns(config: Config) -> bool:
    return config.method.turns.on and config.method.turns.reward == "turns"


def _without_turns(config: Config) -> Switches:
    """One response, so normalisation by roles goes too."""
    switches: dict[str, object] = {"method.turns.mode": "off"}
    if config.method.advantage.normalise == "role":
        switches["method.advantage.normalise"] = "none"
    return switches


_DIALOGUE_NEEDS = {"critic": "turns are credited token by token"}
_DIALOGUE_TAKES = {
    "one-turn": "a response is a dialogue",
    "outcome-reward": "its turns earn by themselves",
}
PARTS: tuple[Part, ...] = (
    Part(
        "self-verification", "sampling",
        "The policy verifies its answer in a second turn and revises it in a third.",
        _PAG, _verifies, _without_turns, code=("methods.turns.dialogues.Dialogues",),
        needs=_DIALOGUE_NEEDS, takes=_DIALOGUE_TAKES,
    ),
    Part(
        "second-attempt", "sampling",
        "The policy is always asked for a second attempt, without a verification.",
        "SCoRe, arXiv 2409.12917; PAG's baselines, arXiv 2506.10406",
        lambda c: c.method.turns.mode == "reconsider", _without_turns,
        code=("methods.turns.dialogues.Dialogues",),
        needs=_DIALOGUE_NEEDS, takes=_DIALOGUE_TAKES,
    ),
    Part(
        "selective-revision", "sampling",
        "A revision is asked for only where the verification says that the answer is wrong.",
        _PAG, lambda c: _verifies(c) and c.method.turns.revise == "selective",
        to("method.turns.revise", "always"), code=("methods.turns.dialogues.Dialogues",),
    ),
    Part(
        "turn-rewards", "reward",
        "Every turn earns a reward of its own, not the last attempt for all of them.",
        _PAG, _earns_by_turns, to("method.turns.reward", "final"),
        code=("methods.turns.credit.turn_tokens",),
    ),
    Part(
        "first-attempt-reward", "reward",
        "The first attempt earns its correctness.",
        _PAG, lambda c: _earns_by_turns(c) and c.method.turns.first_reward == "accuracy",
        lambda c: {"method.turns.first_reward": "verification" if _verifies(c) else "none"},
        code=("methods.turns.credit.rewards_of",),
    ),
    Part(
        "verifier-reward", "reward",
        "A verification earns 1 where its verdict is true.",
        _PAG, lambda c: _verifies(c) and _earns_by_turns(c) and c.method.turns.verifier_reward,
        to("method.turns.verifier_reward", False),
        code=("assay.clients.judging.self_verification.turn_rewards",),
    ),
    Part(
        "turn-shaping", "reward",
        "A second attempt also earns what it gained over the first.",
        f"{_PAG}; SCoRe, arXiv 2409.12917",
        lambda c: _earns_by_turns(c) and c.method.turns.shaping > 0,
        to("method.turns.shaping", 0.0),
        code=("assay.clients.judging.self_verification.turn_rewards",),
    ),
    Part(
        "turn-independence", "advantage",
        "A turn is credited with its own reward alone, a turn-level discount of 0.",
        _PAG, lambda c: c.method.turns.on and c.method.turns.independent,
        to("method.turns.independent", False), code=("algos.turns.turn_gae",),
    ),
    Part(
        "role-normalisation", "advantage",
        "The advantages of each role are whitened by themselves: attempts and verifications, or "
        "the agents of an episode.",
        f"{_PAG}; Dr. MAS, arXiv 2602.08847",
        lambda c: (
            (c.method.turns.on or c.method.episodes.on) and c.method.advantage.normalise == "role"
        ),
        to("method.advantage.normalise", "none"), code=("algos.advantages.standardise",),
    ),
)  # fmt: skip

GROUPS = {"turns": "Dialogues without a fault (`method.turns`); null for single responses"}

METRICS: tuple[Metric, ...] = metrics("turns",
    ("turns_first_correct", "share",
     "First attempts that are correct (Acc@t1).", "first_correct"),
    ("turns_final_correct", "share",
     "Last attempts that are correct (Acc@final).", "final_correct"),
    ("turns_revised", "share", "Dialogues with a second attempt.", "revised"),
    ("turns_answer_changed", "share",
     "Of these, the last attempt states another answer than the first.", "answer_changed"),
    ("turns_incorrect_to_correct", "share",
     "Wrong first attempts whose dialogue ended correct, of all wrong ones.",
     "incorrect_to_correct"),
    ("turns_correct_to_incorrect", "share",
     "Correct first attempts whose dialogue ended wrong, of all correct ones.",
     "correct_to_incorrect"),
    ("turns_revised_to_correct", "share",
     "The first of these among revised dialogues (i_to_c_rate of PAG's code).",
     "revised_to_correct"),
    ("turns_revised_to_incorrect", "share",
     "The second among revised dialogues (c_to_i_rate of PAG's code).",
     "revised_to_incorrect"),
    ("turns_gained", "share",
     "Dialogues that went from wrong to correct, of all (i_to_c_rate_gt; SCoRe's i->c).", "gained"),
    ("turns_lost", "share",
     "Dialogues that went from correct to wrong, of all (c_to_i_rate_gt; SCoRe's c->i).", "lost"),
    ("turns_verifier_accuracy", "share",
     ("Verifications whose verdict is true; one that cannot be read "
      "is not."), "verifier_accuracy"),
    ("turns_correct_recall", "share",
     "Correct attempts that the verification called correct.", "correct_recall"),
    ("turns_wrong_recall", "share",
     "Wrong attempts that the verification called wrong.", "wrong_recall"),
    ("turns_unparsed", "share",
     ("Verifications without a verdict that method.turns.parsing can read, "
      "faults included."), "unparsed"),
)  # fmt: skip
