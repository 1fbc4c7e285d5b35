"""The values of model-based rewards, frozen; no gRPC, no torch, no clock.

The words are those of judge.proto and process.proto. A *run* of a judge is a generator that yields
requests, is sent their answers, and returns a judgement: judges are pure, and whoever drives them
decides what happens at the same time.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TypeVar

from assay.clients.judging.rubrics import Combination, Criterion
from assay.clients.judging.types import Aggregation, LowMass, Overflow, ScoringMode
from assay.genrm.engines import base
from assay.genrm.engines.base import Answer, Forms, ModelInfo, Request
from assay.kit.faults import ItemFault

RATIONALE_CHARS = 4000
CRITIQUE_CHARS = 2000
RAW_TEXT_CHARS = 2000

Splitting = base.Splitting


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the policy's prompt."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ResolvedJudgeSettings:
    """JudgeSettings of judge.proto with every default filled in.

    Attributes:
        template: "name", "name@version", or empty for the default of the call.
        scoring: "auto": verdict-token probabilities where the engine gives them, else the scalar
            head, else votes.
        votes: at least 1.
        temperature: of votes and reasons, at least 0.
        max_tokens: of one vote; 0 for the template's default.
        seed: of the first vote; the others count up from it.
        overflow: what to do with a candidate longer than the context.
        meta_critique: with "consensus": refine each critique by a critique of it.
        low_mass: what to do where the verdicts hold less of the probability than the template
            wants.
        least_mass: the server's word on that share, for every template; None for the templates'.
        forms: when the model's texts are held to a form; `ModelInfo.forms`.
        max_letter_gap: the greatest distance, in [0, 1], by which a verdict may move with the
            letters that stand for it; None for any.
    """

    template: str = ""
    scoring: ScoringMode = "auto"
    votes: int = 8
    temperature: float = 1.0
    max_tokens: int = 0
    seed: int = 0
    overflow: Overflow = "refuse"
    meta_critique: bool = False
    low_mass: LowMass = "refuse"
    least_mass: float | None = None
    forms: Forms = "never"
    max_letter_gap: float | None = None


@dataclass(frozen=True, slots=True, order=True)
class ToolUse:
    """A call of a tool: its name, and its arguments as text."""

    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, order=True)
class TrajectoryTurn:
    """One turn of a trajectory; those of the role "assistant" are the candidate's."""

    role: str
    content: str
    calls: tuple[ToolUse, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All that it says, in order."""
        calls = (text for call in self.calls for text in (call.name, call.arguments))
        return (self.content, *calls)


Said = str | tuple[TrajectoryTurn, ...]
"""What is judged: one text, or a trajectory of several turns."""


@dataclass(frozen=True, slots=True)
class CandidateResponse:
    """One response to judge. Of ground_truth, anchor and rubric at most one is not None."""

    prompt: tuple[ChatMessage, ...]
    response: Said
    ground_truth: str | None = None
    anchor: str | None = None
    rubric: str | None = None


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """Two responses to one prompt; the judge gives the chance that `a` is better."""

    prompt: tuple[ChatMessage, ...]
    a: Said
    b: Said
    ground_truth: str = ""


@dataclass(frozen=True, slots=True)
class CandidateGroup:
    """Samples of one prompt; an empty anchor is none."""

    prompt: tuple[ChatMessage, ...]
    responses: tuple[str, ...]
    anchor: str = ""
    ground_truth: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedStepSettings:
    """StepSettings of process.proto with its defaults filled in.

    Left to judging: an `error_threshold` of None is the model's, an empty `template` the default
    critique, `max_tokens` of 0 and a `least_mass` of None the template's.
    """

    splitting: Splitting = "auto"
    step_tag: str = ""
    aggregation: Aggregation = "min"
    error_threshold: float | None = None
    votes: int = 1
    temperature: float = 0.0
    max_tokens: int = 0
    seed: int = 0
    meta_critique: bool = False
    template: str = ""
    least_mass: float | None = None


@dataclass(frozen=True, slots=True)
class CandidateSteps:
    """One response to score by steps: `steps` joined are the response; without them it is cut."""

    prompt: tuple[ChatMessage, ...]
    response: str
    ground_truth: str = ""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateRubric:
    """One response to judge by a rubric."""

    prompt: tuple[ChatMessage, ...]
    response: str
    criteria: tuple[Criterion, ...]


@dataclass(frozen=True, slots=True)
class JudgePanel:
    """The models of an ensemble.

    Attributes:
        models: in the caller's order; one alone is no ensemble.
        combination: how their scores become one.
        quorum: models that must have judged, at least 1.
    """

    models: tuple[ModelInfo, ...]
    combination: Combination = "mean"
    quorum: int = 1

    @property
    def judge(self) -> ModelInfo:
        """All of them as one, for a result to name."""
        first, *others = self.models
        if not others:
            return first
        names, revisions = (
            "+".join(getattr(model, key) for model in self.models) for key in ("name", "revision")
        )
        return replace(first, name=names, revision=revisions)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that may fail: then its reply is the fault.

    `model` is asked, by its name; empty for the run's own.
    """

    request: Request
    model: str = ""


R = TypeVar("R")
Asked = Request | Attempt
Reply = Answer | ItemFault
Run = Generator[tuple[Asked, ...], tuple[Reply, ...], R]
"""A judge at work: it yields requests, is sent one reply for each, in order, and returns.

Only attempts are replied to with a fault. Raises Unjudgeable, before the first request where the
item itself is at fault.
"""
