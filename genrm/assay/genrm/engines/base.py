"""The interface between judges and whatever runs a model: four requests, four answers.

    Choose        log-probability of each of some texts as what comes next
    Write         text, sampled or greedy
    RateDialogue  the logits of a sequence classification head on a whole dialogue
    RateSteps     the logits of a token classification head at the end of each step

A prompt is made of pieces. A piece that is not ours (the candidate's text, the question, a
reference) is data: an engine never reads the model's special tokens out of it. All numbers are of
the model's full distribution, at temperature 1, natural logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Capability = Literal["choose", "write", "rate", "rate-steps"]
Splitting = Literal["auto", "line", "paragraph", "tag", "code-line"]


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """Part of a message.

    Attributes:
        text: what it says.
        trusted: our own words, in which a special token is one; False for data.
        cuttable: the candidate's text: the middle may be left out where the request allows it.
    """

    text: str
    trusted: bool = True
    cuttable: bool = False


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message to the model: "system", "user" or "assistant"."""

    role: str
    pieces: tuple[PromptPiece, ...]

    @property
    def text(self) -> str:
        """The pieces put together."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model reads.

    Attributes:
        messages: in order. For RateDialogue and RateSteps the last is the response, the
            assistant's.
        prefill: how the assistant's answer begins; the model goes on from there. Ours. Always
            empty where the last message is the assistant's.
        lead: what the assistant's answer says already, before the prefill: the candidate's own
            words, for instance. Never cut; empty where the prefill must be.
    """

    messages: tuple[PromptMessage, ...]
    prefill: str = ""
    lead: tuple[PromptPiece, ...] = ()


@dataclass(frozen=True, slots=True)
class Choose:
    """Asks how likely each option is to come next.

    Attributes:
        prompt: ends with the assistant's prefill, or with nothing of the assistant's.
        options: at least two different texts, tokenised as they stand, without special tokens.
        keep_ends: a prompt over the context is cut in its cuttable pieces; otherwise refused.
    """

    prompt: Prompt
    options: tuple[str, ...]
    keep_ends: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """Asks for text.

    Attributes:
        prompt: as for `Choose`.
        max_tokens: the most to write; prompt and these together must fit into the context.
        temperature: 0 is greedy.
        top_p: of the sampling, in (0, 1].
        seed: equal seeds give equal texts where the engine is deterministic.
        stop: texts at which to stop; what is returned ends before the first of them.
        keep_ends: as for `Choose`.
    """

    prompt: Prompt
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    keep_ends: bool = False


@dataclass(frozen=True, slots=True)
class RateDialogue:
    """Asks a sequence classification head about a dialogue that ends with the response."""

    prompt: Prompt
    keep_ends: bool = False


@dataclass(frozen=True, slots=True)
class RateSteps:
    """Asks a token classification head about each step of a response.

    Attributes:
        prompt: what the policy was asked; the response is not in it.
        steps: the response, cut; put together they are the response.
    """

    prompt: Prompt
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens read (`prompt`), read before and kept (`cached`, part of `prompt`), and written."""

    prompt: int
    cached: int = 0
    completion: int = 0


@dataclass(frozen=True, slots=True)
class Chosen:
    """Natural log-probability of each option, in order; finite or -inf, at most 0."""

    logprobs: tuple[float, ...]
    tokens: TokenCounts
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, the prefill not included, and why it ended."""

    text: str
    finish: Literal["stop", "length"]
    tokens: TokenCounts
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Rated:
    """The head's logits, [labels]; finite."""

    logits: tuple[float, ...]
    tokens: TokenCounts
    cut: bool = False


@dataclass(frozen=True, slots=True)
class StepsRated:
    """The chance that each step is right, in [0, 1].

    It is the head's softmax over its labels, or the sigmoid of its one logit.
    """

    probabilities: tuple[float, ...]
    tokens: TokenCounts


Request = Choose | Write | RateDialogue | RateSteps
Answer = Chosen | Written | Rated | StepsRated


class EngineError(Exception):
    """No answer to one request. Becomes the item's fault.

    Attributes:
        reason: CONTEXT_TOO_LONG, ENGINE_DIED, ENGINE_FAILED, SCORE_NOT_FINITE, JUDGE_UNPARSED or
            INVALID_PARAMETER (a request that this model cannot answer).
        message: what is wrong, in one line that says what to do.
        metadata: further facts, for programs.
    """

    def __init__(self, reason: str, message: str, metadata: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.reason = str(reason)
        self.message = message
        self.metadata = metadata or {}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a loaded model is.

    Attributes:
        name: as the service calls it.
        engine: "transformers", "vllm" or "openai".
        revision: hash of its weights, the hub's commit, or what the operator said.
        capabilities: the requests that it answers.
        context_tokens: most tokens of prompt and answer together; 0 if only its server knows.
        deterministic: equal requests get equal answers, but for rounding.
        error_threshold: for step heads, a chance below this is an error.
        splitting: how it wants a response cut into steps where the caller does not say.
    """

    name: str
    engine: str
    revision: str
    capabilities: frozenset[Capability]
    context_tokens: int
    deterministic: bool
    error_threshold: float = 0.5
    splitting: Splitting = "auto"


@dataclass(slots=True)
class EngineTally:
    """What an engine has done since its start.

    Attributes:
        restarts: times that it was started in place of one that died.
        batches: forward passes; 0 where somebody else batches.
        rows: sequences in them, added up.
    """

    restarts: int = 0
    batches: int = 0
    rows: int = 0


class JudgeEngine(Protocol):
    """Runs one model. Belongs to the event loop that started it.

    Attributes:
        tally: what it has done; read by other threads.
    """

    tally: EngineTally

    @property
    def info(self) -> ModelInfo:
        """What it is; known after `start`."""

    async def start(self) -> None:
        """Loads the model; returns when it answers.

        Raises:
            StartupError: it cannot be loaded; the text names the model and says what to do.
            ConfigError: its settings are wrong.
        """

    async def ask(self, request: Request) -> Answer:
        """Answers one request; requests that wait together are answered together.

        To share the work on a common beginning, hand over a group's requests in one turn of the
        event loop (asyncio.gather). A caller that is cancelled withdraws its request. An engine
        that died starts anew, and requests wait for it.

        Raises:
            EngineError: no answer.
        """

    async def close(self) -> None:
        """Ends what runs; waiting requests get ENGINE_DIED. May be called twice."""
