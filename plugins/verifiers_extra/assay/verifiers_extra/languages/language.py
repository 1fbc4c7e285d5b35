r"""`language`: whether a response is in the language that was asked for.

**What it judges.** The share of words that are in the language of the parameter `language`, or of
the prompt when that is empty: the language consistency reward of DeepSeek-R1 (arXiv 2501.12948,
section 2.3.2, the proportion of target language words in the chain of thought). `scoring` = binary
gives 1 where the share reaches `threshold` and else 0. `part` chooses all of the response, the
`thought` before the last `</think>` or the `answer` after it.

A word is a run of letters, or one character of a script that is written without spaces (Chinese,
Japanese, Thai). What is no prose does not count: code, formulas in dollars, LaTeX commands, tags,
addresses, single Latin letters. A response without words gets 1, with the verdict no-words.

1. Languages with a script of their own are recognised by it: bn, el, gu, he, hy, ja, ka, kn, ko,
   ml, pa, ta, te, th, zh. Chinese characters count for Japanese where at least a tenth of the
   Japanese characters are kana.
2. Languages that share a script (Latin, Cyrillic, Arabic, Devanagari) are recognised by langdetect,
   with its seed fixed, in passages of whole lines of at least 20 words, 24 passages at most: the
   words of a passage count if the passage is in the language. A passage of fewer than 20 letters
   counts by its script alone.

**What could be gamed.** Short answers and formulas pass in every language of the script. The
reward says nothing of content, and slightly lowers accuracy in its paper; use a small weight.
Names and technical terms in Latin letters count against languages of other scripts, so that 1.0 is
rarely reached there: prefer share to binary, or a threshold of 0.8.

**Limits.** zh does not tell simplified from traditional. Close relatives (no and da, hr and sl, id
and ms) are sometimes mistaken. A prompt of fewer than 20 letters has no language: the item is the
fault UNSUPPORTED_INPUT; pass `language`.

**Cost.** Scripts: linear, up to 16,384 characters judged in the server itself. langdetect: some
milliseconds per passage, in a worker.

Measured: the language of 2,319 problems is named: 600 Chinese (cmath) and 1,319 English ones
(GSM8K) all `consistent`, of OlymMATH's 400 one Chinese one is `mixed`. Languages of one script,
told apart by langdetect: three worked cases only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal

from assay.reward_server import (
    UNSUPPORTED_INPUT,
    Component,
    Judgement,
    OneOf,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.languages import detection
from assay.verifiers_extra.languages.scripts import (
    LANGUAGES,
    OWN_SCRIPTS,
    SHARED_SCRIPTS,
    prose,
    scripts,
)

_GLANCE_CHARS = 16_384
_LEAST_LETTERS = 20
_STRETCH_WORDS = 20
_MAX_STRETCHES = 24
_STRETCH_CHARS = 2_000
_LEAST_KANA = 0.1


def _glance(item: VerifierItem, *, language: str, **_: object) -> Judgement | None:
    if language not in OWN_SCRIPTS or len(item.response()) > _GLANCE_CHARS:
        return None
    return in_language.judge(item)


@verifier(
    "language",
    verdicts=("consistent", "mixed", "other-language", "no-words"),
    needs_reference=False,
    lazy=True,
    prepare=detection.load,
    glance=_glance,
)
def in_language(
    item: VerifierItem,
    *,
    language: Annotated[
        str,
        OneOf(("", *LANGUAGES)),
        "The language as ISO 639-1 code; empty for that of the prompt.",
    ] = "",
    part: Annotated[
        Literal["all", "thought", "answer"],
        "What is looked at: all, the thought before the last </think>, or the answer after it.",
    ] = "all",
    scoring: Annotated[
        Literal["share", "binary"],
        "The share of words in the language, or 1 where it reaches the threshold and else 0.",
    ] = "share",
    threshold: Annotated[
        float, Range(0.0, 1.0), "The share from which a response is consistent."
    ] = 0.9,
) -> Judgement:
    """The share of words of the response that are in the language asked for.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT when the language is neither given nor clear from the
            prompt.
    """
    language = language or prompt_language(item)
    right, words = count_words(_part(item.response(), part), language)
    share = right / words if words else 1.0
    score = float(share >= threshold) if scoring == "binary" else share
    verdict = "no-words"
    if words:
        verdict = "mixed" if right else "other-language"
        verdict = "consistent" if share >= threshold else verdict
    return Judgement.composed(
        verdict,
        (Component("language", score), Component("share", share, 0.0)),
        explanation=f"{right} of {words} words are in {language!r}",
    )


def count_words(text: str, language: str) -> tuple[int, int]:
    """How many words of a text are in a language, and how many there are.

    Args:
        text: any text.
        language: one of LANGUAGES.
    """
    if language in SHARED_SCRIPTS:
        counted = [_in_passage(*passage, language) for passage in _passages(prose(text))]
        return sum(right for right, _ in counted), sum(words for _, words in counted)
    counts = Counter(scripts(prose(text)))
    wanted = OWN_SCRIPTS[language]
    if language == "ja" and counts["kana"] < _LEAST_KANA * (counts["kana"] + counts["han"]):
        wanted = frozenset({"kana"})
    return sum(counts[script] for script in wanted), sum(counts.values())


def prompt_language(item: VerifierItem) -> str:
    """The language that an item's prompt is in.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT when there is no prompt or no telling.
    """
    asked = [message.content for message in item.prompt if message.role == "user"]
    text = prose(asked[-1] if asked else "")
    found = Counter(scripts(text)).most_common(1)
    script = found[0][0] if found else ""
    for language, own in OWN_SCRIPTS.items():
        if script in own and language != "ja":
            is_japanese = (
                language == "zh" and count_words(text, "ja")[0] > count_words(text, "zh")[0]
            )
            return "ja" if is_japanese else language
    if script == "kana":
        return "ja"
    detected = detection.detect(text) if _letters(text) >= _LEAST_LETTERS else None
    if detected in SHARED_SCRIPTS:
        return detected
    raise Unjudgeable(
        UNSUPPORTED_INPUT,
        "the language of the prompt cannot be told: pass the parameter 'language'",
    )


def _part(response: str, part: str) -> str:
    """The part of a response that is looked at."""
    before, closed, after = response.rpartition("</think>")
    if part == "all":
        return f"{before}\n{after}"
    if part == "answer":
        return after
    return before if closed else ""


def _passages(text: str) -> Iterator[tuple[str, list[str]]]:
    """Whole lines in groups of enough words, each with the scripts of its words."""
    lines = [(line, found) for line in text.split("\n") if (found := scripts(line))]
    total = sum(len(found) for _, found in lines)
    least = max(_STRETCH_WORDS, -(-total // _MAX_STRETCHES))
    held: list[str] = []
    words: list[str] = []
    for line, found in lines:
        held.append(line)
        words += found
        if len(words) >= least:
            yield "\n".join(held), words
            held, words = [], []
    if held:
        yield "\n".join(held), words


def _in_passage(text: str, words: list[str], language: str) -> tuple[int, int]:
    """How many words of a group are in a language, and how many it has."""
    right = words.count(SHARED_SCRIPTS[language])
    if not right or _letters(text) < _LEAST_LETTERS:
        return right, len(words)
    is_right = detection.detect(text[:_STRETCH_CHARS]) == language
    return right if is_right else 0, len(words)


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text[:_STRETCH_CHARS]))
