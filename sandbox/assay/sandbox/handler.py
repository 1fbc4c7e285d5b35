"""The sandbox's jobs as items of the batch service."""

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
from assay.sandbox.workers.codec import RunDone, RunJob, RunPool, SupervisorTask

AnyJob = execution_pb2.ExecutionJob | execution_pb2.TestJob


@dataclass(eq=False, slots=True)
class PendingRun(PendingItem):
    """One job without a result yet.

    Attributes:
        room: what the call's answer may still hold.
        kind: a program, or tests (`workers.kinds`).
        payload: the job's bytes, until it is done.
        language: the served name; empty where it is not served.
    """

    room: Room = field(default_factory=Room)
    kind: bytes = b""
    payload: bytes = b""
    language: str = ""


class RunHandler(ItemHandler[PendingRun]):
    """Runs jobs in a pool of supervisors."""

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
        return self._pool.job(
            lane, SupervisorTask(item.kind, item.payload), size_bytes=len(item.payload)
        )

    def outcome(self, item: PendingRun, done: RunDone) -> bytes | ItemFault:
        """The bytes of its result, shortened to the room that the answer has left.

        Checked as each result comes, so that a call's outputs are never all in memory at once.
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
        """Writes the supervisor's answer."""
        result.MergeFromString(item.outcome)

    def shorten(self, result: Any) -> None:
        """Drops the outputs behind tests; the output of a single program stays."""
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
        """How it ended, and what its runs used."""
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
    return {
        "assay.runs.wall_s": sum(seconds_of(usage.wall_time) for usage in runs),
        "assay.runs.cpu_s": sum(seconds_of(usage.cpu_time) for usage in runs),
    }
