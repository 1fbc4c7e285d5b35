"""Scalar reward models: a sequence classification head with one logit on the whole dialogue.

A Bradley-Terry model knows differences of its logits only: against another response the score is
sigmoid(r - r').
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.clients.judging.types import ModelJudgement
from assay.genrm.domain import ChatMessage, ResolvedJudgeSettings, Run
from assay.genrm.engines.base import (
    ModelInfo,
    Prompt,
    PromptMessage,
    PromptPiece,
    Rated,
    RateDialogue,
)
from assay.genrm.judges.modes import invalid
from assay.genrm.judges.verdict import expect, keep_ends, usage_of
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason


def dialogue(prompt: Sequence[ChatMessage], response: str) -> Prompt:
    """The dialogue that a head rates, all of it data; a tool's message is read as a user's."""
    asked = tuple(
        PromptMessage(
            "user" if message.role == "tool" else message.role,
            (PromptPiece(message.content, trusted=False),),
        )
        for message in prompt
    )
    answer = PromptMessage("assistant", (PromptPiece(response, trusted=False, cuttable=True),))
    return Prompt((*asked, answer))


def rate(
    prompt: Sequence[ChatMessage],
    responses: Sequence[str],
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
) -> Run[tuple[ModelJudgement, ...]]:
    """The head's logit on each response, unbounded, as judgements without a template.

    Raises:
        Unjudgeable: INVALID_PARAMETER, the head has several labels or the settings name a
            template; SCORE_NOT_FINITE.
    """
    if settings.template:
        raise invalid(
            f"model {model.name} has a scalar head, which reads no template; leave it out"
        )
    requests = tuple(
        RateDialogue(dialogue(prompt, text), keep_ends(settings)) for text in responses
    )
    rated = expect(Rated, (yield requests))
    return tuple(
        ModelJudgement(_only_logit(answer, model), truncated=answer.cut, usage=usage_of([answer]))
        for answer in rated
    )


def refuse_reference(model: ModelInfo, **references: str | None) -> None:
    """Refuses references, which a head would not read.

    Raises:
        Unjudgeable: INVALID_PARAMETER, there is one.
    """
    for name, text in references.items():
        if text:
            raise invalid(
                f"model {model.name} has a scalar head, which reads no {name.replace('_', ' ')}; "
                "leave it out, or choose a generative model"
            )


def _only_logit(answer: Rated, model: ModelInfo) -> float:
    if len(answer.logits) != 1:
        raise invalid(
            f"the head of model {model.name} has {len(answer.logits)} labels; a scalar reward "
            "model has one"
        )
    if not math.isfinite(answer.logits[0]):
        raise Unjudgeable(
            Reason.SCORE_NOT_FINITE,
            f"model {model.name} rates the response {answer.logits[0]}; look at its weights and "
            "its precision",
        )
    return answer.logits[0]
