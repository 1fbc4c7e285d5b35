"""Outlines in Markdown, and data as paths with values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.reward_server import JsonValue
from assay.reward_server.verifiers.text.forms import Normalization
from assay.verifiers_extra.documents.tables import Grid
from assay.verifiers_extra.documents.trees import TreeNode

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_LISTED = re.compile(r"([ \t]{0,200})(?:[-*+]|\d{1,4}[.)])[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_LIST_LEVEL = 10
_FORM = Normalization()

Leaf = None | bool | int | float | str
Paths = list[tuple[tuple[str, ...], Leaf]]
"""Paths with their values."""


def outline(text: str) -> TreeNode:
    """The headings and list items of a text as a tree, each under what it belongs to.

    A heading belongs to the one of a lower level before it, an item to the item before it that is
    indented less, else to the heading. Other lines, and code in fences, are no part of it.
    """
    root = TreeNode("outline")
    open_: list[tuple[int, TreeNode]] = [(0, root)]
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        heading = None if is_code else _HEADING.fullmatch(line[:1_000])
        listed = None if is_code or heading else _LISTED.fullmatch(line[:1_000])
        if heading is not None:
            level, kind, said = len(heading[1]), "heading", heading[2].rstrip(" \t#")
        elif listed is not None:
            level = _LIST_LEVEL + len(listed[1].expandtabs(4))
            kind, said = "item", listed[2]
        else:
            continue
        while open_[-1][0] >= level:
            open_.pop()
        node = TreeNode(kind, _FORM.apply(said))
        open_[-1][1].children.append(node)
        open_.append((level, node))
    return root


def paths(value: JsonValue) -> Paths:
    """The values of JSON data with their paths.

    An element of a list that is an object is named by its texts where they tell the elements apart,
    so that the order of records does not count; any other element by its place.
    """
    found: Paths = []
    waiting: list[tuple[tuple[str, ...], JsonValue]] = [((), value)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, dict):
            parts = [((*path, _FORM.apply(key)), inner) for key, inner in one.items()]
            waiting += reversed(parts)
        elif isinstance(one, list):
            waiting += reversed([((*path, *name), inner) for name, inner in _named(one)])
        else:
            found.append((path, one))
    return found


def _named(items: list[JsonValue]) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    names = [_name(one) for one in items]
    are_names = None not in names and len(set(names)) == len(names)
    for place, (name, one) in enumerate(zip(names, items, strict=True)):
        if are_names and name is not None and isinstance(one, dict):
            rest: JsonValue = {
                key: inner for key, inner in one.items() if not isinstance(inner, str)
            }
            yield name, rest
        else:
            yield (str(place),), one


def _name(one: JsonValue) -> tuple[str, ...] | None:
    """What an object is called: its texts; None where it has none, or nothing else."""
    if not isinstance(one, dict):
        return None
    texts = [(_FORM.apply(key), _FORM.apply(t)) for key, t in one.items() if isinstance(t, str)]
    return tuple(text for _, text in sorted(texts)) if 0 < len(texts) < len(one) else None


def paths_of(grid: Grid) -> Paths:
    """A table as data: each cell by its row's first cell and its column's heading."""
    head = [_FORM.apply(cell.text) for cell in grid[0]]
    found: Paths = []
    for row in grid[1:]:
        for place, cell in enumerate(row[1:], start=1):
            column = head[place] if place < len(head) else str(place)
            found.append(((_FORM.apply(row[0].text), column), cell.text))
    return found
