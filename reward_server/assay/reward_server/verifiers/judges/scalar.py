"""`reward-model`: the logit of a scalar reward head (sequence classification), squashed or bare.

How. The prompt and the response go to a model with one scalar output, as Bradley-Terry reward
models have it. z = (logit - center) / scale; the reward is sigmoid(z), in (0, 1), or with
`squash=none` z itself, cut to [-100, 100] and said to be so. The verdict is `accepted` where z is
at least `threshold`. The bare logit is the component `logit`, of weight 0.

What a policy could game. A scalar head's offset differs from prompt to prompt, so its values
compare within a prompt only: subtract the group's mean, or use `judge-pairwise`, with
`scoring=scalar-head`, against an anchor of the same prompt. Such heads reward length and style.

Limits. One response, not several turns. References are not looked at.

Sources: Bradley and Terry, Biometrika 39, 1952; on the offset, Pairwise-RL, arXiv 2504.04950.

Measured: its error is its model's: trained here for minutes, small heads are right on 90.1 % of 606
held-out pairs of RM-Bench's safety part and on 63.7 % of 267 of hh-rlhf
(docs/understand/results/judges.md). Scores equal a direct forward pass within 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.clients.judging import JudgeItem, JudgeSettings, ModelJudgement
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

_BOUND = 100.0
_VERDICTS = ("accepted", "rejected")

_SPEC = VerifierSpec(
    name="reward-model",
    version="2",
    description="The logit that a scalar reward model gives the response, squashed or bare.",
    tasks=("reward-model",),
    min_reward=-_BOUND,
    max_reward=_BOUND,
    verdicts=(*_VERDICTS, "unparsed", asking.OVERLONG),
    parameters=(
        ParameterSpec(
            "squash",
            "string",
            "sigmoid",
            "sigmoid: a reward in [0, 1]; none: the scaled logit, in [-100, 100].",
            allowed_values=("sigmoid", "none"),
        ),
        ParameterSpec("center", "float", 0.0, "What is taken off the logit."),
        ParameterSpec(
            "scale", "float", 1.0, "What the logit is then divided by.", minimum=1e-6, maximum=1e6
        ),
        ParameterSpec(
            "threshold", "float", 0.0, "The least scaled logit whose verdict is 'accepted'."
        ),
        ParameterSpec(
            "blank_logit",
            "float",
            -_BOUND,
            "The scaled logit of a blank or overlong response, about which no model is asked.",
            minimum=-_BOUND,
            maximum=_BOUND,
        ),
        asking.MODEL,
        asking.OVERFLOW,
    ),
    deterministic=False,
    cacheable=False,
    needs_reference=False,
    isolation="remote",
)


class RewardModelVerifier(asking.OneByOne[JudgeSettings, JudgeItem, ModelJudgement]):
    """Asks a scalar reward model."""

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """The one example that needs no model."""
        blank = VerifierItem(Candidate(" \n"), parameters=_SPEC.complete({}))
        return (VerifierExample(blank, "unparsed"),)

    def question(self, item: VerifierItem) -> tuple[JudgeSettings, JudgeItem]:
        """See `OneByOne.question`."""
        settings = JudgeSettings(
            model=str(item.parameters["model"]),
            scoring="scalar-head",
            overflow=asking.overflow(item.parameters),
            run=item.run,
        )
        return settings, JudgeItem(asking.prompt_of(item), item.response())

    async def send(
        self, questions: list[JudgeItem], settings: JudgeSettings, timeout_s: float
    ) -> Sequence[ModelJudgement | ClientFault]:
        """See `OneByOne.send`."""
        return await self._client.judge_responses(questions, settings, timeout_s=timeout_s)

    def answer(self, item: VerifierItem, found: ModelJudgement) -> Judgement:
        """See `OneByOne.answer`."""
        return judge_logit(found, item.parameters)

    def least(self, item: VerifierItem, verdict: str, why: str) -> Judgement:
        """See `OneByOne.least`."""
        z = asking.number(item.parameters, "blank_logit", -_BOUND)
        return Judgement.composed(verdict, (_part(z, item.parameters),), explanation=why)


def judge_logit(found: ModelJudgement, parameters: asking.Parameters) -> Judgement:
    """The judgement of a logit, the score of `found`. Pure."""
    center = asking.number(parameters, "center", 0.0)
    z = (found.score - center) / asking.number(parameters, "scale", 1.0)
    part = _part(z, parameters)
    text = f"logit {found.score:.4g} "
    text += asking.signature(found.judge, found.usage, cut=found.truncated)
    if parameters["squash"] == "none" and part.score != z:
        text += f"; {z:.4g} is cut to {part.score:g}"
    verdict = asking.graded(z, asking.number(parameters, "threshold", 0.0), _VERDICTS)
    return Judgement.composed(
        verdict, (part, Component("logit", found.score, 0.0)), explanation=text
    )


def _part(z: float, parameters: asking.Parameters) -> Component:
    """The component that is the reward."""
    if parameters["squash"] == "none":
        return Component("scaled-logit", min(max(z, -_BOUND), _BOUND))
    return Component("squashed-logit", _sigmoid(z))


def _sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)) without overflow."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    grown = math.exp(z)
    return grown / (1.0 + grown)
