"""What goes into a judging client and what comes out: small frozen values, nothing of the wire.

Four kinds of things are judged: responses one by one, pairs, groups, and responses by their steps.
What comes back is a judgement, which says what a model thinks, or a `Fault`, which says only that
there is none: a judge whose words cannot be parsed has not judged, and never gives a 0.

The words are those of judge.proto and process.proto; scores without another range are in [0, 1].
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
"""What the policy was asked: one text, or chat messages with "role" and "content"."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How to judge.

    Attributes:
        model: as `list_models` names it. Empty: the server's default.
        template: the prompt, "name" or "name@version". Empty: the default of the call.
        scoring: how a verdict becomes a number; "auto": from the verdict tokens' probabilities
            where the engine gives them, else from votes.
        votes: to sample, where votes are sampled. 0: the server's default.
        temperature: of votes and reasons; 0 is greedy. None: 1 where more than one is sampled,
            else 0.
        max_tokens: the most that the judge may write for one vote. 0: the template's default.
        seed: of the sampling. None: the server picks one.
        overflow: what to do with a candidate longer than the model's context: a fault, or keep its
            head and tail and say so.
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
    """One response to judge. Of ground_truth, anchor and rubric at most one may be given.

    Attributes:
        prompt: what the policy was asked.
        response: the policy's text.
        ground_truth: the right answer.
        anchor: a response to beat; 0.5 is parity with it.
        rubric: what a good response does, in words.
        id: the caller's name for it, at most 256 bytes. Empty: the client numbers it.
    """

    prompt: Prompt
    response: str
    ground_truth: str | None = None
    anchor: str | None = None
    rubric: str | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class PairItem:
    """Two responses to one prompt; the chance that `a` is better is asked for.

    Attributes:
        prompt: what the policy was asked.
        a: the one.
        b: the other.
        ground_truth: the right answer; empty for none.
        id: the caller's name for it, at most 256 bytes. Empty: the client numbers it.
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
        prompt: what the policy was asked.
        responses: at least two, unless there is an anchor.
        anchor: a response to hold them against; empty for none.
        ground_truth: the right answer; empty for none.
        id: the caller's name for it, at most 256 bytes. Empty: the client numbers it.
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
        aggregation: how the scores come together.
        error_threshold: a step below this is an error. None: the model's default.
        votes: critiques to sample, for a generative model. 0: the server's default.
        temperature: of critiques; see `JudgeSettings`.
        max_tokens: the most that a generative model may write for one critique. 0: the template's
            default.
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
        prompt: what the policy was asked.
        response: the policy's text.
        ground_truth: the right answer, for models that take one; empty for none.
        steps: the response already cut: put together they are the response. Empty: cut it.
        id: the caller's name for it, at most 256 bytes. Empty: the client numbers it.
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
        answer_verifier: says whether an attempt is right, where the item does not. Empty: "math".
        model: whose P("correct") is reported for each verification. Empty: none is asked.
    """

    parsing: Parsing = "strict"
    shaping_weight: float = 1.0
    answer_verifier: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class SelfVerificationItem:
    """One dialogue of a policy that answers, verifies itself and revises.

    Attributes:
        prompt: what the policy was asked.
        turns: the policy's, oldest first: attempts at even indices, verifications at odd ones.
        ground_truth: the right answer; may be empty where `attempts_correct` says all.
        attempts_correct: whether each attempt is right. Empty: the answer verifier is asked.
        group_id: samples of one prompt share it; best-of-n is counted within it. Empty: none.
        id: the caller's name for it, at most 256 bytes. Empty: the client numbers it.
    """

    prompt: Prompt
    turns: Sequence[str]
    ground_truth: str = ""
    attempts_correct: Sequence[bool] = ()
    group_id: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a result took.

    Attributes:
        prompt: read, cached ones included.
        cached: of those, tokens that were read before and kept.
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
    """A judge as it was when it judged.

    Attributes:
        model: its name.
        revision: a hash of its weights, or what the server was told.
        template: the prompt, "name@version"; empty for a scalar head.
    """

    model: str = ""
    revision: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class Timings:
    """How long an item took at the server, in seconds: in the queue, and being judged."""

    queue_s: float = 0.0
    execution_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Vote:
    """One sampled vote: its value, and what the judge wrote."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class ModelJudgement:
    """What a model thinks of one response.

    Attributes:
        score: chance of being right or of beating the anchor; or a scalar head's logit, unbounded.
        standard_error: of the score; None where there is no estimate.
        votes: those behind it, in the order drawn.
        unparsed_votes: votes that could not be parsed; they count for nothing.
        rationale: what the judge wrote by way of reasons.
        truncated: the candidate was cut to fit.
        judge: who judged.
        usage: tokens it took.
        timings: how long it took.
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
    """What a model thinks of a pair, asked in both orders.

    Attributes:
        win_probability: chance that a is better, both orders together; 0.5 is parity.
        forward: chance that a is better, with a in the first place.
        reverse: chance that a is better, with a in the second place.
        order_gap: how much the place decided: |forward - reverse|.
        standard_error: of the win probability; None where there is no estimate.
        unparsed_votes: votes of both orders that could not be parsed.
        rationale: what the judge wrote by way of reasons.
        truncated: a response was cut to fit.
        judge: who judged.
        usage: tokens it took, both orders together.
        timings: how long it took.
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
    """How the samples of a group stand.

    Attributes:
        scores: mean win probability of each response, in the responses' order.
        order_gaps: mean order gap of each response's comparisons.
        judge: who judged.
        usage: tokens it took, all comparisons together.
        timings: how long it took.
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
        score: chance that it is right; None for a neutral step: a comment, a blank line.
        critique: what a generative model wrote about it.
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
        aggregate: the scores brought together.
        passed: the aggregate is not below the error threshold.
        error_threshold: in force.
        first_error: index of the first step below the threshold, from 0; None for none.
        unparsed_votes: critiques that could not be parsed.
        judge: who scored; without a template.
        usage: tokens it took.
        timings: how long it took.
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
        timings: how long it took.
    """

    turns: tuple[TurnScore, ...]
    revision_due: bool
    timings: Timings = Timings()


@dataclass(frozen=True, slots=True)
class JudgeModelInfo:
    """One model that judges.

    Attributes:
        name: by which settings ask for it.
        revision: a hash of its weights, or what the server was told.
        engine: what runs it: "transformers", "vllm", "openai", ...
        scoring_modes: how its verdicts become numbers; the first is the default.
        context_tokens: most tokens of prompt and answer together.
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
        name: by which settings ask for it.
        revision: a hash of its weights, or what the server was told.
        engine: what runs it.
        default_splitting: how it cuts a response by default.
        generative: it writes a critique of each step.
        context_tokens: most tokens of prompt and response together.
    """

    name: str
    revision: str
    engine: str
    default_splitting: Splitting
    generative: bool
    context_tokens: int


@dataclass(frozen=True, slots=True)
class TemplateInfo:
    """One prompt: "name@version", what it asks, and what it is for.

    `kind` is "pointwise", "pairwise", "critique", "meta-critique" or "self-verification".
    """

    name: str
    description: str
    kind: str


@dataclass(frozen=True, slots=True)
class JudgeServerInfo:
    """What a judge service serves.

    Attributes:
        models: those that judge, sorted by name.
        process_models: those that score steps, sorted by name.
        templates: prompts, sorted by name.
        max_items: most items of one call.
        max_message_bytes: most bytes of one message.
        max_item_bytes: most bytes of one item.
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
        """The model that judges where settings name none; None where the server says none."""
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
    """What came of a batch of dialogues.

    Attributes:
        results: scores or a fault for each item, in the items' order.
        metrics: over the items that were scored, counted here
        (`assay.clients.judging.self_verification`),
            so that items which travelled in several calls have one set.
    """

    results: list[SelfVerificationResult]
    metrics: SelfVerificationMetrics
