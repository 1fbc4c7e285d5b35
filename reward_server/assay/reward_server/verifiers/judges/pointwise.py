"""`judge`: what a language model thinks of the response, in [0, 1].

How. The response is compared with the right answer where the item has one, else against its anchor
(a response to beat), else against the parameter `rubric`; `against` names one of them, or `prompt`
for the task alone. The reward is genrm's score: the chance of being right, or of beating the
anchor, 0.5 being parity. It comes from the probabilities of the verdict's tokens where the engine
gives them, else from sampled votes; `consensus` samples critiques of every step and takes their
majority. The component `verdict-mass`, of weight 0, is the share of the model's probability that
the verdicts held; below the template's floor the item is the fault LOW_VERDICT_MASS, or voted on
(`low_mass`). The letters with which the model answers are drawn anew for each item and stand for
each side once; the distance of the two readings is the component `letter-gap`, of weight 0. Past
`max_letter_gap` the item is the fault LETTER_GAP, or as `on_letter_gap` says: `abstain` gives the
verdict `abstained` and `gap_reward`, `lower` takes half the gap off. A model that does not tell
known answers apart is JUDGE_UNFIT. Where there is an estimate of the score's standard error, that
is the component `standard-error`, of weight 0. Several right answers are shown to the model
together. For best-of-n, `against=prompt` with `template=self-verification` gives the model's
P(correct).

`models` is an ensemble: each judges, `combination` makes one score of theirs, the component
`disagreement`, of weight 0, says how far they are apart, and where fewer than `quorum` judged it is
the fault NO_QUORUM.

What a policy could game. A model can be flattered, and be impressed by length or by confidence.
genrm fences the candidate's text, which keeps it from speaking as the judge and not from
persuading it. A verdict that is written into the response falls out of the mean of both readings;
an order that names no letter does not. With `on_letter_gap=abstain` a text that confuses the model
earns `gap_reward`: keep it low. Prefer rules where there are any, a ground truth to an anchor, and
either to the prompt alone.

A dialogue of several turns is shown turn by turn, with its calls and what tools answered; what the
policy says and calls in it is judged, as the assistant's. Not by `consensus`.

Limits. The verdict is only as good as the model.

Sources: scaling data for RLHF, arXiv 2503.22230 (0.5 as parity; ground truth before anchor);
generative reward models, arXiv 2504.04950; consensus of critiques after SPARK.

Measured: its error is its model's. P(correct) equals a direct forward pass within 1e-5
(docs/understand/results/judges.md); measure yours by `assay eval-judge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.clients.judging import Ensemble, JudgeItem, JudgeSettings, ModelJudgement
from assay.clients.types import Fault as ClientFault
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    MISSING_REFERENCE,
    Candidate,
    Component,
    Judgement,
    ParameterSpec,
    Unjudgeable,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers.judges import asking

_VERDICTS = ("correct", "incorrect")

_SPEC = VerifierSpec(
    name="judge",
    version="3",
    description="A model's opinion of the response, against a right answer, an anchor or a rubric.",
    tasks=("judge",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=(*_VERDICTS, asking.ABSTAINED, "unparsed", asking.OVERLONG),
    parameters=(
        ParameterSpec(
            "against",
            "string",
            "auto",
            "What to hold the response against; auto: the right answer, else the anchor, else the "
            "rubric, and a fault where there is none.",
            allowed_values=("auto", "ground-truth", "anchor", "rubric", "prompt"),
        ),
        ParameterSpec("rubric", "string", "", "What a good response does, in words."),
        asking.MODEL,
        *asking.ENSEMBLE,
        asking.TEMPLATE,
        asking.scoring("auto", "token-probability", "votes", "consensus"),
        asking.VOTES,
        asking.TEMPERATURE,
        asking.MAX_TOKENS,
        asking.SEED,
        asking.META_CRITIQUE,
        asking.OVERFLOW,
        asking.LOW_MASS,
        asking.MAX_LETTER_GAP,
        asking.ON_LETTER_GAP,
        asking.gap_reward(0.0),
        asking.threshold("correct"),
    ),
    deterministic=False,
    cacheable=False,
    needs_reference=False,
    isolation="remote",
)


class JudgeVerifier(
    asking.OneByOne[tuple[JudgeSettings, Ensemble | None], JudgeItem, ModelJudgement]
):
    """Asks a model about each response by itself."""

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """The one example that needs no model."""
        blank = VerifierItem(Candidate(" \n"), references=("42",), parameters=_SPEC.complete({}))
        return (VerifierExample(blank, "unparsed"),)

    def text(self, item: VerifierItem) -> str:
        """See `OneByOne.text`; of a dialogue what the policy says in it."""
        return asking.said(item)

    def question(
        self, item: VerifierItem
    ) -> tuple[tuple[JudgeSettings, Ensemble | None], JudgeItem]:
        """See `OneByOne.question`."""
        if item.parameters["against"] not in ("prompt", "rubric"):  # they show no reference
            asking.refuse_data(item)
        kind, text = _against(item)
        question = JudgeItem(
            asking.prompt_of(item),
            "" if item.candidate.turns else item.response(),
            turns=asking.turns_of(item),
            ground_truth=text if kind == "ground-truth" else None,
            anchor=text if kind == "anchor" else None,
            rubric=text if kind == "rubric" else None,
        )
        settings = asking.judge_settings(item.parameters, item.run)
        return (settings, asking.ensemble(item.parameters)), question

    async def send(
        self,
        questions: list[JudgeItem],
        settings: tuple[JudgeSettings, Ensemble | None],
        timeout_s: float,
    ) -> Sequence[ModelJudgement | ClientFault]:
        """See `OneByOne.send`."""
        judging, ensemble = settings
        return await self._client.judge_responses(
            questions, judging, ensemble=ensemble, timeout_s=timeout_s
        )

    def answer(self, item: VerifierItem, found: ModelJudgement) -> Judgement:
        """See `OneByOne.answer`."""
        kind, _ = _against(item)
        if kind == "prompt" and not found.judge.template:
            raise Unjudgeable(
                INVALID_PARAMETER,
                f"the model {found.judge.model!r} has a scalar head, which by itself gives a logit "
                "and no chance: ask for it by the verifier 'reward-model'",
            )
        return judge_score(found, kind, item.parameters)

    def least(self, item: VerifierItem, verdict: str, why: str) -> Judgement:
        """See `OneByOne.least`."""
        del item
        return Judgement.composed(verdict, (Component("score", 0.0),), explanation=why)


def judge_score(
    found: ModelJudgement, kind: asking.Against, parameters: asking.Parameters
) -> Judgement:
    """The judgement of a score in [0, 1]. Pure.

    Args:
        found: genrm's answer.
        kind: what the response was compared with.
        parameters: the item's.

    Raises:
        Unjudgeable: INVALID_PARAMETER, there is no letter gap for `max_letter_gap`.
    """
    parts, abstains = asking.weighed("score", found.score, found, parameters)
    earned = sum(part.score * part.weight for part in parts)
    verdict = asking.graded(earned, asking.number(parameters, "threshold", 0.5), _VERDICTS)
    parts += asking.measures(found)
    text = f"{found.score:.4g} against the {kind}"
    if found.standard_error is not None:
        text += f", standard error {found.standard_error:.2g}"
    if found.votes:
        text += f", {len(found.votes)} votes"
    text += " " + asking.signature(
        found.judge, found.usage, cut=found.truncated, unparsed=found.unparsed_votes
    )
    return Judgement.composed(
        asking.ABSTAINED if abstains else verdict,
        tuple(parts),
        explanation=f"{text}: {found.rationale}" if found.rationale else text,
    )


def _against(item: VerifierItem) -> tuple[asking.Against, str]:
    """The kind and the text to compare the response with.

    Raises:
        Unjudgeable: the item has nothing of the kind, or it is blank.
    """
    asked = item.parameters["against"]
    rubric = str(item.parameters["rubric"])
    if asked == "prompt":
        return "prompt", ""
    if asked == "ground-truth" or (asked == "auto" and item.references):
        text = asking.ground_truth(item)
        if not text:
            raise Unjudgeable(MISSING_REFERENCE, "the item has no right answer as reference")
        return "ground-truth", text
    if asked == "anchor" or (asked == "auto" and item.anchor is not None):
        return "anchor", asking.anchor_of(item)
    if rubric.strip():
        return "rubric", rubric
    if asked == "rubric":
        raise Unjudgeable(INVALID_PARAMETER, "parameter 'rubric' is blank: say what is good")
    raise Unjudgeable(
        MISSING_REFERENCE,
        "the item has neither a right answer nor an anchor, and no 'rubric' is given; pass one, "
        "or against=prompt to judge by the prompt alone",
    )
