"""The values of model-based rewards, frozen; no gRPC, no torch, no clock.

The words are those of judge.proto and process.proto. A *run* of a judge is a generator that yields
requests, is sent their answers, and returns a judgement: judges are pure, and whoever drives them
decides what happens at the same time.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from assay.clients.judging.types import Aggregation, LowMass, Overflow, ScoringMode
from assay.genrm.engines import base
from assay.genrm.engines.base import Answer, Forms, Request

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


@dataclass(frozen=True, slots=True)
class CandidateResponse:
    """One response to judge. Of ground_truth, anchor and rubric at most one is not None."""

    prompt: tuple[ChatMessage, ...]
    response: str
    ground_truth: str | None = None
    anchor: str | None = None
    rubric: str | None = None


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """Two responses to one prompt; the judge gives the chance that `a` is better."""

    prompt: tuple[ChatMessage, ...]
    a: str
    b: str
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


R = TypeVar("R")
Run = Generator[tuple[Request, ...], tuple[Answer, ...], R]
"""A judge at work: it yields requests, is sent one answer for each, in order, and returns.

Raises Unjudgeable, before the first request where the item itself is at fault.
"""
