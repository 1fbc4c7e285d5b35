"""`assay session`: cells in the sandbox, from a prompt or from a pipe.

At a prompt each cell is followed by a line with its time, memory and files. From a pipe the text is
one cell, or several between lines "# %%" and commands; the first that fails ends it. The exit code
is as that of `assay run`: the cell's own, 1 for an exception, 124 for a limit, 125 for a fault.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import click

from assay.cli.commands.options import IMPATIENT, read_server, server_options
from assay.cli.sessions.reading import parts_of, read_cell
from assay.cli.sessions.shell import Quit, Shell
from assay.cli.sessions.showing import Json, Plain
from assay.clients.services import EmbeddedServices
from assay.clients.sessions import SessionClient, SessionLimits

_HISTORY_LINES = 2000


@click.command()
@server_options
@click.option(
    "--language", type=click.Choice(["python", "bash"]), default="python", show_default=True
)
@click.option(
    "--wall-limit", type=click.FloatRange(min=0, min_open=True), help="Seconds for each cell."
)
@click.option(
    "--memory-limit", type=click.IntRange(min=1), metavar="MIB", help="MiB of the session."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each cell.")
def session(
    *,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    language: str,
    wall_limit: float | None,
    memory_limit: int | None,
    as_json: bool,
) -> int:
    """Run cells in a session of the sandbox. Without --target a sandbox is started.

    State lives from cell to cell. At the prompt, :help lists what else there is: checkpoints,
    forks, files. From a pipe, the first cell that fails ends the script, with its exit code.
    """
    server = read_server(target, token_file, tls_ca)
    limits = SessionLimits(
        cell_wall_time_s=wall_limit,
        cell_cpu_time_s=wall_limit,
        memory_bytes=memory_limit * 2**20 if memory_limit else None,
    )
    only = ["--languages", "python", "--slots", "1"]
    embedded = None if server.target else EmbeddedServices(["sandbox"], arguments={"sandbox": only})
    with embedded or nullcontext():
        address = embedded.address_of("sandbox") if embedded else server.target
        with SessionClient(
            address, tls=server.tls, token=server.token, config=IMPATIENT, keep_alive=True
        ) as client:
            typed = sys.stdin.isatty()
            shower = Json() if as_json else Plain(details=typed)
            shell = Shell(client, shower, language, limits)
            return _converse(shell) if typed else _follow(shell, sys.stdin.read())


def _follow(shell: Shell, script: str) -> int:
    """Runs a script to its end, or to what fails."""
    try:
        for part in parts_of(script):
            if not shell.take(part):
                break
    except Quit:
        pass
    return shell.code


def _converse(shell: Shell) -> int:
    """Takes cells from a person. What failed at the prompt was seen there: the exit code is 0."""
    with _history():
        click.echo("assay session: :help lists the commands, Ctrl-D ends", err=True)
        with contextlib.suppress(Quit, EOFError):
            while True:
                _take_one(shell)
    return 0


def _take_one(shell: Shell) -> None:
    try:
        text = read_cell(shell.language, lambda prompt: input(_named(shell.name, prompt)))
    except KeyboardInterrupt:
        click.echo(err=True)
        return
    if not text.strip():
        return
    try:
        shell.take(text)
    except KeyboardInterrupt:
        shell.interrupted()


def _named(name: str, prompt: str) -> str:
    return f"{name} {prompt}" if name else prompt


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """What was typed, kept for the next time in XDG_STATE_HOME."""
    try:
        import readline  # noqa: PLC0415  # some builds of Python have none
    except ImportError:
        yield
        return
    base = os.environ.get("XDG_STATE_HOME")
    folder = (Path(base) if base else Path.home() / ".local" / "state") / "assay"
    file = folder / "session_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            readline.write_history_file(file)
