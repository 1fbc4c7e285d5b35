"""Dense rewards: from spans of characters, as verifiers give them, to the tokens they end on.

A judgement's spans (steps of a process reward model, lines of a program, turns) count code points;
the trainer needs one number per token. A span's reward goes to the token that completes its last
character, as in process supervision (arXiv 2402.03300, section 4.1.3: at the end token of each
step).

The tokenizer's decoder defines which token completes a character: text(t) is the first t tokens
decoded, and a character is complete after the first t whose text(t) agrees with the response up to
it. This covers characters of several tokens, replacement characters, leading spaces that a decoder
drops, spaces that it cleans away and special tokens.

Decoding every beginning takes quadratic time. Instead:

1. A window of tokens is decoded, after some tokens of context that agree with the response.
2. Tokens that form no whole character stay together for up to 128 tokens; in a longer run the count
   may differ from the definition's.
3. Where the windows do not give the response's text, every beginning is decoded after all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from assay.clients import Span
from assay.trainer.engines.types import Tokenizer

_CONTEXT = 16
_LONGEST = 128
_REPLACEMENT = "\ufffd"


def span_tokens(
    spans: Sequence[Span], text_length: int, ids: Sequence[int], tokenizer: Tokenizer
) -> list[int]:
    """The place of the token on which each span ends.

    An empty span lies on the token before it, at the very beginning on the first.

    Args:
        spans: of one judgement.
        text_length: code points of the response's text.
        ids: T tokens of the response, at least one.
        tokenizer: that decoded the text, without special tokens.

    Raises:
        ValueError: a span lies outside the text or on another turn than the first, or the tokens
            decode to a text of another length.
    """
    if not spans:
        return []
    for span in spans:
        _check(span, text_length)
    ends_T = token_ends(ids, tokenizer)
    if not ends_T or ends_T[-1] != text_length:
        decoded = ends_T[-1] if ends_T else 0
        raise ValueError(
            f"spans of a text of {text_length} characters cannot be placed on tokens that decode "
            f"to {decoded}"
        )
    return [bisect_left(ends_T, span.end) for span in spans]


def _check(span: Span, text_length: int) -> None:
    where = f"the span {span.label or 'without a label'!r} at {span.start}:{span.end}"
    if span.turn_index != 0:
        raise ValueError(f"{where} falls on turn {span.turn_index} of a response of one turn")
    if not 0 <= span.start <= span.end <= text_length:
        raise ValueError(f"{where} does not lie within a text of {text_length} characters")


def token_ends(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """For each of T tokens, the code points complete after it; the last is the text's length."""
    text = _decode(ids, tokenizer)
    special = _special_ids(tokenizer)
    places = [place for place, id_ in enumerate(ids) if id_ not in special]
    written = [ids[place] for place in places]
    if len(places) < len(ids) and _decode(written, tokenizer) != text:
        places, written = list(range(len(ids))), list(ids)
    ends = _ends_by_windows(written, text, tokenizer)
    if ends and ends[-1] != len(text):
        ends = ends_by_beginnings(written, tokenizer)
    ends_T = [0] * len(ids)
    for place, end in zip(places, ends, strict=True):
        ends_T[place] = end
    for place in range(1, len(ids)):
        ends_T[place] = max(ends_T[place], ends_T[place - 1])
    return ends_T


def ends_by_beginnings(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """`token_ends` by its definition, in quadratic time."""
    text = _decode(ids, tokenizer)
    ends: list[int] = []
    for count in range(1, len(ids) + 1):
        agreed = _agreement(_decode(ids[:count], tokenizer), text)
        ends.append(max(agreed, ends[-1] if ends else 0))
    return ends


def _ends_by_windows(ids: Sequence[int], text: str, tokenizer: Tokenizer) -> list[int]:
    """`token_ends` from windows of tokens; may decrease.

    The tokens from `start` to `settled` decode to `context`; the rest of the window is compared
    with the text from `base`. `settled` advances where all agrees and ends on whole characters.
    """
    ends: list[int] = []
    start = settled = base = 0
    context = ""
    for place in range(len(ids)):
        window = _decode(ids[start : place + 1], tokenizer)
        news = window[len(context) :] if window.startswith(context) else ""
        agreed = _agreement(news, text[base : base + len(news)])
        ends.append(base + agreed)
        length = place + 1 - settled
        enough = _LONGEST if news.endswith(_REPLACEMENT) else _CONTEXT
        if agreed == len(news) > 0 and length >= enough:
            start, settled, base = settled, place + 1, base + len(news)
            context = _decode(ids[start:settled], tokenizer)
    return ends


def _agreement(one: str, other: str) -> int:
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return place
    return min(len(one), len(other))


def _decode(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    text: str = tokenizer.decode(list(ids), skip_special_tokens=True)
    return text


def _special_ids(tokenizer: Tokenizer) -> frozenset[int]:
    added = tokenizer.added_tokens_decoder.items()
    return frozenset(id_ for id_, token in added if token.special)
