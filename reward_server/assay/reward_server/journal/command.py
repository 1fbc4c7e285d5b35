"""`assay journal`: reads what a reward server kept with --journal, while it runs or afterwards."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from assay.cli.commands.options import read_server, server_options
from assay.kit.errors import ConfigError
from assay.kit.labels import read_labels
from assay.reward_server.journal.backup import backup
from assay.reward_server.journal.rejudge import RejudgeOptions, rejudge
from assay.viewer.command import view
from assay.viewer.journals.comparison import VerifierComparison
from assay.viewer.journals.reader import Filter, Reader, Record
from assay.viewer.journals.rows import is_whole, printable, row_of

_FILE = click.Path(path_type=Path, dir_okay=False)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_FACTS = ("request_id", "item_id", "group_id", "task", "version", "explanation", "answer")
_LINE_CHARS = 60
_FOLLOW_S = 0.5

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def journal() -> None:
    """Read the verdict journal of a reward server (its flag --journal)."""


journal.add_command(backup)


def _filters(command: F, verifier: str = "--verifier") -> F:
    options = (
        click.option(verifier, "verifier", default="", help="Of this verifier."),
        click.option("--verdict", default="", help="With this verdict."),
        click.option("--fault", default="", metavar="REASON", help="Faults of this reason."),
        click.option("--only", type=click.Choice(["judgements", "faults"]), default=None),
        click.option("--text", default="", help="Where prompt, response, ... hold this text."),
        click.option("--request", "request_id", default="", help="Of the call with this id."),
        click.option("--item", "item_id", default="", help="Of the items with this id."),
        click.option("--suspicion", default="", help="Where this sign of gaming was seen."),
        click.option(
            "--appeal",
            type=click.Choice(["any", "changed"]),
            default=None,
            help="Where a second verifier was asked; changed: where it gave another verdict.",
        ),
        click.option("--since", default="", help="90s, 15m, 2h, 1d ago; or 2026-01-31T12:00."),
        click.option(
            "--label", "labels", multiple=True, metavar="NAME=VALUE", help="With this label."
        ),
        click.option("--least-reward", type=float, help="Judged with at least this reward."),
        click.option("--most-reward", type=float, help="Judged with at most this reward."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _filter(
    since: str,
    only: str | None,
    labels: Sequence[str] = (),
    appeal: str | None = None,
    **flags: Any,
) -> Filter:
    wanted = tuple(read_labels(labels, "--label").items())
    flags |= {"only": only or "", "appeal": appeal or ""}
    chosen = Filter(since_s=_since(since), labels=wanted, **flags)
    if chosen.verdict and (chosen.fault or chosen.only == "faults"):
        raise ConfigError("a fault has no verdict: leave out --verdict, or --fault and --only")
    if chosen.appeal and (chosen.fault or chosen.only == "faults"):
        raise ConfigError("a fault has no appeal: leave out --appeal, or --fault and --only")
    if chosen.fault and chosen.only == "judgements":
        raise ConfigError("--fault and --only judgements leave nothing: leave one of them out")
    return chosen


@journal.command()
@click.argument("path", type=_FILE)
@click.option("-n", "count", type=click.IntRange(min=0), default=20, help="How many.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line.")
@_filters
def tail(path: Path, count: int, follow: bool, as_json: bool, **flags: Any) -> None:
    """The newest entries, oldest first."""
    chosen = _filter(**flags)
    show = _dump if as_json else _line
    with _reading(path) as reader:
        seen = reader.last_id()
        for record in reader.last(count, chosen) if count else ():
            click.echo(show(record))
            seen = max(seen, record["id"])
        while follow:
            time.sleep(_FOLLOW_S)
            last = reader.last_id()
            for record in reader.each(chosen, after=seen):
                click.echo(show(record))
                last = max(last, record["id"])
            seen = last


@journal.command()
@click.argument("path", type=_FILE)
@click.option("-n", "count", type=click.IntRange(min=1), default=50, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line.")
@_filters
def search(path: Path, count: int, as_json: bool, **flags: Any) -> None:
    """The newest entries that meet the options; 1 as exit code where there is none."""
    chosen = _filter(**flags)
    with _reading(path) as reader:
        found = reader.last(count, chosen)
    for record in found:
        click.echo(_dump(record) if as_json else _line(record))
    if not found:
        click.echo("no entry", err=True)
        click.get_current_context().exit(1)


@journal.command()
@click.argument("path", type=_FILE)
@click.argument("entry_id", metavar="ID", type=click.IntRange(min=1))
def show(path: Path, entry_id: int) -> None:
    """All of one entry; ID is the number at the beginning of its line."""
    with _reading(path) as reader:
        record = reader.get(entry_id)
    if record is None:
        raise ConfigError(f"{path} has no entry {entry_id}: it has expired, or never was")
    click.echo(_whole(record))


@journal.command()
@click.argument("path", type=_FILE)
@click.option("-o", "--output", type=_FILE, help="Write here, not to stdout. It must not exist.")
@click.option("--whole", is_flag=True, help="Leave out entries whose item is not there as a whole.")
@_filters
def export(path: Path, output: Path | None, whole: bool, **flags: Any) -> None:
    """Entries as JSON Lines, oldest first: rows that `assay score` reads."""
    chosen = _filter(**flags)
    count = left_out = 0
    with _reading(path) as reader, contextlib.ExitStack() as stack:
        write: Callable[[str], object] = click.echo
        if output is not None:
            file = stack.enter_context(output.open("x", encoding="utf-8"))
            write = functools.partial(print, file=file)
        for record in reader.each(chosen):
            row = row_of(record)
            if whole and not is_whole(row):
                left_out += 1
                continue
            write(_dumped(row))
            count += 1
    if left_out:
        click.echo(f"{left_out} entries are left out: the journal cut them", err=True)
    if output is not None:
        click.echo(f"{count} entries in {output}")


def _rejudge_filters(command: F) -> F:
    return _filters(command, "--judged-by")


@journal.command("rejudge")
@click.argument("path", metavar="FILE", type=_FILE)
@click.option(
    "--verifier",
    "again",
    required=True,
    metavar="NAME|FILE.py:FUNCTION",
    help="Who judges now: a name, with parameters as NAME:param=value, or a function in a file.",
)
@click.option("-o", "--output", metavar="OUT", help="Write the rows with both outcomes here.")
@click.option("--json", "numbers_to", type=_FILE, metavar="FILE", help="Write the numbers as JSON.")
@click.option("--show", type=click.IntRange(min=0), default=5, help="Changed rewards to print.")
@click.option("--timeout", "timeout_s", type=float, default=600.0, help="Seconds for one call.")
@server_options
@_rejudge_filters
def judge_again(
    *,
    path: Path,
    again: str,
    output: str | None,
    numbers_to: Path | None,
    show: int,
    timeout_s: float,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    **flags: Any,
) -> None:
    """Judge the entries of a journal, or the rows of an export, by another verifier.

    Prints verdicts against verdicts, how many rewards changed, and faults of each side apart.
    Without --target the server installed here is started.
    """
    if timeout_s <= 0:
        raise ConfigError(f"--timeout {timeout_s:g} is not positive; pass seconds")
    server = read_server(target, token_file, tls_ca)
    asked = RejudgeOptions(again, server, timeout_s, output, numbers_to, show)
    try:
        rejudge(path, asked, _filter(**flags))
    except sqlite3.Error as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


@journal.command()
@click.argument("path", type=_FILE)
@_filters
def stats(path: Path, **flags: Any) -> None:
    """How many entries there are; verdicts, faults and rewards of each verifier."""
    chosen = _filter(**flags)
    with _reading(path) as reader:
        summary, rates = reader.summary(), reader.rates(chosen)
    span = ""
    if summary.first_s is not None and summary.last_s is not None:
        span = f", {_when(summary.first_s)} to {_when(summary.last_s)}"
    click.echo(
        f"{summary.entries} entries{span}; {summary.expired} expired, {summary.dropped} dropped"
    )
    for rate in rates:
        mean = "" if rate.mean_reward is None else f", mean reward {rate.mean_reward:.4g}"
        click.echo(
            f"{printable(rate.verifier) or '(none found)'}: "
            f"{rate.judgements} judged{mean}, {rate.faulted} faults"
        )
        for kind, counts in (("verdict", rate.verdicts), ("fault", rate.faults)):
            for name, items in counts.items():
                click.echo(f"  {kind} {printable(name)}: {items}")


@journal.command()
@click.argument("path", type=_FILE)
@click.argument("first")
@click.argument("second")
@click.option("--show", "examples", type=click.IntRange(min=0), default=5, help="Shown in full.")
def compare(path: Path, first: str, second: str, examples: int) -> None:
    """Two verifiers on the same items: equal prompt, response and reference."""
    if first == second:
        raise ConfigError("name two different verifiers")
    with _reading(path) as reader:
        result = VerifierComparison(first, second, examples).add(reader.pairs(first, second))
    if not result.judged and not result.faulted:
        raise ConfigError(
            f"{path} has no item that {first!r} and {second!r} both saw; `assay score --compare` "
            "scores a file with two verifiers"
        )
    click.echo(_comparison(result))


@journal.command()
@click.argument("path", type=_FILE)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8050, show_default=True, help="0: any free."
)
def serve(path: Path, port: int) -> None:
    """The old name of `assay view`, for this release."""
    click.echo(f"assay journal serve is now called: assay view {path}", err=True)
    view.main([str(path), "--port", str(port)], standalone_mode=False)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[Reader]:
    try:
        with Reader(path) as reader:
            yield reader
    except sqlite3.Error as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _since(text: str) -> float | None:
    if not text:
        return None
    if match := re.fullmatch(r"(\d{1,6})([smhd])", text):
        ago = timedelta(**{_UNITS[match[2]]: int(match[1])})
        return time.time() - ago.total_seconds()
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ConfigError(
            f"--since {text!r} is neither like 15m nor a date like 2026-01-31T12:00"
        ) from None


def _when(time_s: float) -> str:
    return datetime.fromtimestamp(time_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _dump(record: Record) -> str:
    return _dumped(row_of(record))


def _dumped(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return printable(flat if len(flat) <= _LINE_CHARS else f"{flat[: _LINE_CHARS - 3]}...")


def _line(record: Record) -> str:
    said = f"fault {record['fault']}"
    if record["fault"] is None:
        said = f"{record['verdict']} {record['reward']:.4g}"
        if record["appeal"] is not None:
            said += f" (first {record['appeal']['first']['verdict']})"
    response = record["response"]
    if isinstance(response, list):
        response = " / ".join(turn[1] for turn in response)
    return (
        f"{record['id']:>8} {_when(record['time_s'])} {printable(record['verifier']) or '-':<16} "
        f"{printable(said):<24} {_short(response or '')}"
    )


def _appeal(appeal: Mapping[str, Any] | None) -> Iterator[str]:
    if appeal is None:
        return
    for name in ("first", "second"):
        one = appeal[name]
        yield f"{name} {one['verifier']} {one['version']}: {one['verdict']} {one['reward']:.4g}"
    why = "drawn" if appeal["drawn"] else "its verdict is appealed"
    yield f"of {appeal['component']}, {why}, chance {appeal['probability']:.4g}"


def _whole(record: Record) -> str:
    lines = [_line(record), ""]
    facts = {name: record[name] for name in _FACTS}
    facts["suspicions"] = ", ".join(record["suspicions"])
    facts["labels"] = ", ".join(f"{name}={value}" for name, value in record["labels"].items())
    lines += [f"{name}: {printable(value)}" for name, value in facts.items() if value]
    lines += [f"appeal: {printable(line)}" for line in _appeal(record["appeal"])]
    for name, score, weight in record["components"]:
        lines.append(f"component {printable(name)}: {score:.6g} x {weight:.6g}")
    lines.append(
        f"queued {record['queue_s'] * 1e3:.1f} ms, executed {record['execution_s'] * 1e3:.1f} ms"
        + (", from the cache" if record["from_cache"] else "")
    )
    for role, content in record["prompt"]:
        lines += ["", f"--- prompt, {printable(role)}", printable(content)]
    response = record["response"]
    turns = response if isinstance(response, list) else [("", response or "", True)]
    for index, (role, content, _) in enumerate(turns):
        lines += ["", f"--- response {printable(role)}".rstrip(), printable(content)]
        if index < len(record["calls"]) and record["calls"][index]:
            lines.append(f"--- tool calls {printable(json.dumps(record['calls'][index]))}")
        for start, end, reward, label, turn in record["spans"]:
            if turn == index:
                lines.append(f"  [{start}:{end}] {printable(label)} {reward:.4g}")
    shown = sum(len(turn[1]) for turn in turns)
    if shown < record["response_chars"]:
        lines.append(f"(cut: {shown} of {record['response_chars']} characters are kept)")
    if record["reference"] is not None:
        lines += ["", "--- reference", printable(record["reference"])]
    return "\n".join(lines)


def _comparison(result: VerifierComparison) -> str:
    lines = [
        f"{result.judged} items that both judged, {result.faulted} without a judgement of both",
    ]
    names = (result.first, result.second)
    for name, total in zip(names, result.rewards, strict=True):
        if result.judged:
            lines.append(f"{printable(name)}: mean reward {total / result.judged:.4g}")
    for name, faults in zip(names, result.faults, strict=True):
        lines += [f"{printable(name)}: fault {reason}: {n}" for reason, n in faults.most_common()]
    lines.append(f"same reward: {result.same_reward} of {result.judged}")
    for verdicts, items in result.verdicts.most_common():
        both = ", ".join(f"{name} {said}" for name, said in zip(names, verdicts, strict=True))
        lines.append(f"  {printable(both)}: {items}")
    for pair in result.examples:
        lines += ["", *(_line(record) for record in pair)]
    return "\n".join(lines)
