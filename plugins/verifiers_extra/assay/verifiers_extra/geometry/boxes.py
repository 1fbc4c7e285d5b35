"""`boxes`: the boxes in the response overlap with those of the reference.

Visual grounding as in Seed1.5-VL (arXiv 2505.07062): one box by IoU, several by their mean after
the Hungarian method has paired them. The reference is `{"boxes": [[x1, y1, x2, y2], ...]}`, with
`"labels"`, `"format": "xywh"` and the image's `"width"` and `"height"` where they are needed; a
bare list of boxes or one bare box will do. How boxes are read out of text is in `reading`.

The reward, with a measure m (IoU in [0, 1]; GIoU in [-1, 1], arXiv 1902.09630; GIoU scaled to
[0, 1]), its worst value w, and the pairs of the best assignment:
 - `mean`: (sum of m over pairs + w * (missing + p * superfluous)) / (pairs + missing +
   p * superfluous), p the parameter false_positive_weight;
 - `threshold`: 1 if every pair reaches the threshold and nothing is missing or superfluous;
 - `f1`: 2 hits / (predicted + expected), a hit being a pair that reaches the threshold. Then pairs
   are chosen for the number of hits first.

The empty case is defined: where the reference holds no box, a response that says so (`[]`, "none",
"no objects") gets the best reward, one with boxes the worst, and one that says neither is unparsed.

What a policy could game: many boxes around the target are superfluous boxes, so leave
false_positive_weight at 1; whole-image boxes get a small but positive IoU, so use a threshold or
GIoU; coordinates that are mentioned outside of the answer count, so ask for `<answer>` and set
extract=answer-tag. Boxes without positive area overlap with nothing and are superfluous, never
repaired. More than 256 boxes are incorrect without being matched.

Limits. Upright boxes of one image; turned boxes and masks are for nothing here. Labels, where they
are used, are compared by their spelling.

Differences from others: 1. VLM-R1 and its like read the first box of the response and ignore the
rest; here every box counts. 2. IoU is on continuous coordinates, without the "+ 1" of pixel counts.

Measured: overlaps equal to counted pixels, assignments cost what scipy's cost (tables up to 256 by
256), six golden overlaps (`tests/property/test_verifier_geometry_laws.py`): no difference. 14
written forms of boxes are read; misread real responses: not yet, because no labelled ones are at
hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from assay.reward_server import Component, Judgement, OneOf, Range, VerifierItem, verifier
from assay.verifiers_extra.geometry.matching import Matching, match
from assay.verifiers_extra.geometry.reading import (
    LabelledBox,
    answer_region,
    find_boxes,
    says_none,
)
from assay.verifiers_extra.geometry.reference import (
    FORMATS,
    FRAMES,
    MAX_BOXES,
    corners,
    frame_scale,
    reference_boxes,
)

_SHOWN_CHARS = 500
_QUICK_STEPS = 4_000
"""Rows * rows * columns of an assignment that takes less than 2 ms."""

Extract = Annotated[
    Literal["auto", "answer-tag"],
    "What is read: the last <answer> element or, without one, all that follows the thought; or "
    "nothing but an <answer> element.",
]


@dataclass(frozen=True, slots=True)
class _Task:
    """The boxes to match; `said` is False when the response says nothing about boxes."""

    predicted: list[LabelledBox]
    expected: list[LabelledBox]
    region: str
    said: bool


def _glance(
    item: VerifierItem,
    *,
    format: str,  # noqa: A002 - the parameter's name
    frame: str,
    extract: str,
    **how: Any,
) -> Judgement | None:
    task = _read(item, format, frame, extract)
    short, long = sorted((len(task.predicted), len(task.expected)))
    return _judge(task, **how) if short * short * long <= _QUICK_STEPS else None


@verifier(
    "boxes",
    tasks=("boxes", "grounding"),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    rewards=(-1.0, 1.0),
    glance=_glance,
)
def boxes(
    item: VerifierItem,
    *,
    measure: Annotated[
        Literal["iou", "giou", "giou-scaled"],
        "IoU in [0, 1], GIoU in [-1, 1], or GIoU scaled to [0, 1].",
    ] = "iou",
    reward: Annotated[
        Literal["mean", "threshold", "f1"],
        "The mean of the measure, 1 if all reach the threshold, or F1 at the threshold.",
    ] = "mean",
    threshold: Annotated[
        float,
        Range(-1.0, 1.0),
        "The measure from which a pair is a hit; verdict correct needs it of every pair.",
    ] = 0.5,
    false_positive_weight: Annotated[
        float,
        Range(0.0, 1.0),
        "How much a superfluous box counts in the mean, as a share of a missing one.",
    ] = 1.0,
    format: Annotated[  # noqa: A002 - the parameter's name
        str,
        OneOf(FORMATS),
        "How the response writes boxes: two corners, or a corner, width and height.",
    ] = "xyxy",
    frame: Annotated[
        str,
        OneOf(FRAMES),
        "The response's coordinates: in the reference's frame, or shares of the image's width "
        "and height (then in the reference) from 0 to 1, 100 or 1000.",
    ] = "same",
    labels: Annotated[bool, "Only boxes of the same label overlap."] = False,
    extract: Extract = "auto",
) -> Judgement:
    """The boxes in the response overlap with the reference's (IoU or GIoU, Hungarian).

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    return _judge(
        _read(item, format, frame, extract),
        measure=measure,
        reward=reward,
        threshold=threshold,
        false_positive_weight=false_positive_weight,
        labels=labels,
    )


