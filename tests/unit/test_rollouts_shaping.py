"""Shaped rewards: each shaper by itself and together, on rollouts that can be checked by hand."""

from __future__ import annotations

import math

import pytest

from assay.clients import Fault, Judgement, Result
from assay.trainer.core.build import scorer
from assay.trainer.core.hooks import hooks_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.shaping.settings import ShapingConfig
from assay.trainer.methods.shaping.shape import Shaped, shape
from assay.trainer.rollouts.types import Rollout
from assay.trainer.settings.config import Config, MethodSettings


def rollout(
    length: int = 10,
    *,
    reward: float = 1.0,
    verdict: str = "correct",
    truncated: bool = False,
    ids: tuple[int, ...] = (),
    fault: bool = False,
) -> Rollout:
    problem = Problem("train-0", "q", (("user", "q"),), "1")
    response = Response(ids or tuple(range(length)), "text", None, truncated)
    outcome = Fault("WORKER_DIED", "it died") if fault else Judgement(reward, verdict)
    return Rollout(Request(Draw(0, problem, (1,)), 0), response, Result("0", outcome), 0)


def shaped(one: Rollout, config: ShapingConfig, most: int) -> Shaped:
    """A judged rollout, from the reward of its judgement."""
    judgement = one.result.judgement
    assert judgement is not None
    return shape(one, judgement.reward, config, most)


def test_without_shapers_the_reward_is_the_judgements() -> None:
    made = shaped(rollout(reward=0.1 + 0.2), ShapingConfig(), 10)
    assert made.reward == 0.1 + 0.2
    assert made.in_loss
    assert made.components == {}


@pytest.mark.parametrize(
    ("length", "penalty"), [(80, 0.0), (84, 0.0), (85, -1 / 16), (92, -0.5), (100, -1.0)]
)
def test_soft_overlong(length: int, penalty: float) -> None:
    config = ShapingConfig(overlong="soft", overlong_cache=16)
    made = shaped(rollout(length, reward=-1.0, verdict="incorrect"), config, 100)
    assert made.reward == -1.0 + penalty
    assert made.components == {"overlong": penalty}
    assert math.copysign(1, made.components["overlong"]) == (-1 if penalty else 1)


def test_overlong_filter_takes_what_was_cut_out_of_the_loss_only() -> None:
    config = ShapingConfig(overlong="filter")
    cut = shaped(rollout(10, truncated=True, reward=0.0, verdict="unparsed"), config, 10)
    assert (cut.reward, cut.in_loss) == (0.0, False)
    assert shaped(rollout(10), config, 10).in_loss
    assert shaped(rollout(10, truncated=True), ShapingConfig(), 10).in_loss


@pytest.mark.parametrize(
    ("length", "verdict", "reward"),
    [
        (1, "correct", 1.0),
        (50, "correct", 0.75),
        (99, "correct", 0.5),
        (1, "incorrect", -1.0),
        (50, "unparsed", -0.75),
        (99, "incorrect", -0.5),
        (100, "correct", -1.0),
        (100, "incorrect", -1.0),
    ],
)
def test_cosine(length: int, verdict: str, reward: float) -> None:
    made = shaped(rollout(length, reward=7.0, verdict=verdict), ShapingConfig(cosine=True), 100)
    assert made.reward == pytest.approx(reward, abs=2e-3)
    assert made.components == {"cosine": made.reward}


def test_repetition_is_the_wrong_ones_penalty() -> None:
    config = ShapingConfig(repetition_ngram=2, repetition_penalty=-2.0)
    ids = (1, 2, 1, 2, 1)  # four pairs, two of them new
    wrong = shaped(rollout(ids=ids, reward=0.0, verdict="incorrect"), config, 10)
    assert (wrong.reward, wrong.components) == (-1.0, {"repetition": -1.0})
    right = shaped(rollout(ids=ids), config, 10)
    assert (right.reward, right.components) == (1.0, {"repetition": 0.0})


def test_shapers_add_up() -> None:
    config = ShapingConfig(
        cosine=True, overlong="soft", overlong_cache=10, repetition_ngram=1, overlong_factor=2.0
    )
    made = shaped(rollout(ids=(5,) * 15, reward=0.0, verdict="incorrect"), config, 20)
    assert set(made.components) == {"cosine", "overlong", "repetition"}
    assert made.components["overlong"] == -1.0
    assert made.components["repetition"] == pytest.approx(-14 / 15)
    assert made.reward == pytest.approx(sum(made.components.values()))


def test_a_fault_stays_without_a_number() -> None:
    """As a run scores it: whatever the shapers, it has no reward and is in no loss."""
    shaping = ShapingConfig(
        cosine=True, overlong="soft", overlong_cache=5, repetition_ngram=1, repetition_penalty=-1
    )
    score = scorer(hooks_of(Config(method=MethodSettings(shaping=shaping))))
    fault, judged = score([(rollout(fault=True), rollout())])
    assert (fault.reward, fault.in_loss, fault.trains) == (None, False, False)
    assert judged.trains
    assert judged.reward not in (None, 1.0), "the shapers are on"
