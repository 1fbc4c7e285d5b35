"""Boxes, polygons and masks in the plane, and how much two boxes overlap. Pure arithmetic.

A box is (x1, y1, x2, y2) with x1 < x2 and y1 < y2; the y axis may point either way. Moving or
stretching an axis leaves IoU and GIoU unchanged, so boxes may be in pixels or in thousandths of the
image, as long as both are in the same frame. GIoU is of arXiv 1902.09630, algorithm 1.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

Box = tuple[float, float, float, float]
Point = tuple[float, float]

MAX_COORDINATE = 1e9
MAX_VERTICES = 10_000
MAX_MASK_SIDE = 65_536
_SMALLEST_SIDE = 1e-9


def is_box(box: Box) -> bool:
    """Whether the corners are ordered, distinct, finite and within MAX_COORDINATE."""
    x1, y1, x2, y2 = box
    inside = all(abs(value) <= MAX_COORDINATE for value in box)  # False for NaN
    return inside and x2 - x1 >= _SMALLEST_SIDE and y2 - y1 >= _SMALLEST_SIDE


def area(box: Box) -> float:
    """The area of a box."""
    return (box[2] - box[0]) * (box[3] - box[1])


def intersection(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def iou(a: Box, b: Box) -> float:
    """Intersection over union of two boxes, in [0, 1]."""
    if a == b:
        return 1.0
    shared = intersection(a, b)
    return min(1.0, shared / (area(a) + area(b) - shared))


def giou(a: Box, b: Box) -> float:
    """Generalised IoU of two boxes, in [-1, 1]: IoU less the hull's share outside the union."""
    if a == b:
        return 1.0
    shared = intersection(a, b)
    union = area(a) + area(b) - shared
    hull = (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))
    outside = max(0.0, (hull - union) / hull)
    return max(-1.0, iou(a, b) - outside)


def box_distance(box: Box, point: Point) -> float:
    """The distance of a point from a box; 0 inside and on the edge."""
    x, y = point
    return math.hypot(max(box[0] - x, 0.0, x - box[2]), max(box[1] - y, 0.0, y - box[3]))


def polygon_distance(vertices: Sequence[Point], point: Point) -> float:
    """The distance of a point from a polygon; 0 inside (even-odd rule) and on the edge.

    Args:
        vertices: at least three, in order; the last is joined to the first.
        point: where.
    """
    inside = False
    nearest = math.inf
    x, y = point
    for (x1, y1), (x2, y2) in itertools.pairwise([*vertices, vertices[0]]):
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            inside = not inside
        nearest = min(nearest, _segment_distance(x1, y1, x2, y2, point))
    return 0.0 if inside else nearest


def _segment_distance(x1: float, y1: float, x2: float, y2: float, point: Point) -> float:
    dx, dy = x2 - x1, y2 - y1
    length = dx * dx + dy * dy
    along = ((point[0] - x1) * dx + (point[1] - y1) * dy) / length if length else 0.0
    along = min(1.0, max(0.0, along))
    return math.hypot(point[0] - x1 - along * dx, point[1] - y1 - along * dy)


@dataclass(frozen=True, slots=True)
class Mask:
    """A run-length mask as COCO writes it uncompressed: columns first, beginning with zeros.

    Attributes:
        height: rows.
        width: columns.
        ends: running sums of the run lengths; the last is height * width.
    """

    height: int
    width: int
    ends: tuple[int, ...]

    @classmethod
    def of(cls, height: int, width: int, counts: Sequence[int]) -> Mask:
        """Reads a mask.

        Raises:
            ValueError: the sizes are out of range, or the runs do not fill the mask.
        """
        if not (0 < height <= MAX_MASK_SIDE and 0 < width <= MAX_MASK_SIDE):
            raise ValueError(f"the sides of a mask are between 1 and {MAX_MASK_SIDE}")
        if any(count < 0 for count in counts):
            raise ValueError("a run length is negative")
        ends = tuple(itertools.accumulate(counts))
        if not ends or ends[-1] != height * width:
            total = ends[-1] if ends else 0
            raise ValueError(f"the runs cover {total} pixels of {height * width}")
        return cls(height, width, ends)

    def holds(self, point: Point) -> bool:
        """Whether the pixel that a point lies in is set; pixel (0, 0) is 0 <= x, y < 1."""
        if not (0 <= point[0] < self.width and 0 <= point[1] < self.height):
            return False
        index = int(point[0]) * self.height + int(point[1])
        return bisect.bisect_right(self.ends, index) % 2 == 1
