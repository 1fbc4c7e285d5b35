"""Settings of batches by tokens: C3PO of Ring-lite (arXiv 2506.14731)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.trainer.settings.keeping import needs_logps
from assay.trainer.settings.kinds import NonNegative, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import above

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class TokenBudgetConfig(Strict):
    """An optimizer step trains on so many tokens, in whole responses (arXiv 2506.14731)."""

    tokens: NonNegative = 0
    """Of a step, on all processes; 0 trains all that was drawn. At least rollout.max_new_tokens."""


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    tokens, most = config.method.token_budget.tokens, config.rollout.max_new_tokens
    if not tokens:
        return ""
    if tokens < most:
        return (
            f"method.token_budget.tokens = {tokens} must hold one whole response, "
            f"rollout.max_new_tokens = {most}"
        )
    if config.optim.mini_batches > 1:
        return (
            "method.token_budget needs optim.mini_batches = 1: the budget is of an optimizer step; "
            "draw fewer prompts a step instead"
        )
    return needs_logps(config, "token_budget")


PARTS: tuple[Part, ...] = (
    Part(
        "token-budget", "sampling",
        "A step trains on a number of tokens, in whole responses; the others wait for the next.",
        "C3PO of Ring-lite, arXiv 2506.14731, after its abstract; that responses wait is ours",
        *switch("method.token_budget.tokens", 0),
        code=("algos.selection.within_budget", "methods.token_budget.budget.TokenBudget"),
        takes={"fresh": "responses wait for a later step"},
        needs={
            "collector": "it keeps groups until all of them trained",
            "whole-groups": "it takes a group's responses in their order",
        },
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """What a step trains on."""
    tokens = f"{config.method.token_budget.tokens:,}"
    return [
        (
            f"up to {tokens} tokens train in a step, in whole responses in the order of their "
            "draws; the others open the next step, in place of new prompts"
        )
    ]


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("budget_fill", "share",
     "Of `method.token_budget.tokens`, what the step's chosen responses hold."),
    ("budget_waiting", "responses", "Judged responses that wait for the next step."),
)  # fmt: skip

METHOD = TrainingMethod(
    name="token_budget",
    settings=TokenBudgetConfig,
    is_on=above("method.token_budget.tokens", 0),
    rank=52,
    hooks="assay.trainer.methods.token_budget.budget:Budgeting",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 33, lines),),
    check=check,
)
