"""The values that go into a judging client and come out of it, as frozen dataclasses.

Models judge responses one by one, in pairs, in groups, and by their steps. The outcome is a
judgement, or a `Fault` where there is none: a judge whose text cannot be parsed has not judged.

Names follow judge.proto and process.proto; scores without another range are in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from assay.clients.judging.self_verification import SelfVerificationMetrics, TurnScore
from assay.clients.judging.verdicts import Parsing
from assay.clients.types import Fault, Message

ScoringMode = Literal["auto", "token-probability", "votes", "scalar-head", "consensus"]
Overflow = Literal["refuse", "keep-ends"]
RankingMode = Literal["auto", "anchor", "round-robin"]
Splitting = Literal["auto", "line", "paragraph", "tag", "code-line"]
Aggregation = Literal["min", "product", "last", "mean"]
Prompt = str | Sequence[Message]
"""One text, or chat messages with "role" and "content"."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How to judge.

    Attributes:
        model: as `list_models` names it. Empty: the server's default.
        template: the prompt, "name" or "name@version". Empty: the default of the call.
        scoring: how a verdict becomes a number; "auto": from the verdict tokens' probabilities
            where the engine has them, else from votes.
        votes: how many to sample. 0: the server's default.
        temperature: of votes and reasons; 0 is greedy. None: 1 for several samples, else 0.
        max_tokens: of one vote. 0: the template's default.
        seed: of the sampling. None: the server picks one.
        overflow: for a candidate longer than the model's context: a fault, or keep its head and
            tail and mark the result as truncated.
        meta_critique: with "consensus": each critique is criticised and refined before it counts.
    """

    model: str = ""
    template: str = ""
    scoring: ScoringMode = "auto"
    votes: int = 0
    temperature: float | None = None
    max_tokens: int = 0
    seed: int | None = None
    overflow: Overflow = "refuse"
    meta_critique: bool = False


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """One response to judge, with at most one of ground_truth, anchor and rubric.

    Attributes:
        prompt: the policy's prompt.
        response: the policy's text.
        ground_truth: the right answer.
        anchor: a response to beat; 0.5 is parity with it.
        rubric: the qualities of a good response, in words.
        id: at most 256 bytes. Empty: the client numbers it.
    """

    prompt: Prompt
    response: str
    ground_truth: str | None = None
    anchor: str | None = None
    rubric: str | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class PairItem:
    """Two responses to one prompt; the judge gives the probability that `a` is better.

    Attributes:
        prompt: the policy's prompt.
        a: one response.
        b: the other.
        ground_truth: the right answer; empty for none.
        id: at most 256 bytes. Empty: the client numbers it.
    """

    prompt: Prompt
    a: str
    b: str
    ground_truth: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class GroupItem:
    """Samples of one prompt, to be ranked.

    Attributes:
        prompt: the policy's prompt.
        responses: at least two, unless there is an anchor.
        anchor: a response to compare them with; empty for none.
        ground_truth: the right answer; empty for none.
        id: at most 256 bytes. Empty: the client numbers it.
    """

    prompt: Prompt
    responses: Sequence[str]
    anchor: str = ""
    ground_truth: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class StepSettings:
    """How to score steps.

    Attributes:
        model: as `list_models` names it. Empty: the server's default.
        splitting: how to cut; "auto": the model's own way.
        step_tag: ends a step, for "tag".
        aggregation: of the steps' scores.
        error_threshold: a step below this is an error. None: the model's default.
        votes: critiques to sample, for a generative model. 0: the server's default.
        temperature: of critiques; see `JudgeSettings`.
        max_tokens: of one critique. 0: the template's default.
        seed: of the sampling. None: the server picks one.
        meta_critique: each critique is criticised and refined before it counts.
        template: the critique's prompt. Empty: the default.
    """

    model: str = ""
    splitting: Splitting = "auto"
    step_tag: str = ""
    aggregation: Aggregation = "min"
    error_threshold: float | None = None
    votes: int = 0
    temperature: float | None = None
    max_tokens: int = 0
    seed: int | None = None
    meta_critique: bool = False
    template: str = ""


@dataclass(frozen=True, slots=True)
class StepItem:
    """One response to score by steps.

    Attributes:
        prompt: the policy's prompt.
        response: the policy's text.
        ground_truth: the right answer, for models that take one; empty for none.
        steps: the response already cut; joined, they are the response. Empty: the server cuts it.
        id: at most 256 bytes. Empty: the client numbers it.
    """

    prompt: Prompt
    response: str
    ground_truth: str = ""
    steps: Sequence[str] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class SelfVerificationSettings:
    """How to score a policy that verifies itself (PAG, arXiv 2506.10406).

    Attributes:
        parsing: how strictly a verdict must be worded to count.
        shaping_weight: reward = accuracy + weight * (accuracy - accuracy before).
        answer_verifier: decides whether an attempt is right, where the item does not. Empty:
            "math".
        model: gives P("correct") of each verification. Empty: none is asked.
    """

    parsing: Parsing = "strict"
    shaping_weight: float = 1.0
    answer_verifier: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class SelfVerificationItem:
    """One dialogue of a policy that answers, verifies itself and revises.

    Attributes:
        prompt: the policy's prompt.
        turns: the policy's, oldest first: attempts at even indices, verifications at odd ones.
        ground_truth: the right answer; may be empty where `attempts_correct` is complete.
        attempts_correct: whether each attempt is right. Empty: the answer verifier is asked.
        group_id: shared by the samples of one prompt; best-of-n is counted within it. Empty: none.
        id: at most 256 bytes. Empty: the client numbers it.
    """

    prompt: Prompt
    turns: Sequence[str]
    ground_truth: str = ""
    attempts_correct: Sequence[bool] = ()
    group_id: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one result.

    Attributes:
        prompt: read, cached ones included.
        cached: of those, taken from the cache.
        completion: written.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
        )


@dataclass(frozen=True, slots=True)
class JudgeRef:
    """The judge of one result.

    Attributes:
        model: its name.
        revision: a hash of its weights, or the configured revision.
        template: "name@version"; empty for a scalar head.
    """

    model: str = ""
    revision: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of an item at the server: in the queue, and being judged."""

    queue_s: float = 0.0
    execution_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Vote:
    """One sampled vote: its value, and the judge's text."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class ModelJudgement:
    """A model's judgement of one response.

    Attributes:
        score: probability of being right or of beating the anchor; or a scalar head's logit,
            unbounded.
        standard_error: of the score; None where there is no estimate.
        votes: in the order drawn.
        unparsed_votes: votes that could not be parsed; they do not count.
        rationale: the judge's reasons.
        truncated: the candidate was cut to fit.
        judge: the model and prompt.
        usage: its tokens.
        timings: its seconds.
    """

    score: float
    standard_error: float | None = None
    votes: tuple[Vote, ...] = ()
    unparsed_votes: int = 0
    rationale: str = ""
    truncated: bool = False
    judge: JudgeRef = JudgeRef()
    usage: Usage = Usage()
    timings: Timings = Timings()


@dataclass(frozen=True, slots=True)
class PairJudgement:
    """A model's judgement of a pair, asked in both orders.

    Attributes:
        win_probability: that a is better, both orders together; 0.5 is parity.
        forward: the same, with a in the first place.
        reverse: the same, with a in the second place.
        order_gap: the influence of the place: |forward - reverse|.
        standard_error: of the win probability; None where there is no estimate.
        unparsed_votes: of both orders.
        rationale: the judge's reasons.
        truncated: a response was cut to fit.
        judge: the model and prompt.
        usage: of both orders together.
        timings: its seconds.
    """

    win_probability: float
    forward: float
    reverse: float
    order_gap: float
    standard_error: float | None = None
    unparsed_votes: int = 0
    rationale: str = ""
    truncated: bool = False
    judge: JudgeRef = JudgeRef()
    usage: Usage = Usage()
    timings: Timings = Timings()


@dataclass(frozen=True, slots=True)
class GroupRanking:
    """The scores of the samples of a group.

    Attributes:
        scores: mean win probability of each response, in the responses' order.
        order_gaps: mean order gap of each response's comparisons.
        judge: the model and prompt.
        usage: of all comparisons together.
        timings: its seconds.
    """

    scores: tuple[float, ...]
    order_gaps: tuple[float, ...]
    judge: JudgeRef = JudgeRef()
    usage: Usage = Usage()
    timings: Timings = Timings()


@dataclass(frozen=True, slots=True)
class StepScore:
    """One step: the code points `start <= i < end` of the response.

    Attributes:
        start: first code point, from 0.
        end: one past the last.
        score: probability that it is right; None for a neutral step: a comment, a blank line.
        critique: a generative model's text about it.
    """

    start: int
    end: int
    score: float | None
    critique: str = ""


@dataclass(frozen=True, slots=True)
class StepScores:
    """The steps of a response, in order, and their scores.

    Attributes:
        steps: they cover the response without overlap.
        aggregate: of the scores.
        passed: the aggregate is not below the error threshold.
        error_threshold: in force.
        first_error: index of the first step below the threshold, from 0; None for none.
        unparsed_votes: critiques that could not be parsed.
        judge: the model, without a template.
        usage: its tokens.
        timings: its seconds.
    """

    steps: tuple[StepScore, ...]
    aggregate: float
    passed: bool
    error_threshold: float = 0.5
    first_error: int | None = None
    unparsed_votes: int = 0
    judge: JudgeRef = JudgeRef()
    usage: Usage = Usage()
    timings: Timings = Timings()


@dataclass(frozen=True, slots=True)
class SelfVerificationScores:
    """The policy's turns of a dialogue and their rewards.

    Attributes:
        turns: one for each, in order.
        revision_due: the last verdict asks for another attempt.
        timings: its seconds.
    """

    turns: tuple[TurnScore, ...]
    revision_due: bool
    timings: Timings = Timings()


@dataclass(frozen=True, slots=True)
class JudgeModelInfo:
    """One model that judges.

    Attributes:
        name: as `JudgeSettings.model` takes it.
        revision: a hash of its weights, or the configured revision.
        engine: "transformers", "vllm", "openai", ...
        scoring_modes: how its verdicts become numbers; the first is the default.
        context_tokens: of prompt and answer together.
        deterministic: equal calls with an equal seed get equal judgements.
        is_default: it is the server's default.
    """

    name: str
    revision: str
    engine: str
    scoring_modes: tuple[ScoringMode, ...]
    context_tokens: int
    deterministic: bool
    is_default: bool


@dataclass(frozen=True, slots=True)
class ProcessModelInfo:
    """One model that scores steps.

    Attributes:
        name: as `StepSettings.model` takes it.
        revision: a hash of its weights, or the configured revision.
        engine: "transformers", "vllm", "openai", ...
        default_splitting: how it cuts a response by default.
        generative: it writes a critique of each step.
        context_tokens: of prompt and response together.
    """

    name: str
    revision: str
    engine: str
    default_splitting: Splitting
    generative: bool
    context_tokens: int


@dataclass(frozen=True, slots=True)
class TemplateInfo:
    """One prompt template: "name@version", its text, and its kind.

    `kind` is "pointwise", "pairwise", "critique", "meta-critique" or "self-verification".
    """

    name: str
    description: str
    kind: str


@dataclass(frozen=True, slots=True)
class JudgeServerInfo:
    """Models, templates and limits of a judge service.

    Attributes:
        models: those that judge, sorted by name.
        process_models: those that score steps, sorted by name.
        templates: sorted by name.
        max_items: of one call.
        max_message_bytes: of one message.
        max_item_bytes: of one item.
        version: the server's.
    """

    models: tuple[JudgeModelInfo, ...]
    process_models: tuple[ProcessModelInfo, ...]
    templates: tuple[TemplateInfo, ...]
    max_items: int
    max_message_bytes: int
    max_item_bytes: int
    version: str

    @property
    def default_model(self) -> JudgeModelInfo | None:
        """The model for settings that name none; None where the server has no default."""
        return next((info for info in self.models if info.is_default), None)

    def find(self, name: str) -> JudgeModelInfo | None:
        """The judging model of this name, the default for an empty one; None for no such model."""
        if not name:
            return self.default_model
        return next((info for info in self.models if info.name == name), None)


JudgeResult = ModelJudgement | Fault
PairResult = PairJudgement | Fault
GroupResult = GroupRanking | Fault
StepResult = StepScores | Fault
SelfVerificationResult = SelfVerificationScores | Fault


@dataclass(frozen=True, slots=True)
class SelfVerificationReport:
    """The scores of a batch of dialogues.

    Attributes:
        results: scores or a fault for each item, in the items' order.
        metrics: one set over all scored items, whatever calls they travelled in
            (`assay.clients.judging.self_verification`).
    """

    results: list[SelfVerificationResult]
    metrics: SelfVerificationMetrics
