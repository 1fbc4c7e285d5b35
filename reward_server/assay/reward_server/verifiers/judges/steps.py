"""`prm`: each step of the response scored by a process reward model.

How. genrm cuts the response into steps (`splitting`) and scores each: by a head that is read at the
steps' ends, or by the majority of a generative model's critiques. The reward combines the scores
(`aggregation`): the least, the product, the last or the mean, in [0, 1]. The verdict is `correct`
where that is not below the threshold. Each step that is not neutral is a span with its score, as a
chance in [0, 1], or with `step_rewards=signed` as 2 x chance - 1, so that a step that is as likely
right as wrong earns nothing; comments and blank lines of code are neutral and have no span. The
trainer decides how it weighs these dense rewards against the reward of the whole.

What a policy could game. The mean and the product reward the number of steps, up or down: normalise
by it. Many trivial lines raise the mean. The last step alone forgives everything before it.

Limits. One response, not several turns. At most 1,200 steps with spans; beyond, ask with
`step_rewards=none`. A response past the model's context is not scored in part, for its errors would
hide behind the cut: it is `overlong`, and earns 0. A response of comments alone is like a blank
one: `unparsed`, and 0.

Sources: process supervision for code, arXiv 2410.17621; Let's verify step by step, arXiv
2305.20050.

Measured: its error is its model's: a tiny head trained on PRMBench has a balanced accuracy of 63 %
on 5,557 held-out steps (docs/understand/results/judges.md). Scores equal a direct forward pass
within 1e-5.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import cast

from assay.clients.judging import StepItem, StepScores, StepSettings
from assay.clients.judging.types import Aggregation, Splitting
from assay.clients.types import Fault as ClientFault
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNSUPPORTED_INPUT,
    Candidate,
    Component,
    Judgement,
    ParameterSpec,
    Span,
    Unjudgeable,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers.judges import asking

_MAX_SPANS = 1_200

OVERFLOW = dataclasses.replace(
    asking.OVERFLOW,
    default=asking.OVERLONG,
    description="A response longer than the model's context, or of more steps than can be "
    "rewarded: the verdict overlong with the least reward, or refuse it (a fault).",
    allowed_values=(asking.OVERLONG, "refuse"),
)

_SPEC = VerifierSpec(
    name="prm",
    version="2",
    description="The steps of the response, each scored by a process reward model.",
    tasks=("prm",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct", "incorrect", "unparsed", asking.OVERLONG),
    parameters=(
        ParameterSpec(
            "splitting",
            "string",
            "auto",
            "How to cut: at line breaks, blank lines, the step tag, or lines of code; auto: the "
            "model's own way.",
            allowed_values=("auto", "line", "paragraph", "tag", "code-line"),
        ),
        ParameterSpec("step_tag", "string", "", "The text that ends a step, for splitting=tag."),
        ParameterSpec(
            "aggregation",
            "string",
            "min",
            "How the scores of the steps become one.",
            allowed_values=("min", "product", "last", "mean"),
        ),
        ParameterSpec(
            "threshold",
            "float",
            -1.0,
            "A step, or the whole, below this is an error; below 0: the model's own threshold.",
            minimum=-1.0,
            maximum=1.0,
        ),
        ParameterSpec(
            "step_rewards",
            "string",
            "probability",
            "The spans' rewards: the chance that the step is right, or 2 x chance - 1, or no "
            "spans.",
            allowed_values=("probability", "signed", "none"),
        ),
        asking.MODEL,
        asking.TEMPLATE,
        asking.VOTES,
        asking.TEMPERATURE,
        asking.MAX_TOKENS,
        asking.SEED,
        asking.META_CRITIQUE,
        OVERFLOW,
    ),
    deterministic=False,
    cacheable=False,
    needs_reference=False,
    isolation="remote",
)


class StepVerifier(asking.OneByOne[StepSettings, StepItem, StepScores]):
    """Asks a process reward model."""

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """The one example that needs no model."""
        blank = VerifierItem(Candidate(" \n"), parameters=_SPEC.complete({}))
        return (VerifierExample(blank, "unparsed"),)

    def question(self, item: VerifierItem) -> tuple[StepSettings, StepItem]:
        """See `OneByOne.question`."""
        asking.refuse_data(item)
        settings = _settings(item.parameters, item.run)
        if settings.splitting == "tag" and not settings.step_tag:
            raise Unjudgeable(
                INVALID_PARAMETER, "parameter 'step_tag' is empty: splitting=tag needs the tag"
            )
        truth = asking.ground_truth(item)
        return settings, StepItem(asking.prompt_of(item), item.response(), ground_truth=truth)

    async def send(
        self, questions: list[StepItem], settings: StepSettings, timeout_s: float
    ) -> Sequence[StepScores | ClientFault]:
        """See `OneByOne.send`."""
        return await self._client.score_steps(questions, settings, timeout_s=timeout_s)

    def answer(self, item: VerifierItem, found: StepScores) -> Judgement:
        """See `OneByOne.answer`."""
        try:
            return judge_steps(found, item.parameters)
        except Unjudgeable as trouble:
            # How many steps there are is the response's doing, whatever the prompt.
            asked_for = item.parameters["overflow"] == asking.OVERLONG
            if trouble.reason != UNSUPPORTED_INPUT or not asked_for:
                raise
            return self.least(item, asking.OVERLONG, trouble.message)

    def least(self, item: VerifierItem, verdict: str, why: str) -> Judgement:
        """See `OneByOne.least`."""
        name = f"{item.parameters['aggregation']}-of-steps"
        return Judgement.composed(verdict, (Component(name, 0.0),), explanation=why)


def judge_steps(found: StepScores, parameters: asking.Parameters) -> Judgement:
    """The judgement of a response from its steps' scores. Pure.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT when there are more steps than spans can be given.
    """
    parts = [
        Component(f"{parameters['aggregation']}-of-steps", found.aggregate),
        Component("steps", float(len(found.steps)), 0.0),
        *asking.measures(found),
    ]
    text = f"{found.aggregate:.4g} over {len(found.steps)} steps"
    first = found.first_error
    if first is None:
        text += f", none below {found.error_threshold:g}"
    else:
        parts.append(Component("first-error-step", float(first + 1), 0.0))
        text += f", step {first + 1} is the first below {found.error_threshold:g}"
    text += " " + asking.signature(found.judge, found.usage, unparsed=found.unparsed_votes)
    if first is not None and found.steps[first].critique:
        text += f": {found.steps[first].critique}"
    judgement = Judgement.composed(
        "correct" if found.passed else "incorrect", tuple(parts), explanation=text
    )
    return dataclasses.replace(judgement, spans=_spans(found, str(parameters["step_rewards"])))


def _spans(found: StepScores, kind: str) -> tuple[Span, ...]:
    if kind == "none":
        return ()
    scored = [(step.start, step.end, step.score) for step in found.steps if step.score is not None]
    if len(scored) > _MAX_SPANS:
        raise Unjudgeable(
            UNSUPPORTED_INPUT,
            f"the response has {len(scored)} steps, and at most {_MAX_SPANS} get a reward of their "
            "own: cut it more coarsely, or pass step_rewards=none",
        )
    return tuple(
        Span(start, end, 2 * score - 1 if kind == "signed" else score, "step")
        for start, end, score in scored
    )


def _settings(parameters: asking.Parameters, run: str) -> StepSettings:
    threshold = asking.number(parameters, "threshold", -1.0)
    temperature = asking.number(parameters, "temperature", -1.0)
    seed = int(asking.number(parameters, "seed", -1))
    return StepSettings(
        model=str(parameters["model"]),
        splitting=cast("Splitting", parameters["splitting"]),
        step_tag=str(parameters["step_tag"]),
        aggregation=cast("Aggregation", parameters["aggregation"]),
        error_threshold=None if threshold < 0 else threshold,
        votes=int(asking.number(parameters, "votes", 0)),
        temperature=None if temperature < 0 else temperature,
        max_tokens=int(asking.number(parameters, "max_tokens", 0)),
        seed=None if seed < 0 else seed,
        meta_critique=parameters["meta_critique"] is True,
        template=str(parameters["template"]),
        run=run,
    )
