"""What a reward function accepts by mistake, before a policy finds out: `assay audit`.

Rows become probes whose truth is known without the grader (`truth`, `wrong`, `engines`), a grader
says what it says (`graders`), and a report counts (`report`, `page`). docs/use/audit.md.
"""

from assay.audit.answers.truth import Truth, read_truth
from assay.audit.probes import AuditRow, Probe, ProbeClass, Prober, Ruling, Scale, Subject
from assay.audit.report import AuditReport, as_rfc, make_report
from assay.audit.running import AuditPlan, Findings, ProbeAsker, carry_out

__all__ = [
    "AuditPlan",
    "AuditReport",
    "AuditRow",
    "Findings",
    "Probe",
    "ProbeAsker",
    "ProbeClass",
    "Prober",
    "Ruling",
    "Scale",
    "Subject",
    "Truth",
    "as_rfc",
    "carry_out",
    "make_report",
    "read_truth",
]
