"""Scores the steps of a response: by a head that reads each, or by critiques that judge each.

A step head answers for every step in one pass. By critiques, a step's score is the share that calls
it right (SPARK; papers 11.1): above 0.5 is the majority, and a tie is no error.

Neutral steps (comments, blank lines) have no score and no part in the aggregate; else a policy
could fill its program with them (arXiv 2410.17621). A step head reads them where they stand; a
critique sees them as part of the next step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from assay.clients.judging.types import StepScore, StepScores, Usage
from assay.genrm.domain import (
    CRITIQUE_CHARS,
    CandidateSteps,
    ResolvedJudgeSettings,
    ResolvedStepSettings,
    Run,
)
from assay.genrm.engines.base import (
    ModelInfo,
    Prompt,
    PromptMessage,
    PromptPiece,
    RateSteps,
    StepsRated,
)
from assay.genrm.engines.fitting import CHARS_PER_TOKEN
from assay.genrm.judges.consensus import critiques_of
from assay.genrm.judges.critique import Critique, majority
from assay.genrm.judges.modes import invalid, require_text
from assay.genrm.judges.verdict import expect, least_share, usage_of
from assay.genrm.steps.aggregation import aggregate
from assay.genrm.steps.splitting import StepSpan, spans_of, split
from assay.genrm.templates import Templates
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason


def score_steps(
    item: CandidateSteps, settings: ResolvedStepSettings, model: ModelInfo, templates: Templates
) -> Run[StepScores]:
    """Scores one response by steps; a step head does not see the ground truth.

    Raises:
        Unjudgeable: MISSING_RESPONSE, nothing can be scored; INVALID_PARAMETER, the steps do not
            join to the response, a tag is missing, or the model cannot do it; CONTEXT_TOO_LONG;
            UNKNOWN_TEMPLATE; JUDGE_UNPARSED, fewer than half of the critiques can be read;
            SCORE_NOT_FINITE.
    """
    spans = _cut(item, settings, model)
    if "rate-steps" in model.capabilities:
        return (yield from _rated(item, spans, settings, model))
    if "write" in model.capabilities:
        return (yield from _criticised(item, spans, settings, model, templates))
    able = ", ".join(sorted(model.capabilities)) or "nothing"
    raise invalid(f"model {model.name} cannot score steps: it answers {able}; choose another model")


def _cut(
    item: CandidateSteps, settings: ResolvedStepSettings, model: ModelInfo
) -> tuple[StepSpan, ...]:
    require_text(item.response, "the response")
    _require_room(len(item.response) / CHARS_PER_TOKEN, model)
    splitting = model.splitting if settings.splitting == "auto" else settings.splitting
    if item.steps:
        _check_given(item)
        spans = spans_of(item.steps, splitting)
    elif splitting == "tag" and not settings.step_tag:
        raise invalid("splitting by tag needs the tag: set step_tag, or choose another splitting")
    else:
        spans = split(item.response, splitting, settings.step_tag)
    _require_room(len(spans), model)
    if all(span.neutral for span in spans):
        raise Unjudgeable(
            Reason.MISSING_RESPONSE,
            f"none of the response's {len(spans)} steps can be scored: all are comments, blank, "
            "or outside of code",
            {"neutral_steps": str(len(spans))},
        )
    return spans


def _require_room(tokens: float, model: ModelInfo) -> None:
    """Refuses a response that takes at least so many tokens, before work is spent on it.

    A step takes a token or more.
    """
    if model.context_tokens and tokens > model.context_tokens:
        raise Unjudgeable(
            Reason.CONTEXT_TOO_LONG,
            f"the response takes far more than the {model.context_tokens} tokens for which model "
            f"{model.name} has room; shorten it, or give the model more context_tokens",
            {"limit_tokens": str(model.context_tokens), "others_tokens": "0"},
        )


def _check_given(item: CandidateSteps) -> None:
    if "".join(item.steps) != item.response:
        raise invalid(
            "the steps put together are not the response; keep the white space between steps, or "
            "leave them out and have the response cut here"
        )
    if "" in item.steps:
        raise invalid(f"step {item.steps.index('')} is empty; leave it out")


def _rated(
    item: CandidateSteps,
    spans: Sequence[StepSpan],
    settings: ResolvedStepSettings,
    model: ModelInfo,
) -> Run[StepScores]:
    if settings.template or settings.meta_critique:
        raise invalid(
            f"model {model.name} has a head for steps and writes no critiques; leave out template "
            "and meta_critique, or choose another model"
        )
    messages = tuple(
        PromptMessage(message.role, (PromptPiece(message.content, trusted=False),))
        for message in item.prompt
    )
    steps = tuple(item.response[span.start : span.end] for span in spans)
    rated = expect(StepsRated, (yield (RateSteps(Prompt(messages), steps),)))[0]
    scores = [
        StepScore(span.start, span.end, None if span.neutral else _finite(chance, model))
        for span, chance in zip(spans, rated.probabilities, strict=True)
    ]
    return _scores(scores, settings, model, usage_of([rated]))


def _criticised(
    item: CandidateSteps,
    spans: Sequence[StepSpan],
    settings: ResolvedStepSettings,
    model: ModelInfo,
    templates: Templates,
) -> Run[StepScores]:
    critiques, written, usage = yield from critiques_of(
        item.prompt,
        _shown(item.response, spans),
        item.ground_truth or None,
        settings=ResolvedJudgeSettings(
            votes=settings.votes,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            seed=settings.seed,
            meta_critique=settings.meta_critique,
            least_mass=settings.least_mass,
            forms=model.forms,
        ),
        template=templates.get(settings.template, "critique", "critique"),
        templates=templates,
    )
    counted = [critique for critique in critiques if critique is not None]
    agreed = majority(counted)
    verdicts = iter(range(len(agreed.shares)))
    scores: list[StepScore] = []
    for span in spans:
        if span.neutral:
            scores.append(StepScore(span.start, span.end, None))
            continue
        index = next(verdicts)
        share, note = agreed.shares[index], _note(counted, index, agreed.steps[index])
        scores.append(StepScore(span.start, span.end, share, note))
    found = _scores(scores, settings, model, usage, len(critiques) - len(counted))
    return replace(found, verdict_mass=least_share(written))


def _shown(response: str, spans: Sequence[StepSpan]) -> tuple[str, ...]:
    """The steps as a critique sees them: neutral ones are part of the next, or else of the last."""
    shown: list[str] = []
    start = 0
    for span in spans:
        if not span.neutral:
            shown.append(response[start : span.end])
            start = span.end
    shown[-1] += response[start:]
    return tuple(shown)


def _note(critiques: Sequence[Critique], index: int, right: bool) -> str:
    """The note on a step of the first critique that agrees with the majority."""
    for critique in critiques:
        if critique.steps[index] == right and critique.notes:
            return critique.notes[index][:CRITIQUE_CHARS]
    return ""


def _scores(
    steps: Sequence[StepScore],
    settings: ResolvedStepSettings,
    model: ModelInfo,
    usage: Usage,
    unparsed: int = 0,
) -> StepScores:
    threshold = settings.error_threshold
    if threshold is None:
        threshold = model.error_threshold
    scores = [step.score for step in steps]
    below = (n for n, score in enumerate(scores) if score is not None and score < threshold)
    total = aggregate(scores, settings.aggregation)
    return StepScores(
        tuple(steps),
        total,
        passed=total >= threshold,
        error_threshold=threshold,
        first_error=next(below, None),
        unparsed_votes=unparsed,
        usage=usage,
    )


def _finite(chance: float, model: ModelInfo) -> float:
    if not math.isfinite(chance):
        raise Unjudgeable(
            Reason.SCORE_NOT_FINITE,
            f"model {model.name} gives a step the score {chance}; look at its weights and its "
            "precision",
        )
    return min(1.0, max(0.0, chance))
