"""Boxes, points, counts and differences: forms of text, golden tables, unusable references."""

from __future__ import annotations

import time
from typing import Any

import pytest

from assay.reward_server.domain import (
    Candidate,
    JsonValue,
    Judgement,
    Unjudgeable,
    Verifier,
    VerifierItem,
)
from assay.verifiers_extra.geometry.boxes import boxes
from assay.verifiers_extra.geometry.count import count, read_count
from assay.verifiers_extra.geometry.differences import differences, list_labels
from assay.verifiers_extra.geometry.point import point
from assay.verifiers_extra.geometry.reading import find_boxes, find_points
from assay.verifiers_extra.geometry.shapes import giou, iou


def judge(verifier: Verifier, response: str, reference: JsonValue, **parameters: Any) -> Judgement:
    item = VerifierItem(
        Candidate(response), data=reference, parameters=verifier.spec.complete(parameters)
    )
    judgement = verifier.judge(item)
    if verifier.spec.isolation == "process":
        assert verifier.glance(item) in (None, judgement)
    assert judgement.verdict in verifier.spec.verdicts
    assert judgement.explanation
    assert "\n" not in judgement.explanation
    return judgement


@pytest.mark.parametrize(
    ("a", "b", "overlap", "generalised"),
    [
        # By hand, with the formulas of arXiv 1902.09630, algorithm 1.
        ((0, 0, 2, 2), (1, 1, 3, 3), 1 / 7, 1 / 7 - 2 / 9),
        ((0, 0, 1, 1), (2, 0, 3, 1), 0.0, -1 / 3),
        ((0, 0, 4, 4), (1, 1, 3, 3), 1 / 4, 1 / 4),
        ((0, 0, 1, 1), (1, 0, 2, 1), 0.0, 0.0),
        ((0, 0, 1, 1), (9, 9, 10, 10), 0.0, -0.98),
        ((0, 0, 10, 10), (5, 5, 15, 15), 25 / 175, 25 / 175 - 50 / 225),
    ],
)
def test_golden_overlaps(a: Any, b: Any, overlap: float, generalised: float) -> None:
    assert iou(a, b) == pytest.approx(overlap)
    assert giou(a, b) == pytest.approx(generalised)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[1, 2, 3, 4]", [(1, 2, 3, 4)]),
        ("[[1,2,3,4],[5,6,7,8]]", [(1, 2, 3, 4), (5, 6, 7, 8)]),
        ("<box>1 2 3 4</box>", [(1, 2, 3, 4)]),
        ("<bbox>1, 2, 3, 4</bbox>", [(1, 2, 3, 4)]),
        ("<|box_start|>(1,2),(3,4)<|box_end|>", [(1, 2, 3, 4)]),
        ("(1, 2) (3, 4)", [(1, 2, 3, 4)]),
        ('[{"bbox_2d": [1, 2, 3, 4], "label": "cat"}]', [(1, 2, 3, 4)]),
        ('{"label": "cat", "bbox": [1.5, -2, 3e2, .5]}', [(1.5, -2, 300, 0.5)]),
        ("[1, 2, 3]", []),
        ("[1, 2, 3, 4, 5]", []),
        ("1 2 3 4", []),
        ("[1234567890, 2, 3, 4]", []),
        ("[1, 2, 3, nan]", []),
        ("", []),
    ],
)
def test_forms_of_boxes(text: str, found: list[Any]) -> None:
    assert [box.values for box in find_boxes(text)] == found


def test_labels_stand_in_the_same_object() -> None:
    text = '[{"bbox_2d": [1,2,3,4], "label": "cat"}, {"label": "dog", "bbox_2d": [5,6,7,8]}]'
    assert [box.label for box in find_boxes(text)] == ["cat", "dog"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(1, 2)", [(1, 2)]),
        ("[1.5, 2]", [(1.5, 2)]),
        ("<point>510 150</point>", [(510, 150)]),
        ('<point x="12.5" y="40.0" alt="cat">cat</point>', [(12.5, 40)]),
        ('<points x1="1" y1="2" x2="3" y2="4" alt="cats">cats</points>', [(1, 2), (3, 4)]),
        ('{"point_2d": [7, 8], "label": "x"}', [(7, 8)]),
        ('{"x": 7, "y": 8}', [(7, 8)]),
        ("click(start_box='(7,8)')", [(7, 8)]),
        ("[1, 2, 3, 4]", []),
        ("1, 2", []),
    ],
)
def test_forms_of_points(text: str, found: list[Any]) -> None:
    assert find_points(text) == found


BOX: JsonValue = {"boxes": [[0, 0, 10, 10]]}
TWO: JsonValue = {"boxes": [[0, 0, 10, 10], [20, 20, 30, 30]]}
NONE: JsonValue = {"boxes": []}


