"""The sandbox's jobs in the kit's pool: their frames, and the fault of each end."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from assay.kit.faults import ItemFault
from assay.kit.pool.jobs import Done, End, Job
from assay.kit.pool.pool import WorkerPool
from assay.kit.reasons import Reason


class SupervisorTask(NamedTuple):
    """A job as a supervisor takes it: its kind, one of `kinds`, and its body."""

    kind: bytes
    body: bytes


RunJob: TypeAlias = Job[SupervisorTask, bytes]
RunDone: TypeAlias = Done[bytes]
RunPool: TypeAlias = WorkerPool[SupervisorTask, bytes]


class RunCodec:
    """Tasks and answers are bytes already."""

    def encode(self, task: SupervisorTask) -> tuple[bytes, bytes]:
        """As it is."""
        return task.kind, task.body

    def decode(self, task: SupervisorTask, payload: bytes) -> bytes:
        """As it is; parsed when it is written into the call's answer."""
        del task
        return payload

    def fault(self, job: RunJob, end: End, detail: str) -> ItemFault:
        """Why a job was not run."""
        del job
        if end is End.UNREADABLE:
            text = f"the supervisor's answer cannot be read: {detail}"
            return ItemFault(Reason.INTERNAL, text)
        return _FAULTS.get(end, _DEFECT)


_DEFECT = ItemFault(Reason.INTERNAL, "the pool failed on this job")
_FAULTS = {
    End.DIED: ItemFault(Reason.WORKER_DIED, "the process that ran the program for us died"),
    End.LOST: ItemFault(
        Reason.WORKER_DIED,
        "the machine that ran the program was lost, and so was the one that tried it again",
    ),
    End.UNTAKEN: ItemFault(Reason.WORKER_DIED, "no worker lived long enough to begin the job"),
    End.UNSENDABLE: ItemFault(Reason.ITEM_TOO_LARGE, "the job is too large for a supervisor"),
    End.DRAINING: ItemFault(Reason.DRAINING, "the server stopped before the job was done"),
}
