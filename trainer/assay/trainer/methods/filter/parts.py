"""Parts and words of which responses train."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


PARTS: tuple[Part, ...] = (
    Part(
        "void-turn-filter",
        "sampling",
        "A response, or a dialogue with an attempt, that has neither a block of code nor an answer "
        "leaves the loss.",
        "SimpleTIR, arXiv 2509.02479, its abstract and its code",
        lambda c: c.method.filter.void != "none",
        to("method.filter.void", "none"),
        code=("methods.filter.filters.without_void",),
    ),
    Part(
        "prof-filter",
        "sampling",
        "Of the correct responses those with the worst steps leave the batch, of the incorrect "
        "those with the best.",
        "PROF, arXiv 2509.03403",
        lambda c: c.method.filter.prof != "none",
        to("method.filter.prof", "none"),
        code=("algos.selection.prof_filter",),
        needs={
            "groups": "it compares the samples of a prompt",
            "one-turn": "the steps that it goes by are of one text",
            "spans": "it goes by judged steps",
            "steady-spans": "it goes by judged steps",
            "whole-batch": "it looks for judged steps in the whole batch",
        },
    ),
    Part(
        "spread-filter",
        "sampling",
        "Groups whose rewards hardly differ leave the batch.",
        "ours, after the code of ReST-RL",
        lambda c: c.method.filter.min_group_std > 0,
        to("method.filter.min_group_std", 0.0),
        code=("methods.filter.filters.filtered",),
        needs={
            "groups": "it compares the samples of a prompt",
        },
    ),
)


def lines(config: Config) -> list[str]:
    """Which responses stay."""
    chosen, lines = config.method.filter, []
    if chosen.prof != "none":
        keep = chosen.prof_keep or config.rollout.group_size // 2
        lines.append(
            f"{keep} of a prompt's responses stay (PROF, {chosen.prof}): by their judged "
            "steps, as many right ones as wrong ones where there are enough"
        )
    if chosen.min_group_std:
        lines.append(
            f"prompts whose rewards deviate by less than {chosen.min_group_std:g} are left out"
        )
    if chosen.void != "none":
        whose = "with an attempt that" if config.method.turns.on else "that"
        answer = (
            "the verifier extracts" if chosen.void == "verifier" else f"{chosen.void_answer} finds"
        )
        lines.append(
            f"a response {whose} has neither a block of code nor an answer that {answer} leaves "
            "the loss; its reward counts for its group"
        )
    return lines
