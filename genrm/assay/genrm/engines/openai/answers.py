"""Reads the server's JSON. Pure; a shape that is not as it should be is ENGINE_FAILED.

Servers list log-probabilities of the likeliest tokens only (`top_logprobs`, mostly 20). An option
that is not listed has a probability of at most b: that of the least likely listed token, and what
all listed tokens leave over. Where b could move no normalised probability by more than 1e-4, the
option is given b, an upper bound; otherwise there is no answer: ENGINE_FAILED.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from assay.genrm.engines.base import EngineError, TokenCounts, Written
from assay.kit.reasons import Reason

NEGLIGIBLE = 1e-4
# Servers write -inf as a large negative number, JSON has none.
_FLOOR = -9000.0
# Rounding may lift a probability over 1.
_ROUNDING = 1e-3
# A sum of float32 probabilities is known so well.
_SUM_ERROR = 1e-6

Json = dict[str, Any]


def malformed(what: str) -> EngineError:
    """ENGINE_FAILED."""
    return EngineError(Reason.ENGINE_FAILED, f"the server's answer has {what}")


def not_finite(what: str) -> EngineError:
    """SCORE_NOT_FINITE."""
    return EngineError(
        Reason.SCORE_NOT_FINITE,
        f"the server's {what} is not finite: look at the model's weights and precision",
    )


def choice(answer: Json) -> Json:
    """The first choice."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise malformed("no choices")
    return choices[0]


def counts(answer: Json) -> TokenCounts:
    """The counts of `usage`; zeros where the server does not count."""
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    prompt = _count(usage.get("prompt_tokens"))
    return TokenCounts(prompt, min(prompt, _count(cached)), _count(usage.get("completion_tokens")))


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def top_of_chat(answer: Json) -> dict[str, float]:
    """Token text to log-probability at the first position of a chat completion.

    Raises:
        EngineError: no log-probabilities, or NaN.
    """
    logprobs = choice(answer).get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    top = first.get("top_logprobs") if isinstance(first, dict) else None
    if not isinstance(top, list) or not top:
        raise malformed("no log-probabilities: the server does not give them; use votes")
    found: dict[str, float] = {}
    for entry in top:
        if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
            raise malformed("a log-probability without its token")
        _add(found, entry["token"], entry.get("logprob"))
    return found


def top_of_completion(answer: Json) -> dict[str, float]:
    """As `top_of_chat`, of a text completion."""
    logprobs = choice(answer).get("logprobs")
    top = logprobs.get("top_logprobs") if isinstance(logprobs, dict) else None
    if not isinstance(top, list) or not top or not isinstance(top[0], dict) or not top[0]:
        raise malformed("no log-probabilities: the server does not give them; use votes")
    found: dict[str, float] = {}
    for token, value in top[0].items():
        _add(found, token, value)
    return found


def _add(found: dict[str, float], token: str, value: object) -> None:
    """Of two tokens with one text (bytes that are no text by themselves) the likelier counts."""
    logprob = _logprob(value)
    found[token] = max(found.get(token, -math.inf), logprob)


