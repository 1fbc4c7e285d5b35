"""Verdicts about a program, from how its run ended."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Final

from assay.sandbox.domain import EndKind, RunRecord
from assay.sandbox.judging.model import CaseOutcome, TestVerdict
from assay.sandbox.judging.text import LINE, one_line

_LIMITS: Final = {
    EndKind.CPU_TIME_LIMIT: "it used up its CPU time",
    EndKind.WALL_TIME_LIMIT: "it used up its time",
    EndKind.MEMORY_LIMIT: "it asked for more memory than it may have",
    EndKind.OUTPUT_LIMIT: "it wrote more than it may",
    EndKind.PROCESS_LIMIT: "it asked for more processes than it may have",
}


def outcome(name: str, verdict: TestVerdict, record: RunRecord | None, text: str) -> CaseOutcome:
    """A test's outcome, its explanation cut to one line."""
    return CaseOutcome(name, verdict, record, one_line(text)[:LINE])


def passed(name: str, record: RunRecord) -> CaseOutcome:
    """A test that passed."""
    return CaseOutcome(name, TestVerdict.PASSED, record)


def ended(name: str, record: RunRecord, when: str = "before it was done") -> CaseOutcome:
    """A test whose program ended too early, or badly."""
    if record.end in _LIMITS:
        return outcome(name, TestVerdict.LIMIT_EXCEEDED, record, _told(_LIMITS[record.end], record))
    if record.end is EndKind.SECURITY_VIOLATION:
        text = _told("it tried what is forbidden", record)
        return outcome(name, TestVerdict.SECURITY_VIOLATION, record, text)
    if record.end is EndKind.SIGNALLED:
        text = _told(f"signal {_signal_name(record.signal)} ended it", record)
    else:
        text = _told(f"it exited with code {record.exit_code} {when}".rstrip(), record)
    return outcome(name, TestVerdict.RUNTIME_ERROR, record, text)


def killed_from_outside(record: RunRecord) -> bool:
    """Whether a program ended by a SIGKILL that is no limit's and none of ours.

    It may be the host's, out of memory, an operator's, or the program's own; these cannot be told
    apart. So the caller runs the program once more and takes that run as it stands.
    """
    killed = record.end is EndKind.SIGNALLED and record.signal == signal.SIGKILL
    return killed and not record.detail


def raised(name: str, record: RunRecord, text: str, *, memory: bool) -> CaseOutcome:
    """A test whose program raised."""
    if memory:
        record = replace(record, end=EndKind.MEMORY_LIMIT)
        return outcome(name, TestVerdict.LIMIT_EXCEEDED, record, text)
    return outcome(name, TestVerdict.RUNTIME_ERROR, record, text)


def _told(text: str, record: RunRecord) -> str:
    if record.detail:
        text += f" ({record.detail})"
    lines = record.stderr.data[-2_000:].decode("utf-8", "replace").strip().splitlines()
    return f"{text}; {lines[-1]}" if lines else text


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
