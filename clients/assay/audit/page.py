"""The report of an audit as one page of HTML: no script, one style, every text escaped. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from assay.audit.probes import ProbeClass
from assay.audit.report import AuditReport, ClassRates, clip, why_not
from assay.audit.running import Judged, rows_by_use
from assay.kit.page import page
from assay.kit.runs.stats import Estimate

_RESPONSE_CHARS = 1_200


def html_page(report: AuditReport) -> str:
    """The page; it needs nothing beside it."""
    return page(f"Audit of {report.target}", "assay audit", _parts(report))


def _parts(report: AuditReport) -> Iterator[str]:
    found = report.found
    yield f'<p class="big {report.verdict}">{escape(said_of(report))}</p>'
    yield '<div class="figures">'
    yield _figure("accepted of what must be refused", report.false_positive)
    yield _figure("refused of what must be accepted", report.false_negative)
    faults = sum(report.faults.values())
    yield f"<div>without a verdict<b>{faults}</b><span class='soft'>of {len(found.judged)} probes"
    yield f"{escape(_reasons(report))}</span></div></div>"
    kinds = ", ".join(f"{count} {name}" for name, count in rows_by_use(found.rows))
    forms = ", ".join(found.worn) or "none"
    yield f'<p class="soft">{len(found.rows)} rows ({escape(kinds)}). Answers were given as: '
    yield f"{escape(forms)}. Rewards from {found.scale.bound:g} accept. {found.seconds:.1f} s.</p>"
    for name in found.cut:
        yield f'<p class="warn">The budget cut {escape(name)} short.</p>'
    for title, some in _groups(report):
        yield f"<h2>{escape(title)}</h2>"
        for one in some:
            yield from _details(report, one)
    yield "<h2>All classes</h2>"
    yield from _table(report)


def said_of(report: AuditReport) -> str:
    """The outcome, in a sentence."""
    found = report.found
    if found.holes:
        kinds = sum(one.status == "fail" for one in report.classes)
        return f"It accepts what it must not: {len(found.holes)} probes of {kinds} classes."
    if not found.could_run:
        return f"It could not be audited: {why_not(found)}."
    return "No hole found."


def _figure(name: str, rate: Estimate) -> str:
    value = "-" if rate.value is None else f"{100 * rate.value:.2f} %"
    return (
        f"<div>{escape(name)}<b>{value}</b><span class='soft'>95 %: {100 * rate.low:.2f} to "
        f"{100 * rate.high:.2f}, over {rate.problems} rows</span></div>"
    )


def _reasons(report: AuditReport) -> str:
    counted = ", ".join(f"{reason} {count}" for reason, count in report.faults.most_common(4))
    return f": {counted}" if counted else ""


def _groups(report: AuditReport) -> Iterator[tuple[str, list[ClassRates]]]:
    unwanted = [one for one in report.classes if one.unwanted]
    for title, severity in (
        ("Holes: accepted, and must not be", "hole"),
        ("Warnings: accepted in prose", "warning"),
        ("Recall: right, and refused", "recall"),
    ):
        some = [one for one in unwanted if one.kind.severity == severity]
        if some:
            yield title, some


def _details(report: AuditReport, one: ClassRates) -> Iterator[str]:
    is_open = " open" if one.kind.severity == "hole" else ""
    verb = "accepted" if one.wants == "refuse" else "refused"
    yield f'<details{is_open}><summary class="{one.kind.severity}">{escape(one.kind.name)}: '
    yield f"{one.unwanted} of {one.asked - one.faults} {verb}</summary>"
    yield f"<p>{escape(one.kind.says)}.</p><p><b>Cure:</b> {escape(one.kind.cure)}.</p>"
    for worst in one.worst:
        yield from _example(report, worst)
    yield "</details>"


def _example(report: AuditReport, one: Judged) -> Iterator[str]:
    row = report.found.rows[one.probe.row]
    reward = "-" if one.said.reward is None else f"{one.said.reward:g}"
    yield f'<p class="soft">Row {escape(row.id)}, reward {reward}; right is '
    yield f"<b>{escape(clip(row.truth.text, 80) or 'no text')}</b> ({escape(one.probe.note)})</p>"
    text = one.probe.response
    if len(text) > _RESPONSE_CHARS:
        text = f"{text[:_RESPONSE_CHARS]}\n... ({len(one.probe.response)} characters)"
    yield f"<pre>{escape(_shown(text)) or '(empty)'}</pre>"


def _shown(text: str) -> str:
    """The text with what cannot be seen as escapes, so that it shows what was asked."""
    return "".join(
        one if one in "\n\t" or one.isprintable() else one.encode("unicode_escape").decode()
        for one in text
    )


def _table(report: AuditReport) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr><th>class</th><th>engine</th><th>must</th>'
    yield '<th class="n">asked</th><th class="n">faults</th><th class="n">unwanted</th>'
    yield '<th class="n">rate, 95 %</th><th></th></tr></thead><tbody>'
    for one in report.classes:
        tone = one.kind.severity if one.unwanted else "soft" if not one.asked else ""
        yield f'<tr class="{tone}"><td>{escape(one.kind.name)}</td><td>{escape(one.engine)}</td>'
        yield f'<td>{_must(one.kind)}</td><td class="n">{one.asked}</td>'
        yield f'<td class="n">{one.faults}</td><td class="n">{one.unwanted}</td>'
        yield f'<td class="n">{interval(one.rate)}</td><td>{_bar(one.rate)}</td></tr>'
    yield "</tbody></table></div>"


def _bar(rate: Estimate) -> str:
    if rate.value is None:
        return ""
    bounds = 'min="0" max="1" low="0.0001" high="0.05" optimum="0"'
    return f'<meter {bounds} value="{rate.value:.4f}"></meter>'


def _must(kind: ProbeClass) -> str:
    return "be accepted" if kind.wants == "accept" else "be refused"


def interval(rate: Estimate) -> str:
    """A rate in percent with its interval; a dash for none."""
    if rate.value is None:
        return "-"
    return f"{100 * rate.value:.1f} % ({100 * rate.low:.1f}-{100 * rate.high:.1f})"
