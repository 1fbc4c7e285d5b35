"""What the judges' answers cost, by tenant and run, and the budgets that end them.

An answer is paid for once, by whoever asked first. A budget is checked before an engine is asked;
what is in flight is let finish, so an account may end above its budget by that.

Covered: callers without a token, who are one tenant; runs that end in a fault; seconds of requests
that fail or are withdrawn. Not covered: tokens of those; a tenant that names new runs, which its
own budget bounds; other replicas and restarts: accounts are in memory, metrics last.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from pydantic import Field

from assay.genrm.engines.base import TokenCounts
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason
from assay.kit.toml_config import STRICT

MAX_TENANTS = 10_000
MAX_RUNS = 1_000
"""Of a tenant; the run that was idle longest is forgotten for the next one."""
_MILLION = 1e6
Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class BudgetConfig:
    """What may be spent, in the currency of the prices; 0 for no limit."""

    __pydantic_config__ = STRICT

    tenant: Money = 0.0
    """Each tenant, all of its runs together."""
    run: Money = 0.0
    """Each run of a tenant, by the label `run`."""
    tenants: dict[str, Money] = field(default_factory=dict)
    """Instead of `tenant`, for those named here."""
    hours: Money = 0.0
    """All accounts begin anew after so many hours; 0: never, but for a restart."""

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self.tenant or self.run or any(self.tenants.values()))

    def of_tenant(self, tenant: str) -> float:
        """What this tenant may spend; 0 for no limit."""
        return self.tenants.get(tenant, self.tenant)


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for a million tokens read, reused and written, and for an engine's second.

    Attributes:
        cached: of tokens that were reused; None: as `prompt`.
    """

    prompt: float = 0.0
    cached: float | None = None
    completion: float = 0.0
    second: float = 0.0

    def cost(self, tokens: TokenCounts, engine_s: float) -> float:
        """What an answer with these tokens and seconds costs."""
        cached = self.prompt if self.cached is None else self.cached
        fresh = tokens.prompt - tokens.cached
        read = fresh * self.prompt + tokens.cached * cached + tokens.completion * self.completion
        return read / _MILLION + engine_s * self.second


class BusyClock:
    """Shares an engine's busy time out: while n requests are at it, each is charged 1/n.

    One event loop only.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requests = 0
        self._as_of_s = clock()
        self._each_s = 0.0

    def begin(self) -> float:
        """Counts a request in; returns its mark for `end`."""
        self._go_on()
        self._requests += 1
        return self._each_s

    def end(self, mark: float) -> float:
        """Counts the request out; returns its seconds."""
        self._go_on()
        self._requests -= 1
        return self._each_s - mark

    def _go_on(self) -> None:
        now_s = self._clock()
        if self._requests:
            self._each_s += (now_s - self._as_of_s) / self._requests
        self._as_of_s = now_s


@dataclass(slots=True)
class _Account:
    spent: float = 0.0
    runs: OrderedDict[str, float] = field(default_factory=OrderedDict)


class Accounts:
    """What tenants and their runs have spent. Belongs to one event loop."""

    def __init__(self, budget: BudgetConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._budget = budget
        self._clock = clock
        self._began_s = clock()
        self._of: OrderedDict[str, _Account] = OrderedDict()

    def require(self, tenant: str, run: str) -> None:
        """Lets a request be asked, where there is budget left.

        Raises:
            Unjudgeable: BUDGET_SPENT, with whose, the budget and what is spent as metadata.
        """
        if not self._budget.limited:
            return
        account = self._account(tenant)
        for whose, budget, spent in (
            ("tenant", self._budget.of_tenant(tenant), account.spent),
            ("run", self._budget.run, account.runs.get(run, 0.0)),
        ):
            if budget and spent >= budget:
                named = f" {run[:80]!r}" if whose == "run" else ""
                raise Unjudgeable(
                    Reason.BUDGET_SPENT,
                    f"the {whose}{named} has spent {spent:.6g} of a budget of {budget:g}: ask the "
                    "operator for more",
                    {"of": whose, "budget": repr(budget), "spent": repr(spent)},
                )

    def pay(self, tenant: str, run: str, cost: float) -> None:
        """Adds to what a tenant and its run have spent."""
        account = self._account(tenant)
        account.spent += cost
        account.runs[run] = account.runs.get(run, 0.0) + cost
        account.runs.move_to_end(run)
        while len(account.runs) > MAX_RUNS:
            account.runs.popitem(last=False)

    def spent(self, tenant: str) -> Mapping[str, float]:
        """What the runs of a tenant have spent, by run, those paid for last at the end."""
        return dict(self._account(tenant).runs)

    def _account(self, tenant: str) -> _Account:
        hours = self._budget.hours
        if hours and self._clock() - self._began_s >= hours * 3600:
            self._began_s = self._clock()
            self._of.clear()
        account = self._of.setdefault(tenant, _Account())
        self._of.move_to_end(tenant)
        while len(self._of) > MAX_TENANTS:
            self._of.popitem(last=False)
        return account


class Paid(Protocol):
    """Is told what each request took, and cost; None tokens where it has no answer."""

    def __call__(self, tokens: TokenCounts | None, *, engine_s: float, cost: float) -> None:
        """Counts it."""


@dataclass(frozen=True, slots=True)
class CallBill:
    """Pays for the answers that one call has of one model."""

    accounts: Accounts
    prices: Prices
    clock: BusyClock
    tenant: str
    run: str
    paid: Paid

    def require(self) -> None:
        """See `Accounts.require`."""
        self.accounts.require(self.tenant, self.run)

    def begin(self) -> float:
        """See `BusyClock.begin`."""
        return self.clock.begin()

    def settle(self, mark: float, tokens: TokenCounts | None) -> tuple[float, float]:
        """Pays for a request that has ended; returns its seconds and what they and it cost."""
        engine_s = self.clock.end(mark)
        cost = self.prices.cost(tokens or TokenCounts(0), engine_s)
        self.accounts.pay(self.tenant, self.run, cost)
        self.paid(tokens, engine_s=engine_s, cost=cost)
        return engine_s, cost
