"""`assay verifiers`: what a reward server judges."""

from __future__ import annotations

import dataclasses
import json
from contextlib import nullcontext

import click
from rich.console import Console
from rich.table import Table

from assay.clients.commands.options import IMPATIENT, read_server, server_options
from assay.clients.services import EmbeddedServices
from assay.clients.sync import RewardClient
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


def _print_table(info: ServerInfo) -> None:
    table = Table(
        "name", "version", "tasks", "reward", "deterministic", "parameters", "what it judges"
    )
    for verifier in info.verifiers:
        table.add_row(
            verifier.name,
            verifier.version,
            ", ".join(verifier.tasks),
            f"{verifier.min_reward:g} to {verifier.max_reward:g}",
            "yes" if verifier.deterministic else "no",
            "\n".join(_describe(parameter) for parameter in verifier.parameters),
            verifier.description,
        )
    Console().print(table)


def _describe(parameter: ParameterInfo) -> str:
    default = "required" if parameter.default is None else f"= {parameter.default}"
    return f"{parameter.name}: {parameter.type} {default}"
