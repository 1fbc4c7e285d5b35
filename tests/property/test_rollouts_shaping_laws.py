"""What must hold of shaped rewards, whatever the response and the settings."""

from __future__ import annotations

import dataclasses
import struct

from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.shaping.settings import ShapingConfig
from assay.trainer.methods.shaping.shape import shape
from assay.trainer.rollouts.types import Rollout

LIMIT = 64
VERDICTS = ["correct", "incorrect", "unparsed", "partial"]


def bits(number: float | None) -> bytes:
    assert number is not None
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
    assert bits(shape(rollout, config, LIMIT).reward) == bits(judgement.reward)


@given(rollouts(), settings)
def test_penalties_take_away_and_never_more_than_they_may(
    rollout: Rollout, config: ShapingConfig
) -> None:
    shaped = shape(rollout, config, LIMIT)
    assert -config.overlong_factor <= shaped.components.get("overlong", 0.0) <= 0
    assert config.repetition_penalty <= shaped.components.get("repetition", 0.0) <= 0
    assert shaped.in_loss == (config.overlong != "filter" or not rollout.response.truncated)
    assert shape(rollout, config, LIMIT) == shaped


@given(
    rollouts(verdict="correct", most=LIMIT - 1),
    rollouts(verdict="incorrect", most=LIMIT - 1),
    settings.filter(lambda config: config.overlong != "soft"),
)
def test_by_cosine_right_is_above_wrong_at_any_two_lengths(
    right: Rollout, wrong: Rollout, config: ShapingConfig
) -> None:
    config = dataclasses.replace(config, cosine=True)
    above, below = shape(right, config, LIMIT).reward, shape(wrong, config, LIMIT).reward
    assert above is not None
    assert below is not None
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
        short, long = shape(shorter, config, LIMIT).reward, shape(rollout, config, LIMIT).reward
        assert short is not None
        assert long is not None
        assert sign * short >= sign * long


@given(rollouts(), settings)
def test_a_fault_never_becomes_a_number(rollout: Rollout, config: ShapingConfig) -> None:
    faulted = dataclasses.replace(rollout, result=Result("0", Fault("WORKER_DIED", "it died")))
    shaped = shape(faulted, config, LIMIT)
    assert shaped.reward is None
    assert not shaped.in_loss
    assert not shaped.components
