"""What judges cost: every second of an engine is somebody's, and a budget ends what it must."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.genrm import accounts
from assay.genrm.accounts import Accounts, BudgetConfig, BusyClock, CallBill, Prices
from assay.genrm.engines.base import TokenCounts
from assay.kit.faults import Unjudgeable

MONEY = st.floats(0, 1e6)
COUNTS = st.integers(0, 10**7)


class Hands:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 100)), max_size=40),
    st.lists(st.integers(0, 5), min_size=6, max_size=6),
)
def test_every_busy_second_is_charged_once(
    steps: list[tuple[int, float]], order: list[int]
) -> None:
    """Requests come and go in any order; what they are charged adds up to the busy time."""
    hands = Hands()
    clock = BusyClock(hands)
    marks: dict[int, float] = {}
    charged: list[float] = []
    busy_s = 0.0
    for request, passed_s in steps:
        if request in marks:
            charged.append(clock.end(marks.pop(request)))
        else:
            marks[request] = clock.begin()
        hands.now_s += passed_s
        busy_s += passed_s if marks else 0.0
    charged += [clock.end(marks[one]) for one in sorted(marks, key=order.__getitem__)]
    assert all(seconds >= 0 for seconds in charged)
    assert math.fsum(charged) == pytest.approx(busy_s, rel=1e-9, abs=1e-9)


LIMITS = st.sampled_from([0.25, 1.0, 1.5, 4.0])
PRICES = st.builds(Prices, MONEY, st.none(), MONEY, MONEY)


@given(COUNTS, st.floats(0, 1), COUNTS, st.floats(0, 1e5), PRICES)
def test_a_cost_is_its_parts(
    prompt: int, share: float, written: int, engine_s: float, prices: Prices
) -> None:
    tokens = TokenCounts(prompt, int(prompt * share), written)
    cost = prices.cost(tokens, engine_s)
    for_tokens = (prompt * prices.prompt + written * prices.completion) / 1e6
    assert cost == pytest.approx(for_tokens + engine_s * prices.second)
    cheaper = replace(prices, cached=0.0).cost(tokens, engine_s)
    assert cheaper <= cost + 1e-9 * abs(cost)
    assert Prices().cost(tokens, engine_s) == 0.0


@given(
    LIMITS,
    LIMITS,
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.5]))),
)
def test_who_asks_before_each_answer_ends_above_a_budget_by_one_answer_at_most(
    of_tenant: float, of_run: float, costs: list[tuple[int, float]]
) -> None:
    kept = Accounts(BudgetConfig(tenant=of_tenant, run=of_run))
    spent = [0.0, 0.0, 0.0]
    for run, cost in costs:
        refused = sum(spent) >= of_tenant or spent[run] >= of_run
        if refused:
            with pytest.raises(Unjudgeable) as fault:
                kept.require("a", str(run))
            assert fault.value.reason == "BUDGET_SPENT"
            whose = fault.value.metadata["of"]
            so_far = sum(spent) if whose == "tenant" else spent[run]
            assert float(fault.value.metadata["spent"]) == pytest.approx(so_far)
        else:
            kept.require("a", str(run))
            kept.pay("a", str(run), cost)
            spent[run] += cost
    kept.require("b", "0")  # another tenant has its own


def test_a_tenant_may_have_a_budget_of_its_own() -> None:
    kept = Accounts(BudgetConfig(tenant=1.0, tenants={"rich": 10.0, "free": 0.0}))
    for tenant in ("rich", "free", "other"):
        kept.pay(tenant, "", 5.0)
    kept.require("rich", "")
    kept.require("free", "")
    with pytest.raises(Unjudgeable, match="the tenant has spent 5 of a budget of 1"):
        kept.require("other", "")


def test_accounts_begin_anew_after_their_hours() -> None:
    hands = Hands()
    kept = Accounts(BudgetConfig(tenant=1.0, hours=2.0), hands)
    kept.pay("a", "", 1.0)
    hands.now_s = 7199.0
    with pytest.raises(Unjudgeable):
        kept.require("a", "")
    hands.now_s = 7200.0
    kept.require("a", "")


def test_a_tenant_that_makes_up_runs_forgets_its_own_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MAX_RUNS", 3)
    kept = Accounts(BudgetConfig(tenant=100.0, run=1.0))
    kept.pay("calm", "r", 2.0)
    kept.pay("wild", "r", 2.0)
    for number in range(3):
        kept.pay("wild", f"made up {number}", 1.0)
    kept.require("wild", "r")  # forgotten, but the tenant has paid for it
    assert len(kept.spent("wild")) == 3
    with pytest.raises(Unjudgeable):
        kept.require("calm", "r")
    kept.pay("wild", "r", 95.0)
    with pytest.raises(Unjudgeable, match="the tenant"):
        kept.require("wild", "new")


def test_a_request_without_an_answer_pays_for_its_seconds() -> None:
    hands, told = Hands(), []

    def paid(tokens: TokenCounts | None, *, engine_s: float, cost: float) -> None:
        told.append((tokens, engine_s, cost))

    kept = Accounts(BudgetConfig())
    bill = CallBill(kept, Prices(prompt=1e6, second=2.0), BusyClock(hands), "a", "r", paid)
    mark = bill.begin()
    hands.now_s = 3.0
    assert bill.settle(mark, None) == (3.0, 6.0)
    assert told == [(None, 3.0, 6.0)]
    assert kept.spent("a") == {"r": 6.0}
