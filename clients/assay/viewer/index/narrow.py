"""The narrow row of a rollout. Pure: whatever a file holds, it raises nothing but `Unusable`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from assay.viewer.index.schema import PREVIEW

_MOST_NAME = 200


class Unusable(ValueError):
    """The row is none of a rollout; the text says why."""


class KindFields(NamedTuple):
    """What few values tell of many items; the columns of `kinds` but for its number."""

    source: int
    phase: str
    verifier: str
    version: str
    verdict: str
    fault: str
    suspicions: str
    environment: str
    ending: str
    truncated: int
    labels: str
    appeal: str


class ItemFields(NamedTuple):
    """The columns of `items` but for number and kind; `problem` by name."""

    step: int
    time_s: float | None
    reward: float | None
    length: int | None
    draw: int | None
    sample: int | None
    problem: str | None
    turns: int
    calls: int
    trained: float | None
    advantage: float | None
    seconds: float | None
    item: bytes


class TextFields(NamedTuple):
    """The columns of `texts` but for number."""

    response: str
    answer: str | None
    prompt: str
    labels: str


def narrowed(
    row: Any, source: int, step: int, phase: str, time_s: float | None
) -> tuple[KindFields, ItemFields, TextFields]:
    """The narrow row of a rollout's row.

    Args:
        row: as the file has it.
        source: number of its run.
        step: of its file.
        phase: of its file.
        time_s: when the step was collected, for rollouts that do not say it.

    Raises:
        Unusable: it is no row, or has neither a judgement, a fault nor a response.
    """
    if not isinstance(row, Mapping):
        raise Unusable("no object")
    judgement, fault = mapping(row.get("judgement")), mapping(row.get("fault"))
    if not judgement and not fault and not isinstance(row.get("response"), str):
        raise Unusable("it has no response and no result")
    reward = real(judgement.get("reward")) if judgement and not fault else None
    said = judgement if reward is not None else {}
    reason = name(fault.get("reason")) if fault else ""
    if judgement and reward is None and not fault:
        reason = "UNREADABLE_REWARD"
    episode = mapping(row.get("episode"))
    trained, advantage = _learnt(row)
    kind = KindFields(
        source,
        phase,
        name(judgement.get("verifier")),
        name(judgement.get("version")),
        name(said.get("verdict")),
        reason or ("FAULT" if fault else ""),
        suspicions_of(said.get("suspicions")),
        name(row.get("environment")),
        name(row.get("ending")),
        int(row.get("truncated") is True),
        "{}",
        appeal_of(said.get("appeal")),
    )
    response, prompt = text(row.get("response")), _question(row)
    turns, calls = _acted(row, episode)
    item = ItemFields(
        step,
        _time(episode, time_s),
        reward,
        whole(row.get("tokens")),
        whole(row.get("draw")),
        whole(row.get("sample")),
        name(row.get("problem")) or None,
        turns,
        calls,
        trained,
        advantage,
        real(row.get("judge_s")),
        digest((prompt, response, text(row.get("reference")))),
    )
    answer = said.get("extracted_answer")
    texts = TextFields(
        preview(response),
        preview(answer) if isinstance(answer, str) else None,
        preview(prompt),
        "{}",
    )
    return kind, item, texts


def mapping(value: Any) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """The text, or its JSON where it is something else; without half surrogate pairs."""
    if value is None:
        return ""
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            return ""
    found: str = value.encode("utf-8", "replace").decode()
    return found


def name(value: Any) -> str:
    """A short text."""
    return text(value)[:_MOST_NAME].replace("\0", "\ufffd")


def real(value: Any) -> float | None:
    """The number, if it is a finite one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(value: Any) -> int | None:
    """The whole number, if it is one that a double holds."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**53:
        return None
    return value


def preview(value: str) -> str:
    """The beginning of a text, in one line."""
    flat = " ".join(value[: 4 * PREVIEW].split())
    return flat[:PREVIEW].replace("\0", "\ufffd")


def digest(parts: Iterable[str]) -> bytes:
    """Eight bytes, equal for equal texts."""
    joined = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.blake2b(joined, digest_size=8).digest()


def suspicions_of(value: Any) -> str:
    """A list of suspicions as JSON, sorted, each once."""
    found = sorted({name(one) for one in listed(value)[:256] if isinstance(one, str) and one})
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def appeal_of(value: Any) -> str:
    """Whether a second verifier kept or changed the verdict; empty where none was asked."""
    first, second = (mapping(mapping(value).get(one)).get("verdict") for one in ("first", "second"))
    if not (isinstance(first, str) and isinstance(second, str)):
        return ""
    return "kept" if first == second else "changed"


def _question(row: Mapping[str, Any]) -> str:
    question = row.get("question")
    if isinstance(question, str) and question:
        return text(question)
    messages = [one for one in listed(row.get("prompt")) if isinstance(one, Mapping)]
    return text(messages[-1].get("content")) if messages else text(row.get("prompt"))


def _acted(row: Mapping[str, Any], episode: Mapping[str, Any]) -> tuple[int, int]:
    """Turns and calls."""
    steps = listed(episode.get("steps"))
    if steps:
        return len(steps), sum(len(listed(mapping(one).get("calls"))) for one in steps)
    return max(1, len(listed(row.get("turns")))), 0


def _time(episode: Mapping[str, Any], otherwise: float | None) -> float | None:
    began, took = real(episode.get("began")), real(episode.get("seconds"))
    return began + (took or 0.0) if began else otherwise


def stretches(value: Any, parts: int) -> list[tuple[Any, ...]]:
    """Those of [start, end, ...] that are sound, with so many parts at least."""
    found = []
    for one in listed(value):
        if isinstance(one, list) and len(one) >= parts:
            start, end = whole(one[0]), whole(one[1])
            if start is not None and end is not None and 0 <= start < end:
                found.append((start, end, *one[2:]))
    return found


def _learnt(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The share of the policy's own tokens in the loss, and their mean advantage."""
    if not isinstance(row.get("trained"), list):
        return None, None
    trained = stretches(row["trained"], 2)
    own = sum(end - start for start, end, *_ in stretches(row.get("own"), 2))
    tokens = sum(end - start for start, end, *_ in trained)
    total = 0.0
    for start, end, value, *_ in stretches(row.get("advantages"), 3):
        advantage = real(value)
        if advantage is not None:
            total += advantage * sum(
                max(0, min(end, last) - max(start, first)) for first, last, *_ in trained
            )
    share = min(1.0, tokens / own) if own else None
    return share, (real(total / tokens) if tokens else None)
