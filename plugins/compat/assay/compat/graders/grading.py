"""The parts of OpenAI's graders that compute: templates, checks, similarities. Pure.

Differences from OpenAI's service, which names its metrics and does not publish them:

1. `bleu` and `rouge_N` are our verifiers of that name (sacrebleu's sentence BLEU, the F-measure of
   google's rouge-score), `gleu` and `meteor` are nltk's, METEOR without WordNet (exact matches and
   stems). All go from 0 to 1.
2. `fuzzy_match` is the indel similarity of characters, as rapidfuzz's `ratio`.
3. `cosine` needs a model of embeddings, and is refused.
4. The metrics computed here refuse texts of more than 8,000 characters; a sample that makes a text
   so long has similarity 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_TEMPLATE = re.compile(r"\{\{\s*([A-Za-z_][\w.\[\]]*)\s*\}\}")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d{1,6})\]")
_OF_SAMPLE = re.compile(r"sample\.output_json[.\[]")
MAX_CHARS = 8_000
OPERATIONS = ("eq", "ne", "like", "ilike")


class VariableError(ValueError):
    """A template names what is not there."""


class SampleError(VariableError):
    """A template names what this sample's JSON does not hold; another's might."""


class TooLongError(ValueError):
    """A filled template is longer than there is room for."""


def namespace(model_sample: str, item: object) -> dict[str, Any]:
    """What templates may name: `sample.output_text`, `sample.output_json` and `item`."""
    sample: dict[str, Any] = {"output_text": model_sample}
    try:
        sample["output_json"] = json.loads(model_sample)
    except (ValueError, RecursionError):
        sample["output_json"] = None
    return {"sample": sample, "item": {} if item is None else item}


def render(template: str, values: Mapping[str, Any], room: int) -> str:
    """A template with its {{ names }} filled in; what is no text is written as JSON.

    Half a surrogate pair, which a sample may write as a JSON escape, becomes U+FFFD. `room` is the
    most characters: a template of some kilobytes can name a long sample a thousand times.

    Raises:
        VariableError: a name is not there; SampleError where that is the sample's doing.
        TooLongError: there is no room.
    """
    parts: list[str] = []
    size = at = 0
    for match in _TEMPLATE.finditer(template):
        parts += [template[at : match.start()], _text(_find(match[1], values))]
        at = match.end()
        size += len(parts[-2]) + len(parts[-1])
        if size > room:
            break
    if size + len(template) - at > room:
        raise TooLongError(f"the grader's templates have more than {room} characters, filled in")
    return _HALF_PAIR.sub("\ufffd", "".join([*parts, template[at:]]))


def without_sample(template: str) -> str:
    """The template without its parts that name the sample."""
    return _TEMPLATE.sub(
        lambda found: "" if found[1].partition(".")[0] == "sample" else found[0], template
    )


def string_check(operation: str, text: str, reference: str) -> float:
    """1 where the check holds, else 0.

    eq, ne: the texts are equal, or not. like: the text holds the reference; ilike: without case.

    Raises:
        ValueError: an unknown operation.
    """
    if operation == "eq":
        return float(text == reference)
    if operation == "ne":
        return float(text != reference)
    if operation == "like":
        return float(reference in text)
    if operation == "ilike":
        return float(reference.casefold() in text.casefold())
    raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}")


def fuzzy_match(text: str, reference: str) -> float:
    """Indel similarity of two texts: 2 * LCS / (sum of lengths), 0 to 1; of two empty ones 1.

    Bit-parallel (Hyyro, Bit-parallel LCS-length computation revisited, 2004).
    """
    if not text or not reference:
        return float(text == reference)
    where: dict[str, int] = {}
    for place, character in enumerate(text):
        where[character] = where.get(character, 0) | 1 << place
    full = (1 << len(text)) - 1
    row = full
    for character in reference:
        hits = row & where.get(character, 0)
        row = ((row + hits) | (row - hits)) & full
    common = len(text) - row.bit_count()
    return 2 * common / (len(text) + len(reference))


def gleu(text: str, reference: str) -> float:
    """Sentence GLEU (Wu et al., arXiv 1609.08144, section 4) over words, by nltk."""
    from nltk.translate.gleu_score import sentence_gleu  # noqa: PLC0415 - nltk is slow to load

    return float(sentence_gleu([reference.split()], text.split())) if text.split() else 0.0


def meteor(text: str, reference: str) -> float:
    """METEOR (Banerjee and Lavie, 2005) over lower-case words, exact and stem matches, by nltk."""
    from nltk.translate.meteor_score import single_meteor_score  # noqa: PLC0415 - as above

    words = text.split(), reference.split()
    if not all(words):
        return 0.0
    return float(single_meteor_score(words[1], words[0], wordnet=_NoSynonyms()))


SIMILARITIES: dict[str, Callable[[str, str], float]] = {
    "fuzzy_match": fuzzy_match,
    "gleu": gleu,
    "meteor": meteor,
}
"""Metrics that are computed here."""

VERIFIERS: dict[str, dict[str, str]] = {
    "bleu": {},
    **{f"rouge_{n}": {"rouge_type": f"rouge{n}"} for n in "12345"},
    "rouge_l": {"rouge_type": "rougeL"},
}
"""Metrics that a verifier computes, named before the "_", with its parameters."""


class _NoSynonyms:
    """Stands for WordNet where there is none."""

    def synsets(self, word: str) -> list[Any]:
        del word
        return []


def _find(path: str, values: Mapping[str, Any]) -> Any:
    found: Any = values
    for name, index in _STEP.findall(path):
        if name and isinstance(found, Mapping) and name in found:
            found = found[name]
        elif index and isinstance(found, list) and int(index) < len(found):
            found = found[int(index)]
        else:
            kind = SampleError if _OF_SAMPLE.match(path) else VariableError
            raise kind(f"there is no {path[:80]}")
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
