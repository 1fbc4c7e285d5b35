"""What whoever trains a judge and the service that serves it agree on.

A judge must be trained on exactly the tokens that it will be shown. The service knows them: the
template, the fence around the candidate's text, the order of the two responses, the cuts, the
places at which steps are read. So the service renders, and a trainer is given token ids. The
service's distribution registers its `Renderer` in the entry-point group `assay.judge_renderers`.

What a trainer writes into the model's config.json, and the engines read:

    assay_step_layout   "step-end": a step is read at its own last token
    assay_step_output   "score": the one output of a step head is a score from -1 to 1, no logit
    assay_template      "name@version" of the prompt that a generative judge learnt on
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from assay.clients.rows.preferences import PairRow, Said, StepRow
from assay.clients.services import PACKAGES, how_to_install
from assay.kit.errors import ConfigError

GROUP = "assay.judge_renderers"
STEP_LAYOUT, STEP_END = "assay_step_layout", "step-end"
STEP_OUTPUT, SCORE = "assay_step_output", "score"
TEMPLATE = "assay_template"

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairIds:
    """A pair in both orders.

    Attributes:
        orders: the prompts.
        chosen_first: whether the chosen response stands first in each.
    """

    orders: tuple[Ids, Ids]
    chosen_first: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class ShownPairs:
    """Pairs as a generative judge is shown them.

    Attributes:
        rows: one for each pair; None where it does not fit.
        verdicts: ids of the tokens that say "the first is better" and "the second is better".
        template: "name@version" of the prompt.
    """

    rows: list[PairIds | None]
    verdicts: tuple[int, int]
    template: str


@dataclass(frozen=True, slots=True)
class StepIds:
    """A response in steps, and the index of the token at which each step is read."""

    ids: Ids
    places: Ids


class Renderer(Protocol):
    """Rows as a judge is shown them.

    All methods take a tokenizer of transformers and `max_tokens`, the most that one prompt may
    have, at least 1. A row that does not fit is None; pairs and dialogues are first cut in the
    middle of a response.
    """

    def words(self) -> tuple[str, ...]:
        """What prompts of pairs say beside the row: a tokenizer made from scratch must know it.

        Raises:
            ConfigError: as for `pairs`.
        """

    def pairs(self, rows: Sequence[PairRow], tokenizer: Any, max_tokens: int) -> ShownPairs:
        """Prompts after which a language model names the better response.

        Raises:
            ConfigError: the template is not there, thinks first, or has other verdicts than "the
                first" and "the second" in single tokens; or a row cannot be shown at all.
        """

    def dialogues(
        self, rows: Sequence[tuple[Sequence[Said], str]], tokenizer: Any, max_tokens: int
    ) -> list[Ids | None]:
        """Prompts with their responses, as a head over the whole dialogue reads them.

        Raises:
            ConfigError: a row cannot be shown to this tokenizer at all.
        """

    def steps(
        self, rows: Sequence[StepRow], tokenizer: Any, max_tokens: int
    ) -> list[StepIds | None]:
        """Responses in steps, as a step head reads them.

        Raises:
            ConfigError: a row cannot be shown to this tokenizer at all.
        """


def open_renderer(template: str = "", folders: Sequence[Path] = ()) -> Renderer:
    """The renderer of the judge service that is installed here.

    Args:
        template: of pairs: "name" or "name@version"; empty for the service's default.
        folders: with further templates.

    Raises:
        ConfigError: no judge service is installed, or a folder or file of templates is wrong.
    """
    found = next(iter(entry_points(group=GROUP)), None)
    if found is None:
        package = PACKAGES["genrm"]
        raise ConfigError(
            f"a judge learns on the prompts that {package} will show it, and that is not installed "
            f"here; {how_to_install(package)}"
        )
    made: Renderer = found.load()(template, folders)
    return made
