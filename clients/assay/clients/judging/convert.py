"""From `assay.clients.judging.types` to the messages of judge.proto and process.proto. Pure.

What comes back is read by `assay.clients.judging.reading`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.judging.types import (
    GroupItem,
    JudgeItem,
    JudgeSettings,
    PairItem,
    Prompt,
    RankingMode,
    ScoringMode,
    SelfVerificationItem,
    SelfVerificationSettings,
    Splitting,
    StepItem,
    StepSettings,
)
from assay.rpc.errors import ConfigError

V = TypeVar("V")

SCORING: dict[ScoringMode, judge_pb2.ScoringMode.ValueType] = {
    "auto": judge_pb2.SCORING_MODE_UNSPECIFIED,
    "token-probability": judge_pb2.SCORING_MODE_TOKEN_PROBABILITY,
    "votes": judge_pb2.SCORING_MODE_VOTES,
    "scalar-head": judge_pb2.SCORING_MODE_SCALAR_HEAD,
    "consensus": judge_pb2.SCORING_MODE_CONSENSUS,
}
SPLITTING: dict[Splitting, process_pb2.StepSplitting.ValueType] = {
    "auto": process_pb2.STEP_SPLITTING_UNSPECIFIED,
    "line": process_pb2.STEP_SPLITTING_LINE,
    "paragraph": process_pb2.STEP_SPLITTING_PARAGRAPH,
    "tag": process_pb2.STEP_SPLITTING_TAG,
    "code-line": process_pb2.STEP_SPLITTING_CODE_LINE,
}
_OVERFLOW = {
    "refuse": judge_pb2.OVERFLOW_POLICY_UNSPECIFIED,
    "keep-ends": judge_pb2.OVERFLOW_POLICY_KEEP_ENDS,
}
_RANKING = {
    "auto": judge_pb2.RANKING_MODE_UNSPECIFIED,
    "anchor": judge_pb2.RANKING_MODE_ANCHOR,
    "round-robin": judge_pb2.RANKING_MODE_ROUND_ROBIN,
}
_AGGREGATION = {
    "min": process_pb2.STEP_AGGREGATION_MIN,
    "product": process_pb2.STEP_AGGREGATION_PRODUCT,
    "last": process_pb2.STEP_AGGREGATION_LAST,
    "mean": process_pb2.STEP_AGGREGATION_MEAN,
}
_PARSING = {
    "strict": process_pb2.VERDICT_PARSING_STRICT,
    "tolerant": process_pb2.VERDICT_PARSING_TOLERANT,
}


def judge_settings(settings: JudgeSettings) -> judge_pb2.JudgeSettings:
    """Writes how to judge.

    Raises:
        ConfigError: a value does not fit the wire, or is none of its kind.
    """
    with _Checked("JudgeSettings"):
        message = judge_pb2.JudgeSettings(
            model=settings.model,
            template=settings.template,
            scoring_mode=_known("scoring", settings.scoring, SCORING),
            votes=settings.votes,
            max_tokens=settings.max_tokens,
            overflow_policy=_known("overflow", settings.overflow, _OVERFLOW),
            meta_critique=settings.meta_critique,
        )
        _sampling(settings, message)
    return message


def step_settings(settings: StepSettings) -> process_pb2.StepSettings:
    """Writes how to score steps.

    Raises:
        ConfigError: a value does not fit the wire, or is none of its kind.
    """
    with _Checked("StepSettings"):
        message = process_pb2.StepSettings(
            model=settings.model,
            splitting=_known("splitting", settings.splitting, SPLITTING),
            step_tag=settings.step_tag,
            aggregation=_known("aggregation", settings.aggregation, _AGGREGATION),
            votes=settings.votes,
            max_tokens=settings.max_tokens,
            meta_critique=settings.meta_critique,
            template=settings.template,
        )
        if settings.error_threshold is not None:
            message.error_threshold = settings.error_threshold
        _sampling(settings, message)
    return message


def self_verification_settings(
    settings: SelfVerificationSettings,
) -> process_pb2.SelfVerificationSettings:
    """Writes how to score self-verification.

    Raises:
        ConfigError: a value does not fit the wire, or is none of its kind.
    """
    with _Checked("SelfVerificationSettings"):
        if not math.isfinite(settings.shaping_weight):
            raise ValueError(f"shaping_weight is {settings.shaping_weight}; pass a finite number")
        return process_pb2.SelfVerificationSettings(
            parsing=_known("parsing", settings.parsing, _PARSING),
            shaping_weight=settings.shaping_weight,
            answer_verifier=settings.answer_verifier,
            model=settings.model,
        )


def ranking_mode(ranking: RankingMode) -> judge_pb2.RankingMode.ValueType:
    """Writes how the responses of a group are set against each other.

    Raises:
        ConfigError: it is none of the ways.
    """
    with _Checked("judge_groups"):
        return _known("ranking", ranking, _RANKING)


class _Checked:
    """Makes an error of the settings, which hold for all items, a ConfigError of the call."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError | TypeError):
            raise ConfigError(f"{self._what}: {' '.join(str(error).split())[:200]}") from error


