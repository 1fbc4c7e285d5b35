"""`assay environments`: what there is, what each offers, its proofs, and an episode by hand."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from assay.cli.commands.options import read_server, server_options
from assay.cli.environments.describing import described, in_lines, origin_of, summary_of
from assay.cli.environments.playing import TYPED, play, scripted, typed
from assay.environments.environment import Environment
from assay.environments.episode import EpisodeLimits
from assay.environments.registry import environment_of, settings_of
from assay.environments.registry import environments as installed
from assay.environments.selftest import prove
from assay.environments.services import RewardServices
from assay.environments.tools import tools_of
from assay.environments.types import Observation, Reply
from assay.kit.console import make_console
from assay.kit.errors import ConfigError

_SETTINGS = click.option(
    "--settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the environment, in JSON or as a text; may be given several times.",
)


@click.group()
def environments() -> None:
    """Environments that a policy acts in: list, show, check and play them.

    NAME is an installed one, or one of yours: FILE.py:Class or package.module:Class.
    """


@environments.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def list_environments(*, as_json: bool) -> None:
    """List what is installed: name, what it is, its tools, and the package that brings it."""
    rows = []
    for name, entry in installed().items():
        try:
            kind = environment_of(name)
            tools: list[str] | None = list(tools_of(kind))
            text = summary_of(kind)
        except ConfigError as error:
            tools, text = None, str(error)
        rows.append({"name": name, "summary": text, "tools": tools, "from": origin_of(entry)})
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    console = make_console(highlight=False)
    if not rows:
        console.print("no environment is installed")
    for row in rows:
        console.print(
            Text.assemble((str(row["name"]), "bold"), f": {row['summary']}"), soft_wrap=True
        )
        if row["tools"] is not None:
            said = f"  tools: {', '.join(row['tools']) or 'none'}; from {row['from']}"
            console.print(said, soft_wrap=True)


@environments.command()
@click.argument("name", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def show(*, name: str, as_json: bool) -> None:
    """Show one: the schemas of its tools, and its settings with their defaults."""
    kind = environment_of(name)
    if as_json:
        click.echo(json.dumps(described(kind), indent=2, ensure_ascii=False))
        return
    console = make_console(highlight=False)
    for line in in_lines(kind):
        console.print(line, soft_wrap=True)


@environments.command()
@click.argument("name", metavar="NAME")
@_SETTINGS
@server_options
def check(
    *,
    name: str,
    settings: tuple[str, ...],
    target: str,
    token_file: str | None,
    tls_ca: str | None,
) -> int:
    """Run its proofs: scripted episodes that must end with a known reward.

    Without --target a reward server is started where a proof needs one. The exit code is 1 where a
    proof fails, or there is none.
    """
    kind = environment_of(name)
    given = settings_of(kind, _read_settings(settings))
    server = read_server(target, token_file, tls_ca)
    with RewardServices(server.target, token=server.token, tls=server.tls) as services:
        results = prove(kind, given, services)
    for one in results:
        said = one.expected if one.ok else f"expected {one.expected}, found {one.found}"
        click.echo(f"{'ok    ' if one.ok else 'FAILED'} {one.number}: {said} ({one.seconds:.2f} s)")
    if not results:
        raise ConfigError(f"the environment {kind.name!r} has no proofs; write its proofs()")
    return int(not all(one.ok for one in results))


@environments.command("play")
@click.argument("name", metavar="NAME")
@click.option("--row", required=True, metavar="JSON", help="The row: JSON, or @FILE of it.")
@click.option(
    "--turns",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Turns, one JSON a line, in place of the prompt: a text, a call, or a list of calls.",
)
@_SETTINGS
@click.option("--verifier", default="", help="Who judges items that name no verifier.")
@click.option("--max-turns", default=0, help="A limit of turns; 0 for none.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the record of the episode.",
)
@server_options
def play_episode(
    *,
    name: str,
    row: str,
    turns: Path | None,
    settings: tuple[str, ...],
    verifier: str,
    max_turns: int,
    record: Path | None,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
) -> int:
    """Play an episode by hand, or by a file of turns.

    At the prompt, "/tool name=value" calls a tool, "/tool {json}" too; anything else is the turn's
    text. The end of the input abandons the episode. The exit code is 1 for a fault.
    """
    kind = environment_of(name)
    given = settings_of(kind, _read_settings(settings))
    data = _read_row(row)
    server = read_server(target, token_file, tls_ca)
    services = RewardServices(server.target, verifier=verifier, token=server.token, tls=server.tls)
    following = _of_file(turns) if turns else _of_person(kind)
    with services, kind.open(given) as shared:
        played = asyncio.run(
            play(
                kind(given, shared, services),
                data,
                following,
                limits=EpisodeLimits(turns=max_turns),
                show=click.echo,
            )
        )
    if record is not None:
        record.write_text(json.dumps(played, indent=1) + "\n", encoding="utf-8")
    return int(played["ending"] == "fault")


def _of_file(path: Path) -> Callable[[Observation], Reply | None]:
    turns = scripted(iter(path.read_text(encoding="utf-8").splitlines()))

    def following(_observation: Observation) -> Reply | None:
        turn = next(turns, None)
        if turn is not None:
            click.echo(f"> {turn.text}")
        return turn

    return following


def _of_person(kind: type[Environment]) -> Callable[[Observation], Reply | None]:
    if sys.stdin.isatty():
        click.echo(f"tools: {', '.join(tools_of(kind)) or 'none'}; {TYPED}")

    def following(_observation: Observation) -> Reply | None:
        try:
            return typed(input("> "))
        except EOFError:
            click.echo("")
            return None

    return following


def _read_settings(pairs: tuple[str, ...]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"--settings {pair} has no value; write {name}=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _read_row(text: str) -> Mapping[str, Any]:
    where = "--row"
    if text.startswith("@"):
        where = text[1:]
        text = Path(where).read_text(encoding="utf-8")
    try:
        row = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where} is no JSON: {error}") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where} is no object; a row has names and values")
    return row
