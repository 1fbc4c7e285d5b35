"""The report of an audit: rates by class, the worst examples, RFC 008's JSON. Pure.

OpenEnv's RFC 008 (environment auto-validation) gives the form: one result for each check, with
status, measured values, evidence and remediation. Two things differ: `signature` is "function",
for which it has no word, and `manifest` is null, as there is none.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.audit.probes import ProbeClass, Wants
from assay.audit.running import Findings, Judged, rows_by_use
from assay.kit.reliability import CONFIDENCE, ErrorRate, Reliability
from assay.kit.runs.stats import Estimate, mean_over_problems

Status = Literal["pass", "fail", "skip", "error"]
_SHOWN = 5
_SHOWN_CHARS = 240
_RFC = "1"
_POLICY = "v1"


@dataclass(frozen=True, slots=True)
class ClassRates:
    """What came of one class.

    Attributes:
        wants: what must come of its probes.
        asked, faults: probes; those without a verdict are in no rate.
        unwanted: probes with the other verdict.
        rate: the share of those, over rows (`mean_over_problems`).
        worst: some of them, of different rows, the best paid and shortest first.
    """

    kind: ProbeClass
    engine: str
    asked: int
    faults: int
    unwanted: int
    rate: Estimate
    worst: tuple[Judged, ...]

    @property
    def wants(self) -> Wants:
        """What must come of its probes."""
        return self.kind.wants

    @property
    def status(self) -> Status:
        """Whether the class has an unwanted verdict that matters; a warning does not."""
        if not self.asked:
            return "skip"
        if self.asked == self.faults:
            return "error"
        return "fail" if self.unwanted and self.kind.severity == "hole" else "pass"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """An audit's results.

    Attributes:
        target: what was audited, as it was named.
        digest: of the rows.
        classes: in the engines' order, those without probes too.
        false_positive: the share of what must be refused that was accepted, over rows; warnings
            are not in it.
        false_negative: the share of what must be accepted that was refused.
        faults: reasons with their counts.
    """

    target: str
    digest: str
    found: Findings
    classes: tuple[ClassRates, ...]
    false_positive: Estimate
    false_negative: Estimate
    faults: Counter[str]

    @property
    def fault_messages(self) -> dict[str, str]:
        """A message of each reason."""
        found = (one.said for one in self.found.judged if one.said.reward is None)
        return {said.fault: said.message for said in found}

    @property
    def verdict(self) -> Literal["pass", "warn", "fail"]:
        """RFC 008's."""
        if self.found.exit_code:
            return "fail"
        warned = any(
            one.unwanted for one in self.classes if one.wants == "refuse" or one.rate.value == 1
        )
        return "warn" if warned or self.found.cut else "pass"


def make_report(found: Findings, target: str, digest: str) -> AuditReport:
    """Counts what an audit found."""
    asked: dict[str, list[Judged]] = defaultdict(list)
    for one in found.judged:
        asked[one.probe.kind].append(one)
    classes = tuple(
        _rates(found, kind, engine, asked[kind.name]) for engine, kind in found.classes.values()
    )
    holes = [one for one in found.judged if _is_sure_hole(found, one)]
    rights = [one for one in found.judged if one.probe.wants == "accept"]
    faults = Counter(one.said.fault for one in found.judged if one.said.reward is None)
    return AuditReport(
        target, digest, found, classes, _share(found, holes), _share(found, rights), faults
    )


def _is_sure_hole(found: Findings, one: Judged) -> bool:
    kind = found.classes[one.probe.kind][1]
    return kind.severity == "hole" and not kind.likely


def _rates(found: Findings, kind: ProbeClass, engine: str, asked: Sequence[Judged]) -> ClassRates:
    unwanted = [one for one in asked if _is_unwanted(found, one)]
    if kind.likely:
        unwanted = [one for one in found.holes if one.probe.kind == kind.name]
    faults = sum(one.said.reward is None for one in asked)
    rate = _share(found, asked)
    return ClassRates(
        kind, engine, len(asked), faults, len(unwanted), rate, tuple(_worst(unwanted))
    )


def _is_unwanted(found: Findings, one: Judged) -> bool:
    if one.said.reward is None:
        return False
    return found.scale.accepts(one.said) != (one.probe.wants == "accept")


def _share(found: Findings, asked: Iterable[Judged]) -> Estimate:
    """The share of unwanted verdicts, the mean over rows."""
    rows: dict[int, list[bool]] = defaultdict(list)
    for one in asked:
        if one.said.reward is not None:
            rows[one.probe.row].append(_is_unwanted(found, one))
    trials = sum(len(row) for row in rows.values())
    return mean_over_problems([sum(row) / len(row) for row in rows.values()], trials)


def _worst(unwanted: Sequence[Judged]) -> list[Judged]:
    ordered = sorted(unwanted, key=lambda one: (-(one.said.reward or 0.0), len(one.probe.response)))
    chosen: list[Judged] = []
    for one in ordered:
        seen = {(other.probe.row, other.probe.note) for other in chosen}
        texts = {other.probe.response for other in chosen}
        new = (one.probe.row, one.probe.note) not in seen and one.probe.response not in texts
        if new and len(chosen) < _SHOWN:
            chosen.append(one)
    return chosen


