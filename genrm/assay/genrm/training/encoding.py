"""From rows to token ids, by the same code that serves the trained model.

The judge itself writes the prompts (its run is asked for its first requests and then dropped), and
the engine's encoder makes ids of them. So what a model learns on is what it will be shown.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from assay.clients.preferences import PairRow, Said, StepRow
from assay.genrm.domain import ChatMessage, JudgeItem, JudgeSettings, PairItem, Unjudgeable
from assay.genrm.engines.base import (
    Capability,
    Choose,
    EngineTrouble,
    Message,
    ModelInfo,
    Piece,
    Prompt,
    Rate,
    RateSteps,
    Request,
)
from assay.genrm.engines.prompts import Encoded, PromptEncoder
from assay.genrm.judges import judge_pair, judge_response
from assay.genrm.judges.pairwise import DEFAULT_TEMPLATE
from assay.genrm.templates import Template, Templates
from assay.genrm.training.objectives import balanced_weights
from assay.rpc.errors import ConfigError
from assay.rpc.reasons import Reason

R = TypeVar("R", PairRow, StepRow)
Example = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows in tokens.

    Attributes:
        items: one dictionary of lists for each row, as the collators take them, with what else
            the evaluation needs: `group`, of its prompt, and of pairs `longer`.
        dropped: rows that are longer than data.max_tokens.
        options: token ids of the verdicts "the first" and "the second", of pairwise examples.
        template: "name@version" that they were written by, of pairwise examples.
    """

    items: list[Example]
    dropped: int = 0
    options: tuple[int, int] | None = None
    template: str = ""


def encode_pairs(
    rows: Sequence[PairRow],
    encoder: PromptEncoder,
    templates: Templates,
    *,
    template: str,
    max_tokens: int,
) -> Examples:
    """Both orders of each pair: `orders`, and `signs`: 1 where the chosen one is shown first.

    Raises:
        ConfigError: there is no such template, it thinks first or has other verdicts than "the
            first" and "the second" in single tokens, or no row fits.
    """
    written_by = pairwise_template(templates, template)
    settings = JudgeSettings(template=template, scoring="token-probability", overflow="keep-ends")
    model = _model_with("choose", max_tokens)
    options: set[tuple[int, ...]] = set()

    def example(row: PairRow) -> Example:
        item = PairItem(_chat(row.prompt), row.chosen, row.rejected)
        asked = _first(judge_pair(item, settings, model, templates), Choose)
        encoded = [encoder.encode_request(request, max_tokens) for request in asked]
        options.update(_verdicts(one) for one in encoded)
        signs = [1 if _shown_first(request, row) else -1 for request in asked]
        return {"orders": [list(one.ids) for one in encoded], "signs": signs, **_about(row)}

    items, dropped = _encode(rows, example, max_tokens)
    first, second = next(iter(options))
    turned = written_by.values[0] < written_by.values[1]
    return Examples(items, dropped, (second, first) if turned else (first, second), written_by.ref)


def pairwise_template(templates: Templates, name: str) -> Template:
    """The template that pairs are shown in.

    Args:
        templates: known ones.
        name: "name" or "name@version"; empty for the default.

    Raises:
        ConfigError: there is none, or it does not name one of two responses at once.
    """
    try:
        template = templates.get(name, "pairwise", DEFAULT_TEMPLATE)
    except Unjudgeable as trouble:
        raise ConfigError(f"method.template: {trouble}") from trouble
    if template.style != "direct" or sorted(template.values) != [0.0, 1.0]:
        raise ConfigError(
            f"method.template: {template.ref} does not name one of two responses at once; choose "
            f"another, such as {DEFAULT_TEMPLATE}"
        )
    return template


