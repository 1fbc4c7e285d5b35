"""`structure`: how much of a table, of a chart's data or of an outline the response has.

**How.** `kind` says what is read, of the response's text behind its thought:

| kind | read | score |
|---|---|---|
| table | the last table, in HTML or Markdown | TEDS of the trees of table, rows, cells |
| chart | JSON (fenced, or last), else a table | F1 of paths with values, within `tolerance` |
| outline | headings and list items of Markdown | as TEDS, the root left out |

TEDS is 1 - d / n, d being the edit distance of the trees and n the nodes of the larger one.
A cell or heading that differs costs the share of its characters that differ, one with other spans
1; `shape_only` (TEDS-S) lets texts count nothing. A score below `at_least` is 0. References are
texts, of which the best counts, or data: rows of a table, the chart. A chart's records are told
apart by their texts, in any order.

**What a policy could game.** An empty grid of the right size has a third of TEDS: set `at_least`.
The last table counts, so that several gain nothing. A key that is there twice costs in a chart.

**Known limits.** 50,000 characters; a tree's size and depth are bounded (about 500 cells): a
larger response is `unparsed`, a larger reference a fault. No YAML.

**Differences from PubTabNet's TEDS.** `thead`, `tbody` and tags within cells are left out, `th` is
a cell; less than 0 is 0. **Sources.** TEDS: arXiv 1911.10683; OCRVerse, of which the
abstract alone was read, sends each kind of document to a measure of its own.

**Measured.** Equal to the library zss on 300 generated pairs of trees, to 1e-9.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal

from assay.kit.json_text import NotJson, fenced, last_value, read_json
from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.reward_server.verifiers.text.parts import (
    NoPart,
    flagged,
    graded,
    part_of,
    unparsed,
)
from assay.verifiers_extra.documents.outlines import Leaf, Paths, outline, paths, paths_of
from assay.verifiers_extra.documents.tables import Grid, read_table, table_of
from assay.verifiers_extra.documents.trees import OrderedTree, TreeNode, text_cost, tree_distance

MAX_CHARS = 50_000
MAX_STEPS = 3_000_000
MAX_LETTERS = 3_000_000
_MOST_REFERENCES = 8
_GLANCE_CHARS = 600
_NUMBER = re.compile(
    r"[-+\u2212]?(?:\d{1,3}(?:,\d{3}){1,99}|\d{1,300})(?:\.\d{1,300})?(?:e[-+]?\d{1,2})?"
)

Kind = Literal["table", "chart", "outline"]


def _glance(item: VerifierItem, **parameters: object) -> Judgement | None:
    if len(item.response()) > _GLANCE_CHARS or sum(map(len, item.references)) > _GLANCE_CHARS:
        return None
    return None if item.data is not None else structure.function(item, **parameters)


@verifier(
    "structure",
    tasks=("structure", "teds"),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    glance=_glance,
)
def structure(
    item: VerifierItem,
    *,
    kind: Annotated[Kind, "What the document is."] = "table",
    shape_only: Annotated[bool, "Whether only the shape of tables and outlines counts."] = False,
    tolerance: Annotated[
        float, Range(0.0, 1.0), "How far a number of a chart may be off, as a share of it."
    ] = 0.0,
    at_least: Annotated[float, Range(0.0, 1.0), "A score below this one is 0."] = 0.0,
) -> Judgement:
    """How much of a table, of a chart's data or of an outline the response has.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is none of its kind, or too large.
    """
    texts: tuple[JsonValue, ...] = item.references or (item.document(),)
    if len(texts) > _MOST_REFERENCES:
        raise _unusable(f"are more than {_MOST_REFERENCES}")
    found = part_of(item.response(), "final", limit=MAX_CHARS)
    if isinstance(found, NoPart):
        return unparsed(kind, found.why)
    best: tuple[float, float, str] = (-1.0, 0.0, "")
    for text in texts:
        if kind == "chart":
            score = _chart(found.text, _chart_of(text), tolerance)
        else:
            score = _trees(found.text, _tree_of(text, kind), kind, shape_only=shape_only)
        if isinstance(score, str):
            return flagged(item, unparsed(kind, score))
        best = max(best, (*score, f"{kind} {score[0]:.3f}"))
    value = best[0] if best[0] >= at_least else 0.0
    parts = (Component(kind, value), Component("keys" if kind == "chart" else "size", best[1], 0.0))
    return flagged(item, Judgement.composed(graded(value), parts, explanation=best[2]))


def _trees(
    text: str, right: OrderedTree, kind: Kind, *, shape_only: bool
) -> tuple[float, float] | str:
    """The similarity, and the smaller tree's share of the larger; or why there is none."""
    root = _read(text, kind)
    if isinstance(root, str):
        return root
    tree = OrderedTree(root)
    trouble = _too_large(tree, right)
    if trouble:
        return trouble
    sizes = sorted((len(tree) - _free(kind), len(right) - _free(kind)))
    distance = tree_distance(right, tree, _renaming(shape_only=shape_only))
    return max(0.0, 1.0 - distance / sizes[1]), sizes[0] / sizes[1]


