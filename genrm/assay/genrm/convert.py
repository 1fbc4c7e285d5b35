"""From the contract's messages to the domain's values. Pure.

Roles, numbers and sizes are checked here; a wrong value is the fault of its own item. Judges check
the rest (an empty response, a missing anchor, steps that do not join to the response).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.judging.rubrics import (
    Combination,
    CompoundCriterion,
    Criterion,
    CriterionKind,
    CriterionOrder,
    MissingCriterion,
    RubricSettings,
)
from assay.clients.judging.types import Aggregation, LowMass, Overflow, RankingMode, ScoringMode
from assay.genrm.domain import (
    CandidateGroup,
    CandidatePair,
    CandidateResponse,
    CandidateRubric,
    CandidateSteps,
    ChatMessage,
    JudgePanel,
    ResolvedJudgeSettings,
    ResolvedStepSettings,
    Said,
    Splitting,
    ToolUse,
    TrajectoryTurn,
)
from assay.genrm.engines.base import ModelInfo
from assay.genrm.judges.modes import invalid
from assay.genrm.judges.rubrics import orders_of
from assay.kit import limits
from assay.kit.faults import Unjudgeable
from assay.kit.labels import trouble_of
from assay.kit.reasons import Reason

MAX_VOTES = 256
MAX_TOKENS = 32_768
MAX_TEMPERATURE = 10.0
MAX_GROUP = 256
MAX_ROUND_ROBIN = 64
MAX_MODELS = 16
_SEEDS = 2**62  # judges count up from a seed; what comes out must stay a signed 64-bit number
_ROLES = frozenset(("system", "user", "assistant", "tool"))
_MAX_NAME_CHARS = 256

_JUDGE_DEFAULTS = ResolvedJudgeSettings()
_STEP_DEFAULTS = ResolvedStepSettings()
_RUBRIC_DEFAULTS = RubricSettings()
_SCORING: dict[int, ScoringMode] = {
    judge_pb2.SCORING_MODE_UNSPECIFIED: "auto",
    judge_pb2.SCORING_MODE_TOKEN_PROBABILITY: "token-probability",
    judge_pb2.SCORING_MODE_VOTES: "votes",
    judge_pb2.SCORING_MODE_SCALAR_HEAD: "scalar-head",
    judge_pb2.SCORING_MODE_CONSENSUS: "consensus",
}
_OVERFLOW: dict[int, Overflow] = {
    judge_pb2.OVERFLOW_POLICY_UNSPECIFIED: "refuse",
    judge_pb2.OVERFLOW_POLICY_KEEP_ENDS: "keep-ends",
}
_LOW_MASS: dict[int, LowMass] = {
    judge_pb2.LOW_MASS_POLICY_UNSPECIFIED: "refuse",
    judge_pb2.LOW_MASS_POLICY_VOTES: "votes",
}
_RANKING: dict[int, RankingMode] = {
    judge_pb2.RANKING_MODE_UNSPECIFIED: "auto",
    judge_pb2.RANKING_MODE_ANCHOR: "anchor",
    judge_pb2.RANKING_MODE_ROUND_ROBIN: "round-robin",
    judge_pb2.RANKING_MODE_SWISS: "swiss",
}
_CRITERION_KINDS: dict[int, CriterionKind] = {
    judge_pb2.CRITERION_KIND_UNSPECIFIED: "binary",
    judge_pb2.CRITERION_KIND_GRADED: "graded",
}
_MISSING: dict[int, MissingCriterion] = {
    judge_pb2.MISSING_CRITERION_UNSPECIFIED: "fault",
    judge_pb2.MISSING_CRITERION_LEAVE_OUT: "leave-out",
}
_COMPOUND: dict[int, CompoundCriterion] = {
    judge_pb2.COMPOUND_CRITERION_UNSPECIFIED: "refuse",
    judge_pb2.COMPOUND_CRITERION_SPLIT: "split",
    judge_pb2.COMPOUND_CRITERION_ALLOW: "allow",
}
ORDERS: dict[int, CriterionOrder] = {
    judge_pb2.CRITERION_ORDER_UNSPECIFIED: "auto",
    judge_pb2.CRITERION_ORDER_RESPONSE_FIRST: "response-first",
    judge_pb2.CRITERION_ORDER_CRITERION_FIRST: "criterion-first",
}
_COMBINATIONS: dict[int, Combination] = {
    judge_pb2.COMBINATION_UNSPECIFIED: "mean",
    judge_pb2.COMBINATION_MEDIAN: "median",
    judge_pb2.COMBINATION_MAJORITY: "majority",
    judge_pb2.COMBINATION_MIN: "min",
}
SPLITTINGS: dict[int, Splitting] = {
    process_pb2.STEP_SPLITTING_UNSPECIFIED: "auto",
    process_pb2.STEP_SPLITTING_LINE: "line",
    process_pb2.STEP_SPLITTING_PARAGRAPH: "paragraph",
    process_pb2.STEP_SPLITTING_TAG: "tag",
    process_pb2.STEP_SPLITTING_CODE_LINE: "code-line",
}
_AGGREGATION: dict[int, Aggregation] = {
    process_pb2.STEP_AGGREGATION_UNSPECIFIED: "min",
    process_pb2.STEP_AGGREGATION_MIN: "min",
    process_pb2.STEP_AGGREGATION_PRODUCT: "product",
    process_pb2.STEP_AGGREGATION_LAST: "last",
    process_pb2.STEP_AGGREGATION_MEAN: "mean",
}

AnySettings = judge_pb2.JudgeSettings | process_pb2.StepSettings
V = TypeVar("V")


def judge_settings(
    message: judge_pb2.JudgeSettings, fresh_seed: int, least_mass: float | None = None
) -> ResolvedJudgeSettings:
    """Resolves settings; `fresh_seed` counts where the caller states none.

    `least_mass` is the server's word, for every template.

    Raises:
        Unjudgeable: INVALID_PARAMETER, naming the setting.
    """
    scoring = _named("scoring_mode", message.scoring_mode, _SCORING)
    votes = _votes(message.votes, _JUDGE_DEFAULTS.votes)
    samples = votes > 1 and scoring in ("auto", "votes", "consensus")
    return ResolvedJudgeSettings(
        template=_name("template", message.template),
        scoring=scoring,
        votes=votes,
        temperature=_temperature(message, samples=samples),
        max_tokens=_max_tokens(message.max_tokens),
        seed=_seed(message, fresh_seed),
        overflow=_named("overflow_policy", message.overflow_policy, _OVERFLOW),
        meta_critique=message.meta_critique,
        low_mass=_named("low_mass", message.low_mass, _LOW_MASS),
        least_mass=least_mass,
        max_letter_gap=_optional_share("max_letter_gap", message),
    )


def step_settings(
    message: process_pb2.StepSettings, fresh_seed: int, least_mass: float | None = None
) -> ResolvedStepSettings:
    """Resolves settings; as `judge_settings`."""
    votes = _votes(message.votes, _STEP_DEFAULTS.votes)
    threshold = None
    if message.HasField("error_threshold"):
        threshold = _between("error_threshold", message.error_threshold, 0.0, 1.0)
    return ResolvedStepSettings(
        splitting=_named("splitting", message.splitting, SPLITTINGS),
        step_tag=_name("step_tag", message.step_tag),
        aggregation=_named("aggregation", message.aggregation, _AGGREGATION),
        error_threshold=threshold,
        votes=votes,
        temperature=_temperature(message, samples=votes > 1),
        max_tokens=_max_tokens(message.max_tokens),
        seed=_seed(message, fresh_seed),
        meta_critique=message.meta_critique,
        template=_name("template", message.template),
        least_mass=least_mass,
    )


def run_of(message: Any) -> str:
    """Which of the caller's runs asks; empty for none.

    Raises:
        Unjudgeable: INVALID_LABEL: it is too long.
    """
    run: str = message.run
    if trouble := trouble_of({"run": run}):
        raise Unjudgeable(Reason.INVALID_LABEL, trouble)
    return run


def max_order_gap(
    message: judge_pb2.JudgePairsRequest | judge_pb2.JudgeGroupsRequest,
) -> float | None:
    """The greatest order gap that counts; None for any.

    Raises:
        Unjudgeable: INVALID_PARAMETER: not in [0, 1].
    """
    return _optional_share("max_order_gap", message)


def judge_item(message: judge_pb2.JudgeItem) -> CandidateResponse:
    """One response to judge.

    Raises:
        Unjudgeable: INVALID_PARAMETER: an unknown role.
    """
    against = message.WhichOneof("against")
    return CandidateResponse(
        prompt=chat(message.prompt),
        response=_said(message.response, message.turns, "response"),
        ground_truth=message.ground_truth if against == "ground_truth" else None,
        anchor=message.anchor_response if against == "anchor_response" else None,
        rubric=message.rubric if against == "rubric" else None,
    )


def pair_item(message: judge_pb2.PairItem) -> CandidatePair:
    """One pair; errors as for `judge_item`."""
    return CandidatePair(
        prompt=chat(message.prompt),
        a=_said(message.response_a, message.turns_a, "response_a"),
        b=_said(message.response_b, message.turns_b, "response_b"),
        ground_truth=message.ground_truth,
    )


def group_item(message: judge_pb2.GroupItem, ranking: RankingMode) -> CandidateGroup:
    """One group; with `ranking` each against each it may hold fewer responses.

    Raises:
        Unjudgeable: INVALID_PARAMETER: an unknown role, or the group is too large.
    """
    anchored = ranking == "anchor" or (ranking == "auto" and bool(message.anchor_response))
    most = MAX_GROUP if anchored or ranking == "swiss" else MAX_ROUND_ROBIN
    if len(message.responses) > most:
        how = "against an anchor" if anchored else "each against each"
        how = "by swiss" if ranking == "swiss" else how
        raise Unjudgeable(
            Reason.INVALID_PARAMETER,
            f"the group has {len(message.responses)} responses; {how}, at most {most} are ranked",
        )
    return CandidateGroup(
        prompt=chat(message.prompt),
        responses=tuple(message.responses),
        anchor=message.anchor_response,
        ground_truth=message.ground_truth,
    )


def rounds(message: judge_pb2.JudgeGroupsRequest, ranking: RankingMode) -> int:
    """Rounds of a Swiss ranking; 0 for the default.

    Raises:
        Unjudgeable: INVALID_PARAMETER: out of range, or given for another ranking.
    """
    if message.rounds and ranking != "swiss":
        raise Unjudgeable(
            Reason.INVALID_PARAMETER,
            f"rounds are of the ranking 'swiss', and this one is {ranking!r}; leave them out",
        )
    if message.rounds == 1:
        raise Unjudgeable(
            Reason.INVALID_PARAMETER, "one round joins nobody to a scale; give 2 or more, or 0"
        )
    return int(_between("rounds", message.rounds, 0, MAX_GROUP))


def ranking_mode(number: int) -> RankingMode:
    """How a group is ranked.

    Raises:
        Unjudgeable: INVALID_PARAMETER: no such mode.
    """
    return _named("ranking_mode", number, _RANKING)


def step_item(message: process_pb2.StepItem) -> CandidateSteps:
    """One response to score by steps; errors as for `judge_item`."""
    return CandidateSteps(
        prompt=chat(message.prompt),
        response=message.response,
        ground_truth=message.ground_truth,
        steps=tuple(message.steps),
    )


def rubric_settings(message: judge_pb2.RubricSettings) -> RubricSettings:
    """How criteria become one score.

    Raises:
        Unjudgeable: INVALID_PARAMETER, naming the setting.
    """
    gate = None
    if message.HasField("gate"):
        gate = _between("gate", message.gate, 0.0, 1.0)
        if not gate:
            raise invalid("gate is 0, which every response passes; leave it out")
    share = _RUBRIC_DEFAULTS.least_read
    if message.HasField("least_read"):
        share = _between("least_read", message.least_read, 0.0, 1.0)
    margin = _between("margin", message.margin, 0.0, 0.5)
    if margin and not message.second_model:
        raise invalid("margin is above 0 and there is no second_model to ask; name one")
    return RubricSettings(
        missing=_named("missing", message.missing, _MISSING),
        least_read=share,
        gate=gate,
        order=_named("order", message.order, ORDERS),
        compound=_named("compound", message.compound, _COMPOUND),
        second_model=message.second_model,
        margin=margin,
    )


def rubric_item(message: judge_pb2.RubricItem) -> CandidateRubric:
    """One response and its rubric.

    Raises:
        Unjudgeable: INVALID_PARAMETER: an unknown role, or an unknown kind of criterion.
    """
    criteria = tuple(
        Criterion(
            one.id,
            one.text,
            one.weight,
            _named("kind", one.kind, _CRITERION_KINDS),
            one.evidence_required,
        )
        for one in message.rubric.criteria
    )
    return CandidateRubric(chat(message.prompt), message.response, criteria)


def orders(
    items: Sequence[judge_pb2.RubricItem], settings: judge_pb2.RubricSettings
) -> dict[str, CriterionOrder]:
    """What comes first in the prompts of each item, by its id."""
    ids = [item.id for item in items]
    asked = ORDERS.get(settings.order, "auto")
    if asked != "auto":
        return dict.fromkeys(ids, asked)
    groups = [
        (
            tuple((one.role, one.content) for one in item.prompt),
            tuple(one.text for one in item.rubric.criteria),
        )
        for item in items
    ]
    lengths = [len(item.response) for item in items]
    texts = [[len(one.text) for one in item.rubric.criteria] for item in items]
    return dict(zip(ids, orders_of(groups, lengths, texts), strict=True))


def panel(
    message: judge_pb2.Ensemble,
    settings: judge_pb2.JudgeSettings,
    served: Callable[[str], ModelInfo],
) -> JudgePanel:
    """Who judges: the ensemble, or the one model of the settings.

    `served` is the model of a name.

    Raises:
        Unjudgeable: INVALID_PARAMETER, or what `served` raises.
    """
    names = list(message.models)
    if not names:
        if message.quorum or message.combination:
            raise invalid("the ensemble names no models")
        return JudgePanel((served(settings.model),))
    if settings.model:
        raise invalid(f"the settings name the model {settings.model[:80]!r} beside an ensemble")
    if not 2 <= len(names) <= MAX_MODELS or len(set(names)) < len(names):
        raise invalid(
            f"an ensemble has 2 to {MAX_MODELS} different models; it names {names!r}"[:300]
        )
    quorum = int(_between("quorum", message.quorum, 0, len(names))) or len(names) // 2 + 1
    how = _named("combination", message.combination, _COMBINATIONS)
    return JudgePanel(tuple(served(name) for name in names), how, quorum)


def check_size(message: Any) -> None:
    """Refuses an item that is too large.

    Raises:
        Unjudgeable: ITEM_TOO_LARGE.
    """
    size_bytes = message.ByteSize()
    if size_bytes > limits.MAX_ITEM_BYTES:
        raise Unjudgeable(
            Reason.ITEM_TOO_LARGE,
            f"the item has {size_bytes} bytes, the limit is {limits.MAX_ITEM_BYTES}",
        )


def chat(messages: Iterable[common_pb2.ChatMessage]) -> tuple[ChatMessage, ...]:
    """The policy's prompt.

    Raises:
        Unjudgeable: INVALID_PARAMETER: an unknown role.
    """
    prompt = tuple(ChatMessage(message.role, message.content) for message in messages)
    for message in prompt:
        if message.role not in _ROLES:
            raise Unjudgeable(
                Reason.INVALID_PARAMETER,
                f"a message has the role {message.role[:40]!r}; it must be one of "
                f"{', '.join(sorted(_ROLES))}",
            )
    return prompt


def _said(text: str, turns: Sequence[judge_pb2.TrajectoryTurn], name: str) -> Said:
    """A text, or the trajectory that stands in its place."""
    if not turns:
        return text
    if text:
        raise Unjudgeable(
            Reason.INVALID_PARAMETER, f"there are turns beside the {name}; leave one of them out"
        )
    messages = chat(turn.message for turn in turns)
    return tuple(
        TrajectoryTurn(
            said.role,
            said.content,
            tuple(ToolUse(call.name, call.arguments) for call in turn.tool_calls),
        )
        for said, turn in zip(messages, turns, strict=True)
    )


def _named(setting: str, number: int, known: Mapping[int, V]) -> V:
    value = known.get(number)
    if value is None:
        raise Unjudgeable(
            Reason.INVALID_PARAMETER, f"{setting} is {number}; this server knows no such value"
        )
    return value


def _between(setting: str, value: float, least: float, most: float) -> float:
    if not (math.isfinite(value) and least <= value <= most):
        raise Unjudgeable(
            Reason.INVALID_PARAMETER,
            f"{setting} is {value:.15g}; it must be from {least:g} to {most:g}",
        )
    return value


def _optional_share(setting: str, message: Any) -> float | None:
    """A setting in [0, 1] that may be unset."""
    if not message.HasField(setting):
        return None
    return _between(setting, getattr(message, setting), 0.0, 1.0)


def _votes(votes: int, default: int) -> int:
    return int(_between("votes", votes, 0, MAX_VOTES)) or default


def _max_tokens(tokens: int) -> int:
    return int(_between("max_tokens", tokens, 0, MAX_TOKENS))


def _temperature(message: AnySettings, *, samples: bool) -> float:
    if not message.HasField("temperature"):
        return 1.0 if samples else 0.0
    return _between("temperature", message.temperature, 0.0, MAX_TEMPERATURE)


def _seed(message: AnySettings, fresh_seed: int) -> int:
    return (message.seed if message.HasField("seed") else fresh_seed) % _SEEDS


def _name(setting: str, text: str) -> str:
    if len(text) > _MAX_NAME_CHARS:
        raise Unjudgeable(
            Reason.INVALID_PARAMETER,
            f"{setting} has {len(text)} characters; at most {_MAX_NAME_CHARS} are taken",
        )
    return text
