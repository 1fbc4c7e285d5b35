"""`point`: the points in the response lie in the boxes, polygons or masks of the reference.

Pointing as in Seed1.5-VL (arXiv 2505.07062), Molmo (arXiv 2409.17146) and the click tasks of
computer use. The reference is one target or `{"targets": [target, ...]}`, where a target is
`{"box": [x1, y1, x2, y2]}`, `{"polygon": [[x, y], ...]}` (even-odd rule) or
`{"rle": {"size": [height, width], "counts": [...]}}`, a run-length mask as COCO writes it
uncompressed (columns first, beginning with zeros; a compressed mask has to be expanded first).
`"format": "xywh"` holds for its boxes; `"width"` and `"height"` of the image are needed when the
response's frame is not the reference's. How points are read out of text is in `reading`.

Each point is worth, for a target, 1 inside and on the edge, and outside max(0, 1 - d / distance)
where d is how far it is from the target; distance=0 makes that 0 (masks take no distance). Points
and targets are paired by the Hungarian method. The reward is `f1`, 2 * sum of the pairs' worth /
(points + targets), or `all`, 1 if every point is inside its own target and every target has one.

What a policy could game: a grid of points hits any target, and each superfluous one lowers f1 and
makes `all` zero; more than 256 points are incorrect without being matched. A box is not a point:
its corners are not read as one.

Limits. Points of one flat image. A mask is taken uncompressed and without a tolerance around it.

Measured: 15 worked points, ten written forms, and the law that a point is judged alike in every
frame (`tests/unit/test_verifier_geometry.py`). Misread real responses: not yet, because no labelled
ones are at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from assay.reward_server import (
    INVALID_PARAMETER,
    Component,
    JsonValue,
    Judgement,
    OneOf,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.reward_server.verifiers.assignment import assign
from assay.verifiers_extra.geometry.boxes import Extract
from assay.verifiers_extra.geometry.reading import answer_region, find_points
from assay.verifiers_extra.geometry.reference import (
    FRAMES,
    MAX_BOXES,
    box_of,
    format_of,
    frame_scale,
    items_of,
    mapping,
    numbers,
    unusable,
)
from assay.verifiers_extra.geometry.shapes import (
    MAX_VERTICES,
    Mask,
    Point,
    box_distance,
    polygon_distance,
)

_SHAPE = 'an object with "box", "polygon" or "rle", or {"targets": [such objects]}'
_MAX_RUNS = 200_000
_QUICK_STEPS = 4_000
_QUICK_VERTICES = 2_000
_Worth = Callable[[Point], float]


def _glance(
    item: VerifierItem, *, reward: str, distance: float, frame: str, extract: str
) -> Judgement | None:
    targets, n_vertices = _targets(item, distance)
    points = _points(item, frame, extract)
    short, long = sorted((len(points), len(targets)))
    quick = short * short * long <= _QUICK_STEPS and len(points) * n_vertices <= _QUICK_VERTICES
    return _judge(points, targets, reward) if quick else None


@verifier(
    "point",
    tasks=("point", "pointing"),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    glance=_glance,
)
def point(
    item: VerifierItem,
    *,
    reward: Annotated[
        Literal["all", "f1"], "1 if points and targets fit one to one, or their F1."
    ] = "all",
    distance: Annotated[
        float,
        Range(0.0, 1e6),
        "How far outside of a target a point is worth nothing, in the reference's units; it "
        "is worth 1 at the edge. 0: only points inside count.",
    ] = 0.0,
    frame: Annotated[
        str,
        OneOf(FRAMES),
        "The response's coordinates: in the reference's frame, or shares of the image's width "
        "and height (then in the reference) from 0 to 1, 100 or 1000.",
    ] = "same",
    extract: Extract = "auto",
) -> Judgement:
    """The points in the response lie in the reference's boxes, polygons or masks.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong; INVALID_PARAMETER for a distance
            to a mask.
    """
    points = _points(item, frame, extract)
    return _judge(points, _targets(item, distance)[0], reward)


def _points(item: VerifierItem, frame: str, extract: str) -> list[Point]:
    x, y = frame_scale(item, frame)
    region = answer_region(item.response(), strict=extract == "answer-tag")
    return [] if region is None else [(px * x, py * y) for px, py in find_points(region)]


def _targets(item: VerifierItem, distance: float) -> tuple[list[_Worth], int]:
    """The worth of a point for each target, and how many vertices or runs the targets have."""
    fields = mapping(item.document(), _SHAPE)
    box_format = format_of(fields)
    entries = items_of(fields["targets"], "targets", MAX_BOXES) if "targets" in fields else [fields]
    if not entries:
        unusable("targets of the reference is empty")
    targets, n_vertices = [], 0
    for index, entry in enumerate(entries):
        where = f"targets[{index}]"
        worth, size = _target(mapping(entry, _SHAPE), box_format, distance, where)
        targets.append(worth)
        n_vertices += size
    return targets, n_vertices


def _target(
    fields: dict[str, JsonValue], box_format: str, distance: float, where: str
) -> tuple[_Worth, int]:
    kinds = [kind for kind in ("box", "polygon", "rle") if kind in fields]
    if len(kinds) != 1:
        unusable(f"{where} of the reference must hold one of box, polygon and rle")
    if kinds == ["box"]:
        box = box_of(fields["box"], box_format, f"{where}.box")
        return lambda point: _decayed(box_distance(box, point), distance), 1
    if kinds == ["polygon"]:
        rows = items_of(fields["polygon"], f"{where}.polygon", MAX_VERTICES)
        if len(rows) < 3:
            unusable(f"{where}.polygon of the reference needs at least 3 vertices")
        pairs = [numbers(row, 2, f"{where}.polygon") for row in rows]
        vertices = [(row[0], row[1]) for row in pairs]
        return lambda point: _decayed(polygon_distance(vertices, point), distance), len(vertices)
    if distance:
        raise Unjudgeable(INVALID_PARAMETER, "parameter 'distance' must be 0 for a mask (rle)")
    mask = _mask(mapping(fields["rle"], 'an object {"size": [h, w], "counts": [...]}'), where)
    return lambda point: float(mask.holds(point)), len(mask.ends)


def _mask(fields: dict[str, JsonValue], where: str) -> Mask:
    if isinstance(fields.get("counts"), str):
        unusable(f"{where}.rle of the reference is compressed: expand its counts to a list")
    size = [int(side) for side in numbers(fields.get("size"), 2, f"{where}.rle.size")]
    counts = items_of(fields.get("counts"), f"{where}.rle.counts", _MAX_RUNS)
    runs = [count for count in counts if isinstance(count, int) and not isinstance(count, bool)]
    if len(runs) != len(counts):
        unusable(f"{where}.rle.counts of the reference must be whole numbers")
    try:
        return Mask.of(size[0], size[1], runs)
    except ValueError as error:
        unusable(f"{where}.rle of the reference: {error}")


def _decayed(away: float, distance: float) -> float:
    if away <= 0.0:
        return 1.0
    return max(0.0, 1.0 - away / distance) if distance else 0.0


def _judge(points: list[Point], targets: list[_Worth], reward: str) -> Judgement:
    if not points:
        return _bad("unparsed", "the answer holds no point")
    if len(points) > MAX_BOXES:
        text = f"the answer holds {len(points)} points; more than {MAX_BOXES} are not matched"
        return _bad("incorrect", text)
    table = [[worth(point) for point in points] for worth in targets]
    pairs = assign([[-value for value in row] for row in table])
    scores = [table[row][column] for row, column in pairs]
    inside = sum(score >= 1.0 for score in scores)
    fits = inside == len(points) == len(targets)
    f1 = 2 * sum(scores) / (len(points) + len(targets))
    verdict = "correct" if fits else "partial" if f1 > 0 else "incorrect"
    shown = ", ".join(f"({x:g}, {y:g})" for x, y in points[:20])
    return Judgement.composed(
        verdict,
        (Component(reward, f1 if reward == "f1" else float(fits)),),
        extracted_answer=shown,
        explanation=f"{inside} of {len(targets)} targets hit by {len(points)} points",
    )


def _bad(verdict: str, explanation: str) -> Judgement:
    return Judgement.composed(verdict, (Component("points", 0.0),), explanation=explanation)