def _logprob(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise malformed("a log-probability that is no number")
    if math.isnan(value):
        raise not_finite("log-probability")
    if value > _ROUNDING:
        raise malformed(f"a log-probability above 0 ({value:g})")
    return -math.inf if value <= _FLOOR else min(0.0, float(value))


def tokens_of(top: Mapping[str, float]) -> dict[int, float]:
    """Log-probabilities by token number, of tokens written as "token_id:17"."""
    found = {}
    for text, value in top.items():
        kind, _, number = text.partition(":")
        if kind != "token_id" or not number.isdecimal():
            raise malformed("tokens as text where token ids were asked for")
        found[int(number)] = value
    return found


def by_text(top: Mapping[str, float], options: Sequence[str], *, anyhow: bool) -> dict[str, float]:
    """The log-probability of each option that is among the listed tokens.

    With `anyhow` the answer begins here: white space around a token does not matter, and tokens of
    the same option are summed.

    Raises:
        EngineError: an option is more than one token, of which one is listed.
    """
    found: dict[str, list[float]] = {}
    for token, value in top.items():
        said = token.strip() if anyhow else token
        for option in options:
            if said == (option.strip() if anyhow else option):
                found.setdefault(option, []).append(value)
    known = {option: _sum(values) for option, values in found.items()}
    for option in options:
        wanted = option.strip() if anyhow else option
        begun = [token for token in top if _begins(token.strip() if anyhow else token, wanted)]
        if option not in known and any(math.exp(top[token]) > NEGLIGIBLE for token in begun):
            raise EngineError(
                Reason.ENGINE_FAILED,
                f"the option {option!r} is more than one token to this server's model, and the "
                "server takes no token ids: use votes, or options of one token",
            )
    return known


def _begins(said: str, wanted: str) -> bool:
    return bool(said) and said != wanted and wanted.startswith(said)


def _sum(values: Sequence[float]) -> float:
    top = max(values)
    if top == -math.inf:
        return top
    return min(0.0, top + math.log(sum(math.exp(value - top) for value in values)))


def complete(
    found: Mapping[Any, float], wanted: Sequence[Any], listed: Sequence[float]
) -> dict[Any, float]:
    """All `wanted` options: those not in `found` get an upper bound, where it is negligible.

    `listed` are the log-probabilities of all listed tokens.

    Raises:
        EngineError: a missing one could matter.
    """
    missing = [one for one in wanted if one not in found]
    if not missing:
        return dict(found)
    mass = sum(math.exp(value) for value in found.values())
    left = max(0.0, 1.0 - sum(math.exp(value) for value in listed)) + _SUM_ERROR
    bound = min(left, math.exp(min(listed)))
    if not mass or len(missing) * bound > NEGLIGIBLE * mass:
        raise EngineError(
            Reason.ENGINE_FAILED,
            f"{missing[0]!r} is not among the {len(listed)} likeliest tokens that the server "
            f"lists, and may be as likely as {bound:.2g}: use votes, or a server that lists more",
        )
    small = math.log(bound) if bound > 0 else -math.inf
    return {**found, **dict.fromkeys(missing, small)}


def written(answer: Json, stop: Sequence[str], *, chat: bool, cut: bool) -> Written:
    """The text and why it ended; reasoning that the server split off is put back in `<think>`."""
    first = choice(answer)
    message = first.get("message") if chat else first
    text = message.get("content" if chat else "text") if isinstance(message, dict) else None
    thought = _reasoning(message)
    if text is None and thought:
        text = ""
    if not isinstance(text, str):
        raise malformed("no text")
    ended = first.get("finish_reason")
    if ended not in ("stop", "length", "eos", "eos_token", "max_tokens", None):
        raise EngineError(
            Reason.ENGINE_FAILED,
            f"the server ended the answer with {str(ended)[:40]!r} instead of writing it",
        )
    if thought:
        text = f"<think>{thought}</think>{text}"
    shortened = before(text, stop)
    ran_out = ended in ("length", "max_tokens") and shortened == text
    return Written(shortened, "length" if ran_out else "stop", counts(answer), cut)


def _reasoning(message: object) -> str:
    if not isinstance(message, dict):
        return ""
    found = message.get("reasoning_content") or message.get("reasoning")
    return found if isinstance(found, str) else ""


def before(text: str, stop: Sequence[str]) -> str:
    """The text before the first of the stop texts."""
    ends = [at for at in (text.find(word) for word in stop if word) if at >= 0]
    return text[: min(ends)] if ends else text


def row(value: object) -> tuple[float, ...]:
    """Logits of one position, finite."""
    if not isinstance(value, list) or not value:
        raise malformed("no logits")
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in value):
        raise malformed("logits that are no numbers")
    logits = tuple(float(one) for one in value)
    if not all(math.isfinite(one) for one in logits):
        raise not_finite("logit")
    return logits


def head_row(answer: Json) -> tuple[float, ...]:
    """Logits of a head: the `probs` of /classify, or the `score` of /score."""
    first = data(answer)
    return row([first["score"]] if "score" in first else first.get("probs"))


def data(answer: Json) -> Json:
    """The first entry of a pooling answer."""
    found = answer.get("data")
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise malformed("no data")
    return found[0]
