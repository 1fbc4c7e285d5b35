"""Boxes and points as models write them in text. Linear: every pattern is of bounded width.

Only the part of the response that is an answer is read: what follows the last `</think>`, of that
the last 20,000 characters, and in it the last `<answer>` element if there is one.

Boxes: `[x1, y1, x2, y2]` and lists of it, `(x1, y1), (x2, y2)` (Qwen-VL, with or without its
`<|box_start|>` tokens), `<box>x1 y1 x2 y2</box>` and `<bbox>` (Seed1.5-VL, arXiv 2505.07062), and
JSON objects `{"bbox_2d": [...], "label": "..."}` (Qwen2.5-VL, arXiv 2502.13923; the keys bbox, box
and box_2d too).
Points: `(x, y)`, `[x, y]`, `<point>x y</point>`, `<point x="..." y="...">` and `<points x1=...>`
(Molmo, arXiv 2409.17146), `{"point_2d": [x, y]}`, `{"x": ..., "y": ...}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.math.extraction import final_part
from assay.verifiers_extra.geometry.shapes import Box, Point

_N = r"([+-]?(?:\d{1,9}(?:\.\d{0,12})?|\.\d{1,12})(?:[eE][+-]?\d{1,2})?)"
_SEP = r"(?:[ \t\r\n]{0,40},[ \t\r\n]{0,40}|[ \t\r\n]{1,40})"
_S = r"[ \t\r\n]{0,40}"
_FOUR = rf"{_N}{_SEP}{_N}{_SEP}{_N}{_SEP}{_N}"
_BOX = re.compile(
    rf"[\[(]{_S}{_FOUR}{_S}[\])]"
    rf"|[\[(]{_S}{_N}{_SEP}{_N}{_S}[\])]{_S},?{_S}[\[(]{_S}{_N}{_SEP}{_N}{_S}[\])]"
    rf"|<b?box>{_S}{_FOUR}{_S}</b?box>"
)
_POINT = re.compile(
    rf"[\[(]{_S}{_N}{_SEP}{_N}{_S}[\])]"
    rf"|<point>{_S}{_N}{_SEP}{_N}{_S}</point>"
    rf"|\bx\d{{0,3}}{_S}={_S}[\"']{_S}{_N}{_S}[\"']{_S}y\d{{0,3}}{_S}={_S}[\"']{_S}{_N}{_S}[\"']"
    rf"|\"x\"{_S}:{_S}{_N}{_S},{_S}\"y\"{_S}:{_S}{_N}"
)
_OBJECT = re.compile(r"\{[^{}]{0,2000}\}")
_LABEL = re.compile(
    r'"(?:label|name|category|text_content)"[ \t\r\n]{0,40}:[ \t\r\n]{0,40}"([^"]{0,200})"'
)
_EMPTY = re.compile(
    r"\[\s{0,40}\]|<b?box>\s{0,40}</b?box>|\bnone\b|\bno (?:such |visible )?"
    r"(?:box|boxes|object|objects|instance|instances|difference|differences|match|matches)\b",
    re.IGNORECASE,
)
_ANSWER_OPENS = "<answer>"
_ANSWER_CLOSES = "</answer>"


@dataclass(frozen=True, slots=True)
class LabelledBox:
    """Four numbers as a response writes them, and the label of their JSON object, if any."""

    values: Box
    label: str = ""


def answer_region(response: str, *, strict: bool = False) -> str | None:
    """The part of a response that is read; None when there is none.

    Args:
        response: the policy's text.
        strict: only an `<answer>` element counts.
    """
    start, text = final_part(response)
    if start < 0:
        return None
    opens = text.rfind(_ANSWER_OPENS)
    if opens < 0:
        return None if strict else text
    inside = text[opens + len(_ANSWER_OPENS) :]
    content, closes, _ = inside.partition(_ANSWER_CLOSES)
    return content if closes else None


def find_boxes(text: str) -> list[LabelledBox]:
    """The boxes of a text in order, with the labels of JSON objects around them."""
    matches = list(_BOX.finditer(text))
    labels = _labels(text) if matches and '"' in text else []
    found: list[LabelledBox] = []
    for match in matches:
        row = _numbers(match)
        while labels and labels[0][1] < match.end():
            labels.pop(0)
        label = labels[0][2] if labels and labels[0][0] < match.start() else ""
        found.append(LabelledBox((row[0], row[1], row[2], row[3]), label))
    return found


def find_points(text: str) -> list[Point]:
    """The points of a text in order."""
    return [(values[0], values[1]) for values in map(_numbers, _POINT.finditer(text))]


def says_none(text: str) -> bool:
    """Whether a text says that there is nothing: `[]`, `<box></box>`, "none", "no objects"."""
    return _EMPTY.search(text) is not None


def _labels(text: str) -> list[tuple[int, int, str]]:
    """The place and the label of each innermost object that has one, in order."""
    found = []
    for thing in _OBJECT.finditer(text):
        label = _LABEL.search(text, thing.start(), thing.end())
        if label is not None:
            found.append((thing.start(), thing.end(), label[1]))
    return found


def _numbers(match: re.Match[str]) -> list[float]:
    return [float(group) for group in match.groups() if group is not None]
