"""`assay audit TARGET --data ROWS`: what a reward function accepts by mistake."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.audit.answers.truth import read_truth
from assay.audit.dress import Dress, given_dress
from assay.audit.engines import engines
from assay.audit.graders import ServerAt, reached, read_target
from assay.audit.page import html_page, interval, said_of
from assay.audit.probes import AuditRow, Probe, Ruling, Scale
from assay.audit.report import (
    AuditReport,
    as_reliability,
    as_rfc,
    clip,
    in_words,
    make_report,
)
from assay.audit.running import AuditPlan, ProbeAsker, carry_out
from assay.cli.commands.options import read_server, server_options
from assay.cli.commands.pipeline import progress_bar, rows_in
from assay.cli.scoring.partial import PartialFile, write_json
from assay.cli.scoring.rows import dump, read_objects
from assay.kit.console import make_console
from assay.kit.errors import AssayError, ConfigError
from assay.kit.reliability import Reliability, read_reliability, reliability_text

_OUT = click.Path(dir_okay=False, path_type=Path)
_COULD_NOT = 2
_LINES = 1  # lines of another form are not gone on with


@dataclass(slots=True)
class _Progress:
    done: int = 0
    faulted: int = 0


@click.command()
@click.argument("target_name", metavar="TARGET")
@click.option("--data", required=True, metavar="ROWS", help="Rows as `assay score` reads them.")
@click.option("--json", "json_file", type=_OUT, help="Write the report, in RFC 008's form.")
@click.option("--html", "html_file", type=_OUT, help="Write the report as a page.")
@click.option(
    "--reliability",
    "reliability_file",
    type=_OUT,
    metavar="FILE.json",
    help="Write the verifier's rates for a server's --reliability; other entries there stay.",
)
@click.option(
    "--domain", default="all", show_default=True, help="With --reliability: what the rows are of."
)
@click.option(
    "--state", type=_OUT, metavar="FILE.jsonl",
    help="Write every probe with its reward; an interrupted audit goes on from there.",
)  # fmt: skip
@click.option("--engine", "engine_names", multiple=True, help="Only this engine; repeatable.")
@click.option(
    "--rows", "most_rows", type=click.IntRange(0), default=0, help="So many, evenly spread; 0: all."
)
@click.option(
    "--accept", type=click.FloatRange(0, 1, min_open=True), default=0.5, show_default=True,
    help="A reward accepts that is so far up from the lowest to the highest.",
)  # fmt: skip
@click.option(
    "--range", "reward_range", type=float, nargs=2, metavar="LOW HIGH",
    help="The lowest and highest reward. Default: 0, and what right answers get, at least 1.",
)  # fmt: skip
@click.option(
    "--tolerance", type=click.FloatRange(0), default=0.0, show_default=True,
    help="How far a number may be off and still be right, relative to the right one.",
)  # fmt: skip
@click.option(
    "--form", default="", metavar="TEMPLATE",
    help="How a response gives its answer, with {} in its place: 'Label: {}'.",
)  # fmt: skip
@click.option("--params", multiple=True, metavar="NAME=VALUE", help="A parameter of a verifier.")
@click.option(
    "--calls",
    type=click.IntRange(1),
    default=100_000,
    show_default=True,
    help="At most so many probes.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    help="At most so long.",
)
@click.option("--seed", default=0, show_default=True, help="Of what is drawn.")
@click.option("--show", default=2, show_default=True, help="Examples of each class to print.")
@server_options
def audit(
    *,
    target_name: str,
    data: str,
    json_file: Path | None,
    html_file: Path | None,
    reliability_file: Path | None,
    domain: str,
    **options: Any,
) -> int:
    """Find what a reward function accepts and must not.

    TARGET is FILE.py:FUNCTION with `fn(response, reference) -> float` (or TRL's or verl's
    parameters), package.module:OBJECT (a function, a rubric or taskset of verifiers, a scorer of
    Inspect), a verifier or profile of ours (--target: of that server), an OpenRLHF URL that ends in
    /get_reward, or a NeMo Gym URL that ends in /verify. A row has `prompt` and `reference`, or
    `tests` of a program; `right` and `wrong` are responses of which that is known.

    Exits with 0 where no hole was found, 1 where it accepts what it must not, and 2 where it could
    not be run, judged too little or accepted no right answer in any form. Right answers that it
    refuses in some forms are reported and are no hole; a fault is neither accepted nor refused.
    """
    try:
        for file in (json_file, html_file, reliability_file, options["state"]):
            if file is not None and not file.parent.is_dir():
                raise ConfigError(
                    f"the folder of {file} is not there; make it, or correct the path"
                )
        measured = () if reliability_file is None else _measured(target_name, reliability_file)
        report, version = _audited(target_name, data, options)
        if json_file is not None:
            write_json(json_file, as_rfc(report))
        if html_file is not None:
            html_file.write_text(html_page(report), encoding="utf-8")
        if reliability_file is not None:
            _write_rates(
                reliability_file, measured, as_reliability(report, domain, version), target_name
            )
    except (AssayError, OSError) as error:
        print(f"assay: error: {' '.join(str(error).split())}", file=sys.stderr)
        return _COULD_NOT
    print_report(make_console(), report, options["show"])
    return report.found.exit_code


def _form(template: str) -> Dress | None:
    try:
        return given_dress(template) if template else None
    except ValueError as error:
        raise ConfigError(f"--form: {error}") from error


def _measured(target_name: str, file: Path) -> Sequence[tuple[str, Reliability]]:
    """What a file of measured rates holds already; it is wrong to ask that of no verifier.

    Raises:
        ConfigError: the target is no verifier of a server, or the file has another form.
    """
    if read_target(target_name).kind != "verifier":
        raise ConfigError(
            f"--reliability is for a verifier of a reward server, by its name, not for "
            f"{target_name}; serve it with --verifier, and say where with --target"
        )
    return read_reliability(file.read_text(encoding="utf-8"), str(file)) if file.exists() else ()


def _write_rates(
    file: Path, kept: Sequence[tuple[str, Reliability]], new: Reliability, verifier: str
) -> None:
    others = [(name, one) for name, one in kept if (name, one.domain) != (verifier, new.domain)]
    file.write_text(reliability_text([*others, (verifier, new)]), encoding="utf-8")


def _audited(target_name: str, data: str, options: Mapping[str, Any]) -> tuple[AuditReport, str]:
    """The report, and the version of the verifier."""
    target = read_target(target_name)
    rows, digest = read_audit_rows(data, options["most_rows"])
    access = read_server(options["target"], options["token_file"], options["tls_ca"])
    server = ServerAt(access.target, access.token, access.tls)
    console = make_console(stderr=True)
    probers = engines(options["engine_names"])
    parameters = dict(map(_parameter, options["params"]))
    form = _form(options["form"])
    with ExitStack() as stack:
        there = stack.enter_context(
            reached(target, rows, server, parameters=parameters, share=options["accept"])
        )
        given = options["reward_range"]
        scale = Scale(given[0], given[1], options["accept"]) if given else there.scale
        plan = AuditPlan(
            scale, options["accept"], options["calls"], options["seconds"], options["tolerance"],
            form, target.source.words, target.source.lengths, there.execute, options["seed"],
        )  # fmt: skip
        made_from = {
            "lines": _LINES, "rows": digest, "target": target_name, "version": there.version,
            "params": parameters,
        }  # fmt: skip
        known, keep, finish = stack.enter_context(_kept(options["state"], made_from, rows, console))
        show = stack.enter_context(progress_bar(console, None, "auditing"))
        progress = _Progress()

        def step(done: int, faults: int) -> None:
            progress.done, progress.faulted = done, faults
            show(progress)

        asker = ProbeAsker(there.ask, plan, known=known, keep=keep, step=step)
        found = carry_out(rows, probers, asker, plan)
        finish()
    return make_report(found, target_name, digest), there.version


def read_audit_rows(data: str, most: int = 0) -> tuple[list[AuditRow], str]:
    """The rows of a file, and its digest.

    Raises:
        ConfigError: It cannot be read, or a row has nothing to hold a response against.
    """
    rows: list[AuditRow] = []
    digest = hashlib.sha256()
    with rows_in(data) as (path, name):
        for line, row in read_objects(path, name):
            digest.update(dump(row))
            rows.append(_row(name, line, len(rows) + 1, row))
    if not rows:
        raise ConfigError(f"{data} holds no rows; write one JSON object on each line")
    if most and len(rows) > most:
        rows = [rows[number * len(rows) // most] for number in range(most)]
    return rows, digest.hexdigest()


def _row(name: str, line: int, number: int, row: Mapping[str, Any]) -> AuditRow:
    prompt = row.get("prompt") or ""
    if isinstance(prompt, list):
        prompt = "\n".join(str(one.get("content", "")) for one in prompt if isinstance(one, dict))
    if not isinstance(prompt, str):
        raise ConfigError(f"{name}:{line}: 'prompt' is no text and no list of messages")
    right, wrong = _texts(row.get("right")), _texts(row.get("wrong"))
    if row.get("label") in (0, 1):  # of a labelled set: the viewer's notes, rows of eval-judge
        said = _texts(row.get("response"))
        right, wrong = (right + said, wrong) if row["label"] else (right, wrong + said)
    if row.get("reference") is None and row.get("tests") is None and not (right or wrong):
        raise ConfigError(f"{name}:{line}: the row has no 'reference'; add it")
    reference, params = row.get("reference"), row.get("params")
    options = params.get("choices") if isinstance(params, dict) else None
    if isinstance(options, list):
        if reference in options:
            reference = None  # its letter is right, too
        prompt += "".join(f"\n{chr(65 + place)}) {one}" for place, one in enumerate(options))
    truth = read_truth(reference, prompt)
    return AuditRow(str(row.get("id", number)), prompt, truth, right, wrong, row.get("tests"), row)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _parameter(pair: str) -> tuple[str, Any]:
    name, equals, text = pair.partition("=")
    if not equals:
        raise ConfigError(f"the parameter {pair!r} has no '='; write NAME=VALUE")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


Keep = Callable[[Probe, Ruling], None]


@contextmanager
def _kept(
    path: Path | None, made_from: Mapping[str, Any], rows: list[AuditRow], console: Console
) -> Iterator[tuple[dict[str, Ruling], Keep, Callable[[], object]]]:
    """What an interrupted audit left, what keeps more, and what ends the file."""
    known: dict[str, Ruling] = {}
    if path is None:
        yield known, lambda _probe, _said: None, lambda: None
        return

    def take(line: dict[str, Any]) -> None:
        known[line["key"]] = Ruling(line["reward"], line["fault"], line["message"])

    with PartialFile(path, made_from, take) as file:
        if file.kept:
            console.print(f"going on: {file.kept} probes were answered before", highlight=False)

        def keep(probe: Probe, said: Ruling) -> None:
            file.write(
                dump({
                    "key": probe.key, "row": rows[probe.row].id, "class": probe.kind,
                    "must": probe.wants, "note": probe.note, "response": probe.response,
                    "reward": said.reward, "fault": said.fault, "message": said.message,
                })
            )  # fmt: skip
            file.flush()

        yield known, keep, file.finish


def print_report(console: Console, report: AuditReport, show: int) -> None:
    """Prints the classes, examples of what was wrong, and the outcome."""
    table = Table()
    for name in ("class", "must be", "asked", "faults", "unwanted", "rate %, 95 %"):
        table.add_column(name, justify="left" if name in ("class", "must be") else "right")
    for one in report.classes:
        if one.asked:
            wants = "accepted" if one.wants == "accept" else "refused"
            table.add_row(
                one.kind.name, wants, str(one.asked), str(one.faults), str(one.unwanted),
                interval(one.rate),
            )  # fmt: skip
    console.print(table)
    for one in report.classes:
        if one.unwanted and one.kind.severity != "recall":
            said = f"{one.kind.name} ({one.kind.severity}): {one.kind.says}"
            console.print(Text(said), soft_wrap=True)
            for worst in one.worst[:show]:
                console.print(Text(f"  {in_words(report, worst)}"), soft_wrap=True)
            console.print(Text(f"  cure: {one.kind.cure}"), soft_wrap=True)
    for reason, count in report.faults.most_common(4):
        text = f"no verdict: {reason} {count} times, such as: {report.fault_messages[reason]}"
        console.print(Text(clip(text)), soft_wrap=True)
    for name in report.found.cut:
        console.print(f"{name} was cut short by the budget", highlight=False)
    rates = [interval(rate) for rate in (report.false_positive, report.false_negative)]
    console.print(f"false positives {rates[0]}, false negatives {rates[1]}", highlight=False)
    console.print(Text(said_of(report)))
