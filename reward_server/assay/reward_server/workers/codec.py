"""The jobs of the reward server: an item's frame, and the fault of each way a job ends."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from assay.kit.pool import frames
from assay.kit.pool.jobs import End, Job
from assay.kit.pool.pool import WorkerPool
from assay.reward_server import border
from assay.reward_server.domain import VERIFIER_FAILED, Fault, Outcome, VerifierItem, VerifierSpec
from assay.reward_server.workers import wire

_JUDGE = b"J"


class Task(NamedTuple):
    """An item, and the verifier that judges it."""

    spec: VerifierSpec
    item: VerifierItem


ScoreJob: TypeAlias = Job[Task, Outcome]
ScorePool: TypeAlias = WorkerPool[Task, Outcome]


class ScoreCodec:
    """Items to frames, answers to outcomes."""

    def encode(self, task: Task) -> tuple[bytes, bytes]:
        """The frame of an item."""
        body = {"verifier": task.spec.name, "item": wire.item_to_json(task.item)}
        return _JUDGE, wire.pack(body, wire.MAX_JOB_BYTES)

    def decode(self, task: Task, payload: bytes) -> Outcome:
        """The outcome that a worker sent, checked against the verifier's spec."""
        return border.checked(task.spec, wire.outcome_from_json(frames.read_object(payload)))

    def fault(self, job: ScoreJob, end: End, detail: str) -> Fault:
        """Why an item was not judged."""
        facts = {"verifier": job.task.spec.name}
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
    End.DRAINING: Fault("DRAINING", "the server stopped before the item was judged"),
}