def _free(kind: Kind) -> int:
    """The root of an outline is on both sides, and counts as little as the paper page."""
    return 1 if kind == "outline" else 0


def _read(text: str, kind: Kind) -> TreeNode | str:
    if kind == "outline":
        root = outline(text)
        return root if root.children else "there is no heading and no list"
    grid = read_table(text)
    return grid if isinstance(grid, str) else _tree(grid)


def _tree(grid: Grid) -> TreeNode:
    rows = [
        TreeNode("tr", "", [TreeNode(("td", c.columns, c.rows), c.text) for c in row])
        for row in grid
    ]
    return TreeNode("table", "", rows)


def _tree_of(reference: JsonValue, kind: Kind) -> OrderedTree:
    grid = table_of(reference) if kind == "table" else None
    if grid is not None:
        root: TreeNode | str = _tree(grid)
    elif isinstance(reference, str):
        root = _read(reference, kind) if len(reference) <= MAX_CHARS else "it is too long"
    else:
        root = "it is neither a text nor rows of cells"
    if isinstance(root, str):
        raise _unusable(f"is no {kind}: {root}")
    tree = OrderedTree(root)
    if _too_large(tree, tree):
        raise _unusable(f"is a {kind} of {len(tree)} parts, too large to be compared")
    return tree


def _too_large(one: OrderedTree, other: OrderedTree) -> str:
    """Why two trees are not compared; empty where they are."""
    letters = sum(len(node.text) for node in one.nodes)
    said = len({node.text for node in other.nodes})
    if one.weight * other.weight <= MAX_STEPS and letters * said <= MAX_LETTERS:
        return ""
    return f"{len(one):,} parts with {letters:,} characters are too many to be compared"


def _renaming(*, shape_only: bool) -> Callable[[TreeNode, TreeNode], float]:
    seen: dict[tuple[str, str], float] = {}

    def rename(one: TreeNode, other: TreeNode) -> float:
        if one.kind != other.kind:
            return 1.0
        if shape_only or one.text == other.text:
            return 0.0
        pair = (one.text, other.text)
        cost = seen.get(pair)
        if cost is None:
            cost = seen[pair] = text_cost(*pair)
        return cost

    return rename


def _chart(text: str, right: Paths, tolerance: float) -> tuple[float, float] | str:
    """F1 of values, and of keys; or why there is no chart."""
    named = _data(text)
    if isinstance(named, str):
        return named
    first = dict(reversed(named))
    both = len(named) + len(right)
    keys = [(value, first[path]) for path, value in right if path in first]
    values = sum(_equal(want, have, tolerance) for want, have in keys)
    return 2 * values / both, 2 * len(keys) / both


def _data(text: str) -> Paths | str:
    block = fenced(text)
    found = last_value(text if block is None else block)
    if found is not None:
        try:
            return paths(read_json(found)) or "the data is empty"
        except NotJson as error:
            return str(error)
    grid = read_table(text)
    return grid if isinstance(grid, str) else paths_of(grid) or "the table has no values"


def _chart_of(reference: JsonValue) -> Paths:
    if isinstance(reference, str):
        found = _data(reference[: MAX_CHARS + 1]) if len(reference) <= MAX_CHARS else "too long"
    else:
        found = paths(reference)
    if isinstance(found, str) or not found:
        raise _unusable(f"has no data of a chart: {found or 'empty'}")
    if len({path for path, _ in found}) < len(found):
        raise _unusable("names a value twice")
    return found


def _equal(want: Leaf, have: Leaf, tolerance: float) -> bool:
    if isinstance(want, bool) or isinstance(have, bool) or want is None or have is None:
        return want is have
    expected, given = _number(want), _number(have)
    if expected is None or given is None:
        return str(want).strip().casefold() == str(have).strip().casefold()
    return abs(given - expected) <= tolerance * abs(expected)


def _number(value: float | str) -> float | None:
    if isinstance(value, str):
        text = value.strip().lower().removesuffix("%").removeprefix("$").strip()
        if not _NUMBER.fullmatch(text):
            return None
        value = float(text.replace(",", "").replace("\u2212", "-"))
    try:
        return float(value)
    except OverflowError:
        return None


def _unusable(what: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of structure {what}")
