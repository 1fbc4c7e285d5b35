"""Episodes over a scripted engine: tokens, masks, endings, faults, and who waits for whom."""

from __future__ import annotations

import json
import math
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.environments import EpisodeLimits
from assay.environments.types import role_of
from assay.trainer.core.batch import Scored, pad
from assay.trainer.core.build import as_judged
from assay.trainer.engines.engine import StoppedError
from assay.trainer.methods.episodes.columns import role_number, tokens_of
from assay.trainer.methods.episodes.measures import episode_metrics, facts_of
from assay.trainer.rollouts.plain import group_from_plain, group_to_plain
from assay.trainer.rollouts.sharing import pack, unpack
from assay.trainer.rollouts.types import Remote, Rollout
from episodes_support import (
    END,
    Actor,
    Counting,
    Pair,
    Segments,
    breaks,
    codes,
    fresh,
    letters,
    looped,
    requests,
    says,
    waits,
)


def plain(rollouts: list[Rollout]) -> list[Any]:
    """Rollouts without what the clock says."""
    told = []
    for one in rollouts:
        assert one.acted is not None
        turns = [
            (t.start, t.end, t.context, t.agent, t.text, t.calls, t.reward) for t in one.acted.turns
        ]
        told.append((one.request, one.response.ids, one.result.reward, one.acted.ending, turns))
    return told


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_how_long_tools_take_changes_nothing(seed: int) -> None:
    with looped() as loop:
        slow = Actor(loop, fresh(late=waits(seed))).rollouts(requests())
        quick = Actor(loop, fresh()).rollouts(requests())
    assert plain(slow) == plain(quick)


def test_the_tokens_are_those_that_the_engine_drew() -> None:
    with looped() as loop:
        actor = Actor(loop, fresh())
        rollouts = actor.rollouts(requests())
    drawn = {(r.draw.number, r.index, r.turn): r for r in actor.engine.asked}
    for rollout in rollouts:
        assert rollout.acted is not None
        assert rollout.response.logprobs is not None
        row = [*rollout.request.draw.prompt_ids, *rollout.response.ids]
        shift = len(rollout.request.draw.prompt_ids)
        own = set()
        for number, turn in enumerate(rollout.acted.turns):
            asked = drawn[rollout.request.draw.number, rollout.request.index, number]
            assert tuple(row[: turn.start + shift]) == asked.draw.prompt_ids
            assert letters(rollout.response.ids[turn.start : turn.end]) == says(asked)
            own |= set(range(turn.start, turn.end))
        for at, logprob in enumerate(rollout.response.logprobs):
            assert math.isnan(logprob) == (at not in own)
        assert rollout.length == len(own)


def test_masks_and_rewards_of_two_conversations_by_hand() -> None:
    script = {0: "next", 1: "done"}
    with looped() as loop:
        (rollout,) = Actor(loop, Segments, lambda r: script[r.turn]).rollouts(requests(1, 1))
    assert rollout.acted is not None
    begins = codes("[0]<user>memo>")
    question = rollout.request.draw.problem.question
    assert rollout.request.draw.prompt_ids == codes(f"[0]<user>{question}>")
    assert rollout.response.ids == (*codes("next"), END, *begins, *codes("done"), END)
    assert rollout.acted.contexts == (0, 5)
    tokens = tokens_of(rollout.acted, len(rollout.response.ids), 1.0)
    between = len(begins)
    assert tokens.turns == (1,) * 5 + (0,) * between + (2,) * 5
    assert tokens.own == (True,) * 5 + (False,) * between + (True,) * 5
    assert tokens.contexts == (0,) * 5 + (1,) * (between + 5)
    assert tokens.rewards == (0.0,) * 4 + (0.25,) + (0.0,) * (between + 4) + (1.5,)
    assert rollout.result.reward == 1.0


