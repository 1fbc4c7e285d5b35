"""What processes tell one another: numbers of every rollout, tokens of those that move."""

from __future__ import annotations

import pickle
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.clients import Fault, Result
from assay.trainer.engines.types import Request, Response
from assay.trainer.errors import OutageError
from assay.trainer.records.callbacks import StepRecorder
from assay.trainer.rollouts.sharing import (
    at_first,
    dealt,
    pack,
    share,
    spread,
    unpack,
    with_refused,
)
from assay.trainer.rollouts.types import Collected, Known, PolicyTurn, Remote, Rollout, place
from rollouts_collecting_support import ThreadRank, decided_on, on_ranks, result, stream

_TEXTS = st.text(st.characters(codec=None), max_size=20)  # lone surrogates too
_LOGPS = st.floats(max_value=0.0, allow_nan=False) | st.just(float("nan"))
_ROW_BYTES = 64
"""Eight numbers."""


@st.composite
def _rollouts(draw: Any) -> list[Rollout]:
    made = []
    for number in range(draw(st.integers(0, 5))):
        ids = draw(st.lists(st.integers(0, 2**31), min_size=1, max_size=9))
        logprobs = draw(st.none() | st.lists(_LOGPS, min_size=len(ids), max_size=len(ids)))
        outcome = draw(st.sampled_from(["correct", "incorrect", "fault", "outage"]))
        request = Request(stream().draw(number), draw(st.integers(0, 9)))
        told = result(request, outcome)
        turns = (
            PolicyTurn(0, 1, draw(_TEXTS), False, None, told),
            PolicyTurn(1, len(ids), draw(_TEXTS), True, "wrong", None, 0.1, finished=False),
        )
        made.append(
            Rollout(
                request,
                Response(
                    tuple(ids), draw(_TEXTS), logprobs and tuple(logprobs), draw(st.booleans())
                ),
                told,
                draw(st.integers(0, 9)),
                turns[: draw(st.integers(0, 2))],
            )
        )
    return made


@settings(max_examples=200)
@given(_rollouts())
def test_a_rollout_arrives_as_it_left(rollouts: list[Rollout]) -> None:
    came = unpack(pack(rollouts), stream().draw)
    assert repr(came) == repr(rollouts)  # with NaN


def rollouts_of(rank: int, groups: int, size: int, tokens: int) -> list[Rollout]:
    """Whole groups that one process drew; every fifth response is a fault."""
    requests = [
        Request(stream().draw(rank * groups + n), index)
        for n in range(groups)
        for index in range(size)
    ]
    outcomes = ["correct", "incorrect", "correct", "incorrect", "fault"]
    return [
        Rollout(
            request,
            Response((7,) * tokens, "x" * tokens, (-0.5,) * tokens, False),
            result(request, outcomes[(request.draw.number + request.index) % 5]),
            3,
        )
        for request in requests
    ]


def told(rank: ThreadRank, *, tokens: int, groups: int = 3, size: int = 4) -> list[Known]:
    requests = [Request(stream().draw(n), i) for n in range(2 * groups) for i in range(size)]
    return share(rollouts_of(rank.index, groups, size, tokens), requests, rank)


@pytest.mark.parametrize("tokens", [10, 5000])
def test_what_all_are_told_is_a_row_of_numbers_whatever_the_length(tokens: int) -> None:
    def work(rank: ThreadRank) -> int:
        told(rank, tokens=tokens)
        return sum(rank.sent)

    names = 200  # verdicts and reasons, each once
    for sent in on_ranks(2, work):
        assert sent <= 12 * _ROW_BYTES + names
    row = rollouts_of(0, 1, 1, 5000)[0]
    assert len(pickle.dumps((row.response, row.result))) > 500 * _ROW_BYTES, "as it was before"


