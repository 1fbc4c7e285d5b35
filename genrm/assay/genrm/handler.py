"""Items of judges for the batch service: how one is run, written and counted.

Each model has a bounded pool, fair between calls; the engine batches the requests of its items.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.clients.judging.rubrics import RubricJudgement
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

LARGE_BYTES = 1 << 17
"""Items that are larger are worked on beside the event loop."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What is to be done for one item.

    Attributes:
        model: who is asked; None where nobody is.
        run: the judge, not begun.
        fill: writes its outcome into the item's result.
    """

    model: ServedModel | None
    run: Run[Any]
    fill: Callable[[Any, Any], None]

    @property
    def model_name(self) -> str:
        """Empty where nobody is asked."""
        return self.model.name if self.model else ""


@dataclass(eq=False, slots=True)
class PendingJudgement(PendingItem):
    """One item on its way to its result.

    Attributes:
        plan: None for an item that is wrong.
        asks: the call's requests.
        asked: spans of its run's requests, where there is a trace to show them.
    """

    plan: PlannedRun | None = None
    asks: RequestBatcher | None = None
    asked: list[Stretch] | None = None

    async def drive(self) -> Any:
        """Drives the run to what it returns.

        Raises:
            Unjudgeable: by the judge, or because a request has no answer.
        """
        self.started_s = time.monotonic()
        if self.plan is None or self.asks is None:
            raise ValueError("the item has no plan")
        try:
            is_large = self.size_bytes > LARGE_BYTES
            return await drive(self.plan.run, self.asks, self.asked, is_large=is_large)
        except EngineError as error:
            raise Unjudgeable(error.reason, error.message, error.metadata) from error


class JudgeHandler(ItemHandler[PendingJudgement]):
    """Runs items in the pool of their model.

    Attributes:
        pools: by the model's name; "" for runs that ask nobody.
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
        """Writes the judgement."""
        if item.plan is not None:
            item.plan.fill(result, item.outcome)

    def shorten(self, result: Any) -> None:
        """Leaves out votes' texts, reasons and critiques."""
        results.strip_texts(result)

    def who(self, item: PendingJudgement) -> str:
        """The model's name."""
        return item.plan.model_name if item.plan else ""

    def count(self, item: PendingJudgement, who: str, result: Any) -> None:
        """Counts it by its kind."""
        del result
        self._metrics.judged(
            who,
            _kind(item),
            getattr(item.outcome, "verdict_mass", None),
            getattr(item.outcome, "letter_gap", None),
        )
        self._metrics.disagreed(who, getattr(item.outcome, "disagreement", None))
        if isinstance(item.outcome, RubricJudgement):
            self._metrics.criteria(who, item.outcome.criteria)

    def details(self, item: PendingJudgement, result: Any) -> Details:
        """Its kind, and what its run asked."""
        del result
        facts = {} if item.faulted else {"assay.kind": _kind(item)}
        return Details(facts, tuple(item.asked or ()))


def _kind(item: PendingJudgement) -> str:
    return KINDS.get(type(item.outcome), OTHER)
