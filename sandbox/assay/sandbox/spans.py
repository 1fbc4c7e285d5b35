"""The jobs of a call as its trace shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from assay.api.execution.v1 import execution_pb2
from assay.rpc import tracing
from assay.rpc.errors import reason_of
from assay.rpc.metrics import UNKNOWN
from assay.rpc.trails import Fact, Stretch, item_stretch
from assay.sandbox.metrics import ENDS, seconds
from assay.sandbox.tickets import Result, Ticket


def note(tickets: Iterable[Ticket]) -> None:
    """Tells the trace of the call in progress, if it is in one, of jobs that have a result."""
    trail = tracing.trail()
    if trail is None:
        return
    for ticket in tickets:
        if ticket.result is not None:
            timings = ticket.result.timings
            trail.add(
                ticket.arrived_s,
                ticket.arrived_s + seconds(timings.queue),
                seconds(timings.execution),
                fault=ticket.result.WhichOneof("outcome") == "fault",
                describe=partial(_stretch, ticket, ticket.result),
            )


def _stretch(ticket: Ticket, result: Result, number: int) -> Stretch:
    language = ticket.language or UNKNOWN
    facts: dict[str, Fact] = {"assay.item": number, "assay.language": language}
    reason = ""
    if result.WhichOneof("outcome") == "fault":
        facts["assay.fault"] = reason = reason_of(result.fault)
    elif isinstance(result, execution_pb2.ExecutionResult):
        facts["assay.end"] = ENDS[result.execution.end_kind]
        facts |= _used([result.execution.usage])
    else:
        report = result.report
        facts["assay.compile_failed"] = report.compile_failed
        facts["assay.tests"] = len(report.outcomes)
        facts["assay.tests.passed"] = report.passed_count
        facts |= _used([outcome.execution.usage for outcome in report.outcomes])
    timings = result.timings
    return item_stretch(
        language,
        ticket.arrived_s,
        ticket.arrived_s + seconds(timings.queue),
        seconds(timings.execution),
        facts,
        reason=reason,
    )


def _used(runs: Sequence[execution_pb2.Usage]) -> dict[str, Fact]:
    """What the programs themselves took; the rest of an execution is compiling and comparing."""
    return {
        "assay.runs.wall_s": sum(seconds(usage.wall_time) for usage in runs),
        "assay.runs.cpu_s": sum(seconds(usage.cpu_time) for usage in runs),
    }
