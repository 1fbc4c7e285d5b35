"""`boxes`: the boxes in the response overlap with those of the reference.

Visual grounding as in Seed1.5-VL (arXiv 2505.07062): one box by IoU, several by their mean after
the Hungarian method has paired them. The reference is `{"boxes": [[x1, y1, x2, y2], ...]}`, with
`"labels"`, `"format": "xywh"` and the image's `"width"` and `"height"` where they are needed; a
bare list of boxes or one bare box will do. How boxes are read out of text is told in `reading`.

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
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.reward_server.domain import (
    Candidate,
    Component,
    Example,
    Item,
    Judgement,
    ParameterSpec,
    Verifier,
    VerifierSpec,
)
from assay.reward_server.verifiers.geometry.matching import Matching, match
from assay.reward_server.verifiers.geometry.reading import (
    LabelledBox,
    answer_region,
    find_boxes,
    says_none,
)
from assay.reward_server.verifiers.geometry.reference import (
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

EXTRACT = ParameterSpec(
    "extract",
    "string",
    "auto",
    "What is read: the last <answer> element or, without one, all that follows the thought; or "
    "nothing but an <answer> element.",
    allowed_values=("auto", "answer-tag"),
)

_SPEC = VerifierSpec(
    name="boxes",
    version="1",
    description="The boxes in the response overlap with the reference's (IoU or GIoU, Hungarian).",
    tasks=("boxes", "grounding"),
    min_reward=-1.0,
    max_reward=1.0,
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    parameters=(
        ParameterSpec(
            "measure",
            "string",
            "iou",
            "IoU in [0, 1], GIoU in [-1, 1], or GIoU scaled to [0, 1].",
            allowed_values=("iou", "giou", "giou-scaled"),
        ),
        ParameterSpec(
            "reward",
            "string",
            "mean",
            "The mean of the measure, 1 if all reach the threshold, or F1 at the threshold.",
            allowed_values=("mean", "threshold", "f1"),
        ),
        ParameterSpec(
            "threshold",
            "float",
            0.5,
            "The measure from which a pair is a hit; verdict correct needs it of every pair.",
            minimum=-1.0,
            maximum=1.0,
        ),
        ParameterSpec(
            "false_positive_weight",
            "float",
            1.0,
            "How much a superfluous box counts in the mean, as a share of a missing one.",
            minimum=0.0,
            maximum=1.0,
        ),
        ParameterSpec(
            "format",
            "string",
            "xyxy",
            "How the response writes boxes: two corners, or a corner, width and height.",
            allowed_values=FORMATS,
        ),
        ParameterSpec(
            "frame",
            "string",
            "same",
            "The response's coordinates: in the reference's frame, or shares of the image's width "
            "and height (then in the reference) from 0 to 1, 100 or 1000.",
            allowed_values=FRAMES,
        ),
        ParameterSpec("labels", "bool", False, "Only boxes of the same label overlap."),
        EXTRACT,
    ),
)


@dataclass(frozen=True, slots=True)
class _Task:
    """What is to be matched; `said` is False when the response says nothing about boxes."""

    predicted: list[LabelledBox]
    expected: list[LabelledBox]
    region: str
    said: bool


class BoxesVerifier(Verifier):
    """Matches boxes."""

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""
        return _SPEC

    @property
    def examples(self) -> tuple[Example, ...]:
        """One item for each verdict."""
        return (
            Example(_example("<box>10 10 20 20</box>"), "correct"),
            Example(_example("[[10, 10, 20, 20], [50, 50, 60, 60]]"), "partial"),
            Example(_example('{"bbox_2d": [50, 50, 60, 60]}'), "incorrect"),
            Example(_example("In the upper left corner."), "unparsed"),
        )

    def glance(self, item: Item) -> Judgement | None:
        """The judgement where there are few boxes."""
        task = _read(item)
        short, long = sorted((len(task.predicted), len(task.expected)))
        return _judge(item, task) if short * short * long <= _QUICK_STEPS else None

    def judge(self, item: Item) -> Judgement:
        """Matches the boxes of the response with the reference's.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
        """
        return _judge(item, _read(item))


def _read(item: Item) -> _Task:
    expected = reference_boxes(item)
    x, y = frame_scale(item, str(item.parameters["frame"]))
    region = answer_region(item.response(), strict=item.parameters["extract"] == "answer-tag")
    if region is None:
        return _Task([], expected, "", said=False)
    box_format = str(item.parameters["format"])
    predicted = []
    for found in find_boxes(region):
        x1, y1, x2, y2 = corners(found.values, box_format)
        predicted.append(LabelledBox((x1 * x, y1 * y, x2 * x, y2 * y), found.label))
    return _Task(predicted, expected, region, said=bool(predicted) or says_none(region))


def _judge(item: Item, task: _Task) -> Judgement:
    measure, kind = str(item.parameters["measure"]), str(item.parameters["reward"])
    worst = -1.0 if measure == "giou" and kind == "mean" else 0.0
    if not task.said:
        return _bad(
            "unparsed", "the answer holds no box and does not say that there is none", worst
        )
    if len(task.predicted) > MAX_BOXES:
        text = (
            f"the answer holds {len(task.predicted)} boxes; more than {MAX_BOXES} are not matched"
        )
        return _bad("incorrect", text, worst)
    threshold = float(item.parameters["threshold"])  # type: ignore[arg-type]
    matching = match(
        task.predicted,
        task.expected,
        measure,
        use_labels=bool(item.parameters["labels"]),
        threshold=threshold if kind == "f1" else None,
    )
    weight = float(item.parameters["false_positive_weight"])  # type: ignore[arg-type]
    reward = _reward(matching, kind, threshold, weight, worst)
    name = measure if kind == "mean" else kind
    return Judgement.composed(
        _verdict(matching, threshold),
        (
            Component(name, reward),
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


def _example(response: str) -> Item:
    return Item(
        Candidate(response), data={"boxes": [[10, 10, 20, 20]]}, parameters=_SPEC.complete({})
    )