@pytest.mark.parametrize(
    ("response", "reference", "parameters", "verdict", "reward"),
    [
        ("[0,0,10,10]", BOX, {}, "correct", 1.0),
        ("[0,0,10,5]", BOX, {}, "correct", 0.5),
        ("[0,0,10,4]", BOX, {}, "incorrect", 0.4),
        ("[0,0,10,4]", BOX, {"reward": "threshold"}, "incorrect", 0.0),
        ("[0,0,10,4]", BOX, {"reward": "threshold", "threshold": 0.4}, "correct", 1.0),
        ("[0,0,10,10],[0,0,10,10]", BOX, {}, "partial", 0.5),
        ("[0,0,10,10],[0,0,10,10]", BOX, {"false_positive_weight": 0.0}, "partial", 1.0),
        ("[20,20,30,30]", TWO, {}, "partial", 0.5),
        ("[20,20,30,30]", TWO, {"measure": "giou"}, "partial", 0.0),
        ("[20,20,30,30]", TWO, {"reward": "f1"}, "partial", 2 / 3),
        ("[20,20,30,30] [0,0,10,10]", TWO, {}, "correct", 1.0),
        ("[10,10,0,0]", BOX, {}, "incorrect", 0.0),
        ("[5,5,5,5]", BOX, {"measure": "giou"}, "incorrect", -1.0),
        ("[5,5,5,5]", BOX, {"measure": "giou-scaled"}, "incorrect", 0.0),
        ("[0,0,10,10]", BOX, {"format": "xywh"}, "correct", 1.0),
        ("[]", BOX, {}, "incorrect", 0.0),
        ("nowhere", BOX, {}, "unparsed", 0.0),
        ("nowhere", BOX, {"measure": "giou"}, "unparsed", -1.0),
        ("[]", NONE, {}, "correct", 1.0),
        ("There is none.", NONE, {}, "correct", 1.0),
        ("no objects", NONE, {"reward": "f1"}, "correct", 1.0),
        ("", NONE, {}, "unparsed", 0.0),
        ("[0,0,1,1]", NONE, {}, "incorrect", 0.0),
        ("[0,0,1,1]", NONE, {"false_positive_weight": 0.0}, "incorrect", 0.0),
        ("[0,0,1,1]", NONE, {"measure": "giou"}, "incorrect", -1.0),
        ("<think>[0,0,10,10]</think> I see [5,5,9,9]", BOX, {}, "incorrect", 0.16),
        ("[1,1,2,2] <answer>[0,0,10,10]</answer>", BOX, {}, "correct", 1.0),
        ("[0,0,10,10]", BOX, {"extract": "answer-tag"}, "unparsed", 0.0),
        ("<answer>[0,0,10,10]", BOX, {}, "unparsed", 0.0),
        ("[0,0,10,10]", [0, 0, 10, 10], {}, "correct", 1.0),
        ("[0,0,10,10]", [[0, 0, 10, 10]], {}, "correct", 1.0),
        ("[0,0,10,10]", {"boxes": [[0, 0, 10, 10]], "format": "xywh"}, {}, "correct", 1.0),
    ],
)
def test_boxes(
    response: str, reference: JsonValue, parameters: Any, verdict: str, reward: float
) -> None:
    judgement = judge(boxes, response, reference, **parameters)
    assert judgement.verdict == verdict
    assert judgement.reward == pytest.approx(reward)


def test_coordinates_of_other_frames() -> None:
    reference: JsonValue = {"boxes": [[64, 48, 320, 240]], "width": 640, "height": 480}
    for frame, text in (
        ("same", "[64, 48, 320, 240]"),
        ("0-1", "[0.1, 0.1, 0.5, 0.5]"),
        ("0-100", "[10, 10, 50, 50]"),
        ("0-1000", "<box>100 100 500 500</box>"),
    ):
        assert judge(boxes, text, reference, frame=frame).reward == pytest.approx(1.0)


def test_labels_keep_boxes_apart() -> None:
    reference: JsonValue = {"boxes": [[0, 0, 10, 10]], "labels": ["cat"]}
    right = '{"bbox_2d": [0, 0, 10, 10], "label": "Cat"}'
    wrong = '{"bbox_2d": [0, 0, 10, 10], "label": "dog"}'
    assert judge(boxes, right, reference, labels=True).reward == 1.0
    assert judge(boxes, wrong, reference, labels=True).reward == 0.0
    assert judge(boxes, wrong, reference).reward == 1.0


