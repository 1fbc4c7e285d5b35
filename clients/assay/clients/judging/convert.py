"""Conversion of `assay.clients.judging.types` to and from judge.proto and process.proto. Pure.

`assay.clients.core.messages` converts what follows from names; this module adds the rest. A result
without an outcome, with a number that is not finite or out of its range, or that does not fit its
item (as many scores as responses, steps inside the response) is a fault.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.convert import limits_from_proto
from assay.clients.core.messages import NotFiniteError, SenselessError, Shape, add_prompt
from assay.clients.faults import fault_from_proto, make_fault
from assay.clients.judging import rubrics, types
from assay.clients.judging.self_verification import TurnScore
from assay.clients.types import Fault, Turn
from assay.kit.errors import ConfigError
from assay.kit.reasons import Reason

J = TypeVar("J")

JUDGE_SETTINGS = Shape(
    types.JudgeSettings,
    judge_pb2.JudgeSettings,
    names={"scoring": "scoring_mode", "overflow": "overflow_policy"},
    zero={"scoring": "auto", "overflow": "refuse", "low_mass": "refuse"},
)
STEP_SETTINGS = Shape(types.StepSettings, process_pb2.StepSettings, zero={"splitting": "auto"})
SELF_VERIFICATION_SETTINGS = Shape(
    types.SelfVerificationSettings, process_pb2.SelfVerificationSettings
)
_RANKING: dict[str, judge_pb2.RankingMode.ValueType] = {
    "auto": judge_pb2.RANKING_MODE_UNSPECIFIED,
    "anchor": judge_pb2.RANKING_MODE_ANCHOR,
    "round-robin": judge_pb2.RANKING_MODE_ROUND_ROBIN,
    "swiss": judge_pb2.RANKING_MODE_SWISS,
}

_PROMPT = frozenset({"prompt"})
_ANCHOR = {"anchor": "anchor_response"}
_TURNS = frozenset({"turns", "turns_a", "turns_b"})
JUDGE_ITEM = Shape(types.JudgeItem, judge_pb2.JudgeItem, names=_ANCHOR, elsewhere=_PROMPT | _TURNS)
PAIR_ITEM = Shape(
    types.PairItem,
    judge_pb2.PairItem,
    names={"a": "response_a", "b": "response_b"},
    elsewhere=_PROMPT | _TURNS,
)
GROUP_ITEM = Shape(types.GroupItem, judge_pb2.GroupItem, names=_ANCHOR, elsewhere=_PROMPT)
STEP_ITEM = Shape(types.StepItem, process_pb2.StepItem, elsewhere=_PROMPT)
SELF_VERIFICATION_ITEM = Shape(
    types.SelfVerificationItem,
    process_pb2.SelfVerificationItem,
    names={"turns": "policy_turns"},
    elsewhere=_PROMPT,
)

CRITERION = Shape(
    rubrics.Criterion,
    judge_pb2.Criterion,
    names={"evidence": "evidence_required"},
    zero={"kind": "binary"},
)
RUBRIC_ITEM = Shape(
    rubrics.RubricItem, judge_pb2.RubricItem, elsewhere=_PROMPT | frozenset({"rubric"})
)
RUBRIC_SETTINGS = Shape(
    rubrics.RubricSettings,
    judge_pb2.RubricSettings,
    zero={"missing": "fault", "order": "auto", "compound": "refuse"},
)
ENSEMBLE = Shape(rubrics.Ensemble, judge_pb2.Ensemble, zero={"combination": "mean"})

_JUDGE = Shape(types.JudgeRef, judge_pb2.JudgeRef, names={"revision": "model_revision"})
_USAGE = Shape(
    types.Usage,
    common_pb2.TokenUsage,
    names={
        "prompt": "prompt_tokens",
        "cached": "cached_prompt_tokens",
        "completion": "completion_tokens",
        "engine_s": "engine",
    },
)
_TIMINGS = Shape(types.Timings, common_pb2.Timings)
_VOTE = Shape(types.Vote, judge_pb2.Vote, ratios=frozenset({"value"}))
_BY: dict[str, Shape[Any]] = {"judge": _JUDGE, "usage": _USAGE}
_SAID = frozenset({"opinions"})
_CUT = {"truncated": "candidate_truncated"}
_TIMED = frozenset({"timings"})
_JUDGEMENT = Shape(
    types.ModelJudgement,
    judge_pb2.ModelJudgement,
    names=_CUT,
    within={**_BY, "votes": _VOTE},
    ratios=frozenset({"verdict_mass", "letter_gap", "disagreement"}),
    elsewhere=_TIMED | _SAID,
)
_CRITERION_RESULT = Shape(
    rubrics.CriterionResult,
    judge_pb2.CriterionResult,
    within={"judge": _JUDGE},
    ratios=frozenset({"verdict_mass", "disagreement"}),
    elsewhere=_SAID | {"score", "fault", "evidence"},
)
_RUBRIC = Shape(
    rubrics.RubricJudgement,
    judge_pb2.RubricJudgement,
    names=_CUT,
    within=_BY,
    zero={"order": "auto"},
    ratios=frozenset({"score", "least", "greatest", "verdict_mass", "disagreement"}),
    elsewhere=_TIMED | {"criteria"},
)
_PAIR = Shape(
    types.PairJudgement,
    judge_pb2.PairJudgement,
    names={**_CUT, "forward": "forward_probability", "reverse": "reverse_probability"},
    within=_BY,
    ratios=frozenset(
        {"win_probability", "forward", "reverse", "order_gap", "verdict_mass", "letter_gap"}
    ),
    elsewhere=_TIMED,
)
_RANKED = Shape(
    types.GroupRanking,
    judge_pb2.GroupRanking,
    names={"truncated": "candidates_truncated"},
    within=_BY,
    ratios=frozenset({"scores", "order_gaps", "verdict_mass", "letter_gaps"}),
    elsewhere=_TIMED,
)
_STEP = Shape(
    types.StepScore,
    process_pb2.StepScore,
    names={"start": "range.start", "end": "range.end"},
    ratios=frozenset({"score"}),
)
_STEPS = Shape(
    types.StepScores,
    process_pb2.StepScores,
    names={"first_error": "first_error_step"},
    within={"steps": _STEP, "usage": _USAGE},
    ratios=frozenset({"aggregate", "error_threshold", "verdict_mass"}),
    elsewhere=_TIMED | {"judge"},
)
_TURN = Shape(
    TurnScore,
    process_pb2.TurnScore,
    zero={"strict_verdict": None, "tolerant_verdict": None},
    ratios=frozenset({"correct_probability"}),
)
_TEMPLATE = Shape(types.TemplateInfo, judge_pb2.TemplateInfo)
_FITNESS = Shape(
    types.TemplateFitness,
    judge_pb2.TemplateFitness,
    names={"scoring": "scoring_mode"},
    zero={"scoring": "auto"},
    ratios=frozenset({"auc", "verdict_mass"}),
)
_MODEL = Shape(
    types.JudgeModelInfo,
    judge_pb2.JudgeModelInfo,
    zero={"scoring_modes": "auto"},
    within={"fitness": _FITNESS},
)
_PROCESS_MODEL = Shape(
    types.ProcessModelInfo, process_pb2.ProcessModelInfo, zero={"default_splitting": "auto"}
)


def write_settings(shape: Shape[Any], settings: Any) -> Any:
    """Writes the settings, which hold for all items of a call.

    Raises:
        ConfigError: a value does not fit the wire, or is none of its kind.
    """
    try:
        weight = getattr(settings, "shaping_weight", 0.0)
        if not math.isfinite(weight):
            raise ValueError(f"shaping_weight is {weight}; pass a finite number")
        return shape.write(settings)
    except (ValueError, TypeError) as error:
        text = " ".join(str(error).split())[:200]
        raise ConfigError(f"{type(settings).__name__}: {text}") from error


def ranking_mode(ranking: types.RankingMode) -> judge_pb2.RankingMode.ValueType:
    """Writes how the responses of a group are compared.

    Raises:
        ConfigError: there is no such mode.
    """
    if ranking not in _RANKING:
        ways = ", ".join(_RANKING)
        raise ConfigError(f"judge_groups: ranking is {ranking!r}; choose one of {ways}")
    return _RANKING[ranking]


def write_item(shape: Shape[Any], item: Any, wire_id: str) -> Any:
    """Writes an item under its id in the request.

    Raises:
        ValueError: a value does not fit the wire, or there is more than one thing to judge against.
        TypeError: a value has a type that no item can have.
    """
    if isinstance(item, types.JudgeItem):
        _text("response", item.response)
        if sum(x is not None for x in (item.ground_truth, item.anchor, item.rubric)) > 1:
            raise ValueError("pass one of ground_truth, anchor and rubric, not several")
    message = shape.write(item, id=wire_id)
    if isinstance(item, rubrics.RubricItem):
        _text("response", item.response)
        if not isinstance(item.rubric, rubrics.Rubric):
            raise TypeError(
                f"rubric is {type(item.rubric).__name__}; pass a Rubric, or read_rubric"
            )
        message.rubric.criteria.extend(
            CRITERION.write(one, id=one.id) for one in item.rubric.criteria
        )
    add_prompt(item.prompt, message)
    if isinstance(item, types.JudgeItem | types.PairItem):
        for name in sorted(_TURNS & {one.name for one in dataclasses.fields(item)}):
            for turn in getattr(item, name):
                _add_turn(getattr(message, name), turn)
    return message


def _add_turn(turns: Any, turn: Turn) -> None:
    """Writes a turn of a trajectory: what the policy produced is the assistant's."""
    if not isinstance(turn, Turn):
        raise TypeError(f"a turn is {type(turn).__name__}; pass a Turn")
    added = turns.add()
    added.message.role = "assistant" if turn.from_policy else turn.role
    added.message.content = turn.content
    for call in turn.tool_calls:
        given = call.arguments
        if not isinstance(given, str):
            given = "" if given is None else json.dumps(given, ensure_ascii=False)
        added.tool_calls.add(name=call.name, arguments=given)


