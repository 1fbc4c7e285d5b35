"""`assay run FILE`: one program in the sandbox, as if it ran here.

Its output is passed on byte for byte, and its exit code is the command's. 128 + n: signal n ended
it. 124: a limit of time, memory, output or processes, or a forbidden call. 125: the sandbox could
not run it. For 124 and 125 one line on stderr gives the reason. A program that does not compile:
the compiler's output on stderr, and 1.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

import click

from assay.cli.commands.options import IMPATIENT, read_server, server_options
from assay.cli.ends import FAULT_CODE, LIMIT_CODE, SIGNAL_BASE, signal_name
from assay.clients.execution import Execution, ExecutionClient, ExecutionJob, Limits, Program
from assay.clients.services import EmbeddedServices
from assay.clients.types import Fault
from assay.kit.errors import ConfigError

_CALL_SLACK_S = 60.0
_MAX_STDIN_BYTES = 24 * 2**20

LANGUAGES = {
    ".py": "python",
    ".c": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".java": "java",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".go": "go",
    ".rs": "rust",
    ".sh": "bash",
    ".sql": "sql",
    ".pl": "perl",
    ".rb": "ruby",
    ".php": "php",
    ".lua": "lua",
    ".r": "r",
    ".rkt": "racket",
    ".cs": "csharp",
    ".d": "d",
    ".scala": "scala",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".v": "verilog",
    ".sv": "verilog",
}


def language_of(file: Path) -> str:
    """The language of a file, by its name.

    Raises:
        ConfigError: the name is of no known language.
    """
    found = LANGUAGES.get(file.suffix.lower())
    if found is None:
        raise ConfigError(f"the name {file.name} names no language; pass --language")
    return found


def exit_code(outcome: Execution | Fault) -> int:
    """The exit code of the command."""
    if isinstance(outcome, Fault):
        return FAULT_CODE
    match outcome.end:
        case "exited":
            return outcome.exit_code
        case "signalled":
            return SIGNAL_BASE + outcome.signal
        case "compile-error":
            return 1
    return LIMIT_CODE


def reason(outcome: Execution | Fault) -> str:
    """One line on an end that the program did not choose; otherwise empty."""
    if isinstance(outcome, Fault):
        return f"fault {outcome.reason}: {outcome.message}"
    match outcome.end:
        case "exited" | "compile-error":
            return ""
        case "signalled":
            return f"ended by signal {outcome.signal} ({signal_name(outcome.signal)})"
    used = f"{outcome.cpu_time_s:.2f} s of CPU time, {outcome.wall_time_s:.2f} s on the clock"
    return f"ended by the {outcome.end.replace('-', ' ')} after {used}"


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="What follows FILE are the program's own arguments.",
)
@server_options
@click.option("--language", default="", help="Default: by FILE's name.")
@click.option("--stdin", "stdin_file", metavar="FILE", help="What it reads; - for our own stdin.")
@click.option(
    "--wall-limit", type=click.FloatRange(min=0, min_open=True), help="Seconds on the clock."
)
@click.option(
    "--memory-limit", type=click.IntRange(min=1), metavar="MIB", help="MiB of all its processes."
)
@click.argument("file", metavar="FILE")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def run(
    *,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    language: str,
    stdin_file: str | None,
    wall_limit: float | None,
    memory_limit: int | None,
    file: str,
    arguments: tuple[str, ...],
) -> int:
    """Run a program in the sandbox. Without --target a sandbox is started.

    The exit code is the program's; 128 + n for signal n, 124 for a limit, 125 for a fault.
    """
    server = read_server(target, token_file, tls_ca)
    job = ExecutionJob(
        program=Program(
            language=language or language_of(Path(file)),
            source=_read_source(Path(file)),
            arguments=arguments,
        ),
        stdin=_read_stdin(stdin_file),
        limits=Limits(
            wall_time_s=wall_limit,
            cpu_time_s=wall_limit,
            memory_bytes=memory_limit * 2**20 if memory_limit else None,
        ),
    )
    timeout_s = (wall_limit or _CALL_SLACK_S) + 2 * _CALL_SLACK_S
    only = ["--slots", "1", "--languages", job.program.language]
    embedded = None if server.target else EmbeddedServices(["sandbox"], arguments={"sandbox": only})
    with embedded or nullcontext():
        address = embedded.address_of("sandbox") if embedded else server.target
        with ExecutionClient(
            address, tls=server.tls, token=server.token, timeout_s=timeout_s, config=IMPATIENT
        ) as client:
            [outcome] = client.execute([job])
    if isinstance(outcome, Execution):
        _write(sys.stdout.buffer, outcome.stdout.data)
        _write(sys.stderr.buffer, outcome.compile_output.data)
        _write(sys.stderr.buffer, outcome.stderr.data)
        for name, stream in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
            if stream.truncated:
                text = f"of {stream.total_bytes} bytes of {name} the first {len(stream.data)} were"
                click.echo(f"assay run: {text} kept", err=True)
    if why := reason(outcome):
        click.echo(f"assay run: {' '.join(why.split())}", err=True)
    return exit_code(outcome)


def _read_source(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8 text, so it is no program") from error


def _read_stdin(stdin_file: str | None) -> bytes:
    if stdin_file is None:
        return b""
    if stdin_file == "-":
        data = sys.stdin.buffer.read(_MAX_STDIN_BYTES + 1)
    else:
        with Path(stdin_file).open("rb") as source:
            data = source.read(_MAX_STDIN_BYTES + 1)
    if len(data) > _MAX_STDIN_BYTES:
        raise ConfigError(f"--stdin: more than {_MAX_STDIN_BYTES} bytes; shorten it")
    return data


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()
