"""The values that go into a judging client and come out of it, as frozen dataclasses.

The outcome of an item is a judgement, or a `Fault` where there is none: a judge whose text cannot
be parsed has not judged. Names follow judge.proto and process.proto; scores without another range
are in [0, 1]. Ids have at most 256 bytes; the client numbers items without one. An empty ground
truth is none. In settings, empty texts and zeros stand for the defaults of server or template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from assay.clients.judging.self_verification import SelfVerificationMetrics, TurnScore
from assay.clients.judging.verdicts import Parsing
from assay.clients.types import Fault, Message, Turn
from assay.kit.faults import ItemFault

ScoringMode = Literal["auto", "token-probability", "votes", "scalar-head", "consensus"]
Overflow = Literal["refuse", "keep-ends"]
LowMass = Literal["refuse", "votes"]
RankingMode = Literal["auto", "anchor", "round-robin", "swiss"]
Splitting = Literal["auto", "line", "paragraph", "tag", "code-line"]
Aggregation = Literal["min", "product", "last", "mean"]
Prompt = str | Sequence[Message]
"""One text, or chat messages with "role" and "content"."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How to judge.

    Attributes:
        model: as `list_models` names it.
        template: the prompt, "name" or "name@version".
        scoring: "auto" takes the verdict tokens' probabilities where the engine has them, else
            votes.
        votes: how many to sample.
        temperature: of votes and reasons; 0 is greedy. None: 1 for several samples, else 0.
        max_tokens: of one vote.
        seed: of sampling and of drawn letters; None: the server picks one that nobody knows ahead.
        overflow: for a candidate longer than the model's context: a fault, or keep head and tail.
        meta_critique: with "consensus": each critique is criticised and refined before it counts.
        low_mass: where the verdicts hold less of the model's probability than the template wants: a
            fault, or votes.
        max_letter_gap: the greatest letter gap that counts; beyond it a fault, LETTER_GAP. None:
            any.
        run: who asks, of the tenant's runs, for the server's accounts; nothing is judged by it.
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
    low_mass: LowMass = "refuse"
    max_letter_gap: float | None = None
    run: str = ""


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """One response to judge, with at most one of ground_truth, anchor and rubric.

    The anchor is a response to beat: 0.5 is parity with it. The rubric describes a good response.
    `turns` stand in place of the response: a trajectory, of which the assistant's turns are judged.
    """

    prompt: Prompt
    response: str = ""
    ground_truth: str | None = None
    anchor: str | None = None
    rubric: str | None = None
    id: str = ""
    turns: Sequence[Turn] = ()


@dataclass(frozen=True, slots=True)
class PairItem:
    """Two responses to one prompt; the judge gives the probability that `a` is better.

    `turns_a` and `turns_b` stand in place of the texts, as in `JudgeItem`.
    """

    prompt: Prompt
    a: str = ""
    b: str = ""
    ground_truth: str = ""
    id: str = ""
    turns_a: Sequence[Turn] = ()
    turns_b: Sequence[Turn] = ()


@dataclass(frozen=True, slots=True)
class GroupItem:
    """Samples of one prompt, to be ranked: two or more, or one and an anchor to compare with."""

    prompt: Prompt
    responses: Sequence[str]
    anchor: str = ""
    ground_truth: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class StepSettings:
    """How to score steps. Fields that `JudgeSettings` has too mean the same, of critiques.

    Attributes:
        splitting: "auto" is the model's own way.
        step_tag: ends a step, for "tag".
        error_threshold: a step below this is an error. None: the model's default.
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
    run: str = ""


@dataclass(frozen=True, slots=True)
class StepItem:
    """One response to score by steps.

    `steps` are the response already cut; joined, they are the response. Empty: the server cuts it.
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
        answer_verifier: judges attempts of unknown truth. Empty: "math".
        model: gives P("correct") of each verification. Empty: none.
        run: see `JudgeSettings`.
    """

    parsing: Parsing = "strict"
    shaping_weight: float = 1.0
    answer_verifier: str = ""
    model: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class SelfVerificationItem:
    """One dialogue of a policy that answers, verifies itself and revises.

    Attributes:
        turns: the policy's, oldest first: attempts at even indices, verifications at odd ones.
        attempts_correct: empty: the answer verifier decides, by the ground truth.
        group_id: shared by the samples of one prompt, for best-of-n. Empty: none.
    """

    prompt: Prompt
    turns: Sequence[str]
    ground_truth: str = ""
    attempts_correct: Sequence[bool] = ()
    group_id: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one result took.

    Attributes:
        prompt: tokens read.
        cached: of those, tokens that were reused.
        completion: tokens written.
        engine_s: seconds of the engine, shared out among the requests that were at it.
        cost: money, in the currency of the server's prices; 0 where there are none.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    engine_s: float = 0.0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
            self.engine_s + other.engine_s,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class JudgeRef:
    """The judge of one result. `template` is "name@version", or empty for a scalar head.

    `revision` is a hash of its weights, or the configured revision.
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


Unread = Fault | ItemFault
"""Why there is no score: as a client reads it, or as a judge says it."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one model of several said: a score in [0, 1], or a fault."""

    judge: JudgeRef
    score: float | None = None
    fault: Unread | None = None