def _text(name: str, value: object) -> None:
    """Raises for a value that is no text: the wire would take None for an empty one."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}; pass a text")


def prompt_key(message: Any) -> str:
    """A key, equal for items of one prompt, which share its prefix when they travel in one call."""
    return "\0".join(f"{part.role}\0{part.content}" for part in message.prompt)


def _read(field: str, read: Callable[[Any, Any], J], sent: Any, message: Any) -> J | Fault:
    kind = message.WhichOneof("outcome")
    if kind == "fault":
        return fault_from_proto(message.fault)
    if kind != field:
        return make_fault(
            Reason.MISSING_RESULT, f"the server answered with neither {field} nor fault"
        )
    try:
        return read(sent, message)
    except NotFiniteError as error:
        reason, text = Reason.SCORE_NOT_FINITE, str(error)
    except SenselessError as error:
        reason, text = Reason.INTERNAL, str(error)
    return make_fault(reason, f"{text}; report it to whoever runs the server")


def _judgement(_: judge_pb2.JudgeItem, message: judge_pb2.JudgeResult) -> types.ModelJudgement:
    found = message.judgement
    return _JUDGEMENT.read(
        found, timings=_TIMINGS.read(message.timings), opinions=_opinions(found.opinions)
    )


def _opinions(messages: Iterable[judge_pb2.Opinion]) -> tuple[types.Opinion, ...]:
    return tuple(
        types.Opinion(_JUDGE.read(one.judge), **_score_or_fault(one, f"model {one.judge.model}"))
        for one in messages
    )


def _score_or_fault(message: Any, what: str) -> dict[str, Any]:
    kind = message.WhichOneof("outcome")
    if kind == "fault":
        return {"fault": fault_from_proto(message.fault)}
    if kind is None:
        return {}
    if not math.isfinite(message.score):
        raise NotFiniteError(f"the server sent {message.score} as score of {what}")
    return {"score": message.score}


def _rubric(sent: judge_pb2.RubricItem, message: judge_pb2.RubricResult) -> rubrics.RubricJudgement:
    found = message.judgement
    if len(found.criteria) < len(sent.rubric.criteria):
        raise SenselessError(
            f"the server sent {len(found.criteria)} criteria for {len(sent.rubric.criteria)}"
        )
    if found.least > found.greatest:
        raise SenselessError(f"the server sent {found.least} as least and {found.greatest} as most")
    criteria = tuple(_criterion(one, len(sent.response)) for one in found.criteria)
    return _RUBRIC.read(found, timings=_TIMINGS.read(message.timings), criteria=criteria)


def _criterion(message: judge_pb2.CriterionResult, length: int) -> rubrics.CriterionResult:
    said = _score_or_fault(message, f"criterion {message.id}")
    if not 0 <= said.get("score", 0) <= 1:
        raise SenselessError(
            f"the server sent {message.score} as score of criterion {message.id}, not in [0, 1]"
        )
    evidence = None
    if message.HasField("evidence"):
        evidence = (message.evidence.start, message.evidence.end)
        if not 0 <= evidence[0] < evidence[1] <= length:
            raise SenselessError(f"the server sent evidence at {evidence} of {length} characters")
    return _CRITERION_RESULT.read(
        message, evidence=evidence, opinions=_opinions(message.opinions), **said
    )


def _pair(_: judge_pb2.PairItem, message: judge_pb2.PairResult) -> types.PairJudgement:
    return _PAIR.read(message.judgement, timings=_TIMINGS.read(message.timings))


def _ranking(sent: judge_pb2.GroupItem, message: judge_pb2.GroupResult) -> types.GroupRanking:
    found, count = message.ranking, len(sent.responses)
    lists = {"scores": found.scores, "order_gaps": found.order_gaps}
    if found.letter_gaps:
        lists["letter_gaps"] = found.letter_gaps
    for name, values in lists.items():
        if len(values) != count:
            raise SenselessError(f"the server sent {len(values)} {name} for {count} responses")
    return _RANKED.read(found, timings=_TIMINGS.read(message.timings))


def _step_scores(sent: process_pb2.StepItem, message: process_pb2.StepResult) -> types.StepScores:
    found = message.scores
    judge = types.JudgeRef(found.model, found.model_revision)
    scores = _STEPS.read(found, judge=judge, timings=_TIMINGS.read(message.timings))
    _check_spans(scores.steps, len(sent.response))
    first, count = scores.first_error, len(scores.steps)
    if first is not None and not 0 <= first < count:
        raise SenselessError(f"the server sent {first} as first error of {count}")
    return scores


def _check_spans(steps: Iterable[types.StepScore], length: int) -> None:
    """Steps cover the response without overlap, in order."""
    edges = [0, *(edge for step in steps for edge in (step.start, step.end)), length]
    joined = all(end == start for end, start in zip(edges[::2], edges[1::2], strict=True))
    if not joined or any(end < start for start, end in pairwise(edges)):
        raise SenselessError("the server sent steps that do not cover the response")


def _turn_scores(
    sent: process_pb2.SelfVerificationItem, message: process_pb2.SelfVerificationResult
) -> types.SelfVerificationScores:
    found, count = message.scores, len(sent.policy_turns)
    if len(found.turns) != count:
        raise SenselessError(f"the server sent {len(found.turns)} scores for {count} turns")
    turns = tuple(_TURN.read(turn) for turn in found.turns)
    for index, turn in enumerate(turns):
        verdicts = (turn.strict_verdict, turn.tolerant_verdict)
        if None in (verdicts if index % 2 else (turn.attempt_correct,)):
            what = "a verdict" if index % 2 else "whether the attempt is right"
            raise SenselessError(f"the server sent turn {index} without {what}")
    return types.SelfVerificationScores(turns, found.revision_due, _TIMINGS.read(message.timings))


judge_result = partial(_read, "judgement", _judgement)
pair_result = partial(_read, "judgement", _pair)
group_result = partial(_read, "ranking", _ranking)
rubric_result = partial(_read, "judgement", _rubric)
step_result = partial(_read, "scores", _step_scores)
self_verification_result = partial(_read, "scores", _turn_scores)


def server_info(
    judges: judge_pb2.ListJudgeModelsResponse, processes: process_pb2.ListProcessModelsResponse
) -> types.JudgeServerInfo:
    """Reads a judge service's description; the stricter of the two services' limits hold.

    Words of a later version are skipped.
    """
    both = (limits_from_proto(judges.limits), limits_from_proto(processes.limits))
    return types.JudgeServerInfo(
        models=tuple(_MODEL.read(info) for info in judges.models),
        process_models=tuple(_PROCESS_MODEL.read(info) for info in processes.models),
        templates=tuple(_TEMPLATE.read(template) for template in judges.templates),
        max_items=min(limits.max_items for limits in both),
        max_message_bytes=min(limits.max_message_bytes for limits in both),
        max_item_bytes=min(limits.max_item_bytes for limits in both),
        version=judges.server_version,
    )