def one_order(items: Sequence[Example], seed: int) -> list[Example]:
    """Pairwise examples in one order each, which the seed draws."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    drawn = [dice.randrange(len(item["orders"])) for item in items]
    return [
        {"orders": [item["orders"][place]], "signs": [item["signs"][place]]}
        for item, place in zip(items, drawn, strict=True)
    ]


def encode_preferences(
    rows: Sequence[PairRow], encoder: PromptEncoder, templates: Templates, *, max_tokens: int
) -> Examples:
    """Both dialogues of each pair, as a scalar head is served: `chosen_ids`, `rejected_ids`.

    Raises:
        ConfigError: no row fits.
    """
    settings = JudgeSettings(scoring="scalar-head", overflow="keep-ends")
    model = _model_with("rate", max_tokens)

    def ids_of(row: PairRow, response: str) -> list[int]:
        run = judge_response(JudgeItem(_chat(row.prompt), response), settings, model, templates)
        (asked,) = _first(run, Rate)
        return list(encoder.encode_request(asked, max_tokens).ids)

    def example(row: PairRow) -> Example:
        chosen, rejected = (ids_of(row, text) for text in (row.chosen, row.rejected))
        return {"chosen_ids": chosen, "rejected_ids": rejected, **_about(row)}

    return Examples(*_encode(rows, example, max_tokens))


def encode_steps(
    rows: Sequence[StepRow], encoder: PromptEncoder, *, max_tokens: int, balance: bool
) -> Examples:
    """The labelled steps of each response: `ids`, and `places`, `labels`, `weights` of each.

    Raises:
        ConfigError: no row fits, or no step is right or wrong.
    """
    labels = [label for row in rows for label in row.labels if label is not None]
    if not any(labels):
        raise ConfigError("no step is labelled right or wrong, only neutral; give other rows")
    weights = balanced_weights(labels if balance else [])

    def example(row: StepRow) -> Example:
        encoded = encoder.encode_request(RateSteps(_asked(row.prompt), row.steps), max_tokens)
        known = [
            (place, label)
            for place, label in zip(encoded.positions, row.labels, strict=True)
            if label is not None
        ]
        return {
            "ids": list(encoded.ids),
            "places": [place for place, _ in known],
            "labels": [label for _, label in known],
            "weights": [weights[label] for _, label in known],
            "group": row.group,
        }

    return Examples(*_encode(rows, example, max_tokens))


def _about(row: PairRow) -> Example:
    """What a pair is without a model: its prompt, and how right "the longer is better" would be."""
    good, bad = len(row.chosen), len(row.rejected)
    return {"group": row.group, "longer": 0.5 if good == bad else float(good > bad)}


def _encode(
    rows: Iterable[R], example: Callable[[R], Example], max_tokens: int
) -> tuple[list[Example], int]:
    """Examples of the rows that fit, and how many did not."""
    items, dropped = [], 0
    for row in rows:
        try:
            items.append(example(row))
        except EngineTrouble as trouble:
            if trouble.reason != Reason.CONTEXT_TOO_LONG:
                raise ConfigError(f"the model cannot be shown these rows: {trouble}") from trouble
            dropped += 1
        except Unjudgeable as trouble:
            raise ConfigError(f"the judge cannot be shown these rows: {trouble}") from trouble
    if not items:
        raise ConfigError(f"no row fits into data.max_tokens = {max_tokens}; raise it")
    return items, dropped


def _first(run: Any, kind: type[Any]) -> tuple[Any, ...]:
    """The first requests of a run, which is then dropped."""
    requests: tuple[Request, ...] = next(run)
    run.close()
    return tuple(request for request in requests if isinstance(request, kind))


def _verdicts(encoded: Encoded) -> tuple[int, ...]:
    if [len(ids) for ids in encoded.options] != [1, 1]:
        raise ConfigError(
            "the template's verdicts are not two single tokens to this tokenizer; choose another "
            "template"
        )
    return tuple(ids[0] for ids in encoded.options)


def _shown_first(request: Choose, row: PairRow) -> bool:
    """Whether the chosen response stands before the other in the prompt."""
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
    """What was asked of the policy, as `score_steps` puts it."""
    return Prompt(tuple(Message(one.role, (Piece(one.content, trusted=False),)) for one in said))
