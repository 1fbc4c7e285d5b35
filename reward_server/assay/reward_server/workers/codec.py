"""The jobs of the reward server: their frames, and the fault of each way a job ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from assay.kit.pool import frames
from assay.kit.pool.jobs import End, Job
from assay.kit.pool.pool import WorkerPool
from assay.reward_server import border
from assay.reward_server.domain import VERIFIER_FAILED, Fault, Outcome, VerifierItem, VerifierSpec
from assay.reward_server.workers import wire

DRAINING = "DRAINING"
_JUDGE = b"J"


class Task(NamedTuple):
    """An item, and the verifier that judges it."""

    spec: VerifierSpec
    item: VerifierItem


class Parcel(NamedTuple):
    """Items of one batch whose quick work a worker does, in one frame."""

    tasks: Sequence[Task]


class Glanced(NamedTuple):
    """What a worker made of one item of a parcel; None: it left it open."""

    outcome: Outcome | None
    execution_s: float


ScoreJob: TypeAlias = Job[Task | Parcel, Outcome | Sequence[Glanced]]
ScorePool: TypeAlias = WorkerPool[Task | Parcel, Outcome | Sequence[Glanced]]


class ScoreCodec:
    """Items to frames, answers to outcomes."""

    def encode(self, task: Task | Parcel) -> tuple[bytes, bytes]:
        """The frame of an item, or of a parcel."""
        if not isinstance(task, Task):
            return _JUDGE, wire.pack_parcel(task.tasks)
        body = {"verifier": task.spec.name, "item": wire.pack_item(task.item, task.spec)}
        return _JUDGE, wire.pack(body, wire.MAX_JOB_BYTES)

    def decode(self, task: Task | Parcel, payload: bytes) -> Outcome | Sequence[Glanced]:
        """The outcomes that a worker sent, each checked against its verifier's spec."""
        body = frames.read_object(payload)
        if isinstance(task, Task):
            return border.checked(task.spec, wire.outcome_from_json(body))
        looks = wire.looks_from_json(body, len(task.tasks))
        return [
            Glanced(None if outcome is None else border.checked(spec, outcome), execution_s)
            for (spec, _), (outcome, execution_s) in zip(task.tasks, looks, strict=True)
        ]

    def fault(self, job: ScoreJob, end: End, detail: str) -> Fault:
        """Why an item was not judged; of a parcel, why it was lost."""
        task = job.task
        facts = {"verifier": task.spec.name} if isinstance(task, Task) else {}
        if end in _WHAT_DIED:
            return Fault("WORKER_DIED", _WHAT_DIED[end], facts)
        if end is End.EXPIRED:
            text = f"not judged within {job.timeout_s:g} s of execution"
            return Fault("ITEM_TIMEOUT", text, facts)
        if end is End.UNREADABLE:
            return Fault(VERIFIER_FAILED, f"the worker's answer cannot be read: {detail}")
        return _FAULTS[end]


_WHAT_DIED = {
    End.DIED: "the process that judged the item died",
    End.UNTAKEN: "no worker lived long enough to take the item",
    End.LOST: "the machine that judged the item was lost, and so was the one that tried it again",
}
_FAULTS = {
    End.EXHAUSTED: Fault(VERIFIER_FAILED, "the verifier ran out of memory on this item"),
    End.UNSENDABLE: Fault("ITEM_TOO_LARGE", "the item is too large for a worker"),
    End.FAILED: Fault("INTERNAL", "the worker pool failed on this item"),
    End.DRAINING: Fault(DRAINING, "the server stopped before the item was judged"),
}
