"""`judge-pairwise`: the chance that the response beats the item's anchor, in both orders.

How. genrm shows the response and the anchor to a model twice, with each in the first place once,
and averages: w = (p_first + p_second) / 2, which removes a model's preference for a place. The
reward is w, in [0, 1]; 0.5 is parity with the anchor. The difference of the two orders is the
component `order-gap`, of weight 0. Above `max_order_gap` the place decided more than the text: then
the item is a fault, ORDER_GAP, or with `on_gap=abstain` it has the verdict `abstained` and earns
`gap_reward`, which the profile chose. In each order the letters of the verdicts stand for each side
once: `letter-gap`, `max_letter_gap` and `on_letter_gap` are as in `judge`. With `lower`, 1 - w is
not what the other response would earn: where both are trained, choose a fault or `abstain`.

What a policy could game. As `judge`. With `on_gap=abstain` a text that confuses the model earns
`gap_reward`: keep it at or below parity.

Limits. A dialogue of several turns is shown turn by turn, and the anchor is one text. An item
without an anchor is a fault.

Source: Pairwise-RL, arXiv 2504.04950; w - 1/2, another reward of that paper, is an `offset` of a
profile.

Measured: its error is its model's: SmolLM2-135M, untrained, is right on 52.6 % [37.3, 67.5] of 38
pairs of LLMBar (docs/understand/results/judges.md); measure yours by `assay eval-judge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.clients.judging import JudgeSettings, PairItem, PairJudgement
from assay.clients.types import Fault as ClientFault
from assay.reward_server.domain import (
    Candidate,
    Component,
    Judgement,
    ParameterSpec,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers.judges import asking

_VERDICTS = ("better", "worse")

MAX_ORDER_GAP = ParameterSpec(
    "max_order_gap",
    "float",
    1.0,
    "The greatest difference between the two orders that still counts; 1: any does.",
    minimum=0.0,
    maximum=1.0,
)

_SPEC = VerifierSpec(
    name="judge-pairwise",
    version="3",
    description="The chance that the response beats the anchor, asked of a model in both orders.",
    tasks=("judge-pairwise",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=(*_VERDICTS, asking.ABSTAINED, "unparsed", asking.OVERLONG),
    parameters=(
        MAX_ORDER_GAP,
        ParameterSpec(
            "on_gap",
            "string",
            "fault",
            "What becomes of an item past max_order_gap: the fault ORDER_GAP, or the verdict "
            "abstained.",
            allowed_values=("fault", "abstain"),
        ),
        asking.gap_reward(0.5),
        *asking.judged_by("auto", "token-probability", "votes", "scalar-head"),
        asking.MAX_LETTER_GAP,
        asking.ON_LETTER_GAP,
        asking.threshold("better"),
    ),
    deterministic=False,
    cacheable=False,
    isolation="remote",
)

Ask = tuple[JudgeSettings, float | None]


class PairwiseVerifier(asking.OneByOne[Ask, PairItem, PairJudgement]):
    """Asks a model which of response and anchor is better."""

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """The one example that needs no model."""
        blank = VerifierItem(Candidate(" \n"), anchor="Hello.", parameters=_SPEC.complete({}))
        return (VerifierExample(blank, "unparsed"),)

    def text(self, item: VerifierItem) -> str:
        """See `OneByOne.text`; of a dialogue what the policy says in it."""
        return asking.said(item)

    def question(self, item: VerifierItem) -> tuple[Ask, PairItem]:
        """See `OneByOne.question`."""
        turns = asking.turns_of(item)
        text = "" if turns else item.response()
        question = PairItem(asking.prompt_of(item), text, asking.anchor_of(item), turns_a=turns)
        gap = asking.number(item.parameters, "max_order_gap", 1.0)
        strict = item.parameters["on_gap"] == "fault" and gap < 1.0
        return (asking.judge_settings(item.parameters, item.run), gap if strict else None), question

    async def send(
        self, questions: list[PairItem], settings: Ask, timeout_s: float
    ) -> Sequence[PairJudgement | ClientFault]:
        """See `OneByOne.send`."""
        how, max_order_gap = settings
        return await self._client.judge_pairs(
            questions, how, max_order_gap=max_order_gap, timeout_s=timeout_s
        )

    def answer(self, item: VerifierItem, found: PairJudgement) -> Judgement:
        """See `OneByOne.answer`."""
        return judge_pair(found, item.parameters)

    def least(self, item: VerifierItem, verdict: str, why: str) -> Judgement:
        """See `OneByOne.least`."""
        del item
        return Judgement.composed(verdict, (Component("win-probability", 0.0),), explanation=why)


def judge_pair(found: PairJudgement, parameters: asking.Parameters) -> Judgement:
    """The judgement of a response against an anchor; in `found` a is the response. Pure.

    Raises:
        Unjudgeable: INVALID_PARAMETER, there is no letter gap for `max_letter_gap`.
    """
    won, gap = found.win_probability, found.order_gap
    if gap > asking.number(parameters, "max_order_gap", 1.0):
        parts, abstains = asking.withheld("win-probability", won, parameters), True
    else:
        parts, abstains = asking.weighed("win-probability", won, found, parameters)
    earned = sum(part.score * part.weight for part in parts)
    parts += [
        Component("order-gap", gap, 0.0),
        Component("first-place", found.forward, 0.0),
        Component("second-place", found.reverse, 0.0),
    ]
    parts += asking.measures(found)
    text = f"beats the anchor with {won:.4g} (first {found.forward:.4g}, second "
    text += f"{found.reverse:.4g}, order gap {gap:.3g}) " + asking.signature(
        found.judge, found.usage, cut=found.truncated, unparsed=found.unparsed_votes
    )
    verdict = asking.graded(earned, asking.number(parameters, "threshold", 0.5), _VERDICTS)
    return Judgement.composed(
        asking.ABSTAINED if abstains else verdict,
        tuple(parts),
        explanation=f"{text}: {found.rationale}" if found.rationale else text,
    )
