"""Settings of the credit of turns: the section `method.turn_credit` (see config.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.methods.turn_credit.parts import PARTS
from assay.trainer.settings.kinds import NonNegativeFloat, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.objective import COMPARED, CRITIC
from assay.trainer.settings.reading import only, other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_TURN = only("method.turn_credit.unit", "turn")
_AGENT = only("method.turn_credit.unit", "agent")
_CREDITED = other_than("method.turn_credit.unit", "off")


@dataclass(frozen=True, slots=True)
class TurnCreditConfig(Strict):
    """What is credited by itself in an episode."""

    unit: Literal["off", "agent", "turn"] = "off"
    """off: the whole response. agent: all that an agent said in an episode, with what it earned.
    turn: each turn, with its own reward and later ones."""
    compare: Annotated[Literal["turn", "state"], _TURN, COMPARED] = "turn"
    """Without a critic, with which turns of the prompt's samples one is compared. turn: those of
    its role that are as many turns into their episode. state: those that had read the same
    tokens."""
    roles: Annotated[Literal["apart", "together"], _AGENT, COMPARED] = "apart"
    """Without a critic, whether an agent is compared with its role alone, or with all agents of the
    prompt's samples: the global baseline that Dr. MAS replaces."""
    discount: Annotated[float, Field(gt=0, le=1), _TURN] = 1.0
    """How much a reward counts one turn of the agent earlier."""
    reach: Annotated[Literal["episode", "context"], _TURN, COMPARED] = "episode"
    """Without a critic, which later rewards a turn has: those of the agent's whole episode, or of
    the conversation that it stands in."""
    values: Annotated[Literal["tokens", "turns"], _TURN, CRITIC] = "tokens"
    """With a critic. tokens: each turn by itself, token by token (turn-independent GAE). turns: one
    value before each turn, and one advantage for all of its tokens (ArCHer)."""
    turn_weight: Annotated[NonNegativeFloat, _CREDITED, COMPARED] = 1.0
    """Without a critic: weight of a turn's, or an agent's, advantage."""
    episode_weight: Annotated[NonNegativeFloat, _CREDITED, COMPARED] = 0.0
    """Without a critic: weight of the whole episode's advantage, which is added."""
    keep: Annotated[Literal["all", "positive"], _CREDITED] = "all"
    """positive: only tokens with an advantage above 0 train (DigiRL)."""

    @property
    def by_utterance(self) -> bool:
        """Whether a turn has one value and one advantage."""
        return self.unit == "turn" and self.values == "turns"


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    method = config.method
    credit = method.turn_credit
    if credit.unit == "off":
        return ""
    if not method.episodes.on:
        return (
            f'method.turn_credit.unit = "{credit.unit}" credits what is said in an episode: set '
            "method.episodes.environment"
        )
    if method.advantage.estimator == "symmetric":
        return (
            'method.advantage.estimator = "symmetric" takes chances of winning, and '
            'method.turn_credit rewards of turns; use "group" or "rloo"'
        )
    if not method.has_critic and not (credit.turn_weight or credit.episode_weight):
        return "method.turn_credit.turn_weight = 0 and episode_weight = 0 leave nothing to learn"
    if method.has_critic and credit.by_utterance and method.advantage.length_adaptive_alpha:
        return (
            'method.turn_credit.values = "turns" has one advantage for a turn of any length: set '
            "method.advantage.length_adaptive_alpha = 0"
        )
    return ""


def lines(config: Config) -> list[str]:
    """What is credited."""
    credit, gae = config.method.turn_credit, config.method.has_critic
    if credit.unit == "agent":
        if gae:
            return ["each agent by itself: its turns as if they stood side by side"]
        others = [
            "compared with its role in the prompt's other samples",
            "several agents of one role in an episode (solver#1, solver#2): with each other",
        ]
        if credit.roles == "together":
            others = ["compared with all agents of the prompt's samples, whatever their roles"]
        own = "R is an agent's own: what its turns earned in the episode"
        return [own, *others, *_mixed(config)]
    own = "its agent's later turns" + (" in the conversation" if credit.reach == "context" else "")
    later = f"{own}, {credit.discount:g} for each turn between" if credit.discount < 1 else own
    if gae and credit.values == "tokens":
        return ["each turn by itself: rewards of later turns do not reach it"]
    if gae:
        return [
            "t counts turns, not tokens: all tokens of a turn share one advantage",
            f"delta = r + {credit.discount:g} * V(before the agent's next turn) - V(before it)",
            "the critic learns V before each turn, on its first token",
        ]
    with_what = {
        "turn": "its role in the prompt's samples, as many turns into their episode",
        "state": "the prompt's samples that followed the same tokens",
    }[credit.compare]
    return [
        f"R is a turn's own: its reward and those of {later}",
        f"compared with the turns of {with_what}",
        *_mixed(config),
    ]


def _mixed(config: Config) -> list[str]:
    credit = config.method.turn_credit
    if not credit.episode_weight:
        return []
    return [f"A = {credit.turn_weight:g} * that + {credit.episode_weight:g} * the whole episode's"]


def kept_lines(config: Config) -> list[str]:
    """What of it trains."""
    kept = config.method.turn_credit.keep
    return ["only tokens with an advantage above 0 are in the loss"] if kept == "positive" else []


METHOD = TrainingMethod(
    name="turn_credit",
    settings=TurnCreditConfig,
    is_on=other_than("method.turn_credit.unit", "off"),
    rank=74,
    hooks="assay.trainer.methods.turn_credit.method:TurnCredit",
    parts=PARTS,
    lines=(Lines("Advantage", 30, lines), Lines("Advantage", 70, kept_lines)),
    check=check,
)
