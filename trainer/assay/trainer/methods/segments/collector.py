"""Rollouts whose states are valued by continuing from them: SPO-chain (arXiv 2505.23564).

When a step's responses are there and judged, each is cut (algos.segments), and from every cut the
policy writes some more responses to the end. They are judged by the services as any response is,
and count for nothing but the value of the state that they began in: they are in no loss and no mean
of rewards, and metrics of their own say how many they were. Those without a judgement count where a
run stops for its faults (`reward.max_fault_ratio`), as any sample does.

1. States that are alike, the same tokens behind the same draw, are valued once: the prompt itself
   is one state for all of its samples.
2. A continuation without a judgement is in no mean. A state without a judged continuation has no
   value, and the segments that begin or end there leave the loss.
3. A response that is itself without a judgement leaves the loss, and is not continued from.
4. Continuations have random numbers of their own (rollouts.seeded): those of the turn
   1 + cut * continuations + number, which no response of one turn uses. So a resumed run repeats
   them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.clients import Result
from assay.trainer.algos.segments import cut_points, segment_advantages, value_of
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.segments.settings import SegmentsConfig
from assay.trainer.rollouts.exchange import Exchange
from assay.trainer.rollouts.sharing import share_results
from assay.trainer.rollouts.types import (
    Collected,
    Group,
    Place,
    Ranks,
    Rollout,
    Rows,
    ScoringRound,
    Source,
    Then,
    nothing_more,
    place,
)

State = tuple[int, tuple[int, ...]]
"""Number of a draw, and the tokens behind its prompt."""


@dataclass(frozen=True, slots=True)
class SegmentTokens:
    """The T tokens of a response in segments (SPO, arXiv 2505.23564).

    Attributes:
        advantages: of each token, its segment's; NaN where a value at an end is not known.
        trained: whether the token may be in the loss.
    """

    advantages: tuple[float, ...]
    trained: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A response with the places where it is cut."""

    rollout: Rollout
    places: tuple[int, ...]

    def state(self, at: int) -> State:
        """What stands before a place."""
        return self.rollout.request.draw.number, self.rollout.response.ids[:at]


