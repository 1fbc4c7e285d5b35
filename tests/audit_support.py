"""Rows of every sort of answer, and graders as functions, for tests of audits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.audit import (
    AuditPlan,
    AuditReport,
    AuditRow,
    Probe,
    ProbeAsker,
    Ruling,
    carry_out,
    make_report,
)
from assay.audit.answers.truth import read_truth
from assay.audit.engines.floor import FloorAndCeiling
from assay.audit.engines.metamorphic import Metamorphic
from assay.audit.engines.panel import ProbePanel
from assay.audit.engines.search import Search
from assay.audit.probes import Prober
from assay.audit.running import Ask

PAIRS = (
    ("What is 3 + 4?", "7"),
    ("What is 12 * 12?", "144"),
    ("Which temperature?", "-15"),
    ("How far is it?", "5 km"),
    ("Round pi to two places.", "3.14"),
    ("What share is red?", "\\frac{1}{2}"),
    ("Which city is the capital of France?", "Paris"),
    ("Which city has the Statue of Liberty?", "New York City"),
    ("Is 7 a prime?", "yes"),
    ("Pick one.\nA) red\nB) blue\nC) green\nD) grey", "B"),
    ("Name the primes below 8.", "2, 3, 5, 7"),
    ("Expand (x+1)^2.", "x^2+2x+1"),
    ("Where is it negative?", "(-\\infty, 3]"),
)

Grade = Callable[[str, str], float]


def rows(pairs: Sequence[tuple[str, object]] = PAIRS) -> list[AuditRow]:
    """The pairs of prompt and reference as rows."""
    return [
        AuditRow(str(number), prompt, read_truth(reference, prompt), data={"reference": reference})
        for number, (prompt, reference) in enumerate(pairs)
    ]


def engines() -> list[Prober]:
    """Those that need no service."""
    return [FloorAndCeiling(), ProbePanel(), Metamorphic(), Search()]


def asked_of(grade: Grade, some: Sequence[AuditRow]) -> Ask:
    """A grader as the audit asks it: what it raises is a fault."""

    def one(probe: Probe) -> Ruling:
        try:
            return Ruling(float(grade(probe.response, some[probe.row].truth.text)))
        except Exception as error:  # noqa: BLE001 - whatever the grader raises
            return Ruling(None, "VERIFIER_FAILED", type(error).__name__)

    return lambda probes: [one(probe) for probe in probes]


def audited(
    grade: Grade,
    some: Sequence[AuditRow] | None = None,
    plan: AuditPlan | None = None,
    probers: Sequence[Prober] = (),
) -> AuditReport:
    """The report on a grader."""
    found_rows, settings = some or rows(), plan or AuditPlan()
    asker = ProbeAsker(asked_of(grade, found_rows), settings)
    found = carry_out(found_rows, probers or engines(), asker, settings)
    return make_report(found, "a grader", "0" * 64)


def accepted_classes(report: AuditReport) -> set[str]:
    """The classes in which something was accepted that must not be, warnings too."""
    return {one.kind.name for one in report.classes if one.wants == "refuse" and one.unwanted}
