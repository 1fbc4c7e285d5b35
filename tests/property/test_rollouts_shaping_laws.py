"""What must hold of shaped rewards, whatever the response and the settings."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.trainer.algos.shaping import prefix_similarities
from assay.trainer.core.batch import Scored
from assay.trainer.core.build import scorer
from assay.trainer.core.hooks import hooks_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.shaping.settings import ShapingConfig
from assay.trainer.methods.shaping.shape import Shaped, progress_of, shape
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


def _reward(rollout: Rollout) -> float:
    assert rollout.result.judgement is not None
    return rollout.result.judgement.reward


settings = st.builds(
    ShapingConfig,
    overlong=st.sampled_from(["none", "soft", "filter"]),
    overlong_cache=st.integers(1, LIMIT),
    overlong_factor=st.floats(0.1, 5),
    cosine=st.booleans(),
    repetition_ngram=st.integers(0, 5),
    repetition_penalty=st.floats(-5, 0),
    concise_bonus=st.floats(0, 2),
    concise_below=st.integers(1, LIMIT),
    budget_penalty=st.floats(0, 2),
    budget_least=st.integers(1, LIMIT),
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
    assert made.components.get("difficulty", 0.0) <= 0
    bonus = made.components.get("concise", 0.0)
    short = len(rollout.response.ids) < config.concise_below
    right = rollout.result.judgement == Judgement(_reward(rollout), "correct")
    assert bonus == (config.concise_bonus if short and right else 0)
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
    config = dataclasses.replace(config, cosine=True, budget_penalty=0)
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
    right = rollout.result.judgement == Judgement(_reward(rollout), "correct")
    alone = shape(rollout, _reward(rollout), config, LIMIT, pass_rate=float(right))
    assert (judged.reward, judged.in_loss) == (alone.reward, alone.in_loss)


@given(rollouts(), rollouts(), st.floats(0, 1), st.floats(0, 1), st.integers(1, LIMIT))
def test_over_a_budget_longer_costs_more_and_harder_prompts_less(
    one: Rollout, other: Rollout, low: float, high: float, least: int
) -> None:
    config = ShapingConfig(budget_penalty=0.5, budget_least=least)
    low, high = sorted((low, high))
    short, long = sorted((one, other), key=lambda r: len(r.response.ids))

    def cost(rollout: Rollout, rate: float) -> float:
        return shape(rollout, 0.0, config, LIMIT, pass_rate=rate).reward

    assert cost(long, high) <= cost(long, low) <= 0
    assert cost(long, high) <= cost(short, high)
    assert cost(one, 0.0) == 0, "the budget of what nobody solves is all there is"
    assert cost(short, 1.0) == (0 if len(short.response.ids) <= least else cost(short, 1.0))


groups = st.lists(rollouts(), min_size=1, max_size=5)


@given(groups, st.floats(0.01, 1), st.integers(1, 3), st.integers(1, 4))
def test_a_failure_gains_up_to_the_success_that_it_is_like_and_nobody_else_gains(
    group: list[Rollout], share: float, ngram: int, cuts: int
) -> None:
    config = ShapingConfig(progress=share, progress_ngram=ngram, progress_cuts=cuts)
    scored = [Scored(one, _reward(one)) for one in group]
    best = max((_reward(one.rollout) for one in scored if one.correct), default=None)
    for one, more in zip(scored, progress_of(scored, config), strict=True):
        assert more >= 0
        if more:
            assert not one.correct
            assert best is not None
            assert _reward(one.rollout) + more <= best + 1e-9
        if one.correct or best is None:
            assert more == 0


@given(groups, st.integers(1, 3), st.integers(1, 4))
def test_likeness_is_symmetric_whole_with_itself_and_needs_a_common_token(
    group: list[Rollout], ngram: int, cuts: int
) -> None:
    texts = [one.response.ids for one in group]
    alike = prefix_similarities([*texts, (9, 9), ()], ngram=ngram, cuts=cuts)
    assert (alike == alike.T).all()
    assert (alike >= 0).all()
    assert all(alike[n, n] == pytest.approx(1) for n in range(len(texts) + 1))
    assert not alike[-2, :-2].any()
    assert not alike[-1].any()


def test_what_goes_wrong_late_is_more_like_a_success_than_what_goes_wrong_early() -> None:
    success, late, early = (
        (1, 2, 3, 4, 5, 6, 7, 8),
        (1, 2, 3, 4, 5, 6, 9, 9),
        (9, 9, 3, 4, 5, 6, 7, 8),
    )
    alike = prefix_similarities([success, late, early], ngram=1, cuts=4)
    assert alike[0, 1] > alike[0, 2]
