"""`abstention`: a short answer is right, wrong or not attempted, and each earns what you say.

**What it judges.** The part that `extract` names. It is `correct` when it equals a reference after
SQuAD's normalisation (`measure` = em) or holds its words in a row (subem); `not-attempted` when all
of it is a statement of not knowing ("I don't know", "[IDK]", "I am not sure about the answer", one
of `statements`), or when there is no answer and `missing` = abstained; else `incorrect`. They earn
1, `abstained` and `wrong`: a policy does best to answer where its chance exceeds (abstained -
wrong) / (1 - wrong), as with confidence targets (arXiv 2509.04664). The verdicts are SimpleQA's
(arXiv 2411.04368), whose grader is a model: `judge-attempt`. `assay score` prints its F-score.

**An answer beside an abstention is an answer.** "Paris, but I am not sure" and "I don't know; maybe
Paris" are judged by their words. A response whose boxes or answer tags differ has not abstained.

**What a policy could game.** Not knowing anything earns `abstained`: keep it below what the policy
earns now. `subem` is right for a list of candidates.

**Known limits.** Statements are English, and recognised only where they are all there is: "I could
not find who won in 1931." is a wrong answer.

**Measured.** None of 13,374 options of multiple choice, 22,267 right answers (DAPO, TinyV) and
2,693 short answers of models (MathCoder) is taken for an abstention. Recall on free text is not
measured, and low by design.
"""

from __future__ import annotations

from typing import Annotated, Literal

from assay.reward_server import Component, Judgement, Range, VerifierItem, verifier
from assay.reward_server.verifiers import suspicions
from assay.reward_server.verifiers.text.forms import Normalization, answer_words
from assay.reward_server.verifiers.text.parts import (
    Extract,
    NoPart,
    part_of,
    shown,
    usable_answers,
)
from assay.reward_server.verifiers.text.token_f1 import measured
from assay.verifiers_extra.answers.statements import says_unknown

_SEVERAL = frozenset(("several-boxed-answers", "several-tagged-answers"))


@verifier(
    "abstention",
    verdicts=("correct", "not-attempted", "incorrect"),
    rewards=(-10.0, 1.0),
    isolation="inline",
)
def abstention(
    item: VerifierItem,
    *,
    extract: Extract = "final",
    measure: Annotated[
        Literal["em", "subem"],
        "em: equal after normalisation; subem: the answer holds the reference's words in a row.",
    ] = "em",
    abstained: Annotated[float, Range(-10.0, 1.0), "The reward of a response that abstains."] = 0.0,
    wrong: Annotated[float, Range(-10.0, 1.0), "The reward of a wrong answer."] = 0.0,
    missing: Annotated[
        Literal["wrong", "abstained"], "What a response without an answer counts as."
    ] = "wrong",
    statements: Annotated[
        tuple[str, ...], "Further statements of not knowing, compared as a whole."
    ] = (),
) -> Judgement:
    """A short answer is right, wrong or not attempted, by the words it uses; each has its reward.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or over-long reference.
    """
    references = usable_answers(item)
    flags = suspicions.scan(item.response())
    part = part_of(item.response(), extract)
    is_split = bool(_SEVERAL.intersection(flags))
    if isinstance(part, NoPart):
        verdict, why, answer = "incorrect", part.why, None
        if missing == "abstained" and not is_split:
            verdict = "not-attempted"
    else:
        words, answer = answer_words(part.text), shown(part.text)
        right = any(measured(words, answer_words(gold), measure)[0] for gold in references)
        form = Normalization()
        told = {form.apply(text) for text in statements}
        is_unknown = says_unknown(part.text) or form.apply(part.text) in told
        verdict, why = "incorrect", "the answer equals no reference"
        if right:
            verdict, why = "correct", "the answer equals a reference"
        elif is_unknown and is_split:
            why = "it abstains beside another answer"
        elif is_unknown:
            verdict, why = "not-attempted", "it says that it does not know"
    reward = {"correct": 1.0, "not-attempted": abstained, "incorrect": wrong}[verdict]
    return Judgement.composed(
        verdict,
        (
            Component("reward", reward),
            Component("attempted", float(verdict != "not-attempted"), 0.0),
        ),
        extracted_answer=answer,
        explanation=why,
        suspicions=flags,
    )