class SegmentCollector:
    """Collects the groups of one step after another, with the advantages of their segments.

    Args:
        inner: collects responses of one turn, whole ones, with their sampler's log-probabilities.
        sampler: the policy.
        open_round: begins the judging of continuations, each by itself.
        config: how responses are cut, and how often they are continued.
        ranks: the processes.
        clock: seconds.
    """

    def __init__(
        self,
        inner: Source,
        sampler: Sampler,
        open_round: Callable[[], ScoringRound],
        *,
        config: SegmentsConfig,
        ranks: Ranks,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._inner = inner
        self._sampler = sampler
        self._open_round = open_round
        self._config = config
        self._ranks = ranks
        self._clock = clock

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """The groups of the next step. If it raises, the collector is as it was before the call.

        Args:
            policy_step: optimizer steps that the policy has made.
            then: called with them; may raise too.

        Raises:
            TrainingStoppedError: the generator told no log-probabilities; or as the inner one.
            ConfigError: a prompt does not fit the policy's context.
        """

        def value(collected: Collected) -> None:
            self._value(collected)
            then(collected)

        return self._inner.collect(policy_step, value)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, in plain containers."""
        return self._inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where a collector with the same data was.

        Raises:
            ConfigError: the data is not the same.
        """
        self._inner.load_state_dict(state)

    def _value(self, collected: Collected) -> None:
        """Adds advantages of segments, metrics and seconds to what was collected."""
        cuts = cut(collected.groups, self._config)
        asked = continuations(cuts, self._config.continuations)
        began = self._clock()
        answered, results, waited = self._continued([one for _, one in asked])
        rewards: dict[State, list[float]] = {state: [] for state, _ in asked}
        for (state, _), result in zip(asked, results, strict=True):
            if result.judgement is not None:
                rewards[state].append(result.judgement.reward)
        values = {state: value_of(told) for state, told in rewards.items()}
        collected.continued = share_results(results, self._ranks)
        collected.notes["segments"] = segments(cuts, values, self._config)
        mine = (
            len(asked),
            sum(
                len(one.ids) - len(state[1])
                for (state, _), one in zip(asked, answered, strict=True)
            ),
            sum(result.judgement is None for result in results),
            len(values),
            sum(map(math.isnan, values.values())),
            sum(len(one.places) for one in cuts),
            len(cuts),
        )
        collected.metrics |= told_metrics(self._ranks.gather(np.array([mine], np.float64)))
        collected.generate_s += self._clock() - began - waited
        collected.wait_s += waited

    def _continued(self, asked: Sequence[Request]) -> tuple[list[Response], list[Result], float]:
        """Responses that began at the cuts, their results, and the seconds that these took."""
        exchange = Exchange(asked, self._open_round())
        self._sampler.serve(exchange.first(), exchange.follow)
        before = self._clock()
        held = exchange.rollouts(0)
        waited = self._clock() - before
        return [one.response for one in held], [one.result for one in held], waited


def cut(groups: Sequence[Group], config: SegmentsConfig) -> list[Cut]:
    """The judged responses of groups with their cuts. Pure.

    Raises:
        TrainingStoppedError: a response came without log-probabilities.
    """
    cuts = []
    for rollout in (one for group in groups for one in group):
        if rollout.result.judgement is None:
            continue
        if rollout.response.logprobs is None:
            raise TrainingStoppedError(
                'method.advantage.estimator = "segments" cuts where the policy was not sure, '
                "and the generator told no log-probabilities"
            )
        probs = [math.exp(logp) for logp in rollout.response.logprobs]
        places = cut_points(probs, threshold=config.threshold, every=config.unsure_per_segment)
        cuts.append(Cut(rollout, tuple(places)))
    return cuts


def continuations(cuts: Sequence[Cut], count: int) -> list[tuple[State, Request]]:
    """What to ask for: each state's continuations, one state after the other, each once. Pure.

    Args:
        cuts: responses.
        count: continuations of a state.
    """
    states: dict[State, tuple[Rollout, int]] = {}
    for one in cuts:
        for at in one.places:
            states.setdefault(one.state(at), (one.rollout, at))
    return [
        (state, continued(rollout, at, 1 + at * count + number))
        for state, (rollout, at) in states.items()
        for number in range(count)
    ]


def continued(rollout: Rollout, at: int, turn: int) -> Request:
    """The request to go on from a place of a response, with the random numbers of a turn. Pure."""
    request, whole = rollout.request, rollout.response
    begun = Response(
        ids=whole.ids[:at],
        text="",
        logprobs=None if whole.logprobs is None else whole.logprobs[:at],
        truncated=False,
        finished=False,
    )
    return Request(request.draw, request.index, begun if at else None, turn=turn)


def segments(
    cuts: Sequence[Cut], values: Mapping[State, float], config: SegmentsConfig
) -> dict[Place, SegmentTokens]:
    """The advantages of responses, and which of their tokens train. Pure.

    Args:
        cuts: judged responses.
        values: of all their states, NaN where not known.
        config: whether only tokens that the policy was not sure of train.
    """
    found: dict[Place, SegmentTokens] = {}
    for one in cuts:
        judgement, response = one.rollout.result.judgement, one.rollout.response
        end = math.nan if judgement is None else judgement.reward
        known = [values[one.state(at)] for at in one.places]
        trained = (True,) * len(response.ids)
        if config.mask_sure:
            limit = math.log(config.threshold)
            trained = tuple(logp < limit for logp in response.logprobs or ())
        advantages = segment_advantages(len(response.ids), one.places, known, end)
        found[place(one.rollout)] = SegmentTokens(tuple(advantages), trained)
    return found


def told_metrics(told: Rows) -> dict[str, float]:
    """The counts of all processes by name. Pure.

    Args:
        told: of each process: continuations, their tokens, those without a judgement, states,
            states without a value, segments, responses.
    """
    count, tokens, faults, states, unknown, segments_, responses = told.sum(axis=0).tolist()
    metrics = {
        "continuations": count,
        "continuation_tokens": tokens,
        "valued_states": states - unknown,
        "valueless_states": unknown,
    }
    if count:
        metrics["continuation_faults"] = faults / count
    if responses:
        metrics["segments_per_response"] = segments_ / responses
    return metrics
