"""From rows to examples: token ids as the served judge reads them, and labels.

The service's own code renders them (`assay.clients.judging.rendering`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.clients.judging.rendering import Renderer
from assay.clients.rows.points import CritiqueRow, PointRow
from assay.clients.rows.preferences import PairRow, StepRow
from assay.kit.errors import ConfigError
from assay.trainer.data.origin import shortened
from assay.trainer.recipes.reward_model.config import RmConfig
from assay.trainer.recipes.reward_model.objectives import balanced_weights

Example = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows in tokens."""

    # one dictionary of lists for each row, as the collators take them, with what else the
    # evaluation needs: `group`, of its prompt, and of pairs `longer`
    items: list[Example]
    dropped: int = 0  # rows that are longer than data.max_tokens
    template: str = ""  # "name@version" that they were written by, of language models
    unreadable: int = 0  # critiques that the service could not read, with data.bad_rows = "skip"


def encode_pairs(
    rows: Sequence[PairRow], renderer: Renderer, tokenizer: Any, config: RmConfig
) -> Examples:
    """Both orders of each pair: `orders`, and `signs`: 1 where the chosen one is shown first.

    `verdicts` are token ids of "the first" and "the second", of each order.

    Raises:
        ConfigError: the template is unsuitable (see `Renderer.pairs`), or no row fits.
    """
    shown = renderer.pairs(rows, tokenizer, config.data.max_tokens)
    items = [
        None
        if ids is None
        else {
            "orders": [list(order) for order in ids.orders],
            "signs": [1 if first else -1 for first in ids.chosen_first],
            "verdicts": [list(verdicts) for verdicts in ids.verdicts],
            **_about(row),
        }
        for row, ids in zip(rows, shown.rows, strict=True)
    ]
    return Examples(*_fitting(items, config), shown.template)


def one_order(items: Sequence[Example], seed: int) -> list[Example]:
    """Pairwise examples in one order each, drawn by the seed."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    drawn = [dice.randrange(len(item["orders"])) for item in items]
    return [
        {key: [item[key][place]] for key in ("orders", "signs", "verdicts")}
        for item, place in zip(items, drawn, strict=True)
    ]


def encode_preferences(
    rows: Sequence[PairRow], renderer: Renderer, tokenizer: Any, config: RmConfig
) -> Examples:
    """Both dialogues of each pair, as for a served scalar head: `chosen_ids`, `rejected_ids`.

    Raises:
        ConfigError: no row fits.
    """
    dialogues = [(row.prompt, text) for row in rows for text in (row.chosen, row.rejected)]
    shown = renderer.dialogues(dialogues, tokenizer, config.data.max_tokens)
    items = [
        None
        if chosen is None or rejected is None
        else {"chosen_ids": list(chosen), "rejected_ids": list(rejected), **_about(row)}
        for row, chosen, rejected in zip(rows, shown[::2], shown[1::2], strict=True)
    ]
    return Examples(*_fitting(items, config))


def encode_points(
    rows: Sequence[PointRow], renderer: Renderer, tokenizer: Any, config: RmConfig
) -> Examples:
    """One prompt of each response: `orders`, of one, and `signs`: 1 where it is right, else -1.

    `verdicts` are token ids of "right" and "wrong".

    Raises:
        ConfigError: the template is unsuitable (see `Renderer.points`), or no row fits.
    """
    shown = renderer.points(rows, tokenizer, config.data.max_tokens)
    items = [
        None
        if ids is None
        else {
            "orders": [list(ids.ids)],
            "signs": [1 if row.right else -1],
            "verdicts": [list(ids.verdicts)],
            "group": row.group,
        }
        for row, ids in zip(rows, shown.rows, strict=True)
    ]
    return Examples(*_fitting(items, config), shown.template)


def encode_critiques(
    rows: Sequence[CritiqueRow], renderer: Renderer, tokenizer: Any, config: RmConfig
) -> Examples:
    """Critiques behind their prompts: `ids`, of which the judge writes the last `written`.

    `place` is the closing verdict's among these, `options` its token and that of the other verdict.

    Raises:
        ConfigError: a critique is one that the service could not read, or no row fits.
    """
    shown = renderer.critiques(rows, tokenizer, config.data.max_tokens)
    if shown.unreadable and config.data.bad_rows == "stop":
        row = rows[shown.unreadable[0]]
        raise ConfigError(
            f"{len(shown.unreadable)} critiques cannot be read as the judge's are, such as "
            f"{shortened(row.critique)!r}: they need a verdict on each step and one on the whole, "
            f'as {shown.template} asks; or pass data.bad_rows="skip" to leave such rows out'
        )
    items = [
        None
        if ids is None
        else {
            "ids": [*ids.prompt, *ids.completion],
            "written": len(ids.completion),
            "place": ids.verdict,
            "options": list(ids.verdicts),
            "group": row.group,
        }
        for row, ids in zip(rows, shown.rows, strict=True)
    ]
    kept, left_out = _fitting(items, config)
    unread = len(shown.unreadable)
    return Examples(kept, left_out - unread, shown.template, unread)


def encode_steps(
    rows: Sequence[StepRow], renderer: Renderer, tokenizer: Any, config: RmConfig
) -> Examples:
    """The labelled steps of each response: `ids`, and `places`, `labels`, `weights` of each.

    Raises:
        ConfigError: no row fits, or no step is right or wrong.
    """
    labels = [label for row in rows for label in row.labels if label is not None]
    if not any(labels):
        raise ConfigError("no step is labelled right or wrong, only neutral; give other rows")
    weights = balanced_weights(labels if config.method.balance else [])
    items: list[Example | None] = []
    for row, shown in zip(
        rows, renderer.steps(rows, tokenizer, config.data.max_tokens), strict=True
    ):
        if shown is None:
            items.append(None)
            continue
        marked = zip(shown.places, row.labels, strict=True)
        known = [(place, label) for place, label in marked if label is not None]
        example: Example = {"ids": list(shown.ids), "group": row.group}
        example["places"] = [place for place, _ in known]
        example["labels"] = [label for _, label in known]
        example["weights"] = [weights[label] for _, label in known]
        items.append(example)
    return Examples(*_fitting(items, config))


def _about(row: PairRow) -> Example:
    """A pair's prompt, and how right "the longer is better" would be."""
    good, bad = len(row.chosen), len(row.rejected)
    return {"group": row.group, "longer": 0.5 if good == bad else float(good > bad)}


def _fitting(items: Sequence[Example | None], config: RmConfig) -> tuple[list[Example], int]:
    kept = [item for item in items if item is not None]
    if not kept:
        raise ConfigError(f"no row fits into data.max_tokens = {config.data.max_tokens}; raise it")
    return kept, len(items) - len(kept)
