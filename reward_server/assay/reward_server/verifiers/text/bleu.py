"""`bleu`: sentence BLEU of the response against the references, 0 to 1.

How. Through the package sacrebleu: its tokenizers, smoothing and brevity penalty, all references at
once (clipped counts against the union, the closest reference length), its 0 to 100 divided by 100.
`effective_order` is on, as sacrebleu has it for sentences: orders that the response is too short
for do not count, so that equal texts score 1 however short they are.

What a policy could game. BLEU sees no meaning: one wrong number among 30 words costs little, and
with `exp` smoothing one common word already earns something. Short responses are held down by the
brevity penalty only. Half of the range needs no right answer.

Limits. `tokenize=zh` or `char` for Chinese; tokenizers that need further packages or downloads
(MeCab, SentencePiece) are not offered.

Differences from the package: none but the scale and the bound of 100,000 characters.

Sources: Papineni et al., BLEU, ACL 2002; Post, A call for clarity in reporting BLEU scores, WMT
2018, arXiv 1804.08771; smoothing: Chen and Cherry, WMT 2014; sacrebleu 2.6.0.

Measured: equal to sacrebleu called directly, to 1e-12, on 21 pairs for each of 20 pairs of
tokenizer and smoothing, besides five published values (`tests/unit/test_verifier_text_overlap.py`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from assay.reward_server.domain import (
    Judgement,
    VerifierItem,
)
from assay.reward_server.functions import Range, verifier
from assay.reward_server.verifiers.text import overlap

_FOX = "The quick brown fox jumps."


@lru_cache(maxsize=32)
def _metric(tokenize: str, smooth: str, max_order: int, *, lowercase: bool) -> Any:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - 0.15 s to load

    return BLEU(
        lowercase=lowercase,
        tokenize=tokenize,
        smooth_method=smooth,
        max_ngram_order=max_order,
        effective_order=True,
    )


@verifier(
    "bleu",
    tasks=("translation",),
    verdicts=overlap.VERDICTS,
    prepare=lambda: _metric("13a", "exp", 4, lowercase=False),
    examples=[
        {"response": _FOX, "reference": _FOX, "verdict": "correct"},
        {"response": "The quick brown dog jumps.", "reference": _FOX, "verdict": "partial"},
        {"response": "Rien ne va plus", "reference": _FOX, "verdict": "incorrect"},
        overlap.OVERLONG,
    ],
)
def bleu(
    item: VerifierItem,
    *,
    part: overlap.Part = "final",
    tokenize: Annotated[
        Literal["13a", "intl", "zh", "char", "none"],
        "sacrebleu's tokenizer: 13a (WMT), intl (Unicode), zh, char, or none (at spaces).",
    ] = "13a",
    smooth: Annotated[
        Literal["exp", "floor", "add-k", "none"],
        "What orders without a match count: exp, halves; floor, 0.1; add-k, 1 added; none, 0.",
    ] = "exp",
    max_order: Annotated[int, Range(1, 6), "The longest n-grams that count."] = 4,
    lowercase: Annotated[bool, "Whether case is ignored."] = False,
) -> Judgement:
    """Sentence BLEU of the response against the references, 0 to 1.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or over-long reference.
    """
    response, references = overlap.texts(item, part)
    if len(response) > overlap.MAX_CHARS:
        return overlap.overlong("bleu")
    metric = _metric(tokenize, smooth, max_order, lowercase=lowercase)
    found = metric.sentence_score(response, list(references))
    _forget(metric.tokenizer)
    return overlap.judged(
        "bleu",
        found.score / 100.0,
        {
            "brevity-penalty": found.bp,
            **{f"precision-{n}": p / 100.0 for n, p in enumerate(found.precisions, start=1)},
        },
    )


def _forget(tokenizer: Any) -> None:
    """Empties the tokenizers' caches, which would keep 65,536 responses each."""
    for part in (tokenizer, getattr(tokenizer, "_post_tokenizer", None)):
        clear = getattr(type(part).__call__, "cache_clear", None) if part is not None else None
        if clear is not None:
            clear()
