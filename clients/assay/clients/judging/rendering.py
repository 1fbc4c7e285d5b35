"""How rows become the tokens that a judge reads, in training and in service.

A judge must be trained on exactly the tokens that it will get: template, fence around the
candidate's text, order of the two responses, cuts, positions of steps. So the service renders,
through its entry point in `assay.judge_renderers`, and a trainer gets token ids.

A trainer writes these keys into the model's config.json, and the engines read them:

    assay_step_layout   "step-end": a step is read at its own last token
    assay_step_output   "score": a step head's one output is a score from -1 to 1, no logit; several
                        are logits of classes, whose scores go evenly from -1 to 1
    assay_template      "name@version" of the prompt that a generative judge was trained on
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from assay.clients.rows.points import CritiqueRow, PointRow
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
    """The prompts of a pair in both orders; `chosen_first` gives the order of each.

    `verdicts` are, of each order, the ids of the tokens for "the first is better" and "the second
    is better".
    """

    orders: tuple[Ids, Ids]
    chosen_first: tuple[bool, bool]
    verdicts: tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ShownPairs:
    """Pairs as a generative judge reads them; None for one that does not fit.

    `template` is "name@version".
    """

    rows: list[PairIds | None]
    template: str


@dataclass(frozen=True, slots=True)
class PointIds:
    """The prompt of a response, and the ids of the tokens for "right" and "wrong"."""

    ids: Ids
    verdicts: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ShownPoints:
    """Single responses as a generative judge reads them; None for one that does not fit.

    `template` is "name@version".
    """

    rows: list[PointIds | None]
    template: str


@dataclass(frozen=True, slots=True)
class CritiqueIds:
    """A critique behind its prompt, with the end of the judge's turn.

    `verdict` is the place in `completion` of the closing verdict, `verdicts` its token and that of
    the other one.
    """

    prompt: Ids
    completion: Ids
    verdict: int
    verdicts: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ShownCritiques:
    """Critiques, None for one that does not fit; `unreadable` are rows that are none."""

    rows: list[CritiqueIds | None]
    template: str
    unreadable: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StepIds:
    """A response in steps, and the index of the token at which each step is read."""

    ids: Ids
    places: Ids


class Renderer(Protocol):
    """Rows as a judge reads them.

    All methods take a tokenizer of transformers and `max_tokens`, the limit of one prompt, at least
    1. A row that does not fit is None; pairs and dialogues are first cut in the middle of a
    response. A row that the tokenizer cannot show at all is a ConfigError.
    """

    def words(self, kind: str = "pairwise") -> tuple[str, ...]:
        """The fixed text of prompts of this kind: a tokenizer made from scratch must know it.

        `kind` is "pairwise", "pointwise" or "critique".

        Raises:
            ConfigError: the template does not exist, or is of another kind.
        """

    def pairs(self, rows: Sequence[PairRow], tokenizer: Any, max_tokens: int) -> ShownPairs:
        """Prompts after which a language model names the better response.

        Raises:
            ConfigError: the template does not exist, thinks first, or has verdicts of several
                tokens.
        """

    def points(self, rows: Sequence[PointRow], tokenizer: Any, max_tokens: int) -> ShownPoints:
        """Prompts after which a language model says whether a response is right.

        The default template is that of rows with a ground truth where all have one.

        Raises:
            ConfigError: as for `pairs`.
        """

    def critiques(
        self, rows: Sequence[CritiqueRow], tokenizer: Any, max_tokens: int
    ) -> ShownCritiques:
        """Prompts with the critiques that a language model is to write.

        Raises:
            ConfigError: the template does not exist, or the tokenizer has no end of a turn.
        """

    def dialogues(
        self, rows: Sequence[tuple[Sequence[Said], str]], tokenizer: Any, max_tokens: int
    ) -> list[Ids | None]:
        """Prompts with their responses, as a head over the whole dialogue reads them."""

    def steps(
        self, rows: Sequence[StepRow], tokenizer: Any, max_tokens: int
    ) -> list[StepIds | None]:
        """Responses in steps, as a step head reads them."""


def open_renderer(template: str = "", folders: Sequence[Path] = ()) -> Renderer:
    """The renderer of the judge service that is installed here.

    `template` is of what is asked; empty for the service's default. `folders` hold further ones.

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
