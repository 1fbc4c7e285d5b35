"""The jobs of the sandbox as items: how one is admitted, run, written, counted and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.api.execution.v1 import execution_pb2
from assay.kit.batch.answers import Room
from assay.kit.batch.items import PendingItem
from assay.kit.batch.service import ItemHandler
from assay.kit.batch.spans import Details
from assay.kit.durations import seconds_of
from assay.kit.faults import ItemFault, Unjudgeable
from assay.kit.reasons import Reason
from assay.kit.trails import Fact
from assay.sandbox.config import MAX_JOB_BYTES
from assay.sandbox.languages import Toolchains
from assay.sandbox.metrics import ENDS, RunMetrics
from assay.sandbox.results import strip_outputs
from assay.sandbox.workers import kinds
from assay.sandbox.workers.codec import RunDone, RunJob, RunPool, Task

AnyJob = execution_pb2.ExecutionJob | execution_pb2.TestJob


@dataclass(eq=False, slots=True)
class PendingRun(PendingItem):
    """One job on its way to its result.

    Attributes:
        room: what the call's answer may still hold.
        kind: of its frame: a program, or tests.
        payload: of its frame, until it is done.
        language: of the program, by the name that is served; empty where it is not.
    """

    room: Room = field(default_factory=Room)
    kind: bytes = b""
    payload: bytes = b""
    language: str = ""


class RunHandler(ItemHandler[PendingRun]):
    """Runs jobs in the supervisors of a pool.

    Args:
        pool: runs them.
        toolchains: the languages that are served.
        metrics: counts what they come to.
    """

    noun = "job"
    late = ItemFault(Reason.DEADLINE_EXCEEDED, "the call's deadline came before the job was done")
    no_room = (
        "the answer of this call has no room for the job's output: send fewer jobs in one "
        "call, or lower limits.output_bytes"
    )

    def __init__(self, pool: RunPool, toolchains: Toolchains, metrics: RunMetrics) -> None:
        self._pool = pool
        self._toolchains = toolchains
        self._metrics = metrics

    pending = PendingRun

    def admit(self, item: PendingRun, message: AnyJob) -> None:
        """Reads a job.

        Raises:
            Unjudgeable: UNKNOWN_LANGUAGE or ITEM_TOO_LARGE.
        """
        item.language = self._toolchains.get(message.program.language)[0].name
        payload = message.SerializeToString()
        if len(payload) > MAX_JOB_BYTES:
            raise Unjudgeable(
                Reason.ITEM_TOO_LARGE,
                f"the job has {len(payload)} bytes, the limit is {MAX_JOB_BYTES}",
            )
        executes = isinstance(message, execution_pb2.ExecutionJob)
        item.kind = kinds.EXECUTE if executes else kinds.TESTS
        item.payload = payload

    def pool_of(self, item: PendingRun) -> RunPool:
        """The one pool."""
        del item
        return self._pool

    def job(self, item: PendingRun, lane: object) -> RunJob:
        """Its frame."""
        return self._pool.job(lane, Task(item.kind, item.payload), size_bytes=len(item.payload))

    def outcome(self, item: PendingRun, done: RunDone) -> bytes | ItemFault:
        """The bytes of its result, as far as the answer has room for them.

        They are weighed as they come: what the jobs of one call wrote never lies here all at once.
        """
        item.payload = b""
        outcome = done.outcome
        if isinstance(outcome, ItemFault) or item.room.take(len(outcome)):
            return outcome
        if item.kind == kinds.TESTS:
            result = execution_pb2.TestJobResult.FromString(outcome)
            self.shorten(result)
            outcome = result.SerializeToString()
            if item.room.take(len(outcome)):
                return outcome
        return ItemFault(Reason.MESSAGE_TOO_LARGE, self.no_room)

    def fill(self, result: Any, item: PendingRun) -> None:
        """Writes what the supervisor answered."""
        result.MergeFromString(item.outcome)

    def shorten(self, result: Any) -> None:
        """Leaves out the outputs behind tests; a program's own output is what was asked for."""
        if isinstance(result, execution_pb2.TestJobResult):
            strip_outputs(result.report)

    def who(self, item: PendingRun) -> str:
        """Its language."""
        return item.language

    def count(self, item: PendingRun, who: str, result: Any) -> None:
        """Counts it by how it ended."""
        if isinstance(result, execution_pb2.ExecutionResult):
            self._metrics.ran(who, result.execution)
        else:
            self._metrics.tested(who, result.report)

    def details(self, item: PendingRun, result: Any) -> Details:
        """How it ended, and what its runs took."""
        if item.faulted:
            return Details()
        if isinstance(result, execution_pb2.ExecutionResult):
            run = result.execution
            return Details({"assay.end": ENDS[run.end_kind], **_used([run.usage])})
        report = result.report
        facts: dict[str, Fact] = {
            "assay.compile_failed": report.compile_failed,
            "assay.tests": len(report.outcomes),
            "assay.tests.passed": report.passed_count,
        }
        return Details(facts | _used([outcome.execution.usage for outcome in report.outcomes]))


def _used(runs: Sequence[execution_pb2.Usage]) -> dict[str, Fact]:
    """What the programs themselves took; the rest of an execution is compiling and comparing."""
    return {
        "assay.runs.wall_s": sum(seconds_of(usage.wall_time) for usage in runs),
        "assay.runs.cpu_s": sum(seconds_of(usage.cpu_time) for usage in runs),
    }