def test_what_moves_goes_where_it_trains_and_what_does_not_goes_nowhere() -> None:
    def work(rank: ThreadRank) -> tuple[list[int], list[Any], list[Any], list[Any]]:
        known = told(rank, tokens=100)
        groups = [tuple(known[n : n + 4]) for n in range(0, 24, 4)]
        rank.sent.clear()
        stays = dealt(groups, rank)
        assert rank.sent == [], "each trains on what it drew"
        crossed = dealt([groups[3], groups[1], groups[2], groups[5]], rank)
        sent = [*rank.sent]
        return sent, stays, crossed, at_first(groups, rank)

    (sent, stays, crossed, first), (other_sent, others, other_crossed, none) = on_ranks(2, work)
    whole = [tuple(rollouts_of(n // 3, 3, 4, 100)[n % 3 * 4 :][:4]) for n in range(6)]
    assert stays + others == whole == first
    assert none == []
    assert crossed + other_crossed == [whole[3], whole[1], whole[2], whole[5]]
    one_way, other_way = ([len(pack(whole[n]))] for n in (2, 3))
    assert (sent, other_sent) == (one_way, other_way), "one group each way"


def test_what_was_saved_by_any_number_of_processes_is_spread_over_those_that_read_it() -> None:
    whole = [tuple(rollouts_of(0, 1, 4, 9)), tuple(rollouts_of(1, 1, 4, 9))]

    def work(rank: ThreadRank) -> tuple[list[Any], list[Any]]:
        groups = spread(whole, rank)
        return groups, dealt(groups[::-1], rank)

    (first, _), (second, _) = found = on_ranks(2, work)
    assert [dealt_[0] for _, dealt_ in found] == whole[::-1]
    for mine, other, holder in ((first[0], second[0], 0), (second[1], first[1], 1)):
        assert all(isinstance(one, Rollout) for one in mine)
        assert all(isinstance(one, Remote) and one.holder == holder for one in other)
        assert [*map(decided_on, mine)] == [*map(decided_on, other)]


def test_an_outage_on_one_process_ends_the_step_on_all() -> None:
    def work(rank: ThreadRank) -> str:
        requests = [Request(stream().draw(n), 0) for n in range(2)]
        mine = requests[rank.index]
        said = result(mine, "outage" if rank.index else "correct")
        row = Rollout(mine, Response((1,), "", None, False), said, 0)
        with pytest.raises(OutageError) as caught:
            share([row], requests, rank)
        return str(caught.value)

    first, second = on_ranks(2, work)
    assert first == second == "gone for too long; 1 responses have no judgement"


def test_a_judgement_that_one_process_cannot_use_is_a_fault_for_all() -> None:
    fault = Fault("UNUSABLE_SPANS", "spans lie beyond the text", "INTERNAL")

    def work(rank: ThreadRank) -> list[Any]:
        known = told(rank, tokens=5)
        refused = {place(known[13]): Result("", fault)} if rank.index else {}
        return [one.result.fault for one in with_refused(known, refused, rank)]

    first, second = on_ranks(2, work)
    assert first[13] == second[13] == fault
    reasons = [[one and one.reason for one in faults] for faults in (first, second)]
    assert reasons[0] == reasons[1]


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_process_shows_the_samples_of_all_in_the_order_of_their_draws(count: int) -> None:
    def work(rank: ThreadRank) -> list[Any]:
        size = 24 // count
        mine = rollouts_of(rank.index, size // 4, 4, 5)
        requests = [Request(stream().draw(n), index) for n in range(6) for index in range(4)]
        judged = share(mine, requests, rank)
        trainer: Any = SimpleNamespace(
            collected=Collected([], judged[::-1]),
            ranks=rank,
            shaped_rewards={place(one): float(rank.index) for one in mine},
            mean_advantages={},
        )
        return StepRecorder._samples_of(None, 3, trainer)

    first, *others = on_ranks(count, work)
    assert others == [[]] * (count - 1)
    assert [(row["draw"], row["sample"]) for row in first] == [
        (n, index) for n in range(6) for index in range(4)
    ][::-1]
    assert {row["response"] for row in first} == {"xxxxx"}
    assert Counter(row["shaped_reward"] for row in first) == {
        float(n): 24 // count for n in range(count)
    }