@dataclass(frozen=True, slots=True)
class ModelJudgement:
    """A model's judgement of one response.

    Attributes:
        score: probability of being right or of beating the anchor; or a scalar head's logit,
            unbounded.
        standard_error: None where there is no estimate.
        votes: in the order drawn.
        unparsed_votes: these do not count.
        truncated: the candidate was cut to fit.
        verdict_mass: the share of the model's probability that its verdicts held, the least where
            several were read; None where none were. Near 1 for a judge that judges.
        opinions: what each model of an ensemble said, in its order; empty where one judged.
        disagreement: how far they are apart: the mean of |a - b| over all pairs of scores, in
            [0, 1]. None for fewer than two.
        letter_gap: how far the score moved when the letters of its verdicts changed sides; None
            where the template draws none, or where votes were sampled. Near 0 for a judge that
            judges.
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
    verdict_mass: float | None = None
    opinions: tuple[Opinion, ...] = ()
    disagreement: float | None = None
    letter_gap: float | None = None


@dataclass(frozen=True, slots=True)
class PairJudgement:
    """A model's judgement of a pair, asked in both orders. Usage and votes are of both together.

    Attributes:
        win_probability: that a is better, both orders together; 0.5 is parity.
        forward: with a in the first place.
        reverse: with a in the second place.
        order_gap: |forward - reverse|.
        standard_error: None where there is no estimate.
        verdict_mass: of the order in which the verdicts held less; see `ModelJudgement`.
        letter_gap: of the order in which it is greater; see `ModelJudgement`.
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
    verdict_mass: float | None = None
    letter_gap: float | None = None


@dataclass(frozen=True, slots=True)
class GroupRanking:
    """Mean win probabilities and mean order gaps, in the order of the group's responses.

    `truncated` says of each whether it was cut to fit: a comparison was cut in which it was the
    longer one; empty where the server does not say. `verdict_mass` is the least of all comparisons;
    see `ModelJudgement`. `letter_gaps` are means too, empty where a comparison has none.
    `comparisons` were made, each in both orders; `comparisons_lost` of them count for nothing.
    """

    scores: tuple[float, ...]
    order_gaps: tuple[float, ...]
    judge: JudgeRef = JudgeRef()
    usage: Usage = Usage()
    timings: Timings = Timings()
    verdict_mass: float | None = None
    truncated: tuple[bool, ...] = ()
    letter_gaps: tuple[float, ...] = ()
    comparisons: int = 0
    comparisons_lost: int = 0


@dataclass(frozen=True, slots=True)
class StepScore:
    """One step: the code points `start <= i < end` of the response.

    Its score is the probability that it is right; None for a neutral step: a comment, a blank line.
    """

    start: int
    end: int
    score: float | None
    critique: str = ""


@dataclass(frozen=True, slots=True)
class StepScores:
    """The steps of a response, in order and without overlap, and their scores.

    `passed`: the aggregate is not below the error threshold. `first_error`: index of the first step
    below it, from 0; None for none. `verdict_mass` is the least of critiques that were held to
    their form; see `ModelJudgement`.
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
    verdict_mass: float | None = None


@dataclass(frozen=True, slots=True)
class SelfVerificationScores:
    """The policy's turns of a dialogue and their rewards, in order.

    `revision_due` says whether the last verdict asks for another attempt.
    """

    turns: tuple[TurnScore, ...]
    revision_due: bool
    timings: Timings = Timings()


@dataclass(frozen=True, slots=True)
class TemplateFitness:
    """How a model did on known answers by one template.

    Attributes:
        fit: it judges by this template; else each item is the fault JUDGE_UNFIT.
        auc: the chance that a right response scores above a wrong one; 0.5 is guessing. None where
            too few were judged.
        verdict_mass: the median share that the verdicts held; None where no probabilities were
            read.
        problem: what is wrong and what to do; empty where it is fit.
    """

    template: str
    scoring: ScoringMode
    fit: bool
    auc: float | None = None
    verdict_mass: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class JudgeModelInfo:
    """One model that judges.

    Attributes:
        engine: "transformers", "vllm", "openai", ...
        scoring_modes: the first is the default.
        context_tokens: of prompt and answer together.
        deterministic: equal calls with an equal seed get equal judgements.
        fitness: what its self-tests gave so far.
    """

    name: str
    revision: str
    engine: str
    scoring_modes: tuple[ScoringMode, ...]
    context_tokens: int
    deterministic: bool
    is_default: bool
    fitness: tuple[TemplateFitness, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessModelInfo:
    """One model that scores steps; a generative one writes a critique of each."""

    name: str
    revision: str
    engine: str
    default_splitting: Splitting
    generative: bool
    context_tokens: int


@dataclass(frozen=True, slots=True)
class TemplateInfo:
    """One prompt template: "name@version", its text, and its kind.

    `kind` is "pointwise", "pairwise", "critique", "meta-critique", "self-verification", "criterion"
    or "evidence"; `least_mass` is the least share of the model's probability that its verdicts must
    hold; `letters`: it draws letters for its verdicts and is asked twice.
    """

    name: str
    description: str
    kind: str
    least_mass: float = 0.0
    letters: bool = False


@dataclass(frozen=True, slots=True)
class JudgeServerInfo:
    """Models, templates and limits of a judge service; each list is sorted by name."""

    models: tuple[JudgeModelInfo, ...]
    process_models: tuple[ProcessModelInfo, ...]
    templates: tuple[TemplateInfo, ...]
    max_items: int
    max_message_bytes: int
    max_item_bytes: int
    version: str

    @property
    def default_model(self) -> JudgeModelInfo | None:
        """The model for settings that name none; None where there is no default."""
        return next((info for info in self.models if info.is_default), None)

    def find(self, name: str) -> JudgeModelInfo | None:
        """The judging model of this name, the default for an empty one; None for none."""
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
    """One outcome for each item, in order, and the metrics of all scored items together."""

    results: list[SelfVerificationResult]
    metrics: SelfVerificationMetrics
