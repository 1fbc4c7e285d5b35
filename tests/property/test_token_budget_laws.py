"""Batches by tokens: what waits trains later, once, and a step is nearly full."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.token_budget.budget import TokenBudget
from assay.trainer.rollouts.types import KnownGroup, Place, Rollout, place

MOST = 12


def drawn(number: int, index: int, length: int, *, faulted: bool) -> Rollout:
    request = Request(Draw(number, Problem(f"p{number}", "q", (), "r"), (1,)), index)
    outcome = Fault("WORKER_DIED", "it died") if faulted else Judgement(1.0, "correct")
    return Rollout(
        request, Response((0,) * length, "", None, truncated=False), Result("", outcome), 0
    )


one_group = st.lists(st.tuples(st.integers(1, MOST), st.booleans()), min_size=3, max_size=3)


@given(
    st.lists(one_group, min_size=1, max_size=8), st.integers(MOST, 3 * MOST), st.integers(1, 4),
    st.booleans(),
)  # fmt: skip
def test_each_judged_response_trains_once_in_order_and_steps_are_full_where_anything_waits(
    told: list[list[tuple[int, bool]]], tokens: int, prompts: int, resumed: bool
) -> None:
    stream: list[KnownGroup] = [
        tuple(drawn(n, i, length, faulted=faulted) for i, (length, faulted) in enumerate(group))
        for n, group in enumerate(told)
    ]
    judged = [one for group in stream for one in group if one.result.judgement is not None]
    keeper, trained = TokenBudget(tokens), list[Place]()
    while stream or keeper.due():
        if resumed:  # a checkpoint between any two steps changes nothing
            state = keeper.state_dict(list)  # type: ignore[arg-type]
            keeper = TokenBudget(tokens)
            keeper.load_state_dict(state, list)  # type: ignore[arg-type]
        due = keeper.due()
        assert len(due) <= prompts
        groups = [*due, *stream[: prompts - len(due)]]
        stream = stream[prompts - len(due) :]
        out = keeper.left_out(groups)
        now = [
            one
            for group in groups
            for one in group
            if one.result.judgement is not None and place(one) not in out
        ]
        spent = sum(one.length for one in now)
        waits = keeper.metrics(0)["budget_waiting"]
        assert spent <= tokens
        assert not waits or spent > tokens - MOST
        assert keeper.metrics(0)["budget_fill"] == spent / tokens
        trained += [place(one) for one in now]
        keeper.keep(groups)
    assert trained == [place(one) for one in judged]
    assert set(Counter(trained).values()) <= {1}


def test_what_another_keeper_replaced_does_not_wait() -> None:
    keeper = TokenBudget(4)
    first, second, other = (
        (drawn(n, 0, 4, faulted=False), drawn(n, 1, 4, faulted=False)) for n in range(3)
    )
    keeper.left_out([first, second])
    keeper.keep([first, second])
    assert keeper.due() == [first, second]
    keeper.left_out([other, second])  # a replay in the place of the first
    keeper.keep([first, second])
    assert keeper.due() == [second]
