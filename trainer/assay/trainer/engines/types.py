"""Requests and responses of an engine: plain values, without tensors or network. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assay.trainer.data.problems import Problem


@dataclass(frozen=True, slots=True)
class Draw:
    """One turn of a problem in the stream of prompts.

    Attributes:
        number: its place in the stream, from 0; with the run's seed it fixes the randomness of its
            responses.
        prompt_ids: the rendered prompt.
        hint: how much of the solution it shows: 0 nothing, 1 the first of
            method.hints.shares, and so on.
    """

    number: int
    problem: Problem
    prompt_ids: tuple[int, ...]
    hint: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One response to generate: a sample of a draw's group.

    Attributes:
        index: of the sample, from 0.
        begun: the unfinished response of earlier steps, if it goes on.
        window: most tokens to draw now; 0 for as many as the response may have.
        turn: of the sample's dialogue, from 0; each has random numbers of its own, and
            draw.prompt_ids holds all before it.
        most: tokens that the whole response may have, where that is less than the sampling's
            max_new_tokens; 0 for no limit of its own.
    """

    draw: Draw
    index: int
    begun: Response | None = None
    window: int = 0
    turn: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class Response:
    """The policy's answer to a request.

    Attributes:
        ids: tokens, the end-of-sequence token included where there is one; at least one.
        text: decoded without special tokens.
        logprobs: for each token, log pi(token) under the sampler's weights at the rollout's
            temperature, before top-p and top-k; of a first token that FIRE drew, under the
            distribution that it was drawn from. None where the engine gives none.
        truncated: cut at max_new_tokens.
        finished: false where the request's window ended first; then the text is empty.
    """

    ids: tuple[int, ...]
    text: str
    logprobs: tuple[float, ...] | None
    truncated: bool
    finished: bool = True


@dataclass(frozen=True, slots=True)
class FirstToken:
    """A distribution of its own for the first token of each response (FIRE, arXiv 2410.21236).

    Attributes:
        temperature: above 0.
        top_k: how many of the likeliest it is drawn from, at least 2.
    """

    temperature: float
    top_k: int


@dataclass(frozen=True, slots=True)
class Sampling:
    """The distribution that tokens are drawn from.

    Attributes:
        max_new_tokens: of a whole response, at least 1.
        temperature: divides the logits; 0 takes the likeliest token.
        top_k: only the k likeliest; 0 for all.
        top_p: of these the smallest set with this share of the probability; 1 for all.
        first: of first tokens; None for the policy's own distribution.
        rows: most responses at a time, for an engine without a limit of its own; 0 for all.
        stops: a response ends with the token that completes one of these texts, as its tokens are
            decoded, special ones included.
    """

    max_new_tokens: int
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    first: FirstToken | None = None
    rows: int = 0
    stops: tuple[str, ...] = ()

    @property
    def filters(self) -> bool:
        """Whether some tokens cannot be drawn."""
        return self.top_k > 0 or self.top_p < 1


OnFinished = Callable[[int, Response], None]
"""Called with a request's place and its response, once complete."""


class Generator(Protocol):
    """Answers prompts with the present policy; see engines.engine.Sampler."""

    def generate(self, requests: Sequence[Request], on_finished: OnFinished) -> list[Response]:
        """One response for each request, in order.

        Where weights are sharded, every process makes the call, with any number of requests.
        `on_finished` is called once for each, as soon as it is complete, in the caller's thread; it
        must be quick.
        """
        ...


Tokenizer = Any
