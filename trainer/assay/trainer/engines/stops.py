"""Texts behind which a response is over, found token by token.

A token that completes a text ends the response and belongs to it, with whatever else it writes. The
response's own tokens count, those of earlier steps included, the prompt's do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.trainer.engines.engine import EngineHost, OpenRequest
from assay.trainer.engines.types import Sampling, Tokenizer

_SLACK = 4
"""Tokens before those of a text: decoders treat a beginning as special."""


class StopTexts:
    """Finds stop texts at the end of tokens; may be used by any thread.

    Only tokens that write the last character of some text are looked at, and of those before them
    as many as the longest text has bytes.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._stops = tuple(stops)
        self._lasts = frozenset(stop[-1] for stop in stops)
        self._may_end: dict[int, bool] = {}
        self.window = max(len(stop.encode()) for stop in stops) + _SLACK

    def may_end(self, token: int) -> bool:
        """Whether some text may end with this token."""
        known = self._may_end.get(token)
        if known is None:
            text = self._text([token])
            partial = not text.strip() or "\ufffd" in text
            known = self._may_end[token] = partial or not self._lasts.isdisjoint(text)
        return known

    def complete(self, ids: Sequence[int]) -> bool:
        """Whether the last token completes a text, given that none before it did."""
        if not ids or not self.may_end(ids[-1]):
            return False
        text = self._text(list(ids[-self.window :]))
        return any(stop in text for stop in self._stops)

    def kept(self, before: Sequence[int], ids: Sequence[int]) -> int | None:
        """How many of new tokens are the response's, where they complete a text; else None."""
        whole = [*before[-self.window :], *ids]
        start = len(whole) - len(ids)
        for count in range(1, len(ids) + 1):
            if self.complete(whole[: start + count]):
                return count
        return None

    def _text(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))


def stop_texts(host: EngineHost, sampling: Sampling) -> StopTexts | None:
    """The sampling's stop texts, kept with the host; None for none."""
    stops = getattr(sampling, "stops", ())
    if not stops:
        return None
    found: StopTexts = host.shared.setdefault(f"stops {stops!r}", StopTexts(host.tokenizer, stops))
    return found


def is_stopped(host: EngineHost, row: OpenRequest) -> bool:
    """Whether a row's last token completes one of its stop texts."""
    found = stop_texts(host, row.sampling)
    return found is not None and found.complete([*row.begun, *row.ids])


def add_up_to_stop(
    host: EngineHost, row: OpenRequest, ids: Sequence[int], logprobs: Sequence[float] | None
) -> bool:
    """Adds new tokens to a row, up to the one that completes a stop text; whether one does."""
    found = stop_texts(host, row.sampling)
    count = None if found is None else found.kept([*row.begun, *row.ids], ids)
    row.add(ids[:count], logprobs and logprobs[:count])
    return count is not None
