"""`assay verifiers`: the verifiers of a reward server."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import click
from rich.table import Table
from rich.text import Text

from assay.cli.commands.options import IMPATIENT, read_server, server_options
from assay.cli.parameters import find_verifier
from assay.clients.reward import RewardClient
from assay.clients.services import EmbeddedServices, what_would_add_verifiers
from assay.clients.types import ParameterInfo, ServerInfo, VerifierInfo
from assay.kit.console import make_console

_NAME_CHARS = 20
_TASKS_CHARS = 15
_GAP = "  "


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@server_options
@click.option("--long", "in_full", is_flag=True, help="Print all of each, with its parameters.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def verifiers(
    *,
    names: tuple[str, ...],
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    in_full: bool,
    as_json: bool,
) -> None:
    """List what a reward server judges. Without --target: what the server installed here judges.

    One line each: name, tasks ("profile" stands first for a profile), rewards, what it judges; on a
    terminal as long as a line of it. With NAME: all of those, and their parameters.
    """
    server = read_server(target, token_file, tls_ca)
    embedded = None if server.target else EmbeddedServices(["reward"])
    with embedded or nullcontext():
        address = embedded.address if embedded else server.target
        with RewardClient(
            address, tls=server.tls, token=server.token, timeout_s=10.0, config=IMPATIENT
        ) as client:
            info = client.list_verifiers()
    chosen = tuple(find_verifier(info, name) for name in names) or info.verifiers
    if as_json:
        shown = dataclasses.asdict(dataclasses.replace(info, verifiers=chosen))
        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    if names or in_full:
        _print_in_full(chosen)
    else:
        _print_lines(chosen)
    if not names:
        _print_more(info, in_full)


def one_line_each(
    verifiers: Sequence[VerifierInfo], width: int | None
) -> Iterator[tuple[str, str, str]]:
    """Name, middle (tasks and rewards) and sentence of each, padded into columns.

    With a `width` each line is cut to so many characters. None: nothing is cut.
    """
    rows = [
        (one.name, _tasks(one), f"{one.min_reward:g}..{one.max_reward:g}", _sentence(one))
        for one in verifiers
    ]
    limits = (_NAME_CHARS, _TASKS_CHARS, _NAME_CHARS) if width else (None, None, None)
    columns = zip(*(row[:3] for row in rows), strict=True)
    sizes = [
        min(max(map(len, column)), limit or max(map(len, column)))
        for column, limit in zip(columns, limits, strict=False)
    ]
    for row in rows:
        name, tasks, rewards = (
            clip(text, size).ljust(size) for text, size in zip(row, sizes, strict=False)
        )
        middle = f"{_GAP}{tasks}{_GAP}{rewards}{_GAP}"
        left = None if width is None else max(0, width - len(name) - len(middle))
        yield name, middle, clip(row[3], left)


def clip(text: str, limit: int | None) -> str:
    """The text in `limit` characters, the last an ellipsis where it is cut. None: all of it."""
    if limit is None or len(text) <= limit:
        return text
    return text[: max(0, limit - 1)].rstrip() + "…" if limit else ""


def _tasks(verifier: VerifierInfo) -> str:
    return ", ".join(("profile",) * verifier.is_profile + verifier.tasks) or "-"


def _sentence(verifier: VerifierInfo) -> str:
    first, stop, _ = verifier.description.partition(". ")
    return first + stop.rstrip()


def _print_lines(verifiers: Sequence[VerifierInfo]) -> None:
    console = make_console(highlight=False)
    fits = console.is_terminal or "COLUMNS" in os.environ
    for name, middle, sentence in one_line_each(verifiers, console.width if fits else None):
        line = Text.assemble((name, "bold"), middle, sentence)
        console.print(line, soft_wrap=True)


def _print_more(info: ServerInfo, in_full: bool) -> None:
    if not in_full:
        click.echo("\nassay verifiers NAME prints one in full, with its parameters; --long: all")
    if more := what_would_add_verifiers([verifier.name for verifier in info.verifiers]):
        click.echo(more)


def _print_in_full(verifiers: Sequence[VerifierInfo]) -> None:
    console = make_console(highlight=False)
    for verifier in verifiers:
        console.print(Text.assemble((verifier.name, "bold"), f": {verifier.description}"))
        facts = Table.grid(padding=(0, 2))
        if verifier.is_profile:
            facts.add_row("  kind", "profile")
        facts.add_row("  tasks", ", ".join(verifier.tasks) or "none: ask for it by name")
        facts.add_row("  reward", f"{verifier.min_reward:g} to {verifier.max_reward:g}")
        facts.add_row("  verdicts", ", ".join(verifier.verdicts))
        same = "equal items get equal judgements" if verifier.deterministic else "judgements vary"
        facts.add_row("  version", f"{verifier.version}; {same}")
        for one in verifier.reliability:
            facts.add_row(f"  on {one.domain}", Text(one.told(verifier.version)))
        for parameter in verifier.parameters:
            facts.add_row(f"  {parameter.name}", Text(_describe(parameter)))
        console.print(facts)
        console.print()


def _describe(parameter: ParameterInfo) -> str:
    kind = " or ".join(parameter.allowed_values) or parameter.type
    default = "required" if parameter.default is None else f"default {parameter.default}"
    return f"{kind}, {default}. {parameter.description}"
