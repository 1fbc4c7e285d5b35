"""`assay token`: bearer tokens for tenants, and a service's file of them."""

from __future__ import annotations

import os
from pathlib import Path

import click

from assay.kit.errors import AssayError
from assay.kit.tokens import hash_token, new_token

_PATH = click.Path(path_type=Path, dir_okay=False)


@click.group()
def token() -> None:
    """Make the tokens that services ask for."""


@token.command()
@click.argument("tenant")
@click.option("--file", type=_PATH, help="Append the line to this tokens file.")
def new(tenant: str, file: Path | None) -> None:
    """Make a token for TENANT.

    Prints the token, which is shown this once and kept nowhere, and the line to store in the file
    of --tokens-file. With --file the line is stored and the token alone is printed:

        assay token new team-a --file tokens > team-a.token
    """
    fresh = new_token()
    try:
        line = hash_token(tenant, fresh).line
        if file is not None:
            _append(file, line)
    except AssayError as error:
        raise click.ClickException(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"the tokens file {file} cannot be written: {error}") from error
    click.echo(fresh if file is not None else f"token  {fresh}\nline   {line}")


def _append(file: Path, line: str) -> None:
    """Adds a line by replacing the file, so that no service reads half of it."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if text and not text.endswith("\n"):
        text += "\n"
    target = file.resolve()
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    partial = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    partial.write_text(f"{text}{line}\n", encoding="utf-8")
    partial.chmod(mode)
    partial.replace(target)