def test_hits_come_before_overlap_in_f1() -> None:
    """The greatest sum of IoU would pair the first two and lose a hit."""
    reference: JsonValue = {"boxes": [[0, 0, 10, 10], [0, 0, 10, 5.2]]}
    response = "[0,0,10,5.1] [0,0,10,2.7]"
    assert judge(boxes, response, reference, reward="f1").reward == 1.0


@pytest.mark.parametrize(
    "reference",
    [
        {},
        {"boxes": 3},
        {"boxes": [[1, 2, 3]]},
        {"boxes": [[1, 2, 3, "4"]]},
        {"boxes": [[1, 2, 3, True]]},
        {"boxes": [[3, 3, 1, 1]]},
        {"boxes": [[0, 0, 0, 1]]},
        {"boxes": [[0, 0, 1, 1e30]]},
        {"boxes": [[0, 0, 1, 1]], "format": "cxcywh"},
        {"boxes": [[0, 0, 1, 1]], "labels": ["a", "b"]},
        {"boxes": [[0, 0, 1, 1]], "labels": [1]},
        {"boxes": [[0, 0, 1, 1]] * 257},
        "box",
    ],
)
def test_unusable_boxes(reference: JsonValue) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(boxes, "[0,0,1,1]", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"
    assert "reference" in caught.value.message


def test_a_frame_needs_the_size_of_the_image() -> None:
    with pytest.raises(Unjudgeable, match="width"):
        judge(boxes, "[0,0,1,1]", BOX, frame="0-1000")


MASK: JsonValue = {"rle": {"size": [3, 3], "counts": [4, 1, 4]}}
TRIANGLE: JsonValue = {"polygon": [[0, 0], [10, 0], [0, 10]]}


@pytest.mark.parametrize(
    ("response", "reference", "parameters", "verdict", "reward"),
    [
        ("(5, 5)", {"box": [0, 0, 10, 10]}, {}, "correct", 1.0),
        ("(10, 10)", {"box": [0, 0, 10, 10]}, {}, "correct", 1.0),
        ("(11, 10)", {"box": [0, 0, 10, 10]}, {}, "incorrect", 0.0),
        ("(11, 10)", {"box": [0, 0, 10, 10]}, {"distance": 4.0, "reward": "f1"}, "partial", 0.75),
        ("(2, 2)", TRIANGLE, {}, "correct", 1.0),
        ("(6, 6)", TRIANGLE, {}, "incorrect", 0.0),
        ("(1.5, 1.5)", MASK, {}, "correct", 1.0),
        ("(0.5, 0.5)", MASK, {}, "incorrect", 0.0),
        ("(5, 5) (6, 6)", {"box": [0, 0, 10, 10]}, {}, "partial", 0.0),
        ("(5, 5) (6, 6)", {"box": [0, 0, 10, 10]}, {"reward": "f1"}, "partial", 2 / 3),
        ("[0,0,10,10]", {"box": [0, 0, 10, 10]}, {}, "unparsed", 0.0),
        (
            "(1, 1) (21, 21)",
            {"targets": [{"box": [20, 20, 30, 30]}, {"box": [0, 0, 10, 10]}]},
            {},
            "correct",
            1.0,
        ),
        (
            "(5, 5)",
            {"targets": [{"box": [0, 0, 10, 10]}, {"box": [4, 4, 6, 6]}]},
            {"reward": "f1"},
            "partial",
            2 / 3,
        ),
        ("(1, 1, 8, 8)", {"box": [1, 1, 7, 7], "format": "xywh"}, {}, "unparsed", 0.0),
        ("(8, 8)", {"box": [1, 1, 7, 7], "format": "xywh"}, {}, "correct", 1.0),
    ],
)
def test_points(
    response: str, reference: JsonValue, parameters: Any, verdict: str, reward: float
) -> None:
    judgement = judge(point, response, reference, **parameters)
    assert judgement.verdict == verdict
    assert judgement.reward == pytest.approx(reward)


@pytest.mark.parametrize(
    "reference",
    [
        {},
        {"targets": []},
        {"box": [0, 0, 1, 1], "polygon": [[0, 0], [1, 0], [0, 1]]},
        {"polygon": [[0, 0], [1, 0]]},
        {"rle": {"size": [2, 2], "counts": "abc"}},
        {"rle": {"size": [2, 2], "counts": [1, 1]}},
        {"rle": {"size": [2, 2], "counts": [5, -1]}},
        {"rle": {"size": [2, 2], "counts": [2.5, 1.5]}},
        {"rle": {"size": [0, 2], "counts": []}},
        {"rle": {"size": [1e9, 1e9], "counts": [1]}},
    ],
)
def test_unusable_targets(reference: JsonValue) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(point, "(1, 1)", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


def test_a_mask_takes_no_distance() -> None:
    with pytest.raises(Unjudgeable, match="distance"):
        judge(point, "(1, 1)", MASK, distance=3.0)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("There are 7 birds and 7 eggs.", 7),
        ("1,234 bees", 1234),
        ("3.5", 3.5),
        ("-3", -3),
        ("seven", 7),
        ("Twelve cats", 12),
        ("三", 3),
        ("4 or 5", None),
        ("four or five", None),
        ("many", None),
        ("", None),
        ("no1", None),
    ],
)
def test_numbers_of_things(text: str, number: float | None) -> None:
    assert read_count(text) == number


