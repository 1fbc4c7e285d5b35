"""Several models that judge the same thing: one score of theirs, and how far they are apart.

A model that could not judge is said with its fault. Where fewer judged than the quorum, or a
majority is none, there is no score: the fault NO_QUORUM.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from assay.clients.judging.rubrics import Combination
from assay.clients.judging.types import JudgeRef, ModelJudgement, Opinion, Usage
from assay.genrm.domain import CandidateResponse, JudgePanel, ResolvedJudgeSettings, Run
from assay.genrm.engines.base import ModelInfo
from assay.genrm.judges.attempts import attempted
from assay.genrm.judges.modes import invalid, resolve_mode
from assay.genrm.judges.numbers import greatest, least
from assay.genrm.judges.pointwise import MODES, judge_response
from assay.genrm.judges.together import together
from assay.genrm.templates import Templates
from assay.kit.faults import ItemFault, Unjudgeable
from assay.kit.reasons import Reason


def combine(panel: JudgePanel, opinions: Sequence[Opinion]) -> float:
    """One score, in [0, 1], of what the models said.

    Raises:
        Unjudgeable: NO_QUORUM, with each model's reason as metadata; or the models' own reason,
            where none judged and all have the same.
    """
    scores = [one.score for one in opinions if one.score is not None]
    if len(scores) < max(1, panel.quorum):
        faults = {one.judge.model: one.fault for one in opinions if one.fault is not None}
        shared = {str(fault.reason) for fault in faults.values()}
        if not scores and len(shared) == 1:
            fault = next(iter(faults.values()))
            raise Unjudgeable(fault.reason, fault.message, fault.metadata)
        said = "; ".join(
            f"{name}: {fault.reason}: {fault.message}" for name, fault in faults.items()
        )
        raise Unjudgeable(
            Reason.NO_QUORUM,
            f"{len(scores)} of {len(opinions)} models judged, and {panel.quorum} must: {said}",
            {name: str(fault.reason) for name, fault in faults.items()},
        )
    return _COMBINED[panel.combination](scores)


def disagreement(opinions: Sequence[Opinion]) -> float | None:
    """The mean of |a - b| over all pairs of scores, in [0, 1]; None for fewer than two."""
    scores = [one.score for one in opinions if one.score is not None]
    gaps = [abs(one - other) for one, other in itertools.combinations(scores, 2)]
    return math.fsum(gaps) / len(gaps) if gaps else None


def opinion(model: ModelInfo, template: str, said: float | ItemFault) -> Opinion:
    """What a model said by a template."""
    judge = JudgeRef(model.name, model.revision, template)
    if isinstance(said, ItemFault):
        return Opinion(judge, fault=said)
    return Opinion(judge, score=said)


def judge_by_ensemble(
    item: CandidateResponse,
    settings: ResolvedJudgeSettings,
    panel: JudgePanel,
    templates: Templates,
) -> Run[ModelJudgement]:
    """Judges one response by every model of the panel, at the same time.

    Raises:
        Unjudgeable: INVALID_PARAMETER, a model gives no chances; NO_QUORUM; and what
            `judge_response` raises before it asks.
    """
    if item.anchor is None:
        for model in panel.models:
            if resolve_mode(settings, model, MODES) == "scalar-head":
                raise invalid(
                    f"model {model.name} has a scalar head, whose logits are no chances; leave it "
                    "out of the ensemble, or judge against an anchor"
                )
    runs = [judge_response(item, settings, model, templates) for model in panel.models]
    found = yield from together(
        [attempted(run, model.name) for run, model in zip(runs, panel.models, strict=True)]
    )
    opinions = tuple(
        opinion(model, "", one)
        if isinstance(one, ItemFault)
        else opinion(model, one.judge.template, one.score)
        for model, one in zip(panel.models, found, strict=True)
    )
    score = combine(panel, opinions)
    made = [one for one in found if isinstance(one, ModelJudgement)]
    return ModelJudgement(
        score,
        rationale=next((one.rationale for one in made if one.rationale), ""),
        truncated=any(one.truncated for one in made),
        judge=made[0].judge,
        usage=sum((one.usage for one in made), Usage()),
        unparsed_votes=sum(one.unparsed_votes for one in made),
        verdict_mass=least(one.verdict_mass for one in made),
        letter_gap=greatest(one.letter_gap for one in made),
        opinions=opinions,
        disagreement=disagreement(opinions),
    )


def _majority(scores: Sequence[float]) -> float:
    """1 where more are at 0.5 or above than below, 0 where fewer are.

    Raises:
        Unjudgeable: NO_QUORUM, as many.
    """
    above = sum(score >= 0.5 for score in scores)
    if 2 * above == len(scores):
        raise Unjudgeable(
            Reason.NO_QUORUM,
            f"{above} of {len(scores)} models say 0.5 or above: there is no majority; take an odd "
            "number of models, or another combination",
        )
    return float(2 * above > len(scores))


_COMBINED: Mapping[Combination, Callable[[Sequence[float]], float]] = {
    "mean": lambda scores: math.fsum(scores) / len(scores),
    "median": statistics.median,
    "majority": _majority,
    "min": min,
}
