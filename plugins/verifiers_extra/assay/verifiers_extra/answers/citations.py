"""`citations`: whether a response cites as it was asked to: passages that exist, the right ones.

**What it judges.** Citations, never what the response says. The reference is data: `{"passages":
{"1": "text", ...}}` or a list of texts (ids "1", "2", ...), with `gold`, the ids of those that
answer the question; or a row of NeMo Gym's `citation_if` as it is. `grammar` says how a citation is
written; ids of numbers may be listed, "[1, 2]".

Gates come first; one that fails is `badly-cited` and 0: there is an answer beside the citations, no
id or open tag stands outside of one, `min_valid_citations` (1) passages are cited, and all that are
cited exist. Then each of `parts` has a score, and the reward is their mean, 1 without any:

| part | score |
|---|---|
| gold | every passage of `gold` is cited, and at most `expected_slack` (1) others: 1 or 0 |
| gold-f1 | F1 of the cited passages against `gold` |
| sentences | the share of sentences with a citation, inside or right behind |
| quotes | the share of quotations, of three words or more, that a cited passage holds verbatim |

Precision and recall against `gold` are components. In the mode `no_cite` a response is right that
cites nothing.

**What a policy could game.** Whether a passage supports a sentence is not seen. Without `gold` any
citation passes; `sentences` is won by citing one passage everywhere (add `gold-f1`); a response
without quotations has all of them right.

**Faults.** UNUSABLE_REFERENCE for other data, and for a part that it cannot score.

**Differences from NeMo Gym's citation_if.** An empty `expected_ids` is a fault. Stray ids are known
by the word that all ids begin with, which there is "citation_". A tool call is not seen.

**Known limits.** English sentences (`ifeval`). "[1" goes unseen where ids are numbers. ALCE's
recall and precision by entailment (arXiv 2305.14627) are not measured.

**Measured.** Equal to citation_if's rewards on 2,000 generated and mutated responses in each of its
11 grammars, in both modes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from assay.reward_server import (
    INVALID_PARAMETER,
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    OneOf,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.answers.marks import GRAMMARS, Citation, Grammar, without
from assay.verifiers_extra.instructions.sentences import sentences

PARTS = ("gold", "gold-f1", "sentences", "quotes")
MAX_PASSAGES = 10_000
_GLANCE_CHARS = 16_384
_QUOTE = re.compile('"([^"\n]{1,2000})"|“([^”\n]{1,2000})”')
_EDGES = ".,;:!?\"'()[]“”\u2018\u2019"
_LEAST_QUOTED_WORDS = 3
_MARK = "\ud800"  # no text that comes over the wire holds a lone surrogate


@dataclass(frozen=True, slots=True)
class Passages:
    """What may be cited.

    Attributes:
        ids: of all passages.
        texts: their texts by id, where they are given.
        gold: those that answer the question; None where nobody says.
        slack: how many others may be cited.
        least: how many different ones must be cited.
        grammar: how they are cited; empty for the parameter's.
        pattern: what ids look like; empty for what these do.
        is_cited: whether citations are asked for.
    """

    ids: tuple[str, ...]
    texts: dict[str, str] = field(default_factory=dict)
    gold: frozenset[str] | None = None
    slack: int = 1
    least: int = 1
    grammar: str = ""
    pattern: str = ""
    is_cited: bool = True


@verifier(
    "citations",
    tasks=("citations", "citation-if"),
    verdicts=("well-cited", "partly-cited", "badly-cited"),
    glance=_GLANCE_CHARS,
)
def citations(
    item: VerifierItem,
    *,
    grammar: Annotated[
        str, OneOf(GRAMMARS), "How a citation is written; the grammar of a row is preferred."
    ] = "ascii_brackets",
    parts: Annotated[
        tuple[str, ...],
        "What counts beside the gates: gold, gold-f1, sentences, quotes; nothing for gold where "
        "there is one.",
    ] = (),
) -> Judgement:
    """The response cites passages that exist, the right ones, and quotes them word for word.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, INVALID_PARAMETER for an unknown part.
    """
    passages = read(item.document())
    wanted = _wanted(parts, passages)
    text = item.response()
    how = Grammar(passages.grammar or grammar, passages.ids, passages.pattern)
    found = how.find(text)
    if not passages.is_cited:
        is_right = bool(text.strip()) and not how.is_tried(text)
        return _judgement(is_right, {}, "cites nothing" if is_right else "cites, or is blank")
    cited = {one for citation in found for one in citation.ids}
    trouble = _trouble(text, found, cited, how, passages)
    if trouble:
        return _judgement(False, dict.fromkeys(wanted, 0.0), trouble)
    scores = {part: _score(part, text, found, cited, passages) for part in wanted}
    said = ", ".join(f"{part} {score:.3f}" for part, score in scores.items())
    seen = {}
    if passages.gold is not None:
        right = len(passages.gold & cited)
        seen = {"precision": right / max(1, len(cited)), "recall": right / len(passages.gold)}
    return _judgement(True, scores, said or "every citation names a passage", seen)


def _wanted(parts: tuple[str, ...], passages: Passages) -> tuple[str, ...]:
    for part in parts:
        if part not in PARTS:
            known = ", ".join(PARTS)
            raise Unjudgeable(INVALID_PARAMETER, f"'parts' holds {part[:40]!r}; there are {known}")
        if part.startswith("gold") and passages.gold is None:
            raise _unusable("must have 'gold' for the part of that name")
        if part == "quotes" and not passages.texts:
            raise _unusable("must have the texts of passages for the part 'quotes'")
    return parts or (("gold",) if passages.gold is not None else ())


def _judgement(
    is_good: bool, scores: dict[str, float], why: str, seen: dict[str, float] | None = None
) -> Judgement:
    reward = sum(scores.values()) / len(scores) if is_good and scores else float(is_good)
    components = [Component("citations", reward), Component("gates", float(is_good), 0.0)]
    shown = scores | (seen or {})
    components += [Component(part, score, 0.0) for part, score in shown.items()]
    verdict = "well-cited" if reward == 1.0 else "partly-cited" if is_good else "badly-cited"
    return Judgement.composed(verdict, tuple(components), explanation=why)


def _trouble(
    text: str, found: Sequence[Citation], cited: set[str], how: Grammar, passages: Passages
) -> str:
    """Which gate fails; empty for none."""
    if not re.search(r"\w", without(text, found)):
        return "there is no answer beside the citations"
    if how.is_botched(text, found):
        return "an id or a tag stands outside of a citation"
    known = cited & set(passages.ids)
    if len(known) < passages.least:
        return f"{len(known)} passages are cited; {passages.least} are asked for"
    unknown = sorted(cited - known)
    return f"there is no passage {unknown[0][:40]!r}" if unknown else ""


def _score(
    part: str, text: str, found: Sequence[Citation], cited: set[str], passages: Passages
) -> float:
    gold = passages.gold or frozenset()
    if part == "gold":
        return float(gold <= cited and len(cited) <= len(gold) + passages.slack)
    if part == "gold-f1":
        return 2 * len(gold & cited) / (len(gold) + len(cited))
    if part == "sentences":
        return _cited_share(without(text, found, mark=_MARK))
    quoted = [first or second for first, second in _QUOTE.findall(text)]
    kept = [words for quote in quoted if len(words := _words(quote)) >= _LEAST_QUOTED_WORDS]
    texts = [f" {' '.join(_words(passages.texts[one]))} " for one in sorted(cited)]
    held = [any(f" {' '.join(words)} " in one for one in texts) for words in kept]
    return sum(held) / len(held) if held else 1.0


def _words(text: str) -> list[str]:
    """The words of a quotation: as they stand, but for the marks at their ends."""
    words = (word.strip(_EDGES) for word in text.split())
    return [word for word in words if word]


def _cited_share(text: str) -> float:
    """The share of sentences with a mark in them, or right behind."""
    cited: list[bool] = []
    for sentence in sentences(text):
        rest = sentence.lstrip(_MARK + " ")
        if cited and sentence.startswith(_MARK):
            cited[-1] = True
        if re.search(r"\w", rest):
            cited.append(_MARK in rest)
    return sum(cited) / len(cited) if cited else 0.0


def read(document: JsonValue) -> Passages:
    """What may be cited, by a reference.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for another shape.
    """
    if not isinstance(document, dict):
        raise _unusable("must be an object with 'passages' or 'valid_id_set'")
    texts = _texts(document.get("passages"))
    ids = tuple(texts) or tuple(_ids(document, "valid_id_set") or ())
    if document.get("mode", "cite") not in ("cite", "no_cite"):
        raise _unusable("must have the mode 'cite' or 'no_cite'")
    is_cited = document.get("mode") != "no_cite"
    gold = _ids(document, "gold" if "gold" in document else "expected_ids")
    if not 0 < len(ids) <= MAX_PASSAGES and is_cited:
        raise _unusable(f"must have 1 to {MAX_PASSAGES} passages")
    if is_cited and gold is not None and not (gold and set(gold) <= set(ids)):
        raise _unusable("must name passages as 'gold', one at least")
    grammar, pattern = document.get("grammar", ""), document.get("id_regex", "")
    if not isinstance(grammar, str) or not isinstance(pattern, str):
        raise _unusable("must have texts as 'grammar' and 'id_regex'")
    return Passages(
        ids,
        texts,
        None if gold is None else frozenset(gold),
        _count(document, "expected_slack"),
        _count(document, "min_valid_citations"),
        grammar,
        pattern,
        is_cited,
    )


def _texts(value: JsonValue) -> dict[str, str]:
    if isinstance(value, list):
        value = {str(number): text for number, text in enumerate(value, start=1)}
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _unusable("must have an object of texts, or a list of them, as 'passages'")
    texts = {key: text for key, text in value.items() if isinstance(text, str)}
    if len(texts) < len(value):
        raise _unusable("must have passages that are texts")
    return texts


def _ids(document: dict[str, JsonValue], name: str) -> list[str] | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str | int) for one in value):
        raise _unusable(f"must have a list of ids as {name!r}")
    return [str(one) for one in value]


def _count(document: dict[str, JsonValue], name: str) -> int:
    value = document.get(name, 1)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _unusable(f"must have a whole number as {name!r}")
    return value


def _unusable(what: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of citations {what}")
