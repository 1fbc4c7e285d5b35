r"""`regex`: the response matches all, any or none of given patterns.

How. Patterns are RE2's (module `re2`): matching is linear in the text whatever the pattern, which
is why look-ahead, look-behind and back-references do not exist there. `all_of` must each be found,
of `any_of` at least one, of `none_of` none. `scoring=all` rewards all or nothing; `fraction` the
share of conditions that hold (each of all_of and none_of is one, any_of together is one). Patterns
are searched for in the text, or must match it whole with `whole=true`.

Patterns come with the parameters, or with the reference as data: an object with the keys all_of,
any_of and none_of, each a list of patterns; both add up. At most 64 patterns of 2,000 characters. A
pattern that RE2 does not take is a fault that names the place.

What a policy could game. Patterns see form, not meaning: `all_of=["because"]` is met by writing
because. `none_of` alone is met by an empty response, so a blank one is `incorrect` here unless a
pattern of all_of or any_of matches it.

Limits. Memory per compiled pattern is 1 MiB; a pattern that needs more is a fault. Responses over
1,048,576 characters are incorrect.

Differences from graders that use Python's `re`:
1. Syntax is RE2's: \d, \w and \b are ASCII, \p{...} are Unicode's classes; `$` is the end of the
text, not also before a last line end, unless `multi_line`.

Sources: RE2's syntax and guarantees, Cox, Regular Expression Matching in the Wild, 2010.

Measured: no error of its own: RE2 decides. 20 cases, and the law that a pattern and its negation
exclude each other on any text (`tests/unit/test_verifier_text_structured.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import verifier
from assay.reward_server.verifiers.text.parts import final_text

_KINDS: Final = ("all_of", "any_of", "none_of")
_MOST_PATTERNS = 64
_MOST_CHARS = 2_000
_MEMORY_BYTES = 1 << 20
_MOST_TEXT = 1 << 20
_GLANCE_STEPS = 400_000  # text times program size; below it the slowest matcher takes milliseconds


@dataclass(frozen=True, slots=True)
class Flags:
    """How patterns are read.

    Attributes:
        case_sensitive: upper and lower case differ.
        dot_all: a dot matches line ends.
        multi_line: ^ and $ match at lines.
    """

    case_sensitive: bool = True
    dot_all: bool = False
    multi_line: bool = False


class PatternError(ValueError):
    """RE2 does not take a pattern; the message says what is wrong and where."""


@lru_cache(maxsize=512)
def compiled(pattern: str, flags: Flags = Flags()) -> Any:
    """The pattern, compiled; an object with `search`, `fullmatch` and `programsize`.

    Raises:
        PatternError: RE2 does not take it, or it needs more than 1 MiB.
    """
    import re2  # noqa: PLC0415 - 11 ms to load

    if len(pattern) > _MOST_CHARS:
        raise PatternError(f"has {len(pattern):,} characters; at most {_MOST_CHARS:,} are taken")
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    options.case_sensitive = flags.case_sensitive
    prefix = ("s" if flags.dot_all else "") + ("m" if flags.multi_line else "")
    source = f"(?{prefix}:{pattern})" if prefix else pattern
    try:
        re2.compile(pattern, options)
        return re2.compile(source, options)
    except re2.error as error:
        raise PatternError(_trouble(pattern, error)) from None
    except UnicodeEncodeError as error:
        raise PatternError(f"at character {error.start}: not Unicode text") from None


def _trouble(pattern: str, error: Exception) -> str:
    raw = error.args[0] if error.args else ""
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    what, _, fragment = text.partition(": ")
    at = pattern.find(fragment) if fragment else -1
    where = f"at character {at}: " if at >= 0 else ""
    return f"{where}{what}{f' ({fragment[:40]!r})' if fragment else ''}"


def _glance(
    item: VerifierItem,
    *,
    part: str,
    whole: bool,
    case_sensitive: bool,
    dot_all: bool,
    multi_line: bool,
    scoring: str,
    **patterns: tuple[str, ...],
) -> Judgement | None:
    conditions = _conditions(item, patterns, Flags(case_sensitive, dot_all, multi_line))
    if len(item.response()) > _GLANCE_STEPS:
        return None
    size = sum(one.programsize for kind in _KINDS for one in conditions[kind])
    if size * (len(item.response()) + 1) > _GLANCE_STEPS:
        return None
    return _judged(item, conditions, part, scoring, whole=whole)


@verifier(
    "regex", verdicts=("correct", "partial", "incorrect"), needs_reference=False, glance=_glance
)
def regex(
    item: VerifierItem,
    *,
    all_of: Annotated[tuple[str, ...], "Patterns that must each be found."] = (),
    any_of: Annotated[tuple[str, ...], "Patterns of which one must be found."] = (),
    none_of: Annotated[tuple[str, ...], "Patterns that must not be found."] = (),
    part: Annotated[
        Literal["whole", "final"], "whole: the response; final: what follows the last </think>."
    ] = "whole",
    whole: Annotated[bool, "Whether a pattern must match the text whole."] = False,
    case_sensitive: Annotated[bool, "Whether upper and lower case differ."] = True,
    dot_all: Annotated[bool, "Whether a dot matches line ends."] = False,
    multi_line: Annotated[bool, "Whether ^ and $ match at lines."] = False,
    scoring: Annotated[
        Literal["all", "fraction"],
        "all: 1 if every condition holds, else 0; fraction: the share that holds.",
    ] = "all",
) -> Judgement:
    """The response matches all, any or none of given RE2 patterns.

    Raises:
        Unjudgeable: INVALID_PARAMETER or UNUSABLE_REFERENCE for a pattern that RE2 does not
            take, or when there is none.
    """
    patterns = {"all_of": all_of, "any_of": any_of, "none_of": none_of}
    conditions = _conditions(item, patterns, Flags(case_sensitive, dot_all, multi_line))
    return _judged(item, conditions, part, scoring, whole=whole)


_Conditions = dict[str, list[Any]]


def _judged(
    item: VerifierItem, conditions: _Conditions, part: str, scoring: str, *, whole: bool
) -> Judgement:
    response = item.response()
    text = response if part == "whole" else final_text(response)
    if text is None or len(text) > _MOST_TEXT:
        why = "the thought is not closed" if text is None else "the response is too long"
        return Judgement.composed("incorrect", (Component("conditions", 0.0),), explanation=why)
    text = text.encode(errors="replace").decode()
    how = "fullmatch" if whole else "search"
    found = {
        kind: [getattr(one, how)(text) is not None for one in conditions[kind]] for kind in _KINDS
    }
    holds = [*found["all_of"], *(not one for one in found["none_of"])]
    if conditions["any_of"]:
        holds.append(any(found["any_of"]))
    if not text.strip() and not any(found["all_of"]) and not any(found["any_of"]):
        holds = [False] * len(holds)
    share = sum(holds) / len(holds)
    score = share if scoring == "fraction" else float(all(holds))
    verdict = "correct" if score == 1.0 else "partial" if score else "incorrect"
    return Judgement.composed(
        verdict,
        (Component("conditions", score),),
        explanation=f"{sum(holds)} of {len(holds)} conditions hold",
    )


def _conditions(
    item: VerifierItem, told: Mapping[str, tuple[str, ...]], flags: Flags
) -> _Conditions:
    """The compiled patterns of each kind, of the parameters and of the reference."""
    conditions: _Conditions = {kind: [] for kind in _KINDS}
    for kind in _KINDS:
        conditions[kind] += _all_compiled(
            told[kind], flags, f"parameter {kind!r}", INVALID_PARAMETER
        )
    if item.data is not None or item.references:
        for kind, patterns in _of_document(item.document()).items():
            own = _all_compiled(patterns, flags, f"reference {kind!r}", UNUSABLE_REFERENCE)
            conditions[kind] += own
    count = sum(map(len, conditions.values()))
    if not 0 < count <= _MOST_PATTERNS:
        raise Unjudgeable(
            INVALID_PARAMETER,
            f"there are {count} patterns in all_of, any_of and none_of; 1 to {_MOST_PATTERNS} are "
            "taken",
        )
    return conditions


def _all_compiled(patterns: tuple[str, ...], flags: Flags, name: str, reason: str) -> list[Any]:
    ready = []
    for index, pattern in enumerate(patterns[: _MOST_PATTERNS + 1]):
        try:
            ready.append(compiled(pattern, flags))
        except PatternError as error:
            raise Unjudgeable(
                reason, f"{name}, pattern {index} ({pattern[:60]!r}): {error}"
            ) from None
    return ready


def _of_document(value: JsonValue) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict) or not value.keys() <= set(_KINDS):
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            "the reference must be an object with the keys all_of, any_of and none_of",
        )
    patterns: dict[str, tuple[str, ...]] = {}
    for kind, some in value.items():
        if not isinstance(some, list) or not all(isinstance(one, str) for one in some):
            raise Unjudgeable(UNUSABLE_REFERENCE, f"{kind} must be a list of patterns")
        patterns[kind] = tuple(str(one) for one in some)
    return patterns