def test_each_agent_has_its_conversation_its_role_and_its_reward() -> None:
    script = {0: "a?", 1: "b", 2: "c?", 3: "over"}
    with looped() as loop:
        (rollout,) = Actor(loop, Pair, lambda r: script[r.turn]).rollouts(requests(1, 1))
    acted = rollout.acted
    assert acted is not None
    assert [turn.agent for turn in acted.turns] == ["proposer", "solver#1"] * 2
    assert [turn.context for turn in acted.turns] == [0, 1, 0, 1]
    tokens = tokens_of(acted, len(rollout.response.ids), 1.0)
    for number, turn in enumerate(acted.turns, start=1):
        assert set(tokens.turns[turn.start : turn.end]) == {number}
        assert set(tokens.roles[turn.start : turn.end]) == {role_number(role_of(turn.agent))}
    ends = [turn.end - 1 for turn in acted.turns]
    assert [tokens.rewards[at] for at in ends] == [0.0, 0.0, 1.0, 0.25]
    assert sum(tokens.rewards) == 1.25


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_judged_and_faulted_are_all_and_every_environment_is_closed(seed: int) -> None:
    with looped() as loop:
        actor = Actor(loop, fresh(late=breaks(seed)))
        collected = actor.collector().collect(0)
    rollouts = collected.held
    assert len(rollouts) == 8 == actor.kind.opened == actor.kind.closed
    items = [as_judged(one) for one in rollouts]
    for item in items:
        ending = item.rollout.acted.ending  # type: ignore[union-attr]
        assert item.trains == (ending == "answered")
        assert (item.reward is None) == (ending == "fault")
    batch = pad(items, pad_id=0, policy_step=0, device=torch.device("cpu"))
    faulted = torch.tensor([item.reward is None for item in items])
    assert not batch["loss_mask"][faulted].any()
    shares = episode_metrics(collected.judged)
    assert shares["episodes_fault"] == faulted.float().mean()
    assert math.isclose(shares["episodes_fault"] + shares["episodes_answered"], 1.0)


@pytest.mark.parametrize("where", ["reset", "turn", "tool", "reward", "close"])
def test_what_raises_is_a_fault_wherever_it_is(where: str) -> None:
    def late(place: str, _row: Any) -> None:
        if place == where:
            raise ArithmeticError("told to")

    with looped() as loop:
        actor = Actor(loop, fresh(late=late), lambda r: "add(2)" if not r.turn else "2")
        (rollout,) = actor.rollouts(requests(1, 1))
    assert actor.kind.closed == 1
    if where == "close":
        assert rollout.result.reward == 1.0
        return
    assert rollout.result.fault is not None
    assert "told to" in rollout.result.fault.message
    assert rollout.response.ids
    assert rollout.length == {"reset": 0, "turn": 9, "tool": 7, "reward": 9}[where]


def test_a_tool_that_hangs_is_cut_by_the_seconds() -> None:
    held = threading.Event()
    with looped() as loop:
        kind = fresh(late=lambda place, _row: held.wait(20) if place == "tool" else None)
        actor = Actor(loop, kind, lambda _r: "add(2)", limits=EpisodeLimits(8, 0.3))
        began = time.monotonic()
        (rollout,) = actor.rollouts(requests(1, 1))
        assert time.monotonic() - began < 10
        held.set()
    assert rollout.acted is not None
    assert rollout.acted.ending == "time-limit"
    assert rollout.result.fault is not None
    assert rollout.result.fault.reason == "EPISODE_CUT"
    assert actor.kind.closed == 1


def test_the_engine_draws_while_a_tool_runs() -> None:
    opened = threading.Event()

    def late(place: str, row: Any) -> None:
        if place == "tool" and row["prompt"] == first.draw.problem.question:
            assert opened.wait(20)

    first, *others = requests(3, 1)

    def script(request: Any) -> str:
        if request.draw.number != first.draw.number and request.turn == 3:
            opened.set()
        return "add(1)" if request.turn < 3 else "3"

    with looped() as loop:
        actor = Actor(loop, fresh(late=late), script)
        rollouts = actor.rollouts([first, *others])
    assert [one.result.reward for one in rollouts] == [1.0] * 3
    waited = next(n for n, ids in enumerate(actor.engine.passes) if (0, 1) in ids)
    assert any((1, 3) in ids or (2, 3) in ids for ids in actor.engine.passes[:waited])


