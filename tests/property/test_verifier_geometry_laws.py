"""What must hold for overlaps, assignments and the rewards made of them, whatever the boxes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from assay.reward_server.domain import Candidate, VerifierItem
from assay.reward_server.verifiers.assignment import assign
from assay.verifiers_extra.geometry.boxes import boxes
from assay.verifiers_extra.geometry.matching import match
from assay.verifiers_extra.geometry.point import point
from assay.verifiers_extra.geometry.reading import (
    LabelledBox,
    answer_region,
    find_boxes,
    find_points,
)
from assay.verifiers_extra.geometry.shapes import (
    Box,
    Mask,
    area,
    box_distance,
    giou,
    intersection,
    iou,
    polygon_distance,
)

NEAR = 1e-9
coordinates = st.integers(-1000, 1000)
sides = st.integers(1, 1000)


@st.composite
def placed_boxes(draw: st.DrawFn) -> Box:
    x, y = draw(coordinates), draw(coordinates)
    return (float(x), float(y), float(x + draw(sides)), float(y + draw(sides)))


@given(placed_boxes(), placed_boxes())
def test_overlaps_are_symmetric_and_in_their_ranges(a: Box, b: Box) -> None:
    assert 0.0 <= iou(a, b) <= 1.0
    assert -1.0 <= giou(a, b) <= 1.0
    assert giou(a, b) <= iou(a, b)
    assert iou(a, b) == pytest.approx(iou(b, a), abs=NEAR)
    assert giou(a, b) == pytest.approx(giou(b, a), abs=NEAR)


@given(placed_boxes())
def test_a_box_overlaps_wholly_with_itself(a: Box) -> None:
    assert iou(a, a) == giou(a, a) == 1.0


@given(placed_boxes(), placed_boxes())
def test_only_equal_boxes_overlap_wholly(a: Box, b: Box) -> None:
    assert (iou(a, b) == 1.0) == (a == b)


@given(placed_boxes(), placed_boxes(), st.tuples(coordinates, coordinates), st.tuples(sides, sides))
def test_overlaps_do_not_change_when_axes_move_or_stretch(
    a: Box, b: Box, move: tuple[int, int], stretch: tuple[int, int]
) -> None:
    (dx, dy), (sx, sy) = move, stretch

    def moved(box: Box) -> Box:
        return (sx * box[0] + dx, sy * box[1] + dy, sx * box[2] + dx, sy * box[3] + dy)

    assert iou(moved(a), moved(b)) == pytest.approx(iou(a, b), abs=NEAR)
    assert giou(moved(a), moved(b)) == pytest.approx(giou(a, b), abs=NEAR)


@given(placed_boxes(), placed_boxes())
def test_iou_counts_pixels(a: Box, b: Box) -> None:
    """On whole corners the areas are counts of unit squares."""
    shared = intersection(a, b)
    assert iou(a, b) == pytest.approx(shared / (area(a) + area(b) - shared), abs=NEAR)
    assert shared <= min(area(a), area(b))


def test_giou_falls_as_boxes_part() -> None:
    values = [giou((0, 0, 1, 1), (gap, 0, gap + 1, 1)) for gap in (0.0, 0.5, 1.0, 2.0, 10.0, 1e6)]
    assert values == sorted(values, reverse=True)
    assert values[2] == 0.0
    assert values[-1] == pytest.approx(-1.0, abs=1e-5)


@st.composite
def tables(draw: st.DrawFn) -> list[list[float]]:
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    cell = st.one_of(st.integers(-3, 3).map(float), st.floats(-10, 10, width=32))
    line = st.lists(cell, min_size=columns, max_size=columns)
    return draw(st.lists(line, min_size=rows, max_size=rows))


@given(tables())
def test_assignments_cost_what_those_of_scipy_cost(costs: list[list[float]]) -> None:
    pairs = assign(costs)
    rows, columns = linear_sum_assignment(np.array(costs))
    assert len(pairs) == min(len(costs), len(costs[0]))
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    best = float(np.array(costs)[rows, columns].sum())
    assert sum(costs[row][column] for row, column in pairs) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("kind", ["random", "ties", "products"])
def test_large_assignments_cost_what_those_of_scipy_cost(kind: str) -> None:
    random = np.random.default_rng(1)
    costs = {
        "random": random.random((256, 256)),
        "ties": random.integers(0, 3, (120, 160)).astype(float),
        "products": np.outer(np.arange(100.0), np.arange(90.0)),
    }[kind]
    rows, columns = linear_sum_assignment(costs)
    total = sum(costs[row, column] for row, column in assign(costs.tolist()))
    assert total == pytest.approx(float(costs[rows, columns].sum()))


some_boxes = st.lists(placed_boxes(), max_size=6)


def judged(predicted: list[Box], expected: list[Box], **parameters: float | str) -> float:
    verifier = boxes
    item = VerifierItem(
        Candidate(json.dumps([list(box) for box in predicted])),
        data={"boxes": [list(box) for box in expected]},
        parameters=verifier.spec.complete(parameters),
    )
    judgement = verifier.judge(item)
    assert verifier.glance(item) == judgement
    low = -1.0 if parameters.get("measure") == "giou" else 0.0
    assert low <= judgement.reward <= 1.0
    return judgement.reward


measures = st.sampled_from(["iou", "giou", "giou-scaled"])


@given(some_boxes, some_boxes, measures, st.sampled_from(["mean", "threshold", "f1"]))
def test_rewards_are_in_their_range_and_do_not_depend_on_order(
    predicted: list[Box], expected: list[Box], measure: str, kind: str
) -> None:
    reward = judged(predicted, expected, measure=measure, reward=kind)
    other = judged(predicted[::-1], expected[::-1], measure=measure, reward=kind)
    assert reward == pytest.approx(other, abs=NEAR)


@given(some_boxes, measures)
def test_the_right_boxes_get_the_best_reward(expected: list[Box], measure: str) -> None:
    assert judged(expected, expected, measure=measure) == 1.0


@given(st.lists(placed_boxes(), min_size=1, max_size=5), placed_boxes(), measures)
def test_a_superfluous_box_never_pays(expected: list[Box], extra: Box, measure: str) -> None:
    assert judged([*expected, extra], expected, measure=measure) < 1.0


@given(st.lists(placed_boxes(), min_size=1, max_size=5))
def test_what_no_box_overlaps_with_counts_nothing(expected: list[Box]) -> None:
    inverted = LabelledBox((5.0, 5.0, 5.0, 5.0))
    wanted = [LabelledBox(box) for box in expected]
    assert match([inverted], wanted, "iou").mean(1.0) == 0.0


@given(placed_boxes(), st.integers(-1500, 1500), st.integers(-1500, 1500))
def test_a_box_is_a_polygon(box: Box, x: int, y: int) -> None:
    corners = [(box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])]
    point = (x + 0.25, y + 0.25)
    assert polygon_distance(corners, point) == pytest.approx(box_distance(box, point), abs=NEAR)


@given(st.integers(1, 12), st.integers(1, 12), st.randoms(use_true_random=False))
def test_a_mask_holds_its_pixels(height: int, width: int, random: object) -> None:
    bits = [random.random() < 0.5 for _ in range(height * width)]  # type: ignore[attr-defined]
    counts, last, run = [], False, 0
    for bit in bits:
        if bit == last:
            run += 1
        else:
            counts.append(run)
            last, run = bit, 1
    mask = Mask.of(height, width, [*counts, run])
    for x in range(width):
        for y in range(height):
            assert mask.holds((x + 0.5, y + 0.5)) == bits[x * height + y]
    assert not mask.holds((-0.5, 0.5))
    assert not mask.holds((0.5, float(height)))


@given(placed_boxes())
def test_a_point_is_judged_alike_in_every_frame(box: Box) -> None:
    inside = (box[0] + box[2]) / 2 + 2000, (box[1] + box[3]) / 2 + 2000
    target = [value + 2000 for value in box]
    data = {"box": target, "width": 5000, "height": 5000}
    for frame, unit in (("0-1", 1.0), ("0-100", 100.0), ("0-1000", 1000.0)):
        x, y = (value / 5000 * unit for value in inside)
        verifier = point
        item = VerifierItem(
            Candidate(f"<point>{x:.9f} {y:.9f}</point>"),
            data=data,  # type: ignore[arg-type]
            parameters=verifier.spec.complete({"frame": frame}),
        )
        assert verifier.judge(item).verdict == "correct"


@settings(max_examples=200)
@given(st.text(alphabet='[](){}<>box/point,. \n-+e0123456789"label:', max_size=400))
def test_reading_never_fails(text: str) -> None:
    for box in find_boxes(text):
        assert len(box.values) == 4
    for found in find_points(text):
        assert len(found) == 2
    answer_region(text)
