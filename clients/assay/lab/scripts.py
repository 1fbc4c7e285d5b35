"""What a reward server does wrong, as data; and the server that does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.api.reward.v1 import reward_pb2
from assay.clients.testing import FakeRewardServer, Knobs
from assay.clients.types import Fault, Judgement
from assay.lab.steps import ROWS, Groups

_UNTRUE = ("fault_ids", "nan_ids", "drop_ids", "duplicate_ids", "recant_ids")


@dataclass(frozen=True, slots=True)
class Script:
    """One way to fail.

    Attributes:
        says: for a table, what the server does.
        knobs: it does it by; items are called by the names of rows.
    """

    says: str
    knobs: Knobs


def _rows(*names: str) -> frozenset[str]:
    return frozenset(names)


SCRIPTS = {
    "clean": Script("judges every row", Knobs()),
    "fault": Script("one row is a fault", Knobs(fault_ids=_rows("a3"))),
    "faults": Script("a row of each group is a fault", Knobs(fault_ids=_rows("a3", "b2"))),
    "lone": Script("all of a group but one are faults", Knobs(fault_ids=_rows("a1", "a2", "a4"))),
    "group": Script("a whole group is faults", Knobs(fault_ids=_rows("a1", "a2", "a3", "a4"))),
    "nan": Script("a reward is NaN", Knobs(nan_ids=_rows("a3"))),
    "partial": Script("the answer lacks a row", Knobs(drop_ids=_rows("a3"))),
    "twice": Script("a row is judged twice, differently", Knobs(duplicate_ids=_rows("a3"))),
    "recanted": Script("a judgement, then a fault of the row", Knobs(recant_ids=_rows("a3"))),
    "stray": Script("results that nobody asked for", Knobs(unknown_results=2)),
    "reordered": Script("results in another order", Knobs(shuffle=True)),
    "late": Script("every answer takes its time", Knobs(delay_s=0.2)),
    "unavailable": Script("two calls are refused", Knobs(unavailable=2)),
    "full": Script("two calls find the queue full", Knobs(queue_full=2)),
    "internal": Script("a call fails", Knobs(internal=1)),
    "hang": Script("a call is never answered", Knobs(hang=1)),
    "restart": Script("restarts within the batch", Knobs(restart=1)),
    "gone": Script("dies within the batch", Knobs(die=1)),
}


@dataclass
class ScriptedRewardServer(FakeRewardServer):
    """A real server that judges the rows of a batch, and fails by its knobs.

    Attributes:
        rows: what it judges.
        judged: names of rows for which a judgement that can be believed was sent.
    """

    rows: Groups = field(default_factory=lambda: [ROWS])
    judged: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__post_init__()
        known = {row.response: row for group in self.rows for row in group}

        def judge(item: reward_pb2.Item) -> Judgement | Fault:
            row = known[item.response.strip()]
            return Judgement(row.reward, "judged", verifier="exact", version="1")

        self.judge = judge
        self.name_of = lambda item: known[item.response.strip()].name

    async def _answer(self, items: Sequence[reward_pb2.Item]) -> list[reward_pb2.Result]:
        results = await super()._answer(items)
        untrue = frozenset[str]().union(*(getattr(self.knobs, knob) for knob in _UNTRUE))
        self.judged |= {self.name_of(item) for item in items} - untrue
        return results