@pytest.mark.parametrize(
    ("setup", "limits", "ending", "turns"),
    [
        ({}, EpisodeLimits(3, 20.0), "turn-limit", 3),
        ({"tokens": 20}, EpisodeLimits(0, 20.0), "token-limit", 3),
        ({"context": 64}, EpisodeLimits(0, 20.0), "token-limit", 2),
    ],
)
def test_budgets_end_an_episode_and_its_reward_counts(
    setup: Any, limits: EpisodeLimits, ending: str, turns: int
) -> None:
    with looped() as loop:
        actor = Actor(loop, fresh(), lambda _r: "add(2)", limits=limits, **setup)
        (rollout,) = actor.rollouts(requests(1, 1))
    assert rollout.acted is not None
    assert (rollout.acted.ending, len(rollout.acted.turns)) == (ending, turns)
    assert rollout.result.reward == 0.0
    assert as_judged(rollout).trains
    assert rollout.response.ids[-1] == rollout.response.ids[rollout.acted.turns[-1].end - 1]
    if "tokens" in setup:
        assert rollout.length <= setup["tokens"]
    if "context" in setup:
        whole = len(rollout.request.draw.prompt_ids) + len(rollout.response.ids)
        assert whole <= setup["context"]


def test_stop_closes_every_environment() -> None:
    held = threading.Event()
    with looped() as loop:
        kind = fresh(late=lambda place, _row: held.wait(20) if place == "tool" else None)
        actor = Actor(loop, kind, lambda _r: "add(2)")
        threading.Timer(0.2, actor.engine.stop).start()
        with pytest.raises(StoppedError):
            actor.rollouts(requests(2, 2))
        held.set()
    assert kind.closed == kind.opened == 4


def test_checkpoints_and_other_processes_get_the_whole_episode() -> None:
    with looped() as loop:
        rollouts = Actor(loop, fresh()).rollouts(requests(1, 3))
    group, draw = tuple(rollouts), requests(1, 1)[0].draw
    saved = json.loads(json.dumps(group_to_plain(group)))
    again = group_from_plain(saved, lambda _number: draw)
    sent = unpack(pack(group), lambda _number: draw)
    for one, two, three in zip(group, again, sent, strict=True):
        for other in (two, three):
            assert np.array_equal(one.response.logprobs, other.response.logprobs, equal_nan=True)  # type: ignore[arg-type]
            assert other.request == one.request
            assert other.acted == one.acted
            assert other.response.ids == one.response.ids


def test_metrics_are_the_same_from_other_processes() -> None:
    with looped() as loop:
        rollouts = Actor(loop, fresh()).rollouts(requests())
    remote = [
        Remote(one.request, one.result, 0, one.length, False, 1, facts_of(one)) for one in rollouts
    ]
    assert episode_metrics(rollouts) == episode_metrics(remote)
    told = episode_metrics(rollouts)
    calls = sum(turn.calls for one in rollouts for turn in one.acted.turns)  # type: ignore[union-attr]
    assert told["episodes_calls"] == calls / len(rollouts)


def test_one_draw_may_be_answered_twice_at_a_time() -> None:
    """As fillers of a round are."""
    (one,) = requests(1, 1)
    with looped() as loop:
        actor = Actor(loop, fresh())
        first, second = actor.rollouts([one, requests(1, 1)[0]])
    assert plain([first]) == plain([second])
    assert actor.kind.opened == actor.kind.closed == 2
    assert actor.episodes._lives == {}


def test_few_seats_are_enough_for_many_episodes() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def late(place: str, _row: Any) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1

    with looped(2) as loop:
        rollouts = Actor(loop, fresh(Counting, late)).rollouts(requests(6, 2))
    assert most <= 2
    assert all(one.result.fault is None for one in rollouts)
    assert isinstance(as_judged(rollouts[0]), Scored)
