"""`assay check-verifier`: the conformance checks on one verifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.cli.commands.options import read_server, server_options
from assay.cli.parameters import functions_among
from assay.cli.scoring.rows import Row, RowSource, read_rows
from assay.clients.rows.items import Defaults, Keys
from assay.kit.errors import ConfigError


@click.command(name="check-verifier")
@click.argument("name", metavar="NAME|FILE.py:FUNCTION")
@click.option(
    "--cases",
    "cases_file",
    metavar="CASES.jsonl",
    help="Items with what must come of them: {response, reference, verdict}.",
)
@server_options
@click.option(
    "--item-timeout", default=10.0, show_default=True, help="Seconds that one judgement may take."
)
@click.option(
    "--hostile-chars", default=2**20, show_default=True, help="Length of long hostile responses."
)
def check_verifier(
    *,
    name: str,
    cases_file: str | None,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    item_timeout: float,
    hostile_chars: int,
) -> int:
    """Check that a verifier keeps what every verifier promises: NAME, or a function in a file.

    Its description, its verdicts on your cases, determinism, faults for references and parameters
    that cannot be used, and hostile responses. A case is a row as `assay score` takes it, with
    "verdict", "reward" or "fault" (a reason) for what must come of it. Without --target the server
    installed here is started, with every plug-in that is installed. Exits with 1 when a check
    fails.
    """
    # Imported here: no other command needs the conformance kit.
    from assay.clients import testing  # noqa: PLC0415

    server = read_server(target, token_file, tls_ca)
    (name,), arguments = functions_among([name], target)
    cases = []
    if cases_file is not None:
        keys = Keys(verifier="", task="")
        source = RowSource(Path(cases_file), cases_file, keys, Defaults(verifier=name))
        for row in read_rows(source):
            expected = _expected(cases_file, row)
            item = row.item
            cases.append(
                testing.Case(
                    item.response or "",
                    item.reference,
                    parameters=item.parameters,
                    prompt=item.prompt,
                    name=str(row.id),
                    **expected,
                )
            )
    report = testing.check_verifier(
        name,
        cases,
        target=server.target,
        tls=server.tls,
        token=server.token,
        arguments=arguments,
        item_timeout_s=item_timeout,
        hostile_chars=hostile_chars,
    )
    click.echo(str(report))
    return int(not report.ok)


def _expected(file: str, row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kinds: dict[str, type | tuple[type, ...]] = {
        "verdict": str,
        "reward": (int, float),
        "fault": str,
    }
    for key, kind in kinds.items():
        value = row.data.get(key)
        if value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            wanted = "a number" if key == "reward" else "a text"
            raise ConfigError(f"{file}:{row.line}: {key!r} is not {wanted}; write one")
        found[key] = value
    return found
