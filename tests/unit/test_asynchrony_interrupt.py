"""Responses under way go on under the weights of each step as it begins (AReaL)."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.methods.asynchrony.background import BackgroundCollector, DrawSchedule
from assay.trainer.rollouts.types import Collected, OneRank
from assay.trainer.settings import config as configs
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import result, stream

LENGTH = 6
WAIT_S = 20


@dataclass
class Judges:
    """Of whatever is said."""

    requests: list[Request] = field(default_factory=list)

    def submit(self, request: Request, _response: Response) -> None:
        self.requests.append(request)

    def results(self) -> list[object]:
        return [result(request, "correct") for request in self.requests]


class Policy:
    """Weights that are a number, and responses of six tokens whose log-probabilities name them.

    The thread waits before the fourth token of the second batch, until it is told to go on.
    """

    def __init__(self) -> None:
        self.now = 0
        self.worn = -1
        self.there, self.on = threading.Event(), threading.Event()
        self.engine = ScriptedEngine(self._script)
        self.sampler = Sampler(self.engine, Sampling(LENGTH))

    def copied(self) -> int:
        return self.now

    def wear(self, weights: int) -> None:
        self.worn = weights

    def _script(self, request: Request) -> Response:
        if request.draw.number == 1 and len(self.engine.passes) == LENGTH + 4:
            self.there.set()
            assert self.on.wait(WAIT_S)
        return Response((5,) * LENGTH, "5", (-1.0 - self.worn,) * LENGTH, truncated=True)


def steps(policy: Policy, *, interrupt: bool) -> list[Collected]:
    """Two steps, of one response each; the second is under way when its step begins."""
    source = BackgroundCollector(
        stream(),
        policy.sampler,
        Judges,  # type: ignore[arg-type]
        engine=policy.engine,
        weights=policy,
        schedule=DrawSchedule(steps=2, updates=1, max_staleness=1, portion=1, interrupt=interrupt),
        config=RolloutConfig(prompts_per_step=1, group_size=1, max_new_tokens=LENGTH),
        ranks=OneRank(),
    )
    with closing(source):
        first = source.collect(0)
        assert policy.there.wait(WAIT_S)
        policy.now = 1
        flight = source.begin(1)
        policy.on.set()
        return [first, source.finished(flight, 1)]


def told(one: Collected) -> list[float]:
    [[rollout]] = one.groups
    return [-1.0 - logp for logp in rollout.response.logprobs or ()]


def test_every_token_keeps_the_weights_that_drew_it_and_none_is_lost() -> None:
    first, second = steps(Policy(), interrupt=True)
    assert told(first) == [0] * LENGTH
    assert told(second) == [0, 0, 0, 1, 1, 1] or told(second) == [0, 0, 0, 0, 1, 1]
    assert (first.metrics["interruptions"], second.metrics["interruptions"]) == (0, 1)
    assert second.metrics["staleness"] == 1, "of its first tokens"


def test_without_interruption_a_batch_is_of_one_version() -> None:
    _, second = steps(Policy(), interrupt=False)
    assert told(second) == [0] * LENGTH
    assert "interruptions" not in second.metrics


@pytest.mark.parametrize("mode", ["off", "periodic"])
def test_it_goes_with_bounded_alone(mode: str) -> None:
    settings = [f"method.asynchrony.mode={mode}", "method.asynchrony.interrupt=true"]
    with pytest.raises(
        ConfigError,
        match=r"interrupt = true is read only where method\.asynchrony\.mode is ",
    ):
        configs.build({}, [*settings, "optim.micro_batch=8"], origin="test")
