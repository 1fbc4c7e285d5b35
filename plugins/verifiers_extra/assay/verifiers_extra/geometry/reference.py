"""Checks structured references of the geometry verifiers. Errors name the place and the cure."""

from __future__ import annotations

from typing import NoReturn

from assay.reward_server import UNUSABLE_REFERENCE, JsonValue, Unjudgeable, VerifierItem
from assay.verifiers_extra.geometry.reading import LabelledBox
from assay.verifiers_extra.geometry.shapes import MAX_COORDINATE, Box, Point, is_box

MAX_BOXES = 256
FORMATS = ("xyxy", "xywh")
FRAMES = ("same", "0-1", "0-100", "0-1000")


def unusable(trouble: str) -> NoReturn:
    """Raises UNUSABLE_REFERENCE."""
    raise Unjudgeable(UNUSABLE_REFERENCE, trouble)


def mapping(value: JsonValue, shape: str) -> dict[str, JsonValue]:
    """The value as an object."""
    if not isinstance(value, dict):
        unusable(f"the reference must be {shape}")
    return value


def items_of(value: JsonValue, where: str, most: int) -> list[JsonValue]:
    """The value as a list of at most so many entries."""
    if not isinstance(value, list):
        unusable(f"{where} of the reference must be a list")
    if len(value) > most:
        unusable(f"{where} of the reference has {len(value)} entries; at most {most} are taken")
    return value


def numbers(value: JsonValue, count: int, where: str) -> list[float]:
    """The value as a list of so many finite numbers."""
    if not isinstance(value, list) or len(value) != count:
        unusable(f"{where} of the reference must be a list of {count} numbers")
    read: list[float] = []
    for entry in value:
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            unusable(f"{where} of the reference must hold numbers only")
        if not abs(entry) <= MAX_COORDINATE:
            unusable(f"{where} of the reference holds a number beyond {MAX_COORDINATE:g}")
        read.append(float(entry))
    return read


def box_of(value: JsonValue, box_format: str, where: str) -> Box:
    """A box with ordered corners."""
    box = corners(tuple(numbers(value, 4, where)), box_format)
    if not is_box(box):
        unusable(f"{where} of the reference is no box of positive area: {value} ({box_format})")
    return box


def corners(values: tuple[float, ...], box_format: str) -> Box:
    """Four numbers as corners: from xyxy as they are, from xywh by adding."""
    x, y, third, fourth = values
    return (x, y, x + third, y + fourth) if box_format == "xywh" else (x, y, third, fourth)


def reference_boxes(item: VerifierItem) -> list[LabelledBox]:
    """The boxes of a reference `{"boxes": [...], "labels": [...]?, "format": "xyxy"?}`.

    An entry of boxes is four numbers or `{"box": [...], "label": "..."}`; a bare list of boxes and
    one bare box are taken too.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    document = item.document()
    if isinstance(document, list):
        bare = bool(document) and not isinstance(document[0], list | dict)
        document = {"boxes": [document] if bare else document}
    fields = mapping(document, 'an object {"boxes": [[x1, y1, x2, y2], ...]}')
    box_format = format_of(fields)
    if "boxes" not in fields:
        unusable('the reference has no "boxes"')
    entries = items_of(fields["boxes"], "boxes", MAX_BOXES)
    labels = items_of(fields.get("labels", []), "labels", MAX_BOXES)
    if labels and len(labels) != len(entries):
        unusable(f"the reference has {len(labels)} labels for {len(entries)} boxes")
    read = []
    for index, entry in enumerate(entries):
        label: JsonValue = labels[index] if labels else ""
        if isinstance(entry, dict):
            label = entry.get("label", label)
            entry = entry.get("box", entry.get("bbox_2d"))  # noqa: PLW2901 - unwrapped
        if not isinstance(label, str):
            unusable(f"the label of boxes[{index}] of the reference must be a text")
        read.append(LabelledBox(box_of(entry, box_format, f"boxes[{index}]"), label))
    return read


def format_of(fields: dict[str, JsonValue]) -> str:
    """How the boxes of a reference are written."""
    box_format = fields.get("format", "xyxy")
    if not isinstance(box_format, str) or box_format not in FORMATS:
        unusable(f"format of the reference must be one of {', '.join(FORMATS)}")
    return box_format


def frame_scale(item: VerifierItem, frame: str) -> Point:
    """The factors that bring the response's coordinates into the reference's frame.

    Args:
        item: its reference holds "width" and "height" of the image unless the frame is "same".
        frame: one of FRAMES.
    """
    if frame == "same":
        return 1.0, 1.0
    document = item.document()
    fields = document if isinstance(document, dict) else {}
    if "width" not in fields or "height" not in fields:
        unusable(f'frame={frame} needs "width" and "height" of the image in the reference')
    width, height = numbers([fields["width"], fields["height"]], 2, "width and height")
    if width <= 0 or height <= 0:
        unusable("width and height of the reference must be positive")
    unit = float(frame.removeprefix("0-"))
    return width / unit, height / unit
