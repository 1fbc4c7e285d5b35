"""Forced rethinking (VL-Rethinker, arXiv 2504.08837): who goes on, what stays, what trains."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.trainer.core.batch import Scored, own_tokens, pad, token_rewards
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Draw, Request, Response, Sampling
from assay.trainer.methods.rethinking.method import Rethink, rethinking_metrics
from assay.trainer.methods.rethinking.settings import RethinkingConfig
from assay.trainer.methods.rethinking.talk import Rethinking
from assay.trainer.rollouts.exchange import held
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.settings import config as configs
from assay.trainer.settings.objective import LossConfig
from rollouts_collecting_support import problems
from rollouts_slots_support import Numbers

LIMIT, END, TRIGGERS = 9, 1, ((50, 51), (52,))


def talk(share: float = 0.6, keep: Any = "correct", room: int = 1) -> Rethinking:
    return Rethinking(
        RethinkingConfig(share, keep=keep, room=room), TRIGGERS, repr, {END}, LIMIT, seed=0
    )


def written(request: Request) -> Response:
    """The begun response, and what comes of it, by the draw, the sample and the turn."""
    begun = request.begun.ids if request.begun else ()
    chance = random.Random(f"{request.draw.number}-{request.index}-{request.turn}")
    more = [chance.randrange(2, 9) for _ in range(chance.randrange(1, 7))]
    ids = (*begun, *more, END)
    return Response(ids, "", (-0.5,) * len(ids), False)


class Round:
    """Judges by the tokens; some fault."""

    def __init__(self) -> None:
        self.seen: list[Response] = []

    def submit(self, request: Request, response: Response) -> None:
        assert request.begun is None
        assert response.text == " ".join(map(str, response.ids)), "the whole text"
        self.seen.append(response)

    def results(self) -> list[Result]:
        return [Result("", outcome(response)) for response in self.seen]


def outcome(response: Response) -> Judgement | Fault:
    kind = sum(response.ids) % 5
    if kind == 0:
        return Fault("SANDBOX_LOST", "gone")
    return Judgement(float(kind > 2), "correct" if kind > 2 else "incorrect")


def samples(one: Rethinking, count: int = 60) -> list[Rollout]:
    requests = [
        Request(Draw(number, problems(1)[0], (7,)), index)
        for number in range(count // 4)
        for index in range(4)
    ]
    sampler = Sampler(ScriptedEngine(written, tokenizer=Numbers()), Sampling(LIMIT))
    return held(sampler, requests, Round(), one)


def plain(rollout: Rollout) -> Response:
    """What the sample is without rethinking."""
    said = written(Request(rollout.request.draw, rollout.request.index))
    return Response(said.ids[:LIMIT], "", said.logprobs, len(said.ids) > LIMIT)


@pytest.mark.parametrize("keep", ["correct", "all"])
def test_what_went_on_holds_the_attempt_a_trigger_and_more(keep: Any) -> None:
    one = talk(keep=keep)
    kept = [rollout for rollout in samples(one) if rollout.turns]
    assert kept
    for rollout in kept:
        ids, before = rollout.response.ids, plain(rollout).ids
        first, second = rollout.turns
        assert ids[: first.end] == before[:-1], "all but its end"
        assert ids[first.end : second.start] in TRIGGERS
        assert second.start < second.end == len(ids) <= LIMIT
        assert [first.result, second.result] == rollout.results
        assert rollout.result == second.result
        logprobs = rollout.response.logprobs
        assert logprobs is not None
        own = own_tokens(Scored(rollout, 0.0))
        assert [not math.isnan(logp) for logp in logprobs] == own
        assert rollout.length == sum(own)
    if keep == "correct":
        assert {rollout.result.judgement.verdict for rollout in kept} == {"correct"}  # type: ignore[union-attr]


def test_what_is_not_kept_is_what_it_was_before() -> None:
    one = talk()
    others = [rollout for rollout in samples(one) if not rollout.turns]
    tried = [one.begun(rollout.request, rollout.response) is not None for rollout in others]
    assert any(tried)
    assert not all(tried)
    for rollout in others:
        assert rollout.response.ids == plain(rollout).ids
        assert rollout.result.outcome == outcome(rollout.response)


def test_no_share_and_no_room_leave_every_sample_as_it_was() -> None:
    without = [rollout.response for rollout in samples(talk(share=0.0))]
    assert [rollout.response for rollout in samples(talk(share=1.0, room=LIMIT))] == without
    assert any(rollout.turns for rollout in samples(talk(share=1.0)))


@given(share=st.floats(0, 1), room=st.integers(1, 4))
def test_more_of_a_share_go_on_and_the_same_among_them(share: float, room: int) -> None:
    few, all_ = talk(share, room=room), talk(1.0, room=room)
    for number in range(20):
        request = Request(Draw(number, problems(1)[0], (7,)), 0)
        attempt = written(request)
        told = few.begun(request, attempt)
        assert told in (None, all_.begun(request, attempt))
        if told is not None:
            assert len(told.ids) + room <= LIMIT


def test_metrics_are_of_those_that_went_on() -> None:
    facts = [(1, 1, 0, 1), (1, 0, 0, 0), (1, 0, 1, 0), (1, 1, 1, 1), (0, 0, 1, 0), (0, 0, 0, 0)]
    assert rethinking_metrics(facts) == {
        "rethinking_tried": pytest.approx(4 / 6),
        "rethinking_kept": 0.5,
        "rethinking_corrected": 0.5,
        "rethinking_lost": 0.5,
    }
    assert rethinking_metrics([(0, 0, 1, 0)]) == {"rethinking_tried": 0.0}
    assert rethinking_metrics([]) == {}


def test_a_trigger_trains_nothing_and_the_reward_lies_behind_it() -> None:
    method = {"rethinking": {"share": 0.5}, "advantage": {"estimator": "gae"}}
    hook = Rethink(configs.build({"method": method}, origin="test"))
    items = [
        Scored(one, judgement.reward if judgement else None)
        for one in samples(talk(), 24)
        for judgement in [one.result.judgement]
    ]
    padded = pad(items, pad_id=0, policy_step=0, device=torch.device("cpu"))
    batch = hook.mark(padded, items, Collected([], []))
    assert batch["own"].sum() < padded["own"].sum()
    rewards_BT = token_rewards(batch, LossConfig(), [hook])
    for row, item in enumerate(items):
        length = len(item.rollout.response.ids)
        own = torch.tensor(own_tokens(item))
        assert batch["own"][row, :length].equal(own)
        assert not batch["own"][row, length:].any()
        assert batch["loss_mask"][row, :length].equal(own & (item.reward is not None))
        assert batch["value_mask"].equal(batch["loss_mask"])
        assert float(rewards_BT[row, length - 1]) == (item.reward or 0.0)
        assert float(rewards_BT[row].sum()) == (item.reward or 0.0)
    # values in front of a trigger hear of what is behind it
    [estimate] = [hook.returns(batch)]
    values_BT = torch.rand(rewards_BT.shape, generator=torch.Generator().manual_seed(0))
    advantages_BT, _ = estimate(rewards_BT, values_BT, batch["own"], lam_actor=1.0)
    expected_BT = torch.where(batch["own"], rewards_BT.sum(1, keepdim=True) - values_BT, 0.0)
    torch.testing.assert_close(advantages_BT, expected_BT)
