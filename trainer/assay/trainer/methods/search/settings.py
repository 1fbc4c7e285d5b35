"""Settings of the search that a critic guides (VM-MCTS of ReST-RL, arXiv 2508.19576)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.trainer.settings.kinds import (
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Strict,
    Text,
)
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import above

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_KEY = "method.search.iterations"
_ON = above(_KEY, 0)


@dataclass(frozen=True, slots=True)
class SearchConfig(Strict):
    """Answers the held-out prompts once more, by a tree search with the critic's values.

    In the evaluation only; the numbers are those of the authors' code.
    """

    iterations: NonNegative = 0
    """Rounds of the search (100 there); 0 does not search. 1 has the critic choose among `samples`
    responses."""
    samples: Annotated[Positive, _ON] = 5
    """Responses written from a state in a round."""
    decisions: Annotated[Positive, _ON] = 3
    """Of a state's next states, those of the highest values are gone on from."""
    exploration: Annotated[NonNegativeFloat, _ON] = 0.2
    eps: Annotated[PositiveFloat, _ON] = 0.1
    separator: Annotated[Text, _ON] = "\n"
    """Ends a state's next state; a line."""
    problems: Annotated[Positive, Field(le=65536), _ON] = 32
    """Problems that are searched at a time."""


PARTS: tuple[Part, ...] = (
    Part(
        "value-search", "critic",
        "The evaluation answers once more, by a tree search with the critic's values.",
        "ReST-RL, arXiv 2508.19576, and the authors' code", *switch(_KEY, 0),
        code=("methods.search.nodes.SearchTree", "methods.search.nodes.uct"),
        needs={
            "critic": "its values guide the search",
            "one-turn": "it searches one response",
        },
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """How the evaluation searches."""
    chosen = config.method.search
    rounds = f"{chosen.iterations} rounds of {chosen.samples} responses"
    bonus = f"{chosen.exploration:g} sqrt((1 + ln N) / ({chosen.eps:g} + n))"
    return [f"the evaluation also searches, {rounds}, from the state of the highest V + {bonus}"]


METHOD = TrainingMethod(
    name="search",
    settings=SearchConfig,
    is_on=_ON,
    rank=200,
    hooks="assay.trainer.methods.search.method:GuidedSearch",
    parts=PARTS,
    lines=(Lines("Critic", 60, lines),),
)
