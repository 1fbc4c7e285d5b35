"""`chrf`: character n-gram F-score of the response against the references (chrF, chrF++), 0 to 1.

How. Through the package sacrebleu: F-score, with recall weighing beta times as much as precision,
averaged over character n-grams to `char_order` and word n-grams to `word_order` (2 is chrF++); the
best reference counts; its 0 to 100 divided by 100.

What a policy could game. With beta 2 recall weighs four times as much as precision, so long
responses are rewarded; characters of the right language alone earn some 0.2. Compare with a
baseline, and set a length reward beside it. Half of the range needs no right answer.

Limits. No tokens are needed, so it serves every script; white space does not count unless
`whitespace`.

Differences from the package: none but the scale and the bound of 100,000 characters.

Sources: Popovic, chrF, WMT 2015; chrF++: words helping character n-grams, WMT 2017; sacrebleu
2.6.0.

Measured: equal to sacrebleu called directly, to 1e-12, on 21 pairs for each of four settings
(`tests/unit/test_verifier_text_overlap.py`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from assay.reward_server.domain import (
    Judgement,
    VerifierItem,
)
from assay.reward_server.functions import Range, verifier
from assay.reward_server.verifiers.text import overlap

_WORLD = "Bonjour le monde"


@lru_cache(maxsize=32)
def _metric(char_order: int, word_order: int, beta: int, flags: tuple[bool, bool, bool]) -> Any:
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415 - 0.15 s to load

    lowercase, whitespace, eps_smoothing = flags
    return CHRF(
        char_order=char_order,
        word_order=word_order,
        beta=beta,
        lowercase=lowercase,
        whitespace=whitespace,
        eps_smoothing=eps_smoothing,
    )


@verifier(
    "chrf",
    tasks=("translation-chrf",),
    verdicts=overlap.VERDICTS,
    prepare=lambda: _metric(6, 0, 2, (False, False, False)),
    examples=[
        {"response": _WORLD, "reference": _WORLD, "verdict": "correct"},
        {"response": "Bonjour le mond", "reference": _WORLD, "verdict": "partial"},
        {"response": "xyz", "reference": _WORLD, "verdict": "incorrect"},
        overlap.OVERLONG,
    ],
)
def chrf(
    item: VerifierItem,
    *,
    part: overlap.Part = "final",
    char_order: Annotated[int, Range(1, 10), "The longest character n-grams."] = 6,
    word_order: Annotated[int, Range(0, 4), "The longest word n-grams; 2 is chrF++."] = 0,
    beta: Annotated[int, Range(1, 5), "How much recall weighs against precision."] = 2,
    lowercase: Annotated[bool, "Whether case is ignored."] = False,
    whitespace: Annotated[bool, "Whether white space is part of n-grams."] = False,
    eps_smoothing: Annotated[
        bool, "Whether empty orders count as nearly 0, as in chrF++.py, instead of not at all."
    ] = False,
) -> Judgement:
    """Character n-gram F-score of the response against the references, 0 to 1.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or over-long reference.
    """
    response, references = overlap.texts(item, part)
    if len(response) > overlap.MAX_CHARS:
        return overlap.overlong("chrf")
    metric = _metric(char_order, word_order, beta, (lowercase, whitespace, eps_smoothing))
    found = metric.sentence_score(response, list(references))
    return overlap.judged("chrf", found.score / 100.0)
