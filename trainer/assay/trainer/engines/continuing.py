"""Responses that go on: what a generator reads, how much it may draw, and what it hands back.

A request may bring the beginning of its response, drawn in earlier steps by other weights. The
generator reads prompt and beginning with the weights of now, and draws the next tokens with the
random numbers of their positions: the same as if nothing had interrupted it, where the weights are
the same. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from assay.trainer.engines.types import Request, Response


def place_of(request: Request) -> int:
    """The position within the response of the next token, from 0."""
    return len(request.begun.ids) if request.begun is not None else 0


def input_ids_of(request: Request) -> tuple[int, ...]:
    """What the generator reads before the next token: the prompt, and the response so far."""
    begun = request.begun.ids if request.begun is not None else ()
    return request.draw.prompt_ids + begun


def room(request: Request, max_new_tokens: int) -> int:
    """How many tokens may be drawn now, at least 1.

    Args:
        request: not finished.
        max_new_tokens: of a whole response.
    """
    left = max_new_tokens - place_of(request)
    return min(left, request.window) if request.window else left


def answered(
    request: Request,
    ids: Sequence[int],
    logprobs: Sequence[float],
    *,
    ended: bool,
    max_new_tokens: int,
) -> Response:
    """The response so far, with what was drawn of it now; its text is still to be written.

    Args:
        request: what was asked for.
        ids: drawn now, at least one.
        logprobs: of these.
        ended: the last one ends the response.
        max_new_tokens: of a whole response.
    """
    begun = request.begun
    whole = (*(begun.ids if begun is not None else ()), *ids)
    known = begun.logprobs if begun is not None else ()
    finished = ended or len(whole) >= max_new_tokens
    return Response(
        ids=whole,
        text="",
        logprobs=None if known is None else (*known, *logprobs),
        truncated=finished and not ended,
        finished=finished,
    )


def with_texts(
    responses: Sequence[Response], decode: Callable[[list[list[int]]], list[str]]
) -> list[Response]:
    """The responses, those that are finished with their texts.

    Args:
        responses: of `answered`.
        decode: several rows of tokens to texts.
    """
    finished = [list(one.ids) for one in responses if one.finished]
    texts = iter(decode(finished) if finished else ())
    return [replace(one, text=next(texts)) if one.finished else one for one in responses]
