"""Rows in tokens for whoever trains a judge, by the code that serves it.

The judge writes the prompts and the engine's encoder makes ids of them, so a model learns on what
it will be shown. The entry point of the group `assay.judge_renderers`; see
`assay.clients.judging.rendering`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from assay.clients.judging.rendering import (
    CritiqueIds,
    Ids,
    PairIds,
    PointIds,
    ShownCritiques,
    ShownPairs,
    ShownPoints,
    StepIds,
)
from assay.clients.rows.points import CritiqueRow, PointRow
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
from assay.genrm.judges.consensus import cut
from assay.genrm.judges.critique import parse_critique
from assay.genrm.judges.pairwise import DEFAULT_TEMPLATE
from assay.genrm.templates import Template, load_templates
from assay.genrm.templates.letters import LETTERS
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

R = TypeVar("R")
Shown = TypeVar("Shown")

_DEFAULTS = {
    "pairwise": (DEFAULT_TEMPLATE,),
    "pointwise": ("correctness", "quality"),  # with a ground truth, and without
    "critique": ("critique",),
}
_CLOSING = re.compile(r"(incorrect|correct|wrong|right)\W*\Z", re.IGNORECASE)
_OPPOSITE = {"incorrect": "correct", "correct": "wrong", "right": "wrong", "wrong": "correct"}


class JudgeRenderer:
    """Renders as this service does.

    `template` is that of what is asked ("name" or "name@version"; empty: the default), `folders`
    hold further ones.

    Raises:
        ConfigError: a folder or file of templates is wrong.
    """

    def __init__(self, template: str = "", folders: Sequence[Path] = ()) -> None:
        self._name = template
        self._templates = load_templates(folders)

    def words(self, kind: str = "pairwise") -> tuple[str, ...]:
        """What prompts say beside the row; see `Renderer`."""
        templates = dict.fromkeys(self._template(kind, name) for name in _DEFAULTS[kind])
        return tuple(itertools.chain.from_iterable(map(_words_of, templates)))

    def pairs(self, rows: Sequence[PairRow], tokenizer: Any, max_tokens: int) -> ShownPairs:
        """Pairs in both orders; see `Renderer`.

        Where the template draws letters, each pair has its own, and each order one of the two
        readings: all four ways to combine them take turns.
        """
        template, encoder = self._choosing("pairwise", DEFAULT_TEMPLATE), PromptEncoder(tokenizer)
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

    def points(self, rows: Sequence[PointRow], tokenizer: Any, max_tokens: int) -> ShownPoints:
        """Single responses; see `Renderer`.

        Where the template draws letters, each response has its own, and one of the two readings, by
        turns.
        """
        with_truth, without = _DEFAULTS["pointwise"]
        known = all(row.ground_truth is not None for row in rows)
        template = self._choosing("pointwise", with_truth if known else without)
        encoder, model = PromptEncoder(tokenizer), _model_with("choose", max_tokens)
        settings = ResolvedJudgeSettings(
            template=template.ref, scoring="token-probability", overflow="keep-ends"
        )
        shows_truth = "ground_truth" in template.places
        turns = itertools.count()

        def show(row: PointRow) -> PointIds:
            turn = next(turns)
            gold = row.ground_truth if shows_truth else None
            item = CandidateResponse(_chat(row.prompt), row.response, ground_truth=gold)
            drawn = replace(settings, seed=turn)
            readings = _first(judge_response(item, drawn, model, self._templates), Choose)
            request = readings[turn % len(readings)]
            ids = encoder.encode_request(request, max_tokens).ids
            return PointIds(ids, _verdicts(encoder, request.options, template))

        return ShownPoints(_each(rows, show), template.ref)

    def critiques(
        self, rows: Sequence[CritiqueRow], tokenizer: Any, max_tokens: int
    ) -> ShownCritiques:
        """Written critiques; see `Renderer`."""
        template = self._template("critique", _DEFAULTS["critique"][0])
        encoder, end = PromptEncoder(tokenizer), tokenizer.eos_token_id
        if end is None:
            raise ConfigError("the tokenizer has no end of a turn, so a critique would not end")
        unreadable: list[int] = []

        def show(place: int) -> CritiqueIds | None:
            row = rows[place]
            steps = row.steps or cut(row.response)
            if parse_critique(row.critique, len(steps)) is None:
                unreadable.append(place)
                return None
            prompt = template.render(
                question=_chat(row.prompt), steps=tuple(steps), ground_truth=row.ground_truth
            )
            written = replace(
                _critique_ids(encoder, row.critique, end), prompt=encoder.encode(prompt)
            )
            fits = len(written.prompt) + len(written.completion) <= max_tokens
            return written if fits else None

        shown = _each(range(len(rows)), show)
        return ShownCritiques(shown, template.ref, tuple(unreadable))

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

    def _template(self, kind: str, default: str) -> Template:
        try:
            return self._templates.get(self._name, kind, default)
        except Unjudgeable as error:
            raise ConfigError(f"method.template: {error}") from error

    def _choosing(self, kind: str, default: str) -> Template:
        template = self._template(kind, default)
        if template.style != "direct" or sorted(template.values) != [0.0, 1.0]:
            what = "name one of two responses" if kind == "pairwise" else "say right or wrong"
            raise ConfigError(
                f"method.template: {template.ref} does not {what} at once; choose another, such as "
                f"{default}"
            )
        return template


def _words_of(template: Template) -> tuple[str, ...]:
    said = [one.meaning for one in template.verdicts] if template.letters else template.options
    letters = [f" {letter}" for letter in LETTERS] if template.letters else ()
    return (template.system, template.user, template.prefill, *said, *letters)


def _each(rows: Iterable[R], show: Callable[[R], Shown | None]) -> list[Shown | None]:
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
    """Ids of the tokens for "the first" and "the second", or "right" and "wrong"."""
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


def _critique_ids(encoder: PromptEncoder, text: str, end: int) -> CritiqueIds:
    """A critique's own ids, without its prompt.

    Raises:
        EngineError: INVALID_PARAMETER, its closing verdict is no word of its own.
    """
    text = text.strip()
    closing = _CLOSING.search(text)
    if closing is None:
        raise EngineError(Reason.INVALID_PARAMETER, "a critique ends with correct or wrong")
    other = text[: closing.start(1)] + _OPPOSITE[closing[1].lower()] + text[closing.end(1) :]
    own, instead = encoder.encode_data(text), encoder.encode_data(other)
    place = next(n for n, (one, two) in enumerate(zip(own, instead, strict=False)) if one != two)
    return CritiqueIds((), (*own, end), place, (own[place], instead[place]))


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