@pytest.mark.parametrize(
    ("response", "reference", "kind", "reward"),
    [
        ("Answer: 8", 8, "exact", 1.0),
        ("Answer: 9", 8, "exact", 0.0),
        ("Answer: 9", 8, "relative", 0.875),
        ("Answer: 90", 8, "relative", 0.0),
        ("Answer: 0", 0, "relative", 1.0),
        ("Answer: 1", 0, "relative", 0.0),
        ("Answer: 8", {"count": 8}, "exact", 1.0),
        ("Answer: 8.0", 8.0, "exact", 1.0),
    ],
)
def test_counts(response: str, reference: JsonValue, kind: str, reward: float) -> None:
    assert judge(count, response, reference, reward=kind).reward == pytest.approx(reward)


@pytest.mark.parametrize("reference", ["many", -1, True, 2.5, {"n": 3}, 10**12])
def test_unusable_counts(reference: JsonValue) -> None:
    with pytest.raises(Unjudgeable):
        judge(count, "Answer: 3", reference)


@pytest.mark.parametrize(
    ("response", "reference", "verdict", "reward"),
    [
        ('["hat", "mug"]', {"labels": ["a hat", ["cup", "mug"]]}, "correct", 1.0),
        ('["hat", "cup", "mug"]', {"labels": ["hat", ["cup", "mug"]]}, "partial", 0.8),
        ("- The hat.\n- cup", {"labels": ["hat", ["cup", "mug"]]}, "correct", 1.0),
        ("1. hat\n2. dog", {"labels": ["hat", "cup"]}, "partial", 0.5),
        ("Differences: hat, cup", {"labels": ["hat", "cup"]}, "correct", 1.0),
        ("no differences", {"labels": []}, "correct", 1.0),
        ("none", {"labels": ["hat"]}, "incorrect", 0.0),
        ("[0,0,10,10]", {"boxes": [[0, 0, 10, 9], [20, 20, 30, 30]]}, "partial", 2 / 3),
        ("nothing to see", {"boxes": [[0, 0, 1, 1]]}, "unparsed", 0.0),
        ("", {"labels": ["hat"]}, "unparsed", 0.0),
    ],
)
def test_differences(response: str, reference: JsonValue, verdict: str, reward: float) -> None:
    judgement = judge(differences, response, reference)
    assert judgement.verdict == verdict
    assert judgement.reward == pytest.approx(reward)


@pytest.mark.parametrize(
    "reference",
    [{}, {"labels": [1]}, {"labels": [""]}, {"labels": ["hat", ["Hat", "cap"]]}, {"boxes": 1}],
)
def test_unusable_differences(reference: JsonValue) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(differences, "hat", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


def test_a_listed_thing_counts_once() -> None:
    assert list_labels('["hat", "Hat", "the hat"]') == {"hat"}


HOSTILE = [
    "[" * 1_000_000,
    "[1," * 300_000,
    "[          1          ,          2" * 30_000,
    "{" * 500_000 + "}" * 500_000,
    "<box>" * 200_000,
    '{"bbox_2d": [' * 70_000,
    "1 " * 500_000,
    "(1,2)," * 160_000,
    "[1,2,3,4]" * 110_000,
    "- a" * 300_000,
    ", a" * 300_000,
    "9" * 1_000_000,
    "<answer>" * 120_000,
    " " * 1_000_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12] for text in HOSTILE])
@pytest.mark.parametrize(
    ("verifier", "reference"),
    [
        (boxes, BOX),
        (point, TRIANGLE),
        (count, 3),
        (differences, {"labels": ["hat"]}),
        (differences, {"boxes": [[0, 0, 1, 1]]}),
    ],
    ids=["boxes", "point", "count", "labels", "differences"],
)
def test_a_million_characters_are_read_at_once(
    verifier: Verifier, reference: JsonValue, text: str
) -> None:
    item = VerifierItem(Candidate(text), data=reference, parameters=verifier.spec.complete({}))
    started_s = time.process_time()
    verifier.glance(item) if verifier.spec.isolation == "process" else verifier.judge(item)
    assert time.process_time() - started_s < 1  # what is not linear takes minutes
