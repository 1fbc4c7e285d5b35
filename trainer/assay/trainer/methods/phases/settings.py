"""Settings of phases: the section `method.phases` (see config.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.settings.kinds import NonNegative, Positive, Ratio, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, to
from assay.trainer.settings.reading import other_than
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_ON = other_than("method.phases.decides", ())


@dataclass(frozen=True, slots=True)
class PhasesConfig(Strict):
    """Self-play and verifiable rewards in turns (Iterative-SPO); see schedule.py."""

    decides: tuple[str, ...] = ()
    """Roles whose rewards say right or wrong, such as voter: one phase trains them, the other one
    the other roles. Empty: all train at once."""
    first: Annotated[Literal["play", "decide"], _ON] = "play"
    """The phase that a run begins with."""
    right: Annotated[float, _ON] = 1.0
    """A decision that earns this, or more, is right."""
    unsure: Annotated[float, _ON] = -0.5
    """A decision that earns exactly this says that it is unsure."""
    smoothing: Annotated[float, Field(ge=0, lt=1), _ON] = 0.95
    """rho of the running means; Vision-Zero's, as the four thresholds and both numbers of steps."""
    play_from_accuracy: Annotated[Ratio, _ON] = 0.9
    """Deciding ends where the running accuracy is this high, and ..."""
    play_to_unsure: Annotated[Ratio, _ON] = 0.1
    """... the running share of unsure decisions is no higher than this."""
    decide_from_error: Annotated[Ratio, _ON] = 0.4
    """Playing ends where 1 less the running accuracy is this high, or ..."""
    decide_from_unsure: Annotated[Ratio, _ON] = 0.5
    """... the running share of unsure decisions is."""
    least_steps: Annotated[Positive, _ON] = 5
    """Steps that a phase has at least."""
    most_steps: Annotated[NonNegative, _ON] = 20
    """Steps after which a phase ends anyway; 0 for no limit."""


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    phases = config.method.phases
    if not phases.decides:
        return ""
    if not config.method.episodes.on:
        return (
            "method.phases.decides names agents of an environment: set method.episodes.environment"
        )
    if 0 < phases.most_steps < phases.least_steps:
        return (
            f"method.phases.most_steps = {phases.most_steps} is below least_steps = "
            f"{phases.least_steps}: raise it, or set 0"
        )
    return ""


def lines(config: Config) -> list[str]:
    """The schedule."""
    phases = config.method.phases
    decide = ", ".join(phases.decides)
    bounds = f"{count(phases.least_steps, 'step')} or more"
    if phases.most_steps:
        bounds = f"{phases.least_steps} to {phases.most_steps} steps"
    high, low = f"{phases.play_from_accuracy:g}", f"{phases.play_to_unsure:g}"
    error, many = f"{phases.decide_from_error:g}", f"{phases.decide_from_unsure:g}"
    turns = f"in turns train {decide} (decide) and the other agents (play)"
    return [
        f"{turns}: {bounds} each, first {phases.first}",
        f"decide -> play: accuracy >= {high} and unsure <= {low}",
        f"play -> decide: 1 - accuracy >= {error} or unsure >= {many}",
        f"both are running means over steps, from 0, of weight {phases.smoothing:g} for what was",
    ]


PARTS: tuple[Part, ...] = (
    Part(
        "phases", "advantage",
        "Agents that play and agents that decide train in turns, by how well those decide.",
        "Vision-Zero's Iterative-SPO, arXiv 2509.25541, equations 7 to 10; its patience is our "
        "reading",
        lambda c: bool(c.method.phases.decides), to("method.phases.decides", ()),
        code=("methods.phases.schedule.PhaseState", "methods.phases.method.Phases"),
        needs={"whole-batch": "a phase is of whole steps"},
        takes={"beside": "which agents train follows from the steps before"},
    ),
)  # fmt: skip

METRICS: tuple[Metric, ...] = metrics("phases",
    ("phases_play", "flag", "1 where the step trains the agents that play, 0 those that decide.",
     "play"),
    ("phases_accuracy", "share", "Running mean of decisions that are right, after the step.",
     "accuracy"),
    ("phases_unsure", "share", "Running mean of decisions that say unsure, after the step.",
     "unsure"),
)  # fmt: skip

METHOD = TrainingMethod(
    name="phases",
    settings=PhasesConfig,
    is_on=_ON,
    rank=75,
    hooks="assay.trainer.methods.phases.method:Phases",
    parts=PARTS,
    lines=(Lines("Turns", 30, lines),),
    metrics=METRICS,
    metric_groups={"phases": "Phases (`method.phases`); null without them"},
    check=check,
)