def _known(name: str, value: Any, table: Mapping[Any, V]) -> V:
    if value not in table:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(table)}")
    return table[value]


def _sampling(
    settings: JudgeSettings | StepSettings,
    message: judge_pb2.JudgeSettings | process_pb2.StepSettings,
) -> None:
    if settings.temperature is not None:
        message.temperature = settings.temperature
    if settings.seed is not None:
        message.seed = settings.seed


def judge_item(item: JudgeItem, wire_id: str) -> judge_pb2.JudgeItem:
    """Writes a response to judge under its id in the request.

    Raises:
        ValueError: a value does not fit the wire, or there is more than one thing to judge against.
        TypeError: a value has a type that no item can have.
    """
    message = judge_pb2.JudgeItem(id=wire_id, response=_text("response", item.response))
    _add_prompt(item.prompt, message)
    given = [
        (field, value)
        for field, value in (
            ("ground_truth", item.ground_truth),
            ("anchor_response", item.anchor),
            ("rubric", item.rubric),
        )
        if value is not None
    ]
    if len(given) > 1:
        raise ValueError("pass one of ground_truth, anchor and rubric, not several")
    for field, value in given:
        setattr(message, field, value)
    return message


def pair_item(item: PairItem, wire_id: str) -> judge_pb2.PairItem:
    """Writes a pair under its id in the request; errors as for `judge_item`."""
    message = judge_pb2.PairItem(
        id=wire_id,
        response_a=_text("a", item.a),
        response_b=_text("b", item.b),
        ground_truth=item.ground_truth,
    )
    _add_prompt(item.prompt, message)
    return message


def group_item(item: GroupItem, wire_id: str) -> judge_pb2.GroupItem:
    """Writes a group under its id in the request; errors as for `judge_item`."""
    message = judge_pb2.GroupItem(
        id=wire_id,
        responses=_texts("responses", item.responses),
        anchor_response=item.anchor,
        ground_truth=item.ground_truth,
    )
    _add_prompt(item.prompt, message)
    return message


def step_item(item: StepItem, wire_id: str) -> process_pb2.StepItem:
    """Writes a response to score by steps under its id; errors as for `judge_item`."""
    message = process_pb2.StepItem(
        id=wire_id,
        response=_text("response", item.response),
        ground_truth=item.ground_truth,
        steps=_texts("steps", item.steps),
    )
    _add_prompt(item.prompt, message)
    return message


def self_verification_item(
    item: SelfVerificationItem, wire_id: str
) -> process_pb2.SelfVerificationItem:
    """Writes a dialogue under its id in the request; errors as for `judge_item`."""
    message = process_pb2.SelfVerificationItem(
        id=wire_id,
        policy_turns=_texts("turns", item.turns),
        ground_truth=item.ground_truth,
        attempts_correct=item.attempts_correct,
        group_id=item.group_id,
    )
    _add_prompt(item.prompt, message)
    return message


def _text(name: str, value: Any) -> Any:
    """A text; the wire would take None for an empty one."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}; pass a text")
    return value


def _texts(name: str, values: Any) -> Any:
    """A sequence of texts; one text would be taken apart into its letters."""
    if isinstance(values, str):
        raise TypeError(f"{name} is one text; pass a list of texts")
    return values


def _add_prompt(prompt: Prompt, message: Any) -> None:
    if isinstance(prompt, str):
        if prompt:
            message.prompt.add(role="user", content=prompt)
        return
    part: Any  # a caller's own; may be anything
    for part in prompt:
        if not isinstance(part, Mapping) or not {"role", "content"} <= part.keys():
            raise ValueError("a message of the prompt is not {'role': ..., 'content': ...}")
        message.prompt.add(role=part["role"], content=part["content"])


def prompt_key(message: Any) -> str:
    """Equal for items of one prompt, which share its beginning when they travel in one call."""
    return "\0".join(f"{part.role}\0{part.content}" for part in message.prompt)
