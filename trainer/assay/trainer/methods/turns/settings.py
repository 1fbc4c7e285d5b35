"""Settings of responses that are dialogues: the section `method.turns` (see config.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from assay.trainer.methods.turns.lines import turn_credit_lines, turn_lines, turn_reward_lines
from assay.trainer.methods.turns.parts import GROUPS, METRICS, PARTS
from assay.trainer.settings.kinds import NonNegativeFloat, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.reading import only, other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


_VERIFY = only("method.turns.mode", "verify")
_EARNS = only("method.turns.reward", "turns")


@dataclass(frozen=True, slots=True)
class TurnsConfig(Strict):
    """Several turns of the policy in one response: attempt, verification, revision."""

    mode: Literal["off", "verify", "reconsider"] = "off"
    """off: one response. verify: the policy verifies its answer, then revises it (PAG).
    reconsider: a second attempt without a verification, always (direct multi-turn, SCoRe)."""
    revise: Annotated[Literal["selective", "always"], _VERIFY] = "selective"
    """verify: asks for a revision after "wrong" (in an evaluation also after an unreadable
    verdict), or always."""
    parsing: Annotated[Literal["strict", "tolerant"], _VERIFY] = "strict"
    """How a verification must close to be readable; see clients/verdicts.py."""
    independent: bool = True
    """Each turn is credited with its own reward alone, a turn-level discount of 0 (PAG); else with
    later ones too, a discount of 1."""
    reward: Literal["turns", "final"] = "turns"
    """turns: each turn earns its own reward. final: only the last attempt's correctness counts, at
    the response's end."""
    first_reward: Annotated[Literal["accuracy", "verification", "none"], _EARNS] = "accuracy"
    """turns: what the first attempt earns. accuracy: its correctness. verification, in verify: only
    its verification's reward (PAG's ablation). none: nothing."""
    verifier_reward: Annotated[bool, _VERIFY, _EARNS] = True
    """turns: a verification earns 1 where its verdict is true; else nothing."""
    shaping: NonNegativeFloat = 0.0
    """turns: weight of the second attempt's gain over the first (PAG, SCoRe: 1)."""
    kl: Literal["all", "first"] = "all"
    """Whose tokens `loss.kl_coef` is for: all turns', or the first attempt's (SCoRe's stage 1)."""
    verify_prompt: Annotated[str, _VERIFY] = ""
    """Asks for a verification and its closing sentences; empty for ours."""
    revise_prompt: Annotated[str, _VERIFY] = ""
    """Asks for a revision; empty for ours."""
    reconsider_prompt: Annotated[str, only("method.turns.mode", "reconsider")] = ""
    """Asks for a second attempt without a verification; empty for ours."""

    @property
    def on(self) -> bool:
        """Whether a response has several turns."""
        return self.mode != "off"

    @property
    def most(self) -> int:
        """Most turns of the policy in one response."""
        return {"off": 1, "verify": 3, "reconsider": 2}[self.mode]


def check_turns(config: Config) -> str:
    """Why settings of turns do not fit, in a line; empty where they do."""
    algorithm, turns = config.method, config.method.turns
    if not turns.on:
        if algorithm.advantage.normalise == "role" and not algorithm.episodes.on:
            return (
                'method.advantage.normalise = "role" needs several turns: set '
                'method.turns.mode or method.episodes.environment, or normalise = "batch"'
            )
        return ""
    if turns.first_reward == "verification" and turns.mode != "verify":
        return (
            f'method.turns.mode = "{turns.mode}" has no verification whose reward the first '
            'attempt could earn: set method.turns.first_reward = "accuracy" or "none"'
        )
    return ""


METHOD = TrainingMethod(
    name="turns",
    settings=TurnsConfig,
    is_on=other_than("method.turns.mode", "off"),
    rank=70,
    hooks="assay.trainer.methods.turns.method:Turns",
    parts=PARTS,
    metrics=METRICS,
    metric_groups=GROUPS,
    earns=lambda _config, _earned: None,
    lines=(
        Lines("Turns", 10, turn_lines),
        Lines("Reward", 10, turn_reward_lines),
        Lines("Advantage", 40, turn_credit_lines),
    ),
    check=check_turns,
)
