"""Segments (SPO, arXiv 2505.23564): where they lie, what they earn, and what faults do to them."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.trainer.algos.segments import cut_points, segment_advantages, value_of
from assay.trainer.engines.engine import Follow, Id, Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.segments.collector import SegmentCollector
from assay.trainer.methods.segments.method import NAME
from assay.trainer.methods.segments.settings import SegmentsConfig
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.types import Collected, OneRank, place
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import on_ranks, stream
from rollouts_slots_support import Numbers

PROBS = st.lists(st.floats(0.01, 1.0), min_size=1, max_size=40)
LIMIT, END = 7, 1


@given(probs=PROBS, every=st.integers(1, 6), threshold=st.sampled_from([0.3, 0.9, 1.0]))
def test_segments_hold_equally_many_unsure_tokens(
    probs: list[float], every: int, threshold: float
) -> None:
    cuts = cut_points(probs, threshold=threshold, every=every)
    unsure = [place for place, prob in enumerate(probs) if prob < threshold]
    assert set(cuts) <= set(unsure)
    assert cuts[:1] == unsure[:1], "the first is a cut"
    bounds = [*cuts, len(probs)]
    held = [
        sum(start <= one < stop for one in unsure)
        for start, stop in zip(cuts, bounds[1:], strict=True)
    ]
    assert held[:-1] == [every] * (len(held) - 1)
    assert sum(held) == len(unsure)
    assert all(1 <= count <= every for count in held)


@given(probs=PROBS, data=st.data())
def test_advantages_of_segments_add_up_to_what_the_response_gained(
    probs: list[float], data: st.DataObject
) -> None:
    cuts = cut_points(probs, every=2)
    values = data.draw(st.lists(st.floats(-1, 1), min_size=len(cuts), max_size=len(cuts)))
    end = data.draw(st.floats(-1, 1))
    advantages = segment_advantages(len(probs), cuts, values, end)
    assert len(advantages) == len(probs)
    assert sum(advantages[cut] for cut in cuts) == pytest.approx(
        end - values[0] if cuts else 0, abs=1e-9
    )
    assert advantages[: cuts[0] if cuts else None] == [0.0] * (cuts[0] if cuts else len(probs))


@given(probs=PROBS, data=st.data())
def test_a_value_that_is_not_known_takes_its_two_segments_and_no_other(
    probs: list[float], data: st.DataObject
) -> None:
    cuts = cut_points(probs, every=1)
    known = data.draw(st.lists(st.booleans(), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    values = [0.5 if yes else math.nan for yes in known]
    advantages = segment_advantages(len(probs), cuts, values[:-1], values[-1])
    for number, cut in enumerate(cuts):
        assert math.isnan(advantages[cut]) == (not (known[number] and known[number + 1]))


def test_nothing_is_worth_nothing_that_nobody_judged() -> None:
    assert math.isnan(value_of([]))
    assert value_of([1.0, -1.0, 1.0, 1.0]) == 0.5


# The collector, with a policy that goes on at random and judges that fault.


def written(request: Request) -> tuple[int, ...]:
    """What comes behind what has begun: of the draw, the sample, the turn and the place."""
    first = len(request.begun.ids) if request.begun else 0
    seed = f"{request.draw.number}-{request.index}-{request.turn}-{first}"
    chance = random.Random(seed)
    length = chance.randrange(1, LIMIT - first + 1)
    ids = [chance.randrange(2, 6) for _ in range(length)]
    return (*ids[:-1], END) if chance.random() < 0.7 else tuple(ids[:length])


def logprob(ids: tuple[int, ...], at: int) -> float:
    """Of a token in its place; of a half of them the policy is sure."""
    return math.log(random.Random(f"{ids[: at + 1]}").choice([0.95, 0.5]))


class Policy(Sampler):
    def __init__(self, *, fails_at: int = -1, tells: bool = True) -> None:
        self.fails_at = fails_at
        self.tells = tells
        self.asked: list[list[Request]] = []
        super().__init__(ScriptedEngine(self._script, tokenizer=Numbers()), Sampling(LIMIT))

    def serve(
        self, first: Iterable[tuple[Id, Request]], follow: Follow, arrivals: Any = None
    ) -> None:
        first = list(first)
        self.asked.append([request for _, request in first])
        if len(self.asked) - 1 == self.fails_at:
            raise RuntimeError("told to")
        super().serve(first, follow, arrivals)

    def _script(self, request: Request) -> Response:
        ids = (*(request.begun.ids if request.begun else ()), *written(request))
        told = tuple(logprob(ids, at) for at in range(len(ids)))
        return Response(ids, "", told if self.tells else None, False)


def judged(response: Response, fault_rate: float, number: int) -> Judgement | Fault:
    chance = random.Random(f"{response.ids}-{number}")
    if chance.random() < fault_rate:
        return Fault("SANDBOX_LOST", "gone")
    right = sum(response.ids) % 2 == 0
    return Judgement(1.0 if right else -1.0, "correct" if right else "incorrect")


@dataclass
class Round:
    fault_rate: float
    seen: list[tuple[Request, Response]] = field(default_factory=list)

    def submit(self, request: Request, response: Response) -> None:
        assert request == Request(request.draw, request.index), "as any response"
        assert response.finished
        self.seen.append((request, response))

    def results(self) -> list[Result]:
        return [
            Result(str(n), judged(one, self.fault_rate, request.draw.number))
            for n, (request, one) in enumerate(self.seen)
        ]


def made(
    policy: Policy,
    *,
    fault_rate: float = 0.0,
    later: float | None = None,
    ranks: Any = None,
    **settings: Any,
) -> SegmentCollector:
    """`later` is the rate of faults of continuations."""
    ranks = ranks or OneRank()
    inner = Collector(
        stream(), policy, lambda: Round(fault_rate),
        config=RolloutConfig(prompts_per_step=4, group_size=2, max_new_tokens=LIMIT),
        ranks=ranks,
    )  # fmt: skip
    rate = fault_rate if later is None else later
    config = SegmentsConfig(**{"unsure_per_segment": 1, "continuations": 3, **settings})
    return SegmentCollector(inner, policy, lambda: Round(rate), config=config, ranks=ranks)


def facts(collected: Collected) -> dict[tuple[int, int], Any]:
    told = collected.notes[NAME].items()
    return {name: (repr(one.advantages), one.trained) for name, one in told}


@pytest.mark.parametrize("fault_rate", [0.0, 0.4])
def test_a_state_is_worth_the_mean_of_its_judged_continuations(fault_rate: float) -> None:
    policy = Policy()
    collected = made(policy, fault_rate=fault_rate).collect(0)
    _, continued = policy.asked
    # by hand: what came of each state
    rewards: dict[tuple[int, tuple[int, ...]], list[float]] = defaultdict(list)
    faults = 0
    for request in continued:
        begun = request.begun.ids if request.begun else ()
        whole = Response((*begun, *written(request)), "", None, False)
        outcome = judged(whole, fault_rate, request.draw.number)
        told = rewards[request.draw.number, begun]
        if isinstance(outcome, Judgement):
            told.append(outcome.reward)
        else:
            faults += 1
    for group in collected.groups:
        for rollout in group:
            ids = rollout.response.ids
            if rollout.result.judgement is None:
                assert place(rollout) not in collected.notes[NAME], (
                    "a fault is continued from nowhere"
                )
                continue
            found = collected.notes[NAME][place(rollout)]
            cuts = [n for n in range(len(ids)) if logprob(ids, n) < math.log(0.9)]
            assert found.trained == tuple(n in cuts for n in range(len(ids)))
            known = [value_of(rewards[rollout.request.draw.number, ids[:cut]]) for cut in cuts]
            expected = segment_advantages(len(ids), cuts, known, rollout.result.judgement.reward)
            assert repr(found.advantages) == repr(tuple(expected))
    metrics = collected.metrics
    assert metrics["continuations"] == len(continued) == 3 * len(rewards), "each state once"
    assert metrics["continuation_tokens"] == sum(len(written(one)) for one in continued)
    assert metrics["continuation_faults"] == pytest.approx(faults / len(continued))
    told_faults = [one for one in collected.continued if one.judgement is None]
    assert (len(collected.continued), len(told_faults)) == (len(continued), faults)
    assert collected.results == [*(one.result for one in collected.judged), *collected.continued]
    assert metrics["valued_states"] + metrics["valueless_states"] == len(rewards)
    assert metrics["valueless_states"] == sum(not told for told in rewards.values())
    assert len(collected.judged) == 8, "continuations are no rollouts of the step"


def test_continuations_have_random_numbers_of_their_own() -> None:
    policy = Policy()
    made(policy).collect(0)
    first, continued = policy.asked
    names = [(one.draw.number, one.index, one.turn) for one in (*first, *continued)]
    assert len(set(names)) == len(names)


def test_where_all_continuations_fault_nothing_is_made_up() -> None:
    """Rewards are there, and every segment has an end whose value nobody knows."""
    collected = made(Policy(), later=1.0).collect(0)
    assert collected.notes[NAME]
    for found in collected.notes[NAME].values():
        known = [a for a, yes in zip(found.advantages, found.trained, strict=True) if yes]
        assert all(map(math.isnan, known))
    assert collected.metrics["continuation_faults"] == 1
    assert collected.metrics["valued_states"] == 0


def test_without_the_mask_every_token_may_train() -> None:
    collected = made(Policy(), mask_sure=False).collect(0)
    assert all(all(found.trained) for found in collected.notes[NAME].values())


def said(result: Result) -> tuple[Any, ...]:
    return result.reward, result.fault and result.fault.reason


def test_several_processes_value_as_one_does() -> None:
    one = made(Policy()).collect(0)
    two = on_ranks(2, lambda rank: made(Policy(), ranks=rank).collect(0))
    assert facts(two[0]) | facts(two[1]) == facts(one)
    first, second, expected = (Counter(map(said, run.results)) for run in (*two, one))
    assert first == second == expected, "each process stops where the others do"
    for name in ("continuations", "continuation_tokens", "valued_states", "segments_per_response"):
        assert two[0].metrics[name] == two[1].metrics[name] == one.metrics[name]


def test_a_step_that_failed_and_a_run_that_was_resumed_go_on_as_if_nothing_were() -> None:
    plain = made(Policy())
    first, second = plain.collect(0), plain.collect(1)
    failing = made(Policy(fails_at=1))
    with pytest.raises(RuntimeError, match="told to"):
        failing.collect(0)
    assert facts(failing.collect(0)) == facts(first)
    resumed = made(Policy())
    resumed.load_state_dict(failing.state_dict())
    assert facts(resumed.collect(1)) == facts(second)


def test_a_sampler_that_tells_no_log_probabilities_is_told_of() -> None:
    with pytest.raises(TrainingStoppedError, match="gave no log-probabilities"):
        made(Policy(tells=False)).collect(0)
