"""A prompt that the server finds too long: refused, or cut and asked again, at most eight times.

Where the server counts tokens (`/tokenize`) the excess is known. Elsewhere it is estimated from the
refusal, so from the second cut on the candidate loses at least three tenths.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from assay.genrm.engines.base import EngineError, Prompt
from assay.genrm.engines.fitting import CHARS_PER_TOKEN, pieces_of
from assay.genrm.engines.openai import texts
from assay.genrm.engines.openai.transport import Refused
from assay.kit.reasons import Reason

_TRIES = 8
_SHRINK = 0.7
# About the line that stands where something was cut, and what tokens at its ends may add.
_LINE_CHARS = 80
_LEAST_CHARS = 8
_SAYS_TOO_LONG = re.compile(
    r"context.?(?:length|window|size)|maximum context|too many tokens|prompt is too long"
    r"|reduce the length|longer than the maximum|exceeds? the (?:model|maximum)",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"(?:length|limit|window|size)[^0-9]{0,30}([0-9]{2,9})", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{2,9}(?= (?:\w{1,10} )?tokens)")

T = TypeVar("T")


class TooLong(Exception):
    """The prompt does not fit.

    Attributes:
        used: tokens of the prompt; 0 if unknown.
        excess: tokens too many; 0 if unknown.
        exact: both were counted, not read from a refusal.
    """

    def __init__(
        self, message: str, used: int = 0, excess: int = 0, *, exact: bool = False
    ) -> None:
        super().__init__(message)
        self.exact = exact
        self.message = message
        self.used = used
        self.excess = excess


def read(refused: Refused, reserve: int) -> TooLong:
    """What a refusal means, where the answer may take `reserve` tokens.

    Raises:
        EngineError: it is about something else.
    """
    if not _SAYS_TOO_LONG.search(refused.message):
        raise EngineError(
            Reason.ENGINE_FAILED, f"the server refused the request ({refused.message})"
        ) from refused
    limit = _LIMIT.search(refused.message)
    bound = int(limit[1]) if limit else 0
    numbers = [int(found) for found in _NUMBER.findall(refused.message)]
    used = max((number for number in numbers if number != bound), default=0)
    excess = used + reserve - bound if bound and used + reserve > bound else 0
    return TooLong(refused.message, used, excess)


async def fitted(
    prompt: Prompt,
    keep_ends: bool,
    reserve: int,
    attempt: Callable[[Prompt, bool], Awaitable[T]],
    context_tokens: int = 0,
) -> T:
    """The answer to the prompt, or to as much of it as fits.

    Of more than 16 characters for each token of the context the server is not asked about the rest.

    Args:
        prompt: the whole.
        keep_ends: the cuttable pieces may lose their middles.
        reserve: tokens that the answer may take.
        attempt: asks; takes whether the prompt was cut; raises Refused or TooLong.
        context_tokens: of prompt and answer together; 0 if unknown.

    Raises:
        EngineError: CONTEXT_TOO_LONG, or what `attempt` met.
    """
    chars = texts.cuttable_chars(prompt)
    asked, reason = prompt, ""
    most = CHARS_PER_TOKEN * context_tokens
    is_vast = 0 < most < sum(len(piece.text) for piece in pieces_of(prompt))
    if is_vast:
        reason = f"more than {most} characters, of {context_tokens} tokens"
        chars = min(chars, most)
        asked = texts.keep(prompt, chars)
    for tries in range(_TRIES if keep_ends or not is_vast else 0):
        try:
            return await attempt(asked, is_vast or tries > 0)
        except Refused as refused:
            found = read(refused, reserve)
        except TooLong as too_long:
            found = too_long
        reason = found.message
        chars = _shorter(asked, chars, found, again=is_vast or tries > 0)
        if not keep_ends or chars <= 0:
            break
        asked = texts.keep(prompt, chars)
    raise EngineError(
        Reason.CONTEXT_TOO_LONG,
        f"the prompt does not fit into the model's context ({reason}): shorten the candidate"
        + ("" if keep_ends else ", or allow it to be cut (overflow)"),
    )


def _shorter(asked: Prompt, chars: int, found: TooLong, *, again: bool) -> int:
    if not found.excess or not found.used:
        return int(chars * _SHRINK)
    total = sum(len(message.text) for message in asked.messages)
    excess = math.ceil(found.excess * total / found.used)
    if found.exact:
        return chars - excess - (_LINE_CHARS if not again else _LEAST_CHARS)
    return min(chars - excess - _LINE_CHARS, int(chars * _SHRINK) if again else chars)
