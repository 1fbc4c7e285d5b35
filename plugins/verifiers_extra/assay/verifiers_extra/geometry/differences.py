"""`differences`: the set of differences (or things) that the response lists is the reference's.

Spot-the-difference as in Seed1.5-VL (arXiv 2505.07062): F1 of a set. The reference holds boxes,
`{"boxes": [[x1, y1, x2, y2], ...]}`, or labels, `{"labels": ["hat", ["cup", "mug"], ...]}` where a
list gives alternatives for one thing.

Boxes are a hit when their IoU reaches the threshold, paired by the Hungarian method for as many
hits as possible. Labels are compared after NFKC, without case, articles, punctuation and repeated
white space; each counts once. The response's labels are a JSON list of texts, else the entries of
a bulleted or numbered list, else the parts of its last line between commas and semicolons.

The reward is F1 = 2 hits / (listed + expected); 1 where nothing is expected and the response says
so (`[]`, "none", "no differences"). What a policy could game: listing everything lowers precision
and so F1; a thing that is listed twice counts as listed once.

Limits. Labels are compared by their spelling: another word for the same thing has to stand in the
reference as an alternative. Boxes that are cut up or joined otherwise than in the reference are
misses.

Measured: ten worked lists (`tests/unit/test_verifier_geometry.py`); assignments as for `boxes`. On
real responses: not yet, because no labelled ones are at hand.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Annotated

from assay.reward_server import Component, JsonValue, Judgement, Range, VerifierItem, verifier
from assay.verifiers_extra.geometry.boxes import Extract
from assay.verifiers_extra.geometry.matching import match
from assay.verifiers_extra.geometry.reading import answer_region, find_boxes, says_none
from assay.verifiers_extra.geometry.reference import (
    MAX_BOXES,
    items_of,
    mapping,
    reference_boxes,
    unusable,
)

_SHAPE = 'an object {"boxes": [...]} or {"labels": [...]}'
_MAX_LABEL_CHARS = 500
_QUICK_STEPS = 4_000
_BULLET = re.compile(r"^[ \t]{0,40}(?:[-*•]|\d{1,3}[.)])[ \t]{1,40}(\S[^\n]{0,500})", re.MULTILINE)
_NOISE = re.compile(r"[^\w]+|_")
_BETWEEN = re.compile("[,;\uff0c\uff1b\u3001]")  # the last three are those of Chinese
_ARTICLES = frozenset({"a", "an", "the"})


def _glance(item: VerifierItem, *, extract: str, **_: object) -> Judgement | None:
    document = item.document()
    if isinstance(document, dict) and "boxes" in document:
        region = _region(item, extract)
        n_found = len(find_boxes(region)) if region else 0
        if n_found * n_found * len(reference_boxes(item)) > _QUICK_STEPS:
            return None
    return differences.judge(item)


@verifier(
    "differences",
    tasks=("differences", "spot-the-difference"),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    glance=_glance,
)
def differences(
    item: VerifierItem,
    *,
    threshold: Annotated[float, Range(0.01, 1.0), "The IoU from which a box is a hit."] = 0.5,
    extract: Extract = "auto",
) -> Judgement:
    """The boxes or labels that the response lists are the reference's, by F1.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    fields = mapping(item.document(), _SHAPE)
    if ("boxes" in fields) == ("labels" in fields):
        unusable(f"the reference must be {_SHAPE}")
    wanted = None if "boxes" in fields else _wanted(fields)
    n_expected = len(reference_boxes(item)) if wanted is None else len(wanted)
    region = _region(item, extract)
    if region is None or not region.strip():
        return _bad("unparsed", "the response holds no answer")
    if wanted is None:
        return _judge_boxes(item, region, threshold)
    listed = list_labels(region)
    if not listed:
        if not says_none(region):
            return _bad("unparsed", "the answer lists nothing")
        return _judgement(0, 0, n_expected, "none")
    shown = ", ".join(sorted(listed)[:20])
    return _judgement(_label_hits(listed, wanted), len(listed), n_expected, shown)


def _judge_boxes(item: VerifierItem, region: str, threshold: float) -> Judgement:
    expected, predicted = reference_boxes(item), find_boxes(region)
    if not predicted and not says_none(region):
        return _bad("unparsed", "the answer holds no box and does not say that there is none")
    if len(predicted) > MAX_BOXES:
        return _bad("incorrect", f"the answer holds more than {MAX_BOXES} boxes")
    hits = match(predicted, expected, "iou", threshold=threshold).hits(threshold)
    shown = ", ".join(str(list(box.values)) for box in predicted[:20])
    return _judgement(hits, len(predicted), len(expected), shown)


def list_labels(region: str) -> set[str]:
    """The labels that an answer lists, normalised; empty for none."""
    entries = _json_labels(region)
    if entries is None:
        entries = _BULLET.findall(region)
    if not entries and not says_none(region):
        last = region.rstrip().rpartition("\n")[2].rpartition(":")[2]
        entries = _BETWEEN.split(last)
    labels = {normalise(entry) for entry in entries if len(entry) <= _MAX_LABEL_CHARS}
    return labels - {""}


def normalise(label: str) -> str:
    """A label in the form that is compared."""
    words = _NOISE.sub(" ", unicodedata.normalize("NFKC", label).casefold()).split()
    return " ".join(word for word in words if word not in _ARTICLES) or " ".join(words)


def _json_labels(region: str) -> list[str] | None:
    """The texts of the JSON list between the first and the last bracket; None for no such list."""
    start, end = region.find("["), region.rfind("]")
    if start < 0 or end < start:
        return None
    try:
        value = json.loads(region[start : end + 1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        return None
    return value


def _wanted(fields: dict[str, JsonValue]) -> list[frozenset[str]]:
    wanted = []
    for index, entry in enumerate(items_of(fields["labels"], "labels", MAX_BOXES)):
        names = entry if isinstance(entry, list) else [entry]
        alternatives = frozenset(normalise(name) for name in names if isinstance(name, str))
        if len(alternatives) == 0 or "" in alternatives:
            unusable(f"labels[{index}] of the reference must be a text or a list of texts")
        wanted.append(alternatives)
    for index, alternatives in enumerate(wanted):
        if any(alternatives & other for other in wanted[:index]):
            unusable(f"labels[{index}] of the reference shares a name with an earlier one")
    return wanted


def _label_hits(listed: set[str], wanted: list[frozenset[str]]) -> int:
    return sum(bool(alternatives & listed) for alternatives in wanted)


def _region(item: VerifierItem, extract: str) -> str | None:
    return answer_region(item.response(), strict=extract == "answer-tag")


def _judgement(hits: int, n_listed: int, n_expected: int, shown: str) -> Judgement:
    both = n_listed + n_expected
    f1 = 2 * hits / both if both else 1.0
    verdict = "correct" if f1 == 1.0 else "partial" if hits else "incorrect"
    return Judgement.composed(
        verdict,
        (Component("f1", f1),),
        # JSON can hold halves of characters, which no message can.
        extracted_answer=shown[:500].encode("utf-8", "replace").decode(),
        explanation=f"{hits} of {n_expected} found, {n_listed} listed",
    )


def _bad(verdict: str, explanation: str) -> Judgement:
    return Judgement.composed(verdict, (Component("f1", 0.0),), explanation=explanation)