def _read(item: VerifierItem, box_format: str, frame: str, extract: str) -> _Task:
    expected = reference_boxes(item)
    x, y = frame_scale(item, frame)
    region = answer_region(item.response(), strict=extract == "answer-tag")
    if region is None:
        return _Task([], expected, "", said=False)
    predicted = []
    for found in find_boxes(region):
        x1, y1, x2, y2 = corners(found.values, box_format)
        predicted.append(LabelledBox((x1 * x, y1 * y, x2 * x, y2 * y), found.label))
    return _Task(predicted, expected, region, said=bool(predicted) or says_none(region))


def _judge(
    task: _Task,
    *,
    measure: str,
    reward: str,
    threshold: float,
    false_positive_weight: float,
    labels: bool,
) -> Judgement:
    worst = -1.0 if measure == "giou" and reward == "mean" else 0.0
    if not task.said:
        return _bad(
            "unparsed", "the answer holds no box and does not say that there is none", worst
        )
    if len(task.predicted) > MAX_BOXES:
        text = (
            f"the answer holds {len(task.predicted)} boxes; more than {MAX_BOXES} are not matched"
        )
        return _bad("incorrect", text, worst)
    matching = match(
        task.predicted,
        task.expected,
        measure,
        use_labels=labels,
        threshold=threshold if reward == "f1" else None,
    )
    score = _reward(matching, reward, threshold, false_positive_weight, worst)
    name = measure if reward == "mean" else reward
    return Judgement.composed(
        _verdict(matching, threshold),
        (
            Component(name, score),
            Component("missing", float(matching.missing), 0.0),
            Component("superfluous", float(matching.superfluous), 0.0),
        ),
        extracted_answer=_shown(task.predicted),
        explanation=_explanation(matching, threshold, measure),
    )


def _reward(matching: Matching, kind: str, threshold: float, weight: float, worst: float) -> float:
    if not matching.n_expected and matching.n_predicted:
        return worst
    if kind == "threshold":
        return float(_verdict(matching, threshold) == "correct")
    return matching.f1(threshold) if kind == "f1" else matching.mean(weight)


def _verdict(matching: Matching, threshold: float) -> str:
    hits = matching.hits(threshold)
    if hits == matching.n_expected == matching.n_predicted:
        return "correct"
    return "partial" if hits else "incorrect"


def _explanation(matching: Matching, threshold: float, measure: str) -> str:
    pairs = ", ".join(f"{score:.3f}" for score in matching.scores[:8])
    text = f"{matching.hits(threshold)} of {matching.n_expected} boxes reach {threshold:g}"
    text += f" ({measure} {pairs or 'of no pair'})"
    if matching.missing:
        text += f"; {matching.missing} missing"
    return text + (f"; {matching.superfluous} superfluous" if matching.superfluous else "")


def _shown(boxes: list[LabelledBox]) -> str:
    rows = [f"[{', '.join(f'{value:g}' for value in box.values)}]" for box in boxes[:20]]
    return f"[{', '.join(rows)}]"[:_SHOWN_CHARS]


def _bad(verdict: str, explanation: str, worst: float) -> Judgement:
    return Judgement.composed(verdict, (Component("overlap", worst),), explanation=explanation)
