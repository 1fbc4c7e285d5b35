"""Profiles whose components multiply one another, and stages that wait for a least reward."""

from __future__ import annotations

import pytest

from assay.kit.errors import ConfigError
from assay.reward_server.domain import Fault
from profiles_support import FAKES, Fake, Log, an_item, drive, judged, make, right, scores, wrong

PRODUCT = """
[[profile]]
name = "r1"
description = "Result x (1 + 0.5 x consistency) + 0.5 x form."
main = "result"
[[profile.component]]
name = "result"
verifier = "answer"
[[profile.component]]
name = "consistency"
verifier = "dice"
scale = 2.0
offset = -1.0
weight = 0.5
times = "result"
[[profile.component]]
name = "form"
verifier = "needless"
weight = 0.5
"""
CASCADE = """
[[profile]]
name = "cascade"
description = "Each stage counts where the one before it has three quarters."
[[profile.component]]
name = "built"
verifier = "answer"
[[profile.component]]
name = "works"
verifier = "dice"
when = { component = "built", at_least = 0.75 }
[[profile.component]]
name = "pretty"
verifier = "needless"
when = { component = "works", at_least = 0.75 }
"""
SERVED = {**FAKES, "needless": Fake("needless")}


@pytest.mark.parametrize("result", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("consistency", [0.0, 0.5, 1.0])
def test_r1_rewards_formula(result: float, consistency: float) -> None:
    profile = make(PRODUCT, SERVED)
    answers = {"result": right(result), "consistency": right(consistency), "form": right()}
    judgement = judged(profile, an_item(profile), answers)
    signed = 2 * consistency - 1
    assert judgement.reward == pytest.approx(result * (1 + 0.5 * signed) + 0.5)
    found = scores(judgement)
    assert found["consistency"] == (pytest.approx(signed * result), 0.5)
    assert found["consistency-raw"] == (consistency, 0.0)
    assert (profile.spec.min_reward, profile.spec.max_reward) == (-0.5, 2.0)


@pytest.mark.parametrize("broken", ["result", "consistency", "form"])
def test_a_fault_of_any_factor_is_the_fault_of_the_whole(broken: str) -> None:
    profile = make(PRODUCT, SERVED)
    answers = {name: wrong() for name in ("result", "consistency", "form")}
    answers |= {broken: Fault("ITEM_TIMEOUT", "late")}  # type: ignore[dict-item]
    outcome = drive(profile, an_item(profile), answers)
    assert isinstance(outcome, Fault)
    assert outcome.reason == "ITEM_TIMEOUT"
    assert outcome.metadata["component"] == broken


def test_a_product_without_a_factor_is_left_out() -> None:
    text = PRODUCT.replace('times = "result"', 'times = ["result", "form"]')
    text += 'only_if = "token-count"\n'
    profile = make(text, SERVED)
    answers = {"result": right(), "consistency": right(), "form": right(0.5)}
    without = judged(profile, an_item(profile), answers)
    assert without.reward == 1.0
    assert "consistency" not in scores(without)
    assert scores(without)["consistency-raw"] == (1.0, 0.0)
    item = an_item(profile, response_token_count=5)
    assert judged(profile, item, answers).reward == pytest.approx(1 + 0.5 * 0.5 + 0.5 * 0.5)


def test_the_version_follows_the_factors() -> None:
    plain = make(PRODUCT.replace('times = "result"\n', ""), SERVED)
    assert plain.spec.version != make(PRODUCT, SERVED).spec.version


@pytest.mark.parametrize(
    ("built", "works", "reward", "stages"),
    [(0.7, 1.0, 0.7, 1), (0.75, 0.5, 1.25, 2), (1.0, 0.8, 2.8, 3)],
)
def test_a_later_stage_is_asked_only_where_the_earlier_has_enough(
    built: float, works: float, reward: float, stages: int
) -> None:
    profile = make(CASCADE, SERVED)
    log = Log()
    answers = {"built": right(built), "works": right(works), "pretty": right()}
    judgement = judged(profile, an_item(profile), answers, log)
    assert judgement.reward == pytest.approx(reward)
    assert log.stages == [("built",), ("works",), ("pretty",)][:stages]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PRODUCT.replace('times = "result"', 'times = "resul"'), "did you mean 'result'"),
        (PRODUCT.replace('times = "result"', 'times = "consistency"'), "and not itself"),
        (PRODUCT.replace('times = "result"', 'times = ["form", "form"]'), "component once"),
        (PRODUCT.replace('times = "result"', "times = []"), "'times' is empty"),
        (PRODUCT.replace('times = "result"', "times = 2"), "must be a text or a list"),
        (
            PRODUCT.replace("weight = 0.5\ntimes", "weight = 0.0\noptional = true\ntimes"),
            "leave out 'optional'",
        ),
        (
            PRODUCT.replace('times = "result"', 'times = "form"').removesuffix("0.5\n")
            + "0.0\noptional = true\n",
            "a factor must be judged",
        ),
        (CASCADE.replace("at_least = 0.75", 'at_least = "a"'), "'at_least' must be a number"),
        (CASCADE.replace("at_least = 0.75", 'is = "a", at_least = 1'), "or 'at_least'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        make(text, SERVED)
    assert message in str(error.value)
