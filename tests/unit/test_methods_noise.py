"""Settings and words of method.noise, and the rates that a service says."""

from __future__ import annotations

from typing import Any

import pytest

from assay.api.reward.v1 import reward_pb2
from assay.clients import Judgement
from assay.clients.convert import result_from_proto, server_info_from_proto
from assay.kit.errors import ConfigError
from assay.kit.reliability import ErrorRate, Reliability
from assay.trainer.methods.noise.method import rates_by_task
from assay.trainer.methods.noise.settings import changes_nothing, lines
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config


def make(noise: dict[str, Any], **method: Any) -> Config:
    return configs.build({"method": {"noise": noise, **method}}, (), origin="test")


def share(value: float) -> ErrorRate:
    return ErrorRate(value, 0.0, 1.0, 0.95, 100)


def of(domain: str, positive: float | None, negative: float | None) -> Reliability:
    rates = [None if one is None else share(one) for one in (positive, negative)]
    return Reliability(domain, rates[0], rates[1], "1", "0" * 64, "labels")


@pytest.mark.parametrize(
    ("noise", "says"),
    [
        ({"correction": "backward"}, "needs the verifier's rates of errors; give"),
        (
            {"correction": "backward", "false_positive": 0.6, "false_negative": 0.4},
            "method.noise.false_positive and false_negative: .* sum to 1 or more",
        ),
        (
            {"correction": "backward", "by_suspicion": {"hedged": [0.9, 0.3]}},
            "method.noise.by_suspicion.hedged: .* take another verifier",
        ),
        (
            {"correction": "backward", "by_task": {"hard": [0.0, 1.0]}},
            "method.noise.by_task.hard: .* sum to 1 or more",
        ),
        ({"correction": "backward", "rates": "appeals"}, "needs method.noise.appeals = true"),
        ({"correction": "forward", "false_negative": 0.3}, "a baseline would take the correction"),
        ({"false_negative": 0.3}, "is read only where method.noise.correction is not"),
    ],
)
def test_a_correction_that_cannot_be_is_refused(noise: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make(noise)


def test_explain_says_where_a_correction_changes_nothing() -> None:
    one = {"correction": "backward", "false_negative": 0.3}
    assert changes_nothing(make(one))
    assert "A is as without it" in lines(make(one))[-1]
    for config in (
        make(one, advantage={"scale": "none"}),
        make({**one, "by_suspicion": {"hedged": [0.8, 0.0]}}),
        make({**one, "appeals": True}),
        make(one, shaping={"repetition_ngram": 3}),
        make(one, advantage={"estimator": "gae"}),
    ):
        assert not changes_nothing(config)
    mixed = lines(make({**one, "by_suspicion": {"hedged": [0.8, 0.0]}}))
    assert 'method.advantage.scale = "none" keeps the mean' in mixed[-1]
    assert "(0.8, 0.0) with the suspicion hedged" in mixed[1]


def test_a_tasks_rates_go_before_those_of_all() -> None:
    told = [of("all", 0.1, 0.2), of("hard", 0.0, 0.5)]
    assert rates_by_task(told, {"hard", "easy", ""}, "math", forward=False) == {
        "hard": (0.0, 0.5),
        "easy": (0.1, 0.2),
        "": (0.1, 0.2),
    }


def test_unknown_rates_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"math has no measured rates for the task hard, nor"):
        rates_by_task([of("easy", 0.1, 0.2)], {"hard"}, "math", forward=False)
    with pytest.raises(ConfigError, match="measure them with assay audit, or give"):
        rates_by_task([of("all", None, 0.2)], {""}, "math", forward=False)
    assert rates_by_task([of("all", None, 0.2)], {""}, "math", forward=True) == {"": (0.0, 0.2)}
    with pytest.raises(ConfigError, match=r"math, all: .* sum to 1 or more"):
        rates_by_task([of("all", 0.5, 0.5)], {""}, "math", forward=False)


def test_clients_read_appeals_and_reliability() -> None:
    message = reward_pb2.Result()
    judgement = message.judgement
    judgement.reward, judgement.verdict = 1.0, "correct"
    plain = result_from_proto(message, "a").outcome
    assert isinstance(plain, Judgement)
    assert plain.appeal is None
    appeal = judgement.appeal
    appeal.component, appeal.drawn, appeal.probability = "answer", True, 0.25
    for opinion, name, verdict in (
        (appeal.first, "rule", "incorrect"),
        (appeal.second, "judge", "correct"),
    ):
        opinion.verifier.name, opinion.verdict = name, verdict
        opinion.reward = float(verdict == "correct")
    found = result_from_proto(message, "a").outcome
    assert isinstance(found, Judgement)
    assert found.appeal is not None
    assert found.appeal.second is not None
    assert (found.appeal.first.verifier, found.appeal.second.reward) == ("rule", 1.0)
    assert (found.appeal.drawn, found.appeal.probability) == (True, 0.25)

    server = reward_pb2.ListVerifiersResponse()
    told = server.verifiers.add(name="math").reliability.add(domain="gsm8k", truth="labels")
    told.false_negative.value, told.false_negative.responses = 0.125, 40
    (one,) = server_info_from_proto(server).verifiers[0].reliability
    assert (one.domain, one.false_positive, one.truth) == ("gsm8k", None, "labels")
    assert one.false_negative is not None
    assert (one.false_negative.value, one.false_negative.responses) == (0.125, 40)
