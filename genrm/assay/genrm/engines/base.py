"""The interface between judges and whatever runs a model: four requests, four answers.

    Choose        log-probability of each of some texts as what comes next
    Write         text, sampled or greedy
    RateDialogue  the logits of a sequence classification head on a whole dialogue
    RateSteps     the logits of a token classification head at the end of each step

An engine never reads special tokens out of untrusted pieces (the candidate's text, the question, a
reference). All numbers are of the model's full distribution, at temperature 1, natural logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from assay.genrm.engines.forms import TextForm

Capability = Literal["choose", "write", "rate", "rate-steps"]
Splitting = Literal["auto", "line", "paragraph", "tag", "code-line"]
Forms = Literal["again", "always", "never"]


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """Part of a message.

    Attributes:
        text: what it says.
        trusted: our own words, in which special tokens count; else data.
        cuttable: its middle may be left out where the request allows it.
    """

    text: str
    trusted: bool = True
    cuttable: bool = False


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message to the model, of role "system", "user" or "assistant"."""

    role: str
    pieces: tuple[PromptPiece, ...]

    @property
    def text(self) -> str:
        """The pieces joined."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model reads.

    Attributes:
        messages: in order. For RateDialogue and RateSteps the last is the assistant's response.
        prefill: our beginning of the answer; empty where the last message is the assistant's.
        lead: the assistant's words before the prefill, such as the candidate's. Never cut; empty
            where the prefill must be.
        template: "name@version" of the template that made it; empty for none. No engine reads it.
        drawn: its wording depends on the judgement's seed. No engine reads it.
    """

    messages: tuple[PromptMessage, ...]
    prefill: str = ""
    lead: tuple[PromptPiece, ...] = ()
    template: str = ""
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class Choose:
    """Asks how likely each option is to come next.

    Attributes:
        prompt: ends with the prefill, or before the assistant's answer.
        options: at least two different texts, tokenised as they stand, without special tokens.
        keep_ends: a prompt over the context loses the middle of its cuttable pieces; else refused.
    """

    prompt: Prompt
    options: tuple[str, ...]
    keep_ends: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """Asks for text.

    Attributes:
        prompt: as for `Choose`.
        max_tokens: prompt and these together must fit into the context.
        temperature: 0 is greedy.
        top_p: in (0, 1].
        seed: equal seeds give equal texts where the engine is deterministic.
        stop: the text ends before the first of these.
        keep_ends: as for `Choose`.
        form: what the text must look like, for an engine that holds a model to it; stop texts do
            not count then.
    """

    prompt: Prompt
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    keep_ends: bool = False
    form: TextForm | None = None


@dataclass(frozen=True, slots=True)
class RateDialogue:
    """Asks a sequence classification head about a dialogue that ends with the response."""

    prompt: Prompt
    keep_ends: bool = False


@dataclass(frozen=True, slots=True)
class RateSteps:
    """Asks a token classification head about each step of a response.

    Attributes:
        prompt: what the policy was asked, without the response.
        steps: joined, they are the response.
    """

    prompt: Prompt
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens read (`prompt`), of those reused (`cached`), and written (`completion`).

    Whoever asks an engine adds its seconds for the answer, and what they cost (`accounts`).
    """

    prompt: int
    cached: int = 0
    completion: int = 0
    engine_s: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """Natural log-probability of each option, in order; finite or -inf, at most 0."""

    logprobs: tuple[float, ...]
    tokens: TokenCounts
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The text without the prefill, and why it ended.

    `mass`, of a text that was held to a form: the least share of the model's probability, in
    [0, 1], that the form's verdicts had together where one was said; None of any other text.
    """

    text: str
    finish: Literal["stop", "length"]
    tokens: TokenCounts
    cut: bool = False
    mass: float | None = None


@dataclass(frozen=True, slots=True)
class Rated:
    """The head's logits, [labels]; finite."""

    logits: tuple[float, ...]
    tokens: TokenCounts
    cut: bool = False


@dataclass(frozen=True, slots=True)
class StepsRated:
    """The chance that each step is right, in [0, 1], by `steps.chance`."""

    probabilities: tuple[float, ...]
    tokens: TokenCounts


Request = Choose | Write | RateDialogue | RateSteps
Answer = Chosen | Written | Rated | StepsRated


class EngineError(Exception):
    """No answer to one request; becomes the item's fault.

    Attributes:
        reason: CONTEXT_TOO_LONG, ENGINE_DIED, ENGINE_FAILED, SCORE_NOT_FINITE, JUDGE_UNPARSED or
            INVALID_PARAMETER (a request that this model cannot answer).
        message: what is wrong and what to do, in one line.
        metadata: further facts, for programs.
    """

    def __init__(self, reason: str, message: str, metadata: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.reason = str(reason)
        self.message = message
        self.metadata = metadata or {}


class NotBegunError(EngineError):
    """One of several engines died before it began with this request: another may take it."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a loaded model is.

    Attributes:
        name: as the service calls it.
        engine: "transformers", "vllm" or "openai".
        revision: hash of its weights, the hub's commit, or the operator's word.
        capabilities: the requests that it answers.
        context_tokens: of prompt and answer together; 0 if only its server knows.
        deterministic: equal requests get equal answers, but for rounding.
        error_threshold: for step heads, a chance below this is an error.
        splitting: how a response is cut where the caller does not say.
        forms: when texts are held to a form: "again", where they cannot be read; "always"; or
            "never", also where the engine cannot.
        template: "name@version" of the prompt on which it was trained to judge; empty for none.
    """

    name: str
    engine: str
    revision: str
    capabilities: frozenset[Capability]
    context_tokens: int
    deterministic: bool
    error_threshold: float = 0.5
    splitting: Splitting = "auto"
    forms: Forms = "never"
    template: str = ""


@dataclass(slots=True)
class EngineTally:
    """Since the engine's start: `restarts` after a death, forward passes and sequences in them.

    `batches` and `rows` stay 0 where somebody else batches; `ready` is how many replicas answer.
    """

    restarts: int = 0
    batches: int = 0
    rows: int = 0
    ready: int = 1


class JudgeEngine(Protocol):
    """Runs one model. Belongs to the event loop that started it; other threads may read `tally`."""

    @property
    def tally(self) -> EngineTally:
        """What it has done so far."""

    @property
    def info(self) -> ModelInfo:
        """The model; known after `start`."""

    async def start(self) -> None:
        """Loads the model; returns when it answers.

        Raises:
            StartupError: it cannot be loaded; the text names the model and says what to do.
            ConfigError: its settings are wrong.
        """

    async def ask(self, request: Request) -> Answer:
        """Answers one request.

        Requests that wait together are batched: hand over those that share a beginning in one turn
        of the event loop (asyncio.gather). Cancelling withdraws a request. An engine that died
        restarts, and requests wait for it.

        Raises:
            EngineError: no answer.
        """

    async def close(self) -> None:
        """Ends the engine; waiting requests get ENGINE_DIED. May be called twice."""
