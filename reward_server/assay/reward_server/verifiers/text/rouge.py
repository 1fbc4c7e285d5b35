"""`rouge`: overlap of n-grams or longest common subsequences with a reference (ROUGE).

How. Through the package rouge-score: its tokens (lower case, letters a-z and digits), its Porter
stemmer (`stemmer`), its n-gram counts for rouge1 and rouge2, and its union of common subsequences
over lines for rougeLsum. The reference with the greatest F-measure counts, as `score_multi` has it;
of it, F-measure, precision or recall is rewarded. For rougeL the length of the common subsequence
is computed bit by bit here: it is the same number, and a table of 8,000 times 2,000 tokens takes 20
ms instead of seconds.

What a policy could game. Recall pays for copying the source whole; F-measure for its lead
sentences; neither sees order (rouge1), negation or truth. As a sole reward it yields extracts: put
a length reward beside it. Half of the range needs no right answer.

Limits. Other scripts than Latin have no tokens as published: a reference without tokens is a fault;
`tokens=unicode` takes words of any script, and each character of scripts without spaces, instead.
rougeLsum takes at most 4,000,000 pairs of tokens; a response beyond is `overlong`.

Differences from the package:
1. rougeL's length as above; `tokens=unicode` is ours.
2. rougeLsum parts sentences at line ends only, which is the package's default; its option to split
   sentences needs a model that has to be downloaded.

Sources: Lin, ROUGE: a package for automatic evaluation of summaries, ACL workshop 2004; rouge-score
0.1.2, which replicates ROUGE-1.5.5.

Measured: equal to rouge-score called directly, to 1e-12 in precision, recall and F, on 40 random
pairs for each kind with and without stemming, besides nine published values
(`tests/unit/test_verifier_text_overlap.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import verifier
from assay.reward_server.verifiers.text import overlap
from assay.reward_server.verifiers.text.distances import lcs_length

_MOST_PAIRS = 4_000_000
_WORDS = "testing one two"
_COMPONENTS: Final = {
    "rouge1": "rouge-1",
    "rouge2": "rouge-2",
    "rougeL": "rouge-l",
    "rougeLsum": "rouge-l-sum",
}
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


@dataclass(frozen=True, slots=True)
class _Shares:
    """Precision, recall and F-measure, in [0, 1]."""

    precision: float
    recall: float
    fmeasure: float


class UnicodeTokenizer:
    """Words of any script in lower case; a character of a script without spaces is a word."""

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text."""
        return _WORD.findall(text.lower())


@lru_cache(maxsize=16)
def _scorer(rouge_type: str, *, stemmer: bool, tokens: str) -> tuple[Any, Any]:
    from rouge_score import rouge_scorer, tokenizers  # noqa: PLC0415 - 1.1 s to load

    published: Any = tokenizers.DefaultTokenizer(stemmer)
    tokenizer = UnicodeTokenizer() if tokens == "unicode" else published
    return rouge_scorer.RougeScorer([rouge_type], tokenizer=tokenizer), tokenizer


@verifier(
    "rouge",
    tasks=("summarisation",),
    verdicts=overlap.VERDICTS,
    lazy=True,
    prepare=lambda: _scorer("rougeL", stemmer=False, tokens="ascii"),
    examples=[
        {"response": _WORDS, "reference": _WORDS, "verdict": "correct"},
        {"response": "testing two", "reference": _WORDS, "verdict": "partial"},
        {"response": "nothing", "reference": _WORDS, "verdict": "incorrect"},
        overlap.OVERLONG,
    ],
)
def rouge(
    item: VerifierItem,
    *,
    part: overlap.Part = "final",
    rouge_type: Annotated[
        Literal["rouge1", "rouge2", "rougeL", "rougeLsum"],
        "rouge1 and rouge2 compare n-grams; rougeL the longest common subsequence of the whole "
        "texts; rougeLsum of their lines.",
    ] = "rougeL",
    measure: Annotated[
        Literal["fmeasure", "precision", "recall"],
        "Which number of the best reference is rewarded.",
    ] = "fmeasure",
    stemmer: Annotated[bool, "Whether words are stemmed (Porter, English)."] = False,
    tokens: Annotated[
        Literal["ascii", "unicode"],
        "ascii: a-z and 0-9, as published; unicode: words of any script, single characters of "
        "those without spaces; not stemmed.",
    ] = "ascii",
) -> Judgement:
    """Overlap of n-grams or longest common subsequences with a reference (ROUGE).

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or over-long reference, or one without
            tokens.
    """
    response, references = overlap.texts(item, part)
    component = _COMPONENTS[rouge_type]
    if len(response) > overlap.MAX_CHARS:
        return overlap.overlong(component)
    scorer, tokenizer = _scorer(rouge_type, stemmer=stemmer, tokens=tokens)
    answer = tokenizer.tokenize(response)
    shares = []
    for reference in references:
        right = _tokens(tokenizer, reference)
        if rouge_type == "rougeLsum" and len(answer) * len(right) > _MOST_PAIRS:
            return overlap.overlong(component, f"too long: {len(answer):,} tokens")
        if rouge_type == "rougeL":
            shares.append(_common(answer, right))
        else:
            shares.append(_of(scorer.score(reference, response)[rouge_type]))
    best = max(shares, key=lambda one: one.fmeasure)
    numbers = {name: getattr(best, name) for name in ("fmeasure", "precision", "recall")}
    score = numbers.pop(measure)
    return overlap.judged(component, score, numbers)


def _tokens(tokenizer: Any, reference: str) -> list[str]:
    tokens: list[str] = tokenizer.tokenize(reference)
    if not tokens:
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            f"the reference {reference[:60]!r} has no tokens a-z or 0-9; pass tokens=unicode",
        )
    return tokens


def _common(answer: list[str], right: list[str]) -> _Shares:
    length = lcs_length(answer, right)
    if not length:
        return _Shares(0.0, 0.0, 0.0)
    precision, recall = length / len(answer), length / len(right)
    return _Shares(precision, recall, 2 * precision * recall / (precision + recall))


def _of(score: Any) -> _Shares:
    return _Shares(float(score.precision), float(score.recall), float(score.fmeasure))
