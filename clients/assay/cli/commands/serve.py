"""`assay serve NAME [ARGS...]`: one service in the foreground."""

from __future__ import annotations

import os
import sys

import click

from assay.clients.services import PACKAGES, package_of


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="`assay serve reward --help` lists the arguments of the reward server.",
)
@click.argument("service", metavar="{" + ",".join(PACKAGES) + "}")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def serve(service: str, arguments: tuple[str, ...]) -> None:
    """Run one service in the foreground, with the arguments that follow its name."""
    package = package_of(service)
    sys.stdout.flush()
    # The service takes this process over: signals reach it directly, and its exit code is ours.
    os.execv(sys.executable, [sys.executable, "-m", package, *arguments])  # noqa: S606  # no shell is wanted
