"""The parts of credit within episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_UI_S1 = "UI-S1, arXiv 2509.11543"


def _by_turn(config: Config) -> bool:
    return config.method.turn_credit.unit == "turn"


_OFF = to("method.turn_credit.unit", "off")
PARTS: tuple[Part, ...] = (
    Part(
        "agent-credit", "advantage",
        "An agent is credited with what it earned itself, compared with agents of its role alone.",
        "Dr. MAS, arXiv 2602.08847; search self-play, arXiv 2510.18821",
        lambda c: c.method.turn_credit.unit == "agent", _OFF,
        code=("algos.episodes.unit_advantages", "algos.episodes.agent_gae"),
        takes={"outcome-reward": "each agent earns its own"},
    ),
    Part(
        "roles-apart", "advantage",
        "Mean and deviation are those of an agent's role, not of all agents.",
        "Dr. MAS, arXiv 2602.08847",
        lambda c: (
            c.method.turn_credit.unit == "agent"
            and not c.method.has_critic
            and c.method.turn_credit.roles == "apart"
        ),
        to("method.turn_credit.roles", "together"),
        code=("methods.turn_credit.keys.credit_tokens",),
    ),
    Part(
        "turn-credit", "advantage",
        "A turn is credited with its own reward and later ones, compared with turns like it.",
        "MARS, arXiv 2510.15414; the form is a derivation",
        lambda c: _by_turn(c) and not c.method.has_critic, _OFF,
        code=("algos.episodes.unit_advantages", "algos.episodes.returns_to_go"),
    ),
    Part(
        "independent-turns", "advantage",
        "A turn of an episode is credited with its own reward alone, a turn-level discount of 0.",
        "PAG, arXiv 2506.10406",
        lambda c: (
            _by_turn(c) and c.method.has_critic and not c.method.turn_credit.by_utterance
        ),
        _OFF, code=("algos.turns.turn_gae",),
    ),
    Part(
        "utterance-critic", "advantage",
        "The critic values whole turns, and all tokens of a turn share an advantage.",
        "ArCHer, arXiv 2402.19446, without its replay and its second critic",
        lambda c: c.method.has_critic and c.method.turn_credit.by_utterance, _OFF,
        code=("algos.episodes.utterance_gae",),
        needs={"critic": "it values the state before a turn"},
    ),
    Part(
        "state-groups", "advantage",
        "A turn is compared with those that followed the same tokens.",
        "GiGPO, arXiv 2505.10978, whose states are the environment's",
        lambda c: (
            _by_turn(c)
            and not c.method.has_critic
            and c.method.turn_credit.compare == "state"
        ),
        to("method.turn_credit.compare", "turn"), code=("methods.turn_credit.keys.read_before",),
    ),
    Part(
        "turn-discount", "advantage",
        "A reward counts less for turns that lie farther before it.",
        f"{_UI_S1}; ArCHer, arXiv 2402.19446",
        lambda c: (
            _by_turn(c)
            and c.method.turn_credit.discount < 1
            and (not c.method.has_critic or c.method.turn_credit.by_utterance)
        ),
        to("method.turn_credit.discount", 1.0), code=("algos.episodes.returns_to_go",),
    ),
    Part(
        "natural-returns", "advantage",
        "Rewards of a later conversation do not reach a turn, as where a trace was patched.",
        f"{_UI_S1}, equation 9",
        lambda c: (
            _by_turn(c)
            and not c.method.has_critic
            and c.method.turn_credit.reach == "context"
        ),
        to("method.turn_credit.reach", "episode"),
        code=("methods.turn_credit.method.TurnCredit", "algos.episodes.within"),
    ),
    Part(
        "episode-advantage", "advantage",
        "The whole episode's advantage is added to the turn's, or the agent's.",
        _UI_S1,
        lambda c: (
            c.method.turn_credit.unit != "off"
            and not c.method.has_critic
            and c.method.turn_credit.episode_weight > 0
        ),
        to("method.turn_credit.episode_weight", 0.0), code=("algos.episodes.Units",),
    ),
    Part(
        "positive-turns", "advantage",
        "Only what has an advantage above 0 trains.",
        "DigiRL, arXiv 2406.11896, after its abstract; without its doubly robust estimate",
        lambda c: (
            c.method.turn_credit.unit != "off" and c.method.turn_credit.keep == "positive"
        ),
        to("method.turn_credit.keep", "all"), code=("methods.turn_credit.method.TurnCredit",),
        needs={"whole-batch": "what is in the loss is known when all is credited"},
    ),
)  # fmt: skip
