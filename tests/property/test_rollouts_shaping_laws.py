"""What must hold of shaped rewards, whatever the response and the settings."""

from __future__ import annotations

import dataclasses
import struct

from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.trainer.core.build import scorer
from assay.trainer.core.hooks import hooks_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.shaping.settings import ShapingConfig
from assay.trainer.methods.shaping.shape import Shaped, shape
from assay.trainer.rollouts.types import Rollout
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.sections import RolloutConfig

LIMIT = 64
VERDICTS = ["correct", "incorrect", "unparsed", "partial"]


def bits(number: float) -> bytes:
    return struct.pack("d", number)


@st.composite
def rollouts(draw: st.DrawFn, *, verdict: str | None = None, most: int = LIMIT) -> Rollout:
    """A judged response of at most LIMIT tokens."""
    ids = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=most)))
    reward = draw(st.floats(-10, 10))
    outcome = Judgement(reward, verdict or draw(st.sampled_from(VERDICTS)))
    truncated = len(ids) == LIMIT and draw(st.booleans())
    request = Request(Draw(0, Problem("p", "q", (), "r"), (1,)), 0)
    return Rollout(request, Response(ids, "t", None, truncated), Result("0", outcome), 0)


def shaped(rollout: Rollout, config: ShapingConfig) -> Shaped:
    """A judged rollout, from the reward of its judgement."""
    judgement = rollout.result.judgement
    assert judgement is not None
    return shape(rollout, judgement.reward, config, LIMIT)


settings = st.builds(
    ShapingConfig,
    overlong=st.sampled_from(["none", "soft", "filter"]),
    overlong_cache=st.integers(1, LIMIT),
    overlong_factor=st.floats(0.1, 5),
    cosine=st.booleans(),
    repetition_ngram=st.integers(0, 5),
    repetition_penalty=st.floats(-5, 0),
)


@given(rollouts(), st.sampled_from([ShapingConfig(), ShapingConfig(overlong="filter")]))
def test_no_shaping_is_the_identity_to_the_bit(rollout: Rollout, config: ShapingConfig) -> None:
    judgement = rollout.result.judgement
    assert judgement is not None
    assert bits(shaped(rollout, config).reward) == bits(judgement.reward)


@given(rollouts(), settings)
def test_penalties_take_away_and_never_more_than_they_may(
    rollout: Rollout, config: ShapingConfig
) -> None:
    made = shaped(rollout, config)
    assert -config.overlong_factor <= made.components.get("overlong", 0.0) <= 0
    assert config.repetition_penalty <= made.components.get("repetition", 0.0) <= 0
    assert made.in_loss == (config.overlong != "filter" or not rollout.response.truncated)
    assert shaped(rollout, config) == made


@given(
    rollouts(verdict="correct", most=LIMIT - 1),
    rollouts(verdict="incorrect", most=LIMIT - 1),
    settings.filter(lambda config: config.overlong != "soft"),
)
def test_by_cosine_right_is_above_wrong_at_any_two_lengths(
    right: Rollout, wrong: Rollout, config: ShapingConfig
) -> None:
    config = dataclasses.replace(config, cosine=True)
    above, below = shaped(right, config).reward, shaped(wrong, config).reward
    assert above >= 0.5 > -0.5 >= below


@given(rollouts(verdict="correct", most=LIMIT - 1), rollouts(verdict="incorrect", most=LIMIT - 1))
def test_by_cosine_shorter_is_better_where_right_and_worse_where_wrong(
    one: Rollout, other: Rollout
) -> None:
    config = ShapingConfig(cosine=True)
    for rollout, sign in ((one, 1), (other, -1)):
        shorter = dataclasses.replace(
            rollout, response=dataclasses.replace(rollout.response, ids=rollout.response.ids[:1])
        )
        short, long = shaped(shorter, config).reward, shaped(rollout, config).reward
        assert sign * short >= sign * long


@given(rollouts(), settings)
def test_a_fault_never_becomes_a_number(rollout: Rollout, config: ShapingConfig) -> None:
    """As a run scores it, beside a judged one that is shaped as it is alone."""
    faulted = dataclasses.replace(rollout, result=Result("0", Fault("WORKER_DIED", "it died")))
    run = Config(method=MethodSettings(shaping=config), rollout=RolloutConfig(max_new_tokens=LIMIT))
    fault, judged = scorer(hooks_of(run))([(faulted, rollout)])
    assert fault.rollout is faulted
    assert (fault.reward, fault.in_loss, fault.trains) == (None, False, False)
    alone = shaped(rollout, config)
    assert (judged.reward, judged.in_loss) == (alone.reward, alone.in_loss)
