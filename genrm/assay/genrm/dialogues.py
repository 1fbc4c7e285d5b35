"""Dialogues of self-verification between the contract and the domain. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Literal

from assay.api.process.v1 import process_pb2
from assay.clients.judging.self_verification import Verdict, metrics
from assay.genrm import convert
from assay.genrm.answers import Attempts
from assay.genrm.self_verification import (
    DialogueItem,
    DialogueScores,
    DialogueSettings,
    check_dialogue,
)
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

ANSWER_VERIFIER = "math"
_MAX_WEIGHT = 1000.0
_PARSING: dict[int, Literal["strict", "tolerant"]] = {
    process_pb2.VERDICT_PARSING_UNSPECIFIED: "strict",
    process_pb2.VERDICT_PARSING_STRICT: "strict",
    process_pb2.VERDICT_PARSING_TOLERANT: "tolerant",
}
_VERDICTS: dict[Verdict, process_pb2.SelfVerdict.ValueType] = {
    "correct": process_pb2.SELF_VERDICT_CORRECT,
    "wrong": process_pb2.SELF_VERDICT_WRONG,
    "unparsed": process_pb2.SELF_VERDICT_UNPARSED,
}


def settings_from_proto(
    message: process_pb2.SelfVerificationSettings, least_mass: float | None = None
) -> DialogueSettings:
    """How to score dialogues; `least_mass` is the server's word, None for the default.

    Raises:
        Unjudgeable: INVALID_PARAMETER, naming the setting.
    """
    parsing = _PARSING.get(message.parsing)
    if parsing is None:
        text = f"parsing is {message.parsing}; this server knows no such value"
        raise Unjudgeable(Reason.INVALID_PARAMETER, text)
    weight = message.shaping_weight
    if not (math.isfinite(weight) and 0 <= weight <= _MAX_WEIGHT):
        text = f"shaping_weight is {weight:.15g}; it must be from 0 to {_MAX_WEIGHT:g}"
        raise Unjudgeable(Reason.INVALID_PARAMETER, text)
    settings = DialogueSettings(parsing=parsing, shaping_weight=weight)
    return settings if least_mass is None else dataclasses.replace(settings, least_mass=least_mass)


def item_from_proto(message: process_pb2.SelfVerificationItem) -> DialogueItem:
    """One dialogue.

    Raises:
        Unjudgeable: INVALID_PARAMETER: a role is none.
    """
    return DialogueItem(
        prompt=convert.chat(message.prompt),
        turns=tuple(message.policy_turns),
        group_id=message.group_id,
    )


def attempts_of(message: process_pb2.SelfVerificationItem, *, served: bool) -> Attempts:
    """What to ask of a dialogue that does not say which attempts are right.

    Raises:
        Unjudgeable: the dialogue is wrong; MISSING_REFERENCE, it has no right answer;
            INVALID_PARAMETER, no reward server is `served`.
    """
    item = item_from_proto(message)
    check_dialogue(item, ())
    if not served:
        raise Unjudgeable(
            Reason.INVALID_PARAMETER,
            "the item does not say which attempts are right, and this server has nobody to ask: "
            "send attempts_correct, or start it with --reward-target HOST:PORT",
        )
    if not message.ground_truth.strip():
        raise Unjudgeable(
            Reason.MISSING_REFERENCE,
            "the item has neither attempts_correct nor a ground_truth to judge its attempts by",
        )
    return Attempts(item.prompt, item.turns[::2], message.ground_truth)


def fill_scores(result: process_pb2.SelfVerificationResult, scores: DialogueScores) -> None:
    """Writes the turns of a dialogue and their rewards."""
    message = result.scores
    message.revision_due = scores.revision_due
    for turn in scores.turns:
        added = message.turns.add(reward=turn.reward)
        if turn.attempt_correct is not None:
            added.attempt_correct = turn.attempt_correct
        if turn.strict_verdict is not None:
            added.strict_verdict = _VERDICTS[turn.strict_verdict]
        if turn.tolerant_verdict is not None:
            added.tolerant_verdict = _VERDICTS[turn.tolerant_verdict]
        if turn.correct_probability is not None:
            added.correct_probability = turn.correct_probability


def fill_metrics(
    message: process_pb2.SelfVerificationMetrics, scored: Iterable[DialogueScores]
) -> None:
    """Writes how the dialogues that were scored did; what nothing was there to count stays unset.

    Source: PAG (arXiv 2506.10406).
    """
    found = metrics(scores.dialogue for scores in scored)
    for field in dataclasses.fields(found):
        value = getattr(found, field.name)
        if value is not None:
            setattr(message, field.name, value)
