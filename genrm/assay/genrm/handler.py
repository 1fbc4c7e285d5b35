"""The items of the judges: what is to be done for one, and how it is run, written and counted.

The pool of a model holds what waits for it, bounded and fair between calls, and puts a bounded
number of items to work; the engine batches their requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.genrm import results
from assay.genrm.domain import Run
from assay.genrm.driving import RequestBatcher, drive
from assay.genrm.engines.base import EngineError
from assay.genrm.metrics import KINDS, JudgeMetrics
from assay.genrm.models import ServedModel
from assay.kit.batch.coroutines import CoroutineJob, CoroutinePool
from assay.kit.batch.items import PendingItem
from assay.kit.batch.service import ItemHandler
from assay.kit.batch.spans import Details
from assay.kit.faults import Unjudgeable
from assay.kit.metrics import OTHER
from assay.kit.trails import Stretch


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What is to be done for one item.

    Attributes:
        model: who is asked; None where nobody is.
        run: the judge, not begun.
        fill: writes what it came to into the item's result.
    """

    model: ServedModel | None
    run: Run[Any]
    fill: Callable[[Any, Any], None]

    @property
    def model_name(self) -> str:
        """Who is asked, by name; empty where nobody is."""
        return self.model.name if self.model else ""


@dataclass(eq=False, slots=True)
class PendingJudgement(PendingItem):
    """One item on its way to its result.

    Attributes:
        plan: what is to be done; None for an item that is wrong.
        asks: the call's requests.
        asked: what its run asked the engine when, where there is a trace to show it.
    """

    plan: PlannedRun | None = None
    asks: RequestBatcher | None = None
    asked: list[Stretch] | None = None

    async def drive(self) -> Any:
        """Drives the run to what it returns.

        Raises:
            Unjudgeable: the judge has none, or a request of its no answer.
        """
        self.started_s = time.monotonic()
        if self.plan is None or self.asks is None:
            raise ValueError("the item has no plan")
        try:
            return await drive(self.plan.run, self.asks, self.asked)
        except EngineError as trouble:
            raise Unjudgeable(trouble.reason, trouble.message, trouble.metadata) from trouble


class JudgeHandler(ItemHandler[PendingJudgement]):
    """Runs items in the pool of their model.

    Args:
        metrics: counts judgements.

    Attributes:
        pools: by the name of the model; that of runs that ask nobody has none.
    """

    def __init__(self, metrics: JudgeMetrics) -> None:
        self.pools: dict[str, CoroutinePool] = {}
        self._metrics = metrics

    pending = PendingJudgement

    def pool_of(self, item: PendingJudgement) -> CoroutinePool | None:
        """The pool of its model."""
        return None if item.plan is None else self.pools[item.plan.model_name]

    def job(self, item: PendingJudgement, lane: object) -> CoroutineJob:
        """Its run."""
        return CoroutineJob(lane, item.size_bytes, item.drive)

    def fill(self, result: Any, item: PendingJudgement) -> None:
        """Writes what the judge made of it."""
        if item.plan is not None:
            item.plan.fill(result, item.outcome)

    def shorten(self, result: Any) -> None:
        """Leaves out votes' texts, reasons and critiques; the numbers stay."""
        results.strip_texts(result)

    def who(self, item: PendingJudgement) -> str:
        """The name of its model."""
        return item.plan.model_name if item.plan else ""

    def count(self, item: PendingJudgement, who: str, result: Any) -> None:
        """Counts it by its kind."""
        del result
        self._metrics.judged(who, _kind(item))

    def details(self, item: PendingJudgement, result: Any) -> Details:
        """Its kind, and what its run asked."""
        del result
        facts = {} if item.faulted else {"assay.kind": _kind(item)}
        return Details(facts, tuple(item.asked or ()))


def _kind(item: PendingJudgement) -> str:
    return KINDS.get(type(item.outcome), OTHER)
