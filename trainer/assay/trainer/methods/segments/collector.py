"""Rollouts whose states are valued by continuing from them: SPO-chain (arXiv 2505.23564).

A step's judged responses are cut (algos.segments), and the policy writes further responses from
every cut to the end. The services judge these; they only value the state they began in, are in no
loss and no mean of rewards, and have metrics of their own. Those without a judgement count towards
`reward.max_fault_ratio`.

1. Equal states, the same tokens after the same draw, are valued once: the prompt is one state for
   all of its samples.
2. Continuations without a judgement are in no mean. Segments that begin or end at a state without a
   judged continuation leave the loss.
3. A response without a judgement leaves the loss, and is not continued.
4. Continuations have random numbers of their own (rollouts.seeded), those of the turn 1 + cut *
   continuations + number, so that a resumed run repeats them.
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
"""Number of a draw, and the tokens after its prompt."""


@dataclass(frozen=True, slots=True)
class SegmentTokens:
    """The T tokens of a response in segments (SPO, arXiv 2505.23564).

    Attributes:
        advantages: of each token's segment; NaN where a value at an end is unknown.
        trained: whether the token may be in the loss.
    """

    advantages: tuple[float, ...]
    trained: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A response and the places where it is cut."""

    rollout: Rollout
    places: tuple[int, ...]

    def state(self, at: int) -> State:
        """The state before a place."""
        return self.rollout.request.draw.number, self.rollout.response.ids[:at]


class SegmentCollector:
    """Collects the groups of one step after another, with the advantages of their segments.

    Args:
        inner: collects whole responses of one turn, with log-probabilities.
        open_round: begins the judging of continuations, each by itself.
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
        """See Source.

        Raises:
            TrainingStoppedError: the generator gave no log-probabilities; or as the inner one.
        """

        def value(collected: Collected) -> None:
            self._value(collected)
            then(collected)

        return self._inner.collect(policy_step, value)

    def state_dict(self) -> dict[str, Any]:
        """See Source."""
        return self._inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See Source."""
        self._inner.load_state_dict(state)

    def _value(self, collected: Collected) -> None:
        cuts = cut(collected.groups, self._config)
        asked = continuations(cuts, self._config.continuations)
        began = self._clock()
        answered, results, waited = self._continued([one for _, one in asked])
        rewards: dict[State, list[float]] = {state: [] for state, _ in asked}
        for (state, _), result in zip(asked, results, strict=True):
            if result.judgement is not None:
                rewards[state].append(result.judgement.reward)
        values = {state: value_of(earned) for state, earned in rewards.items()}
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
        collected.metrics |= segment_metrics(self._ranks.gather(np.array([mine], np.float64)))
        collected.generate_s += self._clock() - began - waited
        collected.wait_s += waited

    def _continued(self, asked: Sequence[Request]) -> tuple[list[Response], list[Result], float]:
        """Responses from the cuts, their results, and the seconds spent."""
        exchange = Exchange(asked, self._open_round())
        exchange.answered_by(self._sampler)
        before = self._clock()
        held = exchange.rollouts(0)
        waited = self._clock() - before
        return [one.response for one in held], [one.result for one in held], waited


def cut(groups: Sequence[Group], config: SegmentsConfig) -> list[Cut]:
    """The judged responses with their cuts. Pure.

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
                "and the generator gave no log-probabilities"
            )
        probs = [math.exp(logp) for logp in rollout.response.logprobs]
        places = cut_points(probs, threshold=config.threshold, every=config.unsure_per_segment)
        cuts.append(Cut(rollout, tuple(places)))
    return cuts


def continuations(cuts: Sequence[Cut], count: int) -> list[tuple[State, Request]]:
    """The requests for `count` continuations of each state, state by state. Pure."""
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
    """The request to continue a response from a place, with a turn's random numbers. Pure."""
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
    """The advantages of judged responses, and which of their tokens train. Pure.

    `values` holds all their states, NaN where unknown.
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


def segment_metrics(counts: Rows) -> dict[str, float]:
    """The counts of all processes by name. Pure.

    Each row: continuations, their tokens, those without a judgement, states, states without a
    value, segments, responses.
    """
    count, tokens, faults, states, unknown, segments_, responses = counts.sum(axis=0).tolist()
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
