"""`rubric`: what a model makes of each criterion of the row's rubric, and their weighted sum.

How. The rubric is the row's reference (a list of criteria as data, or as one JSON text; several
texts are a criterion each) or the parameter `rubric` (JSON). A criterion has a "text", and maybe an
"id", a "weight" (below 0 for what a response must not do), a "kind" (binary or graded) and
"evidence"; HealthBench's and Rubrics as Rewards' rows are read as they are. genrm asks about each
criterion by itself, and the score comes from the probabilities of its verdict words. The reward is

    sum(weight * score) / sum(weights above 0), clipped to [0, 1]

and each criterion a component `criterion-ID` whose weight is its share of it; `clipped` is what the
clipping took or gave. With a `gate` the reward is 1 or 0, whether that sum passes, the criteria's
weights are 0, and criteria that cannot change the outcome are not asked.

A criterion that cannot be read is its own fault: the item's too (`missing = "fault"`), or it is
left out and the other weights count alone ("leave-out"), and the component `unread-ID`, of weight
0, marks it. Where evidence is required, a judge that calls the criterion met must quote the
response; a quotation that is not there is such a fault, and "none" leaves the criterion unmet.

Criteria that ask several things at once are refused with a proposal how to split them, or split
(`compound`). `models` is an ensemble: each judges every criterion, `combination` makes one score of
theirs, and the component `disagreement`, of weight 0, says how far they are apart. `second_model`
is asked where the first one's score is closer to 0.5 than `margin`.

What a policy could game. As with `judge`, a model can be flattered; a rubric makes it flatter each
criterion by itself. A rubric without weights below 0 rewards saying everything.

Limits. One response, not several turns. Compound criteria are recognised in English only.

Sources: HealthBench, arXiv 2505.08775 (the sum; it clips the mean of all responses, we each);
Rubrics as Rewards, arXiv 2507.17746.

Measured: its error is its model's. With SmolLM2-135M, 16 responses by 8 criteria took 8 to 30 times
one criterion of one response, and attacks raised split criteria less than half as often as one
prompt (docs/understand/results/judges.md); measure yours by `assay eval-judge`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import cast

from assay.clients.judging import (
    CriterionResult,
    Ensemble,
    JudgeSettings,
    Rubric,
    RubricItem,
    RubricJudgement,
    RubricSettings,
    read_rubric,
)
from assay.clients.judging.rubrics import (
    CompoundCriterion,
    CriterionOrder,
    MissingCriterion,
)
from assay.clients.types import Fault as ClientFault
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    MISSING_REFERENCE,
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Judgement,
    ParameterSpec,
    Unjudgeable,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers.judges import asking

_VERDICTS = ("correct", "incorrect")
_ROUNDING = 1e-9
_Settings = tuple[JudgeSettings, RubricSettings, Ensemble | None]

_SPEC = VerifierSpec(
    name="rubric",
    version="1",
    description="A model's opinion of each criterion of a rubric, and their weighted sum.",
    tasks=("rubric",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=(*_VERDICTS, "unparsed", asking.OVERLONG),
    parameters=(
        ParameterSpec(
            "rubric", "string", "", "The criteria as JSON, where the row has none as reference."
        ),
        ParameterSpec(
            "missing",
            "string",
            "fault",
            "What a criterion that cannot be read means: a fault of the item, or it is left out "
            "and the other weights count alone.",
            allowed_values=("fault", "leave-out"),
        ),
        ParameterSpec(
            "least_read",
            "float",
            0.5,
            "With missing=leave-out: the least share of all weights that must have been read.",
            minimum=0.0,
            maximum=1.0,
        ),
        ParameterSpec(
            "gate",
            "float",
            0.0,
            "The least sum that passes: the reward is then 1 or 0, and criteria that cannot change "
            "it are not asked; 0: the reward is the sum.",
            minimum=0.0,
            maximum=1.0,
        ),
        ParameterSpec(
            "order",
            "string",
            "auto",
            "What of a prompt comes first and is read once; auto: what costs clearly fewer tokens "
            "for the responses of one call.",
            allowed_values=("auto", "response-first", "criterion-first"),
        ),
        ParameterSpec(
            "compound",
            "string",
            "refuse",
            "A criterion that asks several things at once: a fault with a proposal, split into "
            "equal shares, or asked as it stands.",
            allowed_values=("refuse", "split", "allow"),
        ),
        *asking.ENSEMBLE,
        ParameterSpec(
            "second_model",
            "string",
            "",
            "A model to ask where the first one's score is closer to 0.5 than margin, or it did "
            "not judge; empty: none.",
        ),
        ParameterSpec("margin", "float", 0.0, "See second_model.", minimum=0.0, maximum=0.5),
        *asking.judged_by("auto", "token-probability", "votes"),
        asking.threshold("correct"),
    ),
    deterministic=False,
    cacheable=False,
    needs_reference=False,
    isolation="remote",
)


class RubricVerifier(asking.OneByOne[_Settings, RubricItem, RubricJudgement]):
    """Asks a model about each criterion of each response."""

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """The one example that needs no model."""
        blank = VerifierItem(
            Candidate(" \n"), parameters=_SPEC.complete({"rubric": '["Gives a number."]'})
        )
        return (VerifierExample(blank, "unparsed"),)

    def question(self, item: VerifierItem) -> tuple[_Settings, RubricItem]:
        """See `OneByOne.question`."""
        question = RubricItem(asking.prompt_of(item), item.response(), rubric_of(item))
        settings = asking.judge_settings(item.parameters, item.run)
        return (settings, _rules(item.parameters), asking.ensemble(item.parameters)), question

    async def send(
        self, questions: list[RubricItem], settings: _Settings, timeout_s: float
    ) -> Sequence[RubricJudgement | ClientFault]:
        """See `OneByOne.send`."""
        judging, rules, ensemble = settings
        return await self._client.judge_rubrics(
            questions, judging, rules, ensemble=ensemble, timeout_s=timeout_s
        )

    def answer(self, item: VerifierItem, found: RubricJudgement) -> Judgement:
        """See `OneByOne.answer`."""
        gate = asking.number(item.parameters, "gate", 0.0)
        return judge_criteria(found, gate, asking.number(item.parameters, "threshold", 0.5))

    def least(self, item: VerifierItem, verdict: str, why: str) -> Judgement:
        """See `OneByOne.least`."""
        del item
        return Judgement.composed(verdict, (Component("score", 0.0),), explanation=why)


def rubric_of(item: VerifierItem) -> Rubric:
    """The rubric of the row, else of the parameter.

    Raises:
        Unjudgeable: MISSING_REFERENCE, there is none; UNUSABLE_REFERENCE or INVALID_PARAMETER for
            one that cannot be read.
    """
    if item.data is not None or item.references:
        try:
            several = len(item.references) > 1
            return read_rubric(list(item.references) if several else item.document())
        except ValueError as error:
            raise Unjudgeable(UNUSABLE_REFERENCE, f"the reference is no rubric: {error}") from None
    text = str(item.parameters["rubric"])
    if not text.strip():
        raise Unjudgeable(
            MISSING_REFERENCE,
            "the item has no rubric: pass a list of criteria as reference, or the parameter "
            "'rubric'",
        )
    try:
        return read_rubric(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise Unjudgeable(
            INVALID_PARAMETER, f"parameter 'rubric' is no rubric: {str(error)[:300]}"
        ) from None


def judge_criteria(found: RubricJudgement, gate: float, least: float) -> Judgement:
    """The judgement of a rubric. Pure.

    Args:
        found: genrm's answer.
        gate: the least sum that passes; 0 for none.
        least: the least score of a right response; a gate stands in its place.
    """
    counted = [(one, one.score) for one in found.criteria if one.score is not None]
    whole = 0.0 if gate else math.fsum(one.weight for one, _ in counted if one.weight > 0)
    parts = [
        Component(f"criterion-{one.id}", score, one.weight / whole if whole else 0.0)
        for one, score in counted
    ]
    parts += [Component(f"unread-{one.id}", 1.0, 0.0) for one in found.criteria if one.fault]
    parts += _rest(found, parts, gate)
    passed = found.score >= (gate or least)
    return Judgement(
        found.score,
        _VERDICTS[0] if passed else _VERDICTS[1],
        tuple(parts),
        explanation=_explained(found, gate),
    )


def _rest(found: RubricJudgement, parts: Sequence[Component], gate: float) -> list[Component]:
    """What the sum of the criteria lacks to the reward, and what else is known, of weight 0."""
    missing = found.score - math.fsum(part.weight * part.score for part in parts)
    rest = [Component("gate" if gate else "clipped", missing)] if abs(missing) > _ROUNDING else []
    rest += asking.measures(found)
    if gate:
        bounds = (("rubric-least", found.least), ("rubric-greatest", found.greatest))
        rest += [Component(name, value, 0.0) for name, value in bounds]
    return rest


def _explained(found: RubricJudgement, gate: float) -> str:
    text = f"{found.score:.4g} by {len(found.criteria)} criteria"
    if gate:
        text = (
            f"{'passes' if found.score else 'does not pass'} the gate {gate:g} with "
            f"{found.least:.4g} to {found.greatest:.4g}"
        )
    said = "; ".join(map(_said, found.criteria))
    signed = asking.signature(found.judge, found.usage, cut=found.truncated)
    return f"{text} {signed}: {said}"


def _said(one: CriterionResult) -> str:
    if one.fault is not None:
        return f"{one.id} unread ({one.fault.reason})"
    return f"{one.id} unasked" if one.score is None else f"{one.id} {one.score:.3g}"


def _rules(parameters: asking.Parameters) -> RubricSettings:
    gate = asking.number(parameters, "gate", 0.0)
    return RubricSettings(
        missing=cast("MissingCriterion", parameters["missing"]),
        least_read=asking.number(parameters, "least_read", 0.5),
        gate=gate or None,
        order=cast("CriterionOrder", parameters["order"]),
        compound=cast("CompoundCriterion", parameters["compound"]),
        second_model=str(parameters["second_model"]),
        margin=asking.number(parameters, "margin", 0.0),
    )