def why_not(found: Findings) -> str:
    """Why an audit could not be run."""
    if not found.is_read:
        return (
            "no right answer was accepted in any form: say the form with --form 'Label: {}', or "
            "see whether the references are right"
        )
    return f"{100 * found.fault_share:.0f} % of plain answers got no verdict"


def check_id(kind: ProbeClass) -> str:
    """The id of a class's check, in RFC 008's form."""
    return kind.check or f"statistical.{re.sub('[^a-z]', '_', kind.name)}"


def clip(text: str, limit: int = _SHOWN_CHARS) -> str:
    """A text as one line of at most so many characters."""
    line = text.replace("\n", "\\n")
    return line if len(line) <= limit else f"{line[: limit - 20]}... ({len(text)} characters)"


def as_reliability(report: AuditReport, domain: str, version: str) -> Reliability:
    """What the audit measured, for a server's --reliability.

    Of the responses that the rows call right or wrong, where there are some; else of all probes.
    The version is the verifier's.
    """
    given = {one.kind.name: one.rate for one in report.classes if one.asked > one.faults}
    labelled = "given-wrong" in given or "given-right" in given
    found = report.found
    if labelled:
        rates = {name: given.get(name) for name in ("given-wrong", "given-right")}
        asked = {name: found.of(name) for name in rates}
    else:
        rates = {"wrong": report.false_positive, "right": report.false_negative}
        asked = {
            "wrong": [one for one in found.judged if _is_sure_hole(found, one)],
            "right": [one for one in found.judged if one.probe.wants == "accept"],
        }
    positive, negative = (_rate_of(rate, asked[name]) for name, rate in rates.items())
    truth = "labels" if labelled else "construction"
    return Reliability(domain, positive, negative, version, report.digest, truth)


def _rate_of(rate: Estimate | None, asked: Sequence[Judged]) -> ErrorRate | None:
    if rate is None or rate.value is None:
        return None
    responses = sum(one.said.reward is not None for one in asked)
    return ErrorRate(rate.value, rate.low, rate.high, CONFIDENCE, responses)


def in_words(report: AuditReport, one: Judged) -> str:
    """An unwanted verdict as a sentence."""
    row = report.found.rows[one.probe.row]
    reward = "a fault" if one.said.reward is None else f"{one.said.reward:g}"
    right = f"; right is {clip(row.truth.text, 60)!r}" if row.truth.texts else ""
    why = one.probe.note or one.probe.kind
    return f"row {row.id}: {clip(one.probe.response)!r} got {reward}{right} ({why})"


def as_rfc(report: AuditReport) -> dict[str, Any]:
    """The report as RFC 008 has it."""
    results = [_summary(report), *(_check(report, one) for one in report.classes)]
    return {
        "report_schema_version": _RFC,
        "target": report.target,
        "source_digest": report.digest,
        "signature": "function",
        "manifest": None,
        "policy_version": _POLICY,
        "lane": "hub",
        "levels_run": [3, 4],
        "results": results,
        "verdict": report.verdict,
    }


def _summary(report: AuditReport) -> dict[str, Any]:
    found = report.found
    status: Status = "fail" if found.holes else "pass" if found.could_run else "error"
    evidence = [f"{name} was cut short by the budget" for name in found.cut]
    if not found.could_run:
        evidence.append(why_not(found))
    return {
        "check_id": "statistical.gameability_gap",
        "status": status,
        "measured": {
            "false_positive": _numbers(report.false_positive),
            "false_negative": _numbers(report.false_negative),
            "holes": len(found.holes),
            "asked": len(found.judged),
            "faults": dict(report.faults),
            "fault_messages": {key: clip(text) for key, text in report.fault_messages.items()},
            "accepts_from": found.scale.bound,
            "forms": found.dresses,
            "forms_used": list(found.worn),
            "rows": dict(rows_by_use(found.rows)),
            "exit_code": found.exit_code,
        },
        "evidence": evidence,
        "remediation": None,
        "duration_s": round(found.seconds, 3),
    }


def _numbers(rate: Estimate) -> dict[str, Any]:
    return {"value": rate.value, "interval": [rate.low, rate.high], "rows": rate.problems}


def _check(report: AuditReport, one: ClassRates) -> dict[str, Any]:
    evidence = [in_words(report, worst) for worst in one.worst]
    if one.status == "skip":
        evidence = ["no row has an answer for which such a probe is known to be right or wrong"]
    return {
        "check_id": check_id(one.kind),
        "status": one.status,
        "measured": {
            "class": one.kind.name,
            "engine": one.engine,
            "severity": one.kind.severity,
            "must": one.wants,
            "asked": one.asked,
            "faults": one.faults,
            "unwanted": one.unwanted,
            "rate": _numbers(one.rate),
        },
        "evidence": evidence,
        "remediation": one.kind.cure if one.unwanted else None,
        "duration_s": 0.0,
    }
