"""Rows in tokens for whoever trains a judge, by the code that serves it.

The judge writes the prompts and the engine's encoder makes ids of them, so a model learns on what
it will be shown. The entry point of the group `assay.judge_renderers`; see
`assay.clients.judging.rendering`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from assay.clients.judging.rendering import Ids, PairIds, ShownPairs, StepIds
from assay.clients.rows.preferences import PairRow, Said, StepRow
from assay.genrm.domain import CandidatePair, CandidateResponse, ChatMessage, ResolvedJudgeSettings
from assay.genrm.engines.base import (
    Capability,
    Choose,
    EngineError,
    ModelInfo,
    Prompt,
    PromptMessage,
    PromptPiece,
    RateDialogue,
    RateSteps,
)
from assay.genrm.engines.prompts import PromptEncoder
from assay.genrm.judges import judge_pair, judge_response
from assay.genrm.judges.pairwise import DEFAULT_TEMPLATE
from assay.genrm.templates import Template, load_templates
from assay.genrm.templates.letters import LETTERS
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

R = TypeVar("R")
Shown = TypeVar("Shown")


class JudgeRenderer:
    """Renders as this service does.

    `template` is that of pairs ("name" or "name@version"; empty: the default), `folders` hold
    further ones.

    Raises:
        ConfigError: a folder or file of templates is wrong.
    """

    def __init__(self, template: str = "", folders: Sequence[Path] = ()) -> None:
        self._name = template
        self._templates = load_templates(folders)

    def words(self) -> tuple[str, ...]:
        """What prompts of pairs say beside the row; see `Renderer`."""
        template = self._template()
        said = [one.meaning for one in template.verdicts] if template.letters else template.options
        letters = [f" {letter}" for letter in LETTERS] if template.letters else ()
        return (template.system, template.user, template.prefill, *said, *letters)

    def pairs(self, rows: Sequence[PairRow], tokenizer: Any, max_tokens: int) -> ShownPairs:
        """Pairs in both orders; see `Renderer`.

        Where the template draws letters, each pair has its own, and each order one of the two
        readings: all four ways to combine them take turns.
        """
        template, encoder = self._template(), PromptEncoder(tokenizer)
        settings = ResolvedJudgeSettings(
            template=self._name, scoring="token-probability", overflow="keep-ends"
        )
        model = _model_with("choose", max_tokens)
        turns = itertools.count()

        def show(row: PairRow) -> PairIds:
            turn = next(turns)
            item = CandidatePair(_chat(row.prompt), row.chosen, row.rejected)
            drawn = replace(settings, seed=turn)
            asked = _first(judge_pair(item, drawn, model, self._templates), Choose)
            if template.letters:
                asked = (asked[turn % 2], asked[2 + turn // 2 % 2])
            one, other = (encoder.encode_request(request, max_tokens) for request in asked)
            first, second = (_shown_first(request, row) for request in asked)
            told = [_verdicts(encoder, request.options, template) for request in asked]
            return PairIds((one.ids, other.ids), (first, second), (told[0], told[1]))

        return ShownPairs(_each(rows, show), template.ref)

    def dialogues(
        self, rows: Sequence[tuple[Sequence[Said], str]], tokenizer: Any, max_tokens: int
    ) -> list[Ids | None]:
        """Whole dialogues; see `Renderer`."""
        encoder, model = PromptEncoder(tokenizer), _model_with("rate", max_tokens)
        settings = ResolvedJudgeSettings(scoring="scalar-head", overflow="keep-ends")

        def show(row: tuple[Sequence[Said], str]) -> Ids:
            item = CandidateResponse(_chat(row[0]), row[1])
            (asked,) = _first(judge_response(item, settings, model, self._templates), RateDialogue)
            return encoder.encode_request(asked, max_tokens).ids

        return _each(rows, show)

    def steps(
        self, rows: Sequence[StepRow], tokenizer: Any, max_tokens: int
    ) -> list[StepIds | None]:
        """Responses in steps; see `Renderer`."""
        encoder = PromptEncoder(tokenizer)

        def show(row: StepRow) -> StepIds:
            encoded = encoder.encode_request(RateSteps(_asked(row.prompt), row.steps), max_tokens)
            return StepIds(encoded.ids, encoded.positions)

        return _each(rows, show)

    def _template(self) -> Template:
        try:
            template = self._templates.get(self._name, "pairwise", DEFAULT_TEMPLATE)
        except Unjudgeable as error:
            raise ConfigError(f"method.template: {error}") from error
        if template.style != "direct" or sorted(template.values) != [0.0, 1.0]:
            raise ConfigError(
                f"method.template: {template.ref} does not name one of two responses at once; "
                f"choose another, such as {DEFAULT_TEMPLATE}"
            )
        return template


def _each(rows: Iterable[R], show: Callable[[R], Shown]) -> list[Shown | None]:
    """None for a row that does not fit."""
    shown: list[Shown | None] = []
    for row in rows:
        try:
            shown.append(show(row))
        except EngineError as error:
            if error.reason != Reason.CONTEXT_TOO_LONG:
                raise ConfigError(f"the model cannot be shown these rows: {error}") from error
            shown.append(None)
        except Unjudgeable as error:
            raise ConfigError(f"the judge cannot be shown these rows: {error}") from error
    return shown


def _first(run: Any, kind: type[Any]) -> tuple[Any, ...]:
    """The first requests of a run, which is then dropped."""
    requests: tuple[Any, ...] = next(run)
    run.close()
    return tuple(request for request in requests if isinstance(request, kind))


def _verdicts(
    encoder: PromptEncoder, options: Sequence[str], template: Template
) -> tuple[int, int]:
    """Ids of the tokens for "the first" and "the second"."""
    try:
        one, other = encoder.encode_options(options[: len(template.verdicts)])
    except EngineError as error:
        raise ConfigError(f"method.template: {error}") from error
    if len(one) != 1 or len(other) != 1:
        raise ConfigError(
            "the template's verdicts are not two single tokens to this tokenizer; choose another "
            "template"
        )
    ordered = (one[0], other[0])
    return ordered if template.values[0] > template.values[1] else ordered[::-1]


def _shown_first(request: Choose, row: PairRow) -> bool:
    pieces = [piece for message in request.prompt.messages for piece in message.pieces]
    shown = [piece.text for piece in pieces if piece.cuttable]
    return shown.index(row.chosen) < shown.index(row.rejected)


def _model_with(capability: Capability, max_tokens: int) -> ModelInfo:
    return ModelInfo(
        name="training",
        engine="transformers",
        revision="",
        capabilities=frozenset({capability}),
        context_tokens=max_tokens,
        deterministic=True,
    )


def _chat(said: Sequence[Said]) -> tuple[ChatMessage, ...]:
    return tuple(ChatMessage(one.role, one.content) for one in said)


def _asked(said: Sequence[Said]) -> Prompt:
    return Prompt(
        tuple(PromptMessage(one.role, (PromptPiece(one.content, trusted=False),)) for one in said)
    )
