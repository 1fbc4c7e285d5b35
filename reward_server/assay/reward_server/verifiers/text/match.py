r"""`match`: an answer equals a reference after a stated normalisation, or holds it.

How. The part that `extract` names is brought into the form that the parameters state, and so is
each reference; `where` tells what must hold: they are equal, or the answer contains, begins with or
ends with the reference, always at the borders of words ("know" does not contain "no", "3.5" does
not contain "3"). With several references `need` tells whether any will do, all must, or their
share is the reward: needles in a haystack are `where=contains` with need=share (RULER's match of
all strings, arXiv 2404.06654) or need=any (its match of a part). Linear in the texts; a part of
more than 20,000 characters is no answer.

What a policy could game. With `where` other than equal, an answer that names every candidate holds
the right one: "Paris, Lyon, Nice" contains Paris, and so does "not Paris". Bound it with
`max_words`, or mark the answer and take `where=equal`. `punctuation=remove` and `articles` make
more answers equal than is meant where single marks matter (formulas, code): use `exact` or `math`.

Limits. No spelling variants, synonyms or dates. `numbers` compares numbers in plain decimal form
only; 1/2 and 0.5 differ: that is `math`.

Differences from the usual string match (SQuAD's normalisation, lighteval's exact match):
1. Nothing that changes a value is removed: minus signs, decimal points, fraction bars and per cent
   signs next to digits stay, and x² does not become x2.
2. A text of which the normalisation leaves nothing ("The", "?!") keeps what would be removed last.
3. Containment is at the borders of words, not of characters: RULER's own takes 12345 for 1234.

Measured: on 2,000 generated answers the share is that of NeMo Gym's `ruler`, but for those that
continue a needle.

Sources: Unicode Standard Annex 15 (normalisation forms); SQuAD, arXiv 1606.05250, for what is
usually removed.

Measured: 39 cases with the verdict that they must get, and laws over any text
(`tests/unit/test_verifier_text.py`). How often a right answer is missed on real responses: not yet,
because no labelled set of short answers is at hand.
"""

from __future__ import annotations

from typing import Annotated, Literal

from assay.reward_server.domain import (
    Component,
    Judgement,
    VerifierItem,
)
from assay.reward_server.functions import Range, verifier
from assay.reward_server.verifiers.text.forms import Normalization, holds
from assay.reward_server.verifiers.text.parts import (
    Extract,
    NoPart,
    flagged,
    graded,
    part_of,
    shown,
    unparsed,
    usable_answers,
)


@verifier(
    "match",
    version="2",
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    isolation="inline",
)
def match(
    item: VerifierItem,
    *,
    extract: Extract = "final",
    where: Annotated[
        Literal["equal", "contains", "prefix", "suffix"],
        "equal: the answer is the reference; contains, prefix, suffix: it holds it, begins or "
        "ends with it, which a policy games by naming every candidate.",
    ] = "equal",
    need: Annotated[
        Literal["any", "all", "share"],
        "Of several references: any one, all of them, or the share that fits is the reward.",
    ] = "any",
    max_words: Annotated[
        int,
        Range(0, 10_000),
        "An answer of more words is wrong; 0 for no limit. Meant for where=contains.",
    ] = 0,
    case_sensitive: Annotated[bool, "Whether upper and lower case differ."] = False,
    unicode: Annotated[
        Literal["nfc", "nfkc"],
        "nfkc: full-width and other compatibility characters become plain ones; nfc: they stay.",
    ] = "nfkc",
    punctuation: Annotated[
        Literal["keep", "edges", "remove"],
        "edges: quotes, emphasis and sentence marks at both ends are taken away; remove: "
        "punctuation is, except in and before numbers; keep: it stays.",
    ] = "edges",
    articles: Annotated[bool, "Whether a, an and the are taken away."] = False,
    numbers: Annotated[bool, "Whether words that are decimal numbers match by value."] = False,
) -> Judgement:
    """The answer equals a reference after a stated normalisation, or holds it.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or over-long reference.
    """
    references = usable_answers(item)
    part = part_of(item.response(), extract)
    if isinstance(part, NoPart):
        return flagged(item, unparsed("correctness", part.why))
    form = Normalization(
        case_sensitive=case_sensitive,
        unicode=unicode,
        punctuation=punctuation,
        articles=articles,
        numbers=numbers,
    )
    answer = form.apply(part.text)
    words = answer.count(" ") + 1
    if max_words and words > max_words:
        score, why = 0.0, f"the answer has {words} words; at most {max_words} are allowed"
    else:
        fits = [_fits(answer, form.apply(reference), where) for reference in references]
        score = float(any(fits)) if need == "any" else sum(fits) / len(fits)
        score = float(score == 1.0) if need == "all" else score
        why = f"the answer {_WHERE[where]} {sum(fits)} of {len(fits)} references"
    return flagged(
        item,
        Judgement.composed(
            graded(score),
            (Component("correctness", score),),
            extracted_answer=shown(part.text),
            explanation=why,
        ),
    )


_WHERE = {
    "equal": "equals",
    "contains": "contains",
    "prefix": "begins with",
    "suffix": "ends with",
}


def _fits(answer: str, reference: str, where: str) -> bool:
    if where == "equal":
        return answer == reference
    if where == "prefix":
        return holds(answer, reference, "prefix")
    return holds(answer, reference, "contains" if where == "contains" else "suffix")
