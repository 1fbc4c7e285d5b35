"""Settings of which judged responses train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.settings.kinds import NonNegative, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import only, other_than
from assay.trainer.settings.words import no_pattern

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class FilterConfig(Strict):
    """Which judged responses train."""

    prof: Literal["none", "both", "correct"] = "none"
    """PROF (arXiv 2509.03403) on groups of correct and incorrect responses: drops the correct with
    the worst steps and the incorrect with the best (both), or the correct by their steps and the
    last drawn incorrect (correct). Needs spans of judged steps."""
    prof_keep: Annotated[NonNegative, other_than("method.filter.prof", "none")] = 0
    """Responses of a group that stay; 0 for half of rollout.group_size."""
    min_group_std: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Groups with a smaller deviation of rewards are left out (0.05 in ReST-RL's code); 0 for
    none."""
    void: Literal["none", "text", "verifier", "turn"] = "none"
    """SimpleTIR's filter: a response, or a dialogue's attempt, without code and answer is in no
    loss; its reward counts for its group. An answer is what `void_answer` finds (text), or the
    verifier's extracted answer (verifier). turn: an episode with a turn that neither calls a tool
    nor answers."""
    void_answer: Annotated[str, only("method.filter.void", "text")] = r"\\boxed\{"
    """A regular expression that finds an answer in a text."""
    void_code: Annotated[str, only("method.filter.void", "text", "verifier")] = (
        r"(?s)```[^\n`]*\n.*?```"
    )
    """A regular expression that finds a block of code."""


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    chosen, size = config.method.filter, config.rollout.group_size
    if chosen.prof != "none" and not 2 <= (chosen.prof_keep or size // 2) <= size:
        return (
            "method.filter.prof_keep must leave at least 2 of the rollout.group_size = "
            f"{size} responses"
        )
    for key in ("void_answer", "void_code"):
        if wrong := no_pattern(f"method.filter.{key}", getattr(chosen, key)):
            return wrong
    if (chosen.void == "turn") != config.method.episodes.on and chosen.void != "none":
        return (
            'method.filter.void = "turn" is for episodes, which say themselves which turns are '
            'void, and "text" and "verifier" are for responses without an environment'
        )
    if chosen.void != "none" and config.method.truncation.window:
        return (
            "method.filter.void needs method.truncation.window = 0: whether a turn is void "
            "is known when it has ended, and its beginning has trained by then"
        )
    if chosen.min_group_std and size < 2:
        return (
            "method.filter.min_group_std needs rollout.group_size of 2 or more: it goes by the "
            "group"
        )
    return ""


PARTS: tuple[Part, ...] = (
    Part(
        "void-turn-filter", "sampling",
        "A response, or a dialogue with an attempt, that has neither a block of code nor an answer "
        "leaves the loss, as does an episode with a turn that neither calls a tool nor answers.",
        "SimpleTIR, arXiv 2509.02479, its abstract and its code",
        *switch("method.filter.void", "none"), code=("methods.filter.filters.without_void",),
    ),
    Part(
        "prof-filter", "sampling",
        "Of the correct responses those with the worst steps leave the batch, of the incorrect "
        "those with the best.",
        "PROF, arXiv 2509.03403", *switch("method.filter.prof", "none"),
        code=("algos.selection.prof_filter",),
        needs={
            "groups": "it compares the samples of a prompt",
            "one-turn": "the steps that it goes by are of one text",
            "spans": "it goes by judged steps", "steady-spans": "it goes by judged steps",
            "whole-batch": "it looks for judged steps in the whole batch",
        },
    ),
    Part(
        "spread-filter", "sampling",
        "Groups whose rewards hardly differ leave the batch.",
        "ours, after the code of ReST-RL", *switch("method.filter.min_group_std", 0.0),
        code=("methods.filter.filters.filtered",),
        needs={"groups": "it compares the samples of a prompt"},
    ),
)  # fmt: skip


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
    if chosen.void == "turn":
        lines.append(
            "an episode with a turn that neither calls a tool nor answers leaves the loss; its "
            "reward counts for its group"
        )
    elif chosen.void != "none":
        whose = "with an attempt that" if config.method.turns.on else "that"
        answer = (
            "the verifier extracts" if chosen.void == "verifier" else f"{chosen.void_answer} finds"
        )
        lines.append(
            f"a response {whose} has neither a block of code nor an answer that {answer} leaves "
            "the loss; its reward counts for its group"
        )
    return lines


METHOD = TrainingMethod(
    name="filter",
    settings=FilterConfig,
    is_on=lambda c: (
        c.method.filter.prof != "none"
        or c.method.filter.min_group_std > 0
        or c.method.filter.void != "none"
    ),
    rank=150,
    hooks="assay.trainer.methods.filter.filters:Filtering",
    parts=PARTS,
    lines=(Lines("Sampling", 34, lines),),
    check=check,
)
