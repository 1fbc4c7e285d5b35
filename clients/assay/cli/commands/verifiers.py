"""`assay verifiers`: the verifiers of a reward server."""

from __future__ import annotations

import dataclasses
import json
from contextlib import nullcontext

import click
from rich.console import Console
from rich.table import Table

from assay.cli.commands.options import IMPATIENT, read_server, server_options
from assay.clients.reward import RewardClient
from assay.clients.services import EmbeddedServices, what_would_add_verifiers
from assay.clients.types import ParameterInfo, ServerInfo


@click.command()
@server_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def verifiers(target: str, token_file: str | None, tls_ca: str | None, as_json: bool) -> None:
    """List what a reward server judges. Without --target: what the server installed here judges."""
    server = read_server(target, token_file, tls_ca)
    embedded = None if server.target else EmbeddedServices(["reward"])
    with embedded or nullcontext():
        address = embedded.address if embedded else server.target
        with RewardClient(
            address, tls=server.tls, token=server.token, timeout_s=10.0, config=IMPATIENT
        ) as client:
            info = client.list_verifiers()
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(info), indent=2, ensure_ascii=False))
    else:
        _print_table(info)
        if more := what_would_add_verifiers([verifier.name for verifier in info.verifiers]):
            click.echo(more)


def _print_table(info: ServerInfo) -> None:
    console = Console(highlight=False)
    for verifier in info.verifiers:
        console.print(f"[bold]{verifier.name}[/]: {verifier.description}")
        facts = Table.grid(padding=(0, 2))
        facts.add_row("  tasks", ", ".join(verifier.tasks) or "none: ask for it by name")
        facts.add_row("  reward", f"{verifier.min_reward:g} to {verifier.max_reward:g}")
        facts.add_row("  verdicts", ", ".join(verifier.verdicts))
        same = "equal items get equal judgements" if verifier.deterministic else "judgements vary"
        facts.add_row("  version", f"{verifier.version}; {same}")
        for parameter in verifier.parameters:
            facts.add_row(f"  {parameter.name}", _describe(parameter))
        console.print(facts)
        console.print()


def _describe(parameter: ParameterInfo) -> str:
    kind = " or ".join(parameter.allowed_values) or parameter.type
    default = "required" if parameter.default is None else f"default {parameter.default}"
    return f"{kind}, {default}. {parameter.description}"
