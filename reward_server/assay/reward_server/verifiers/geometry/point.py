"""`point`: the points in the response lie in the boxes, polygons or masks of the reference.

Pointing as in Seed1.5-VL (arXiv 2505.07062), Molmo (arXiv 2409.17146) and the click tasks of
computer use. The reference is one target or `{"targets": [target, ...]}`, where a target is
`{"box": [x1, y1, x2, y2]}`, `{"polygon": [[x, y], ...]}` (even-odd rule) or
`{"rle": {"size": [height, width], "counts": [...]}}`, a run-length mask as COCO writes it
uncompressed (columns first, beginning with zeros; a compressed mask has to be expanded first).
`"format": "xywh"` holds for its boxes; `"width"` and `"height"` of the image are needed when the
response's frame is not the reference's. How points are read out of text is told in `reading`.

Each point is worth, for a target, 1 inside and on the edge, and outside max(0, 1 - d / distance)
where d is how far it is from the target; distance=0 makes that 0 (masks take no distance). Points
and targets are paired by the Hungarian method. The reward is `f1`, 2 * sum of the pairs' worth /
(points + targets), or `all`, 1 if every point is inside its own target and every target has one.

What a policy could game: a grid of points hits any target, and each superfluous one lowers f1 and
makes `all` zero; more than 256 points are incorrect without being matched. A box is not a point:
its corners are not read as one.

Limits. Points of one flat image. A mask is taken uncompressed and without a tolerance around it.
"""

from __future__ import annotations

from collections.abc import Callable

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    Candidate,
    Component,
    Example,
    Item,
    JsonValue,
    Judgement,
    ParameterSpec,
    Unjudgeable,
    Verifier,
    VerifierSpec,
)
from assay.reward_server.verifiers.geometry.assignment import assign
from assay.reward_server.verifiers.geometry.boxes import EXTRACT
from assay.reward_server.verifiers.geometry.reading import answer_region, find_points
from assay.reward_server.verifiers.geometry.reference import (
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
from assay.reward_server.verifiers.geometry.shapes import (
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

_SPEC = VerifierSpec(
    name="point",
    version="1",
    description="The points in the response lie in the reference's boxes, polygons or masks.",
    tasks=("point", "pointing"),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    parameters=(
        ParameterSpec(
            "reward",
            "string",
            "all",
            "1 if points and targets fit one to one, or their F1.",
            allowed_values=("all", "f1"),
        ),
        ParameterSpec(
            "distance",
            "float",
            0.0,
            "How far outside of a target a point is worth nothing, in the reference's units; it "
            "is worth 1 at the edge. 0: only points inside count.",
            minimum=0.0,
            maximum=1e6,
        ),
        ParameterSpec(
            "frame",
            "string",
            "same",
            "The response's coordinates: in the reference's frame, or shares of the image's width "
            "and height (then in the reference) from 0 to 1, 100 or 1000.",
            allowed_values=FRAMES,
        ),
        EXTRACT,
    ),
)


class PointVerifier(Verifier):
    """Tests points against targets."""

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""
        return _SPEC

    @property
    def examples(self) -> tuple[Example, ...]:
        """One item for each verdict."""
        both: JsonValue = {
            "targets": [{"box": [0, 0, 4, 4]}, {"polygon": [[6, 0], [9, 0], [9, 3]]}]
        }
        mask: JsonValue = {"rle": {"size": [2, 3], "counts": [2, 3, 1]}}
        return (
            Example(_example("<point>2 1</point> and <point>8 1</point>", both), "correct"),
            Example(_example("(1.5, 0.5)", mask), "correct"),
            Example(_example("[2, 1]", both), "partial"),
            Example(_example('{"point_2d": [5, 5]}', both), "incorrect"),
            Example(_example("The left one.", both), "unparsed"),
        )

    def glance(self, item: Item) -> Judgement | None:
        """The judgement where there is little to compare."""
        targets, n_vertices = _targets(item)
        points = _points(item)
        short, long = sorted((len(points), len(targets)))
        quick = short * short * long <= _QUICK_STEPS and len(points) * n_vertices <= _QUICK_VERTICES
        return _judge(item, points, targets) if quick else None

    def judge(self, item: Item) -> Judgement:
        """Tests the points of the response.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong; INVALID_PARAMETER for a distance
                to a mask.
        """
        return _judge(item, _points(item), _targets(item)[0])


def _points(item: Item) -> list[Point]:
    x, y = frame_scale(item, str(item.parameters["frame"]))
    region = answer_region(item.response(), strict=item.parameters["extract"] == "answer-tag")
    return [] if region is None else [(px * x, py * y) for px, py in find_points(region)]


def _targets(item: Item) -> tuple[list[_Worth], int]:
    """What a point is worth for each target, and how many vertices or runs these have."""
    fields = mapping(item.document(), _SHAPE)
    box_format = format_of(fields)
    distance = float(item.parameters["distance"])  # type: ignore[arg-type]
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


def _judge(item: Item, points: list[Point], targets: list[_Worth]) -> Judgement:
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
    name = str(item.parameters["reward"])
    return Judgement.composed(
        verdict,
        (Component(name, f1 if name == "f1" else float(fits)),),
        extracted_answer=shown,
        explanation=f"{inside} of {len(targets)} targets hit by {len(points)} points",
    )


def _bad(verdict: str, explanation: str) -> Judgement:
    return Judgement.composed(verdict, (Component("points", 0.0),), explanation=explanation)


def _example(response: str, data: JsonValue) -> Item:
    return Item(Candidate(response), data=data, parameters=_SPEC.complete({}))
